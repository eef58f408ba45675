// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Observation (OA): the control registers that drivers write during probe; the counters do not run (contract E.9).

use super::Kind::{self, Masked};
use super::{Register, STORED, array, register};

/// The register table.
pub const TABLE: &[Register] = &[
    register(0xd04, "RPM_CONFIG1", STORED, 0, "contract E.9; xe: regs/xe_oa_regs.h"),
    register(0x2b00, "OACONTROL", STORED, 0, "V13-052"),
    register(0x2960, "OAR_OACONTROL", STORED, 0, "xe: regs/xe_oa_regs.h"),
    register(0x2968, "OAR_OASTATUS", STORED, 0, "xe: regs/xe_oa_regs.h"),
    register(0x2b28, "OAG_OAGLBCTXCTRL", STORED, 0, "contract E.9; xe: regs/xe_oa_regs.h"),
    register(0x1_5114, "OAC_OACONTROL", STORED, 0, "xe: regs/xe_oa_regs.h"),
    register(0xdaf4, "OAG_OACONTROL", STORED, 0, "contract E.9; xe: regs/xe_oa_regs.h"),
    register(0xdaf8, "OAG_OA_DEBUG", Masked, 0, "contract E.9; xe: regs/xe_oa_regs.h"),
    register(0xdafc, "OAG_OASTATUS", STORED, 0, "contract E.9; xe: regs/xe_oa_regs.h"),
    array(0xdb00, "OAG_OAHEADPTR", STORED, 0, (2, 4), "contract E.9; head, tail"),
    register(0xdb08, "OAG_OABUFFER", STORED, 0, "contract E.9; xe: regs/xe_oa_regs.h"),
    register(0xdb1c, "OAG_MMIOTRIGGER", Kind::ReadOnly, 0, "contract E.9; no report is made"),
    register(0xe458, "EU_PERF_CNTL0", STORED, 0, "V13-256"),
    register(0xe45c, "EU_PERF_CNTL4", STORED, 0, "V13-256"),
    register(0xe558, "EU_PERF_CNTL1", STORED, 0, "V13-256"),
    register(0xe55c, "EU_PERF_CNTL5", STORED, 0, "V13-256"),
    register(0xe658, "EU_PERF_CNTL2", STORED, 0, "V13-256"),
    register(0xe65c, "EU_PERF_CNTL6", STORED, 0, "V13-256"),
    register(0xe758, "EU_PERF_CNTL3", STORED, 0, "V13-256"),
];
