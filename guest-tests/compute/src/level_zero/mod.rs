// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Runs problems through Level Zero, with buffers in device memory that are copied by the card.

mod api;

use std::ffi::{CString, c_void};
use std::ptr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use api::{Counted, DeviceProperties, Event, Flags, Functions, GroupCount, Head, Kernel, Module, Pci, Queue, Raw};

use crate::opencl::Launched;
use crate::problem::{Argument, Problem};
use crate::report::PciAddress;

/// How the card learns the number of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// From the command.
    Direct,
    /// From memory.
    Indirect,
}

/// An object of the driver, which is destroyed on drop.
struct Object {
    raw: Raw,
    destroy: unsafe extern "C" fn(Raw) -> u32,
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: the object was created by the driver, is destroyed once, and no pointer to it is kept elsewhere. A failure
        // is ignored: there is nothing to be done about it.
        unsafe { (self.destroy)(self.raw) };
    }
}

/// A device with a context and an immediate command list.
pub struct LevelZero {
    // Dropped in this order.
    list: Object,
    context: Object,
    device: Raw,
    functions: Functions,
}

/// Memory of a context.
struct Memory<'a> {
    start: *mut c_void,
    owner: &'a LevelZero,
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated in this context and is freed once.
        unsafe { (self.owner.functions.zeMemFree)(self.owner.context.raw, self.start) };
    }
}

/// Fails if `status` is an error.
fn check(status: u32, what: &str) -> Result<()> {
    let name = match status {
        api::SUCCESS => return Ok(()),
        0x7000_0001 => "ZE_RESULT_ERROR_DEVICE_LOST",
        0x7000_0002 => "ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY",
        0x7000_0003 => "ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY",
        0x7000_0004 => "ZE_RESULT_ERROR_MODULE_BUILD_FAILURE",
        0x7800_0001 => "ZE_RESULT_ERROR_UNINITIALIZED",
        0x7800_0004 => "ZE_RESULT_ERROR_INVALID_ARGUMENT",
        _ => bail!("{what} failed with Level Zero's error {status:#x}"),
    };
    bail!("{what} failed with {name} ({status:#x})")
}

/// Creates an object by `create`, which stores it.
fn object(
    what: &str,
    destroy: unsafe extern "C" fn(Raw) -> u32,
    create: impl FnOnce(*mut Raw) -> u32,
) -> Result<Object> {
    let mut raw = ptr::null_mut();
    check(create(&mut raw), what)?;
    if raw.is_null() {
        bail!("{what} returned no object");
    }
    Ok(Object { raw, destroy })
}

impl LevelZero {
    /// Opens the device at `address`, or the first one.
    pub fn open(address: Option<PciAddress>) -> Result<Self> {
        let functions = Functions::load()?;
        // SAFETY: no requirements.
        check(unsafe { (functions.zeInit)(0) }, "zeInit")?;
        let (driver, device) = device(&functions, address)?;
        let context = Flags { head: Head::CONTEXT, flags: 0 };
        let context = object("zeContextCreate", functions.zeContextDestroy, |raw| {
            // SAFETY: driver and description are valid, and one object is stored.
            unsafe { (functions.zeContextCreate)(driver, &context, raw) }
        })?;
        let queue = Queue { head: Head::QUEUE, ordinal: 0, index: 0, flags: 0, mode: api::SYNCHRONOUS, priority: 0 };
        let list = object("zeCommandListCreateImmediate", functions.zeCommandListDestroy, |raw| {
            // SAFETY: context, device and description are valid, and one object is stored.
            unsafe { (functions.zeCommandListCreateImmediate)(context.raw, device, &queue, raw) }
        })?;
        Ok(Self { list, context, device, functions })
    }

    /// Loads a binary for the device and runs one of its kernels.
    pub fn run(&self, binary: &[u8], dispatch: Dispatch, problem: &Problem) -> Result<Launched> {
        let functions = &self.functions;
        let module = Module {
            head: Head::MODULE,
            format: api::NATIVE,
            size: binary.len(),
            input: binary.as_ptr(),
            options: c"".as_ptr(),
            constants: ptr::null(),
        };
        let module = object("zeModuleCreate", functions.zeModuleDestroy, |raw| {
            // SAFETY: the description has the binary with its length, one object is stored, and there is no log.
            unsafe { (functions.zeModuleCreate)(self.context.raw, self.device, &module, raw, ptr::null_mut()) }
        })?;
        let name = CString::new(problem.kernel)?;
        let kernel = Kernel { head: Head::KERNEL, flags: 0, name: name.as_ptr() };
        let kernel = object("zeKernelCreate", functions.zeKernelDestroy, |raw| {
            // SAFETY: the module is valid, the name is a C string, and one object is stored.
            unsafe { (functions.zeKernelCreate)(module.raw, &kernel, raw) }
        })?;
        let [x, y, z] = problem.local.map(|size| u32::try_from(size).unwrap_or(u32::MAX));
        // SAFETY: the kernel is valid.
        check(unsafe { (functions.zeKernelSetGroupSize)(kernel.raw, x, y, z) }, "zeKernelSetGroupSize")?;
        let memory = self.set_arguments(&kernel, problem)?;
        let (event, _pool) = self.event()?;
        self.launch(&kernel, problem, dispatch, &event)?;
        let device = self.time(&event)?;
        let outputs = problem.arguments.iter().zip(&memory).filter_map(|(argument, memory)| match (argument, memory) {
            (Argument::Output { before, .. }, Some(memory)) => Some(self.read(memory, before.len())),
            _ => None,
        });
        Ok(Launched { device, outputs: outputs.collect::<Result<_>>()? })
    }

    /// Sets the kernel's arguments. Returns the memory of each that is a buffer.
    fn set_arguments(&self, kernel: &Object, problem: &Problem) -> Result<Vec<Option<Memory<'_>>>> {
        let mut all = Vec::new();
        for (index, argument) in (0..).zip(&problem.arguments) {
            let set = |size: usize, value: *const c_void| {
                // SAFETY: the value has this many bytes, or is null for shared local memory.
                let status = unsafe { (self.functions.zeKernelSetArgumentValue)(kernel.raw, index, size, value) };
                check(status, &format!("zeKernelSetArgumentValue of argument {index}"))
            };
            all.push(match argument {
                Argument::Input(bytes) | Argument::Output { before: bytes, .. } => {
                    let memory = self.upload(bytes)?;
                    set(size_of::<*mut c_void>(), ptr::from_ref(&memory.start).cast())?;
                    Some(memory)
                }
                Argument::Image { .. } | Argument::OutputImage { .. } => bail!("argument {index} is an image"),
                Argument::Local(size) => {
                    set(*size, ptr::null())?;
                    None
                }
                Argument::Scalar(bytes) => {
                    set(bytes.len(), bytes.as_ptr().cast())?;
                    None
                }
            });
        }
        Ok(all)
    }

    fn launch(&self, kernel: &Object, problem: &Problem, dispatch: Dispatch, event: &Object) -> Result<()> {
        let groups = GroupCount(problem.groups().map(|count| u32::try_from(count).unwrap_or(u32::MAX)));
        match dispatch {
            Dispatch::Direct => {
                // SAFETY: list, kernel and event are valid, the number of groups is copied, and nothing is waited for.
                let status = unsafe {
                    let append = self.functions.zeCommandListAppendLaunchKernel;
                    append(self.list.raw, kernel.raw, &groups, event.raw, 0, ptr::null())
                };
                check(status, "zeCommandListAppendLaunchKernel")?;
            }
            Dispatch::Indirect => {
                let memory = self.host_memory(size_of::<GroupCount>())?;
                // SAFETY: the memory is the host's, has the size of the value, and the card does not use it yet.
                unsafe { memory.start.cast::<GroupCount>().write(groups) };
                // SAFETY: as above; the number of groups is in memory that the card reads, and is freed after the launch.
                let status = unsafe {
                    let append = self.functions.zeCommandListAppendLaunchKernelIndirect;
                    append(self.list.raw, kernel.raw, memory.start.cast(), event.raw, 0, ptr::null())
                };
                check(status, "zeCommandListAppendLaunchKernelIndirect")?;
                self.wait(event)?;
            }
        }
        self.wait(event)
    }

    fn wait(&self, event: &Object) -> Result<()> {
        // SAFETY: the event is valid.
        check(unsafe { (self.functions.zeEventHostSynchronize)(event.raw, u64::MAX) }, "zeEventHostSynchronize")
    }

    /// An event with timestamps, and the pool that it is in.
    fn event(&self) -> Result<(Object, Object)> {
        let functions = &self.functions;
        let pool = Counted { head: Head::EVENT_POOL, flags: api::TIMESTAMPS, number: 1 };
        let pool = object("zeEventPoolCreate", functions.zeEventPoolDestroy, |raw| {
            // SAFETY: the context and one device are valid, and one object is stored.
            unsafe { (functions.zeEventPoolCreate)(self.context.raw, &pool, 1, &self.device, raw) }
        })?;
        let event = Event { head: Head::EVENT, index: 0, signal: api::SCOPE_HOST, wait: api::SCOPE_HOST };
        let event = object("zeEventCreate", functions.zeEventDestroy, |raw| {
            // SAFETY: the pool has one event, and one object is stored.
            unsafe { (functions.zeEventCreate)(pool.raw, &event, raw) }
        })?;
        Ok((event, pool))
    }

    /// The time between the card's timestamps of a launch that has ended.
    fn time(&self, event: &Object) -> Result<Duration> {
        let mut stamp = api::KernelTimestamp::default();
        // SAFETY: the event has ended and has timestamps; one structure is written.
        let status = unsafe { (self.functions.zeEventQueryKernelTimestamp)(event.raw, &mut stamp) };
        check(status, "zeEventQueryKernelTimestamp")?;
        let mut properties = DeviceProperties {
            head: Head::DEVICE_PROPERTIES,
            kind: 0,
            vendor: 0,
            device: 0,
            flags: 0,
            subdevice: 0,
            core_clock: 0,
            most_memory: 0,
            contexts: 0,
            priorities: 0,
            threads: 0,
            simd: 0,
            units: 0,
            subslices: 0,
            slices: 0,
            timer_resolution: 0,
            timestamp_bits: 0,
            kernel_timestamp_bits: 0,
            uuid: [0; 16],
            name: [0; 256],
        };
        // SAFETY: the device is valid; the structure has the type that its head names.
        let status = unsafe { (self.functions.zeDeviceGetProperties)(self.device, &mut properties) };
        check(status, "zeDeviceGetProperties")?;
        // The timestamps have fewer than 64 bits, and may have wrapped.
        let bits = properties.kernel_timestamp_bits.clamp(1, 63);
        let ticks = stamp.end.wrapping_sub(stamp.start) & ((1 << bits) - 1);
        Ok(Duration::from_nanos(ticks.saturating_mul(properties.timer_resolution)))
    }

    /// Device memory with these contents.
    fn upload(&self, bytes: &[u8]) -> Result<Memory<'_>> {
        let description = Counted { head: Head::DEVICE_MEMORY, flags: 0, number: 0 };
        let mut start = ptr::null_mut();
        // SAFETY: context, device and description are valid, and one pointer is stored.
        let status = unsafe {
            let allocate = self.functions.zeMemAllocDevice;
            allocate(self.context.raw, &description, bytes.len(), 64, self.device, &mut start)
        };
        check(status, "zeMemAllocDevice")?;
        let memory = Memory { start, owner: self };
        self.copy(memory.start, bytes.as_ptr().cast(), bytes.len())?;
        Ok(memory)
    }

    fn host_memory(&self, size: usize) -> Result<Memory<'_>> {
        let description = Flags { head: Head::HOST_MEMORY, flags: 0 };
        let mut start = ptr::null_mut();
        // SAFETY: context and description are valid, and one pointer is stored.
        let status = unsafe { (self.functions.zeMemAllocHost)(self.context.raw, &description, size, 64, &mut start) };
        check(status, "zeMemAllocHost")?;
        Ok(Memory { start, owner: self })
    }

    fn read(&self, memory: &Memory<'_>, size: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0u8; size];
        self.copy(bytes.as_mut_ptr().cast(), memory.start, size)?;
        Ok(bytes)
    }

    /// Copies memory by the card, and waits. Both ranges must have `size` bytes; one of them is the host's.
    fn copy(&self, to: *mut c_void, from: *const c_void, size: usize) -> Result<()> {
        // SAFETY: both ranges have this size, and the list is synchronous, so they are not used after the return.
        let status = unsafe {
            let append = self.functions.zeCommandListAppendMemoryCopy;
            append(self.list.raw, to, from, size, ptr::null_mut(), 0, ptr::null())
        };
        check(status, "zeCommandListAppendMemoryCopy")
    }
}

/// Returns the driver and the device at `address`, or the first one.
fn device(functions: &Functions, address: Option<PciAddress>) -> Result<(Raw, Raw)> {
    const MOST: usize = 64;
    // SAFETY: the callee stores at most as many objects as the count says, and the number that it stored.
    let drivers = list::<MOST>("zeDriverGet", |count, all| unsafe { (functions.zeDriverGet)(count, all) })?;
    let mut found = 0;
    for driver in drivers {
        // SAFETY: as above.
        let devices = list::<MOST>("zeDeviceGet", |count, all| unsafe { (functions.zeDeviceGet)(driver, count, all) })?;
        found += devices.len();
        let wanted = devices.into_iter().find(|device| address.is_none() || pci_address(functions, *device) == address);
        if let Some(device) = wanted {
            return Ok((driver, device));
        }
    }
    let address = address.map(|address| format!(" with the PCI address {address}")).unwrap_or_default();
    Err(anyhow::anyhow!("Level Zero has {found} devices")).with_context(|| format!("Level Zero has no device{address}"))
}

/// The objects that `get` stores, at most `MOST`.
fn list<const MOST: usize>(what: &str, get: impl FnOnce(*mut u32, *mut Raw) -> u32) -> Result<Vec<Raw>> {
    let mut all = [ptr::null_mut(); MOST];
    let mut count = u32::try_from(MOST).unwrap_or(u32::MAX);
    check(get(&mut count, all.as_mut_ptr()), what)?;
    Ok(all.into_iter().take(count as usize).collect())
}

fn pci_address(functions: &Functions, device: Raw) -> Option<PciAddress> {
    let mut pci =
        Pci { head: Head::PCI, domain: 0, bus: 0, device: 0, function: 0, generation: 0, width: 0, bandwidth: 0 };
    // SAFETY: the device is valid; the structure has the type that its head names.
    let status = unsafe { (functions.zeDevicePciGetPropertiesExt)(device, &mut pci) };
    let Pci { domain, bus, device, function, .. } = pci;
    (status == api::SUCCESS).then_some(PciAddress { domain, bus, device, function })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_names() {
        let message = check(0x7000_0001, "zeInit").unwrap_err().to_string();
        assert_eq!(message, "zeInit failed with ZE_RESULT_ERROR_DEVICE_LOST (0x70000001)");
        assert_eq!(check(7, "zeInit").unwrap_err().to_string(), "zeInit failed with Level Zero's error 0x7");
    }
}
