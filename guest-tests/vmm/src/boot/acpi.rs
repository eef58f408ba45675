//! ACPI tables.

/// Sleep type of "off".
pub const S5: u8 = 5;
/// What the reset register takes.
pub const RESET: u8 = 1;
