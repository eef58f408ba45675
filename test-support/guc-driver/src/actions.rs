// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Codes of actions and events, and the KLV keys of contexts (contract B.6, C.1, D.4, D.7, F.6).

/// VF2GUC_VF_RESET, a mailbox request of a VF.
pub const VF_RESET: u32 = 0x5507;
/// VF2GUC_MATCH_VERSION, a mailbox request of a VF.
pub const MATCH_VERSION: u32 = 0x5500;
/// VF2GUC_QUERY_SINGLE_KLV, a mailbox request of a VF.
pub const QUERY_SINGLE_KLV: u32 = 0x5509;
/// HOST2GUC_SELF_CFG, a mailbox request.
pub const SELF_CFG: u32 = 0x0508;
/// HOST2GUC_CONTROL_CTB, a mailbox request.
pub const CONTROL_CTB: u32 = 0x4509;
/// GET_HWCONFIG, a mailbox request.
pub const GET_HWCONFIG: u32 = 0x4100;
/// ALLOCATE_DOORBELL: context ID, doorbell ID, offset of the page in the BAR (low, high), GGTT address.
pub const ALLOCATE_DOORBELL: u32 = 0x0010;
/// DEALLOCATE_DOORBELL: context ID.
pub const DEALLOCATE_DOORBELL: u32 = 0x0020;
/// SCHED_CONTEXT: context ID.
pub const SCHED_CONTEXT: u32 = 0x1000;
/// SCHED_CONTEXT_MODE_SET: context ID, 1 to enable or 0 to disable.
pub const SCHED_CONTEXT_MODE_SET: u32 = 0x1001;
/// UPDATE_CONTEXT_POLICIES: context ID, KLVs.
pub const UPDATE_CONTEXT_POLICIES: u32 = 0x100b;
/// REGISTER_CONTEXT.
pub const REGISTER_CONTEXT: u32 = 0x4502;
/// DEREGISTER_CONTEXT: context ID.
pub const DEREGISTER_CONTEXT: u32 = 0x4503;
/// TLB_INVALIDATION: sequence number, operation with [`INVALIDATE_FLUSH`], and a range for some operations.
pub const TLB_INVALIDATION: u32 = 0x7000;
/// Flag of an operation of [`TLB_INVALIDATION`] and [`TLB_INVALIDATION_ALL`]: caches are flushed, too (xe:
/// XE_GUC_TLB_INVAL_FLUSH_CACHE).
pub const INVALIDATE_FLUSH: u32 = 1 << 31;
/// TLB_INVALIDATION_ALL: sequence number, flags.
pub const TLB_INVALIDATION_ALL: u32 = 0x7002;
/// PF2GUC_UPDATE_VGT_POLICY: address of a KLV list, its dwords.
pub const UPDATE_VGT_POLICY: u32 = 0x5502;
/// PF2GUC_UPDATE_VF_CFG: VF, address of a KLV list, its dwords.
pub const UPDATE_VF_CFG: u32 = 0x5503;
/// PF2GUC_VF_CONTROL: VF, command.
pub const VF_CONTROL: u32 = 0x5506;
/// Command of [`VF_CONTROL`] that starts an FLR.
pub const FLR_START: u32 = 4;
/// Command of [`VF_CONTROL`] that ends an FLR.
pub const FLR_FINISH: u32 = 5;

/// Header of the KLV of a context's priority, of one dword: 0 to 3, 2 is normal.
pub const PRIORITY_KLV: u32 = 0x2003_0001;

const fn event(code: u32) -> u32 {
    9 << 28 | code
}

/// Event SCHED_CONTEXT_MODE_DONE: context ID, mode.
pub const SCHED_CONTEXT_MODE_DONE: u32 = event(0x1002);
/// Event TLB_INVALIDATION_DONE: sequence number.
pub const TLB_INVALIDATION_DONE: u32 = event(0x7001);
/// Event GUC2PF_VF_STATE_NOTIFY: VF, notification.
pub const VF_STATE_NOTIFY: u32 = event(0x5106);
/// Event GUC2PF_RELAY_FROM_VF: VF, relay ID, message.
pub const RELAY_FROM_VF: u32 = event(0x5100);
/// Notification of [`VF_STATE_NOTIFY`]: an FLR was requested.
pub const NOTIFY_FLR: u32 = 1;
/// Notification of [`VF_STATE_NOTIFY`]: the GuC's part of an FLR is done.
pub const NOTIFY_FLR_DONE: u32 = 2;

/// Returns the payload of [`UPDATE_CONTEXT_POLICIES`]: priority (0 to 3, 2 is normal), quantum and preemption timeout
/// in microseconds.
pub const fn policies(id: u32, priority: u32, quantum: u32, timeout: u32) -> [u32; 7] {
    [id, PRIORITY_KLV, priority, 0x2001_0001, quantum, 0x2002_0001, timeout]
}
