// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Objects, programs and contexts of i915 on GPUs without an address space for each context. The driver places objects
//! and writes their addresses into batches.

use std::cell::Cell;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::batch::Batch;
use super::tiling::{Swizzle, Tiling};
use crate::device::{Device, DrmError, Engine, Result};
use crate::driver::Driver;
use crate::i915::parameter;
use crate::mapping::Mapping;
use crate::number::count;
use crate::uapi;
use crate::uapi::i915::{self, ExecBuffer2, ExecBuffer2Wr, ExecFence, ExecObject};
use crate::vm::Fence;

/// Command streamers read ahead of the current command.
const PREFETCH: usize = 4096;
/// Size in bytes of an engine list with one engine: `struct i915_context_param_engines` is packed.
const ONE_ENGINE_BYTES: u32 = 12;

/// A handle of an object; closed when dropped.
struct Handle<'d> {
    device: &'d Device,
    number: u32,
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        // Errors cannot be reported from drop; the kernel cleans up at exit.
        let _ = self.device.ioctl(&mut uapi::GemClose { handle: self.number, pad: 0 });
    }
}

/// An object in system memory, mapped for the CPU with write-back caching: CPU and GPU share a coherent cache.
pub struct Object<'d> {
    handle: Handle<'d>,
    mapping: Mapping,
    /// Its last known GPU address.
    presumed: Cell<u64>,
    pinned: bool,
}

impl<'d> Object<'d> {
    /// Allocates `bytes`, rounded up to a page. The driver selects the GPU address at each submission.
    pub fn new(device: &'d Device, bytes: usize) -> Result<Self> {
        let bytes = bytes.max(1).next_multiple_of(4096);
        let mut create = i915::GemCreate { size: bytes as u64, ..Default::default() };
        device.ioctl(&mut create)?;
        let handle = Handle { device, number: create.handle };
        let mapping = map(&handle, i915::MMAP_OFFSET_WB, bytes)?;
        Ok(Object { handle, mapping, presumed: Cell::new(0), pinned: false })
    }

    /// Allocates `bytes`; the GPU address is always `address`.
    pub fn pinned(device: &'d Device, bytes: usize, address: u64) -> Result<Self> {
        let object = Self::new(device, bytes)?;
        object.presumed.set(address);
        Ok(Object { pinned: true, ..object })
    }

    /// The CPU's mapping of the memory.
    pub fn memory(&self) -> &Mapping {
        &self.mapping
    }

    /// The last known GPU address.
    pub fn presumed(&self) -> u64 {
        self.presumed.get()
    }

    /// Maps the object through the aperture, in which the rows of a tiled object are linear.
    pub fn aperture(&self) -> Result<Mapping> {
        map(&self.handle, i915::MMAP_OFFSET_GTT, self.mapping.len())
    }

    /// Sets the layout that the aperture presents as linear rows of `pitch` bytes. Returns the swizzling of its addresses.
    pub fn set_tiling(&self, tiling: Tiling, pitch: u32) -> Result<Swizzle> {
        let stride = if tiling == Tiling::Linear { 0 } else { pitch };
        let mut set =
            i915::GemSetTiling { handle: self.handle.number, tiling_mode: tiling as u32, stride, swizzle_mode: 0 };
        self.handle.device.ioctl(&mut set)?;
        match set.tiling_mode == tiling as u32 {
            true => {
                Swizzle::of_mode(set.swizzle_mode).ok_or(DrmError::Unsupported(Driver::I915, "name for this swizzling"))
            }
            false => Err(DrmError::Unsupported(Driver::I915, "tiling with this swizzling")),
        }
    }

    /// Prepares accesses by the CPU through the aperture or, if `aperture` is false, to the memory.
    pub fn prepare(&self, aperture: bool) -> Result<()> {
        let domain = if aperture { i915::DOMAIN_GTT } else { i915::DOMAIN_CPU };
        let handle = self.handle.number;
        self.handle.device.ioctl(&mut i915::GemSetDomain { handle, read_domains: domain, write_domain: domain })
    }

    /// Reads the memory by system call.
    pub fn read(&self, bytes: usize) -> Result<Vec<u8>> {
        let mut data = vec![0; bytes];
        let (handle, data_ptr) = (self.handle.number, data.as_mut_ptr() as u64);
        let mut read = i915::GemPread { handle, size: bytes as u64, data_ptr, ..Default::default() };
        self.handle.device.ioctl(&mut read)?;
        Ok(data)
    }

    /// Returns whether work that uses the object has not finished.
    pub fn is_busy(&self) -> Result<bool> {
        let mut busy = i915::GemBusy { handle: self.handle.number, busy: 0 };
        self.handle.device.ioctl(&mut busy)?;
        Ok(busy.busy != 0)
    }

    /// Waits until all work that uses the object has finished.
    pub fn wait(&self, timeout: Duration) -> Result<()> {
        let timeout_ns = i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX);
        let mut wait = i915::GemWait { handle: self.handle.number, flags: 0, timeout_ns };
        DrmError::timed(self.handle.device.ioctl(&mut wait), timeout)
    }
}

fn map(handle: &Handle<'_>, flags: u64, bytes: usize) -> Result<Mapping> {
    let mut offset = i915::GemMmapOffset { handle: handle.number, flags, ..Default::default() };
    handle.device.ioctl(&mut offset)?;
    Mapping::new(handle.device.file(), offset.offset, bytes)
        .map_err(|source| DrmError::Os { what: format!("mmap of {bytes} bytes"), source })
}

/// The privileges of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// None: the engine itself rejects commands.
    #[default]
    User,
    /// The driver's command parser checks and copies the batch, and allows some registers.
    Parsed,
}

/// Returns whether the driver has a command parser for the engines of `device`. Without one, no batch can access
/// registers: from Gen6 on, the driver does not run batches with all privileges (i915: i915_drv.h, HAS_SECURE_BATCHES).
pub fn has_parser(device: &Device) -> Result<bool> {
    Ok(parameter(device, i915::param::CMD_PARSER_VERSION)? != 0)
}

/// A batch in an object.
pub struct Program<'o> {
    object: Object<'o>,
    batch: Batch<'o>,
    trust: Trust,
}

impl<'o> Program<'o> {
    /// Builds a batch and loads it into a new object. It has no privileges.
    pub fn new(device: &'o Device, build: impl FnOnce(&mut Batch<'o>)) -> Result<Self> {
        Self::trusted(device, Trust::User, build)
    }

    /// Builds a batch with the privileges of `trust`.
    pub fn trusted(device: &'o Device, trust: Trust, build: impl FnOnce(&mut Batch<'o>)) -> Result<Self> {
        let mut batch = Batch::default();
        build(&mut batch);
        batch.end();
        let object = Object::new(device, 4 * batch.dwords().len() + PREFETCH)?;
        for (index, dword) in batch.dwords().iter().enumerate() {
            object.memory().write_u32(4 * index, *dword);
        }
        Ok(Program { object, batch, trust })
    }

    /// The batch's object.
    pub fn object(&self) -> &Object<'o> {
        &self.object
    }

    fn objects(&self) -> impl Iterator<Item = &Object<'o>> {
        std::iter::once(&self.object).chain(self.batch.objects().iter().map(|object| &**object))
    }
}

/// How a submission is ordered relative to others.
#[derive(Clone, Copy, Default)]
pub struct Order<'a> {
    /// It starts after this sync object has signalled.
    pub after: Option<&'a Fence<'a>>,
    /// It starts after this fence file has signalled.
    pub after_file: Option<&'a OwnedFd>,
    /// Other work on its objects does not order it.
    pub explicit: bool,
}

/// A context with one engine.
pub struct Context<'d> {
    device: &'d Device,
    id: u32,
}

impl<'d> Context<'d> {
    /// Creates a context for `engine`.
    pub fn new(device: &'d Device, engine: Engine) -> Result<Self> {
        let engines = i915::OneEngine { extensions: 0, class: engine.class, instance: engine.instance };
        let set = i915::SetParam {
            base: i915::UserExtension { name: i915::CONTEXT_CREATE_SET_PARAM, ..Default::default() },
            param: i915::ContextParam {
                context: 0,
                size: ONE_ENGINE_BYTES,
                param: i915::CONTEXT_PARAM_ENGINES,
                value: std::ptr::from_ref(&engines) as u64,
            },
        };
        let mut create = i915::ContextCreateExt {
            context: 0,
            flags: i915::CONTEXT_CREATE_USE_EXTENSIONS,
            extensions: std::ptr::from_ref(&set) as u64,
        };
        device.ioctl(&mut create)?;
        Ok(Context { device, id: create.context })
    }

    /// Runs `program` to its end.
    pub fn run(&self, program: &Program<'_>, timeout: Duration) -> Result<()> {
        let fence = self.submit(program, Order::default())?;
        self.wait(&fence, timeout)
    }

    /// Submits `program`. The returned sync object signals on completion.
    pub fn submit(&self, program: &Program<'_>, order: Order<'_>) -> Result<Fence<'d>> {
        let fence = self.device.fence()?;
        let signal = ExecFence { handle: fence.handle(), flags: i915::EXEC_FENCE_SIGNAL };
        let awaited = order.after.map(|after| ExecFence { handle: after.handle(), flags: i915::EXEC_FENCE_WAIT });
        let fences: Vec<ExecFence> = awaited.into_iter().chain([signal]).collect();
        self.exec(program, order, &fences, 0)?;
        Ok(fence)
    }

    /// Submits `program`. The returned fence file signals on completion.
    pub fn submit_file(&self, program: &Program<'_>, order: Order<'_>) -> Result<OwnedFd> {
        let exec = self.exec(program, order, &[], i915::EXEC_FENCE_OUT)?;
        let descriptor = (exec.reserved >> 32) as RawFd;
        // SAFETY: with EXEC_FENCE_OUT, a successful ioctl returns a new descriptor in the upper half of this field.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }

    /// Waits for a submission of this context. Fails if the driver has blamed the context for a hang: fences of hung
    /// work signal too.
    pub fn wait(&self, fence: &Fence<'_>, timeout: Duration) -> Result<()> {
        let start = Instant::now();
        fence.wait(timeout)?;
        self.must_be_sound(start)
    }

    /// Waits for a fence file of this context, as [`Context::wait`].
    pub fn wait_file(&self, fence: &OwnedFd, timeout: Duration) -> Result<()> {
        let start = Instant::now();
        let limit = Timespec { tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX), tv_nsec: 0 };
        match poll(&mut [PollFd::new(fence, PollFlags::IN)], Some(&limit)) {
            Ok(0) => Err(DrmError::Timeout(timeout)),
            Ok(_) => self.must_be_sound(start),
            Err(source) => Err(DrmError::Os { what: "poll of a fence file".into(), source: source.into() }),
        }
    }

    fn must_be_sound(&self, start: Instant) -> Result<()> {
        let mut stats = i915::ResetStats { context: self.id, ..Default::default() };
        self.device.ioctl(&mut stats)?;
        match stats.batch_active != 0 || stats.batch_pending != 0 {
            true => Err(DrmError::Banned(start.elapsed())),
            false => Ok(()),
        }
    }

    fn exec(&self, program: &Program<'_>, order: Order<'_>, fences: &[ExecFence], flags: u64) -> Result<ExecBuffer2> {
        let relocations = program.batch.relocations();
        let mut objects: Vec<ExecObject> = program
            .objects()
            .map(|object| ExecObject {
                handle: object.handle.number,
                offset: object.presumed(),
                flags: if object.pinned { i915::OBJECT_PINNED } else { 0 }
                    | if order.explicit { i915::OBJECT_ASYNC } else { 0 },
                ..Default::default()
            })
            .collect();
        objects[0].relocation_count = count(relocations.len());
        objects[0].relocations = relocations.as_ptr() as u64;
        let mut exec = ExecBuffer2 {
            buffers: objects.as_mut_ptr() as u64,
            buffer_count: count(objects.len()),
            flags: i915::EXEC_BATCH_FIRST | i915::EXEC_HANDLE_LUT | flags,
            context: self.id.into(),
            ..Default::default()
        };
        match program.trust {
            Trust::User => {}
            // Only batches with a length are parsed.
            Trust::Parsed => exec.batch_len = count(4 * program.batch.dwords().len()),
        }
        if !fences.is_empty() {
            exec.flags |= i915::EXEC_FENCE_ARRAY;
            (exec.num_fences, exec.fences) = (count(fences.len()), fences.as_ptr() as u64);
        }
        if let Some(file) = order.after_file {
            exec.flags |= i915::EXEC_FENCE_IN;
            exec.reserved = file.as_raw_fd().cast_unsigned().into();
        }
        let mut request = ExecBuffer2Wr(exec);
        self.device.ioctl(&mut request)?;
        for (object, placed) in program.objects().zip(&objects) {
            object.presumed.set(placed.offset);
        }
        Ok(request.0)
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        let _ = self.device.ioctl(&mut i915::ContextDestroy { context: self.id, pad: 0 });
    }
}
