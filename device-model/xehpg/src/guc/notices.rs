// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What the GuC tells the PF driver about a VF (xe: abi/guc_actions_sriov_abi.h).

use crate::guc::messages::hxg::Outgoing;
use crate::guc::scheduler::GucCtx;
use crate::host::Function;

/// GUC2PF_VF_STATE_NOTIFY.
const VF_STATE_NOTIFY: u16 = 0x5106;

/// Events.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(super) enum Notice {
    Reset = 1,
    ResetDone = 2,
    PauseDone = 3,
    FixUpDone = 4,
}

/// Sends an event of a VF to the PF driver.
pub(super) fn send(ctx: &mut GucCtx<'_>, vf: Function, notice: Notice) {
    ctx.send_message(Function::PF, Outgoing::event(VF_STATE_NOTIFY, &[u32::from(vf.number()), notice as u32]));
}
