// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Options of commands that launch a kernel.

use std::path::{Path, PathBuf};

use arctic_eu::capture::Capture;
use arctic_eu::exec::{Host, Way};
use arctic_eu::launch::{Argument, Launch, LaunchError, LocalIds, Location, Range, Settings, parse_image_format};
use arctic_eu::text;
use arctic_eu::zebin::Zebin;
use clap::CommandFactory;
use clap::error::ErrorKind;

/// A kernel, its range and its arguments.
#[derive(clap::Args)]
pub struct LaunchOptions {
    /// Zebin, made by `ocloc compile -file k.cl -device dg2`; or a walker that `arctic trace --walker N --save FILE` has captured, with
    /// its arguments and memory
    pub file: PathBuf,
    /// Name of the kernel; not needed if the file has one
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// Number of work items in each direction; as many directions as the kernel's range has. A zebin needs it
    #[arg(long, value_name = "X[,Y[,Z]]")]
    global: Option<String>,
    /// Work items of a group; by default what the kernel requires, or one thread
    #[arg(long, value_name = "X[,Y[,Z]]")]
    local: Option<String>,
    /// First global id in each direction
    #[arg(long, value_name = "X[,Y[,Z]]")]
    offset: Option<String>,
    /// Value of an argument: NAME=@FILE, NAME=zeros:BYTES, NAME=5, NAME=u32:5, NAME=f32:1,2,3, NAME=local:BYTES, NAME=null,
    /// NAME=same:OTHER (the buffer of another argument), NAME=sampler:clamp_edge,linear, NAME=@FILE:image:64x64:rgba8unorm, NAME=zeros:image:64x64:r32f. Image formats: r, rg,
    /// rgba or bgra with 8, 16 or 32 and unorm, snorm, ui, i or f; srgba or sbgra with 8unorm; a, intensity or luminance with
    /// 8unorm, 16unorm, 16f or 32f; depth with 16unorm or 32f
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    arguments: Vec<String>,
    /// Writes the address of a buffer into another one before the run, 8 bytes: NAME+OFFSET=OTHER+OFFSET, where an offset of 0
    /// can be left out
    #[arg(long = "pointer", value_name = "NAME+OFFSET=OTHER+OFFSET")]
    pointers: Vec<String>,
    /// Instructions of a thread after which it is reported as endless
    #[arg(long, default_value_t = 1 << 32, value_name = "N")]
    pub limit: u64,
    /// Instructions of all threads together after which the run ends
    #[arg(long, default_value_t = u64::MAX, hide_default_value = true, value_name = "N")]
    pub limit_all: u64,
    /// Groups that run at once; by default as many as the card has threads and local memory for
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "N")]
    resident: u64,
    /// Host threads; all by default
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub workers: usize,
    /// Where local ids come from
    #[arg(long, value_enum, default_value_t = Ids::Driver)]
    local_ids: Ids,
    /// Execute lane by lane, as a check
    #[arg(long)]
    general: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Ids {
    /// As a driver chooses
    Driver,
    /// In registers
    Hardware,
    /// Loaded by the kernel
    Memory,
}

type Text<T> = Result<T, String>;

fn sizes(text: &str) -> Text<[u32; 3]> {
    let mut all = [1; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err(format!("error: {text} has more than three sizes"));
    }
    for (size, part) in all.iter_mut().zip(parts) {
        *size = part.parse().map_err(|_| format!("error: `{part}` is no number"))?;
    }
    Ok(all)
}

/// A file with a kernel.
pub enum Input {
    Zebin(Zebin),
    Capture(Box<Capture>),
}

impl LaunchOptions {
    /// The file.
    pub fn input(&self) -> Text<Input> {
        let bytes = super::read(&self.file)?;
        let fail = |error: &dyn std::fmt::Display| format!("error: {}: {error}", self.file.display());
        if Capture::is_file(&bytes) {
            self.check_capture()?;
            return Capture::parse(&bytes)
                .map(|capture| Input::Capture(Box::new(capture)))
                .map_err(|error| fail(&error));
        }
        Zebin::parse(bytes).map(Input::Zebin).map_err(|error| fail(&error))
    }

    /// Refuses options that a captured walker has itself.
    fn check_capture(&self) -> Text<()> {
        let given = [
            ("--kernel", self.kernel.is_some()),
            ("--global", self.global.is_some()),
            ("--local", self.local.is_some()),
            ("--offset", self.offset.is_some()),
            ("--arg", !self.arguments.is_empty()),
            ("--pointer", !self.pointers.is_empty()),
            ("--resident", self.resident != 0),
            ("--workers", self.workers != 0),
            ("--local-ids", self.local_ids != Ids::Driver),
        ];
        match given.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((option, _)) => Err(format!(
                "error: {option} is for zebins: {} is a captured walker, which has its kernel, sizes and arguments",
                self.file.display()
            )),
        }
    }

    /// The way of execution.
    pub fn way(&self) -> Way {
        if self.general { Way::General } else { Way::Fast }
    }

    /// Prepares the launch.
    pub fn launch(&self, zebin: &Zebin) -> Text<Launch> {
        let fail = |error: &dyn std::fmt::Display| format!("error: {error}");
        let kernel = zebin.kernel(self.kernel.as_deref()).map_err(|error| fail(&error))?;
        let Some(sizes_text) = &self.global else {
            let missing = "a zebin needs --global <X[,Y[,Z]]>, the number of work items\n";
            super::Options::command().error(ErrorKind::MissingRequiredArgument, missing).exit();
        };
        let global = sizes(sizes_text)?;
        let local = match &self.local {
            Some(text) => sizes(text)?,
            None => kernel.group_size.unwrap_or([divisor(global[0], kernel.simd), 1, 1]),
        };
        let offset = self.offset.as_deref().map_or(Ok([0; 3]), |text| {
            let mut offset = sizes(text)?;
            let given = text.split(',').count();
            offset[given..].fill(0);
            Ok::<_, String>(offset)
        })?;
        let mut arguments = Vec::new();
        for text in &self.arguments {
            let (name, value) = text.split_once('=').ok_or_else(|| format!("error: `{text}` is no NAME=VALUE"))?;
            let found = kernel.arguments.iter().find(|argument| argument.name == name);
            let ty = &found.ok_or_else(|| fail(&LaunchError::unknown(kernel, name)))?.ty;
            let value = value_of(value, ty)
                .map_err(|message| format!("error: argument {name}: {}", message.trim_start_matches("error: ")))?;
            arguments.push((name.to_string(), value));
        }
        let settings = Settings {
            workers: self.workers,
            limit: self.limit,
            total_limit: self.limit_all,
            resident: self.resident,
            local_ids: match self.local_ids {
                Ids::Driver => LocalIds::Driver,
                Ids::Hardware => LocalIds::Hardware,
                Ids::Memory => LocalIds::Memory,
            },
            host: Host::detect(),
            way: self.way(),
            dimensions: Some(sizes_text.split(',').count() as u8),
        };
        let range = Range { global, local, offset };
        let launch = Launch::new(zebin, self.kernel.as_deref(), range, &arguments, settings);
        let launch = launch.map_err(|error| fail(&error))?;
        for text in &self.pointers {
            let (place, target) =
                pointer(&launch, text).map_err(|message| format!("error: --pointer {text}: {message}"))?;
            launch.space.poke(place, &target.to_le_bytes());
        }
        Ok(launch)
    }
}

/// The largest divisor of `size` up to `most`.
fn divisor(size: u32, most: u32) -> u32 {
    (1..=most.max(1)).rev().find(|divisor| size.is_multiple_of(*divisor)).unwrap_or(1)
}

/// The two addresses of NAME+OFFSET=OTHER+OFFSET. The first is that of 8 bytes inside the buffer.
fn pointer(launch: &Launch, text: &str) -> Text<(u64, u64)> {
    let (place, target) = text.split_once('=').ok_or("expected NAME+OFFSET=OTHER+OFFSET")?;
    let address = |text: &str, size: u64| {
        let (name, offset) = text.split_once('+').unwrap_or((text, "0"));
        let offset: u64 = offset.parse().map_err(|_| format!("`{offset}` is no number of bytes"))?;
        let found = launch.buffers.iter().find(|(found, ..)| found == name);
        let (_, start, length) = found.ok_or_else(|| format!("no buffer `{name}`"))?;
        if offset.checked_add(size).is_none_or(|end| end > *length as u64) {
            return Err(format!("{name} has {length} bytes"));
        }
        Ok(start + offset)
    };
    Ok((address(place, 8)?, address(target, 0)?))
}

fn value_of(text: &str, ty: &str) -> Text<Argument> {
    let (source, image) = match text.split_once(":image:") {
        Some((source, description)) => (source, Some(description)),
        None => (text, None),
    };
    if let Some(description) = image {
        let (size, format) =
            description.split_once(':').ok_or("an image is WIDTHxHEIGHT:FORMAT, as 64x64:rgba8unorm")?;
        let format = parse_image_format(format).ok_or_else(|| {
            format!(
                "{format} is no format: use r, rg, rgba or bgra, 8, 16 or 32, unorm, snorm, ui, i or f; srgba or sbgra with \
                 8unorm; a, intensity or luminance with 8unorm, 16unorm, 16f or 32f; depth with 16unorm or 32f"
            )
        })?;
        let mut dimensions = [1u32; 3];
        for (dimension, part) in dimensions.iter_mut().zip(size.split('x')) {
            *dimension = part.parse().map_err(|_| format!("`{part}` is no size"))?;
        }
        let bytes = match source.strip_prefix('@') {
            Some(path) => super::read(Path::new(path))?,
            None => Vec::new(),
        };
        return Ok(Argument::Image { bytes, size: dimensions, format });
    }
    match text.strip_prefix('@') {
        Some(path) => super::read(Path::new(path)).map(Argument::Buffer),
        None => Argument::parse_as(text, ty),
    }
}

/// Kernel, instruction, group, thread and lane of an event.
pub fn describe(launch: &Launch, at: &Location) -> String {
    let located = launch.code.instructions.get(at.instruction as usize);
    let address = located.map_or(0, |located| located.address);
    let line = located.and_then(|located| located.instruction.as_ref()).and_then(|from| text::format(from, address));
    let words: Vec<&str> = line.as_deref().unwrap_or("?").split_whitespace().collect();
    let lane = at.lane.map_or(String::new(), |lane| format!(", lane {lane}"));
    let [x, y, z] = at.group;
    format!(
        "  kernel {}, instruction at {address:#x}, group {x},{y},{z}, thread {}{lane}\n  {}",
        launch.name,
        at.thread,
        words.join(" ")
    )
}
