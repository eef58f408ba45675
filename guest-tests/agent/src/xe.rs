// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The xe implementation of the driver interface.

use std::time::Duration;

use super::device::{Config, Device, DriverApi, DrmError, Engine, EngineCycles, Gt, MemRegion, Result, Table};
use super::uapi::xe as uapi;
use super::vm::{Bound, Place, Signal};
use crate::number::count;

/// The [`DriverApi`] of xe.
pub(super) struct Xe;

impl DriverApi for Xe {
    fn engines(&self, device: &Device) -> Result<Vec<Engine>> {
        let answer = query(device, uapi::query::ENGINES, &[])?;
        let table = Table { name: "engines", bytes: &answer };
        (0..table.u32(0)? as usize)
            .map(|index| {
                let at = 8 + index * 32;
                Ok(Engine { class: table.u16(at)?, instance: table.u16(at + 2)?, gt: table.u16(at + 4)? })
            })
            .collect()
    }

    fn mem_regions(&self, device: &Device) -> Result<Vec<MemRegion>> {
        let answer = query(device, uapi::query::MEM_REGIONS, &[])?;
        let table = Table { name: "memory regions", bytes: &answer };
        (0..table.u32(0)? as usize)
            .map(|index| {
                let at = 8 + index * 88;
                Ok(MemRegion {
                    class: if table.u16(at)? == uapi::MEM_CLASS_VRAM { "vram" } else { "sysmem" },
                    instance: table.u16(at + 2)?,
                    min_page_size: table.u32(at + 4)?,
                    total_size: table.u64(at + 8)?,
                    used: table.u64(at + 16)?,
                    cpu_visible_size: table.u64(at + 24)?,
                })
            })
            .collect()
    }

    fn gts(&self, device: &Device) -> Result<Vec<Gt>> {
        let answer = query(device, uapi::query::GT_LIST, &[])?;
        let table = Table { name: "GT list", bytes: &answer };
        (0..table.u32(0)? as usize)
            .map(|index| {
                let at = 8 + index * 96;
                Ok(Gt {
                    id: table.u16(at + 4)?,
                    kind: if table.u16(at)? == 0 { "main" } else { "media" },
                    reference_clock: table.u32(at + 12)?,
                })
            })
            .collect()
    }

    fn config(&self, device: &Device) -> Result<Config> {
        let answer = query(device, uapi::query::CONFIG, &[])?;
        let table = Table { name: "configuration", bytes: &answer };
        let info = |index: usize| table.u64(8 + 8 * index);
        let id = info(0)?;
        Ok(Config {
            device_id: (id & 0xffff) as u16,
            revision: (id >> 16 & 0xff) as u8,
            flags: info(1)?,
            min_alignment: info(2)?,
            va_bits: info(3)?,
            address_spaces: true,
        })
    }

    fn guc_submission_version(&self, device: &Device) -> Result<String> {
        let answer = query(device, uapi::query::UC_FW_VERSION, &[0; 32])?;
        let table = Table { name: "firmware version", bytes: &answer };
        Ok(format!("{}.{}.{}", table.u32(8)?, table.u32(12)?, table.u32(16)?))
    }

    fn engine_cycles(&self, device: &Device, engine: Engine) -> Result<EngineCycles> {
        let mut request = [0u8; 40];
        for (index, half) in [engine.class, engine.instance, engine.gt].into_iter().enumerate() {
            request[2 * index..2 * index + 2].copy_from_slice(&half.to_ne_bytes());
        }
        request[8..12].copy_from_slice(&libc::CLOCK_MONOTONIC.to_ne_bytes());
        let answer = query(device, uapi::query::ENGINE_CYCLES, &request)?;
        let table = Table { name: "engine cycles", bytes: &answer };
        Ok(EngineCycles {
            width: table.u32(12)?,
            cycles: table.u64(16)?,
            cpu_timestamp: table.u64(24)?,
            cpu_delta: table.u64(32)?,
        })
    }

    fn create_vm(&self, device: &Device) -> Result<u32> {
        let mut create = uapi::VmCreate::default();
        device.ioctl(&mut create)?;
        Ok(create.vm_id)
    }

    fn destroy_vm(&self, device: &Device, vm: u32) -> Result<()> {
        device.ioctl(&mut uapi::VmDestroy { vm_id: vm, ..Default::default() })
    }

    fn create_object(&self, device: &Device, vm: u32, place: Place, size: u64) -> Result<u32> {
        let placement = 1 << device.region(place)?;
        let mut create = uapi::GemCreate { size, vm_id: vm, placement, ..Default::default() };
        (create.flags, create.cpu_caching) = match place {
            Place::Vram => (uapi::GEM_CREATE_FLAG_NEEDS_VISIBLE_VRAM, uapi::GEM_CPU_CACHING_WC),
            Place::System => (0, uapi::GEM_CPU_CACHING_WB),
        };
        device.ioctl(&mut create)?;
        Ok(create.handle)
    }

    fn mmap_offset(&self, device: &Device, handle: u32) -> Result<u64> {
        let mut offset = uapi::GemMmapOffset { handle, ..Default::default() };
        device.ioctl(&mut offset)?;
        Ok(offset.offset)
    }

    fn bind(&self, device: &Device, vm: u32, bound: &Bound) -> Result<()> {
        change_binding(device, vm, uapi::VM_BIND_OP_MAP, bound.handle, bound)
    }

    fn unbind(&self, device: &Device, vm: u32, bound: &Bound) -> Result<()> {
        change_binding(device, vm, uapi::VM_BIND_OP_UNMAP, 0, bound)
    }

    fn create_queue(&self, device: &Device, vm: u32, engine: Engine) -> Result<u32> {
        let instance = uapi::EngineClassInstance {
            engine_class: engine.class,
            engine_instance: engine.instance,
            gt_id: engine.gt,
            pad: 0,
        };
        let mut create = uapi::ExecQueueCreate {
            width: 1,
            num_placements: 1,
            vm_id: vm,
            instances: std::ptr::from_ref(&instance) as u64,
            ..Default::default()
        };
        device.ioctl(&mut create)?;
        Ok(create.exec_queue_id)
    }

    fn destroy_queue(&self, device: &Device, queue: u32) -> Result<()> {
        device.ioctl(&mut uapi::ExecQueueDestroy { exec_queue_id: queue, ..Default::default() })
    }

    fn exec(
        &self,
        device: &Device,
        queue: u32,
        address: u64,
        _bound: &[Bound],
        after: Option<u32>,
        signal: Signal,
    ) -> Result<()> {
        let awaited = after.map(|handle| syncobj(handle, 0));
        let signal = match signal {
            Signal::Syncobj(handle) => syncobj(handle, uapi::SYNC_FLAG_SIGNAL),
            Signal::UserFence { address, value } => uapi::Sync {
                kind: uapi::SYNC_TYPE_USER_FENCE,
                flags: uapi::SYNC_FLAG_SIGNAL,
                addr: address,
                timeline_value: value,
                ..Default::default()
            },
        };
        let syncs: Vec<uapi::Sync> = awaited.into_iter().chain([signal]).collect();
        device.ioctl(&mut uapi::Exec {
            exec_queue_id: queue,
            num_syncs: count(syncs.len()),
            syncs: syncs.as_ptr() as u64,
            address,
            num_batch_buffer: 1,
            ..Default::default()
        })
    }

    fn is_banned(&self, device: &Device, queue: u32) -> Result<bool> {
        let mut property = uapi::ExecQueueGetProperty {
            exec_queue_id: queue,
            property: uapi::EXEC_QUEUE_GET_PROPERTY_BAN,
            ..Default::default()
        };
        device.ioctl(&mut property)?;
        Ok(property.value != 0)
    }

    fn wait_user_fence(&self, device: &Device, queue: u32, pointer: u64, value: u64, timeout: Duration) -> Result<()> {
        let mut wait = uapi::WaitUserFence {
            addr: pointer,
            op: uapi::UFENCE_WAIT_OP_EQ,
            value,
            mask: u64::MAX,
            timeout: i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX),
            exec_queue_id: queue,
            ..Default::default()
        };
        DrmError::timed(device.ioctl(&mut wait), timeout)
    }
}

fn syncobj(handle: u32, flags: u32) -> uapi::Sync {
    uapi::Sync { kind: uapi::SYNC_TYPE_SYNCOBJ, flags, addr: handle.into(), ..Default::default() }
}

fn change_binding(device: &Device, vm: u32, op: u32, obj: u32, bound: &Bound) -> Result<()> {
    let fence = device.fence()?;
    let sync = syncobj(fence.handle(), uapi::SYNC_FLAG_SIGNAL);
    let (range, addr) = (bound.size, bound.address);
    // Dumpable bindings are included in the driver's dump of a hang.
    let flags = if op == uapi::VM_BIND_OP_MAP { uapi::VM_BIND_FLAG_DUMPABLE } else { 0 };
    let bind = uapi::VmBindOp { obj, pat_index: uapi::PAT_INDEX_WB, range, addr, op, flags, ..Default::default() };
    device.ioctl(&mut uapi::VmBind {
        vm_id: vm,
        num_binds: 1,
        bind,
        num_syncs: 1,
        syncs: std::ptr::from_ref(&sync) as u64,
        ..Default::default()
    })?;
    fence.wait(Duration::from_secs(10))
}

fn query(device: &Device, query: u32, input: &[u8]) -> Result<Vec<u8>> {
    let mut request = uapi::DeviceQuery { query, ..Default::default() };
    device.ioctl(&mut request)?;
    let mut answer = vec![0; (request.size as usize).max(input.len())];
    answer[..input.len()].copy_from_slice(input);
    request.data = answer.as_mut_ptr() as u64;
    device.ioctl(&mut request)?;
    Ok(answer)
}
