// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The card as PCI functions: identity, BARs and capabilities of the physical and the virtual functions (V13-001 to V13-013;
//! contract A.1 to A.4).

use arctic_sriov::bar::{Bar, BarError};
use arctic_sriov::capability::Capability;
use arctic_sriov::config::Field;
use arctic_sriov::function::{FunctionError, PciFunction};
use arctic_sriov::header::Identity;
use arctic_sriov::sriov_capability::{SriovError, SriovLayout};

use crate::host::MAX_VFS;

/// BAR that holds registers and GGTT (xe: regs/xe_bars.h).
pub const GTTMMADR_BAR: u8 = 0;
/// BAR that holds local memory (xe: regs/xe_bars.h).
pub const LMEM_BAR: u8 = 2;
/// Size of GTTMMADR in bytes (V13-004).
pub const GTTMMADR_BYTES: u64 = 16 << 20;
/// Offset of the SR-IOV capability of the physical function, the same as on the real card.
pub const SRIOV_CAPABILITY: u16 = 0x320;

/// Offset of VF Resizable BAR.
const VF_RESIZABLE_BAR: u16 = 0x420;
/// Offset of the Express capability of each function.
const EXPRESS: u16 = 0x70;
/// Offset of the MSI capability of each function.
const MSI: u16 = 0xac;

/// The identity of a data center GPU: a display controller that is not VGA compatible. Subsystem 8086:4905 is used by
/// Intel's own DG2 boards.
pub const fn identity(device: u16, revision: u8) -> Identity {
    Identity {
        vendor: 0x8086,
        device,
        revision,
        class: 0x03_80_00,
        subsystem_vendor: 0x8086,
        subsystem: 0x4905,
        serial: 0,
        pin: None,
    }
}

/// The BARs of a function with a BAR for local memory of `local_bytes` (a power of two). Both are prefetchable as on the real
/// card, so that they can be placed above 4 GiB; desktop DG2 cards differ.
fn bars(local_bytes: u64) -> Result<Vec<Bar>, BarError> {
    Ok(vec![Bar::memory_64(GTTMMADR_BAR, GTTMMADR_BYTES, true)?, Bar::memory_64(LMEM_BAR, local_bytes, true)?])
}

/// The capabilities of a VF: MSI, Express with FLR (contract A.4). It has no power management and no SR-IOV.
fn vf_capabilities() -> [Capability; 3] {
    [Capability::express_virtual(EXPRESS), Capability::msi(MSI), Capability::ari(0x100)]
}

/// The physical function, with a BAR for local memory of `local_bytes`, and the SR-IOV capabilities for `vfs` VFs with one of
/// `vf_sizes` bytes each, of which the first is that after reset.
pub(crate) fn physical(
    identity: &Identity,
    local_bytes: u64,
    vfs: u8,
    vf_sizes: &[u64],
) -> Result<PciFunction, FunctionError> {
    if vfs > MAX_VFS {
        return Err(SriovError::TotalVfs(vfs.into()).into());
    }
    // GGC: GGMS = 3, 8 MiB of GGTT entries (i915: intel_ggtt.c, gen8_gmch_probe).
    let device_specific = [Field::word(0x50, 0x00c0)];
    let mut capabilities = vec![
        Capability::express(EXPRESS),
        Capability::msi(MSI),
        Capability::power_management(0xd0),
        // Must be the first extended capability: SR-IOV cannot be at 0x100 (see `PciFunction::read_config_disguised`).
        Capability::serial_number(0x100, identity.serial),
    ];
    if vfs != 0 {
        capabilities.push(Capability::ari(0x200));
    }
    let layout = SriovLayout {
        total_vfs: vfs.into(),
        at: SRIOV_CAPABILITY,
        vf_rebar: VF_RESIZABLE_BAR,
        bars: bars(vf_sizes.first().copied().unwrap_or_default())?,
        resizable: LMEM_BAR,
        sizes: vf_sizes.to_vec(),
    };
    PciFunction::physical(identity, bars(local_bytes)?, &device_specific, capabilities, Some(&layout))
}

/// A virtual function with a BAR for local memory of `local_bytes`. It has no GGC word: stolen memory is visible only to the
/// PF (V13-034), and xe does not look for it.
pub(crate) fn virtual_function(identity: &Identity, local_bytes: u64) -> Result<PciFunction, FunctionError> {
    PciFunction::virtual_function(identity, bars(local_bytes)?, &vf_capabilities())
}

/// The same on a bus with SR-IOV: without BARs.
pub(crate) fn virtual_function_on_bus(identity: &Identity) -> Result<PciFunction, FunctionError> {
    PciFunction::virtual_function_on_bus(identity, &vf_capabilities())
}

#[cfg(test)]
mod tests {
    use arctic_fidelity::proves;

    use super::*;

    const FLEX_170: Identity = identity(0x56c0, 8);

    fn dword(function: &PciFunction, offset: u64) -> u32 {
        let mut data = [0; 4];
        function.read_config(offset, &mut data);
        u32::from_le_bytes(data)
    }

    /// Contract A.1, A.3: the IDs that drivers match, no INTx, the GGC word that i915 reads, and the list of capabilities.
    #[test]
    fn the_physical_function_is_that_of_the_card() {
        proves!(
            [V13_004, V13_009, V13_110, V13_112],
            "GTTMMADR and local memory are the BARs, there is no third one; neither ATS nor PASID is in the list"
        );
        let function = physical(&FLEX_170, 16 << 30, 31, &[512 << 20]).unwrap();
        assert_eq!([0x00, 0x08, 0x2c, 0x3c].map(|at| dword(&function, at)), [0x56c0_8086, 0x0380_0008, 0x4905_8086, 0]);
        assert_eq!(dword(&function, 0x50), 0xc0);
        let bars: Vec<_> = function.bars().iter().map(|bar| (bar.index(), bar.size())).collect();
        assert_eq!(bars, [(GTTMMADR_BAR, 16 << 20), (LMEM_BAR, 16 << 30)]);
        let mut found = Vec::new();
        let mut at = 0x100;
        while at != 0 {
            found.push((at, dword(&function, at) & 0xffff));
            at = u64::from(dword(&function, at) >> 20);
        }
        assert_eq!(found, [(0x100, 0x0003), (0x200, 0x000e), (u64::from(SRIOV_CAPABILITY), 0x0010), (0x420, 0x0024)]);
        assert_eq!((function.total_vfs(), function.vf_bar_address(1, LMEM_BAR)), (31, Some(0)));
        let without = physical(&FLEX_170, 16 << 30, 0, &[512 << 20]).unwrap();
        assert_eq!((without.total_vfs(), dword(&without, 0x100)), (0, 0x0001_0003));
    }

    /// V13-002: at most 63 VFs, because the LMTT directory has 64 entries, of which the first is the PF's.
    #[test]
    fn more_than_63_vfs_are_refused() {
        proves!(V13_002, "63 VFs at most");
        assert_eq!(physical(&FLEX_170, 16 << 30, 63, &[512 << 20]).unwrap().total_vfs(), 63);
        let refused = Some(FunctionError::Sriov(SriovError::TotalVfs(64)));
        assert_eq!(physical(&FLEX_170, 16 << 30, 64, &[512 << 20]).err(), refused);
    }

    /// A memory size in the card file that is not a valid BAR size is an error, not a panic.
    #[test]
    fn impossible_memory_sizes_are_refused() {
        assert!(matches!(physical(&FLEX_170, 3 << 30, 0, &[512 << 20]).err(), Some(FunctionError::Bar(_))));
        assert!(matches!(virtual_function(&FLEX_170, 3 << 20).err(), Some(FunctionError::Bar(_))));
        assert_eq!(virtual_function(&FLEX_170, 1 << 30).unwrap().bars().len(), 2);
        assert_eq!(virtual_function_on_bus(&FLEX_170).unwrap().bars().len(), 0);
    }
}
