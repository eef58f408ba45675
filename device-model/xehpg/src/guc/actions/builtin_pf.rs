// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Provisioning of the VFs by the card if no guest has the PF (contract C.4, D.4). Uses the same structures, tables and
//! checks as the requests of a PF driver.

use std::ops::Range;

use crate::gate::lmtt;
use crate::guc::actions::control;
use crate::guc::messages::hxg::Error;
use crate::guc::provisioning::{Quota as Numbers, Scheduling, VfConfig};
use crate::guc::scheduler::GucCtx;
use crate::guc::state::GucState;
use crate::host::Function;
use crate::memory::CellValue;
use crate::memory::layout::MemoryLayout;
use crate::profile::provision::{LMTT_RESERVE, Quota};
use crate::registers::memory::LMEM_CFG;

/// Assigns `quotas` to VFs 1, 2, ...: GGTT addresses upwards from the first that a function may own, local memory from
/// address 0, contexts and doorbells from id 0.
pub fn share_out(guc: &mut GucState, ctx: &mut GucCtx<'_>, quotas: &[Quota]) -> Result<(), Error> {
    let mut next = VfConfig { ggtt_start: ctx.gt.generation.sriov.ggtt.start, ..VfConfig::default() };
    let mut frame = 0_u32;
    write_directory(ctx)?;
    for (vf, quota) in (1..).map_while(Function::vf).zip(quotas) {
        let config = VfConfig {
            ggtt_size: quota.ggtt,
            local_memory: quota.local_memory,
            contexts: Numbers { begin: next.contexts.begin, count: quota.contexts },
            doorbells: Numbers { begin: next.doorbells.begin, count: quota.doorbells },
            scheduling: Scheduling {
                exec_quantum_ms: quota.exec_quantum_ms,
                preempt_timeout_us: quota.preempt_timeout_us,
                priority: 0,
            },
            ..next
        };
        let frames = u32::try_from(quota.local_memory / lmtt::PAGE).map_err(|_| Error::InvalidKlvData)?;
        let end = frame.checked_add(frames).ok_or(Error::InvalidKlvData)?;
        if u64::from(end).saturating_mul(lmtt::PAGE) > directory(ctx) {
            return Err(Error::InvalidKlvData);
        }
        ctx.gt.memory.ggtt().assign(vf, config.ggtt());
        write_table(ctx, vf, frame..end)?;
        control::provision(guc, ctx, vf, config)?;
        frame = end;
        next.ggtt_start = config.ggtt().end;
        next.contexts.begin = next.contexts.begin.saturating_add(quota.contexts);
        next.doorbells.begin = next.doorbells.begin.saturating_add(quota.doorbells);
    }
    Ok(())
}

/// Returns the address of the LMTT, at the top of the memory that can be assigned to functions.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "the least usable memory, that of 1 GiB, is larger than LMTT_RESERVE"
)]
fn directory(ctx: &GucCtx<'_>) -> u64 {
    MemoryLayout::of(ctx.gt.memory.local().len()).usable - LMTT_RESERVE
}

fn write(ctx: &GucCtx<'_>, at: u64, entry: u32) -> Result<(), Error> {
    let cell = ctx.gt.memory.local().slice(at, 4).ok_or(Error::InvalidKlvData)?;
    entry.store(&cell, 0).then_some(()).ok_or(Error::InvalidKlvData)
}

/// Clears the directory and sets its address in LMEM_CFG.
#[allow(clippy::arithmetic_side_effects, reason = "the area ends where the usable memory does")]
fn write_directory(ctx: &mut GucCtx<'_>) -> Result<(), Error> {
    let at = directory(ctx);
    ctx.gt.memory.local().clear(at..at + LMTT_RESERVE);
    ctx.gt.write(LMEM_CFG, lmtt::register(at));
    Ok(())
}

/// Writes the table of `vf`, which maps `frames`, after the directory. Also writes the VF's directory entry.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "tables and entries of all functions lie in the reserve, below the end of local memory"
)]
fn write_table(ctx: &mut GucCtx<'_>, vf: Function, frames: Range<u32>) -> Result<(), Error> {
    let directory = directory(ctx);
    let table = directory + lmtt::TABLE_ENTRIES * 4 * u64::from(vf.number());
    for (at, frame) in (table..).step_by(4).zip(frames) {
        write(ctx, at, lmtt::table_entry(u64::from(frame) * lmtt::PAGE))?;
    }
    write(ctx, directory + u64::from(vf.number()) * 4, lmtt::directory_entry(table))
}
