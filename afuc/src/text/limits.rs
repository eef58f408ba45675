// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Limits of operands, and the errors of operands outside of them.

use std::ops::Range;

use super::diagnostic::Diagnostic;

/// Bits of the target of a call, in words from the start of the section.
pub const CALL_TARGET_BITS: u32 = 26;
/// The register that `setsecure` reads; the instruction does not encode it.
pub const SETSECURE_REGISTER: u8 = 2;
/// Words from `setsecure` to its target; the instruction does not encode them.
pub const SETSECURE_WORDS: i32 = 3;
/// Title of the error of another target of `setsecure`.
pub const SETSECURE_TITLE: &str = "the target of `setsecure` is always three words ahead";
/// Maximum shift of an immediate move, and maximum number of a bit.
pub const MAX_BIT: u8 = 31;
/// Maximum immediate of `brne` and `breq`.
pub const MAX_BRANCH_IMMEDIATE: u8 = 0x1f;

/// Returns the error of a shift above [`MAX_BIT`].
pub fn shift_too_large(span: Range<usize>, shift: u32) -> Diagnostic {
    Diagnostic::new(span, format!("a shift of {shift} is too large"), format!("at most {MAX_BIT}"))
}

/// Returns the error of a bit number above [`MAX_BIT`].
pub fn no_bit(span: Range<usize>, bit: u32) -> Diagnostic {
    Diagnostic::new(span, format!("there is no bit {bit}"), format!("bits are 0 to {MAX_BIT}"))
}

/// Returns the reason why `value` does not fit into a field with the maximum `max`.
pub fn field_reason(value: u32, max: u32) -> String {
    let bits = u32::BITS - max.leading_zeros();
    format!("{value:#x}; {bits} bits are possible, at most {max:#x}")
}

/// Returns the error of an immediate of `brne` or `breq` above [`MAX_BRANCH_IMMEDIATE`].
pub fn branch_immediate_too_large(span: Range<usize>, value: u32) -> Diagnostic {
    Diagnostic::new(span, "the immediate does not fit", field_reason(value, MAX_BRANCH_IMMEDIATE.into()))
        .help("subtract it from a copy of the register, and compare the difference with 0x0")
}
