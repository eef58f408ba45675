// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! OAR and OAC: counters of the context that runs on the render engine, or on the compute engine that OAG_OACONTROL selects
//! (V13-217; OA-003, OA-056).

use super::cec::BLOCKS;
use super::counters::{Common, Counters};
use super::flexible::FlexibleCounts;
use super::values::Values;
use super::work::KernelWork;

/// Number of A counters that OAR and OAC have: A0 to A35.
const COUNTERS: usize = 36;
/// Length in bytes of the counters in a context's image.
pub const SAVED_BYTES: usize = 8 * (COUNTERS + 2 * BLOCKS);

/// Number of registers of OAC that a context has: OAC_OACONTROL, OAC_OASTATUS and OAC_CTX_CONTROL_MSG.
pub const OAC_REGISTERS: usize = 3;

/// The counters of the context on an engine.
#[derive(Clone, Debug, Default)]
pub struct ContextCounters {
    values: Values,
    /// Counts of the card up to which the counters are computed.
    from: Common,
    /// They advance.
    counting: bool,
    /// The registers of OAC, of which each compute engine has its own, at the same offsets.
    pub oac: [u32; OAC_REGISTERS],
}

impl ContextCounters {
    /// Sets all to 0: another context. No other context's counts are visible in it.
    pub fn clear(&mut self) {
        *self = ContextCounters::default();
    }

    /// Returns whether the counters advance.
    pub fn counting(&self) -> bool {
        self.counting
    }

    /// Computes the counters up to those of the card, and lets them advance or stand from there on.
    pub fn settle(&mut self, now: &Counters, counting: bool) {
        if self.counting {
            self.values.add(0, now.common.busy.wrapping_sub(self.from.busy));
            let ([reads, writes], [reads_before, writes_before]) = (now.common.shared, self.from.shared);
            let (reads, writes) = (reads.wrapping_sub(reads_before), writes.wrapping_sub(writes_before));
            self.values.count_shared_memory(reads, writes);
            let Values { b, c, .. } = &mut self.values;
            let signals = b.iter_mut().zip(now.common.b).zip(self.from.b);
            for ((value, new), old) in signals.chain(c.iter_mut().zip(now.common.c).zip(self.from.c)) {
                *value = value.wrapping_add(new.wrapping_sub(old));
            }
        }
        self.from = now.common;
        self.counting = counting;
    }

    /// Counts the work of the context's kernels. Shared local memory is counted for all contexts together.
    pub fn count_kernels(&mut self, work: &KernelWork, flexible: &FlexibleCounts) {
        if self.counting {
            self.values.count_kernels(work, flexible, false);
        }
    }

    /// The counters.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The counters as the context's image has them.
    pub fn saved(&self) -> [u8; SAVED_BYTES] {
        let mut bytes = [0; SAVED_BYTES];
        let Values { b, c, .. } = &self.values;
        let all = self.values.a(0, 36).chain(b.iter().copied()).chain(c.iter().copied());
        for (raw, value) in bytes.chunks_exact_mut(8).zip(all) {
            raw.copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    /// Takes the counters from a context's image. Any values are valid.
    pub fn restore(&mut self, bytes: &[u8; SAVED_BYTES]) {
        let (values, _) = bytes.as_chunks::<8>();
        let mut values = values.iter().map(|raw| u64::from_le_bytes(*raw));
        self.values.set_all(&mut values, COUNTERS);
    }
}
