// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Start of the firmware: the boot ROM's checks of the image that the DMA engine has copied into WOPCM, the parameters,
//! and the status that the driver reads.

use arctic_sriov::number::size;
use bitfield_struct::bitfield;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::generation::Version;
use crate::gt::Gt;
use crate::guc::load::dma::Rejection;
use crate::memory::{Gam, Space};
use crate::profile::GucVersions;
use crate::registers::guc::{GucStatus, GucWopcmSize, SOFT_SCRATCH, UOS_RSA_SCRATCH, UOS_RSA_SCRATCH_DWORDS};

/// Values of [`GucStatus::authentication`].
const AUTH_BAD: u8 = 1;
const AUTH_GOOD: u8 = 2;
/// GUC_STATUS of a running GuC: authenticated, core running, kernel ready, boot ROM jump passed (contract B.4 step
/// 20g).
pub const STATUS_READY: GucStatus = GucStatus::new()
    .with_authentication(AUTH_GOOD)
    .with_core(true)
    .with_kernel(UKERNEL_READY)
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

/// Kernel status in GUC_STATUS [15:8] (xe: abi/guc_errors_abi.h, XE_GUC_LOAD_STATUS_*): it runs.
const UKERNEL_READY: u8 = 0xf0;
/// Kernel status: its initialisation failed.
const UKERNEL_INIT_DATA_INVALID: u8 = 0x71;

/// Number of parameters of the kernel (xe: GUC_CTL_MAX_DWORDS).
const PARAMETERS: usize = 14;
/// Dwords of a signature that are read at most, those of a page. The signatures of the drivers' files have at most 96.
const MAX_SIGNATURE_DWORDS: usize = 1024;

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
    fn consistent_with(&self, moved: usize) -> bool {
        let dwords =
            [self.key_dwords, self.modulus_dwords, self.exponent_dwords, self.header_dwords, self.image_dwords];
        let [key, modulus, exponent, header, image] = dwords.map(|dwords| u64::from(dwords.get()));
        let fixed = CSS_BYTES as u64;
        self.module_type == CSS_MODULE_UC
            && header * 4 == fixed + (key + modulus + exponent) * 4
            && image > header
            && (image - header) * 4 + fixed == moved as u64
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
    pub params: [u32; PARAMETERS],
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
    pub fn built_in(GucVersions { release, abi }: GucVersions) -> Self {
        Firmware { release, submission: abi, params: [0; PARAMETERS] }
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

/// Checks the kernel as the boot ROM does. `image` is what the DMA engine has copied into WOPCM: header and kernel.
///
/// # Errors
/// If header, signature or parameters are invalid; with the resulting value of GUC_STATUS.
pub fn load(gt: &Gt, gam: &mut Gam<'_>, image: &[u8]) -> Result<Firmware, LoadFailure> {
    boot(gt, gam, image).map_err(LoadFailure::rom)
}

#[allow(clippy::arithmetic_side_effects, reason = "registers lie below 4 MiB")]
fn boot(gt: &Gt, gam: &mut Gam<'_>, image: &[u8]) -> Result<Firmware, BootRom> {
    let (css, _) = CssHeader::read_from_prefix(image).map_err(|_| BootRom::RsaFailed)?;
    if !css.consistent_with(image.len()) {
        return Err(BootRom::RsaFailed);
    }
    check_signature(gt, gam, css.key_dwords.get())?;
    let mut params = [0; PARAMETERS];
    for (at, param) in (1..).zip(params.iter_mut()) {
        *param = gt.registers.value(SOFT_SCRATCH + at * 4);
    }
    let [release, submission] =
        [css.software_version, css.submission_version].map(|version| Version::from(version.get()));
    // Drivers of VFs enable features by it, and it is this interface that they use.
    let interface = gt.generation.firmware;
    let honoured = submission < interface.submissions.end || submission.major != interface.submission.major;
    let submission = if honoured { submission } else { interface.submission };
    Ok(Firmware { release, submission, params })
}

/// Checks that a signature of `dwords` is present: in the scratch registers if it fits there, otherwise at the GGTT
/// address in the first of them (contract B.4 step 20e). The signature cannot be verified, because the key exists only
/// in the hardware.
#[allow(clippy::arithmetic_side_effects, reason = "UOS_RSA_SCRATCH_DWORDS registers below 4 MiB")]
fn check_signature(gt: &Gt, gam: &mut Gam<'_>, dwords: u32) -> Result<(), BootRom> {
    let present = if dwords <= u32::from(UOS_RSA_SCRATCH_DWORDS) {
        (0..dwords).any(|at| gt.registers.value(UOS_RSA_SCRATCH + at * 4) != 0)
    } else {
        let address = u64::from(gt.registers.value(UOS_RSA_SCRATCH));
        let mut signature = [U32::ZERO; MAX_SIGNATURE_DWORDS];
        let length = size_of_val(&signature).min(size(u64::from(dwords)).saturating_mul(size_of::<U32>()));
        let bytes = signature.as_mut_bytes().get_mut(..length).ok_or(BootRom::NoKeyFound)?;
        gam.read(Space::Ggtt, address, bytes).map_err(|_| BootRom::NoKeyFound)?;
        signature.iter().any(|dword| *dword != 0)
    };
    if present { Ok(()) } else { Err(BootRom::NoKeyFound) }
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros;

    use super::*;

    /// Contract B.4 step 20g: the value that the drivers interpret as "ready".
    #[test]
    fn guc_status_of_ready_and_failed_firmware_has_the_drivers_values() {
        assert_eq!(u32::from(STATUS_READY), 0x8001_f0ec);
        assert_eq!(u32::from(LoadFailure::rom(BootRom::RsaFailed).status()), 0x4001_00a0);
        assert_eq!(u32::from(LoadFailure::init_data().status()), 0x8001_71ec);
    }

    /// Contract B.4 step 18: the header of the real dg2_guc_70.bin (70.53.0) is consistent with its DMA size.
    #[test]
    fn css_header_is_accepted_only_if_its_sizes_match_the_transfer() {
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
        // An image that is not longer than its header, and one without a key.
        assert!(!CssHeader { image_dwords: real.header_dwords, ..real }.consistent_with(128));
        assert!(!CssHeader { image_dwords: 0.into(), ..real }.consistent_with(128));
        let without_key = CssHeader { header_dwords: 0x81.into(), key_dwords: 0.into(), ..real };
        assert!(!without_key.consistent_with((0x17531 - 0x81) * 4 + 128));
        assert_eq!(Version::from(real.software_version.get()), Version { major: 70, minor: 53, patch: 0 });
    }
}
