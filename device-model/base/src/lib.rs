// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What GPUs of every family share: the interfaces to the host, locks, tracing, the report of unmodelled accesses, saved
//! state, rows of command tables and their disassembler, parts of register tables, memory behind translations, surfaces, and the threads that run a GPU.
//!
//! The crate knows no family. `arctic-xehpg` has the cards of Xe-HPG; `arctic-device-model` re-exports both.
#![forbid(unsafe_code)]

pub mod blitter;
pub mod command;
pub mod decode;
pub mod event_count;
pub mod gpu;
pub mod host;
pub mod inspect;
pub mod interrupts;
pub mod limits;
pub mod memory;
pub mod priority_mutex;
pub mod registers;
pub mod report;
pub mod state;
pub mod status;
pub mod sync;
pub mod trace;
pub mod wakeup;
pub mod workers;
