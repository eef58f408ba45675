// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Guest memory without the part that is accessed by messages to its client.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use vm_memory::VolatileSlice;

use crate::host::{Access, DmaFault, DmaView};

/// A view through which no message is sent. An access that would be one fails, and counts as unanswered: it is to be made again
/// by a thread that may wait for the client.
pub struct WithoutMessages {
    view: Arc<dyn DmaView>,
    refused: AtomicBool,
}

impl WithoutMessages {
    /// Accesses `view`.
    pub fn new(view: Arc<dyn DmaView>) -> WithoutMessages {
        WithoutMessages { view, refused: AtomicBool::new(false) }
    }

    fn refuse(&self, iova: u64) -> Result<(), DmaFault> {
        self.refused.store(true, Ordering::Relaxed);
        Err(DmaFault { iova })
    }
}

impl DmaView for WithoutMessages {
    fn slice(&self, iova: u64, len: usize, access: Access) -> Option<VolatileSlice<'_>> {
        self.view.slice(iova, len, access)
    }

    fn read_remote(&self, iova: u64, _: &mut [u8]) -> Result<(), DmaFault> {
        self.refuse(iova)
    }

    fn write_remote(&self, iova: u64, _: &[u8]) -> Result<(), DmaFault> {
        self.refuse(iova)
    }

    fn sections(&self) -> usize {
        self.view.sections()
    }

    fn unanswered(&self) -> bool {
        self.refused.load(Ordering::Relaxed) || self.view.unanswered()
    }
}
