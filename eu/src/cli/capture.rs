// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Captured walkers: `eu run`, `eu trace` and `eu info` of a file that `arctic trace --walker` has written.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use arctic_eu::capture::{
    Capture, CapturedImage, Comparison, EndPlace, EndReason, Page, Replay, ReplayObserver, ReplayStop, SamplerName,
    SurfaceName,
};
use arctic_eu::exec::Host;
use arctic_eu::exec::memory::SurfaceMemory;
use serde_json::json;

use super::launch::LaunchOptions;
use super::run::{DIFFERENT, Failure, GroupBar, INCOMPLETE, OUTSIDE};

/// Cost of a step of a replay, about 10 ms.
const STEP: u64 = 1 << 20;

/// How a replay was driven to its end.
pub enum Driven {
    End(EndReason),
    Break(EndPlace),
}

/// Executes a replay until it ends, or the observer stops a thread.
pub fn drive(
    replay: &mut Replay<'_>,
    options: &LaunchOptions,
    observer: &mut impl ReplayObserver,
    show: bool,
) -> Result<Driven, String> {
    let bar = GroupBar::new(replay.total(), show);
    loop {
        match replay.step(STEP, options.way(), observer) {
            ReplayStop::End(reason) => return Ok(Driven::End(reason)),
            ReplayStop::Break(place) => return Ok(Driven::Break(place)),
            ReplayStop::Limit(place) => {
                return Err(format!(
                    "error: a thread does not end within {} instructions: set a higher --limit if that is too few\n  {}",
                    options.limit,
                    at(&place)
                ));
            }
            ReplayStop::Budget if replay.instructions() > options.limit_all => {
                return Err(format!(
                    "error: the run does not end within {} instructions: set a higher --limit-all",
                    options.limit_all
                ));
            }
            ReplayStop::Budget => bar.set(replay.groups()),
        }
    }
}

fn at(place: &EndPlace) -> String {
    let [x, y, z] = place.group;
    format!("instruction at {:#x}, group {x},{y},{z}, thread {}", place.address, place.thread)
}

fn function(number: u8) -> String {
    if number == 0 { "pf".into() } else { format!("vf{number}") }
}

/// Executes a captured walker, and compares its memory.
pub fn run(capture: &Capture, options: &LaunchOptions, json: bool) -> super::Result {
    let mut replay = Replay::new(capture, Host::detect(), options.limit);
    let start = Instant::now();
    let driven = match drive(&mut replay, options, &mut (), !json) {
        Ok(driven) => driven,
        Err(message) => {
            eprintln!("{message}");
            return Ok(ExitCode::from(INCOMPLETE));
        }
    };
    let time = start.elapsed();
    let Driven::End(end) = driven else { return Err("error: the replay has stopped".into()) };
    let comparison = replay.compare();
    let failure = failure(capture, &replay, end, &comparison);
    if json {
        let first = comparison.first.map(|first| {
            json!({ "address": first.address, "compressed": first.compressed, "before": first.before,
                    "card": first.card, "replay": first.replay, "written": first.written })
        });
        let document = json!({
            "kernel": capture.launch.kernel_address(),
            "status": if failure.is_some() { "failed" } else { "complete" },
            "error": failure.as_ref().map(|failure| &failure.message),
            "groups": replay.groups(),
            "threads_per_group": capture.launch.dispatch.threads,
            "simd": capture.launch.dispatch.simd,
            "instructions": replay.instructions(),
            "seconds": time.as_secs_f64(),
            "outside": replay.outside(),
            "pages": comparison.pages,
            "written_pages": comparison.written,
            "different_bytes": comparison.bytes,
            "first_difference": first,
        });
        super::print(&format!("{document:#}\n"))?;
    } else {
        eprintln!("{}", summary(capture, &replay, time));
        if comparison.bytes == 0 {
            eprintln!("memory is as the card left it: {} pages, {} written", comparison.pages, comparison.written);
        }
        if let Some(Failure { message, .. }) = &failure {
            eprintln!("error: {message}");
        }
    }
    Ok(failure.map_or(ExitCode::SUCCESS, |failure| ExitCode::from(failure.status)))
}

fn summary(capture: &Capture, replay: &Replay<'_>, time: Duration) -> String {
    let rate = replay.instructions() as f64 / time.as_secs_f64().max(1e-9) / 1e6;
    let origin = &capture.origin;
    format!(
        "walker {} of {}, {}, kernel at {:#x}: {} groups of {} threads, SIMD{}: {} instructions in {:.3} s, {rate:.1} million \
         instructions per second",
        origin.number,
        function(origin.function),
        origin.engine,
        capture.launch.kernel_address(),
        replay.groups(),
        capture.launch.dispatch.threads,
        capture.launch.dispatch.simd,
        replay.instructions(),
        time.as_secs_f64()
    )
}

fn end_text(reason: EndReason) -> String {
    match reason {
        EndReason::Complete => "ended".into(),
        EndReason::Fault(place) => format!("stopped at an access without a valid translation, {}", at(&place)),
        EndReason::Barrier(place) => format!("waits for a barrier that will never complete, {}", at(&place)),
    }
}

fn failure(capture: &Capture, replay: &Replay<'_>, end: EndReason, comparison: &Comparison) -> Option<Failure> {
    let card = capture.end.reason;
    if end != card {
        let message = format!("on the card the walker {}; here it {}", end_text(card), end_text(end));
        return Some(Failure { status: DIFFERENT, message });
    }
    if let Some(first) = comparison.first {
        let mut message = format!(
            "{} bytes differ from what the card left. The first is at {:#x}: {:#04x} on the card, {:#04x} here, {:#04x} before the \
             walker",
            comparison.bytes, first.address, first.card, first.replay, first.before
        );
        if first.compressed {
            message += "; it is in a compressed image";
        }
        if !first.written {
            message += ". Nothing was written to its page here: something else may have written to it on the card";
        }
        return Some(Failure { status: DIFFERENT, message });
    }
    if end != EndReason::Complete {
        return Some(Failure { status: INCOMPLETE, message: format!("as on the card, the walker {}", end_text(end)) });
    }
    if let Some(ended) = replay.ended() {
        let message = format!(
            "{} threads ended at an instruction that cannot be executed, as on the card: {}. The first:\n  {}",
            ended.count,
            ended.reason,
            at(&ended.place)
        );
        return Some(Failure { status: INCOMPLETE, message });
    }
    let outside = replay.outside();
    (outside != 0).then(|| Failure {
        status: OUTSIDE,
        message: format!(
            "{outside} accesses outside of a surface or of local memory; loads gave 0, stores were dropped"
        ),
    })
}

/// Prints what a capture has.
pub fn info(capture: &Capture, json: bool) -> super::Result {
    let origin = &capture.origin;
    let launch = &capture.launch;
    let changed = capture.pages.values().filter(|page| matches!(page, Page::Memory { after: Some(_), .. })).count();
    let surfaces: Vec<_> = capture
        .surfaces
        .iter()
        .map(|(name, surface)| {
            (surface_name(*name), surface.address, memory_text(&surface.memory), image_text(&surface.image))
        })
        .collect();
    let samplers: Vec<_> =
        capture.samplers.iter().map(|(name, sampler)| (sampler_name(*name), format!("{sampler:?}"))).collect();
    if json {
        let surfaces: Vec<_> = surfaces
            .iter()
            .map(|(name, address, memory, image)| {
                json!({ "name": name, "state": address, "memory": memory, "image": image })
            })
            .collect();
        let pages: Vec<_> = capture
            .pages
            .iter()
            .map(|(name, page)| {
                let changed = matches!(page, Page::Memory { after: Some(_), .. });
                json!({ "address": name.address, "compressed": name.compressed, "changed": changed })
            })
            .collect();
        let document = json!({
            "walker": origin.number,
            "function": function(origin.function),
            "engine": origin.engine,
            "kernel": launch.kernel_address(),
            "simd": launch.dispatch.simd,
            "registers": launch.registers,
            "threads_per_group": launch.dispatch.threads,
            "local_memory": launch.slm,
            "first": launch.first,
            "start": launch.start,
            "end": launch.end,
            "commands": capture.commands,
            "dwords": capture.walker,
            "surfaces": surfaces,
            "samplers": samplers,
            "pages": pages,
            "ended": end_text(capture.end.reason),
        });
        return super::print(&format!("{document:#}\n"));
    }
    let mut text = String::new();
    let _ = writeln!(
        text,
        "walker {} of {}, {}: {}",
        origin.number,
        function(origin.function),
        origin.engine,
        end_text(capture.end.reason)
    );
    let _ = writeln!(
        text,
        "kernel at {:#x}: SIMD{}, {} registers, groups {:?} to {:?} of {} threads, {} bytes of local memory",
        launch.kernel_address(),
        launch.dispatch.simd,
        launch.registers,
        launch.start,
        launch.end,
        launch.dispatch.threads,
        launch.slm
    );
    let _ = writeln!(text, "{} pages of memory, {changed} changed", capture.pages.len());
    for (name, address, memory, image) in surfaces {
        let _ = writeln!(text, "  surface {name}, state at {address:#x}: {memory}{image}");
    }
    for (name, sampler) in samplers {
        let _ = writeln!(text, "  sampler {name}: {sampler}");
    }
    for (name, dwords) in [("state", &capture.commands), ("walker", &capture.walker)] {
        let _ = writeln!(text, "{name}");
        for row in dwords.chunks(8) {
            let row: Vec<String> = row.iter().map(|dword| format!("{dword:08x}")).collect();
            let _ = writeln!(text, "  {}", row.join(" "));
        }
    }
    super::print(&text)
}

fn surface_name(name: SurfaceName) -> String {
    match name {
        SurfaceName::Binding(index) => format!("bt[{index}]"),
        SurfaceName::Bindless(offset) => format!("bss[{offset:#x}]"),
        SurfaceName::State(offset) => format!("ss[{offset:#x}]"),
    }
}

fn sampler_name(name: SamplerName) -> String {
    match name.pointer {
        Some(pointer) => format!("bss[{pointer:#x}], {}", name.index),
        None => name.index.to_string(),
    }
}

fn memory_text(memory: &SurfaceMemory) -> String {
    match memory {
        SurfaceMemory::Null => "null".into(),
        SurfaceMemory::Buffer { base, bytes } => format!("{bytes} bytes at {base:#x}"),
        SurfaceMemory::Scratch { base, pitch, threads } => {
            format!("scratch memory at {base:#x}, {pitch} bytes for each of {threads} threads")
        }
        SurfaceMemory::Texels => "image".into(),
    }
}

fn image_text(image: &CapturedImage) -> String {
    match image {
        CapturedImage::None => String::new(),
        CapturedImage::Unsupported => ", not supported".into(),
        CapturedImage::Null(_) => ", without texels".into(),
        CapturedImage::Texels(image, planes) => format!(
            ", {} x {} x {} texels of {:?} {:?} at {:#x}, {}{}",
            image.width,
            image.height,
            image.depth,
            image.format.order,
            image.format.channel,
            planes.base,
            if planes.tile.is_some() { "tiled" } else { "linear" },
            if planes.compressed { ", compressed" } else { "" }
        ),
    }
}
