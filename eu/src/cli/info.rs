// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `eu info`.

use std::fmt::Write;
use std::path::PathBuf;

use arctic_eu::capture::Capture;
use arctic_eu::zebin::{ArgumentInfo, Kernel, Zebin};
use serde_json::{Value, json};

use super::capture;

/// Lists the kernels of a zebin: arguments with types and address spaces, SIMD, registers, memory, and the device that the file
/// is for; or the state, surfaces, samplers and memory of a captured walker.
#[derive(clap::Args)]
pub struct Options {
    /// Zebin, or archive of zebins for several devices, of which the first that can be run is listed; or a captured walker
    file: PathBuf,
    /// Prints one JSON document
    #[arg(long)]
    json: bool,
}

impl Options {
    pub fn execute(self) -> super::Result {
        let fail = |error| format!("error: {}: {error}", self.file.display());
        let bytes = super::read(&self.file)?;
        if Capture::is_file(&bytes) {
            let capture = Capture::parse(&bytes).map_err(|error| format!("error: {}: {error}", self.file.display()))?;
            return capture::info(&capture, self.json);
        }
        let zebin = Zebin::parse(bytes).map_err(fail)?;
        let kernels = zebin.info.kernels.iter().filter(|kernel| !kernel.name.starts_with("Intel_Symbol"));
        if self.json {
            let target = zebin.target().map(|target| {
                json!({ "name": target.name(), "product": target.product, "version": target.version,
                        "supported": target.is_supported() })
            });
            let document = json!({ "target": target, "kernels": kernels.map(document).collect::<Vec<_>>() });
            return super::print(&format!("{document:#}\n"));
        }
        let mut text = String::new();
        match zebin.target() {
            Some(target) if target.is_supported() => _ = writeln!(text, "for {target}"),
            Some(target) => _ = writeln!(text, "for {target}, which cannot be run"),
            None => text.push_str("for an unknown device\n"),
        }
        kernels.for_each(|kernel| describe(kernel, &mut text));
        super::print(&text)
    }
}

/// Bytes of the buffers of this kind, of a thread.
fn buffer_bytes(kernel: &Kernel, kind: &str) -> u64 {
    let lanes = |per_lane: bool| if per_lane { u64::from(kernel.simd) } else { 1 };
    let buffers = kernel.buffers.iter().filter(|buffer| buffer.kind == kind);
    buffers.map(|buffer| u64::from(buffer.size) * lanes(buffer.per_lane)).sum()
}

/// Address space of an argument; `None` of a value.
fn space(argument: &ArgumentInfo) -> Option<&str> {
    let space = argument.space.trim_start_matches('_');
    (!matches!(space, "" | "private")).then_some(space)
}

fn describe(kernel: &Kernel, text: &mut String) {
    let _ = write!(text, "\n{}: SIMD{}, {} registers", kernel.name, kernel.simd, kernel.grf_count);
    if let Some([x, y, z]) = kernel.group_size {
        let _ = write!(text, ", groups of {x},{y},{z}");
    }
    for (name, bytes) in [
        ("local memory", u64::from(kernel.slm_size)),
        ("scratch memory of a thread", buffer_bytes(kernel, "scratch")),
        ("private memory of a thread", buffer_bytes(kernel, "global")),
    ] {
        if bytes > 0 {
            let _ = write!(text, ", {bytes} bytes of {name}");
        }
    }
    text.push_str(if kernel.barriers > 0 { ", barrier\n" } else { "\n" });
    for argument in &kernel.arguments {
        let (ty, size) = argument.type_and_size();
        let _ = match space(argument) {
            Some(space) => writeln!(text, "  {}: {space} {ty}", argument.name),
            None if size == 1 => writeln!(text, "  {}: {ty}, 1 byte", argument.name),
            None => writeln!(text, "  {}: {ty}, {size} bytes", argument.name),
        };
    }
}

fn document(kernel: &Kernel) -> Value {
    let arguments: Vec<_> = kernel
        .arguments
        .iter()
        .map(|argument| {
            let (ty, size) = argument.type_and_size();
            json!({ "name": argument.name, "type": ty, "bytes": size, "space": space(argument) })
        })
        .collect();
    json!({
        "name": kernel.name,
        "simd": kernel.simd,
        "registers": kernel.grf_count,
        "group_size": kernel.group_size,
        "local_memory": kernel.slm_size,
        "barriers": kernel.barriers,
        "scratch": buffer_bytes(kernel, "scratch"),
        "private": buffer_bytes(kernel, "global"),
        "arguments": arguments,
    })
}
