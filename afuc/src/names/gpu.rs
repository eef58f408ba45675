// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Names of the command processor's GPU registers on a6xx, which a7xx keeps (AFC-025..027).

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

/// GPU registers, in order of their numbers.
pub const GPU: &[Name] = &[
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
    array(0x850, "CP_PROTECT", 48),
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
    array(0x8d0, "CP_PERFCTR_CP_SEL", 14),
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
];
