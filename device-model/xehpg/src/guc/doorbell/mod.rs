// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Doorbells as the GuC serves them: the actions by which drivers arm doorbells, and the rings of armed doorbells.
//!
//! ALLOCATE_DOORBELL (0x10) has five dwords: context id, doorbell id, MMIO offset of the page of the window (low,
//! high), and a GGTT address that is only used for doorbells in memory. DEALLOCATE_DOORBELL (0x20) has one dword, the
//! context id. Sources: i915: selftest_guc_doorbells.c of Intel's out-of-tree i915; "drm/xe: Allocate doorbells for UMD
//! exec queues", a patch that was proposed for xe. Current drivers send neither action. All ids are local to the
//! sender; a VF's context and doorbell ids start at 0.

pub mod host;
pub mod table;

use crate::doorbell::Page;
use crate::guc::messages::hxg::{Error, Reply, Request};
use crate::guc::provisioning::threshold_event::Kind;
use crate::guc::scheduler::GucCtx;
use crate::guc::state::GucState;

/// ALLOCATE_DOORBELL from `ctx.function`.
pub fn allocate(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let &[context, id, low, high, global] = request.payload else { return Err(Error::InvalidSize) };
    if global != 0 {
        // Doorbells in memory are not supported (V13-090).
        return Err(Error::NotSupported);
    }
    let offset = u64::from(low) | u64::from(high) << 32;
    let page = Page::at(offset).filter(|page| page.offset() == offset).ok_or(Error::InvalidParams)?;
    let context = guc.scheduler.owned(guc.context_id(ctx.function, context)?)?;
    guc.doorbells.allocate(&ctx.gt.doorbells, &guc.scheduler.functions, context, (id, page))
}

/// DEALLOCATE_DOORBELL from `ctx.function`.
pub fn deallocate(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let &[context] = request.payload else { return Err(Error::InvalidSize) };
    let context = guc.scheduler.owned(guc.context_id(ctx.function, context)?)?;
    guc.doorbells.deallocate(&ctx.gt.doorbells, context)
}

/// Schedules the contexts of the doorbells that have rung, as SCHED_CONTEXT does.
pub fn serve(guc: &mut GucState, ctx: &mut GucCtx<'_>) {
    for index in ctx.gt.doorbells.take_rung().iter() {
        let Some(context) = guc.doorbells.bound(index) else { continue };
        guc.note(ctx, context.function, Kind::Doorbell);
        // The context may have been dropped; such rings are ignored.
        if guc.scheduler.owned(context).is_ok() {
            let _ = guc.scheduler.submit(ctx, context);
        }
    }
}
