// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The two windows of the graphics system controller: HECI1 (GSC) and HECI2 (GSCFI) (contract G.9).

use super::Kind::{self, Live as L};
use super::Live::{self, Heci};
use super::{Register, array, register};

/// A dword of a HECI window: 0 for GSC, 1 for GSCFI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeciWindow(pub u8);

const GSC: Kind<Live> = L(Heci(HeciWindow(0)));
const GSCFI: Kind<Live> = L(Heci(HeciWindow(1)));
const SOURCE: &str = "contract G.9; mei: hw-me-regs.h";

/// The register table.
pub const TABLE: &[Register] = &[
    array(0x37_3000, "GSC_HECI_BUFFERS", GSC, 0, (5, 4), SOURCE),
    array(0x37_3100, "GSC_EXT_OP_MEM", GSC, 0, (3, 4), SOURCE),
    register(0x37_3800, "GSC_H_D0I3C", GSC, 0, SOURCE),
    register(0x37_3c40, "GSC_HFS_1", GSC, 0, SOURCE),
    register(0x37_3c48, "GSC_HFS_2", GSC, 0, SOURCE),
    array(0x37_3c60, "GSC_HFS_3_6", GSC, 0, (4, 4), SOURCE),
    array(0x37_4000, "GSCFI_HECI_BUFFERS", GSCFI, 0, (5, 4), SOURCE),
    array(0x37_4100, "GSCFI_EXT_OP_MEM", GSCFI, 0, (3, 4), SOURCE),
    register(0x37_4800, "GSCFI_H_D0I3C", GSCFI, 0, SOURCE),
    register(0x37_4c40, "GSCFI_HFS_1", GSCFI, 0, SOURCE),
    register(0x37_4c48, "GSCFI_HFS_2", GSCFI, 0, SOURCE),
    array(0x37_4c60, "GSCFI_HFS_3_6", GSCFI, 0, (4, 4), SOURCE),
];
