// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The program `arctic`: command line, sockets of `arctic serve`, decoders for dumps, conformance report.
//!
//! The library target exists for the program and for its tests; its items are not an interface. VMMs use the library
//! `arctic-gpu`.

#[cfg(test)]
mod any_file;
mod capture;
mod commands;
mod connections;
mod decode;
mod metrics;
mod operator;
mod perfetto;
mod remedy;
mod run_dir;

pub use commands::run;
