// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Names of the command processor's GPU registers on a6xx and a7xx: 0x800 to 0xbff and 0xd600 to 0xd701 of the domain A6XX
//! in Mesa 25.0.7, src/freedreno/registers/adreno/a6xx.xml. The GPU registers of other units, those of the older domain AXXX,
//! which Mesa's tools search too, and those of a5xx have no names here.

use super::{Name, Width};

const fn word(number: u16, name: &'static str) -> Name {
    Name { number, name, width: Width::Word }
}

const fn double(number: u16, name: &'static str) -> Name {
    Name { number, name, width: Width::Double }
}

const fn array(number: u16, name: &'static str, length: u16) -> Name {
    Name { number, name, width: Width::Array(length) }
}

const fn unnamed(number: u16, name: &'static str, length: u16) -> Name {
    Name { number, name, width: Width::Unnamed(length) }
}

/// Both tables in one, in order of the numbers.
const fn merge<const LENGTH: usize>(left: &[Name], right: &[Name]) -> [Name; LENGTH] {
    let mut merged = [word(0, ""); LENGTH];
    let (mut from_left, mut from_right) = (0, 0);
    while from_left + from_right < LENGTH {
        let is_left =
            from_right == right.len() || from_left < left.len() && left[from_left].number < right[from_right].number;
        merged[from_left + from_right] = if is_left { left[from_left] } else { right[from_right] };
        if is_left {
            from_left += 1;
        } else {
            from_right += 1;
        }
    }
    merged
}

/// GPU registers of a6xx, which a7xx has too, in order of their numbers.
pub const GPU_A6XX: &[Name] = &[
    double(0x800, "CP_RB_BASE"),
    word(0x802, "CP_RB_CNTL"),
    double(0x804, "CP_RB_RPTR_ADDR"),
    word(0x806, "CP_RB_RPTR"),
    word(0x807, "CP_RB_WPTR"),
    word(0x808, "CP_SQE_CNTL"),
    word(0x812, "CP_CP2GMU_STATUS"),
    word(0x821, "CP_HW_FAULT"),
    word(0x823, "CP_INTERRUPT_STATUS"),
    word(0x824, "CP_PROTECT_STATUS"),
    word(0x825, "CP_STATUS_1"),
    double(0x830, "CP_SQE_INSTR_BASE"),
    word(0x840, "CP_MISC_CNTL"),
    word(0x841, "CP_CHICKEN_DBG"),
    word(0x842, "CP_ADDR_MODE_CNTL"),
    word(0x843, "CP_DBG_ECO_CNTL"),
    word(0x844, "CP_APRIV_CNTL"),
    word(0x84f, "CP_PROTECT_CNTL"),
    array(0x850, "CP_PROTECT", 32),
    array(0x883, "CP_SCRATCH", 8),
    word(0x8a0, "CP_CONTEXT_SWITCH_CNTL"),
    double(0x8a1, "CP_CONTEXT_SWITCH_SMMU_INFO"),
    double(0x8a3, "CP_CONTEXT_SWITCH_PRIV_NON_SECURE_RESTORE_ADDR"),
    double(0x8a5, "CP_CONTEXT_SWITCH_PRIV_SECURE_RESTORE_ADDR"),
    double(0x8a7, "CP_CONTEXT_SWITCH_NON_PRIV_RESTORE_ADDR"),
    word(0x8c0, "CP_PREEMPT_THRESHOLD"),
    word(0x8c1, "CP_ROQ_THRESHOLDS_1"),
    word(0x8c2, "CP_ROQ_THRESHOLDS_2"),
    word(0x8c3, "CP_MEM_POOL_SIZE"),
    unnamed(0x8d0, "CP_PERFCTR_CP_SEL", 14),
    double(0x900, "CP_CRASH_SCRIPT_BASE"),
    word(0x902, "CP_CRASH_DUMP_CNTL"),
    word(0x903, "CP_CRASH_DUMP_STATUS"),
    word(0x908, "CP_SQE_STAT_ADDR"),
    word(0x909, "CP_SQE_STAT_DATA"),
    word(0x90a, "CP_DRAW_STATE_ADDR"),
    word(0x90b, "CP_DRAW_STATE_DATA"),
    word(0x90c, "CP_ROQ_DBG_ADDR"),
    word(0x90d, "CP_ROQ_DBG_DATA"),
    word(0x90e, "CP_MEM_POOL_DBG_ADDR"),
    word(0x90f, "CP_MEM_POOL_DBG_DATA"),
    word(0x910, "CP_SQE_UCODE_DBG_ADDR"),
    word(0x911, "CP_SQE_UCODE_DBG_DATA"),
    double(0x928, "CP_IB1_BASE"),
    word(0x92a, "CP_IB1_REM_SIZE"),
    double(0x92b, "CP_IB2_BASE"),
    word(0x92d, "CP_IB2_REM_SIZE"),
    double(0x92e, "CP_SDS_BASE"),
    word(0x930, "CP_SDS_REM_SIZE"),
    double(0x931, "CP_MRB_BASE"),
    word(0x933, "CP_MRB_REM_SIZE"),
    double(0x934, "CP_VSD_BASE"),
    word(0x939, "CP_ROQ_RB_STAT"),
    word(0x93a, "CP_ROQ_IB1_STAT"),
    word(0x93b, "CP_ROQ_IB2_STAT"),
    word(0x93c, "CP_ROQ_SDS_STAT"),
    word(0x93d, "CP_ROQ_MRB_STAT"),
    word(0x93e, "CP_ROQ_VSD_STAT"),
    word(0x943, "CP_IB1_DWORDS"),
    word(0x944, "CP_IB2_DWORDS"),
    word(0x945, "CP_SDS_DWORDS"),
    word(0x946, "CP_MRB_DWORDS"),
    word(0x947, "CP_VSD_DWORDS"),
    word(0x948, "CP_ROQ_AVAIL_RB"),
    word(0x949, "CP_ROQ_AVAIL_IB1"),
    word(0x94a, "CP_ROQ_AVAIL_IB2"),
    word(0x94b, "CP_ROQ_AVAIL_SDS"),
    word(0x94c, "CP_ROQ_AVAIL_MRB"),
    word(0x94d, "CP_ROQ_AVAIL_VSD"),
    double(0x980, "CP_ALWAYS_ON_COUNTER"),
    word(0x98d, "CP_AHB_CNTL"),
    word(0xa00, "CP_APERTURE_CNTL_HOST"),
    word(0xa03, "CP_APERTURE_CNTL_CD"),
    word(0xb34, "CP_LPAC_PROG_FIFO_SIZE"),
    word(0xb81, "CP_LPAC_SQE_CNTL"),
    double(0xb82, "CP_LPAC_SQE_INSTR_BASE"),
    word(0xd600, "CP_EVENT_START"),
    word(0xd601, "CP_EVENT_END"),
    word(0xd700, "CP_2D_EVENT_START"),
    word(0xd701, "CP_2D_EVENT_END"),
];

/// GPU registers that only a7xx has, in order of their numbers.
const A7XX_ONLY: &[Name] = &[
    word(0x8ab, "CP_CONTEXT_SWITCH_LEVEL_STATUS"),
    unnamed(0x8e0, "CP_BV_PERFCTR_CP_SEL", 7),
    word(0xa61, "CP_BV_PROTECT_STATUS"),
    word(0xa64, "CP_BV_HW_FAULT"),
    word(0xa81, "CP_BV_DRAW_STATE_ADDR"),
    word(0xa82, "CP_BV_DRAW_STATE_DATA"),
    word(0xa83, "CP_BV_ROQ_DBG_ADDR"),
    word(0xa84, "CP_BV_ROQ_DBG_DATA"),
    word(0xa85, "CP_BV_SQE_UCODE_DBG_ADDR"),
    word(0xa86, "CP_BV_SQE_UCODE_DBG_DATA"),
    word(0xa87, "CP_BV_SQE_STAT_ADDR"),
    word(0xa88, "CP_BV_SQE_STAT_DATA"),
    word(0xa96, "CP_BV_MEM_POOL_DBG_ADDR"),
    word(0xa97, "CP_BV_MEM_POOL_DBG_DATA"),
    double(0xa98, "CP_BV_RB_RPTR_ADDR"),
    word(0xa9a, "CP_RESOURCE_TBL_DBG_ADDR"),
    word(0xa9b, "CP_RESOURCE_TBL_DBG_DATA"),
    word(0xad0, "CP_BV_APRIV_CNTL"),
    word(0xada, "CP_BV_CHICKEN_DBG"),
    word(0xb0a, "CP_LPAC_DRAW_STATE_ADDR"),
    word(0xb0b, "CP_LPAC_DRAW_STATE_DATA"),
    word(0xb0c, "CP_LPAC_ROQ_DBG_ADDR"),
    word(0xb27, "CP_SQE_AC_UCODE_DBG_ADDR"),
    word(0xb28, "CP_SQE_AC_UCODE_DBG_DATA"),
    word(0xb29, "CP_SQE_AC_STAT_ADDR"),
    word(0xb2a, "CP_SQE_AC_STAT_DATA"),
    word(0xb31, "CP_LPAC_APRIV_CNTL"),
    word(0xb35, "CP_LPAC_ROQ_DBG_DATA"),
    word(0xb36, "CP_LPAC_FIFO_DBG_DATA"),
    word(0xb40, "CP_LPAC_FIFO_DBG_ADDR"),
    double(0xb70, "CP_AQE_INSTR_BASE_0"),
    double(0xb72, "CP_AQE_INSTR_BASE_1"),
    word(0xb78, "CP_AQE_APRIV_CNTL"),
    word(0xba8, "CP_AQE_ROQ_DBG_ADDR_0"),
    word(0xba9, "CP_AQE_ROQ_DBG_ADDR_1"),
    word(0xbac, "CP_AQE_ROQ_DBG_DATA_0"),
    word(0xbad, "CP_AQE_ROQ_DBG_DATA_1"),
    word(0xbb0, "CP_AQE_UCODE_DBG_ADDR_0"),
    word(0xbb1, "CP_AQE_UCODE_DBG_ADDR_1"),
    word(0xbb4, "CP_AQE_UCODE_DBG_DATA_0"),
    word(0xbb5, "CP_AQE_UCODE_DBG_DATA_1"),
    word(0xbb8, "CP_AQE_STAT_ADDR_0"),
    word(0xbb9, "CP_AQE_STAT_ADDR_1"),
    word(0xbbc, "CP_AQE_STAT_DATA_0"),
    word(0xbbd, "CP_AQE_STAT_DATA_1"),
];

/// GPU registers of a7xx, in order of their numbers.
pub const GPU_A7XX: &[Name] = &merge::<{ GPU_A6XX.len() + A7XX_ONLY.len() }>(GPU_A6XX, A7XX_ONLY);

/// The number of a GPU register, for constants: a name that the table does not have is an error of the compiler.
pub const fn gpu_register(name: &str) -> usize {
    let name = name.as_bytes();
    let mut row = 0;
    loop {
        let other = GPU_A6XX[row].name.as_bytes();
        let mut equal = 0;
        while equal < name.len() && equal < other.len() && name[equal] == other[equal] {
            equal += 1;
        }
        if equal == name.len() && equal == other.len() {
            return GPU_A6XX[row].number as usize;
        }
        row += 1;
    }
}
