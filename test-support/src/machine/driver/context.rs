// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Contexts: images, rings, batches, and their submission.

use super::{BATCHES, Driver, IMAGES, MEMIRQ, RINGS};
use crate::context::{self, Context};
use crate::machine::transport::Machine;
use crate::mi::{self, At, Global};

/// The GuC's class number of copy engines.
pub const COPY: u32 = 3;

impl Driver {
    /// Returns the offset of a context's image in the driver's memory.
    pub fn image(id: u32) -> u64 {
        IMAGES + u64::from(id) * 0x4000
    }

    /// Returns the offset of a context's ring in the driver's memory.
    pub fn ring(id: u32) -> u64 {
        RINGS + u64::from(id) * 0x1000
    }

    /// Returns the offset of a context's batch in the driver's memory.
    pub fn batch(id: u32) -> u64 {
        BATCHES + u64::from(id) * 0x1000
    }

    /// Returns the GGTT address of the driver's memory at `offset`.
    pub fn global(&self, offset: u64) -> At {
        Global(self.base + offset)
    }

    /// Contract K.1: writes a context's image with page tables at `root`, and its ring with `commands`.
    fn write_context(&self, machine: &mut dyn Machine, id: u32, root: u64, commands: &[u32]) {
        let image = Self::image(id) + context::IMAGE;
        let mut words = Context::of(self.base + Self::ring(id), commands, root).image();
        words.truncate(0x34);
        words.resize(0x60, 0);
        if self.function != 0 {
            // xe: set_memory_based_intr (contract C.3).
            let page = (self.base + MEMIRQ) as u32;
            words[0x50..0x54].copy_from_slice(&[0x14c8_0002, 0xa8, page + 0x440, 0]);
            words[0x55..0x5a].copy_from_slice(&[0x1108_1003, 0xac, page, 0xa4, page + 0x400]);
            self.poke(machine, MEMIRQ + 0x440, &[1]);
        }
        words[0x5a] = mi::BATCH_BUFFER_END | 1;
        self.poke(machine, image, &words);
        self.poke(machine, Self::ring(id), &mi::padded(commands));
    }

    /// Registers a context that executes `commands`, enables it, and waits for SCHED_CONTEXT_MODE_DONE.
    pub fn submit(&mut self, machine: &mut dyn Machine, id: u32, class: u32, commands: &[u32]) {
        self.submit_process(machine, id, class, 0, commands);
    }

    /// Same as [`Driver::submit`], with PPGTT page tables at `root`.
    pub fn submit_process(&mut self, machine: &mut dyn Machine, id: u32, class: u32, root: u64, commands: &[u32]) {
        self.write_context(machine, id, root, commands);
        let descriptor = context::descriptor(self.base + Self::image(id));
        self.tell(machine, 0x4502, &context::registration(id, class, 1, descriptor));
        // Priority normal, quantum 1 ms, preemption timeout 20 ms.
        self.tell(machine, 0x100b, &[id, 0x2003_0001, 2, 0x2001_0001, 1000, 0x2002_0001, 20_000]);
        self.tell(machine, 0x1001, &[id, 1]);
        self.wait_event(machine, &[0x9000_1002, id, 1]);
    }

    /// Disables a context; does not wait for SCHED_CONTEXT_MODE_DONE.
    pub fn disable(&mut self, machine: &mut dyn Machine, id: u32) {
        self.tell(machine, 0x1001, &[id, 0]);
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
