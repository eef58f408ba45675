// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Contexts: images, rings, batches, and their submission.

use arctic_guc_driver::GucDriver;
use arctic_guc_driver::actions::*;

use super::{Driver, LAYOUT, MEMIRQ};
use crate::context;
use crate::machine::transport::Machine;
use crate::mi::{At, Global};

/// The GuC's class number of copy engines.
pub const COPY: u32 = 3;
/// The GuC's class number of the render engine.
pub const RENDER: u32 = 0;

impl Driver {
    /// Returns the offset of a context's image in the driver's memory.
    pub fn image(id: u32) -> u64 {
        LAYOUT.image(id, 0)
    }

    /// Returns the offset of a context's ring in the driver's memory.
    pub fn ring(id: u32) -> u64 {
        LAYOUT.ring(id, 0)
    }

    /// Returns the offset of a context's batch in the driver's memory.
    pub fn batch(id: u32) -> u64 {
        LAYOUT.batch(id)
    }

    /// Returns the GGTT address of the driver's memory at `offset`.
    pub fn global(&self, offset: u64) -> At {
        Global(self.state.base + offset)
    }

    /// Contract K.1: writes a context's image with page tables at `root`, and its ring with `commands`.
    fn write_context(&mut self, machine: &mut dyn Machine, id: u32, root: u64, commands: &[u32]) {
        self.state.root = root;
        self.with(machine).write_context(id, 0, commands);
        if self.function != 0 {
            // xe: set_memory_based_intr (contract C.3).
            let page = (self.state.base + MEMIRQ) as u32;
            let words = [0x14c8_0002, 0xa8, page + 0x440, 0, 0, 0x1108_1003, 0xac, page, 0xa4, page + 0x400];
            self.poke(machine, Self::image(id) + context::IMAGE + 0x50 * 4, &words);
            self.poke(machine, MEMIRQ + 0x440, &[1]);
        }
    }

    /// Sets RING_TAIL in a context's image: `bytes` is the offset in the ring after the last command.
    pub fn set_ring_tail(&mut self, machine: &mut dyn Machine, id: u32, bytes: u32) {
        self.with(machine).set_ring_tail(id, bytes);
    }

    /// Registers a context that executes `commands`, enables it, and waits for SCHED_CONTEXT_MODE_DONE.
    pub fn submit(&mut self, machine: &mut dyn Machine, id: u32, class: u32, commands: &[u32]) {
        self.submit_process(machine, id, class, 0, commands);
    }

    /// Same as [`Driver::submit`], with PPGTT page tables at `root`.
    pub fn submit_process(&mut self, machine: &mut dyn Machine, id: u32, class: u32, root: u64, commands: &[u32]) {
        self.write_context(machine, id, root, commands);
        let mut session = self.with(machine);
        session.register(id, class, 1);
        // Priority normal, quantum 1 ms, preemption timeout 20 ms.
        session.request(UPDATE_CONTEXT_POLICIES, &policies(id, 2, 1000, 20_000));
        session.request(SCHED_CONTEXT_MODE_SET, &[id, 1]);
        self.wait_event(machine, &[SCHED_CONTEXT_MODE_DONE, id, 1]);
    }

    /// Disables a context; does not wait for SCHED_CONTEXT_MODE_DONE.
    pub fn disable(&mut self, machine: &mut dyn Machine, id: u32) {
        self.request(machine, SCHED_CONTEXT_MODE_SET, &[id, 0]);
    }

    /// Waits until the GuC has disabled a context.
    pub fn wait_disabled(&mut self, machine: &mut dyn Machine, id: u32) {
        self.wait_event(machine, &[SCHED_CONTEXT_MODE_DONE, id, 0]);
    }

    /// Returns the source byte and the status byte of an event from the page of memory-based interrupts.
    pub fn memirq(&self, machine: &mut dyn Machine, source: u64, event: u64) -> (u8, u8) {
        let mut byte = |offset| {
            let mut data = [0];
            machine.read_ram(self.function, self.address(MEMIRQ + offset), &mut data);
            data[0]
        };
        (byte(0x400 + source), byte(source * 16 + event))
    }
}
