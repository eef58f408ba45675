// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Accesses of hosts to the doorbell block: its registers and the windows of the functions.

use crate::doorbell::{ACK, DoorbellRegister, NACK, Page, Ring, Route};
use crate::gt::{Gt, SideEffect};
use crate::host::Function;
use crate::interrupts::DOORBELL_RANG;
use crate::registers::{Access, Unit, XeHpg};
use crate::trace::EventKind;

impl Unit<XeHpg, Gt> for DoorbellRegister {
    type Effect = SideEffect;

    fn read(&self, gt: &Gt, access: Access<'_>) -> u32 {
        gt.doorbells.read(*self, access.ordinal())
    }

    fn write(&self, gt: &Gt, access: Access<'_>, value: u32) -> Option<SideEffect> {
        gt.doorbells.write(*self, access.ordinal(), value).then_some(SideEffect::ServeDoorbells)
    }
}

/// Handles an access to `page` of the window of `function`, and raises the PF's interrupt if rings are routed to it. The
/// caller must request a GuC step if the result is a message to the GuC. Takes no lock.
pub fn ring(gt: &Gt, function: Function, page: Page) -> Ring {
    let ring = gt.doorbells.ring(function, page);
    gt.trace.record(function, || EventKind::Doorbell {
        page: page.offset(),
        doorbell: gt.doorbells.watching(function, page),
        notifies: matches!(ring, Ring::Message { .. }),
    });
    if let Ring::Message { to: Route::Host, .. } = ring {
        gt.interrupts.raise_guc(DOORBELL_RANG);
    }
    ring
}

/// Fills `data` with what a read of a page at `offset` of GTTMMADR returns that rang or, if `missed`, did not: each
/// dword says which.
pub fn fill(missed: bool, offset: u64, data: &mut [u8]) {
    let dword = if missed { NACK } else { ACK }.to_le_bytes();
    for (from, to) in dword.iter().cycle().skip((offset % 4) as usize).zip(data) {
        *to = *from;
    }
}
