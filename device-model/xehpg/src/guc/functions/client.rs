// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What a function's driver has set up in the GuC: CT buffers, interrupt and opt-ins; the function's state and request
//! counters.

pub use arctic_base::status::FunctionState as State;
use serde::Serialize;

use crate::generation::Version;
use crate::guc::messages::ctb::{Channel, Location};
use crate::interrupts::memirq;
use crate::memory::Gam;

/// Maximum number of messages queued for a function that does not empty its CT buffer. Beyond this, relay messages to
/// it are rejected.
pub const MOST_WAITING: usize = 64;

/// What the driver of a VF has to do after the VF was restored by its PF driver, or with another GGTT range: it adapts the
/// addresses in its memory between RESFIX_START and RESFIX_DONE (xe: xe_sriov_vf.c).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FixUp {
    /// Nothing.
    #[default]
    Done,
    /// It has not begun.
    Due,
    /// It has begun, with this marker, which is not 0.
    Begun(u16),
}

/// Bit of SW_INT_0 in the GuC's vector, which tells a VF's driver that the VF was moved (xe: GUC_INTR_SW_INT_0).
const MIGRATED_BIT: u8 = 0;
/// Bit of GUC2HOST in the GuC's vector (V13-276, contract C.3).
const GUC2HOST_BIT: u8 = 15;

/// Request counters by result, for monitoring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Requests executed.
    pub done: u64,
    /// Requests that failed with an error reply.
    pub failed: u64,
    /// Requests for unknown actions.
    pub unknown: u64,
    /// Messages that are not valid requests.
    pub malformed: u64,
}

/// Addresses of the GuC's memory-based interrupt (SELF_CFG keys 0x0900 and 0x0901); GGTT addresses, 0 = not configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryInterrupt {
    /// The GuC's byte in the source page.
    pub source: u64,
    /// The GuC's sixteen status bytes.
    pub status: u64,
}

impl MemoryInterrupt {
    /// Returns whether both addresses are set.
    pub fn configured(self) -> bool {
        self.source != 0 && self.status != 0
    }

    /// Writes GUC2HOST: first the status, then the source, so that the status is visible when the source is (contract
    /// C.3). Returns whether both writes succeeded.
    pub fn write(self, gam: &mut Gam<'_>) -> bool {
        memirq::write(gam, self.status, self.source, GUC2HOST_BIT).is_ok()
    }

    /// Writes SW_INT_0, likewise.
    pub fn write_migrated(self, gam: &mut Gam<'_>) -> bool {
        memirq::write(gam, self.status, self.source, MIGRATED_BIT).is_ok()
    }
}

/// What the driver of one function has set up in the GuC, apart from contexts and doorbells. Dropped by VF_RESET and
/// FLR.
#[derive(Default)]
pub struct Client {
    /// Configured locations of the CT buffers: host to GuC, GuC to host.
    pub rings: (Location, Location),
    /// The CT buffers in use.
    pub channel: Option<Channel>,
    /// The memory-based interrupt.
    pub interrupt: MemoryInterrupt,
    /// Sequence numbers of TLB invalidations without a response yet.
    pub invalidations: Vec<u32>,
    /// Interface version that was reported to the function (VFs only).
    pub version: Option<Version>,
    /// CAT errors are reported with their type (opt-in).
    pub cat_error_type: bool,
}
