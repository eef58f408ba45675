// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The ioctl structures of the i915 driver, with the layout of `i915_drm.h`.

use std::mem::size_of;

use super::{COMMAND_BASE, IOC_READ, IOC_WRITE, plain, request};

plain! {
    /// `value` is a pointer to an `int`.
    GetParam { param: i32, pad: u32, value: u64 }
    Query { num_items: u32, flags: u32, items: u64 }
    QueryItem { query: u64, length: i32, flags: u32, data: u64 }
    UserExtension { next: u64, name: u32, flags: u32, reserved: [u32; 4] }
    GemCreateExt { size: u64, handle: u32, flags: u32, extensions: u64 }
    /// The extension of [`GemCreateExt`] that lists the permitted memory regions of an object.
    MemoryRegions { base: UserExtension, pad: u32, num_regions: u32, regions: u64 }
    GemMmapOffset { handle: u32, pad: u32, offset: u64, flags: u64, extensions: u64 }
    VmControl { extensions: u64, flags: u32, vm_id: u32 }
    ContextCreateExt { context: u32, flags: u32, extensions: u64 }
    ContextParam { context: u32, size: u32, param: u64, value: u64 }
    /// The extension of [`ContextCreateExt`] that sets a parameter.
    SetParam { base: UserExtension, param: ContextParam }
    /// The value of [`CONTEXT_PARAM_ENGINES`] for a context with one engine. The C structure is packed (12 bytes).
    /// This one has 4 bytes of trailing padding, so the caller must pass the packed size.
    OneEngine { extensions: u64, class: u16, instance: u16 }
    ContextDestroy { context: u32, pad: u32 }
    ExecObject {
        handle: u32, relocation_count: u32, relocations: u64, alignment: u64, offset: u64, flags: u64, pad_to_size: u64,
        reserved: u64,
    }
    ExecFence { handle: u32, flags: u32 }
    /// `num_fences` and `fences` are `num_cliprects` and `cliprects_ptr` of the C structure, which describe an array of
    /// [`ExecFence`] if [`EXEC_FENCE_ARRAY`] is set.
    ExecBuffer2 {
        buffers: u64, buffer_count: u32, batch_start_offset: u32, batch_len: u32, dr1: u32, dr4: u32, num_fences: u32,
        fences: u64, flags: u64, context: u64, reserved: u64,
    }
    ResetStats { context: u32, flags: u32, reset_count: u32, batch_active: u32, batch_pending: u32, pad: u32 }
    GemBusy { handle: u32, busy: u32 }
    GemCreate { size: u64, handle: u32, pad: u32 }
    /// `data_ptr` is the memory of the caller.
    GemPread { handle: u32, pad: u32, offset: u64, size: u64, data_ptr: u64 }
    GemSetDomain { handle: u32, read_domains: u32, write_domain: u32 }
    GemSetTiling { handle: u32, tiling_mode: u32, stride: u32, swizzle_mode: u32 }
    GemWait { handle: u32, flags: u32, timeout_ns: i64 }
    RegRead { offset: u64, value: u64 }
    /// One address in a batch, which the driver replaces if the target is not at `presumed_offset`.
    Relocation {
        target_handle: u32, delta: u32, offset: u64, presumed_offset: u64, read_domains: u32, write_domain: u32,
    }
}

request!(GetParam, "DRM_IOCTL_I915_GETPARAM", IOC_READ | IOC_WRITE, COMMAND_BASE + 0x06, 16);
request!(GemBusy, "DRM_IOCTL_I915_GEM_BUSY", IOC_READ | IOC_WRITE, COMMAND_BASE + 0x17, 8);
request!(GemCreate, "DRM_IOCTL_I915_GEM_CREATE", IOC_READ | IOC_WRITE, COMMAND_BASE + 0x1b, 16);
request!(GemPread, "DRM_IOCTL_I915_GEM_PREAD", IOC_WRITE, COMMAND_BASE + 0x1c, 32);
request!(GemSetDomain, "DRM_IOCTL_I915_GEM_SET_DOMAIN", IOC_WRITE, COMMAND_BASE + 0x1f, 12);
request!(GemSetTiling, "DRM_IOCTL_I915_GEM_SET_TILING", IOC_READ | IOC_WRITE, COMMAND_BASE + 0x21, 16);
request!(GemMmapOffset, "DRM_IOCTL_I915_GEM_MMAP_OFFSET", IOC_READ | IOC_WRITE, COMMAND_BASE + 0x24, 32);
request!(ExecBuffer2, "DRM_IOCTL_I915_GEM_EXECBUFFER2", IOC_WRITE, COMMAND_BASE + 0x29, 64);
request!(GemWait, "DRM_IOCTL_I915_GEM_WAIT", IOC_READ | IOC_WRITE, COMMAND_BASE + 0x2c, 16);
request!(ContextCreateExt, "DRM_IOCTL_I915_GEM_CONTEXT_CREATE_EXT", IOC_READ | IOC_WRITE, COMMAND_BASE + 0x2d, 16);
request!(ContextDestroy, "DRM_IOCTL_I915_GEM_CONTEXT_DESTROY", IOC_WRITE, COMMAND_BASE + 0x2e, 8);
request!(RegRead, "DRM_IOCTL_I915_REG_READ", IOC_READ | IOC_WRITE, COMMAND_BASE + 0x31, 16);
request!(ResetStats, "DRM_IOCTL_I915_GET_RESET_STATS", IOC_READ | IOC_WRITE, COMMAND_BASE + 0x32, 24);
request!(Query, "DRM_IOCTL_I915_QUERY", IOC_READ | IOC_WRITE, COMMAND_BASE + 0x39, 16);
request!(GemCreateExt, "DRM_IOCTL_I915_GEM_CREATE_EXT", IOC_READ | IOC_WRITE, COMMAND_BASE + 0x3c, 24);

/// An [`ExecBuffer2`] that returns addresses and, with [`EXEC_FENCE_OUT`], a descriptor.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct ExecBuffer2Wr(pub ExecBuffer2);

request!(ExecBuffer2Wr, "DRM_IOCTL_I915_GEM_EXECBUFFER2_WR", IOC_READ | IOC_WRITE, COMMAND_BASE + 0x29, 64);

/// A [`VmControl`] that creates an address space.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct VmCreate(pub VmControl);

/// A [`VmControl`] that destroys an address space.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct VmDestroy(pub VmControl);

request!(VmCreate, "DRM_IOCTL_I915_GEM_VM_CREATE", IOC_READ | IOC_WRITE, COMMAND_BASE + 0x3a, 16);
request!(VmDestroy, "DRM_IOCTL_I915_GEM_VM_DESTROY", IOC_WRITE, COMMAND_BASE + 0x3b, 16);

const _: () = assert!(size_of::<QueryItem>() == 24);
const _: () = assert!(size_of::<MemoryRegions>() == 48);
const _: () = assert!(size_of::<SetParam>() == 56);
const _: () = assert!(size_of::<ExecObject>() == 56);
const _: () = assert!(size_of::<Relocation>() == 32);

/// `I915_PARAM_*`: the parameters of [`GetParam`].
pub mod param {
    pub const CHIPSET_ID: i32 = 4;
    pub const HAS_ALIASING_PPGTT: i32 = 18;
    pub const CMD_PARSER_VERSION: i32 = 28;
    pub const REVISION: i32 = 32;
    pub const CS_TIMESTAMP_FREQUENCY: i32 = 51;
}

/// The value of [`param::HAS_ALIASING_PPGTT`] without address spaces for contexts; greater values mean that they exist.
pub const ALIASING_PPGTT: i32 = 1;

/// `DRM_I915_QUERY_*`: the queries of [`QueryItem`].
pub mod query {
    pub const ENGINE_INFO: u64 = 2;
    pub const MEMORY_REGIONS: u64 = 4;
    pub const GUC_SUBMISSION_VERSION: u64 = 7;
}

/// `drm_i915_gem_memory_class_instance`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryClassInstance {
    pub class: u16,
    pub instance: u16,
}

pub const MEMORY_CLASS_SYSTEM: u16 = 0;
pub const MEMORY_CLASS_DEVICE: u16 = 1;
pub const CREATE_EXT_MEMORY_REGIONS: u32 = 0;
pub const MMAP_OFFSET_GTT: u64 = 0;
pub const MMAP_OFFSET_WB: u64 = 2;
pub const MMAP_OFFSET_FIXED: u64 = 4;
pub const CONTEXT_CREATE_USE_EXTENSIONS: u32 = 1;
pub const CONTEXT_CREATE_SET_PARAM: u32 = 0;
pub const CONTEXT_PARAM_VM: u64 = 9;
pub const CONTEXT_PARAM_ENGINES: u64 = 10;
pub const OBJECT_48_BIT: u64 = 1 << 3;
pub const OBJECT_PINNED: u64 = 1 << 4;
pub const OBJECT_ASYNC: u64 = 1 << 6;
pub const EXEC_BATCH_FIRST: u64 = 1 << 18;
pub const EXEC_FENCE_ARRAY: u64 = 1 << 19;
pub const EXEC_NO_RELOC: u64 = 1 << 11;
pub const EXEC_HANDLE_LUT: u64 = 1 << 12;
pub const EXEC_FENCE_IN: u64 = 1 << 16;
pub const EXEC_FENCE_OUT: u64 = 1 << 17;
pub const DOMAIN_CPU: u32 = 1;
pub const DOMAIN_RENDER: u32 = 1 << 1;
pub const DOMAIN_INSTRUCTION: u32 = 1 << 4;
pub const DOMAIN_GTT: u32 = 1 << 6;
/// Flag in the offset of [`RegRead`]: reads eight bytes at once.
pub const REG_READ_8B: u64 = 1;
pub const EXEC_FENCE_WAIT: u32 = 1;
pub const EXEC_FENCE_SIGNAL: u32 = 2;

#[cfg(test)]
mod tests {
    use super::super::Request;
    use super::*;

    /// Contract G: the request numbers equal those of the C header's macros (i915_drm.h).
    #[test]
    fn request_numbers_are_those_of_the_header() {
        assert_eq!(GetParam::NUMBER, 0xc010_6446);
        assert_eq!(GemMmapOffset::NUMBER, 0xc020_6464);
        assert_eq!(ExecBuffer2::NUMBER, 0x4040_6469);
        assert_eq!(ExecBuffer2Wr::NUMBER, 0xc040_6469);
        assert_eq!(GemBusy::NUMBER, 0xc008_6457);
        assert_eq!(GemCreate::NUMBER, 0xc010_645b);
        assert_eq!(GemPread::NUMBER, 0x4020_645c);
        assert_eq!(GemSetDomain::NUMBER, 0x400c_645f);
        assert_eq!(GemSetTiling::NUMBER, 0xc010_6461);
        assert_eq!(GemWait::NUMBER, 0xc010_646c);
        assert_eq!(RegRead::NUMBER, 0xc010_6471);
        assert_eq!(ContextCreateExt::NUMBER, 0xc010_646d);
        assert_eq!(ContextDestroy::NUMBER, 0x4008_646e);
        assert_eq!(ResetStats::NUMBER, 0xc018_6472);
        assert_eq!(Query::NUMBER, 0xc010_6479);
        assert_eq!(VmCreate::NUMBER, 0xc010_647a);
        assert_eq!(VmDestroy::NUMBER, 0x4010_647b);
        assert_eq!(GemCreateExt::NUMBER, 0xc018_647c);
    }
}
