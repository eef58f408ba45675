// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The mailbox: requests through the VF_SW_FLAG registers. The reply is written before the notifying register access
//! completes (contract B.6).

use std::ops::Range;

use arctic_sriov::number::count;

use crate::generation::Version;
use crate::gt::Gt;
use crate::guc::functions::client::State;
use crate::guc::load::firmware;
use crate::guc::messages::ctb::{Channel, Location, MOST_OUT_OF_REACH};
use crate::guc::messages::hxg::{Answer, Error, Header, Reply, Request, Type, global_address, reply_header};
use crate::guc::messages::sender::Sender;
use crate::guc::migration;
use crate::guc::scheduler::GucCtx;
use crate::guc::state::{GucState, Handler};
use crate::host::Function;
use crate::memory::Space;
use crate::trace::EventKind;

/// Mailbox actions: code, name, permitted senders, and handler. The registers retain the contents of
/// earlier messages, so the length of a message cannot be checked.
const ACTIONS: &[(u16, &str, Sender, Handler)] = &[
    (0x0508, "SELF_CFG", Sender::Any, self_config),
    (0x4509, "CONTROL_CTB", Sender::Any, control_ctb),
    (0x4100, "GET_HWCONFIG", Sender::Any, hardware_config),
    // Called VF_RESET when sent by a VF.
    (0x5507, "CLIENT_SOFT_RESET", Sender::Any, |guc, ctx, _| {
        guc.forget(ctx, ctx.function);
        // Nothing is left whose address a moved VF could adapt.
        guc.set_state(ctx.function, State::Running);
        Ok(Answer::default())
    }),
    (0x5500, "VF2GUC_MATCH_VERSION", Sender::Virtual, match_version),
    (0x5509, "VF2GUC_QUERY_SINGLE_KLV", Sender::Virtual, query),
    (0x5508, "VF2GUC_RESFIX_DONE", Sender::Virtual, migration::done),
    (0x550f, "VF2GUC_RESFIX_START", Sender::Virtual, migration::start),
];

/// Actions that a moved VF can request before its driver has adapted its addresses: it asks for its GGTT range, and may reset
/// what it has set up. The driver sends others again (xe: xe_gt_sriov_vf.c).
const SERVED_IN_FIX_UP: [u16; 5] = [0x5500, 0x5507, 0x5508, 0x5509, 0x550f];

/// Returns the name of a mailbox action.
pub fn name(code: u16) -> Option<&'static str> {
    ACTIONS.iter().find(|(known, ..)| *known == code).map(|(_, name, ..)| *name)
}

/// Returns whether the mailbox holds a pending request. A reply is from the GuC.
pub fn holds_request(gt: &Gt, function: Function) -> bool {
    let header = gt.mailbox_dword(function, 0);
    header != 0 && !Header::from(header).from_guc()
}

/// Actions that take contexts off the engines.
const STOPS_CONTEXTS: [u16; 2] = [0x5507, 0x550f];

/// Returns whether the pending request may wait for steps of engines.
pub fn waits_for_steps(gt: &Gt, function: Function) -> bool {
    STOPS_CONTEXTS.contains(&Header::from(gt.mailbox_dword(function, 0)).code())
}

/// Executes the mailbox request of `ctx.function` and writes the reply. While a VF is paused, stopped or in reset, the
/// request stays pending, and while its client does not answer an access: a handler changes nothing before its accesses.
#[allow(clippy::arithmetic_side_effects, reason = "a 64-bit count does not overflow")]
pub fn answer(guc: &mut GucState, ctx: &mut GucCtx<'_>) {
    let gt = ctx.gt;
    let function = ctx.function;
    let is_moved = guc.of(function).state == State::FixUp;
    if !is_moved && guc.of(function).state != State::Running || gt.memory.is_emptying(function) {
        return;
    }
    let [header, payload @ ..]: [u32; 4] = std::array::from_fn(|n| gt.mailbox_dword(function, n));
    let record =
        || gt.trace.record(function, || EventKind::Guc { mailbox: true, fence: 0, dwords: message_of(gt, function) });
    record();
    let header = Header::from(header);
    let code = header.code();
    let reply = match (header.kind(), ACTIONS.iter().find(|(known, ..)| *known == code)) {
        (Some(Type::Request), _) if is_moved && !SERVED_IN_FIX_UP.contains(&code) => Err(Error::VfMigrated),
        (Some(Type::Request), Some((_, _, sender, handler))) => {
            sender.check(function).and_then(|()| handler(guc, ctx, Request { header, payload: &payload }))
        }
        (Some(Type::Request), None) => Err(Error::UnknownAction),
        _ => Err(Error::ProtocolError),
    };
    let repeats = &mut guc.of(function).mailbox_repeats;
    if reply.is_err() && ctx.views.of(function).unanswered() && repeats.may_repeat(ctx.now, MOST_OUT_OF_REACH) {
        guc.unanswered_mailboxes |= function.bit();
        return;
    }
    repeats.end();
    match reply {
        Ok(_) => guc.count(function, |counters| counters.done += 1),
        Err(Error::UnknownAction) => guc.count(function, |counters| counters.unknown += 1),
        Err(_) => guc.count(function, |counters| counters.failed += 1),
    }
    if let Err(error) = reply {
        log::debug!("GuC, function {}: mailbox action {code:#06x} failed: {error:?}", function.number());
    }
    for (n, value) in (1..).zip(reply.unwrap_or_default().dwords) {
        gt.set_mailbox_dword(function, n, value);
    }
    let header = reply_header(reply.map(|answer| answer.data0));
    let later = if reply.is_ok() { migration::busy_reply(guc, function) } else { None };
    gt.set_mailbox_dword(function, 0, later.unwrap_or(header));
    record();
}

/// Returns the contents of the mailbox of `function`.
fn message_of(gt: &Gt, function: Function) -> Vec<u32> {
    (0..4).map(|n| gt.mailbox_dword(function, n)).collect()
}

/// VF2GUC_MATCH_VERSION: branch, major and minor in bits 31:8, 0 = any. Replies with the version of this interface,
/// which is compatible with all older minor versions of the same major version. Rejects newer versions and other
/// branches (contract C.1 step 1b).
fn match_version(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let [wanted, ..] = request.all::<3>()?;
    let Version { major, minor, patch } = guc.firmware.submission;
    let [zero, wanted_minor, wanted_major, branch] = wanted.to_le_bytes();
    if zero != 0 {
        return Err(Error::InvalidParams);
    }
    let matches = match (branch, wanted_major, wanted_minor) {
        (0, 0, 0) => true,
        (0, wanted, least) => wanted == major && least <= minor,
        _ => false,
    };
    if !matches {
        return Err(Error::UnsupportedVersion);
    }
    guc.of(ctx.function).client.version = Some(guc.firmware.submission);
    Ok(Answer { data0: 0, dwords: [u32::from_le_bytes([patch, minor, major, 0]), 0, 0] })
}

/// VF2GUC_QUERY_SINGLE_KLV: returns a value of the VF's configuration; data0 is the length of the value in dwords.
fn query(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let [key, ..] = request.all::<3>()?;
    let config = guc.of(ctx.function).config;
    if !config.provisioned() {
        return Err(Error::UnprovisionedVf);
    }
    let (len, [low, high]) = config.query(key)?;
    Ok(Answer { data0: len, dwords: [low, high, 0] })
}

/// Field of a CT buffer's location that a SELF_CFG key sets.
#[derive(Clone, Copy)]
enum Part {
    Descriptor,
    Buffer,
    Bytes,
}

/// Keys of SELF_CFG: key, number of value dwords, whether it applies to the H2G buffer, field (xe: abi/guc_klvs_abi.h).
const SELF_CONFIG: &[(u32, u32, bool, Part)] = &[
    (0x0902, 2, true, Part::Buffer),
    (0x0903, 2, true, Part::Descriptor),
    (0x0904, 1, true, Part::Bytes),
    (0x0905, 2, false, Part::Buffer),
    (0x0906, 2, false, Part::Descriptor),
    (0x0907, 1, false, Part::Bytes),
];

/// Returns the GGTT range in which buffers of `function` may be placed.
fn reach(guc: &mut GucState, ctx: &GucCtx<'_>) -> Range<u64> {
    let all = firmware::wopcm_top(ctx.gt)..ctx.gt.generation.sriov.ggtt.end;
    if !ctx.function.is_vf() {
        return all;
    }
    let own = guc.of(ctx.function).config.ggtt();
    own.start.max(all.start)..own.end.min(all.end)
}

/// SELF_CFG: replies with the number of values applied; 0 means that the key is unknown.
#[allow(clippy::arithmetic_side_effects, reason = "an alignment is a constant other than 0")]
fn self_config(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    const MEMIRQ_STATUS: u32 = 0x0900;
    const MEMIRQ_SOURCE: u32 = 0x0901;
    let [head, low, high] = request.all::<3>()?;
    let (key, len) = (head >> 16, head & 0xffff);
    let address = u64::from(low) | u64::from(high) << 32;
    let reach = reach(guc, ctx);
    let client = &mut guc.of(ctx.function).client;
    let reachable = |alignment: u64| {
        let valid = reach.contains(&address) && address % alignment == 0;
        if valid { Ok(address) } else { Err(Error::InvalidGgttAddress) }
    };
    if ctx.function.is_vf() && matches!(key, MEMIRQ_STATUS | MEMIRQ_SOURCE) {
        if len != 2 {
            return Err(Error::MalformedKlv);
        }
        match key {
            MEMIRQ_STATUS => client.interrupt.status = reachable(16)?,
            _ => client.interrupt.source = reachable(1)?,
        }
        return Ok(1.into());
    }
    let Some((_, wanted, host, part)) = SELF_CONFIG.iter().find(|(known, ..)| *known == key) else {
        return Ok(0.into());
    };
    if len != *wanted {
        return Err(Error::MalformedKlv);
    }
    let ring: &mut Location = if *host { &mut client.rings.0 } else { &mut client.rings.1 };
    match part {
        Part::Descriptor => ring.descriptor = reachable(4)?,
        Part::Buffer => ring.buffer = reachable(4)?,
        Part::Bytes if low == 0 || low % 4096 != 0 => return Err(Error::InvalidParams),
        Part::Bytes => ring.bytes = low,
    }
    Ok(1.into())
}

#[allow(
    clippy::arithmetic_side_effects,
    reason = "a ring's address has 32 bits, and its size is at least 4096 once it is configured"
)]
fn control_ctb(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let [control, ..] = request.all::<3>()?;
    let end = reach(guc, ctx).end;
    let client = &mut guc.of(ctx.function).client;
    match control {
        0 => client.channel = None,
        1 => {
            let (h2g, g2h) = client.rings;
            if !h2g.complete() || !g2h.complete() {
                return Err(Error::CtbNotRegistered);
            }
            for ring in [h2g, g2h] {
                let last = ring.buffer + u64::from(ring.bytes) - 4;
                if last >= end || ctx.own().read_u32(Space::Ggtt, last).is_err() {
                    return Err(Error::CtbInvalid);
                }
            }
            client.channel = Some(Channel::open(&mut ctx.own(), h2g, g2h).ok_or(Error::CtbInvalidDesc)?);
        }
        _ => return Err(Error::InvalidParams),
    }
    Ok(Answer::default())
}

/// GET_HWCONFIG: replies with the size of the table in bytes. Also copies the table if the given size is not 0.
#[allow(clippy::arithmetic_side_effects, reason = "a GGTT address has 32 bits, and the table is shorter than 4 KiB")]
fn hardware_config(_: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let [low, high, size] = request.all::<3>()?;
    let table = (ctx.gt.generation.hwconfig)(ctx.gt.die);
    let bytes = count(table.len() * 4);
    if size != 0 {
        if size < bytes {
            return Err(Error::InvalidSize);
        }
        let address = global_address(low, high)?;
        for (n, value) in (0u64..).zip(table) {
            ctx.own().write_u32(Space::Ggtt, address + n * 4, value).map_err(|_| Error::InvalidGgttAddress)?;
        }
    }
    Ok(bytes.into())
}
