// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The program `arctic`: command line, sockets of `arctic serve`, decoders for dumps, conformance report.
//!
//! The library target exists for the program and for its tests; its items are not an interface. VMMs use the library
//! `arctic-gpu`.

mod commands;
mod control;
mod control_socket;
mod decode;
pub mod fidelity;
mod run_dir;
mod status_socket;
mod trace_socket;
mod unix_listener;

pub use commands::run;
