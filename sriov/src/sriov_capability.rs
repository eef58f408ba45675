// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The SR-IOV extended capability of the physical function and its companion, VF Resizable BAR (PCIe 9.3.3, 9.3.7.5;
//! V13-001, V13-002, V13-016; contract A.3, A.4, D.4).
//!
//! Writes that the specification leaves undefined have one defined outcome here:
//! - NumVFs, System Page Size, ARI Capable Hierarchy and the VF BAR size cannot be changed while VF Enable is set. The
//!   value of VF Enable before the write decides.
//! - VF Enable with NumVFs 0 or above TotalVFs is stored and enables no VF.
//! - A System Page Size that is not exactly one supported page size, or an unsupported VF BAR size, is ignored.

use bitfield_struct::bitfield;

use crate::bar::{BAR_REGISTERS, Bar, BarError, BarKind};
use crate::capability::{Capability, ID_SRIOV, ID_VF_RESIZABLE_BAR};
use crate::config::{ConfigSpace, Field};
use crate::part::PartId;
use crate::register::{Register, registers};
use crate::reverted::RevertedWrites;
use arctic_number::{high, low};

/// Maximum number of virtual functions: with an offset and a stride of 1, those for which the PF's bus has addresses.
pub const MOST_VFS: u16 = 255;

/// Routing ID offset from the PF to VF 1. VFs have consecutive routing IDs on the PF's bus, as the driver expects (xe:
/// xe_pci_sriov_get_vf_pdev).
pub const FIRST_VF_OFFSET: u16 = 1;
/// Routing ID offset from one VF to the next.
pub const VF_STRIDE: u16 = 1;

/// Offset of SR-IOV Control in the SR-IOV capability.
pub const SRIOV_CONTROL: u16 = 0x08;
/// Offset of InitialVFs, followed by TotalVFs.
pub const INITIAL_VFS: u16 = 0x0c;
/// Offset of NumVFs, the number of VFs to enable.
pub const NUM_VFS: u16 = 0x10;
/// Offset of System Page Size, a bit mask with one bit set: the page size is 4 KiB shifted by its position.
pub const SYSTEM_PAGE_SIZE: u16 = 0x20;
/// Offset of VF BAR 0.
pub const VF_BAR0: u16 = 0x24;
/// Size in bytes of the SR-IOV capability.
pub const SRIOV_BYTES: u16 = 0x40;

/// SR-IOV Capabilities.
#[bitfield(u32)]
pub struct SriovCapabilities {
    __: bool,
    /// ARI Capable Hierarchy is preserved in D3hot. Must be set even if No_Soft_Reset is set.
    pub ari_preserved: bool,
    #[bits(30)]
    __: u32,
}

/// SR-IOV Control.
#[bitfield(u16)]
pub struct SriovControl {
    /// VF Enable.
    pub vf_enable: bool,
    #[bits(2)]
    __: u8,
    /// VF Memory Space Enable.
    pub vf_memory_space: bool,
    /// ARI Capable Hierarchy.
    pub ari_capable_hierarchy: bool,
    #[bits(11)]
    __: u16,
}

/// VF Resizable BAR Capability.
#[bitfield(u32)]
pub struct VfRebarCapability {
    #[bits(4)]
    __: u8,
    /// Supported sizes, from 1 MiB in bit 0 to 128 TiB.
    #[bits(28)]
    pub sizes: u32,
}

/// VF Resizable BAR Control.
#[bitfield(u32)]
pub struct VfRebarControl {
    /// BAR Index.
    #[bits(3)]
    pub index: u8,
    #[bits(2)]
    __: u8,
    /// Number of Resizable BARs.
    #[bits(3)]
    pub bars: u8,
    /// BAR Size: 1 MiB shifted by this value.
    #[bits(6)]
    pub size: u8,
    #[bits(18)]
    __: u32,
}

registers! {
    SriovCapabilities: u32 at 0x04;
    SriovControl: u16 at SRIOV_CONTROL;
    VfRebarCapability: u32 at 0x04;
    VfRebarControl: u32 at VF_REBAR_CONTROL;
}

/// 4 KiB, 8 KiB, 64 KiB, 256 KiB, 1 MiB and 4 MiB: mandatory for every device. No VF BAR is smaller than any of these.
const SUPPORTED_PAGE_SIZES: u32 = 0x553;

/// Offset of the VF Resizable BAR control register in its capability.
pub const VF_REBAR_CONTROL: u16 = 0x08;
const MIB_SHIFT: u32 = 20;
/// The largest size that the capability register can encode, 128 TiB, as a shift of 1 MiB.
const VF_REBAR_LARGEST: u32 = 27;

/// SR-IOV configuration of a physical function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SriovLayout {
    /// TotalVFs, up to [`MOST_VFS`]; 0 omits the capability.
    pub total_vfs: u16,
    /// Offset of the SR-IOV capability; not 0x100 (see [`read_config_disguised`](crate::function::PciFunction::read_config_disguised)).
    pub at: u16,
    /// Offset of the VF Resizable BAR capability.
    pub vf_rebar: u16,
    /// The VF BARs, of one VF, with their sizes after reset: 64-bit memory.
    pub bars: Vec<Bar>,
    /// Index of the VF BAR whose size software selects with VF Resizable BAR.
    pub resizable: u8,
    /// Supported sizes of that BAR in bytes, powers of two of at least 1 MiB. Must contain only the size after reset if the
    /// VMM does not support resizing.
    pub sizes: Vec<u64>,
}

/// Invalid SR-IOV configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SriovError {
    /// More VFs than the function can have.
    #[error("{0} VFs requested: more than the function can have")]
    TotalVfs(u16),
    /// A VF BAR size that VF Resizable BAR cannot encode.
    #[error("invalid VF BAR size {0:#x}: must be a power of two of at least 1 MiB")]
    Size(u64),
    /// The VF BAR size after reset is not among the supported sizes.
    #[error("the VF BAR size {0:#x} is not among the supported sizes")]
    NotOffered(u64),
    /// The VF BAR with this index is not 64-bit memory.
    #[error("VF BAR {0} is not 64-bit memory")]
    Kind(u8),
    /// The resizable VF BAR is not one of the VF BARs.
    #[error("the resizable VF BAR {0} is not one of the VF BARs")]
    Resizable(u8),
    /// A size that no BAR can have.
    #[error(transparent)]
    Bar(#[from] BarError),
}

/// A VF BAR as programmed by software. The BARs of all VFs are contiguous.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VfBar {
    /// Index of the BAR.
    pub index: u8,
    /// Bus address of this BAR of VF 1.
    pub address: u64,
    /// Size in bytes of this BAR of one VF.
    pub size: u64,
}

impl VfBar {
    /// Bus address of this BAR of VF `vf`, counted from 1. `None` for 0 or beyond the end of the address space.
    pub fn window(&self, vf: u16) -> Option<u64> {
        self.address.checked_add(self.size.checked_mul(u64::from(vf).checked_sub(1)?)?)
    }
}

/// The parts of the saved state that belong to SR-IOV, in the order in which they are restored.
pub(crate) const SRIOV_PARTS: [PartId; 2] = [PartId::Extended(ID_VF_RESIZABLE_BAR), PartId::Extended(ID_SRIOV)];

/// Maximum number of VF BARs, which are 64-bit BARs.
pub(crate) const MAX_VF_BARS: usize = BAR_REGISTERS as usize / 2;

/// Capability state that has an effect outside configuration space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SriovState {
    /// Number of enabled virtual functions.
    pub vfs: u16,
    /// Whether the virtual functions decode their BARs.
    pub memory_space: bool,
    pub bars: [VfBar; MAX_VF_BARS],
}

/// Register values before a write, for the checks that follow it.
#[derive(Clone, Copy)]
pub(crate) struct BeforeWrite {
    control: SriovControl,
    num_vfs: u16,
    page_size: u32,
    vf_rebar: VfRebarControl,
}

/// The capability in a function's configuration space: its offset and its fixed parameters.
pub(crate) struct Sriov {
    at: u16,
    vf_rebar: u16,
    total_vfs: u16,
    bars: Vec<Bar>,
    /// Index of the resizable VF BAR.
    resizable: u8,
    /// Bit n: the resizable VF BAR supports 1 MiB << n.
    sizes: u32,
}

/// Encodes a size for Resizable BAR.
fn rebar_size(bytes: u64) -> Result<u8, SriovError> {
    let shift = bytes.checked_ilog2().filter(|_| bytes.is_power_of_two()).and_then(|log2| log2.checked_sub(MIB_SHIFT));
    let shift = shift.filter(|shift| *shift <= VF_REBAR_LARGEST).and_then(|shift| u8::try_from(shift).ok());
    shift.ok_or(SriovError::Size(bytes))
}

impl Sriov {
    /// Builds the SR-IOV and the VF Resizable BAR capability, for VFs with this device ID. `None` without VFs.
    pub fn new(layout: &SriovLayout, device: u16) -> Result<Option<(Self, [Capability; 2])>, SriovError> {
        match layout.total_vfs {
            0 => return Ok(None),
            1..=MOST_VFS => {}
            more => return Err(SriovError::TotalVfs(more)),
        }
        let SriovLayout { total_vfs, at, vf_rebar, ref bars, resizable, ref sizes } = *layout;
        if let Some(bar) = bars.iter().find(|bar| !matches!(bar.kind(), BarKind::Memory64 { .. })) {
            return Err(SriovError::Kind(bar.index()));
        }
        let sizes = sizes.iter().try_fold(0_u32, |mask, size| rebar_size(*size).map(|n| mask | 1 << n))?;
        let bytes = bars.iter().find(|bar| bar.index() == resizable).map(Bar::size);
        let bytes = bytes.ok_or(SriovError::Resizable(resizable))?;
        let size = rebar_size(bytes)?;
        if sizes & 1 << size == 0 {
            return Err(SriovError::NotOffered(bytes));
        }
        let control =
            SriovControl::new().with_vf_enable(true).with_vf_memory_space(true).with_ari_capable_hierarchy(true);
        let mut body = vec![
            // No VF migration (removed from the specification), no 10-bit tags for VFs.
            Field::register(SriovCapabilities::new().with_ari_preserved(true)),
            Field::register(SriovControl::new()).writable(control.value()),
            // Status: has only VF migration bits.
            Field::word(0x0a, 0),
            // InitialVFs equals TotalVFs because migration is not supported.
            Field::word(INITIAL_VFS, total_vfs),
            Field::word(INITIAL_VFS + 2, total_vfs),
            Field::word(NUM_VFS, 0).writable(0xffff),
            // Function Dependency Link: the PF's own number, which means no dependency.
            Field::byte(0x12, 0),
            Field::word(0x14, FIRST_VF_OFFSET),
            Field::word(0x16, VF_STRIDE),
            Field::word(0x1a, device),
            Field::dword(0x1c, SUPPORTED_PAGE_SIZES),
            Field::dword(SYSTEM_PAGE_SIZE, 1).writable(SUPPORTED_PAGE_SIZES),
            // VF Migration State Array Offset.
            Field::dword(0x3c, 0),
        ];
        body.extend(bars.iter().flat_map(|bar| bar.fields_at(vf_bar_register(0, bar.index()))));
        let rebar_control = VfRebarControl::new().with_index(resizable).with_bars(1).with_size(size);
        let rebar = [
            Field::register(VfRebarCapability::new().with_sizes(sizes)),
            Field::register(rebar_control).writable(VfRebarControl::new().with_size(0x3f).value()),
        ];
        let capabilities = [
            Capability::extended(ID_SRIOV, 1, at, body),
            Capability::extended(ID_VF_RESIZABLE_BAR, 1, vf_rebar, rebar),
        ];
        Ok(Some((Sriov { at, vf_rebar, total_vfs, bars: bars.clone(), resizable, sizes }, capabilities)))
    }

    /// TotalVFs.
    pub fn total_vfs(&self) -> u16 {
        self.total_vfs
    }

    /// Number of enabled virtual functions; 0 while VF Enable is clear or NumVFs is invalid (V13-016).
    #[allow(clippy::arithmetic_side_effects, reason = "capabilities lie below 4096, and there are at most 255 VFs")]
    pub fn vfs(&self, config: &ConfigSpace) -> u16 {
        let enabled = self.control(config).vf_enable();
        let num_vfs = config.word(self.at + NUM_VFS);
        if enabled && num_vfs <= self.total_vfs { num_vfs } else { 0 }
    }

    /// The VF BARs as currently programmed.
    #[allow(clippy::arithmetic_side_effects, reason = "capabilities lie below 4096, and a BAR has at least 4096 bytes")]
    pub fn bars(&self, config: &ConfigSpace) -> impl Iterator<Item = VfBar> {
        self.bars.iter().map(|bar| {
            let register = self.register(bar.index());
            let [low, high] = [config.dword(register), config.dword(register + 4)].map(u64::from);
            let size = if bar.index() == self.resizable { self.resized_bytes(config) } else { bar.size() };
            VfBar { index: bar.index(), address: (high << 32 | low) & !(size - 1), size }
        })
    }

    /// Current capability state. VFs have no separate power state and follow the PF's (`awake`: the PF is in D0).
    pub fn state(&self, config: &ConfigSpace, awake: bool) -> SriovState {
        let vfs = self.vfs(config);
        let enabled = self.control(config).vf_memory_space();
        let mut state = SriovState { vfs, memory_space: vfs != 0 && enabled && awake, ..SriovState::default() };
        for (slot, bar) in state.bars.iter_mut().zip(self.bars(config)) {
            *slot = bar;
        }
        state
    }

    /// The registers that [`Sriov::revert_forbidden`] compares with those after a write.
    #[allow(clippy::arithmetic_side_effects, reason = "capabilities lie below 4096")]
    pub fn before_write(&self, config: &ConfigSpace) -> BeforeWrite {
        BeforeWrite {
            control: self.control(config),
            num_vfs: config.word(self.at + NUM_VFS),
            page_size: config.dword(self.at + SYSTEM_PAGE_SIZE),
            vf_rebar: config.register(self.vf_rebar),
        }
    }

    /// Reverts changes that a write is not allowed to make, and adds them to `reverted`. `before` is the state before the
    /// write.
    #[allow(clippy::arithmetic_side_effects, reason = "capabilities lie below 4096")]
    pub fn revert_forbidden(&self, config: &mut ConfigSpace, before: &BeforeWrite, reverted: &mut RevertedWrites) {
        let locked = before.control.vf_enable();
        if locked {
            let mask = SriovControl::new().with_ari_capable_hierarchy(true);
            reverted.revert_register(config, "ARI Capable Hierarchy", self.at, mask, before.control);
            reverted.revert(config, "NumVFs", (self.at + NUM_VFS, 0xffff), before.num_vfs.into());
        }
        if locked || !config.dword(self.at + SYSTEM_PAGE_SIZE).is_power_of_two() {
            reverted.revert(config, "System Page Size", (self.at + SYSTEM_PAGE_SIZE, !0), before.page_size);
        }
        if locked || self.sizes.checked_shr(self.rebar_field(config)).unwrap_or(0) & 1 == 0 {
            let mask = VfRebarControl::new().with_size(0x3f);
            reverted.revert_register(config, "VF BAR Size", self.vf_rebar, mask, before.vf_rebar);
        }
        self.resize(config);
    }

    /// Fails with the offset of a register if it has a value that no write can give it. Must be called when registers
    /// were replaced; sets the writable bits of the resizable VF BAR.
    #[allow(clippy::arithmetic_side_effects, reason = "capabilities lie below 4096")]
    pub fn check(&self, config: &mut ConfigSpace) -> Result<(), u16> {
        if self.sizes.checked_shr(self.rebar_field(config)).unwrap_or(0) & 1 == 0 {
            return Err(self.vf_rebar + VF_REBAR_CONTROL);
        }
        if !config.dword(self.at + SYSTEM_PAGE_SIZE).is_power_of_two() {
            return Err(self.at + SYSTEM_PAGE_SIZE);
        }
        self.resize(config);
        Ok(())
    }

    /// Sets the writable bits of the resizable VF BAR for its current size, after a write or a reset.
    #[allow(clippy::arithmetic_side_effects, reason = "capabilities lie below 4096, and a BAR has at least 4096 bytes")]
    pub fn resize(&self, config: &mut ConfigSpace) {
        let mask = !(self.resized_bytes(config) - 1);
        let register = self.register(self.resizable);
        config.set_writable(register, low(mask));
        config.set_writable(register + 4, high(mask));
    }

    fn register(&self, bar: u8) -> u16 {
        vf_bar_register(self.at, bar)
    }

    fn control(&self, config: &ConfigSpace) -> SriovControl {
        config.register(self.at)
    }

    /// BAR Size of VF Resizable BAR Control: 1 MiB shifted by this value.
    fn rebar_field(&self, config: &ConfigSpace) -> u32 {
        config.register::<VfRebarControl>(self.vf_rebar).size().into()
    }

    /// Current size of the resizable VF BAR.
    fn resized_bytes(&self, config: &ConfigSpace) -> u64 {
        1 << MIB_SHIFT << self.rebar_field(config).min(VF_REBAR_LARGEST)
    }
}

/// Offset of the register of VF BAR `bar` in configuration space, for a capability at `at`.
#[allow(clippy::arithmetic_side_effects, reason = "capabilities lie below 4096, and there are six BAR registers")]
fn vf_bar_register(at: u16, bar: u8) -> u16 {
    at + VF_BAR0 + 4 * u16::from(bar)
}

#[cfg(test)]
mod tests;
