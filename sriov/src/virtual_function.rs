// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Virtual functions, both as an ordinary function in a guest and as exposed by a VMM next to the physical function.

use crate::bar::{BAR0, Bar};
use crate::capability::Capability;
use crate::config::Reset;
use crate::event::{Events, MsiMessage};
use crate::function::{FunctionError, PciFunction};
use crate::header::{COMMAND, Command, INTERRUPT_PIN, Identity};
use crate::register::Register;
use crate::registers::MsiControl;
use arctic_number::size;

const EXPANSION_ROM: u16 = 0x30;

impl PciFunction {
    /// A virtual function as an ordinary function: with the identity of its PF, and BARs of the size of the VF BARs.
    ///
    /// BARs and memory space are controlled by the PF and survive the VF's own FLR (V13-116).
    #[allow(clippy::arithmetic_side_effects, reason = "the BAR registers lie below 0x28")]
    pub fn virtual_function(
        identity: &Identity,
        bars: Vec<Bar>,
        capabilities: &[Capability],
    ) -> Result<Self, FunctionError> {
        // VFs have no pin (PCIe 9.3.4.1.14).
        let identity = Identity { pin: None, ..*identity };
        let mut function = Self::new(&identity, bars, &[], capabilities)?;
        function.config.set_sticky(COMMAND, Command::new().with_memory_space(true).value());
        for bar in &function.bars {
            for register in (bar.index()..).take(bar.kind().registers().into()) {
                function.config.set_sticky(BAR0 + 4 * u16::from(register), !0);
            }
        }
        Ok(function)
    }

    /// The same function as seen on its bus by SR-IOV aware software: IDs read all ones, so that a bus scan does not
    /// find it (PCIe 9.3.4.1.1, 9.3.4.1.2). It has no BARs; in its command register only Bus Master Enable is writable
    /// (PCIe 9.3.4.1.3). BAR addresses come from the PF's capability ([`PciFunction::vf_bar_address`]).
    pub fn virtual_function_on_bus(identity: &Identity, capabilities: &[Capability]) -> Result<Self, FunctionError> {
        let identity = Identity { vendor: 0xffff, device: 0xffff, pin: None, ..*identity };
        let mut function = Self::new(&identity, Vec::new(), &[], capabilities)?;
        function.config.set_writable(COMMAND, Command::new().with_bus_master(true).value());
        Ok(function)
    }
}

/// Command, status, revision, BARs: the bytes of a disabled VF that accept writes.
const PLACING: std::ops::Range<u64> = 0x04..0x28;

/// A virtual function as QEMU exposes it next to the physical function: an ordinary function for the VMM, which the
/// guest's PCI core must recognise as a VF.
///
/// QEMU does not support VFs here and treats this as any other function. The differences, and the reasons for them:
/// - **IDs**: short reads of bytes 0 to 3 return all ones, as for a VF on the bus (PCIe 9.3.4.1.1, 9.3.4.1.2), so that
///   a bus scan does not find it. The guest's PCI core creates the device from the PF's SR-IOV capability. QEMU's
///   single bulk read of the space returns the real IDs, because QEMU rejects a function with vendor ID ffff.
/// - **While VF Enable is clear**, short reads return all ones and writes are dropped (V13-016). The exceptions are the
///   short reads that QEMU itself performs when it sets up or resets a function (`VMM_READS`); these precede any VF
///   enabling by the guest.
/// - **BARs and memory space** are writable even while VF Enable is clear. The guest does not program a VF's BARs, but
///   QEMU uses these registers for its mappings. The card therefore writes them through the VM's ECAM region, when VF
///   Enable and VF MSE are set and after one of them was cleared. A VF that is not enabled does not decode its BARs
///   ([`VfConfigShim::decodes`]).
/// - **Memory space** reads back as written, although it is hardwired to 0 in a VF: guests save the command register
///   before an FLR and restore it, and with a 0 QEMU would unmap the BARs.
/// - **Bus mastering** cannot be enabled before VF Enable: a disabled VF must not send requests.
pub struct VfConfigShim {
    function: PciFunction,
    enabled: bool,
    memory_space: bool,
}

/// Offsets and widths of QEMU's own reads, besides that of MSI control, made independently of guest accesses: type bits of BARs (vfio_bar_prepare);
/// size of the expansion ROM (vfio_pci_size_rom; all ones would mean 2 KiB); the interrupt pin (vfio_intx_enable; a
/// nonzero value would disable the mappings of the BARs); MSI control (vfio_msi_setup; all ones would mean 128
/// vectors); the command register (vfio_pci_pre_reset, which writes back the value it reads).
const VMM_READS: [(u64, usize); 9] = [
    (0x10, 4),
    (0x14, 4),
    (0x18, 4),
    (0x1c, 4),
    (0x20, 4),
    (0x24, 4),
    (EXPANSION_ROM as u64, 4),
    (INTERRUPT_PIN as u64, 1),
    (COMMAND as u64, 2),
];

impl VfConfigShim {
    /// Wraps `function`, initially disabled.
    pub fn new(function: PciFunction) -> Self {
        VfConfigShim { function, enabled: false, memory_space: false }
    }

    /// The wrapped function.
    pub fn function(&self) -> &PciFunction {
        &self.function
    }

    /// Reads configuration space. Guest accesses and QEMU's bulk read are distinguished by width.
    pub fn read_config(&self, offset: u64, data: &mut [u8]) {
        if !self.enabled {
            return self.read_disabled(offset, data);
        }
        self.read_enabled(offset, data);
    }

    /// Reads configuration space as while VF Enable is clear.
    pub fn read_disabled(&self, offset: u64, data: &mut [u8]) {
        let access = (offset, data.len());
        let msi_control =
            self.function.msi.map(|msi| (u64::from(msi.saturating_add(MsiControl::AT)), MsiControl::BYTES));
        if data.len() <= 4 && !VMM_READS.contains(&access) && msi_control != Some(access) {
            data.fill(0xff);
            return;
        }
        self.read_enabled(offset, data);
    }

    fn read_enabled(&self, offset: u64, data: &mut [u8]) {
        let short = data.len() <= 4;
        self.function.read_config(offset, data);
        let ids = size(4_u64.saturating_sub(offset).min(data.len() as u64));
        if short {
            data.iter_mut().take(ids).for_each(|byte| *byte = 0xff);
        }
    }

    /// Writes configuration space. While VF Enable is clear, only Memory Space Enable and the BARs are written.
    pub fn write_config(&mut self, offset: u64, data: &[u8]) -> Events {
        if self.enabled {
            return self.function.write_config(offset, data);
        }
        // Large enough for the largest write to these registers.
        let mut placing = [0; size(PLACING.end - PLACING.start)];
        let start = offset.max(PLACING.start);
        let written = data.iter().skip(size(start.saturating_sub(offset)));
        let mut len = 0_usize;
        for ((at, byte), written) in (start..PLACING.end).zip(&mut placing).zip(written) {
            *byte = match at {
                0x04 => *written & Command::new().with_memory_space(true).into_bits().to_le_bytes()[0],
                0x05 => 0,
                _ => *written,
            };
            len = len.saturating_add(1);
        }
        self.function.write_config(start, placing.get(..len).unwrap_or_default())
    }

    /// Follows the PF's VF Enable: a VF starts in reset state and disappears when the bit is cleared. BAR addresses are
    /// preserved, because QEMU's copy of them is too.
    pub fn set_enabled(&mut self, enabled: bool) -> Events {
        if self.enabled == enabled {
            return Events::default();
        }
        self.enabled = enabled;
        self.memory_space &= enabled;
        self.function.change(|function| function.reset_config(Reset::FunctionLevel))
    }

    /// Follows the PF's VF MSE ([`crate::event::Event::VfMemorySpace`]).
    pub fn set_memory_space(&mut self, on: bool) {
        self.memory_space = on && self.enabled;
    }

    /// Conventional reset. QEMU resets each function of the VM separately and discards the BAR addresses. VF Enable is
    /// not affected: it belongs to the PF and is cleared by the PF's reset (V13-114).
    pub fn reset(&mut self) -> Events {
        self.function.reset()
    }

    /// Returns whether VF Enable is set for this function.
    pub fn enabled(&self) -> bool {
        self.enabled
    }

    /// Returns whether the BARs are decoded. Depends on the PF's VF Enable and VF MSE, not on the VF's command register
    /// (PCIe 9.3.4.1.3).
    pub fn decodes(&self) -> bool {
        self.enabled && self.memory_space
    }

    /// Returns whether the function may send memory requests.
    pub fn bus_master(&self) -> bool {
        self.enabled && self.function.bus_master()
    }

    /// Returns the message to send for an interrupt, see [`PciFunction::raise_msi`].
    pub fn raise_msi(&mut self, vector: u16) -> Option<MsiMessage> {
        self.function.raise_msi(vector).filter(|_| self.enabled)
    }
}

#[cfg(test)]
mod tests;
