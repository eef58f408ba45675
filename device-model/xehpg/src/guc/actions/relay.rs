// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Messages between PF and VFs that the GuC forwards unchanged (contract C.4; xe: abi/guc_relay_communication_abi.h).

use crate::guc::functions::client::MOST_WAITING;
use crate::guc::messages::hxg::{Answer, Error, MAX_DWORDS, Outgoing, Reply, Request};
use crate::guc::messages::service;
use crate::guc::scheduler::GucCtx;
use crate::guc::state::GucState;
use crate::host::Function;

/// G2H to the PF: message from a VF.
const RELAY_FROM_VF: u16 = 0x5100;
/// G2H to a VF: message from the PF.
const RELAY_FROM_PF: u16 = 0x5102;
/// Maximum length of a forwarded message. In the event to the PF, three dwords precede it.
const LONGEST: usize = MAX_DWORDS - 3;

/// VF2GUC_RELAY_TO_PF: message id, message. If the card acts as the PF, it replies directly.
pub fn to_pf(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let [id, message @ ..] = request.payload else { return Err(Error::InvalidSize) };
    let vf = ctx.function;
    if message.is_empty() || message.len() > LONGEST {
        return Err(Error::InvalidSize);
    }
    if guc.builtin_pf {
        if let Some(answer) = service::answer(ctx.gt, message) {
            ctx.send_message(vf, Outgoing::relay(RELAY_FROM_PF, &[*id], &answer));
        }
        return Ok(Answer::default());
    }
    receives(guc, Function::PF)?;
    ctx.send_message(Function::PF, Outgoing::relay(RELAY_FROM_VF, &[u32::from(vf.number()), *id], message));
    Ok(Answer::default())
}

/// PF2GUC_RELAY_TO_VF: VF number, message id, message.
pub fn to_vf(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let [vf, id, message @ ..] = request.payload else { return Err(Error::InvalidSize) };
    if message.is_empty() || message.len() > LONGEST {
        return Err(Error::InvalidSize);
    }
    let vf = Function::vf(*vf).ok_or(Error::InvalidVf)?;
    receives(guc, vf)?;
    ctx.send_message(vf, Outgoing::relay(RELAY_FROM_PF, &[*id], message));
    Ok(Answer::default())
}

/// Fails if `function` has no CT buffer or does not read from it, which bounds the queue of messages to it.
fn receives(guc: &GucState, function: Function) -> Result<(), Error> {
    let channel = guc.scheduler.functions[function].client.channel.as_ref();
    match channel {
        None => Err(Error::CtbNotRegistered),
        Some(channel) if channel.waiting() >= MOST_WAITING => Err(Error::CtbFull),
        Some(_) => Ok(()),
    }
}
