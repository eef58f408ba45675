// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Requests of VF drivers to the PF driver, handled by the card if it acts as the PF: handshake, and values of
//! registers that a VF cannot read (contract C.4; xe: xe_gt_sriov_pf_service.c, abi/guc_relay_actions_abi.h).

use arctic_sriov::number::count;

use crate::gt::Gt;
use crate::guc::messages::hxg::{Header, MAX_DWORDS, Type};

/// Error codes of this interface (xe: abi/guc_relay_communication_abi.h).
#[derive(Clone, Copy)]
#[repr(u16)]
enum Failure {
    Permission = 1,
    InvalidArgument = 22,
    InvalidRequest = 56,
    Protocol = 71,
    MessageSize = 90,
}

/// Maximum number of (offset, value) pairs in one reply.
const MOST_PAIRS: usize = (MAX_DWORDS - 3 - 2) / 2;

/// Handles a VF's message and returns the reply; `None` if the message expects no reply. Replies have the origin
/// "host", like those of a PF driver.
pub fn answer(gt: &Gt, message: &[u32]) -> Option<Vec<u32>> {
    let [header, payload @ ..] = message else { return None };
    let header = Header::from(*header);
    if !matches!(header.kind_from_host(), Some(Type::Request | Type::FastRequest)) {
        return None;
    }
    let data0 = header.data0();
    let answer = match header.code() {
        0x0001 => handshake(gt, data0, payload),
        0x0101 => runtime(gt, data0, payload),
        _ => Err(Failure::InvalidRequest),
    };
    Some(answer.unwrap_or_else(|failure| vec![Header::failure(failure as u16).into()]))
}

fn success(data: u32) -> u32 {
    Header::success(data).into()
}

/// HANDSHAKE: zeros request any version.
fn handshake(gt: &Gt, data0: u32, payload: &[u32]) -> Result<Vec<u32>, Failure> {
    let latest = gt.generation.sriov.relay_version;
    let [wanted] = payload else { return Err(Failure::MessageSize) };
    if data0 != 0 {
        return Err(Failure::Protocol);
    }
    match (wanted >> 16, wanted & 0xffff) {
        (0, 0) => {}
        (major, _) if major >= latest.major.into() => {}
        _ => return Err(Failure::Permission),
    }
    Ok(vec![success(0), u32::from(latest.major) << 16 | u32::from(latest.minor)])
}

/// QUERY_RUNTIME: returns pairs from index `start`, at most `limit` (0 = as many as fit), and the number of remaining
/// pairs.
fn runtime(gt: &Gt, limit: u32, payload: &[u32]) -> Result<Vec<u32>, Failure> {
    let [start] = payload else { return Err(Failure::MessageSize) };
    let rest = usize::try_from(*start).ok().and_then(|start| gt.generation.sriov.runtime_registers.get(start..));
    let rest = rest.ok_or(Failure::InvalidArgument)?;
    let most = if limit == 0 { MOST_PAIRS } else { MOST_PAIRS.min(limit as usize) };
    let (now, later) = rest.split_at(most.min(rest.len()));
    let mut answer = vec![success(count(now.len())), count(later.len())];
    answer.extend(now.iter().flat_map(|offset| [*offset, gt.registers.value(*offset)]));
    Ok(answer)
}
