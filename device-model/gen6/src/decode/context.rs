// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Disassembly of the images of logical contexts (ILK-170, G67-090), and of status pages.

use arctic_base::decode::line::{Dword, Line};
use arctic_base::decode::loads::loads;

use super::{register, state};
use crate::generation::EngineRef;

/// Disassembles the image of a context of `engine`.
pub fn image<M>(image: &[u32], engine: EngineRef) -> Vec<Line<M>> {
    let base = engine.info().base;
    let lines = loads(image, engine).map(|load| {
        let meaning = load.offset.checked_sub(base).and_then(|offset| state::of_offset(engine, offset, load.value));
        let name = register::name(engine.generation, load.offset);
        Line::Dword(Dword { index: load.index, name, value: load.value, meaning: meaning.unwrap_or_default() })
    });
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() {
        return vec![Line::note("contains no register load: not a context image, or not saved yet")];
    }
    lines
}

/// Decodes the nonzero dwords of an engine's status page (IVB-092, IVB-094; i915: gt/intel_engine.h, I915_GEM_HWS_SEQNO).
pub fn page<M>(page: &[u32]) -> Vec<Line<M>> {
    let name = |index: usize| match index {
        0 => "interrupt status".into(),
        4 => "ring head, reported".into(),
        0x40 => "seqno (i915)".into(),
        _ => format!("+{:#x}", index.saturating_mul(4)),
    };
    let words = page.iter().enumerate().filter(|(_, value)| **value != 0);
    words
        .map(|(index, value)| Line::Dword(Dword { index, name: name(index), value: *value, meaning: String::new() }))
        .collect()
}
