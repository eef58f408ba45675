// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Runs the corpora of all fuzz targets, and random inputs, in this process, and writes a digest of the memory,
//! registers and outcomes that the commands of the command streamer left to the file in the first argument.
//!
//! An example, because Cargo builds tests with unwinding whatever the profile says. `cargo xtask long profiles` runs it
//! with overflow checks and unwinding, and without both; the digests must be equal.

use std::hash::{DefaultHasher, Hash, Hasher};

use arctic_test_support::harness::{
    card_file, command_streamer, context_images, functions, gen6_bars, gen6_streamer, guc_messages, vf_blob, vfio_user,
    walkers,
};
use arctic_test_support::replay;

/// A fuzz target: its name, number and maximum length of the random inputs, and its harness.
type Target = (&'static str, u64, u64, fn(&[u8]));

const TARGETS: [Target; 9] = [
    ("card_file", 500, 300, card_file::run),
    ("context_images", 500, 200, context_images::run),
    ("functions", 100, 600, functions::run),
    ("gen6_bars", 100, 600, gen6_bars::run),
    ("gen6_streamer", 500, 600, gen6_streamer::run),
    ("guc_messages", 200, 1000, guc_messages::run),
    ("vf_blob", 100, 200, vf_blob::run),
    ("vfio_user", 500, 600, vfio_user::run),
    ("walkers", 500, 400, walkers::run),
];

fn main() -> std::io::Result<()> {
    for (name, inputs, longest, run) in TARGETS {
        replay::corpus(name, run);
        replay::random(inputs, longest, run);
        println!("{name}: ok");
    }
    let mut digest = DefaultHasher::new();
    let mut inputs: Vec<_> = replay::inputs("command_streamer").into_iter().map(|(_, input)| input).collect();
    inputs.extend(replay::random_inputs(2000, 400));
    for input in &inputs {
        let Some(state) = command_streamer::outcome(input) else { continue };
        format!("{:?}", state.stop).hash(&mut digest);
        let memory = state.memory;
        (memory.local, memory.ram, memory.remote, memory.foreign, memory.entries).hash(&mut digest);
        (state.registers, state.image).hash(&mut digest);
    }
    let digest = format!("command_streamer: {} inputs, digest {:#018x}", inputs.len(), digest.finish());
    println!("{digest}");
    match std::env::args_os().nth(1) {
        Some(path) => std::fs::write(path, digest),
        None => Ok(()),
    }
}
