// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A reference VMM on KVM that embeds the card as a library.
//!
//! It uses the rust-vmm crates and implements what the card requires of a VMM: configuration space below a root port,
//! BAR relocation, memslots for mappable memory, ioeventfds for registers, an irqfd with an MSI route per
//! function, hot-plugged VFs. It boots Linux, and bare-metal programs for tests.
//!
//! ```no_run
//! use std::time::Duration;
//! use arctic_gpu::card_file;
//! use arctic_vmm::{Boot, CardConfig, Config, Exit, Transcript, Vm};
//!
//! let card = Some(CardConfig { profile: card_file::load("small")?.flex()?, vfs: 2 });
//! let said = Transcript::default();
//! let boot = Boot::Elf { elf: "guest.elf".into(), command_line: String::new() };
//! let config = Config { boot, memory: 64 << 20, cpus: 1, card, output: Box::new(said.clone()) };
//! let exit = Vm::new(config)?.run(Duration::from_secs(30))?;
//! assert_eq!(exit, Exit::Value(0), "{}", said.text());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod agent;
pub mod boot;
mod cpuid;
pub mod elf_guest;
mod error;
mod irq;
pub mod layout;
mod machine;
pub mod memory;
mod mmio;
mod pci;
pub mod ports;
mod vcpu;
mod vm;

pub use boot::{Boot, BootInfo};
pub use error::Error;
pub use vm::{CardConfig, Config, Exit, Running, Stopper, Transcript, Vm};
