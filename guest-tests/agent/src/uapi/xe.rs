// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The ioctl structures of the xe driver, with the layout of `xe_drm.h`.

use std::mem::size_of;

use super::{COMMAND_BASE, IOC_READ, IOC_WRITE, plain, request};

plain! {
    DeviceQuery { extensions: u64, query: u32, size: u32, data: u64, reserved: [u64; 2] }
    GemCreate {
        extensions: u64, size: u64, placement: u32, flags: u32, vm_id: u32, handle: u32, cpu_caching: u16,
        pad: [u16; 3], reserved: [u64; 2],
    }
    GemMmapOffset { extensions: u64, handle: u32, flags: u32, offset: u64, reserved: [u64; 2] }
    VmCreate { extensions: u64, flags: u32, vm_id: u32, reserved: [u64; 2] }
    VmDestroy { vm_id: u32, pad: u32, reserved: [u64; 2] }
    VmBindOp {
        extensions: u64, obj: u32, pat_index: u16, pad: u16, obj_offset: u64, range: u64, addr: u64, op: u32,
        flags: u32, prefetch_mem_region_instance: u32, pad2: u32, reserved: [u64; 3],
    }
    VmBind {
        extensions: u64, vm_id: u32, exec_queue_id: u32, pad: u32, num_binds: u32, bind: VmBindOp, pad2: u32,
        num_syncs: u32, syncs: u64, reserved: [u64; 2],
    }
    ExecQueueCreate {
        extensions: u64, width: u16, num_placements: u16, vm_id: u32, flags: u32, exec_queue_id: u32,
        instances: u64, reserved: [u64; 2],
    }
    ExecQueueDestroy { exec_queue_id: u32, pad: u32, reserved: [u64; 2] }
    ExecQueueGetProperty { extensions: u64, exec_queue_id: u32, property: u32, value: u64, reserved: [u64; 2] }
    /// `drm_xe_sync`: `addr` is the union of the syncobj handle (low half) and a user fence's address.
    Sync { extensions: u64, kind: u32, flags: u32, addr: u64, timeline_value: u64, reserved: [u64; 2] }
    Exec {
        extensions: u64, exec_queue_id: u32, num_syncs: u32, syncs: u64, address: u64, num_batch_buffer: u16,
        pad: [u16; 3], reserved: [u64; 2],
    }
    ObservationParam { extensions: u64, observation_type: u64, observation_op: u64, param: u64 }
    /// `drm_xe_ext_set_property` with a number as value.
    SetProperty { next_extension: u64, name: u32, pad: u32, property: u32, pad2: u32, value: u64, reserved: [u64; 2] }
    /// `uuid` has 36 characters.
    OaConfig { extensions: u64, uuid: [[u8; 12]; 3], n_regs: u32, regs_ptr: u64 }
    /// `timeout` is in nanoseconds, and relative unless the ABSTIME flag is set.
    WaitUserFence {
        extensions: u64, addr: u64, op: u16, flags: u16, pad: u32, value: u64, mask: u64, timeout: i64,
        exec_queue_id: u32, pad2: u32, reserved: [u64; 2],
    }
}

request!(DeviceQuery, "DRM_IOCTL_XE_DEVICE_QUERY", IOC_READ | IOC_WRITE, COMMAND_BASE, 40);
request!(GemCreate, "DRM_IOCTL_XE_GEM_CREATE", IOC_READ | IOC_WRITE, COMMAND_BASE + 1, 56);
request!(GemMmapOffset, "DRM_IOCTL_XE_GEM_MMAP_OFFSET", IOC_READ | IOC_WRITE, COMMAND_BASE + 2, 40);
request!(VmCreate, "DRM_IOCTL_XE_VM_CREATE", IOC_READ | IOC_WRITE, COMMAND_BASE + 3, 32);
request!(VmDestroy, "DRM_IOCTL_XE_VM_DESTROY", IOC_WRITE, COMMAND_BASE + 4, 24);
request!(VmBind, "DRM_IOCTL_XE_VM_BIND", IOC_WRITE, COMMAND_BASE + 5, 136);
request!(ExecQueueCreate, "DRM_IOCTL_XE_EXEC_QUEUE_CREATE", IOC_READ | IOC_WRITE, COMMAND_BASE + 6, 48);
request!(ExecQueueDestroy, "DRM_IOCTL_XE_EXEC_QUEUE_DESTROY", IOC_WRITE, COMMAND_BASE + 7, 24);
request!(ExecQueueGetProperty, "DRM_IOCTL_XE_EXEC_QUEUE_GET_PROPERTY", IOC_READ | IOC_WRITE, COMMAND_BASE + 8, 40);
request!(Exec, "DRM_IOCTL_XE_EXEC", IOC_WRITE, COMMAND_BASE + 9, 56);
request!(WaitUserFence, "DRM_IOCTL_XE_WAIT_USER_FENCE", IOC_READ | IOC_WRITE, COMMAND_BASE + 10, 72);

request!(ObservationParam, "DRM_IOCTL_XE_OBSERVATION", IOC_WRITE, COMMAND_BASE + 11, 32);

const _: () = assert!(size_of::<SetProperty>() == 48);
const _: () = assert!(size_of::<OaConfig>() == 56);
const _: () = assert!(size_of::<Sync>() == 48);
const _: () = assert!(size_of::<VmBindOp>() == 80);

/// `DRM_XE_DEVICE_QUERY_*`: the queries of [`DeviceQuery`].
pub mod query {
    pub const ENGINES: u32 = 0;
    pub const MEM_REGIONS: u32 = 1;
    pub const CONFIG: u32 = 2;
    pub const GT_LIST: u32 = 3;
    pub const ENGINE_CYCLES: u32 = 6;
    pub const UC_FW_VERSION: u32 = 7;
}

/// `drm_xe_engine_class_instance`, both in the engine query and as a queue's placement.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineClassInstance {
    pub engine_class: u16,
    pub engine_instance: u16,
    pub gt_id: u16,
    pub pad: u16,
}

pub const MEM_CLASS_VRAM: u16 = 1;
pub const GEM_CREATE_FLAG_NEEDS_VISIBLE_VRAM: u32 = 1 << 2;
pub const GEM_CPU_CACHING_WB: u16 = 1;
pub const GEM_CPU_CACHING_WC: u16 = 2;
pub const VM_BIND_FLAG_DUMPABLE: u32 = 1 << 3;
pub const VM_BIND_OP_MAP: u32 = 0;
pub const VM_BIND_OP_UNMAP: u32 = 1;
pub const SYNC_TYPE_SYNCOBJ: u32 = 0;
pub const SYNC_TYPE_USER_FENCE: u32 = 2;
pub const SYNC_FLAG_SIGNAL: u32 = 1;
pub const UFENCE_WAIT_OP_EQ: u16 = 0;
pub const EXEC_QUEUE_GET_PROPERTY_BAN: u32 = 0;
pub const OBSERVATION_OP_STREAM_OPEN: u64 = 0;
pub const OBSERVATION_OP_ADD_CONFIG: u64 = 1;
pub const OBSERVATION_OP_REMOVE_CONFIG: u64 = 2;
/// PAT index 0 of DG2 is write-back and snooped (`xe: xelp_pat_table`), suitable for VRAM and system memory.
pub const PAT_INDEX_WB: u16 = 0;

#[cfg(test)]
mod tests {
    use super::super::Request;
    use super::*;

    /// The request numbers equal those of the C header's macros (contract E, xe_drm.h).
    #[test]
    fn request_numbers_are_those_of_the_header() {
        assert_eq!(DeviceQuery::NUMBER, 0xc028_6440);
        assert_eq!(GemCreate::NUMBER, 0xc038_6441);
        assert_eq!(VmBind::NUMBER, 0x4088_6445);
        assert_eq!(Exec::NUMBER, 0x4038_6449);
        assert_eq!(WaitUserFence::NUMBER, 0xc048_644a);
        assert_eq!(ObservationParam::NUMBER, 0x4020_644b);
    }
}
