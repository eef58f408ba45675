// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The card's memory system: GGTT and PPGTT translation, local memory, guest memory. All memory accesses of the card go
//! through it.
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod atomic;
pub mod ccs;
mod gam;
pub mod ggtt;
pub mod inspect;
pub mod layout;
pub mod ppgtt;
pub mod saved;
pub mod storage;
#[cfg(test)]
pub(crate) mod tests;
pub mod tlb;

use std::fmt;
use std::ops::Range;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

pub use arctic_base::memory::{Access, CellValue, CopyError, Span, SpanError, Zeroed, cell, region, span};

use crate::gate::lmtt::{self, Lmtt, LmttFault};
use arctic_base::memory::WithoutMessages;
use arctic_base::memory::epoch::{Epochs, StepFunctions};
use vm_memory::VolatileSlice;

use crate::host::{ALL_FUNCTIONS, Dma, DmaView, FUNCTIONS, Function};
use crate::topology::{MAX_UNITS, UnitId};
pub use atomic::{BegunAtomic, Updated};
pub use gam::{Gam, Window};
use ggtt::Ggtt;
use ppgtt::PageTableFormat;
use region::SharedRegion;
use storage::{FRAME, FrameBacking, Storage};
pub use tlb::Tlb;

/// An address space of the GT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// The global space, translated by the GGTT.
    Ggtt,
    /// A process's space: address of the root table in local memory (PDP0 of the context image).
    Ppgtt(u64),
}

/// A failed access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Space of the access.
    pub space: Space,
    /// Address in that space.
    pub address: u64,
    /// Type of the access.
    pub access: Access,
    /// Reason of the failure.
    pub reason: FaultReason,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { space, address, access, reason } = self;
        let space = if *space == Space::Ggtt { "GGTT" } else { "PPGTT" };
        let access = if *access == Access::Write { "write" } else { "read" };
        write!(f, "{access} at {address:#x} of the {space}: {reason}")
    }
}

/// Reason of a failed translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultReason {
    /// No valid entry; for the PPGTT, at this level (3 is the root). The GGTT has level 0 only.
    NotPresent {
        /// Level of the missing entry.
        level: u8,
    },
    /// A write to a page with a read-only entry.
    ReadOnly,
    /// The entry's address is outside local memory.
    OutsideLocal,
    /// The guest's VMM does not map the address for the device.
    NotMapped,
    /// The GGTT page belongs to another function (V13-020).
    NotOwned,
    /// No local memory is provisioned to the function at this address (V13-101).
    NotGiven,
}

impl fmt::Display for FaultReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultReason::NotPresent { level } => write!(f, "the entry of level {level} is not present"),
            FaultReason::ReadOnly => f.write_str("the page is read-only"),
            FaultReason::OutsideLocal => f.write_str("the entry's address is outside local memory"),
            FaultReason::NotMapped => f.write_str("the guest's VMM does not map the address"),
            FaultReason::NotOwned => f.write_str("the page belongs to another function"),
            FaultReason::NotGiven => f.write_str("the function has no local memory there"),
        }
    }
}

/// Memory regions that the VMM of one virtual function maps.
pub struct VfMemory {
    /// The function's LMEM BAR, by offset in the BAR; sparse.
    pub local: SharedRegion,
    /// The function's GGTT window, [`ggtt::GGTT_BYTES`]; `None` if accesses are trapped.
    pub ggtt: Option<SharedRegion>,
}

/// Memory regions of a card.
pub struct Memories {
    /// Local memory, exposed as the PF's LMEM BAR; has the profile's size.
    pub local: SharedRegion,
    /// The GGTT, [`ggtt::GGTT_BYTES`].
    pub ggtt: SharedRegion,
    /// Regions of the VFs, VF 1 first; empty for a card without VFs.
    pub vfs: Vec<VfMemory>,
}

/// Memory of one function, apart from the regions that its VMM maps.
pub struct FunctionMemory {
    /// Local memory provisioned to the function in bytes, whole frames; 0 for the PF.
    quota: AtomicU64,
    /// 0; 1 while [`Memory::empty`] releases the function's memory; 2 if it must then do so again.
    emptying: AtomicU32,
    /// Number of calls of [`Memory::clear_vf`] in progress for resets.
    clearing: AtomicU32,
}

impl FunctionMemory {
    const fn new() -> Self {
        FunctionMemory { quota: AtomicU64::new(0), emptying: AtomicU32::new(0), clearing: AtomicU32::new(0) }
    }

    /// Local memory quota in bytes.
    pub fn quota(&self) -> u64 {
        self.quota.load(Ordering::Acquire)
    }

    /// Returns whether data of the function is being released or cleared for a reset. Data that it writes meanwhile may
    /// be lost.
    pub fn is_emptying(&self) -> bool {
        self.emptying.load(Ordering::Acquire) != 0 || self.clearing.load(Ordering::Acquire) != 0
    }
}

/// Local memory, the GGTT and access to guest memory.
pub struct Memory {
    page_tables: &'static PageTableFormat,
    storage: Storage,
    ggtt: Ggtt,
    dma: Arc<dyn Dma>,
    epochs: Epochs,
    /// The functions whose memory the current step of each unit uses, by [`UnitId::index`].
    steps: [StepFunctions; MAX_UNITS],
    flat_ccs: Option<u64>,
    /// Accesses to local memory are counted: TLBs have no pages for fast paths, which do not count.
    counted: AtomicBool,
    /// LMEM_CFG (0xcf58): address of the LMTT's directory.
    lmem_cfg: AtomicU32,
    /// VFs (one bit each) whose quota has changed and has not been reported to the machine.
    resized: AtomicU64,
    /// State of each function, by [`Function::index`].
    functions: [FunctionMemory; FUNCTIONS],
}

impl Memory {
    /// Creates the memory system without flat CCS and VFs, for PPGTTs of this format.
    pub fn new(page_tables: &'static PageTableFormat, local: SharedRegion, ggtt: Ggtt, dma: Arc<dyn Dma>) -> Self {
        Memory {
            page_tables,
            storage: Storage::new(local),
            ggtt,
            dma,
            epochs: Epochs::default(),
            steps: std::array::from_fn(|_| StepFunctions::default()),
            flat_ccs: None,
            counted: AtomicBool::new(false),
            lmem_cfg: AtomicU32::new(0),
            resized: AtomicU64::new(0),
            functions: [const { FunctionMemory::new() }; FUNCTIONS],
        }
    }

    /// Enables flat CCS with the control data at `base` in local memory (XEHP_FLAT_CCS_BASE_ADDR).
    pub fn with_flat_ccs(mut self, base: u64) -> Self {
        self.flat_ccs = Some(base);
        self
    }

    /// Adds the regions that the VFs' VMMs map.
    pub fn with_vfs(mut self, vfs: Vec<VfMemory>) -> Self {
        let (local, ggtt) = vfs.into_iter().map(|vf| (vf.local, vf.ggtt)).unzip();
        self.storage.set_vfs(local);
        self.ggtt.set_vfs(ggtt);
        self
    }

    /// Returns whether the card has been created with `vf`, enabled or not.
    pub fn has_vf(&self, vf: Function) -> bool {
        self.storage.region(vf).is_some()
    }

    /// Local memory as the PF's BAR exposes it: frames provisioned to a VF are not stored here.
    pub fn local(&self) -> &SharedRegion {
        self.storage.home()
    }

    /// The descriptors of the files that back local memory and the GGTT.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.storage.regions().chain(self.ggtt.regions()).flat_map(SharedRegion::descriptors)
    }

    /// The GGTT.
    pub fn ggtt(&self) -> &Ggtt {
        &self.ggtt
    }

    /// Cache of guest mappings for one step of the GuC, or another operation with the GuC's lock held; must not be held
    /// beyond its end.
    pub fn views(&self) -> GuestMappings<'_> {
        self.views_of(true, None)
    }

    /// The same, but an access that would be a message to a function's client fails at once, and counts as unanswered
    /// ([`GuestMappings::unanswered`]): for a thread that may be the one that receives the client's messages.
    pub fn views_without_messages(&self) -> GuestMappings<'_> {
        self.views_of(false, None)
    }

    fn views_of<'m>(&'m self, messages: bool, step: Option<Step<'m>>) -> GuestMappings<'m> {
        GuestMappings { dma: &*self.dma, messages, taken: [const { OnceLock::new() }; FUNCTIONS], step }
    }

    /// Cache of guest mappings for one step of `unit` and all threads that execute parts of it, or another operation
    /// with the unit's lock held. While it exists, it records whose memory the step uses ([`Memory::used_by`]). Must
    /// not be held beyond the end of the step, and a unit must not have two at a time.
    #[allow(clippy::indexing_slicing, reason = "UnitId::index is below MAX_UNITS")]
    pub fn step_views(&self, unit: impl Into<UnitId>) -> GuestMappings<'_> {
        let functions = &self.steps[unit.into().index()];
        debug_assert!(!functions.contains(ALL_FUNCTIONS), "the unit's last step has not ended");
        self.views_of(true, Some(Step(functions)))
    }

    /// The same as [`Memory::step_views`], without messages to a function's client ([`Memory::views_without_messages`]).
    #[allow(clippy::indexing_slicing, reason = "UnitId::index is below MAX_UNITS")]
    pub fn unit_views_without_messages(&self, unit: impl Into<UnitId>) -> GuestMappings<'_> {
        self.views_of(false, Some(Step(&self.steps[unit.into().index()])))
    }

    /// Returns whether the current step of `unit` may use memory of `functions` (one bit each) by translations or
    /// guest mappings that were changed before this call. A step that begins later uses the new ones.
    #[allow(clippy::indexing_slicing, reason = "UnitId::index is below MAX_UNITS")]
    pub fn used_by(&self, unit: impl Into<UnitId>, functions: u64) -> bool {
        self.steps[unit.into().index()].contains(functions)
    }

    /// Returns whether accesses to `function`'s guest memory may send a request to its client
    /// ([`DmaView::may_wait_for_client`]).
    pub fn may_wait_for_client(&self, function: Function) -> bool {
        self.dma.view(function).may_wait_for_client()
    }

    /// Invalidates the translations of `functions` (one bit each) in all TLBs; a TLB that holds such translations is
    /// flushed before its next step. The invalidation must not be reported as complete before each unit whose step
    /// uses memory of these functions has passed a step boundary ([`Memory::used_by`]).
    pub fn invalidate(&self, functions: u64) {
        self.epochs.invalidate(functions);
    }

    /// Begins or ends to count each access to local memory ([`Gam::take_traffic`]): a unit from its next step on. Accesses
    /// are slower while they are counted.
    pub fn count_traffic(&self, counted: bool) {
        if self.counted.swap(counted, Ordering::AcqRel) != counted {
            self.invalidate(ALL_FUNCTIONS);
        }
    }

    fn counts_traffic(&self) -> bool {
        self.counted.load(Ordering::Acquire)
    }

    /// Creates the memory access for one step on behalf of `function`. `views` comes from [`Memory::views`] if
    /// `tlb` is the GuC's, otherwise from [`Memory::step_views`]. Further threads of the same step use
    /// [`Gam::for_worker`].
    pub fn gam<'m>(&'m self, function: Function, views: &'m GuestMappings<'m>, tlb: &'m mut Tlb) -> Gam<'m> {
        // Before the epoch is read.
        views.enter(function);
        tlb.catch_up(self.epochs.now(function), function);
        Gam::new(self, views, function, tlb)
    }

    /// Handles a write of LMEM_CFG.
    pub fn set_lmem_cfg(&self, value: u32) {
        self.lmem_cfg.store(value, Ordering::Release);
        // The PF's addresses are not translated by the LMTT.
        self.invalidate(ALL_FUNCTIONS & !Function::PF.bit());
    }

    /// LMEM_CFG (V13-107).
    pub fn lmem_cfg(&self) -> u32 {
        self.lmem_cfg.load(Ordering::Acquire)
    }

    /// Sets the local memory quota of `vf` (UPDATE_VF_CFG), rounded down to whole frames. The frames are assigned by
    /// [`Memory::adopt_lmtt`].
    pub fn set_quota(&self, vf: Function, bytes: u64) {
        if vf.is_vf() {
            let quota = bytes & !(FRAME - 1);
            if self.function(vf).quota.swap(quota, Ordering::AcqRel) != quota {
                self.resized.fetch_or(vf.bit(), Ordering::AcqRel);
            }
            self.invalidate(vf.bit());
        }
    }

    /// Takes the VFs (one bit each) whose quota has changed since the last call.
    pub fn take_resized(&self) -> u64 {
        self.resized.swap(0, Ordering::AcqRel)
    }

    /// Local memory quota of `vf` in bytes.
    pub fn quota(&self, vf: Function) -> u64 {
        self.function(vf).quota()
    }

    /// State of `function`.
    #[allow(clippy::indexing_slicing, reason = "Function::index is below FUNCTIONS")]
    pub fn function(&self, function: Function) -> &FunctionMemory {
        &self.functions[function.index()]
    }

    /// The frames of the local memory of `vf` in order: the card's address of each, or `None` if none is assigned.
    pub fn frames_of(&self, vf: Function) -> impl Iterator<Item = Option<u64>> {
        (0..self.quota(vf) / FRAME).map(move |page| self.host_address(vf, page.saturating_mul(FRAME)).ok())
    }

    /// End of the local memory that can be provisioned; the memory above it is reserved for the card (V13-012,
    /// V13-034).
    fn usable(&self) -> u64 {
        self.flat_ccs.unwrap_or(self.local().len())
    }

    fn table_entry(&self, at: u64) -> Option<u32> {
        u32::load(&self.storage.slice(at, 4)?, 0)
    }

    /// Translates an address of `function` to a local memory address of the card: the PF's addresses are the card's
    /// (V13-011), a VF's are translated by the LMTT (V13-108, V13-109).
    fn host_address(&self, function: Function, address: u64) -> Result<u64, FaultReason> {
        if !function.is_vf() {
            return Ok(address);
        }
        let found = self.lmtt().walk(function.number(), address, self.quota(function), |at| self.table_entry(at));
        found.map_err(|fault| match fault {
            LmttFault::Memory => FaultReason::OutsideLocal,
            _ => FaultReason::NotGiven,
        })
    }

    /// The LMTT as the PF has currently programmed it.
    fn lmtt(&self) -> Lmtt {
        Lmtt { register: self.lmem_cfg(), local_bytes: self.usable() }
    }

    /// Computes the location of each frame from the current LMTT. A frame that is assigned twice is stored for the
    /// first function and page; a frame that contains tables of the LMTT stays in the PF's region, where the PF's guest
    /// writes them.
    fn places(&self) -> Vec<FrameBacking> {
        let mut places = vec![FrameBacking::PF; self.storage.frames()];
        let lmtt = self.lmtt();
        let given = Function::vfs().filter(|vf| self.quota(*vf) > 0);
        let tables: Vec<(Function, u64)> =
            given.filter_map(|vf| Some((vf, lmtt.table(vf.number(), |at| self.table_entry(at)).ok()?))).collect();
        let mut held = vec![false; places.len()];
        for address in tables.iter().map(|(_, table)| *table).chain([lmtt.directory()]) {
            if let Some(held) = held.get_mut((address / FRAME) as usize) {
                *held = true;
            }
        }
        for (vf, table) in tables {
            let Some(region) = self.storage.region(vf) else { continue };
            let pages = self.quota(vf).min(region.len()).min(lmtt::GUEST_BYTES) / FRAME;
            for page in 0..pages {
                let Ok(address) = lmtt.frame(table, page, |at| self.table_entry(at)) else { continue };
                let frame = (address / FRAME) as usize;
                if let Some(place @ &mut FrameBacking::PF) = places.get_mut(frame)
                    && held.get(frame) == Some(&false)
                {
                    *place = FrameBacking::of(vf, (page & 0xffff) as u16);
                }
            }
        }
        places
    }

    /// Moves each frame to the region of the VF to which the current LMTT assigns it, so that the VMM's mapping of that
    /// VF's LMEM BAR exposes it. A frame that moves loses its contents ([`storage`]); the duration does not depend on
    /// the contents. Must be called while all units are stopped (`Units::while_stopped`) and with the GuC's
    /// lock held, when the PF reports a change of the LMTT or of a quota. [`Memory::scrub`] releases the
    /// memory that the moved frames occupied.
    pub fn adopt_lmtt(&self) {
        let moved = self.storage.settle(&self.places());
        for run in &moved {
            // The compressed contents were dropped.
            if let Some(control) = self.control_of(run.start, run.end.saturating_sub(run.start)) {
                self.local().clear(control);
            }
        }
        if !moved.is_empty() {
            // A TLB contains whether a frame is at home. Which functions could access a frame that has moved is not
            // recorded: the LMTT may have changed in between, and may assign a frame to several functions.
            self.invalidate(ALL_FUNCTIONS);
        }
    }

    /// Performs the part of [`Memory::adopt_lmtt`] that is possible while the engines run. The GuC's lock must be held.
    pub fn prepare_adoption(&self) {
        self.storage.make_room(&self.places());
    }

    /// The storage of the frames.
    #[cfg(test)]
    pub fn storage(&self) -> &storage::Storage {
        &self.storage
    }

    /// Returns whether [`Memory::scrub`] has work to do.
    pub fn untidy(&self) -> bool {
        self.storage.untidy()
    }

    /// Releases a bounded amount of memory that no longer stores a frame to the host. Returns false if no such memory
    /// is left, or if another thread is scrubbing.
    pub fn scrub(&self) -> bool {
        self.storage.scrub()
    }

    /// Clears the local memory of `vf` and its compression control data, as its PF does at the end of an FLR. During
    /// the call, no engine may run for `vf`, and its quota must not change; there are no other restrictions.
    pub fn clear_vf(&self, vf: Function) {
        for page in 0..self.quota(vf) / FRAME {
            let _still = self.storage.still();
            if let Ok(address) = self.host_address(vf, page.saturating_mul(FRAME)) {
                self.storage.clear(address, FRAME);
                if let Some(control) = self.control_of(address, FRAME) {
                    self.local().clear(control);
                }
            }
        }
    }

    /// Reserves [`Memory::empty`] for the calling thread until [`Memory::end_emptying`]. Returns false if another
    /// thread has done so. That thread then empties the memory once more, because the VF may have written to pages that
    /// the thread has already released.
    pub fn begin_emptying(&self, vf: Function) -> bool {
        let next = |requests: u32| Some(requests.saturating_add(1).min(2));
        self.function(vf).emptying.fetch_update(Ordering::AcqRel, Ordering::Acquire, next) == Ok(0)
    }

    /// Releases all data of `vf`'s LMEM BAR to the host, and clears the compression control data of the frames stored
    /// there, before the PF clears the VF's local memory in an FLR. Takes about 0.2 s per GiB of data; no lock is held
    /// for longer than the release of one frame. Returns early if `stop` returns true. Meanwhile, the GuC does not serve
    /// the VF ([`Memory::is_emptying`]).
    pub fn empty(&self, vf: Function, stop: impl Fn() -> bool) {
        self.storage.empty(vf, &stop);
        for frame in (0..self.storage.frames() as u64).take_while(|_| !stop()) {
            let address = frame.saturating_mul(FRAME);
            let _still = self.storage.still();
            if self.storage.place(address).stored_for(vf)
                && let Some(control) = self.control_of(address, FRAME)
                && self.local().first_data(&control).is_some()
            {
                self.local().clear(control);
            }
        }
    }

    /// Ends a call of [`Memory::empty`]. Returns true if the reservation made by [`Memory::begin_emptying`] has ended,
    /// and false if the memory must be emptied again because of a reset since its beginning.
    pub fn end_emptying(&self, vf: Function) -> bool {
        let next = |requests: u32| requests.checked_sub(1);
        self.function(vf).emptying.fetch_update(Ordering::AcqRel, Ordering::Acquire, next) != Ok(2)
    }

    /// Records that the calling thread clears the memory of `vf` ([`Memory::clear_vf`]) for a reset, until
    /// [`Memory::end_clearing`]. Several threads may do so at once, each for its own reset.
    pub fn begin_clearing(&self, vf: Function) {
        self.function(vf).clearing.fetch_add(1, Ordering::AcqRel);
    }

    /// Ends the call of [`Memory::begin_clearing`]. Returns whether no other thread clears the memory of `vf`.
    pub fn end_clearing(&self, vf: Function) -> bool {
        let next = |threads: u32| threads.checked_sub(1);
        matches!(self.function(vf).clearing.fetch_update(Ordering::AcqRel, Ordering::Acquire, next), Ok(1) | Err(_))
    }

    /// Returns whether the region of `vf`'s LMEM BAR is a file, which a client may map, and contains data.
    pub fn stores_data(&self, vf: Function) -> bool {
        let region = self.storage.region(vf).filter(|region| region.is_file());
        region.is_some_and(|region| region.first_data(&(0..region.len())).is_some())
    }

    /// Returns whether data of `vf` is being released or cleared for a reset. Data that the VF writes meanwhile may be
    /// lost.
    pub fn is_emptying(&self, vf: Function) -> bool {
        self.function(vf).is_emptying()
    }

    /// Clears the part of `vf`'s LMEM BAR beyond its local memory. Part of every FLR, regardless of its trigger.
    pub fn free_unused(&self, vf: Function) {
        self.storage.free_unused(vf);
    }

    /// The parts of the local memory of `vf` that may contain data, by its own address; the rest reads as zeros.
    pub fn data_of(&self, vf: Function) -> impl Iterator<Item = Range<u64>> {
        let region = self.storage.region(vf);
        region.into_iter().flat_map(move |region| region.data(0..self.quota(vf)))
    }

    /// Number of bytes of the VF's region that contain data.
    #[cfg(test)]
    pub(crate) fn stored_by(&self, vf: Function) -> u64 {
        let region = self.storage.region(vf).unwrap();
        region.data(0..region.len()).map(|run| run.end.saturating_sub(run.start)).sum()
    }

    /// Removes the local memory and the GGTT tables of all VFs: PF FLR or conventional reset (V13-114, V13-115). All
    /// units must be stopped.
    pub fn forget_vfs(&self) {
        self.set_lmem_cfg(0);
        for vf in Function::vfs() {
            self.set_quota(vf, 0);
            self.ggtt.empty_vf(vf);
        }
        self.adopt_lmtt();
    }

    /// Splits a trapped access to `function`'s LMEM BAR: calls `each` once per frame with the local memory, if present,
    /// and the byte range of the access that it covers.
    fn each_of_bar(
        &self,
        function: Function,
        offset: u64,
        len: usize,
        mut each: impl FnMut(Option<VolatileSlice<'_>>, Range<usize>),
    ) {
        let _still = self.storage.still();
        let mut done = 0_usize;
        while done < len {
            let at = offset.checked_add(done as u64);
            let rest = at.map_or(len, |at| usize::try_from(FRAME.wrapping_sub(at % FRAME)).unwrap_or(len));
            let end = done.saturating_add(rest).min(len);
            let address = at.and_then(|at| self.host_address(function, at).ok());
            each(address.and_then(|address| self.storage.slice(address, end.saturating_sub(done))), done..end);
            done = end;
        }
    }

    /// Reads the LMEM BAR of `function`; all ones where no local memory is assigned (V13-010, V13-011).
    pub fn read_bar(&self, function: Function, offset: u64, data: &mut [u8]) {
        self.each_of_bar(function, offset, data.len(), |memory, part| {
            let part = data.get_mut(part).unwrap_or_default();
            // The read cannot fail: the slice has exactly this length.
            if memory.is_none_or(|memory| Span::Mapped(memory).read(part).is_err()) {
                part.fill(0xff);
            }
        });
    }

    /// Writes the LMEM BAR of `function`; dropped where no local memory is assigned.
    pub fn write_bar(&self, function: Function, offset: u64, data: &[u8]) {
        self.each_of_bar(function, offset, data.len(), |memory, part| {
            if let Some(memory) = memory {
                let _ = Span::Mapped(memory).write(data.get(part).unwrap_or_default());
            }
        });
    }
}

/// Guest mappings by function; each is acquired on first use in a step and kept alive until the step ends. The threads
/// that execute a step share them, so the step cannot end before its last thread has.
pub struct GuestMappings<'m> {
    dma: &'m dyn Dma,
    /// Accesses may be messages to clients.
    messages: bool,
    taken: [OnceLock<Arc<dyn DmaView>>; FUNCTIONS],
    /// Declared last: the record of the step ends after the mappings have been released.
    step: Option<Step<'m>>,
}

/// The record of a unit's step, which ends when this is dropped.
struct Step<'m>(&'m StepFunctions);

impl Drop for Step<'_> {
    fn drop(&mut self) {
        self.0.clear();
    }
}

impl GuestMappings<'_> {
    /// Records that the step uses memory of `function`. Must be called before the function's translations are read.
    fn enter(&self, function: Function) {
        if let Some(Step(functions)) = &self.step {
            functions.add(function);
        }
    }

    /// Returns whether an access of the step was not answered by a function's client ([`DmaView::unanswered`]).
    pub fn unanswered(&self) -> bool {
        self.taken.iter().filter_map(OnceLock::get).any(|view| view.unanswered())
    }

    /// The mappings of `function`, on whose behalf the step runs or whose GGTT pages it has accessed.
    #[allow(clippy::indexing_slicing, reason = "Function::index is below FUNCTIONS")]
    pub fn of(&self, function: Function) -> &dyn DmaView {
        &**self.taken[function.index()].get_or_init(|| {
            let view = self.dma.view(function);
            if self.messages || !view.may_wait_for_client() { view } else { Arc::new(WithoutMessages::new(view)) }
        })
    }
}
