// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Storage of local memory: a frame is stored in the PF's region (its home), or in the region of the virtual function
//! to which it is assigned.
//!
//! A VMM maps a BAR's file once, linearly. Therefore a frame assigned to a VF is stored in that function's file, at the
//! function's offset, and all other accesses look up the frame table. Frames move only while all engines are stopped
//! and no trapped BAR access is in progress, so a lookup is one load without a lock.
//!
//! **Contents.** A frame keeps its contents until it moves. A move discards the contents, so its cost does not depend
//! on them. There is no data remanence: a virtual function reads zeros, never data of the PF or of another function. A
//! frame that returns home holds zeros or data that the PF itself stored there earlier, never data of a virtual
//! function. Hardware preserves the bytes instead. The difference is not visible to drivers: xe assigns a VF a new
//! buffer that it has not written, clears it with its copy engine during the VF's FLR, and reads it only to save or
//! restore the VF, which does not move frames. Therefore an FLR also empties the VF's region before the PF is notified
//! ([`Storage::empty`]): the PF's clear then finds no data and its duration does not depend on how much the VF wrote.
//!
//! The memory that a move frees is released to the host later, in bounded chunks ([`Storage::scrub`]).

use std::iter;
use std::ops::Range;

use arctic_sriov::number::size;
use vm_memory::VolatileSlice;

use super::region::SharedRegion;
use crate::host::Function;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::{IgnorePoison, Mutex, RwLock, RwLockReadGuard};

/// Frame size in bytes: the memory that one entry of the LMTT maps (V13-105).
pub const FRAME: u64 = crate::gate::lmtt::PAGE;

/// Entry of the frame table: 0 for a frame at home, otherwise function << 16 | page of its region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameBacking(u32);

impl FrameBacking {
    /// In the PF's region, at the frame's own address.
    pub const PF: FrameBacking = FrameBacking(0);

    /// Page `page` of the region of `function`, a VF; pages have the size of a frame.
    pub fn of(function: Function, page: u16) -> FrameBacking {
        FrameBacking(u32::from(function.number()) << 16 | u32::from(page))
    }

    fn function(self) -> usize {
        (self.0 >> 16) as usize
    }

    fn offset(self) -> u64 {
        u64::from(self.0 & 0xffff) * FRAME
    }

    /// Returns whether the frame is in the region of `vf`.
    pub fn stored_for(self, vf: Function) -> bool {
        vf.is_vf() && self.function() == vf.index()
    }
}

/// Maximum number of bytes released to the host in one call; the release takes the host about half a microsecond per
/// page.
const PIECE: u64 = FRAME;
/// Maximum number of searches for data in one call.
const MAX_SEARCHES: usize = 64;

/// A range of a region that stores no frame.
struct Unused {
    /// 0 for the PF's region, n for the region of VF n.
    region: usize,
    range: Range<u64>,
}

/// The regions that store local memory, and the location of each frame.
pub struct Storage {
    /// The PF's region, by local memory address.
    home: SharedRegion,
    /// The VFs' regions, VF 1 first, by the VF's own offset.
    vfs: Vec<SharedRegion>,
    frames: Box<[AtomicU32]>,
    /// Held shared by accesses outside a step of an engine or the GuC, and exclusively while frames move.
    moving: RwLock<()>,
    /// Ranges that store no frame and may still use host memory. Lock order: after `moving`.
    unused: Mutex<Vec<Unused>>,
    /// Whether `unused` has entries, for a check without the lock.
    untidy: AtomicBool,
}

impl Storage {
    /// Creates the storage with all frames at home in `home`.
    pub fn new(home: SharedRegion) -> Self {
        let frames = (0..home.len().div_ceil(FRAME)).map(|_| AtomicU32::new(0)).collect();
        Storage {
            home,
            vfs: Vec::new(),
            frames,
            moving: RwLock::new(()),
            unused: Mutex::new(Vec::new()),
            untidy: AtomicBool::new(false),
        }
    }

    /// All regions.
    pub fn regions(&self) -> impl Iterator<Item = &SharedRegion> {
        iter::once(&self.home).chain(&self.vfs)
    }

    /// Sets the regions of the VFs, VF 1 first.
    pub fn set_vfs(&mut self, vfs: Vec<SharedRegion>) {
        self.vfs = vfs;
    }

    /// The PF's region.
    #[inline(always)]
    pub fn home(&self) -> &SharedRegion {
        &self.home
    }

    /// The region of a VF.
    pub fn region(&self, vf: Function) -> Option<&SharedRegion> {
        self.vfs.get(vf.index().checked_sub(1)?)
    }

    /// Number of frames; the last may be incomplete.
    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    /// The location of the frame that contains a local memory address.
    #[inline]
    pub fn place(&self, address: u64) -> FrameBacking {
        let frame = usize::try_from(address / FRAME).ok().and_then(|frame| self.frames.get(frame));
        FrameBacking(frame.map_or(0, |frame| frame.load(Ordering::Acquire)))
    }

    /// The region that stores a local memory address, and the offset in it.
    #[inline]
    fn locate(&self, address: u64) -> Option<(&SharedRegion, u64)> {
        let place = self.place(address);
        if place == FrameBacking::PF {
            return Some((&self.home, address));
        }
        Some((self.vfs.get(place.function().checked_sub(1)?)?, place.offset().wrapping_add(address % FRAME)))
    }

    /// Bytes `[address, address + len)` of local memory; they must be in one frame, or all at home.
    #[inline]
    pub fn slice(&self, address: u64, len: usize) -> Option<VolatileSlice<'_>> {
        let (region, at) = self.locate(address)?;
        region.slice(at, len)
    }

    /// Like [`Storage::slice`], but truncated at the end of the region.
    #[inline]
    pub fn slice_up_to(&self, address: u64, len: usize) -> Option<VolatileSlice<'_>> {
        let (region, at) = self.locate(address)?;
        region.slice_up_to(at, len)
    }

    /// Makes `[address, address + len)` of local memory read as zeros; the range must be in one frame.
    pub fn clear(&self, address: u64, len: u64) {
        if let Some((region, at)) = self.locate(address) {
            empty(region, at..at.saturating_add(len));
        }
    }

    /// [`SharedRegion::zero`] for `[address, address + len)` of local memory, which must be in one frame.
    pub fn zero(&self, address: u64, len: u64, release: bool) -> Option<u64> {
        let (region, at) = self.locate(address)?;
        region.zero(at..at.checked_add(len).filter(|end| *end <= region.len())?, release)
    }

    /// Blocks moves of frames until the guard is dropped, for an access outside a step.
    pub fn still(&self) -> RwLockReadGuard<'_, ()> {
        self.moving.read().ignore_poison()
    }

    /// Pages of the VFs' regions that store a frame in `wanted` and currently store none or a different one. Returned
    /// per VF, merged into runs.
    fn arriving(&self, wanted: &[FrameBacking]) -> Vec<Vec<Range<u64>>> {
        let mut pages: Vec<Vec<u64>> = vec![Vec::new(); self.vfs.len()];
        for (frame, wanted) in wanted.iter().enumerate() {
            if let Some(pages) = wanted.function().checked_sub(1).and_then(|n| pages.get_mut(n))
                && *wanted != self.place((frame as u64).wrapping_mul(FRAME))
            {
                pages.push(wanted.offset());
            }
        }
        pages.into_iter().map(runs).collect()
    }

    /// Clears pages that [`Storage::settle`] would otherwise have to clear while the engines are stopped. The
    /// function's client may have written to them while they stored no frame. No frame may move during the call.
    pub fn make_room(&self, wanted: &[FrameBacking]) {
        let in_use = self.given();
        for ((region, arriving), in_use) in self.vfs.iter().zip(self.arriving(wanted)).zip(in_use) {
            for run in arriving {
                let within = |page: &u64| run.contains(page);
                let taken = in_use.iter().copied().filter(within).collect();
                gaps(run.clone(), taken).for_each(|gap| empty(region, gap));
            }
        }
    }

    /// Moves every frame to its location in `wanted`, which has one entry per frame and assigns no page of a VF twice.
    /// Frames that move lose their contents. Returns the addresses of these frames, merged into runs. All engines must
    /// be stopped.
    pub fn settle(&self, wanted: &[FrameBacking]) -> Vec<Range<u64>> {
        let _alone = self.moving.write().ignore_poison();
        for (region, arriving) in self.vfs.iter().zip(self.arriving(wanted)) {
            arriving.into_iter().for_each(|run| empty(region, run));
        }
        let mut moved = Vec::new();
        for ((address, frame), wanted) in (0..).step_by(size(FRAME)).zip(&self.frames).zip(wanted) {
            let known = wanted.function() <= self.vfs.len();
            let wanted = if known { *wanted } else { FrameBacking::PF };
            if frame.swap(wanted.0, Ordering::AcqRel) != wanted.0 {
                moved.push(address);
            }
        }
        *self.unused.lock().ignore_poison() = self.find_unused();
        self.untidy.store(true, Ordering::Release);
        runs(moved)
    }

    /// Offsets of the frames in each VF's region, sorted; VF 1 first.
    fn given(&self) -> Vec<Vec<u64>> {
        let mut given: Vec<Vec<u64>> = vec![Vec::new(); self.vfs.len()];
        for frame in &self.frames {
            let place = FrameBacking(frame.load(Ordering::Acquire));
            if let Some(given) = place.function().checked_sub(1).and_then(|n| given.get_mut(n)) {
                given.push(place.offset());
            }
        }
        given.iter_mut().for_each(|given| given.sort_unstable());
        given
    }

    /// All ranges of the regions that store no frame, whether or not they contain data. Regions without a file are
    /// omitted, because their memory cannot be released to the host.
    fn find_unused(&self) -> Vec<Unused> {
        let away =
            self.frames.iter().enumerate().filter(|(_, frame)| frame.load(Ordering::Acquire) != FrameBacking::PF.0);
        let home = runs(away.map(|(frame, _)| (frame as u64).wrapping_mul(FRAME)).collect());
        let home = home.into_iter().map(|range| Unused { region: 0, range });
        let vfs = (1..).zip(self.vfs.iter().zip(self.given())).flat_map(|(n, (region, given))| {
            gaps(0..region.len(), given).map(move |range| Unused { region: n, range })
        });
        home.chain(vfs).filter(|unused| self.region_of(unused).is_some_and(SharedRegion::is_file)).collect()
    }

    fn region_of(&self, unused: &Unused) -> Option<&SharedRegion> {
        match unused.region.checked_sub(1) {
            None => Some(&self.home),
            Some(n) => self.vfs.get(n),
        }
    }

    /// Blocks accesses outside a step and moves of frames.
    #[cfg(test)]
    pub fn alone(&self) -> impl Sized + '_ {
        self.moving.write().ignore_poison()
    }

    /// Returns whether [`Storage::scrub`] has work to do.
    pub fn untidy(&self) -> bool {
        self.untidy.load(Ordering::Acquire)
    }

    /// Releases memory that stores no frame to the host, at most one frame's size; takes well under 1 ms. Returns false
    /// if no such memory is left, or if another thread is scrubbing.
    pub fn scrub(&self) -> bool {
        if !self.untidy() {
            return false;
        }
        let _still = self.still();
        let Ok(mut unused) = self.unused.try_lock() else { return false };
        for _ in 0..MAX_SEARCHES {
            let Some(last) = unused.last_mut() else {
                self.untidy.store(false, Ordering::Release);
                return false;
            };
            let found = self.region_of(last).and_then(|region| Some((region, region.first_data(&last.range)?)));
            let Some((region, first)) = found else {
                unused.pop();
                continue;
            };
            let end = last.range.end.min(first.saturating_add(PIECE));
            last.range.start = end;
            region.clear(first..end);
            return true;
        }
        true
    }

    /// Releases all pages of a VF's region, which then reads as zeros. Proceeds from the end, one frame at a time, and
    /// returns early if `stop` returns true between two frames. Data that is written concurrently may remain.
    ///
    /// Starts at the end because a PF driver that clears the VF's memory at the same time starts at the beginning.
    pub fn empty(&self, vf: Function, stop: impl Fn() -> bool) {
        let Some(region) = self.region(vf) else { return };
        let Some(first) = region.first_data(&(0..region.len())) else { return };
        for page in (first / FRAME..region.len().div_ceil(FRAME)).rev().take_while(|_| !stop()) {
            let _still = self.still();
            let start = page.saturating_mul(FRAME);
            empty(region, start..start.saturating_add(FRAME));
        }
    }

    /// Releases all pages of a VF's region that store no frame, so that the next user of the function cannot read data
    /// of the previous one. Proceeds in bounded chunks, between which frames may move. Pages that are written
    /// concurrently may remain.
    pub fn free_unused(&self, vf: Function) {
        let Some(region) = self.region(vf) else { return };
        let mut from = 0;
        loop {
            let _still = self.still();
            let Some(given) = vf.index().checked_sub(1).and_then(|n| self.given().into_iter().nth(n)) else { return };
            let found = gaps(0..region.len(), given).filter(|gap| gap.end > from).find_map(|gap| {
                let rest = gap.start.max(from)..gap.end;
                Some(region.first_data(&rest)?..rest.end)
            });
            let Some(found) = found else { return };
            from = found.end.min(found.start.saturating_add(16 * PIECE));
            region.clear(found.start..from);
        }
    }
}

/// Makes `range` read as zeros.
fn empty(region: &SharedRegion, range: Range<u64>) {
    if let Some(first) = region.first_data(&range) {
        region.clear(first..range.end);
    }
}

/// Merges frames at these offsets into runs.
fn runs(mut pages: Vec<u64>) -> Vec<Range<u64>> {
    pages.sort_unstable();
    let mut runs: Vec<Range<u64>> = Vec::new();
    for page in pages {
        match runs.last_mut() {
            Some(run) if run.end == page => run.end = page.saturating_add(FRAME),
            _ => runs.push(page..page.saturating_add(FRAME)),
        }
    }
    runs
}

/// The gaps in `range` between the frames at the offsets `given`, which are sorted and within the range.
fn gaps(range: Range<u64>, given: Vec<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut from = range.start;
    given.into_iter().chain([range.end]).filter_map(move |page| {
        let gap = from..page;
        from = page.saturating_add(FRAME);
        (!gap.is_empty()).then_some(gap)
    })
}
