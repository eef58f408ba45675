// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Firmware upload: DMA into WOPCM, the boot ROM's checks of the CSS header, and the status read by the driver.

use bitfield_struct::bitfield;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::dma::{Rejection, Transfer};
use crate::generation::{FirmwareInterface, Version};
use crate::gt::Gt;
use crate::memory::{Gam, Space};
use crate::registers::guc::{
    DMA_CTRL, DmaCtrl, GucStatus, GucWopcmSize, SOFT_SCRATCH, UOS_RSA_SCRATCH, UOS_RSA_SCRATCH_DWORDS,
};

pub use crate::registers::guc::GUC_STATUS;

/// Values of [`GucStatus::authentication`].
const AUTH_BAD: u8 = 1;
const AUTH_GOOD: u8 = 2;
/// GUC_STATUS of a running GuC: authenticated, core running, kernel ready, boot ROM jump passed (contract B.4 step
/// 20g).
pub const STATUS_READY: GucStatus = GucStatus::new()
    .with_authentication(AUTH_GOOD)
    .with_core(true)
    .with_kernel(0xf0)
    .with_boot_rom(BootRom::JumpPassed as u8);
/// GUC_STATUS of a GuC in reset.
pub const STATUS_RESET: GucStatus = GucStatus::new().with_in_reset(true);

/// Boot ROM status in GUC_STATUS [7:1] (xe: abi/guc_errors_abi.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum BootRom {
    NoKeyFound = 0x13,
    RsaFailed = 0x50,
    WopcmFailed = 0x74,
    LoadLocationFailed = 0x75,
    JumpPassed = 0x76,
}

/// Kernel status in GUC_STATUS [15:8] if its initialisation fails.
const UKERNEL_INIT_DATA_INVALID: u8 = 0x71;

/// A failed load, with the resulting value of GUC_STATUS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadFailure(GucStatus);

impl LoadFailure {
    /// Returns the failure for an image, source or destination that the boot ROM rejected.
    fn rom(code: BootRom) -> Self {
        LoadFailure(GucStatus::new().with_authentication(AUTH_BAD).with_core(true).with_boot_rom(code as u8))
    }

    /// Returns the failure for a kernel that started with invalid parameters, or with parameters that point to invalid
    /// data.
    pub fn init_data() -> Self {
        LoadFailure(STATUS_READY.with_kernel(UKERNEL_INIT_DATA_INVALID))
    }

    /// Returns the resulting value of GUC_STATUS.
    pub fn status(self) -> GucStatus {
        self.0
    }
}

impl From<Rejection> for LoadFailure {
    /// The status after the DMA engine has rejected the transfer of a kernel.
    fn from(rejection: Rejection) -> Self {
        LoadFailure::rom(match rejection {
            Rejection::Wopcm => BootRom::WopcmFailed,
            Rejection::Location => BootRom::LoadLocationFailed,
        })
    }
}

/// Size of a CSS header in bytes.
const CSS_BYTES: usize = size_of::<CssHeader>();
/// Module type of a micro-controller image.
const CSS_MODULE_UC: u32 = 6;

/// The CSS header in front of a kernel, with the fields that the boot ROM checks (xe: abi/uc_fw_abi.h).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
struct CssHeader {
    module_type: U32,
    header_dwords: U32,
    _version_to_date: [U32; 4],
    image_dwords: U32,
    key_dwords: U32,
    modulus_dwords: U32,
    exponent_dwords: U32,
    _time_to_build: [U32; 6],
    software_version: U32,
    submission_version: U32,
    _reserved: [U32; 14],
}

const _: () = assert!(CSS_BYTES == 128);

impl CssHeader {
    /// Returns whether the sizes in the header match the transferred image (header and kernel, `moved` bytes).
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "sums and products of 32-bit values in 64 bits; the image is longer than the header"
    )]
    fn consistent_with(&self, moved: u32) -> bool {
        let dwords =
            [self.key_dwords, self.modulus_dwords, self.exponent_dwords, self.header_dwords, self.image_dwords];
        let [key, modulus, exponent, header, image] = dwords.map(|dwords| u64::from(dwords.get()));
        let fixed = CSS_BYTES as u64;
        self.module_type == CSS_MODULE_UC
            && header * 4 == fixed + (key + modulus + exponent) * 4
            && image > header
            && (image - header) * 4 + fixed == u64::from(moved)
            && key > 0
            && Version::from(self.software_version.get()) != Version::default()
    }
}

/// The loaded firmware and its parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Firmware {
    /// Release.
    pub release: Version,
    /// Version of the submission interface that is reported to virtual functions.
    pub submission: Version,
    /// SOFT_SCRATCH 1..=14 at the start of the kernel (xe: GUC_CTL_*).
    pub params: [u32; 14],
}

/// Parameter 1: workarounds (xe: GUC_CTL_WA).
#[bitfield(u32)]
struct WorkaroundParameter {
    #[bits(17)]
    __: u32,
    /// Hold compute contexts before they switch out (xe: GUC_WA_HOLD_CCS_SWITCHOUT).
    hold_ccs_switchout: bool,
    #[bits(14)]
    __: u16,
}

/// Parameter 4: the ADS (xe: GUC_CTL_ADS, GUC_ADS_ADDR_SHIFT).
#[bitfield(u32)]
struct AdsParameter {
    __: bool,
    /// GGTT address in pages.
    #[bits(21)]
    page: u32,
    #[bits(10)]
    __: u16,
}

impl Firmware {
    /// Returns the firmware used if there is no PF driver to load one.
    pub fn built_in(interface: &FirmwareInterface) -> Self {
        Firmware { release: interface.release, submission: interface.submission, params: [0; 14] }
    }

    /// Returns the location and section sizes of the log (parameter 0).
    pub fn log(&self) -> u32 {
        self.params[0]
    }

    /// Returns the GGTT address of the ADS.
    pub fn ads(&self) -> u64 {
        u64::from(AdsParameter::from(self.params[4]).page()) << 12
    }

    /// Returns whether compute contexts wait for the GuC before they switch out (contract G.5).
    pub fn holds_compute_switch_out(&self) -> bool {
        WorkaroundParameter::from(self.params[1]).hold_ccs_switchout()
    }
}

/// Returns the end of the GGTT range that the GuC decodes as its own WOPCM; buffers must be above it (V13-182).
pub fn wopcm_top(gt: &Gt) -> u64 {
    gt.registers.fields::<GucWopcmSize>().bytes().into()
}

/// Marks the DMA transfer as complete.
pub fn finish_dma(gt: &Gt) {
    gt.registers.clear_bits(DMA_CTRL, DmaCtrl::new().with_start(true).into());
}

/// Returns whether DMA_CTRL requests a transfer.
pub fn dma_started(gt: &Gt) -> bool {
    gt.registers.fields::<DmaCtrl>().start()
}

/// Checks the image that `transfer` copies into WOPCM as the boot ROM does.
pub fn load(gt: &Gt, gam: &mut Gam<'_>, transfer: Transfer) -> Result<Firmware, LoadFailure> {
    let (from, size) = transfer.image().ok_or(LoadFailure::rom(BootRom::LoadLocationFailed))?;
    boot(gt, gam, from, size).map_err(LoadFailure::rom)
}

#[allow(clippy::arithmetic_side_effects, reason = "registers lie below 4 MiB")]
fn boot(gt: &Gt, gam: &mut Gam<'_>, from: u64, size: u32) -> Result<Firmware, BootRom> {
    let mut css = CssHeader::new_zeroed();
    gam.read(Space::Ggtt, from, css.as_mut_bytes()).map_err(|_| BootRom::LoadLocationFailed)?;
    if !css.consistent_with(size) {
        return Err(BootRom::RsaFailed);
    }
    check_signature(gt, gam, css.key_dwords.get())?;
    let mut params = [0; 14];
    for (at, param) in (1..).zip(params.iter_mut()) {
        *param = gt.registers.value(SOFT_SCRATCH + at * 4);
    }
    let [release, submission] = [css.software_version, css.submission_version].map(|version| version.get().into());
    Ok(Firmware { release, submission, params })
}

/// Checks that a signature is present, in the scratch registers if it fits there, otherwise at the address that they
/// contain (contract B.4 step 20e). The signature cannot be verified, because the key exists only in the hardware.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "UOS_RSA_SCRATCH_DWORDS registers below 4 MiB, or 1024 dwords at a 32-bit address"
)]
fn check_signature(gt: &Gt, gam: &mut Gam<'_>, dwords: u32) -> Result<(), BootRom> {
    let mut any = 0;
    if dwords <= u32::from(UOS_RSA_SCRATCH_DWORDS) {
        for at in 0..dwords {
            any |= gt.registers.value(UOS_RSA_SCRATCH + at * 4);
        }
    } else {
        let address = u64::from(gt.registers.value(UOS_RSA_SCRATCH));
        // Keys are not longer than a page; at most a page is read.
        for at in 0..dwords.min(1024) {
            any |= gam.read_u32(Space::Ggtt, address + u64::from(at) * 4).map_err(|_| BootRom::NoKeyFound)?;
        }
    }
    if any == 0 { Err(BootRom::NoKeyFound) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contract B.4 step 20g: the value that the drivers interpret as "ready".
    #[test]
    fn ready_status() {
        assert_eq!(u32::from(STATUS_READY), 0x8001_f0ec);
        assert_eq!(u32::from(LoadFailure::rom(BootRom::RsaFailed).status()) >> 1 & 0x7f, 0x50);
        assert_eq!(u32::from(LoadFailure::init_data().status()) >> 8 & 0xff, 0x71);
    }

    /// Contract B.4 step 18: the header of the real dg2_guc_70.bin (70.53.0) is consistent with its DMA size.
    #[test]
    fn real_header_sizes() {
        let real = CssHeader {
            module_type: 6.into(),
            header_dwords: 0xe1.into(),
            image_dwords: 0x17531.into(),
            key_dwords: 0x60.into(),
            modulus_dwords: 0x60.into(),
            exponent_dwords: 1.into(),
            software_version: 0x46_3500.into(),
            submission_version: 0x1_1a00.into(),
            ..CssHeader::new_zeroed()
        };
        assert!(real.consistent_with(381_376));
        assert!(!real.consistent_with(381_372));
        assert!(!CssHeader { software_version: 0.into(), ..real }.consistent_with(381_376));
        assert!(!CssHeader { module_type: 4.into(), ..real }.consistent_with(381_376));
        assert!(!CssHeader { key_dwords: u32::MAX.into(), ..real }.consistent_with(381_376));
        assert_eq!(Version::from(real.software_version.get()), Version { major: 70, minor: 53, patch: 0 });
    }
}
