// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fields of the registers that i915 writes to an error state (i915: i915_gpu_error.c).

use arctic_base::command::Field;
use arctic_base::decode::show;

use crate::generation::EngineRef;
use crate::registers::arbiter::{FAULT_GGTT, FAULT_SOURCE, FAULT_TYPE, FAULT_VALID};
use crate::registers::fence::{FENCE_PAGE, FENCE_PITCH, FENCE_VALID, FENCE_WALK_Y, PITCH_UNIT};
use crate::registers::{Bits, engine};

/// A register of an error state.
struct State {
    /// Name in the error state.
    name: &'static str,
    /// Offset from the engine's base; `None` if it is not a register of the engine.
    offset: Option<u32>,
    /// Its fields.
    fields: &'static [Field],
}

const fn state(name: &'static str, offset: u32, fields: &'static [Field]) -> State {
    State { name, offset: Some(offset), fields }
}

const fn flag(name: &'static str, bits: Bits) -> Field {
    Field::flag(name, 0, bits.low())
}

const fn value(name: &'static str, bits: Bits) -> Field {
    Field::value(name, 0, bits.high(), bits.low())
}

const fn offset(name: &'static str, bits: Bits) -> Field {
    Field::offset(name, 0, bits.high(), bits.low())
}

const fn choice(name: &'static str, bits: Bits, values: &'static [(u32, &'static str)]) -> Field {
    Field::choice(name, 0, bits.high(), bits.low(), values)
}

/// Errors of an engine: the first is one of a command, and only a reset clears these (IVB-093).
const ERRORS: &[Field] = &[flag("Instruction Error", engine::INSTRUCTION_ERROR), Field::flag("Page Table Error", 0, 4)];

/// The fields, from the sources beside the registers' rows.
const STATES: &[State] = &[
    state(
        "CCID",
        engine::CCID,
        &[
            flag("Valid", engine::VALID),
            Field::flag("Extended State Restore Enable", 0, 2),
            Field::flag("Extended State Save Enable", 0, 3),
            Field::base("Logical Context Address", 0, 12),
        ],
    ),
    state(
        "HEAD",
        engine::HEAD,
        &[
            flag("Wait For Condition Code", engine::HEAD_WAITS),
            offset("Head Offset", engine::HEAD_OFFSET),
            value("Wrap Count", engine::HEAD_WRAPS),
        ],
    ),
    state("TAIL", engine::TAIL, &[offset("Tail Offset", engine::TAIL_OFFSET)]),
    state(
        "CTL",
        engine::CTL,
        &[
            flag("Ring Buffer Enable", engine::CTL_ENABLE),
            flag("Semaphore Wait", engine::CTL_SEMAPHORE_WAIT),
            flag("RB Wait", engine::CTL_WAIT),
            value("Pages Less One", engine::CTL_PAGES),
        ],
    ),
    state(
        "MODE",
        engine::MI_MODE,
        &[
            flag("Stop Rings", engine::MODE_STOP),
            flag("Rings Idle", engine::MODE_IDLE),
            flag("Invalidate UHPTR Enable", engine::MODE_INVALIDATE_POINTER),
            flag("MI_FLUSH Enable", engine::MODE_FLUSH),
            Field::flag("Async Flip Performance Mode", 0, 14),
        ],
    ),
    state("EIR", engine::EIR, ERRORS),
    state("ESR", engine::ESR, ERRORS),
    state("BBADDR", engine::BB_ADDR, &[flag("Valid", engine::VALID), Field::base("Batch Buffer Address", 0, 2)]),
    state(
        "BB_STATE",
        engine::BB_STATE,
        &[choice("Address Space Indicator", engine::BB_PPGTT, &[(0, "GGTT"), (1, "PPGTT")])],
    ),
    state(
        "INSTPM",
        engine::INSTPM,
        &[
            flag("Sync Flush Enable", engine::SYNC_FLUSH),
            Field::flag("Force Sync Command Ordering", 0, 7),
            Field::flag("CLFLUSH Toggle", 0, 11),
        ],
    ),
    state(
        "GFX_MODE",
        engine::GFX_MODE,
        &[
            flag("PPGTT Enable", engine::PPGTT_ENABLE),
            Field::flag("Replay Mode", 0, 11),
            Field::flag("TLB Flush Mode", 0, 13),
        ],
    ),
    state("PP_DIR_BASE", engine::PP_DIR_BASE, &[Field::hex("Offset in the GGTT's Table in 64 Bytes", 0, 31, 16)]),
    State {
        name: "FAULT_REG",
        offset: None,
        fields: &[
            flag("Valid", FAULT_VALID),
            choice(
                "Fault Type",
                FAULT_TYPE,
                &[
                    (0, "page fault"),
                    (1, "invalid directory entry"),
                    (2, "unloaded directory entry"),
                    (3, "invalid and unloaded directory entry"),
                ],
            ),
            choice("Source", FAULT_SOURCE, SOURCES),
            choice("Address Space", FAULT_GGTT, &[(0, "PPGTT"), (1, "GGTT")]),
            Field::base("Page", 0, 12),
        ],
    },
    State {
        name: "ERROR",
        offset: None,
        fields: &[
            Field::flag("Invalid Page Table Entry", 0, 0),
            Field::flag("Invalid Directory Entry", 0, 2),
            Field::flag("VT-d Error of a Page", 0, 4),
            Field::flag("VT-d Error of a Directory Entry", 0, 6),
            Field::flag("Unloaded Directory Entry", 0, 8),
        ],
    },
];

/// Units that access memory (IVB-043).
const SOURCES: &[(u32, &str)] = &[
    (0x0, "command streamer, reading"),
    (0x1, "vertex fetch"),
    (0x2, "instruction cache"),
    (0x3, "sampler"),
    (0x4, "render cache, color"),
    (0x5, "hierarchical depth"),
    (0x6, "render cache, depth"),
    (0x7, "CTC"),
    (0x8, "command streamer, writing"),
    (0x9, "MBC"),
    (0xb, "power context"),
    (0xc, "RC R4W compare"),
];

/// Text for the fields of `state` with this value; `None` if no field has text.
fn text(state: &State, value: u32, engine: EngineRef) -> Option<String> {
    let shown = show::fields(&[value], state.fields, None, &engine);
    let shown: Vec<_> = shown.iter().map(|field| field.text.as_str()).filter(|text| !text.is_empty()).collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}

/// Meaning of the register with this name in an error state; `None` if its fields are not known, or it has no state.
pub fn of_name(engine: EngineRef, name: &str, value: u32) -> Option<String> {
    match name {
        // Busy units have a 0 (i915: intel_engine_get_instdone).
        "INSTDONE" if value == u32::MAX => Some("all units are idle".into()),
        "INSTDONE" => Some(format!("busy: {:#x}", !value)),
        // Without the valid bit, the other fields have no meaning.
        "FAULT_REG" if !FAULT_VALID.is_set(value) => None,
        // No context, no batch, no page directory.
        "CCID" | "BBADDR" | "PP_DIR_BASE" if value == 0 => None,
        _ => text(STATES.iter().find(|state| state.name == name)?, value, engine),
    }
}

/// Meaning of an engine's register by its offset from the base.
pub fn of_offset(engine: EngineRef, offset: u32, value: u32) -> Option<String> {
    text(STATES.iter().find(|state| state.offset == Some(offset))?, value, engine)
}

/// The region of a fence register (ILK-058, G67-062); `None` if the fence is not valid.
pub fn fence(value: u64) -> Option<String> {
    let [low, high] = [arctic_sriov::number::low(value), arctic_sriov::number::high(value)];
    if !FENCE_VALID.is_set(low) {
        return None;
    }
    let (first, last) = (low & FENCE_PAGE.mask(), high | !FENCE_PAGE.mask());
    if last < first {
        return Some(format!("no page: it ends at {last:#x} before it begins at {first:#x}"));
    }
    let tiles = if FENCE_WALK_Y.is_set(low) { "Y" } else { "X" };
    let pitch = FENCE_PITCH.get(high).saturating_add(1).saturating_mul(PITCH_UNIT);
    Some(format!("{first:#x} to {last:#x}, {tiles} tiles, pitch {pitch}"))
}

#[cfg(test)]
mod tests {
    use arctic_base::command::field::check_layout;

    use super::*;
    use crate::generation::IVY_BRIDGE;

    fn render() -> EngineRef {
        EngineRef::named(&IVY_BRIDGE, "rcs0").unwrap()
    }

    #[test]
    fn fields_do_not_overlap_and_registers_are_modelled() {
        for state in STATES {
            check_layout(state.name, state.fields, None, 1, 0);
            let mut offsets = IVY_BRIDGE.registers.engine.iter().copied().flatten().map(|row| row.offset);
            assert!(state.offset.is_none_or(|offset| offsets.any(|row| row == offset)), "{}", state.name);
        }
    }

    /// IVB-039: without the valid bit, a fault register has no fault.
    #[test]
    fn registers_are_described_by_their_fields() {
        let text = |name, value| of_name(render(), name, value);
        assert_eq!(text("FAULT_REG", 0x0030_0042), None);
        assert_eq!(
            text("FAULT_REG", 0x0030_0845).as_deref(),
            Some(
                "Valid, Fault Type unloaded directory entry, Source command streamer, writing, Address Space GGTT, Page \
                 0x300000"
            )
        );
        assert_eq!(text("ESR", 0x11).as_deref(), Some("Instruction Error, Page Table Error"));
        assert_eq!((text("ESR", 0), text("CCID", 0), text("NOPID", 5)), (None, None, None));
        assert_eq!(text("INSTDONE", u32::MAX).as_deref(), Some("all units are idle"));
        assert_eq!(text("INSTDONE", !0x30).as_deref(), Some("busy: 0x30"));
        assert_eq!(of_offset(render(), engine::BB_STATE, 0).as_deref(), Some("Address Space Indicator GGTT"));
        assert_eq!(of_offset(render(), 0x1234, 0), None);
    }

    /// ILK-058: the last page belongs to the fence.
    #[test]
    fn fences_are_shown_as_ranges() {
        assert_eq!(fence(0x101f_f003_0100_0003).as_deref(), Some("0x1000000 to 0x101fffff, Y tiles, pitch 512"));
        assert_eq!(fence(0x0100_0000_0100_0001).as_deref(), Some("0x1000000 to 0x1000fff, X tiles, pitch 128"));
        assert_eq!(fence(0x101f_f003_0100_0002), None, "not valid");
        let reversed = "no page: it ends at 0xfff before it begins at 0x1000000";
        assert_eq!(fence(0x0100_0001).as_deref(), Some(reversed));
        assert!(fence(u64::MAX).unwrap().starts_with("0xfffff000 to 0xffffffff, Y tiles"));
    }
}
