//! Messages between PF and VFs that the GuC only carries (contract C.4; xe: abi/guc_relay_communication_abi.h).

use super::client::MOST_WAITING;
use super::hxg::{Error, MAX_DWORDS, Outgoing, Reply};
use super::kernel::Kernel;
use super::scheduler::Turn;
use super::service;
use crate::world::Function;

/// G2H to the PF: a VF's message.
const RELAY_FROM_VF: u16 = 0x5100;
/// G2H to a VF: the PF's message.
const RELAY_FROM_PF: u16 = 0x5102;
/// Longest message that is carried: the PF's event has three dwords of its own.
const LONGEST: usize = MAX_DWORDS - 3;

/// VF2GUC_RELAY_TO_PF: id of the message, message. Where the card itself plays the PF it answers at once.
pub fn to_pf(kernel: &mut Kernel, turn: &mut Turn<'_>, m: &[u32]) -> Reply {
    let [id, message @ ..] = m else { return Err(Error::InvalidSize) };
    let vf = turn.function;
    if message.is_empty() || message.len() > LONGEST {
        return Err(Error::InvalidSize);
    }
    if kernel.plays_pf {
        if let Some(answer) = service::answer(turn.gt, message) {
            turn.tell(vf, Outgoing::relay(RELAY_FROM_PF, &[*id], &answer));
        }
        return Ok(0);
    }
    receives(kernel, Function::PF)?;
    turn.tell(Function::PF, Outgoing::relay(RELAY_FROM_VF, &[u32::from(vf.0), *id], message));
    Ok(0)
}

/// PF2GUC_RELAY_TO_VF: number of the VF, id of the message, message.
pub fn to_vf(kernel: &mut Kernel, turn: &mut Turn<'_>, m: &[u32]) -> Reply {
    let [vf, id, message @ ..] = m else { return Err(Error::InvalidSize) };
    if message.is_empty() || message.len() > LONGEST {
        return Err(Error::InvalidSize);
    }
    let vf = Function::vf(*vf).ok_or(Error::InvalidVf)?;
    receives(kernel, vf)?;
    turn.tell(vf, Outgoing::relay(RELAY_FROM_PF, &[*id], message));
    Ok(0)
}

/// Whether `function` has a ring, and takes messages out of it: nobody's messages may pile up.
fn receives(kernel: &Kernel, function: Function) -> Result<(), Error> {
    let channel = kernel.clients.get(function).and_then(|client| client.channel.as_ref());
    match channel {
        None => Err(Error::CtbNotRegistered),
        Some(channel) if channel.waiting() >= MOST_WAITING => Err(Error::CtbFull),
        Some(_) => Ok(()),
    }
}
