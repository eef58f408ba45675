// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! MI_FLUSH_DW and PIPE_CONTROL. Execution is in order, so only the post-sync operation, the TLB invalidation and the
//! notification need an implementation (V8-127, V8-137).

use super::streamer::{Flow, Streamer};
use super::{reg, word};
use crate::command::Requester;
use crate::command::gfx::fields as control;
use crate::command::mi::fields;
use crate::interrupts::FLUSH_COMPLETE;
use crate::memory::{Fault, Space};

/// Target of a post-sync operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// A global address.
    Global(u64),
    /// An address in the context's address space.
    Process(u64),
    /// An offset in the context's status page, the PPHWSP.
    OwnPage(u64),
    /// An offset in the engine's global status page (HWS_PGA).
    GlobalPage(u64),
}

impl Target {
    /// Returns the target for an address and its "global" and "index" bits.
    fn new(at: u64, global: bool, index: bool) -> Target {
        match (index, global) {
            (false, false) => Target::Process(at),
            (false, true) => Target::Global(at),
            (true, false) => Target::OwnPage(at & INDEX),
            (true, true) => Target::GlobalPage(at & INDEX),
        }
    }

    /// Returns whether `requester` may use this target in a post-sync operation (V13-060, V13-062, V13-076).
    fn permitted(self, requester: Requester) -> bool {
        match self {
            Target::Process(_) => true,
            Target::Global(_) | Target::OwnPage(_) => requester.privileged(),
            Target::GlobalPage(_) => requester == Requester::PfKernel,
        }
    }
}

/// Valid bits of an offset in a status page.
const INDEX: u64 = 0xff8;

/// Post-sync operation, bits 15:14 of both commands.
fn post_sync(flags: u32) -> u32 {
    flags >> 14 & 3
}

const WRITE_IMMEDIATE: u32 = 1;
const WRITE_DEPTH_COUNT: u32 = 2;
const WRITE_TIMESTAMP: u32 = 3;
/// Bit 18 of both commands: invalidate the engine's TLB.
const TLB_INVALIDATE: u32 = fields::FLUSH_TLB.mask();
/// Bit 21 of both commands: the address is an offset in a status page.
const STORE_INDEX: u32 = fields::FLUSH_INDEX.mask();
/// Bit 8 of both commands: raise an interrupt on completion.
const NOTIFY: u32 = fields::FLUSH_NOTIFY.mask();
/// MI_FLUSH_DW, address bit 2: the address is global.
const FLUSH_GGTT: u32 = fields::FLUSH_GLOBAL.mask();
/// PIPE_CONTROL, flags bit 24: the address is global.
const CONTROL_GGTT: u32 = control::CONTROL_GLOBAL.mask();
/// PIPE_CONTROL, flags bit 23: the immediate is written to a register.
const CONTROL_MMIO: u32 = control::CONTROL_MMIO.mask();
/// PIPE_CONTROL, header bit 14: the workload partition's offset is added to the address.
const CONTROL_PARTITION: u32 = control::CONTROL_PARTITION.mask();
/// Valid bits of a timestamp written by a post-sync operation: 36 bits (contract E.7).
const TIMESTAMP_BITS: u64 = 0xf_ffff_ffff;

impl Streamer<'_> {
    /// Returns the address of a post-sync write, or `None` if it is denied to the requester. The flush is executed in
    /// both cases (T6; trap 9 of V13).
    #[allow(clippy::arithmetic_side_effects, reason = "a page has a 32-bit address, an offset 12 bits")]
    fn target(&mut self, target: Target) -> Option<(Space, u64)> {
        let requester = self.requester();
        if !target.permitted(requester) {
            self.refuse(requester);
            return None;
        }
        Some(match target {
            Target::Global(address) => (Space::Ggtt, address),
            Target::Process(address) => (self.space(false), address),
            Target::OwnPage(offset) => (Space::Ggtt, self.running.lrc.pphwsp + offset),
            Target::GlobalPage(offset) => (Space::Ggtt, self.global_page() + offset),
        })
    }

    /// Returns the address of the engine's global status page.
    pub(super) fn global_page(&self) -> u64 {
        u64::from(self.registers.get(reg::HWS_PGA) & !0xfff)
    }

    fn invalidate_and_notify(&mut self, flags: u32) -> Result<(), Fault> {
        if flags & TLB_INVALIDATE != 0 {
            self.gam.flush_tlb();
        }
        if flags & NOTIFY != 0 { self.signal(FLUSH_COMPLETE) } else { Ok(()) }
    }

    /// MI_FLUSH_DW. A command of four dwords writes a dword, a command of five dwords writes a qword.
    pub(super) fn flush_dw(&mut self, words: &[u32]) -> Result<Flow, Fault> {
        let (header, low) = (word(words, 0), word(words, 1));
        let at = (u64::from(word(words, 2)) << 32 | u64::from(low)) & 0xffff_ffff_fff8;
        let target = Target::new(at, low & FLUSH_GGTT != 0, header & STORE_INDEX != 0);
        match post_sync(header) {
            WRITE_IMMEDIATE => {
                if let Some((space, at)) = self.target(target) {
                    match words {
                        [_, _, _] => self.store(space, at, 0)?,
                        [_, _, _, value] => self.store(space, at, *value)?,
                        _ => self.store64(space, at, u64::from(word(words, 4)) << 32 | u64::from(word(words, 3)))?,
                    }
                }
            }
            WRITE_TIMESTAMP => {
                if let Some((space, at)) = self.target(target) {
                    self.store_timestamp(space, at)?;
                }
            }
            _ => {}
        }
        self.invalidate_and_notify(header)?;
        Ok(Flow::Next)
    }

    fn store_timestamp(&mut self, space: Space, at: u64) -> Result<(), Fault> {
        self.loops().clock_read();
        let now = self.gt.timestamp() & TIMESTAMP_BITS;
        self.store64(space, at, now)
    }

    /// PIPE_CONTROL. Post-sync writes always have eight bytes, except register writes.
    pub(super) fn pipe_control(&mut self, words: &[u32]) -> Result<Flow, Fault> {
        let flags = word(words, 1);
        let mut at = (u64::from(word(words, 3)) << 32 | u64::from(word(words, 2))) & 0xffff_ffff_fff8;
        if word(words, 0) & CONTROL_PARTITION != 0 {
            at = self.partitioned(at) & !7;
        }
        let immediate = u64::from(word(words, 5)) << 32 | u64::from(word(words, 4));
        let operation = post_sync(flags);
        if flags & CONTROL_MMIO != 0 {
            let offset = self.mmio(word(words, 2), false, false);
            self.write_register(offset, word(words, 4));
        } else if operation != 0 {
            let target = Target::new(at, flags & CONTROL_GGTT != 0, flags & STORE_INDEX != 0);
            if let Some((space, at)) = self.target(target) {
                match operation {
                    WRITE_IMMEDIATE => self.store64(space, at, immediate)?,
                    WRITE_DEPTH_COUNT => {
                        self.counters.depth_counts = self.counters.depth_counts.saturating_add(1);
                        self.store64(space, at, 0)?;
                    }
                    _ => self.store_timestamp(space, at)?,
                }
            }
        }
        self.invalidate_and_notify(flags)?;
        Ok(Flow::Next)
    }
}
