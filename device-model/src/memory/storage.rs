//! Where the bytes of local memory are stored: at home in the PF's region, or in the region of the virtual function that
//! has been given the frame.
//!
//! A VMM maps a BAR's file once, linearly. So a frame that a function has been given lies in that function's own file, at
//! the function's own offset; the frame table leads everybody else there. Frames move only while every engine stands
//! still and no access of a BAR by message is on its way, so one load finds a frame and nobody holds a lock for it.

use std::io;

use vm_memory::VolatileSlice;

use super::local::SharedRegion;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{RwLock, RwLockReadGuard};
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

/// The regions behind local memory, and which of them has a frame.
pub struct Storage {
    /// The PF's, by local memory address.
    home: SharedRegion,
    /// The VFs', VF 1 first, by the VF's own offset.
    vfs: Vec<SharedRegion>,
    frames: Box<[AtomicU32]>,
    /// Held (shared) by accesses that are not made in an engine's or the GuC's step, and (alone) while frames move.
    moving: RwLock<()>,
}

impl Storage {
    /// Everything at home in `home`.
    pub fn new(home: SharedRegion) -> Self {
        let frames = (0..home.len().div_ceil(FRAME)).map(|_| AtomicU32::new(0)).collect();
        Storage { home, vfs: Vec::new(), frames, moving: RwLock::new(()) }
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

    /// Moves every frame to where `wanted` has it (an entry for each frame, no place twice) with what it holds, and frees
    /// all pages of the VFs' regions that hold no frame. Tells whether a frame has moved. The engines stand still.
    pub fn settle(&self, wanted: &[Place]) -> io::Result<bool> {
        let _alone = self.moving.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut moved = false;
        // First all that leave, so that their pages are free for others.
        for (frame, wanted) in wanted.iter().enumerate() {
            let place = self.place(frame as u64 * FRAME);
            if place != Place::HOME && place != *wanted {
                self.bring_home(frame, place)?;
                moved = true;
            }
        }
        self.free_other_pages(wanted);
        for (frame, wanted) in wanted.iter().enumerate() {
            if *wanted != self.place(frame as u64 * FRAME) {
                self.send_away(frame, *wanted)?;
                moved = true;
            }
        }
        Ok(moved)
    }

    fn bring_home(&self, frame: usize, place: Place) -> io::Result<()> {
        let at = frame as u64 * FRAME;
        let Some(region) = self.vfs.get(place.function() - 1) else { return Ok(()) };
        // Whatever the PF's guest has written there since is not the frame's.
        self.home.clear(at..at + FRAME);
        region.copy_to(place.offset(), &self.home, at, FRAME)?;
        self.frames[frame].store(Place::HOME.0, Ordering::Release);
        region.clear(place.offset()..place.offset() + FRAME);
        Ok(())
    }

    fn send_away(&self, frame: usize, place: Place) -> io::Result<()> {
        let at = frame as u64 * FRAME;
        let region = self.vfs.get(place.function() - 1).ok_or(io::ErrorKind::NotFound)?;
        region.clear(place.offset()..place.offset() + FRAME);
        self.home.copy_to(at, region, place.offset(), FRAME)?;
        self.frames[frame].store(place.0, Ordering::Release);
        self.home.clear(at..at + FRAME);
        Ok(())
    }

    /// What a function wrote to pages of its BAR that are not its own goes back to the host: a question and a call for
    /// each gap between its pages, however its guest has scattered what it wrote.
    fn free_other_pages(&self, wanted: &[Place]) {
        let mut given: Vec<Vec<u64>> = vec![Vec::new(); self.vfs.len()];
        for place in wanted {
            if let Some(given) = place.function().checked_sub(1).and_then(|n| given.get_mut(n)) {
                given.push(place.offset());
            }
        }
        self.vfs.iter().zip(given).for_each(|(region, given)| free_all_but(region, given));
    }

    /// Frees all pages of a VF's region that hold no frame: whoever had the function before has written them, and whoever
    /// has it next maps them.
    pub fn free_unused(&self, vf: Function) {
        let _alone = self.moving.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        let places = self.frames.iter().map(|frame| Place(frame.load(Ordering::Acquire)));
        let given = places.filter(|place| place.function() == vf.index()).map(Place::offset).collect();
        if let Some(region) = self.region(vf) {
            free_all_but(region, given);
        }
    }
}

fn free_all_but(region: &SharedRegion, mut pages: Vec<u64>) {
    pages.sort_unstable();
    let mut from = 0;
    for page in pages.into_iter().chain([region.len()]) {
        if region.first_data(&(from..page)).is_some() {
            region.clear(from..page);
        }
        from = page.saturating_add(FRAME);
    }
}
