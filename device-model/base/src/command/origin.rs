// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Origin of a command: user space or the driver, as far as the command streamer can distinguish them.

use serde::{Deserialize, Serialize};

/// The kind of batch that contains a command. Drivers start the batches of user space in the PPGTT, where they are not
/// privileged (V8-159); their own batches with pipeline commands, such as the default context state, are in the GGTT
/// (xe: xe_ring_ops.c, get_ppgtt_flag; i915: gen8_emit_bb_start). Drivers also have batches in the PPGTT for
/// migrations, which contain commands of the copy engine only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A batch in the PPGTT: of a context that user space made.
    User,
    /// The ring, a batch in the GGTT, or a batch of a restore: of the function's driver.
    Driver,
}

/// Number of [`Origin`]s.
pub const ORIGINS: usize = 2;

impl Origin {
    /// The origin of a command in a batch that is privileged or not.
    #[inline]
    pub fn new(privileged: bool) -> Self {
        if privileged { Origin::Driver } else { Origin::User }
    }

    /// Index in tables.
    #[inline]
    pub fn index(self) -> usize {
        self as usize
    }
}
