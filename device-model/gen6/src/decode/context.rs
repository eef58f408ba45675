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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::generation::IVY_BRIDGE;

    fn text(lines: Vec<Line<Infallible>>) -> Vec<String> {
        lines.iter().map(|line| line.to_string().split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    /// ILK-170: the image is a list of register loads.
    #[test]
    fn an_image_shows_the_registers_that_it_loads() {
        let render = EngineRef::named(&IVY_BRIDGE, "rcs0").unwrap();
        let words = [
            0,
            0x1100_0005,
            0x2110,
            0x20,
            0xfc00_7003,
            0xffff_0000,
            0x80_2110,
            5,
            0x1100_0001,
            0x1f_fffc,
            7,
            0x0500_0000,
            9,
        ];
        assert_eq!(
            text(image(&words, render)),
            [
                "[0x003] rcs0.BB_STATE 0x00000020 Address Space Indicator PPGTT",
                "[0x005] CACHE_MODE_0 0xffff0000",
                "[0x007] 0x802110 0x00000005",
                "[0x00a] 0x1ffffc 0x00000007"
            ]
        );
        let none = ["# contains no register load: not a context image, or not saved yet"];
        assert_eq!(text(image(&[0; 8], render)), none);
        assert_eq!(text(image(&[], render)), none);
    }

    #[test]
    fn a_status_page_shows_the_dwords_that_are_written() {
        let mut words = [0; 0x50];
        (words[4], words[0x40], words[0x41]) = (0x100, 7, 8);
        assert_eq!(
            text(page(&words)),
            ["[0x004] ring head, reported 0x00000100", "[0x040] seqno (i915) 0x00000007", "[0x041] +0x104 0x00000008"]
        );
    }
}
