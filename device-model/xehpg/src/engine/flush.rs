// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! MI_FLUSH_DW, PIPE_CONTROL and L3_CONTROL. Execution is in order, so only the post-sync operation, the TLB invalidation and the
//! notification need an implementation (V8-127, V8-137).

use super::streamer::{Flow, Streamer};
use super::{reg, word};
use crate::command::Requester;
use crate::command::gfx::fields as control;
use crate::command::mi::fields;
use crate::interrupts::FLUSH_COMPLETE;
use crate::memory::{Fault, Space};
use crate::trace::EventKind;
use arctic_base::command::Addressing;

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

/// Post-sync operations of both commands.
const WRITE_IMMEDIATE: u32 = 1;
const WRITE_DEPTH_COUNT: u32 = 2;
const WRITE_TIMESTAMP: u32 = 3;
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

    fn invalidate_and_notify(&mut self, invalidate: bool, notify: bool) -> Result<(), Fault> {
        if invalidate {
            self.trace_event(|_| EventKind::TlbInvalidation { by: "a command".into(), all: false });
            self.gam.flush_tlb();
        }
        if notify { self.signal(FLUSH_COMPLETE) } else { Ok(()) }
    }

    /// MI_FLUSH_DW. A command of four dwords writes a dword, a command of five dwords writes a qword.
    pub(super) fn flush_dw(&mut self, words: &[u32]) -> Result<Flow, Fault> {
        let (header, low) = (word(words, 0), word(words, 1));
        let at = (u64::from(word(words, 2)) << 32 | u64::from(low)) & 0xffff_ffff_fff8;
        let target = Target::new(at, fields::FLUSH_GLOBAL.is_set_in(low), fields::FLUSH_INDEX.is_set_in(header));
        match fields::FLUSH_OPERATION.get_in(header) {
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
        self.invalidate_and_notify(fields::FLUSH_TLB.is_set_in(header), fields::FLUSH_NOTIFY.is_set_in(header))?;
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
        if control::CONTROL_PARTITION.is_set_in(word(words, 0)) {
            at = self.partitioned(at) & !7;
        }
        let immediate = u64::from(word(words, 5)) << 32 | u64::from(word(words, 4));
        let operation = control::CONTROL_OPERATION.get_in(flags);
        if control::CONTROL_MMIO.is_set_in(flags) {
            let offset = self.mmio(word(words, 2), Addressing::default());
            self.write_register(offset, word(words, 4));
        } else if operation != 0 {
            let target =
                Target::new(at, control::CONTROL_GLOBAL.is_set_in(flags), control::CONTROL_INDEX.is_set_in(flags));
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
        self.invalidate_and_notify(control::CONTROL_TLB.is_set_in(flags), control::CONTROL_NOTIFY.is_set_in(flags))?;
        Ok(Flow::Next)
    }
    /// L3_CONTROL (EU-015). Memory is coherent, so only the post-sync operation needs an implementation.
    pub(super) fn l3_control(&mut self, words: &[u32]) -> Result<Flow, Fault> {
        let header = word(words, 0);
        let at = (u64::from(word(words, 2)) << 32 | u64::from(word(words, 1))) & 0xffff_ffff_fff8;
        let immediate = u64::from(word(words, 4)) << 32 | u64::from(word(words, 3));
        if control::L3_OPERATION.is_set_in(header)
            && let Some((space, at)) = self.target(Target::new(at, control::L3_GLOBAL.is_set_in(header), false))
        {
            self.store64(space, at, immediate)?;
        }
        Ok(Flow::Next)
    }
}
