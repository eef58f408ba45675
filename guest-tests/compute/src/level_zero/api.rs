// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The functions and structures of Level Zero (level_zero/ze_api.h) that are used.

use std::ffi::{c_char, c_void};
use std::ptr;

use crate::library::functions;

/// `ze_result_t` for success.
pub const SUCCESS: u32 = 0;
/// `ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS`.
pub const SYNCHRONOUS: u32 = 1;
/// `ZE_MODULE_FORMAT_NATIVE`.
pub const NATIVE: u32 = 1;
/// `ZE_EVENT_POOL_FLAG_HOST_VISIBLE | ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP`.
pub const TIMESTAMPS: u32 = 1 << 0 | 1 << 2;
/// `ZE_EVENT_SCOPE_FLAG_HOST`.
pub const SCOPE_HOST: u32 = 1 << 2;

/// An object of the driver.
pub type Raw = *mut c_void;

/// The first members of each structure: its type, and a pointer to an extension.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Head {
    kind: u32,
    next: *const c_void,
}

impl Head {
    /// The head of a structure without extension.
    const fn of(kind: u32) -> Self {
        Self { kind, next: ptr::null() }
    }

    /// Of `ze_device_properties_t`.
    pub const DEVICE_PROPERTIES: Self = Self::of(0x3);
    /// Of `ze_context_desc_t`.
    pub const CONTEXT: Self = Self::of(0xd);
    /// Of `ze_command_queue_desc_t`.
    pub const QUEUE: Self = Self::of(0xe);
    /// Of `ze_event_pool_desc_t`.
    pub const EVENT_POOL: Self = Self::of(0x10);
    /// Of `ze_event_desc_t`.
    pub const EVENT: Self = Self::of(0x11);
    /// Of `ze_device_mem_alloc_desc_t`.
    pub const DEVICE_MEMORY: Self = Self::of(0x15);
    /// Of `ze_host_mem_alloc_desc_t`.
    pub const HOST_MEMORY: Self = Self::of(0x16);
    /// Of `ze_module_desc_t`.
    pub const MODULE: Self = Self::of(0x1b);
    /// Of `ze_kernel_desc_t`.
    pub const KERNEL: Self = Self::of(0x1d);
    /// Of `ze_pci_ext_properties_t`.
    pub const PCI: Self = Self::of(0x1_0008);
}

/// `ze_context_desc_t` and `ze_host_mem_alloc_desc_t`.
#[repr(C)]
pub struct Flags {
    pub head: Head,
    pub flags: u32,
}

/// `ze_command_queue_desc_t`.
#[repr(C)]
pub struct Queue {
    pub head: Head,
    pub ordinal: u32,
    pub index: u32,
    pub flags: u32,
    pub mode: u32,
    pub priority: u32,
}

/// `ze_module_desc_t`.
#[repr(C)]
pub struct Module {
    pub head: Head,
    pub format: u32,
    pub size: usize,
    pub input: *const u8,
    pub options: *const c_char,
    pub constants: *const c_void,
}

/// `ze_kernel_desc_t`.
#[repr(C)]
pub struct Kernel {
    pub head: Head,
    pub flags: u32,
    pub name: *const c_char,
}

/// `ze_device_mem_alloc_desc_t` and `ze_event_pool_desc_t`: flags and a number.
#[repr(C)]
pub struct Counted {
    pub head: Head,
    pub flags: u32,
    pub number: u32,
}

/// `ze_event_desc_t`.
#[repr(C)]
pub struct Event {
    pub head: Head,
    pub index: u32,
    pub signal: u32,
    pub wait: u32,
}

/// `ze_pci_ext_properties_t`.
#[repr(C)]
pub struct Pci {
    pub head: Head,
    pub domain: u32,
    pub bus: u32,
    pub device: u32,
    pub function: u32,
    pub generation: i32,
    pub width: i32,
    pub bandwidth: i64,
}

/// `ze_device_properties_t`.
#[repr(C)]
pub struct DeviceProperties {
    pub head: Head,
    pub kind: u32,
    pub vendor: u32,
    pub device: u32,
    pub flags: u32,
    pub subdevice: u32,
    pub core_clock: u32,
    pub most_memory: u64,
    pub contexts: u32,
    pub priorities: u32,
    pub threads: u32,
    pub simd: u32,
    pub units: u32,
    pub subslices: u32,
    pub slices: u32,
    /// Nanoseconds of a tick.
    pub timer_resolution: u64,
    pub timestamp_bits: u32,
    pub kernel_timestamp_bits: u32,
    pub uuid: [u8; 16],
    pub name: [c_char; 256],
}

/// `ze_group_count_t`.
#[repr(C)]
pub struct GroupCount(pub [u32; 3]);

/// `ze_kernel_timestamp_result_t`: start and end by the device's clock, and by the context's.
#[repr(C)]
#[derive(Default)]
pub struct KernelTimestamp {
    pub start: u64,
    pub end: u64,
    pub context_start: u64,
    pub context_end: u64,
}

functions! {
    /// The functions of the loader.
    Functions, "libze_loader.so.1", {
        zeInit: fn(u32) -> u32;
        zeDriverGet: fn(*mut u32, *mut Raw) -> u32;
        zeDeviceGet: fn(Raw, *mut u32, *mut Raw) -> u32;
        zeDeviceGetProperties: fn(Raw, *mut DeviceProperties) -> u32;
        zeDevicePciGetPropertiesExt: fn(Raw, *mut Pci) -> u32;
        zeContextCreate: fn(Raw, *const Flags, *mut Raw) -> u32;
        zeContextDestroy: fn(Raw) -> u32;
        zeModuleCreate: fn(Raw, Raw, *const Module, *mut Raw, *mut Raw) -> u32;
        zeModuleDestroy: fn(Raw) -> u32;
        zeKernelCreate: fn(Raw, *const Kernel, *mut Raw) -> u32;
        zeKernelDestroy: fn(Raw) -> u32;
        zeKernelSetGroupSize: fn(Raw, u32, u32, u32) -> u32;
        zeKernelSetArgumentValue: fn(Raw, u32, usize, *const c_void) -> u32;
        zeMemAllocDevice: fn(Raw, *const Counted, usize, usize, Raw, *mut *mut c_void) -> u32;
        zeMemAllocHost: fn(Raw, *const Flags, usize, usize, *mut *mut c_void) -> u32;
        zeMemFree: fn(Raw, *mut c_void) -> u32;
        zeCommandListCreateImmediate: fn(Raw, Raw, *const Queue, *mut Raw) -> u32;
        zeCommandListDestroy: fn(Raw) -> u32;
        zeCommandListAppendMemoryCopy: fn(Raw, *mut c_void, *const c_void, usize, Raw, u32, *const Raw) -> u32;
        zeCommandListAppendLaunchKernel: fn(Raw, Raw, *const GroupCount, Raw, u32, *const Raw) -> u32;
        zeCommandListAppendLaunchKernelIndirect: fn(Raw, Raw, *const GroupCount, Raw, u32, *const Raw) -> u32;
        zeEventPoolCreate: fn(Raw, *const Counted, u32, *const Raw, *mut Raw) -> u32;
        zeEventPoolDestroy: fn(Raw) -> u32;
        zeEventCreate: fn(Raw, *const Event, *mut Raw) -> u32;
        zeEventDestroy: fn(Raw) -> u32;
        zeEventHostSynchronize: fn(Raw, u64) -> u32;
        zeEventQueryKernelTimestamp: fn(Raw, *mut KernelTimestamp) -> u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes as of the header's structures on x86-64.
    #[test]
    fn structures_have_the_sizes_of_the_header() {
        assert_eq!((size_of::<Head>(), size_of::<Flags>(), size_of::<Counted>()), (16, 24, 24));
        assert_eq!((size_of::<Queue>(), size_of::<Event>(), size_of::<Kernel>()), (40, 32, 32));
        assert_eq!((size_of::<Module>(), size_of::<Pci>(), size_of::<KernelTimestamp>()), (56, 48, 32));
        assert_eq!(
            (size_of::<DeviceProperties>(), std::mem::offset_of!(DeviceProperties, timer_resolution)),
            (368, 80)
        );
    }
}
