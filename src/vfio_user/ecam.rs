// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Programs the BARs of VFs in the PF's own guest, under a VMM without SR-IOV support.
//!
//! QEMU maps a function's BARs at the addresses in that function's own BAR registers, but guests do not program the BAR
//! registers of a VF, because the VF BARs are in the PF's SR-IOV capability. So the card programs them itself, by DMA
//! writes of the PF to the guest's configuration space window (ECAM), as soon as VF Enable and VF MSE are set, and
//! disables their decoding when one of the bits is cleared. Before VFs are enabled, the window is not accessed.
//!
//! `placement` decides which write is next, `window` finds the window, `attempts` decides when a failed write is
//! repeated, and `placer` has the thread that sends the writes. If an IOMMU of the guest translates the PF's accesses, `requester` is the function that sends them instead.

mod attempts;
mod placement;
mod placer;
mod requester;
mod window;

use std::fmt;
use std::str::FromStr;

pub use self::placement::BarAddresses;
pub(super) use self::placer::{BarPlacer, PfState};
pub(super) use self::requester::Requester;

/// Bus, device and function of the PF in its guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PciAddress {
    /// Bus number.
    pub bus: u8,
    /// Device on the bus, 0 to 31.
    pub device: u8,
    /// Function of the device, 0 to 7.
    pub function: u8,
}

impl PciAddress {
    /// Address of the PF in the printed QEMU arguments of earlier versions.
    pub const PF: PciAddress = PciAddress { bus: 0, device: 1, function: 0 };

    /// The routing ID: bus, device and function in PCI Express encoding.
    pub fn routing_id(self) -> u16 {
        u16::from(self.bus) << 8 | u16::from(self.device) << 3 | u16::from(self.function)
    }

    /// The address with this routing ID.
    pub fn from_routing_id(id: u16) -> Self {
        PciAddress { bus: (id >> 8) as u8, device: (id >> 3 & 0x1f) as u8, function: (id & 7) as u8 }
    }
}

impl FromStr for PciAddress {
    type Err = String;

    /// Parses "00:01.0", with or without the prefix of domain 0.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text} is not a PCI address: expected bus:device.function in hex, like 00:01.0");
        let number = |text: &str, most: u8| u8::from_str_radix(text, 16).ok().filter(|n| *n <= most);
        let short = text.strip_prefix("0000:").unwrap_or(text);
        let (bus, rest) = short.split_once(':').ok_or_else(wrong)?;
        let (device, function) = rest.split_once('.').ok_or_else(wrong)?;
        let address = || {
            let (bus, device) = (number(bus, 0xff)?, number(device, 0x1f)?);
            Some(PciAddress { bus, device, function: number(function, 7)? })
        };
        address().ok_or_else(wrong)
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}:{:02x}.{}", self.bus, self.device, self.function)
    }
}

/// The configuration space window of the PF's guest, and the PF's address in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ecam {
    /// Guest address of bus 0.
    pub base: u64,
    /// The PF.
    pub pf: PciAddress,
}

impl Default for Ecam {
    /// QEMU's q35 machine with SeaBIOS.
    fn default() -> Self {
        Ecam { base: 0xb000_0000, pf: PciAddress::PF }
    }
}

impl Ecam {
    /// The address of VF `number`: consecutive after the PF (First VF Offset 1, VF Stride 1).
    pub fn vf(&self, number: u8) -> PciAddress {
        PciAddress::from_routing_id(self.pf.routing_id().wrapping_add(number.into()))
    }

    /// Maximum number of VFs after the PF on its bus, which is where the PF driver expects them.
    pub fn most_vfs(&self) -> u8 {
        !((self.pf.routing_id() & 0xff) as u8)
    }

    /// Guest address of the first register of VF `number`, or of the PF, 0.
    fn registers(&self, number: u8) -> u64 {
        self.base.wrapping_add(u64::from(self.vf(number).routing_id()) << 12)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_lspci_writes_them() {
        let address = |bus, device, function| Ok(PciAddress { bus, device, function });
        assert_eq!("00:01.0".parse(), address(0, 1, 0));
        assert_eq!("0000:3a:1f.7".parse(), address(0x3a, 0x1f, 7));
        for wrong in ["1.0", "00:20.0", "00:01.8", "0001:00:01.0", "00:01", ""] {
            let error = wrong.parse::<PciAddress>().unwrap_err();
            assert!(error.contains("like 00:01.0"), "{error}");
        }
    }

    /// First VF Offset and VF Stride are 1: VF 63 of a PF at 00:01.0 is 00:08.7.
    #[test]
    fn vfs_follow_the_pf() {
        let ecam = Ecam::default();
        assert_eq!((ecam.vf(1).to_string(), ecam.vf(63).to_string()), ("00:01.1".into(), "00:08.7".into()));
        assert_eq!((ecam.most_vfs(), Ecam { pf: "00:1f.0".parse().unwrap(), ..ecam }.most_vfs()), (247, 7));
        assert_eq!((ecam.registers(1), ecam.registers(7)), (0xb000_9000, 0xb000_f000));
        let behind_a_port = Ecam { base: 0xe000_0000, pf: "01:00.0".parse().unwrap() };
        assert_eq!(behind_a_port.registers(8), 0xe010_8000);
    }
}
