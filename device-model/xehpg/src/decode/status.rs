// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Context descriptors and context status quadwords.

use arctic_sriov::number;

use super::{Dword, Line};
use crate::execlist::descriptor::{ContextId, Descriptor};
use crate::execlist::status::ContextStatus;

fn dword(index: usize, name: &str, value: u32, meaning: String) -> Line {
    Line::Dword(Dword { index, name: name.into(), value, meaning })
}

/// Decodes a context descriptor (V8-030, V8-031; contract F.1).
pub fn descriptor(descriptor: u64) -> Vec<Line> {
    let fields = Descriptor::from(descriptor);
    let valid = if fields.valid() { "valid" } else { "not valid" };
    let mode = match fields.addressing() {
        3 => "legacy, 64-bit addresses".into(),
        mode => format!("addressing mode {mode}"),
    };
    let space = if fields.ppgtt() { "process space" } else { "no process space: all addresses are global" };
    let low = format!("LRC at {:#x} (PPHWSP, image 4 KiB behind), {valid}, {mode}, {space}", fields.lrca());
    let (id, counter) = (fields.software_id(), fields.software_counter());
    let high = format!("SW context ID {id:#x}, SW counter {counter}, VF {}", fields.function());
    vec![
        dword(0, "descriptor, low", number::low(descriptor), low),
        dword(1, "descriptor, high", number::high(descriptor), high),
    ]
}

fn context(id: ContextId) -> String {
    if id == ContextId::IDLE { "idle".into() } else { format!("context {:#x}", id.bits()) }
}

/// Decodes a context status quadword (V8-052, V8-053; i915: xehp_csb_parse).
pub fn quadword(status: u64) -> String {
    const IDLE: ContextId = ContextId::IDLE;
    let status = ContextStatus::from(status);
    let (to, away) = (status.to(), status.away());
    let what = match (status.new_queue(), away, to) {
        (true, IDLE, IDLE) => "preempt-to-idle while idle",
        (true, IDLE, _) => "idle to active",
        (true, _, IDLE) => "preempt-to-idle",
        (true, away, to) if away == to => "lite restore",
        (true, ..) => "new queue",
        (false, _, IDLE) => "active to idle",
        (false, ..) => "next element",
    };
    let why = match status.detail() {
        0 => "complete".into(),
        1..=4 => format!("unsuccessful wait ({})", status.detail()),
        5 => "preempted".into(),
        other => format!("detail {other}"),
    };
    format!("{what}: {} -> {}, {why}", context(away), context(to))
}

/// Decodes the context status buffer in a global status page, if `page` contains it: twelve quadwords from dword 10h
/// on, the write pointer in dword 2Fh (V8-057, T1; i915: I915_HWS_CSB_BUF0_INDEX, ICL_HWS_CSB_WRITE_INDEX).
#[allow(clippy::arithmetic_side_effects, reason = "`n` is below ENTRIES")]
pub fn buffer(page: &[u32]) -> Vec<Line> {
    const FIRST: usize = 0x10;
    const ENTRIES: usize = 12;
    const POINTER: usize = 0x2f;
    let pointer = page.get(POINTER).map(|pointer| *pointer as usize & 0xf);
    let entries = page.get(FIRST..).unwrap_or_default().as_chunks().0.iter().take(ENTRIES).enumerate();
    let mut lines: Vec<_> = entries
        .filter(|(_, entry)| **entry != [0, 0])
        .map(|(n, [low, high])| {
            let last = if pointer == Some(n) { " <== written last" } else { "" };
            let status = u64::from(*high) << 32 | u64::from(*low);
            dword(FIRST + 2 * n, &format!("CSB[{n}]"), *low, quadword(status) + last)
        })
        .collect();
    if let Some(pointer) = page.get(POINTER) {
        lines.push(dword(POINTER, "CSB write pointer", *pointer, String::new()));
    }
    lines
}
