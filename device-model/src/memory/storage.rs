//! Where the bytes of local memory are stored: at home in the PF's region, or in the region of the virtual function that
//! has been given the frame.
//!
//! A VMM maps a BAR's file once, linearly. So a frame that a function has been given lies in that function's own file, at
//! the function's own offset; the frame table is the map for all other accesses. Frames change place only while every
//! engine stands still and no access of a BAR by message is in progress, so one load finds a frame and needs no lock.
//!
//! **Contents.** A frame keeps its contents as long as it keeps its place. With a change of place its contents are dropped,
//! so that the change costs the same whatever the frame holds: a virtual function finds zeros, never what the PF or another
//! function left there; back at home the frame holds zeros or what the PF itself had there before, never what a virtual
//! function left. Hardware keeps the bytes. The difference is not visible to the drivers: xe gives a VF a new buffer that
//! it has not written, clears it by its copy engine at the VF's FLR, and reads it only to save or restore the VF, which
//! changes no place.
//!
//! What a change of place leaves behind goes back to the host afterwards, in pieces ([`Storage::scrub`]).

use std::ops::Range;

use vm_memory::VolatileSlice;

use super::local::SharedRegion;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::{Mutex, RwLock, RwLockReadGuard};
use crate::world::Function;

/// Bytes of a frame: what one entry of the LMTT gives (V13-105).
pub const FRAME: u64 = arctic_sriov::gate::lmtt::PAGE;

/// A place in the frame table: 0 for a frame at home, else function << 16 | page of its region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place(u32);

impl Place {
    /// In the PF's region, at the frame's own address.
    pub const HOME: Place = Place(0);

    /// Page `page` of the region of `function`, a VF; pages have the size of a frame.
    pub fn of(function: Function, page: u16) -> Place {
        Place(u32::from(function.0) << 16 | u32::from(page))
    }

    fn function(self) -> usize {
        (self.0 >> 16) as usize
    }

    fn offset(self) -> u64 {
        u64::from(self.0 & 0xffff) * FRAME
    }
}

/// Most bytes that go back to the host in one call: each page of them costs the host about half a microsecond.
const PIECE: u64 = FRAME;
/// Most looks for bytes to give back in one call.
const LOOKS: usize = 64;

/// A part of a region that holds no frame.
struct Unused {
    /// 0 is the PF's region, n that of VF n.
    region: usize,
    range: Range<u64>,
}

/// The regions behind local memory, and which of them has a frame.
pub struct Storage {
    /// The PF's, by local memory address.
    home: SharedRegion,
    /// The VFs', VF 1 first, by the VF's own offset.
    vfs: Vec<SharedRegion>,
    frames: Box<[AtomicU32]>,
    /// Held (shared) by accesses that are not made in an engine's or the GuC's step, and (alone) while frames move.
    moving: RwLock<()>,
    /// What may still hold memory of the host without holding a frame. Locked after `moving`.
    unused: Mutex<Vec<Unused>>,
    /// Whether there is any, for a look without a lock.
    untidy: AtomicBool,
}

impl Storage {
    /// Everything at home in `home`.
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

    /// Gives each virtual function its region, VF 1 first.
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

    /// Number of frames, the last perhaps incomplete.
    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    /// Where the frame that holds a local memory address is stored.
    #[inline]
    pub fn place(&self, address: u64) -> Place {
        let frame = usize::try_from(address / FRAME).ok().and_then(|frame| self.frames.get(frame));
        Place(frame.map_or(0, |frame| frame.load(Ordering::Acquire)))
    }

    /// The region that stores a local memory address, and the offset in it.
    #[inline]
    fn locate(&self, address: u64) -> Option<(&SharedRegion, u64)> {
        let place = self.place(address);
        if place == Place::HOME {
            return Some((&self.home, address));
        }
        Some((self.vfs.get(place.function() - 1)?, place.offset() + address % FRAME))
    }

    /// Bytes `[address, address + len)` of local memory, wherever they are stored: in one frame, or all at home.
    #[inline]
    pub fn slice(&self, address: u64, len: usize) -> Option<VolatileSlice<'_>> {
        let (region, at) = self.locate(address)?;
        region.slice(at, len)
    }

    /// The same, as far as the region goes.
    #[inline]
    pub fn slice_up_to(&self, address: u64, len: usize) -> Option<VolatileSlice<'_>> {
        let (region, at) = self.locate(address)?;
        region.slice_up_to(at, len)
    }

    /// Makes `[address, address + len)` of local memory, in one frame, read as zeros.
    pub fn clear(&self, address: u64, len: u64) {
        if let Some((region, at)) = self.locate(address)
            && let Some(first) = region.first_data(&(at..at.saturating_add(len)))
        {
            region.clear(first..at.saturating_add(len));
        }
    }

    /// [`SharedRegion::zero`] for `[address, address + len)` of local memory, in one frame.
    pub fn zero(&self, address: u64, len: u64, release: bool) -> Option<u64> {
        let (region, at) = self.locate(address)?;
        region.zero(at..at.checked_add(len).filter(|end| *end <= region.len())?, release)
    }

    /// Keeps frames where they are for an access from outside of a step.
    pub fn still(&self) -> RwLockReadGuard<'_, ()> {
        self.moving.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Pages of the VFs' regions that `wanted` has a frame in and that hold none yet or another one: by VF, in runs.
    fn arriving(&self, wanted: &[Place]) -> Vec<Vec<Range<u64>>> {
        let mut pages: Vec<Vec<u64>> = vec![Vec::new(); self.vfs.len()];
        for (frame, wanted) in wanted.iter().enumerate() {
            if let Some(pages) = wanted.function().checked_sub(1).and_then(|n| pages.get_mut(n))
                && *wanted != self.place(frame as u64 * FRAME)
            {
                pages.push(wanted.offset());
            }
        }
        pages.into_iter().map(runs).collect()
    }

    /// Empties what [`Storage::settle`] would otherwise have to empty while the engines stand still: pages that have been
    /// written by their function's client before they hold a frame. No frame may change place meanwhile.
    pub fn make_room(&self, wanted: &[Place]) {
        let in_use = self.given();
        for ((region, arriving), in_use) in self.vfs.iter().zip(self.arriving(wanted)).zip(in_use) {
            for run in arriving {
                let within = |page: &u64| run.contains(page);
                let taken = in_use.iter().copied().filter(within).collect();
                gaps(run.clone(), taken).for_each(|gap| empty(region, gap));
            }
        }
    }

    /// Moves every frame to where `wanted` has it (an entry for each frame, no place twice), without what it holds. Returns
    /// the addresses of the frames that have moved, in runs. The engines stand still.
    pub fn settle(&self, wanted: &[Place]) -> Vec<Range<u64>> {
        let _alone = self.moving.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        for (region, arriving) in self.vfs.iter().zip(self.arriving(wanted)) {
            arriving.into_iter().for_each(|run| empty(region, run));
        }
        let mut moved = Vec::new();
        for ((address, frame), wanted) in (0..).step_by(FRAME as usize).zip(&self.frames).zip(wanted) {
            let known = wanted.function() <= self.vfs.len();
            let wanted = if known { *wanted } else { Place::HOME };
            if frame.swap(wanted.0, Ordering::AcqRel) != wanted.0 {
                moved.push(address);
            }
        }
        *self.unused.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = self.find_unused();
        self.untidy.store(true, Ordering::Release);
        runs(moved)
    }

    /// Offsets of the frames that are stored with each VF, sorted; VF 1 first.
    fn given(&self) -> Vec<Vec<u64>> {
        let mut given: Vec<Vec<u64>> = vec![Vec::new(); self.vfs.len()];
        for frame in &self.frames {
            let place = Place(frame.load(Ordering::Acquire));
            if let Some(given) = place.function().checked_sub(1).and_then(|n| given.get_mut(n)) {
                given.push(place.offset());
            }
        }
        given.iter_mut().for_each(|given| given.sort_unstable());
        given
    }

    /// All parts of the regions that hold no frame, whatever is written there. Memory without a file cannot go back to the
    /// host.
    fn find_unused(&self) -> Vec<Unused> {
        let away = self.frames.iter().enumerate().filter(|(_, frame)| frame.load(Ordering::Acquire) != Place::HOME.0);
        let home = runs(away.map(|(frame, _)| frame as u64 * FRAME).collect());
        let home = home.into_iter().map(|range| Unused { region: 0, range });
        let vfs = self.vfs.iter().zip(self.given()).enumerate().flat_map(|(n, (region, given))| {
            gaps(0..region.len(), given).map(move |range| Unused { region: n + 1, range })
        });
        home.chain(vfs).filter(|unused| self.region_of(unused).is_some_and(SharedRegion::is_file)).collect()
    }

    fn region_of(&self, unused: &Unused) -> Option<&SharedRegion> {
        match unused.region.checked_sub(1) {
            None => Some(&self.home),
            Some(n) => self.vfs.get(n),
        }
    }

    /// No frame is accessed or changes place meanwhile.
    #[cfg(test)]
    pub fn alone(&self) -> impl Sized + '_ {
        self.moving.write().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Whether [`Storage::scrub`] has something to do.
    pub fn untidy(&self) -> bool {
        self.untidy.load(Ordering::Acquire)
    }

    /// Gives a piece of what holds no frame back to the host: well under 1 ms. False where nothing is left to do, or
    /// another thread is at it.
    pub fn scrub(&self) -> bool {
        if !self.untidy() {
            return false;
        }
        let _still = self.still();
        let Ok(mut unused) = self.unused.try_lock() else { return false };
        for _ in 0..LOOKS {
            let Some(last) = unused.last_mut() else {
                self.untidy.store(false, Ordering::Release);
                return false;
            };
            let found = self.region_of(last).and_then(|region| Some((region, region.first_data(&last.range)?)));
            let Some((region, first)) = found else {
                unused.pop();
                continue;
            };
            let end = last.range.end.min(first + PIECE);
            last.range.start = end;
            region.clear(first..end);
            return true;
        }
        true
    }

    /// Frees all pages of a VF's region that hold no frame: what the last user of the function has written there must not be
    /// seen by the next. In pieces, between which frames may change place; pages written meanwhile may stay.
    pub fn free_unused(&self, vf: Function) {
        let Some(region) = self.region(vf) else { return };
        let mut from = 0;
        loop {
            let _still = self.still();
            let given = self.given().swap_remove(vf.index() - 1);
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

/// Frames at these offsets, in runs of neighbours.
fn runs(mut pages: Vec<u64>) -> Vec<Range<u64>> {
    pages.sort_unstable();
    let mut runs: Vec<Range<u64>> = Vec::new();
    for page in pages {
        match runs.last_mut() {
            Some(run) if run.end == page => run.end += FRAME,
            _ => runs.push(page..page + FRAME),
        }
    }
    runs
}

/// What is left of `range` without the frames at the offsets `given`, which are sorted and inside.
fn gaps(range: Range<u64>, given: Vec<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut from = range.start;
    given.into_iter().chain([range.end]).filter_map(move |page| {
        let gap = from..page;
        from = page.saturating_add(FRAME);
        (!gap.is_empty()).then_some(gap)
    })
}
