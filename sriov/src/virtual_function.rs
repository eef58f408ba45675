//! Virtual functions: as a function of its own in a guest, and as a VMM shows it beside its physical function.

use crate::bar::Bar;
use crate::capability::Capability;
use crate::config::Reset;
use crate::function::{Events, FunctionError, GTTMMADR_BAR, GTTMMADR_BYTES, LMEM_BAR, MsiMessage, PciFunction};
use crate::header::{COMMAND, COMMAND_BUS_MASTER, COMMAND_MEMORY_SPACE, Identity};

/// Express capability of a virtual function.
const EXPRESS: u16 = 0x70;
/// MSI capability of a virtual function.
const MSI: u16 = 0xac;
const INTERRUPT_PIN: u16 = 0x3d;
const EXPANSION_ROM: u16 = 0x30;

impl PciFunction {
    /// A virtual function of the card with a window onto its local memory of `lmem_bytes` (a power of two): the PF's
    /// identity, BARs of the size of the VF BARs, MSI, Express with FLR (contract A.4). No power management, no
    /// SR-IOV, and no GGC word: only the PF sees that stolen memory exists (V13-034), and xe does not look for it.
    ///
    /// BARs and memory space are the PF's to give and survive the VF's own FLR (V13-116).
    pub fn virtual_function(identity: &Identity, lmem_bytes: u64) -> Result<Self, FunctionError> {
        let bars =
            vec![Bar::memory_64(GTTMMADR_BAR, GTTMMADR_BYTES, true)?, Bar::memory_64(LMEM_BAR, lmem_bytes, true)?];
        let capabilities = [Capability::express_virtual(EXPRESS), Capability::msi(MSI), Capability::ari(0x100)];
        let mut function = Self::new(identity, bars, &[], &capabilities)?;
        function.config.set_sticky(COMMAND, COMMAND_MEMORY_SPACE.into());
        for register in [GTTMMADR_BAR, LMEM_BAR].map(|bar| 0x10 + 4 * u16::from(bar)) {
            function.config.set_sticky(register, !0);
            function.config.set_sticky(register + 4, !0);
        }
        Ok(function)
    }

    /// The same function as its bus shows it where VFs are VFs: IDs read all ones, so that no scan of the bus finds it
    /// (PCIe 9.3.4.1.1, 9.3.4.1.2), it has no BARs of its own, and of its command register only Bus Master Enable can be
    /// written (PCIe 9.3.4.1.3); where its windows are says the PF's capability ([`PciFunction::vf_bar_address`]).
    pub fn virtual_function_on_bus(identity: &Identity) -> Result<Self, FunctionError> {
        let identity = Identity { vendor: 0xffff, device: 0xffff, ..*identity };
        let capabilities = [Capability::express_virtual(EXPRESS), Capability::msi(MSI), Capability::ari(0x100)];
        let mut function = Self::new(&identity, Vec::new(), &[], &capabilities)?;
        function.config.set_writable(COMMAND, COMMAND_BUS_MASTER.into());
        Ok(function)
    }
}

/// Command, status, revision, BARs: the bytes that a disabled VF takes writes to.
const PLACING: std::ops::Range<u64> = 0x04..0x28;

/// A virtual function as QEMU shows it beside its physical function: an ordinary function of the VMM that the guest's
/// PCI core must take for a VF.
///
/// QEMU knows nothing of VFs here; it treats this as any function. What is particular, and why:
/// - **IDs**: short reads of bytes 0 to 3 give all ones, as a VF's do on the bus (PCIe 9.3.4.1.1, 9.3.4.1.2), so that
///   no bus scan finds it; the guest's core makes the device from the PF's SR-IOV capability. QEMU's one bulk read of
///   the space has the real IDs, as it refuses a function with vendor ffff.
/// - **While VF Enable is clear** there is nothing to answer: short reads give all ones and writes are dropped
///   (V13-016). Except what QEMU itself reads by short accesses when it sets a function up or resets it
///   (`VMM_READS`), which happens before any guest could enable a VF.
/// - **BARs and memory space** are written before VF Enable as well. No guest programs a VF's BARs, and yet QEMU maps
///   by them, so the card itself writes them through the machine's ECAM window; that costs milliseconds a VF, hence
///   it is done ahead of time, and a VF that is not enabled does not answer there ([`VfFace::decodes`]).
/// - **Memory space** reads back as written, although a VF's own bit is hardwired to 0: guests save the command
///   register before an FLR and write it back, and with a 0 there QEMU would unmap the BARs.
/// - **Bus mastering** cannot be switched on before VF Enable: a function that does not exist sends nothing.
pub struct VfFace {
    function: PciFunction,
    enabled: bool,
    memory_space: bool,
}

/// Offsets and widths by which QEMU reads a function outside of any guest's access: type bits of BARs (vfio_bar_prepare)
/// and size of the expansion ROM (vfio_pci_size_rom, all ones would be one of 2 KiB); the interrupt pin
/// (vfio_intx_enable, not zero would take the BARs' mappings away); MSI control (vfio_msi_setup, all ones would be 128
/// vectors); the command register (vfio_pci_pre_reset, which writes back what it read).
const VMM_READS: [(u64, usize); 10] = [
    (0x10, 4),
    (0x14, 4),
    (0x18, 4),
    (0x1c, 4),
    (0x20, 4),
    (0x24, 4),
    (EXPANSION_ROM as u64, 4),
    (INTERRUPT_PIN as u64, 1),
    (MSI as u64 + 2, 2),
    (COMMAND as u64, 2),
];

impl VfFace {
    /// The face of `function`, which is disabled at first.
    pub fn new(function: PciFunction) -> Self {
        VfFace { function, enabled: false, memory_space: false }
    }

    /// The function behind the face.
    pub fn function(&self) -> &PciFunction {
        &self.function
    }

    /// Reads configuration space: the guest's accesses and QEMU's own, which differ by width.
    pub fn read_config(&self, offset: u64, data: &mut [u8]) {
        let short = data.len() <= 4;
        if short && !self.enabled && !VMM_READS.contains(&(offset, data.len())) {
            data.fill(0xff);
            return;
        }
        self.function.read_config(offset, data);
        let ids = 4_u64.saturating_sub(offset).min(data.len() as u64) as usize;
        if short {
            data[..ids].fill(0xff);
        }
    }

    /// Writes configuration space; while VF Enable is clear only what places the BARs.
    pub fn write_config(&mut self, offset: u64, data: &[u8]) -> Events {
        if self.enabled {
            return self.function.write_config(offset, data);
        }
        // A buffer for the largest write that can reach the registers in question.
        let mut placing = [0; (PLACING.end - PLACING.start) as usize];
        let start = offset.max(PLACING.start);
        let end = offset.saturating_add(data.len() as u64).min(PLACING.end);
        if start >= end {
            return Events::default();
        }
        let part = &mut placing[..(end - start) as usize];
        part.copy_from_slice(&data[(start - offset) as usize..(end - offset) as usize]);
        for (n, byte) in part.iter_mut().enumerate() {
            match start + n as u64 {
                0x04 => *byte &= COMMAND_MEMORY_SPACE as u8,
                0x05 => *byte = 0,
                _ => {}
            }
        }
        self.function.write_config(start, part)
    }

    /// VF Enable of the PF: a VF begins out of reset and is gone with the bit; where its BARs are stays, since QEMU's
    /// copy of them does.
    pub fn set_enabled(&mut self, enabled: bool) -> Events {
        if self.enabled == enabled {
            return Events::default();
        }
        self.enabled = enabled;
        self.memory_space &= enabled;
        self.function.change(|function| function.reset_config(Reset::FunctionLevel))
    }

    /// VF MSE of the PF ([`crate::function::Event::VfMemorySpace`]).
    pub fn set_memory_space(&mut self, on: bool) {
        self.memory_space = on && self.enabled;
    }

    /// Conventional reset: QEMU resets each function of the machine by itself, and has lost the BARs then. VF Enable
    /// is the PF's, whose own reset clears it (V13-114).
    pub fn reset(&mut self) -> Events {
        self.function.reset()
    }

    /// Whether VF Enable is set for this function.
    pub fn enabled(&self) -> bool {
        self.enabled
    }

    /// Whether the BARs answer: by VF Enable and VF MSE of the PF, not by the VF's command register (PCIe 9.3.4.1.3).
    pub fn decodes(&self) -> bool {
        self.enabled && self.memory_space
    }

    /// Whether the function may send memory requests.
    pub fn bus_master(&self) -> bool {
        self.enabled && self.function.bus_master()
    }

    /// The message to send for an interrupt, see [`PciFunction::raise_msi`].
    pub fn raise_msi(&mut self, vector: u16) -> Option<MsiMessage> {
        self.function.raise_msi(vector).filter(|_| self.enabled)
    }
}

#[cfg(test)]
mod tests;
