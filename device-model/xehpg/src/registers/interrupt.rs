// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers of the interrupt tree (contract B.10, V13-278..285).

use super::Kind::{self, ReadOnly, Write1Clear};
use super::{Live, Register, STORED, array, register};

/// Type of a register of the interrupt tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InterruptRegister {
    /// DG1_MSTR_TILE_INTR (V13-278).
    MasterTile,
    /// GFX_MSTR_IRQ (V13-279).
    MasterGt,
    /// GT_INTR_DW of bank = ordinal (V13-268).
    Bank,
    /// INTR_IDENTITY_REG of bank = ordinal (V13-270).
    Identity,
    /// IIR_REG_SELECTOR of bank = ordinal (V13-269).
    Selector,
    /// Interrupt enables of a class (V13-265).
    Enable,
    /// Interrupt masks of one or two instances (V13-266).
    Mask,
}

const fn interrupt(register: InterruptRegister) -> Kind<Live> {
    Kind::Live(Live::Interrupt(register))
}

/// Interrupt mask of the PCU.
pub const PCU_IMR: u32 = 0x4_44e4;
/// The block of the tree's registers.
pub const TREE: std::ops::Range<u32> = 0x19_0000..0x19_0200;

const ENABLE: Kind<Live> = interrupt(InterruptRegister::Enable);
const MASK: Kind<Live> = interrupt(InterruptRegister::Mask);

/// The register table. Each function has its own tree except the tile's register, which only the PF has (V13-262). The
/// blocks PCU and GU_MISC are storage only: no unit raises them on a card without display.
pub const TABLE: &[Register] = &[
    register(0x4_44e0, "PCU_ISR", ReadOnly, 0, "V13-285"),
    register(PCU_IMR, "PCU_IMR", STORED, 0xffff_ffff, "V13-285; contract B.3"),
    register(0x4_44e8, "PCU_IIR", Write1Clear(!0), 0, "V13-285; contract B.3"),
    register(0x4_44ec, "PCU_IER", STORED, 0, "V13-285; contract B.3"),
    register(0x4_44f0, "GU_MISC_ISR", ReadOnly, 0, "contract B.3"),
    register(0x4_44f4, "GU_MISC_IMR", STORED, 0xffff_ffff, "contract B.3"),
    register(0x4_44f8, "GU_MISC_IIR", Write1Clear(!0), 0, "contract B.3"),
    register(0x4_44fc, "GU_MISC_IER", STORED, 0, "contract B.3"),
    register(0x19_0008, "DG1_MSTR_TILE_INTR", interrupt(InterruptRegister::MasterTile), 0, "V13-278; contract B.10"),
    register(0x19_0010, "GFX_MSTR_IRQ", interrupt(InterruptRegister::MasterGt), 0, "V13-279; contract B.10")
        .per_function(),
    array(0x19_0018, "GT_INTR_DW", interrupt(InterruptRegister::Bank), 0, (2, 4), "V13-280").per_function(),
    register(0x19_0030, "RENDER_COPY_INTR_ENABLE", ENABLE, 0, "contract B.10").per_function(),
    register(0x19_0034, "VCS_VECS_INTR_ENABLE", ENABLE, 0, "contract B.10").per_function(),
    register(0x19_0038, "GUC_SG_INTR_ENABLE", ENABLE, 0, "contract B.10").per_function(),
    register(0x19_003c, "GPM_WGBOXPERF_INTR_ENABLE", ENABLE, 0, "contract B.3").per_function(),
    register(0x19_0040, "CRYPTO_RSVD_INTR_ENABLE", STORED, 0, "contract B.3; nothing raises these sources")
        .per_function(),
    register(0x19_0044, "GUNIT_GSC_INTR_ENABLE", ENABLE, 0, "contract B.10").per_function(),
    register(0x19_0048, "CCS_RSVD_INTR_ENABLE", ENABLE, 0, "contract B.10").per_function(),
    array(0x19_0060, "INTR_IDENTITY_REG", interrupt(InterruptRegister::Identity), 0, (2, 4), "V13-270, V13-280")
        .per_function(),
    array(0x19_0070, "IIR_REG_SELECTOR", interrupt(InterruptRegister::Selector), 0, (2, 4), "V13-269, V13-280")
        .per_function(),
    register(0x19_0090, "RCS0_RSVD_INTR_MASK", MASK, 0, "contract B.10").per_function(),
    register(0x19_00a0, "BCS_RSVD_INTR_MASK", MASK, 0, "contract B.10").per_function(),
    array(0x19_00a8, "VCS_INTR_MASK", MASK, 0, (4, 4), "contract B.10; VCS0_VCS1 .. VCS6_VCS7").per_function(),
    array(0x19_00d0, "VECS_INTR_MASK", MASK, 0, (2, 4), "contract B.10; VECS0_VECS1, VECS2_VECS3").per_function(),
    register(0x19_00e4, "HECI2_RSVD_INTR_MASK", STORED, 0, "contract B.3; nothing raises this source").per_function(),
    register(0x19_00e8, "GUC_SG_INTR_MASK", MASK, 0, "contract B.10").per_function(),
    register(0x19_00ec, "GPM_WGBOXPERF_INTR_MASK", MASK, 0, "contract B.3").per_function(),
    register(0x19_00f0, "CRYPTO_RSVD_INTR_MASK", STORED, 0, "contract B.3; nothing raises these sources")
        .per_function(),
    register(0x19_00f4, "GUNIT_GSC_INTR_MASK", MASK, 0, "contract B.10").per_function(),
    array(0x19_0100, "CCS_INTR_MASK", MASK, 0, (2, 4), "contract B.10; CCS0_CCS1, CCS2_CCS3").per_function(),
];
