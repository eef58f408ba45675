// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The functions and constants of OpenCL (CL/cl.h, CL/cl_ext.h) that are used.

use std::ffi::{c_char, c_void};

use crate::library::functions;

/// `cl_int` for success.
pub const SUCCESS: i32 = 0;
/// `CL_DEVICE_TYPE_GPU`.
pub const DEVICE_TYPE_GPU: u64 = 1 << 2;
/// `CL_DEVICE_MAX_COMPUTE_UNITS`.
pub const DEVICE_MAX_COMPUTE_UNITS: u32 = 0x1002;
/// `CL_DEVICE_GLOBAL_MEM_SIZE`.
pub const DEVICE_GLOBAL_MEM_SIZE: u32 = 0x101f;
/// `CL_DEVICE_NAME`.
pub const DEVICE_NAME: u32 = 0x102b;
/// `CL_DRIVER_VERSION`.
pub const DRIVER_VERSION: u32 = 0x102d;
/// `CL_DEVICE_PCI_BUS_INFO_KHR`: domain, bus, device and function.
pub const DEVICE_PCI_BUS_INFO: u32 = 0x410f;
/// `CL_QUEUE_PROPERTIES`.
pub const QUEUE_PROPERTIES: u64 = 0x1093;
/// `CL_QUEUE_PROFILING_ENABLE`.
pub const QUEUE_PROFILING_ENABLE: u64 = 1 << 1;
/// `CL_MEM_READ_WRITE`.
pub const MEM_READ_WRITE: u64 = 1 << 0;
/// `CL_MEM_READ_ONLY`.
pub const MEM_READ_ONLY: u64 = 1 << 2;
/// `CL_MEM_COPY_HOST_PTR`.
pub const MEM_COPY_HOST: u64 = 1 << 5;
/// `CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR`.
pub const MEM_COPY: u64 = MEM_READ_WRITE | MEM_COPY_HOST;
/// `CL_MEM_FORCE_LINEAR_STORAGE_INTEL`.
pub const MEM_LINEAR: u64 = 1 << 19;
/// `CL_MEM_UNCOMPRESSED_HINT_INTEL`.
pub const MEM_UNCOMPRESSED: u64 = 1 << 22;
/// `CL_MEM_OBJECT_IMAGE2D`.
pub const IMAGE_2D: u32 = 0x10f1;
/// `CL_MEM_OBJECT_IMAGE3D`.
pub const IMAGE_3D: u32 = 0x10f2;
/// `CL_MEM_OBJECT_IMAGE2D_ARRAY`.
pub const IMAGE_2D_ARRAY: u32 = 0x10f3;
/// `CL_MEM_OBJECT_IMAGE1D`.
pub const IMAGE_1D: u32 = 0x10f4;
/// `CL_MEM_OBJECT_IMAGE1D_ARRAY`.
pub const IMAGE_1D_ARRAY: u32 = 0x10f5;
/// `CL_MEM_OBJECT_IMAGE1D_BUFFER`.
pub const IMAGE_1D_BUFFER: u32 = 0x10f6;
/// `CL_PROGRAM_BUILD_LOG`.
pub const PROGRAM_BUILD_LOG: u32 = 0x1183;
/// `CL_PROFILING_COMMAND_START`.
pub const PROFILING_COMMAND_START: u32 = 0x1282;
/// `CL_PROFILING_COMMAND_END`.
pub const PROFILING_COMMAND_END: u32 = 0x1283;

/// An object of the driver.
pub type Raw = *mut c_void;

/// `cl_image_format`.
#[repr(C)]
pub struct ImageFormat {
    /// Channels and their order.
    pub order: u32,
    /// Encoding of a channel.
    pub channel: u32,
}

/// `cl_image_desc`.
#[repr(C)]
pub struct ImageDescription {
    /// Dimensions.
    pub image_type: u32,
    /// Width in texels.
    pub width: usize,
    /// Height in texels; 0 if the image has none.
    pub height: usize,
    /// Depth in texels; 0 if the image has none.
    pub depth: usize,
    /// Number of elements of an array; 0 if the image is none.
    pub array_size: usize,
    /// Bytes between rows of the texels that are copied; 0 if they are one behind the other.
    pub row_pitch: usize,
    /// Bytes between planes of the texels that are copied; 0 if they are one behind the other.
    pub slice_pitch: usize,
    /// Number of levels; 0 for one.
    pub levels: u32,
    /// Number of samples; 0 for one.
    pub samples: u32,
    /// Buffer with the texels, or null.
    pub memory: Raw,
}

impl Default for ImageDescription {
    fn default() -> Self {
        Self {
            image_type: 0,
            width: 0,
            height: 0,
            depth: 0,
            array_size: 0,
            row_pitch: 0,
            slice_pitch: 0,
            levels: 0,
            samples: 0,
            memory: std::ptr::null_mut(),
        }
    }
}

functions! {
    /// The functions of the ICD loader.
    Functions, "libOpenCL.so.1", {
        clGetPlatformIDs: fn(u32, *mut Raw, *mut u32) -> i32;
        clGetDeviceIDs: fn(Raw, u64, u32, *mut Raw, *mut u32) -> i32;
        clGetDeviceInfo: fn(Raw, u32, usize, *mut c_void, *mut usize) -> i32;
        clCreateContext: fn(*const isize, u32, *const Raw, *const c_void, *mut c_void, *mut i32) -> Raw;
        clCreateCommandQueueWithProperties: fn(Raw, Raw, *const u64, *mut i32) -> Raw;
        clCreateProgramWithBinary: fn(Raw, u32, *const Raw, *const usize, *const *const u8, *mut i32, *mut i32) -> Raw;
        clCreateProgramWithSource: fn(Raw, u32, *const *const c_char, *const usize, *mut i32) -> Raw;
        clBuildProgram: fn(Raw, u32, *const Raw, *const c_char, *const c_void, *mut c_void) -> i32;
        clGetProgramBuildInfo: fn(Raw, Raw, u32, usize, *mut c_void, *mut usize) -> i32;
        clCreateKernel: fn(Raw, *const c_char, *mut i32) -> Raw;
        clSetKernelArg: fn(Raw, u32, usize, *const c_void) -> i32;
        clCreateBuffer: fn(Raw, u64, usize, *mut c_void, *mut i32) -> Raw;
        clCreateImage: fn(Raw, u64, *const ImageFormat, *const ImageDescription, *mut c_void, *mut i32) -> Raw;
        clEnqueueReadImage: fn(Raw, Raw, u32, *const usize, *const usize, usize, usize, *mut c_void, u32, *const Raw, *mut Raw) -> i32;
        clEnqueueNDRangeKernel: fn(Raw, Raw, u32, *const usize, *const usize, *const usize, u32, *const Raw, *mut Raw) -> i32;
        clFinish: fn(Raw) -> i32;
        clEnqueueReadBuffer: fn(Raw, Raw, u32, usize, usize, *mut c_void, u32, *const Raw, *mut Raw) -> i32;
        clGetEventProfilingInfo: fn(Raw, u32, usize, *mut c_void, *mut usize) -> i32;
        clReleaseContext: fn(Raw) -> i32;
        clReleaseCommandQueue: fn(Raw) -> i32;
        clReleaseProgram: fn(Raw) -> i32;
        clReleaseKernel: fn(Raw) -> i32;
        clReleaseMemObject: fn(Raw) -> i32;
        clReleaseEvent: fn(Raw) -> i32;
    }
}
