// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Runs problems through OpenCL.

mod api;
mod images;

use std::ffi::{CString, c_void};
use std::ptr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use api::{Functions, Raw};

use crate::opencl::images::Image;
use crate::picture::Picture;
use crate::problem::{Argument, Problem};
use crate::report::{DeviceInfo, PciAddress};

/// The result of a launch.
pub struct Launched {
    /// Time between the timestamps that the card wrote before and after the kernel.
    pub device: Duration,
    /// Contents of the output buffers, in the order of the arguments.
    pub outputs: Vec<Vec<u8>>,
}

/// What a program is built from.
#[derive(Clone, Copy)]
pub enum Code<'a> {
    /// A binary for the device.
    Binary(&'a [u8]),
    /// OpenCL C.
    Source(&'a str),
}

/// An object of the driver, which is released on drop.
pub struct Object {
    raw: Raw,
    release: unsafe extern "C" fn(Raw) -> i32,
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: the object was created by the driver, is released once, and no pointer to it is kept elsewhere. A failure is
        // ignored: there is nothing to be done about it.
        unsafe { (self.release)(self.raw) };
    }
}

/// A device with a context and a queue.
pub struct OpenCl {
    // Dropped in this order.
    queue: Object,
    context: Object,
    device: Raw,
    functions: Functions,
}

/// Fails if `status` is an error.
fn check(status: i32, what: &str) -> Result<()> {
    match status {
        api::SUCCESS => Ok(()),
        status => bail!("{what} failed with {}", error(status)),
    }
}

/// The name of an error that programs meet, with its number.
fn error(status: i32) -> String {
    let name = match status {
        -1 => "CL_DEVICE_NOT_FOUND",
        -2 => "CL_DEVICE_NOT_AVAILABLE",
        -4 => "CL_MEM_OBJECT_ALLOCATION_FAILURE",
        -5 => "CL_OUT_OF_RESOURCES",
        -6 => "CL_OUT_OF_HOST_MEMORY",
        -10 => "CL_IMAGE_FORMAT_NOT_SUPPORTED",
        -11 => "CL_BUILD_PROGRAM_FAILURE",
        -14 => "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
        -36 => "CL_INVALID_COMMAND_QUEUE",
        -42 => "CL_INVALID_BINARY",
        -46 => "CL_INVALID_KERNEL_NAME",
        -54 => "CL_INVALID_WORK_GROUP_SIZE",
        -1001 => "CL_PLATFORM_NOT_FOUND_KHR",
        _ => return format!("OpenCL's error {status}"),
    };
    format!("{name} ({status})")
}

/// Makes an object of what a function that creates one has returned.
fn object(raw: Raw, status: i32, release: unsafe extern "C" fn(Raw) -> i32, what: &str) -> Result<Object> {
    check(status, what)?;
    if raw.is_null() {
        bail!("{what} returned no object");
    }
    Ok(Object { raw, release })
}

impl OpenCl {
    /// Opens the GPU at `address`, or the first GPU.
    pub fn open(address: Option<PciAddress>) -> Result<(Self, DeviceInfo)> {
        let functions = Functions::load()?;
        let devices = devices(&functions)?;
        if devices.is_empty() {
            bail!("OpenCL has no GPU: is the driver xe loaded, and is there a render node in /dev/dri?");
        }
        let found = devices.iter().find(|device| address.is_none() || pci_address(&functions, **device) == address);
        let Some(device) = found.copied() else {
            bail!("none of OpenCL's {} GPUs has the PCI address {}", devices.len(), address.unwrap_or_default());
        };
        let info = DeviceInfo {
            name: text(&functions, device, api::DEVICE_NAME),
            driver: text(&functions, device, api::DRIVER_VERSION),
            address: pci_address(&functions, device).map(|address| address.to_string()).unwrap_or_default(),
            units: number(&functions, device, api::DEVICE_MAX_COMPUTE_UNITS),
            memory_bytes: number(&functions, device, api::DEVICE_GLOBAL_MEM_SIZE),
        };
        let mut status = 0;
        // SAFETY: one device, no properties and no callback; the status is written before the return.
        let raw =
            unsafe { (functions.clCreateContext)(ptr::null(), 1, &device, ptr::null(), ptr::null_mut(), &mut status) };
        let context = object(raw, status, functions.clReleaseContext, "clCreateContext")?;
        let properties = [api::QUEUE_PROPERTIES, api::QUEUE_PROFILING_ENABLE, 0];
        // SAFETY: context and device are valid; the list of properties ends with 0.
        let raw = unsafe {
            (functions.clCreateCommandQueueWithProperties)(context.raw, device, properties.as_ptr(), &mut status)
        };
        let queue = object(raw, status, functions.clReleaseCommandQueue, "clCreateCommandQueueWithProperties")?;
        Ok((Self { queue, context, device, functions }, info))
    }

    /// Runs a kernel of a program.
    pub fn run(&self, program: &Object, problem: &Problem) -> Result<Launched> {
        let name = CString::new(problem.kernel)?;
        let functions = &self.functions;
        let mut status = 0;
        // SAFETY: the program is built, and the name is a C string.
        let raw = unsafe { (functions.clCreateKernel)(program.raw, name.as_ptr(), &mut status) };
        let kernel = object(raw, status, functions.clReleaseKernel, "clCreateKernel")?;
        let buffers = self.set_arguments(&kernel, problem)?;
        let mut event = ptr::null_mut();
        // SAFETY: queue and kernel are valid, all arguments are set, and the sizes have three dimensions.
        let status = unsafe {
            (functions.clEnqueueNDRangeKernel)(
                self.queue.raw,
                kernel.raw,
                3,
                ptr::null(),
                problem.global.as_ptr(),
                problem.local.as_ptr(),
                0,
                ptr::null(),
                &mut event,
            )
        };
        let event = object(event, status, functions.clReleaseEvent, "clEnqueueNDRangeKernel")?;
        // SAFETY: the queue is valid.
        check(unsafe { (functions.clFinish)(self.queue.raw) }, "clFinish")?;
        let device = self.time(&event)?;
        let outputs = buffers.outputs.iter().map(|output| self.read_output(output)).collect::<Result<_>>()?;
        Ok(Launched { device, outputs })
    }

    /// Builds a program with the compiler's `options`.
    pub fn program(&self, code: Code<'_>, options: &str) -> Result<Object> {
        let functions = &self.functions;
        let mut status = 0;
        let program = match code {
            Code::Binary(bytes) => {
                let (start, length, mut of_binary) = (bytes.as_ptr(), bytes.len(), 0);
                // SAFETY: one device with one binary of this length, which is copied.
                let raw = unsafe {
                    (functions.clCreateProgramWithBinary)(
                        self.context.raw,
                        1,
                        &self.device,
                        &length,
                        &start,
                        &mut of_binary,
                        &mut status,
                    )
                };
                let program = object(raw, status, functions.clReleaseProgram, "clCreateProgramWithBinary")?;
                check(of_binary, "clCreateProgramWithBinary")?;
                program
            }
            Code::Source(text) => {
                let (start, length) = (text.as_ptr().cast(), text.len());
                // SAFETY: one string of this length, which is copied.
                let raw =
                    unsafe { (functions.clCreateProgramWithSource)(self.context.raw, 1, &start, &length, &mut status) };
                object(raw, status, functions.clReleaseProgram, "clCreateProgramWithSource")?
            }
        };
        let options = CString::new(options)?;
        // SAFETY: program and device are valid, the options are a C string, and there is no callback.
        let status = unsafe {
            (functions.clBuildProgram)(program.raw, 1, &self.device, options.as_ptr(), ptr::null(), ptr::null_mut())
        };
        check(status, "clBuildProgram").with_context(|| self.build_log(&program))?;
        Ok(program)
    }

    /// The last line of the compiler's messages.
    fn build_log(&self, program: &Object) -> String {
        let mut log = vec![0u8; 16 << 10];
        let mut length = 0;
        // SAFETY: the driver writes at most as many bytes as the buffer has.
        let status = unsafe {
            (self.functions.clGetProgramBuildInfo)(
                program.raw,
                self.device,
                api::PROGRAM_BUILD_LOG,
                log.len(),
                log.as_mut_ptr().cast(),
                &mut length,
            )
        };
        log.truncate(if status == api::SUCCESS { length.min(log.len()) } else { 0 });
        let text = String::from_utf8_lossy(&log).trim_end_matches('\0').trim_end().to_owned();
        text.lines().last().unwrap_or("the compiler printed nothing").to_owned()
    }

    /// Sets the kernel's arguments. Returns the buffers.
    fn set_arguments(&self, kernel: &Object, problem: &Problem) -> Result<Buffers> {
        let mut buffers = Buffers::default();
        for (index, argument) in (0..).zip(&problem.arguments) {
            let set = |size: usize, value: *const c_void| {
                // SAFETY: the value has this many bytes, or is null for shared local memory.
                let status = unsafe { (self.functions.clSetKernelArg)(kernel.raw, index, size, value) };
                check(status, &format!("clSetKernelArg of argument {index}"))
            };
            match argument {
                Argument::Input(bytes) | Argument::Output { before: bytes, .. } => {
                    let buffer = self.buffer(bytes)?;
                    set(size_of::<Raw>(), ptr::from_ref(&buffer.raw).cast())?;
                    let is_output = matches!(argument, Argument::Output { .. });
                    if is_output {
                        buffers.outputs.push(Output::Buffer(buffer, bytes.len()));
                    } else {
                        buffers.inputs.push(buffer);
                    }
                }
                Argument::Image { picture, texels } | Argument::OutputImage { picture, before: texels, .. } => {
                    let is_output = matches!(argument, Argument::OutputImage { .. });
                    let image = self.image(picture, texels, is_output)?;
                    set(size_of::<Raw>(), ptr::from_ref(&image.object().raw).cast())?;
                    if is_output {
                        buffers.outputs.push(Output::Image(image, *picture));
                    } else {
                        buffers.images.push(image);
                    }
                }
                Argument::Local(size) => set(*size, ptr::null())?,
                Argument::Scalar(bytes) => set(bytes.len(), bytes.as_ptr().cast())?,
            }
        }
        Ok(buffers)
    }

    fn buffer(&self, bytes: &[u8]) -> Result<Object> {
        let mut status = 0;
        let start = bytes.as_ptr().cast_mut().cast();
        // SAFETY: the driver copies the bytes and does not write to them.
        let raw = unsafe {
            (self.functions.clCreateBuffer)(self.context.raw, api::MEM_COPY, bytes.len(), start, &mut status)
        };
        object(raw, status, self.functions.clReleaseMemObject, "clCreateBuffer")
    }

    fn read_output(&self, output: &Output) -> Result<Vec<u8>> {
        match output {
            Output::Buffer(buffer, size) => self.read(buffer, *size),
            Output::Image(image, picture) => self.read_image(image, picture),
        }
    }

    fn read(&self, buffer: &Object, size: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0u8; size];
        // SAFETY: the read is blocking, and `bytes` has as many bytes as are read.
        let status = unsafe {
            (self.functions.clEnqueueReadBuffer)(
                self.queue.raw,
                buffer.raw,
                1,
                0,
                size,
                bytes.as_mut_ptr().cast(),
                0,
                ptr::null(),
                ptr::null_mut(),
            )
        };
        check(status, "clEnqueueReadBuffer")?;
        Ok(bytes)
    }

    /// The time between the card's timestamps of a finished launch.
    fn time(&self, event: &Object) -> Result<Duration> {
        let moment = |name: u32| {
            let mut nanoseconds = 0u64;
            // SAFETY: the driver writes a `cl_ulong`.
            let status = unsafe {
                (self.functions.clGetEventProfilingInfo)(
                    event.raw,
                    name,
                    size_of::<u64>(),
                    ptr::from_mut(&mut nanoseconds).cast(),
                    ptr::null_mut(),
                )
            };
            check(status, "clGetEventProfilingInfo").map(|()| nanoseconds)
        };
        let (start, end) = (moment(api::PROFILING_COMMAND_START)?, moment(api::PROFILING_COMMAND_END)?);
        Ok(Duration::from_nanos(end.saturating_sub(start)))
    }
}

/// The buffers and images of a launch.
#[derive(Default)]
struct Buffers {
    /// Kept until the launch has ended.
    inputs: Vec<Object>,
    /// Kept until the launch has ended.
    images: Vec<Image>,
    outputs: Vec<Output>,
}

/// What a kernel writes.
enum Output {
    /// A buffer of so many bytes.
    Buffer(Object, usize),
    Image(Image, Picture),
}

/// Returns the GPUs of all platforms.
fn devices(functions: &Functions) -> Result<Vec<Raw>> {
    const MOST: u32 = 64;
    let mut platforms = [ptr::null_mut(); MOST as usize];
    let mut count = 0;
    // SAFETY: the loader writes at most `MOST` platforms.
    check(unsafe { (functions.clGetPlatformIDs)(MOST, platforms.as_mut_ptr(), &mut count) }, "clGetPlatformIDs")?;
    let mut all = Vec::new();
    for platform in platforms.iter().take(count.min(MOST) as usize) {
        let mut devices = [ptr::null_mut(); MOST as usize];
        let mut count = 0;
        // SAFETY: the driver writes at most `MOST` devices.
        let status = unsafe {
            (functions.clGetDeviceIDs)(*platform, api::DEVICE_TYPE_GPU, MOST, devices.as_mut_ptr(), &mut count)
        };
        // A platform without GPUs is an error to OpenCL.
        if status == api::SUCCESS {
            all.extend(devices.iter().take(count.min(MOST) as usize));
        }
    }
    Ok(all)
}

/// Reads a property of a device into `value`. Returns its length, or `None` if the device does not have it.
fn property(functions: &Functions, device: Raw, name: u32, value: &mut [u8]) -> Option<usize> {
    let mut length = 0;
    // SAFETY: the driver writes at most as many bytes as `value` has.
    let status =
        unsafe { (functions.clGetDeviceInfo)(device, name, value.len(), value.as_mut_ptr().cast(), &mut length) };
    (status == api::SUCCESS).then_some(length.min(value.len()))
}

fn text(functions: &Functions, device: Raw, name: u32) -> String {
    let mut bytes = [0; 256];
    let length = property(functions, device, name, &mut bytes).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..length]).trim_end_matches('\0').to_owned()
}

/// A number of 4 or 8 bytes.
fn number(functions: &Functions, device: Raw, name: u32) -> u64 {
    let mut bytes = [0; 8];
    match property(functions, device, name, &mut bytes) {
        Some(_) => u64::from_le_bytes(bytes),
        None => 0,
    }
}

fn pci_address(functions: &Functions, device: Raw) -> Option<PciAddress> {
    let mut bytes = [0; 16];
    property(functions, device, api::DEVICE_PCI_BUS_INFO, &mut bytes).filter(|length| *length == bytes.len())?;
    let (parts, _) = bytes.as_chunks::<4>();
    let part = |index: usize| u32::from_le_bytes(parts[index]);
    Some(PciAddress { domain: part(0), bus: part(1), device: part(2), function: part(3) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_names() {
        let message = check(-5, "clFinish").unwrap_err().to_string();
        assert_eq!(message, "clFinish failed with CL_OUT_OF_RESOURCES (-5)");
        assert_eq!(check(-999, "x").unwrap_err().to_string(), "x failed with OpenCL's error -999");
        assert!(check(0, "x").is_ok());
    }
}
