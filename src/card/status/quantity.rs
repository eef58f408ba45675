// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The numbers of a function's state, with what they mean: the one list for each display of the card.

use arctic_device_model::gpu::KernelCounts;

use super::FunctionStatus;

/// A number in the state of a function.
pub struct Quantity {
    /// Name, without its unit.
    pub name: &'static str,
    /// What it is.
    pub help: &'static str,
    /// Its unit; `None` for a plain number.
    pub unit: Option<Unit>,
    /// How it changes.
    pub kind: Kind,
    /// The number; `None` if the card's family does not report it.
    pub value: fn(&FunctionStatus) -> Option<u64>,
}

/// Unit of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
}

/// How a quantity changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only increases, since power-on or since the firmware was started.
    Counter,
    /// It is a current value.
    Gauge,
}

const fn counter(name: &'static str, help: &'static str, value: fn(&FunctionStatus) -> Option<u64>) -> Quantity {
    Quantity { name, help, unit: None, kind: Kind::Counter, value }
}

const fn gauge(
    name: &'static str,
    help: &'static str,
    unit: Option<Unit>,
    value: fn(&FunctionStatus) -> Option<u64>,
) -> Quantity {
    Quantity { name, help, unit, kind: Kind::Gauge, value }
}

/// A count of kernels.
fn kernels(of: &FunctionStatus, count: impl Fn(KernelCounts) -> u64) -> Option<u64> {
    of.gpu.kernels.map(count)
}

/// The quantities.
pub const QUANTITIES: [Quantity; 14] = [
    gauge("contexts", "Registered contexts of the function", None, |of| of.gpu.contexts.map(u64::from)),
    gauge("local_memory_quota", "Local memory that the function may use", Some(Unit::Bytes), |of| {
        of.gpu.quota.as_ref().map(|quota| quota.local_memory)
    }),
    gauge("ggtt_quota", "GGTT addresses that the function may use", Some(Unit::Bytes), |of| {
        of.gpu.quota.as_ref().map(|quota| quota.ggtt_size)
    }),
    gauge("host_memory", "Host memory allocated for the BARs of the function", Some(Unit::Bytes), |of| {
        Some(of.memory_bytes)
    }),
    counter("interrupts", "Interrupts that the function has sent", |of| Some(of.interrupts)),
    counter("resets", "Resets of the function, by FLR or by its machine", |of| Some(of.resets)),
    counter("messages", "Requests of the function's driver to the firmware, through CT buffers", |of| of.gpu.messages),
    counter("engine_resets", "Engine resets that contexts of the function have caused", |of| of.gpu.engine_resets),
    counter("translation_faults", "Accesses of the function's contexts without a valid translation", |of| {
        of.gpu.cat_errors
    }),
    counter(
        "skipped_contexts",
        "Contexts that have had a command of user space skipped, so that results are invalid",
        |of| of.gpu.skipped_contexts,
    ),
    counter("walkers", "Walkers (dispatches of a kernel) that have ended", |of| kernels(of, |counts| counts.walkers)),
    counter("thread_groups", "Thread groups of kernels that have ended", |of| kernels(of, |counts| counts.groups)),
    counter("eu_instructions", "Instructions that kernels have executed", |of| {
        kernels(of, |counts| counts.instructions)
    }),
    counter(
        "kernel_faults",
        "Threads that ended at an invalid instruction, and accesses without a valid translation",
        |of| kernels(of, |counts| counts.faults),
    ),
];
