// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Finds the configuration space window of the PF's guest, and the PF in it.
//!
//! Guest memory or another device may be at the address of a wrong window. So nothing is written before the PF was
//! recognised: by its IDs, and by the current contents of the VF BAR registers in its SR-IOV capability, which the guest
//! has written.

use arctic_device_model::pci::SRIOV_CAPABILITY;
use arctic_sriov::header::Identity;
use arctic_sriov::sriov_capability::VF_BAR0;

use super::{BarAddresses, Ecam, PciAddress};
use crate::vfio_user::DmaError;

/// Where the firmware of QEMU's q35 machine puts the window: SeaBIOS and OVMF of 2019 to 2022, and OVMF since then
/// (edk2: PcdPciExpressBaseAddress).
const KNOWN: [u64; 2] = [0xb000_0000, 0xe000_0000];

/// Offset of the registers of VF BARs 0 to 3 in the PF's configuration space.
const VF_BARS: u64 = SRIOV_CAPABILITY as u64 + VF_BAR0 as u64;
/// Type bits of a BAR register.
const TYPE: u64 = 0xf;

/// Why the window was not found, or not written, or why a write to it had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum WindowError {
    /// A message failed.
    #[error(transparent)]
    Dma(#[from] DmaError),
    /// The PF is in none of the windows.
    #[error("the PF is not at its address there")]
    NoPf,
    /// The search was stopped, because it took too long or because the window may have moved.
    #[error("the PF was not found in time")]
    Stopped,
    /// The client has confirmed a write, but the VF's registers do not have the values that were written.
    #[error("the registers do not follow confirmed writes")]
    NoEffect,
}

/// Result of a read of guest memory.
type Read = Result<(), WindowError>;

/// How the PF is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pf {
    pub identity: Identity,
    /// The VF BARs in its SR-IOV capability.
    pub vf_bars: BarAddresses,
}

impl Pf {
    /// Returns whether the function with registers at guest address `at` is this PF.
    fn is_at(&self, at: u64, read: &mut impl FnMut(u64, &mut [u8]) -> Read) -> Result<bool, WindowError> {
        let (mut ids, mut registers) = ([0; 4], [0; 16]);
        read(at, &mut ids)?;
        let expected = u32::from(self.identity.device) << 16 | u32::from(self.identity.vendor);
        if u32::from_le_bytes(ids) != expected {
            return Ok(false);
        }
        read(at.wrapping_add(VF_BARS), &mut registers)?;
        let found = registers.as_chunks().0.iter().map(|bar| u64::from_le_bytes(*bar) & !TYPE);
        Ok(found.eq(self.vf_bars))
    }
}

/// The windows that are tried, without repetition: the configured one, then those of known firmware.
pub(super) fn windows(configured: u64) -> impl Iterator<Item = u64> {
    std::iter::once(configured).chain(KNOWN.into_iter().filter(move |base| *base != configured))
}

/// The addresses at which the PF is looked for: its configured one, that in the printed arguments of earlier versions, and,
/// if it is behind a root port, the same device and function of each other bus, since the guest's firmware numbers buses.
fn addresses(configured: PciAddress) -> impl Iterator<Item = PciAddress> {
    let others = (1..=u8::MAX).filter(move |_| configured.bus != 0).map(move |bus| PciAddress { bus, ..configured });
    let further = std::iter::once(PciAddress::PF).chain(others);
    std::iter::once(configured).chain(further.filter(move |address| *address != configured))
}

/// Locates `pf` at one of its [`addresses`], in the configured window or in that of known firmware. `read` reads guest
/// memory; any error of it but a refusal ends the search. A window that the client refuses to read is not there.
pub(super) fn locate(
    configured: Ecam,
    pf: &Pf,
    mut read: impl FnMut(u64, &mut [u8]) -> Read,
) -> Result<Ecam, WindowError> {
    let mut error = WindowError::NoPf;
    for base in windows(configured.base) {
        for address in addresses(configured.pf) {
            let candidate = Ecam { base, pf: address };
            match pf.is_at(candidate.registers(0), &mut read) {
                Ok(true) => return Ok(candidate),
                Ok(false) => {}
                Err(refused @ WindowError::Dma(DmaError::Refused(_))) => error = refused,
                Err(other) => return Err(other),
            }
        }
    }
    Err(error)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

    use super::*;

    const BASES: [u64; 4] = [0xb000_0000, 0xe000_0000, 0xc000_0000, 0x8000_0000];

    fn pf() -> Pf {
        Pf { identity: arctic_device_model::pci::identity(0x56c0, 8), vf_bars: [0x10_0000_0000, 0x20_0000_0000] }
    }

    fn configured(base: u64) -> Ecam {
        Ecam { base, pf: "00:10.0".parse().unwrap() }
    }

    /// A guest with a function that has `vf_bars`, at guest address `there`; elsewhere reads are refused or return ones.
    fn guest(there: u64, vf_bars: BarAddresses, refuses: bool) -> impl FnMut(u64, &mut [u8]) -> Read {
        move |at, data| {
            let mut space = [0xff; 4096];
            space[..4].copy_from_slice(&0x56c0_8086_u32.to_le_bytes());
            for (n, bar) in vf_bars.iter().enumerate() {
                space[VF_BARS as usize + 8 * n..][..8].copy_from_slice(&(bar | 0xc).to_le_bytes());
            }
            match at.checked_sub(there).filter(|offset| *offset < 4096) {
                Some(offset) => data.copy_from_slice(&space[offset as usize..][..data.len()]),
                None if refuses => return Err(DmaError::Refused(19).into()),
                None => data.fill(0xff),
            }
            Ok(())
        }
    }

    #[test]
    fn pf_is_found_in_the_windows_of_known_firmware() {
        for base in BASES {
            for there in KNOWN {
                for refuses in [false, true] {
                    let found = locate(configured(base), &pf(), guest(there + 0x8_0000, pf().vf_bars, refuses));
                    assert_eq!(found, Ok(configured(there)), "{base:#x} {there:#x}");
                    let found = locate(configured(base), &pf(), guest(there + 0x8000, pf().vf_bars, refuses));
                    assert_eq!(found, Ok(Ecam { base: there, pf: PciAddress::PF }), "{base:#x}: earlier versions");
                }
            }
        }
        let elsewhere = locate(configured(0xc000_0000), &pf(), guest(0xc008_0000, pf().vf_bars, true));
        assert_eq!(elsewhere, Ok(configured(0xc000_0000)), "a window that only the user knows");
    }

    /// The firmware of a guest with other bridges gives the port's bus another number than 1.
    #[test]
    fn pf_behind_a_root_port_is_found_on_any_bus() {
        let behind = |bus| Ecam { base: 0xb000_0000, pf: PciAddress { bus, device: 0, function: 0 } };
        for bus in [1, 2, 14, 255] {
            let there = 0xb000_0000 + (u64::from(bus) << 20);
            assert_eq!(locate(behind(1), &pf(), guest(there, pf().vf_bars, true)), Ok(behind(bus)), "{bus}");
        }
        let on_root_bus = locate(configured(0xb000_0000), &pf(), guest(0xb018_0000, pf().vf_bars, true));
        assert_eq!(on_root_bus, Err(DmaError::Refused(19).into()), "a PF that is configured on the root bus");
    }

    #[test]
    fn without_the_pf_no_window_is_returned() {
        let nothing = |refuses| locate(configured(0xb000_0000), &pf(), guest(0x1000, pf().vf_bars, refuses));
        assert_eq!(nothing(false), Err(WindowError::NoPf));
        assert_eq!(nothing(true), Err(DmaError::Refused(19).into()));
        let other = locate(configured(0xb000_0000), &pf(), guest(0xb008_0000, [0; 2], false));
        assert_eq!(other, Err(WindowError::NoPf), "the IDs are there, but the VF BARs differ: another card, or a copy");
        for error in [DmaError::NoAnswer.into(), WindowError::Stopped] {
            let mut reads = 0;
            let gone = locate(configured(0xb000_0000), &pf(), |_, _| {
                reads += 1;
                Err(error)
            });
            assert_eq!((gone, reads), (Err(error), 1), "the search ends");
        }
    }
}
