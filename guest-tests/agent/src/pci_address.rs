// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! PCI address of the card in a guest. The runner places it there.

/// PCI address of the card in the guest: the PF, or the VF of a guest with a single VF.
pub const CARD_ADDRESS: &str = "0000:00:01.0";
