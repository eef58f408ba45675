// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The PCI Express hierarchy: configuration space of host bridge, root port and card, and KVM resources of the BARs.

mod card;
mod host;
mod registers;
mod root_port;

pub use card::{Bars, CardSlot};
pub use host::Host;
