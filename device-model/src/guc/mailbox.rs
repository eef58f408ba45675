//! The mailbox: requests through VF_SW_FLAG registers, answered before the doorbell's access completes (contract B.6).

use crate::gt::Gt;
use crate::memory::Space;
use crate::world::Function;

use super::ctb::{Channel, Location};
use super::firmware;
use super::hwconfig;
use super::hxg::{Error, Reply, Type, action, reply_header};
use super::kernel::Kernel;
use super::scheduler::Turn;

/// End of the global addresses that may be used for buffers: the APIC's window (xe: GUC_GGTT_TOP).
const GGTT_TOP: u64 = 0xfee0_0000;

type Handler = fn(&mut Kernel, &mut Turn<'_>, [u32; 3]) -> Reply;

/// Actions of the mailbox: code, name, what is done with the three dwords after the header. The registers keep what an
/// earlier message left in them, so a length cannot be told.
const ACTIONS: &[(u16, &str, Handler)] = &[
    (0x0508, "SELF_CFG", self_config),
    (0x4509, "CONTROL_CTB", control_ctb),
    (0x4100, "GET_HWCONFIG", hardware_config),
    (0x5507, "CLIENT_SOFT_RESET", |kernel, turn, _| {
        kernel.soft_reset(turn);
        Ok(0)
    }),
    (0x5500, "VF2GUC_MATCH_VERSION", |_, _, _| Err(Error::NotSupported)),
    (0x5508, "VF2GUC_RESFIX_DONE", |_, _, _| Err(Error::NotSupported)),
    (0x5509, "VF2GUC_QUERY_SINGLE_KLV", |_, _, _| Err(Error::NotSupported)),
    (0x550f, "VF2GUC_RESFIX_START", |_, _, _| Err(Error::NotSupported)),
];

/// Whether a request of the host waits for its answer: bit 31 is the origin, set in answers.
pub fn holds_request(gt: &Gt, function: Function) -> bool {
    let header = gt.mailbox(function, 0);
    header != 0 && header >> 31 == 0
}

/// Answers the request in the mailbox.
pub fn answer(kernel: &mut Kernel, turn: &mut Turn<'_>) {
    let gt = turn.gt;
    let function = turn.function;
    let [header, data @ ..]: [u32; 4] = std::array::from_fn(|n| gt.mailbox(function, n));
    let code = action(header);
    let reply = match (Type::of(header), ACTIONS.iter().find(|(known, ..)| *known == code)) {
        (Some(Type::Request), Some((_, _, handler))) => handler(kernel, turn, data),
        (Some(Type::Request), None) => Err(Error::UnknownAction),
        _ => Err(Error::ProtocolError),
    };
    match reply {
        Ok(_) => kernel.counters.done += 1,
        Err(Error::UnknownAction) => kernel.counters.unknown += 1,
        Err(_) => kernel.counters.failed += 1,
    }
    if let Err(error) = reply {
        log::debug!("GuC mailbox action {code:#06x} failed: {error:?}");
    }
    for n in 1..4 {
        gt.set_mailbox(function, n, 0);
    }
    gt.set_mailbox(function, 0, reply_header(reply));
}

/// Part of a ring's location that a SELF_CFG key sets.
#[derive(Clone, Copy)]
enum Part {
    Descriptor,
    Buffer,
    Bytes,
}

/// Keys of SELF_CFG: key, value dwords, whether it is the host's ring, part (xe: abi/guc_klvs_abi.h).
const SELF_CONFIG: &[(u32, u32, bool, Part)] = &[
    (0x0902, 2, true, Part::Buffer),
    (0x0903, 2, true, Part::Descriptor),
    (0x0904, 1, true, Part::Bytes),
    (0x0905, 2, false, Part::Buffer),
    (0x0906, 2, false, Part::Descriptor),
    (0x0907, 1, false, Part::Bytes),
];

/// Answers the number of values taken: 0 tells that the key is not known.
fn self_config(kernel: &mut Kernel, turn: &mut Turn<'_>, [head, low, high]: [u32; 3]) -> Reply {
    let Some((_, len, host, part)) = SELF_CONFIG.iter().find(|(key, ..)| *key == head >> 16) else { return Ok(0) };
    if head & 0xffff != *len {
        return Err(Error::MalformedKlv);
    }
    let address = u64::from(low) | u64::from(high) << 32;
    let ring: &mut Location = if *host { &mut kernel.rings.0 } else { &mut kernel.rings.1 };
    let reachable = || match (firmware::wopcm_top(turn.gt)..GGTT_TOP).contains(&address) && address % 4 == 0 {
        true => Ok(address),
        false => Err(Error::InvalidGgttAddress),
    };
    match part {
        Part::Descriptor => ring.descriptor = reachable()?,
        Part::Buffer => ring.buffer = reachable()?,
        Part::Bytes if low == 0 || low % 4096 != 0 => return Err(Error::InvalidParams),
        Part::Bytes => ring.bytes = low,
    }
    Ok(1)
}

fn control_ctb(kernel: &mut Kernel, turn: &mut Turn<'_>, [control, ..]: [u32; 3]) -> Reply {
    match control {
        0 => kernel.channel = None,
        1 => {
            let (h2g, g2h) = kernel.rings;
            if !h2g.complete() || !g2h.complete() {
                return Err(Error::CtbNotRegistered);
            }
            for ring in [h2g, g2h] {
                let last = ring.buffer + u64::from(ring.bytes) - 4;
                if last >= GGTT_TOP || turn.own().read_u32(Space::Ggtt, last).is_err() {
                    return Err(Error::CtbInvalid);
                }
            }
            kernel.channel = Some(Channel::open(&mut turn.own(), h2g, g2h).ok_or(Error::CtbInvalidDesc)?);
        }
        _ => return Err(Error::InvalidParams),
    }
    Ok(0)
}

/// With size 0 the answer is how large the table is; else it is copied as well.
fn hardware_config(_: &mut Kernel, turn: &mut Turn<'_>, [low, high, size]: [u32; 3]) -> Reply {
    let table = hwconfig::table();
    let bytes = (table.len() * 4) as u32;
    if bytes == 0 {
        return Err(Error::NoAttributeTable);
    }
    if size != 0 {
        if size < bytes {
            return Err(Error::InvalidSize);
        }
        let address = u64::from(low) | u64::from(high) << 32;
        for (n, value) in (0u64..).zip(table) {
            let at = address.wrapping_add(n * 4);
            turn.own().write_u32(Space::Ggtt, at, *value).map_err(|_| Error::InvalidGgttAddress)?;
        }
    }
    Ok(bytes)
}
