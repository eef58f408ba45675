// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! PCI addresses of the card's functions in a guest. The runner places them there.

/// PCI address of the card in the guest: the PF, or the VF of a guest with a single VF.
pub const CARD_ADDRESS: &str = "0000:00:01.0";
/// Slot and function of [`CARD_ADDRESS`] as a devfn number.
pub const CARD_DEVFN: usize = 8;

/// Returns the PCI address of the card's function `index` (0 is the PF) in a guest that has all functions.
pub fn function_address(index: usize) -> String {
    let devfn = CARD_DEVFN + index;
    format!("0000:00:{:02x}.{}", devfn / 8, devfn % 8)
}
