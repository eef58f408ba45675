// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The GuC's registers: status, scratch, DMA, WOPCM, mailboxes, notification (contract B.4, B.6; V13-184..195).

use bitfield_struct::bitfield;

use super::Kind::{self, ReadOnly};
use super::{Bits, ClockRegister, Live, Register, ResetRegister, STORED, array, card_fields, register};
use crate::doorbell::DoorbellRegister;

/// GDRST. The other bits reset engines ([`EngineInfo::reset`](crate::topology::EngineInfo::reset)).
pub const GDRST: u32 = 0x941c;

/// GDRST (xe: XEHP GRDOM; i915: intel_engine_cs.c get_reset_domain).
#[bitfield(u32)]
pub struct Gdrst {
    /// All units.
    pub full: bool,
    #[bits(2)]
    __: u8,
    /// The GuC.
    pub guc: bool,
    #[bits(28)]
    __: u32,
}

/// GUC_STATUS.
pub const GUC_STATUS: u32 = 0xc000;

/// GUC_STATUS.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct GucStatus {
    /// The core is held in reset.
    pub in_reset: bool,
    /// Status of the boot ROM.
    #[bits(7)]
    pub boot_rom: u8,
    /// Status of the kernel.
    pub kernel: u8,
    /// The core runs.
    pub core: bool,
    #[bits(13)]
    __: u16,
    /// 1 if authentication failed, 2 if it succeeded.
    #[bits(2)]
    pub authentication: u8,
}

/// GUC_WOPCM_SIZE.
pub const GUC_WOPCM_SIZE: u32 = 0xc050;
/// GUC_WOPCM_SIZE.
#[bitfield(u32)]
pub struct GucWopcmSize {
    /// The register is locked.
    pub locked: bool,
    #[bits(11)]
    __: u16,
    /// Size of the WOPCM in pages.
    #[bits(20)]
    pages: u32,
}

impl GucWopcmSize {
    /// Returns the size of the WOPCM in bytes.
    pub const fn bytes(self) -> u32 {
        self.pages() << 12
    }
}

/// HUC_KERNEL_LOAD_INFO: state of the HuC.
pub const HUC_KERNEL_LOAD_INFO: u32 = 0xc1dc;
/// DMA_GUC_WOPCM_OFFSET.
pub const DMA_GUC_WOPCM_OFFSET: u32 = 0xc340;
/// GUC_WOPCM_SIZE: locked. DMA_GUC_WOPCM_OFFSET: valid.
pub const LOCKED: Bits = Bits::bit(0);

/// SOFT_SCRATCH.
pub const SOFT_SCRATCH: u32 = 0xc180;
/// UOS_RSA_SCRATCH.
pub const UOS_RSA_SCRATCH: u32 = 0xc200;
/// Number of dwords of [`UOS_RSA_SCRATCH`].
pub const UOS_RSA_SCRATCH_DWORDS: u16 = 64;

/// DMA_ADDR_0, low and high dword.
pub const DMA_ADDR_0: u32 = 0xc300;
/// DMA_ADDR_1, low and high dword.
pub const DMA_ADDR_1: u32 = 0xc308;

/// DMA_ADDR, high dword.
#[bitfield(u32)]
pub struct DmaAddressHigh {
    /// Bits 47:32 of the address.
    pub address: u16,
    /// Address space (V13-187).
    #[bits(5)]
    pub space: u8,
    #[bits(11)]
    __: u16,
}

/// DMA_COPY_SIZE.
pub const DMA_COPY_SIZE: u32 = 0xc310;
/// DMA_CTRL.
pub const DMA_CTRL: u32 = 0xc314;

/// DMA_CTRL.
#[bitfield(u32)]
pub struct DmaCtrl {
    /// Starts the transfer, and reads 1 while it is in progress.
    pub start: bool,
    /// Address 1 is the source (V13-188).
    pub reverse: bool,
    #[bits(2)]
    __: u8,
    /// The transfer loads the GuC's kernel.
    pub kernel: bool,
    #[bits(27)]
    __: u32,
}

/// BOOT_HASH_CHK: which loads were attempted.
pub const BOOT_HASH_CHK: u32 = 0xc010;
/// First of the page directory pointers for transfers in PPGTT memory, low and high dword (V13-193).
pub const DMA_PDP0: u32 = 0xc3c0;
/// GUC_PPGTT_ENABLE.
pub const PPGTT_ENABLE: u32 = 0xc3f0;
/// GUC_PPGTT_ENABLE: transfers may use PPGTT memory. The bit is chosen by the model.
pub const PPGTT_ENABLED: Bits = Bits::bit(0);
/// GUC_TO_HOST_INTERRUPT: interrupts the host with these bits of the GuC's vector.
pub const GUC_TO_HOST_INTERRUPT: u32 = 0xc4b8;
/// Bits of the GuC's vector that belong to the firmware: software interrupts 0 to 6 and the message to the host (xe:
/// regs/xe_guc_regs.h). The hardware sets the others.
pub const FIRMWARE_INTERRUPTS: u16 = 0x807f;
/// GUC_SEND_INTERRUPT.
pub const GUC_SEND_INTERRUPT: u32 = 0xc4c8;
/// GUC_HOST_INTERRUPT_DATA: the last value written to [`GUC_SEND_INTERRUPT`].
pub const GUC_HOST_INTERRUPT_DATA: u32 = 0xc590;
/// VF_SW_FLAG: first dword of the mailbox.
pub const VF_SW_FLAG: u32 = 0x19_0240;
/// Number of dwords of the mailbox.
pub const VF_SW_FLAGS: u16 = 4;

card_fields! {
    GucWopcmSize GUC_WOPCM_SIZE;
    DmaCtrl DMA_CTRL;
}

/// Type of a register of the GuC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GucRegister {
    /// WOPCM base and size: the first write sets bit 0 (locked, valid), later ones are ignored (contract B.4).
    WopcmLock {
        /// Writable bits.
        mask: u32,
    },
    /// DMA control: masked; bit 0 starts a transfer and reads 0 once it is complete.
    Dma,
    /// GUC_HOST_INTERRUPT: notifies the GuC of a request in the mailbox or in the CT buffers (xe: xe_guc_notify).
    HostInterrupt,
    /// GUC_SEND_INTERRUPT: like [`GucRegister::HostInterrupt`], with a value for the GuC (V13-206).
    SendInterrupt,
    /// GUC_TO_HOST_INTERRUPT: sends firmware events to the host (V13-207).
    ToHost,
}

const fn guc(register: GucRegister) -> Kind<Live> {
    Kind::Live(Live::Guc(register))
}

const fn doorbell(register: DoorbellRegister) -> Kind<Live> {
    Kind::Live(Live::Doorbell(register))
}

const TIMESTAMP: Kind<Live> = Kind::Live(Live::Clock(ClockRegister::Timestamp));

/// The register table.
pub const TABLE: &[Register] = &[
    register(GDRST, "GDRST", Kind::Live(Live::Reset(ResetRegister::Gdrst)), 0, "contract B.4, G.1"),
    register(
        GUC_STATUS,
        "GUC_STATUS",
        ReadOnly,
        GucStatus::new().with_in_reset(true).into_bits(),
        "contract B.4; xe: regs/xe_guc_regs.h",
    ),
    // Bit 8: a load of the HuC was attempted (V13-184). It is loaded from power-on, see HUC_KERNEL_LOAD_INFO.
    register(BOOT_HASH_CHK, "BOOT_HASH_CHK", ReadOnly, 0x100, "V13-184; xe: regs/xe_guc_regs.h"),
    register(0xc014, "GUC_HEADER_INFO", ReadOnly, 0, "xe: regs/xe_guc_regs.h"),
    register(
        GUC_WOPCM_SIZE,
        "GUC_WOPCM_SIZE",
        guc(GucRegister::WopcmLock { mask: 0xffff_f000 }),
        0,
        "contract B.4; xe: xe_wopcm.c",
    ),
    register(0xc064, "GUC_SHIM_CONTROL", STORED, 0, "contract B.4; xe: regs/xe_guc_regs.h"),
    // Bit 30: the HuC is loaded by the GSC, as on every DG2.
    register(0xc068, "GUC_SHIM_CONTROL2", Kind::Storage(0xbfff_ffff), 0x4000_0000, "contract G.4"),
    array(SOFT_SCRATCH, "SOFT_SCRATCH", STORED, 0, (16, 4), "contract B.4; xe: regs/xe_guc_regs.h"),
    // Bit 0: loaded. The HuC is loaded from power-on, so that no driver waits for a GSC that does not exist.
    register(HUC_KERNEL_LOAD_INFO, "HUC_KERNEL_LOAD_INFO", ReadOnly, 1, "contract G.4; xe: regs/xe_guc_regs.h"),
    array(
        UOS_RSA_SCRATCH,
        "UOS_RSA_SCRATCH",
        STORED,
        0,
        (UOS_RSA_SCRATCH_DWORDS, 4),
        "contract B.4; xe: regs/xe_guc_regs.h",
    ),
    array(DMA_ADDR_0, "DMA_ADDR", STORED, 0, (4, 4), "V13-187: ADDR_0 low, high, ADDR_1 low, high"),
    register(DMA_COPY_SIZE, "DMA_COPY_SIZE", STORED, 0, "V13-187"),
    register(DMA_CTRL, "DMA_CTRL", guc(GucRegister::Dma), 0, "V13-187; contract B.4"),
    register(
        DMA_GUC_WOPCM_OFFSET,
        "DMA_GUC_WOPCM_OFFSET",
        guc(GucRegister::WopcmLock { mask: 0xffff_c002 }),
        0,
        "contract B.4, G.4",
    ),
    register(0xc398, "GUC_SRAM_STATUS", ReadOnly, 0, "xe: regs/xe_guc_regs.h"),
    array(0xc3b8, "GUC_DMA_PPGTT", STORED, 0, (10, 4), "V13-193: CTXT_INFO and PDP0..3, 0xc3b8 .. 0xc3dc"),
    register(0xc3e4, "GUC_MAX_IDLE_COUNT", STORED, 0, "xe: regs/xe_guc_regs.h"),
    array(0xc3e8, "GUC_PMTIMESTAMP", TIMESTAMP, 0, (2, 4), "contract K.4; xe: regs/xe_guc_regs.h"),
    register(PPGTT_ENABLE, "GUC_PPGTT_ENABLE", STORED, 0, "V13-193"),
    register(GUC_TO_HOST_INTERRUPT, "GUC_TO_HOST_INTERRUPT", guc(GucRegister::ToHost), 0, "V13-207"),
    register(
        GUC_SEND_INTERRUPT,
        "GUC_SEND_INTERRUPT",
        guc(GucRegister::SendInterrupt),
        0,
        "V13-206; xe: regs/xe_guc_regs.h",
    ),
    register(0xc50c, "GUC_INTR_CHICKEN", STORED, 0, "xe: regs/xe_guc_regs.h"),
    array(0xc550, "GUC_IER", STORED, 0, (4, 4), "xe: regs/xe_guc_regs.h"),
    register(GUC_HOST_INTERRUPT_DATA, "GUC_HOST_INTERRUPT_DATA", ReadOnly, 0, "V13-206"),
    register(0xc71c, "GUC_SEM_INTR_ENABLES", STORED, 0, "contract G.4; i915: intel_guc_reg.h"),
    register(0xd3b0, "HUC_STATUS2", ReadOnly, 0x80, "V13-184; bit 7 verified"),
    register(0xef00, "MAIN_GAMCTRL_MODE", STORED, 0, "xe: xe_guc.c"),
    register(0x19_01f0, "GUC_HOST_INTERRUPT", guc(GucRegister::HostInterrupt), 0, "contract B.6").per_function(),
    array(VF_SW_FLAG, "VF_SW_FLAG", STORED, 0, (VF_SW_FLAGS, 4), "contract B.6, C.2").per_function(),
    // The doorbell block. No public document or driver defines the fields of the physical doorbells or the offsets of
    // the last two registers here, so the model chooses them. The offsets are in a gap of the GuC's interrupt block.
    array(0x1900, "GTI_DOORBELL_STATUS", doorbell(DoorbellRegister::Status), 0, (8, 4), "V13-087, V13-097"),
    array(
        0xc5a0,
        "GUC_DB_ISR",
        doorbell(DoorbellRegister::InterruptStatus),
        0,
        (8, 4),
        "V13-088, V13-100; offset chosen by the model",
    ),
    register(
        0xc5c0,
        "DOORBELL_CTRL",
        doorbell(DoorbellRegister::Control),
        0,
        "V13-099, V13-100; offset and bits chosen by the model",
    ),
    array(
        0x3f_f000,
        "DOORBELL_ADDRESS",
        doorbell(DoorbellRegister::Address),
        0,
        (256, 8),
        "V13-093, V13-094; bits chosen by the model, bit 0 as DRB_VALID in xe: regs/xe_guc_regs.h",
    ),
    array(
        0x3f_f004,
        "DOORBELL_FUNCTION",
        doorbell(DoorbellRegister::Function),
        0,
        (256, 8),
        "V13-093, V13-094; bits chosen by the model",
    ),
];
