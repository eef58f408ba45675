// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The i915 implementation of the driver interface.
//!
//! The program allocates GPU virtual addresses itself, as with xe. Every submission lists all objects of the address
//! space, pinned at their bound addresses ("softpin"). Implicit synchronisation through the objects is disabled; only
//! fences order submissions.

use std::time::Duration;

use super::device::{Config, Device, DriverApi, DrmError, Engine, EngineCycles, Gt, MemRegion, Result, Table};
use super::uapi::i915 as uapi;
use super::vm::{Bound, Place, Signal};
use crate::driver::Driver;
use crate::number::{count, low};

/// Size in bytes of an engine list with one engine: `struct i915_context_param_engines` is packed.
const ONE_ENGINE_BYTES: u32 = 12;

/// Alignment of pinned addresses that every kernel accepts, and the one that kernels with PTEs of 64 KiB require.
const ALIGNMENT: u64 = 2 << 20;
const ALIGNMENT_64K_PTES: u64 = 64 << 10;

/// The [`DriverApi`] of i915.
pub(super) struct I915;

impl DriverApi for I915 {
    fn engines(&self, device: &Device) -> Result<Vec<Engine>> {
        let answer = query(device, uapi::query::ENGINE_INFO)?;
        let table = Table { name: "engine", bytes: &answer };
        (0..table.u32(0)? as usize)
            .map(|index| {
                let at = 16 + index * 56;
                Ok(Engine { class: table.u16(at)?, instance: table.u16(at + 2)?, gt: 0 })
            })
            .collect()
    }

    fn mem_regions(&self, device: &Device) -> Result<Vec<MemRegion>> {
        let answer = query(device, uapi::query::MEMORY_REGIONS)?;
        let table = Table { name: "memory regions", bytes: &answer };
        (0..table.u32(0)? as usize)
            .map(|index| {
                let at = 16 + index * 88;
                let total_size = table.u64(at + 8)?;
                Ok(MemRegion {
                    class: if table.u16(at)? == uapi::MEMORY_CLASS_DEVICE { "vram" } else { "sysmem" },
                    instance: table.u16(at + 2)?,
                    min_page_size: 4096,
                    total_size,
                    used: total_size.saturating_sub(table.u64(at + 16)?),
                    cpu_visible_size: table.u64(at + 24)?,
                })
            })
            .collect()
    }

    fn gts(&self, device: &Device) -> Result<Vec<Gt>> {
        let reference_clock = parameter(device, uapi::param::CS_TIMESTAMP_FREQUENCY)?.cast_unsigned();
        Ok(vec![Gt { id: 0, kind: "main", reference_clock }])
    }

    fn config(&self, device: &Device) -> Result<Config> {
        let address_spaces = parameter(device, uapi::param::HAS_ALIASING_PPGTT)? > uapi::ALIASING_PPGTT;
        Ok(Config {
            device_id: (parameter(device, uapi::param::CHIPSET_ID)?.cast_unsigned() & 0xffff) as u16,
            revision: (parameter(device, uapi::param::REVISION)?.cast_unsigned() & 0xff) as u8,
            flags: 0,
            min_alignment: alignment(self.guc_submission_version(device).is_ok()),
            va_bits: if address_spaces { 48 } else { 31 },
            address_spaces,
        })
    }

    fn guc_submission_version(&self, device: &Device) -> Result<String> {
        let answer = query(device, uapi::query::GUC_SUBMISSION_VERSION)?;
        let table = Table { name: "firmware version", bytes: &answer };
        Ok(format!("{}.{}.{}", table.u32(4)?, table.u32(8)?, table.u32(12)?))
    }

    fn engine_cycles(&self, _device: &Device, _engine: Engine) -> Result<EngineCycles> {
        Err(DrmError::Unsupported(Driver::I915, "engine cycles query"))
    }

    fn create_vm(&self, device: &Device) -> Result<u32> {
        if !device.address_spaces() {
            return Err(DrmError::Unsupported(Driver::I915, "address spaces for programs on this GPU"));
        }
        let mut create = uapi::VmCreate::default();
        device.ioctl(&mut create)?;
        Ok(create.0.vm_id)
    }

    fn destroy_vm(&self, device: &Device, vm: u32) -> Result<()> {
        device.ioctl(&mut uapi::VmDestroy(uapi::VmControl { vm_id: vm, ..Default::default() }))
    }

    fn create_object(&self, device: &Device, _vm: u32, place: Place, size: u64) -> Result<u32> {
        let class = match place {
            Place::Vram => uapi::MEMORY_CLASS_DEVICE,
            Place::System => uapi::MEMORY_CLASS_SYSTEM,
        };
        let region = uapi::MemoryClassInstance { class, instance: device.region(place)? };
        let regions = uapi::MemoryRegions {
            base: uapi::UserExtension { name: uapi::CREATE_EXT_MEMORY_REGIONS, ..Default::default() },
            pad: 0,
            num_regions: 1,
            regions: std::ptr::from_ref(&region) as u64,
        };
        let mut create =
            uapi::GemCreateExt { size, extensions: std::ptr::from_ref(&regions) as u64, ..Default::default() };
        device.ioctl(&mut create)?;
        Ok(create.handle)
    }

    fn mmap_offset(&self, device: &Device, handle: u32) -> Result<u64> {
        let mut offset = uapi::GemMmapOffset { handle, flags: uapi::MMAP_OFFSET_FIXED, ..Default::default() };
        device.ioctl(&mut offset)?;
        Ok(offset.offset)
    }

    fn bind(&self, _device: &Device, _vm: u32, _bound: &Bound) -> Result<()> {
        Ok(())
    }

    fn unbind(&self, _device: &Device, _vm: u32, _bound: &Bound) -> Result<()> {
        Ok(())
    }

    fn create_queue(&self, device: &Device, vm: u32, engine: Engine) -> Result<u32> {
        let engines = uapi::OneEngine { extensions: 0, class: engine.class, instance: engine.instance };
        let set = |next: u64, param, value, size| uapi::SetParam {
            base: uapi::UserExtension { next, name: uapi::CONTEXT_CREATE_SET_PARAM, ..Default::default() },
            param: uapi::ContextParam { context: 0, size, param, value },
        };
        let address_space = set(0, uapi::CONTEXT_PARAM_VM, vm.into(), 0);
        let engines = std::ptr::from_ref(&engines) as u64;
        let engine_list =
            set(std::ptr::from_ref(&address_space) as u64, uapi::CONTEXT_PARAM_ENGINES, engines, ONE_ENGINE_BYTES);
        let mut create = uapi::ContextCreateExt {
            context: 0,
            flags: uapi::CONTEXT_CREATE_USE_EXTENSIONS,
            extensions: std::ptr::from_ref(&engine_list) as u64,
        };
        device.ioctl(&mut create)?;
        Ok(create.context)
    }

    fn destroy_queue(&self, device: &Device, queue: u32) -> Result<()> {
        device.ioctl(&mut uapi::ContextDestroy { context: queue, pad: 0 })
    }

    fn exec(
        &self,
        device: &Device,
        queue: u32,
        address: u64,
        bound: &[Bound],
        after: Option<u32>,
        signal: Signal,
    ) -> Result<()> {
        let Signal::Syncobj(signal) = signal else {
            return Err(DrmError::Unsupported(Driver::I915, "user fences in memory"));
        };
        let within = |object: &Bound| (object.address..object.address + object.size).contains(&address);
        let batch = bound.iter().find(|object| within(object)).ok_or(DrmError::Unbound(address))?;
        let others = bound.iter().filter(|object| !within(object));
        let objects: Vec<uapi::ExecObject> = std::iter::once(batch)
            .chain(others)
            .map(|object| uapi::ExecObject {
                handle: object.handle,
                offset: object.address,
                flags: uapi::OBJECT_48_BIT | uapi::OBJECT_PINNED | uapi::OBJECT_ASYNC,
                ..Default::default()
            })
            .collect();
        let awaited = after.map(|handle| uapi::ExecFence { handle, flags: uapi::EXEC_FENCE_WAIT });
        let signal = uapi::ExecFence { handle: signal, flags: uapi::EXEC_FENCE_SIGNAL };
        let fences: Vec<uapi::ExecFence> = awaited.into_iter().chain([signal]).collect();
        device.ioctl(&mut uapi::ExecBuffer2 {
            buffers: objects.as_ptr() as u64,
            buffer_count: count(objects.len()),
            // Relative to the start of the object; batch_len 0 means up to the end of the object.
            batch_start_offset: low(address - batch.address),
            num_fences: count(fences.len()),
            fences: fences.as_ptr() as u64,
            flags: uapi::EXEC_BATCH_FIRST | uapi::EXEC_NO_RELOC | uapi::EXEC_FENCE_ARRAY,
            context: queue.into(),
            ..Default::default()
        })
    }

    fn is_banned(&self, device: &Device, queue: u32) -> Result<bool> {
        let mut stats = uapi::ResetStats { context: queue, ..Default::default() };
        device.ioctl(&mut stats)?;
        Ok(stats.batch_active != 0 || stats.batch_pending != 0)
    }

    fn wait_user_fence(
        &self,
        _device: &Device,
        _queue: u32,
        _pointer: u64,
        _value: u64,
        _timeout: Duration,
    ) -> Result<()> {
        Err(DrmError::Unsupported(Driver::I915, "user fences in memory"))
    }
}

/// Returns the alignment of objects' addresses. Linux before 6.3 pads each object in local memory to 2 MiB of addresses and
/// rejects other pinned addresses (`i915_drm.h` of 6.1: `drm_i915_gem_create_ext`). No query returns the rule. The query of
/// the version of GuC submission is younger (6.8), so a kernel that has it accepts 64 KiB.
fn alignment(has_guc_submission_version: bool) -> u64 {
    if has_guc_submission_version { ALIGNMENT_64K_PTES } else { ALIGNMENT }
}

/// Reads a parameter of the driver (`I915_PARAM_*`).
pub(super) fn parameter(device: &Device, param: i32) -> Result<i32> {
    let mut value = 0i32;
    device.ioctl(&mut uapi::GetParam { param, pad: 0, value: std::ptr::from_mut(&mut value) as u64 })?;
    Ok(value)
}

fn query(device: &Device, query: u64) -> Result<Vec<u8>> {
    let mut answer = Vec::new();
    // The first query returns only the length.
    for _ in 0..2 {
        let mut item =
            uapi::QueryItem { query, length: i32::try_from(answer.len()).unwrap_or(i32::MAX), ..Default::default() };
        item.data = if answer.is_empty() { 0 } else { answer.as_mut_ptr() as u64 };
        let items = std::ptr::from_mut(&mut item) as u64;
        device.ioctl(&mut uapi::Query { num_items: 1, flags: 0, items })?;
        // A negative length is a negated errno.
        let length = usize::try_from(item.length).map_err(|_| DrmError::Ioctl {
            name: "DRM_IOCTL_I915_QUERY",
            source: std::io::Error::from_raw_os_error(-item.length),
        })?;
        answer.resize(length, 0);
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel without the query (6.1) gets the alignment that is valid with every kernel.
    #[test]
    fn kernels_without_the_guc_version_query_get_2_mib_alignment() {
        assert_eq!((alignment(false), alignment(true)), (2 << 20, 64 << 10));
    }
}
