// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Guest memory for a VMM that runs the card in its own process.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use std::ops::Deref;
use std::sync::Arc;

use arc_swap::ArcSwap;
use arctic_device_model::host::{Access, Dma, DmaFault, DmaView, Function};
use vm_memory::bitmap::Bitmap;
use vm_memory::{Bytes, GuestAddress, GuestAddressSpace, GuestMemory, Permissions, VolatileSlice};

/// Memory of a guest to which all functions of the card are assigned. It can be any `vm-memory` address space, for
/// example an `Arc<GuestMemoryMmap>` (fixed memory map) or a `GuestMemoryAtomic` (replaceable memory map).
///
/// It must contain only RAM. DMA to addresses outside its regions faults, including DMA to the card's own BARs.
///
/// In the memory's bitmap, if it has one, each page is marked that the card writes. A mark may precede its write by the rest
/// of a step: after the bitmap was read and reset, call [`crate::VirtualCard::memory_changed`], which returns when steps in
/// progress have ended, and then copy the marked pages. Bytes around a write may be marked too, up to the size of its GPU
/// page.
///
/// A step of an engine or the GuC that is running while the map is replaced continues with the old map, which stays
/// mapped until the step ends. [`crate::VirtualCard::memory_changed`] blocks until no step uses the old map.
pub struct GuestRam<S: GuestAddressSpace> {
    space: S,
    /// The most recent view, which is reused until the map is replaced.
    view: ArcSwap<RamView<S::T>>,
}

struct RamView<T>(T);

impl<S> GuestRam<S>
where
    S: GuestAddressSpace<T: Send + Sync + 'static> + Send + Sync,
{
    /// Creates guest memory backed by `space`. Each view uses the map that is current when the view is requested.
    pub fn new(space: S) -> Arc<Self> {
        let view = ArcSwap::from_pointee(RamView(space.memory()));
        Arc::new(GuestRam { space, view })
    }
}

impl<S> Dma for GuestRam<S>
where
    S: GuestAddressSpace<T: Send + Sync + 'static> + Send + Sync,
{
    fn view(&self, _: Function) -> Arc<dyn DmaView> {
        let current = self.space.memory();
        let view = self.view.load_full();
        // The cached view keeps its map alive, so a map at the same address is the same map.
        if std::ptr::eq(&*view.0, &*current) {
            return view;
        }
        let view = Arc::new(RamView(current));
        self.view.store(view.clone());
        view
    }
}

impl<T> DmaView for RamView<T>
where
    T: Deref<Target: GuestMemory> + Send + Sync,
{
    fn slice(&self, iova: u64, len: usize, access: Access) -> Option<VolatileSlice<'_>> {
        let slice = self.0.get_slices(GuestAddress(iova), len, Permissions::ReadWrite).ok()?.next()?.ok()?;
        if access == Access::Write {
            slice.bitmap().mark_dirty(0, slice.len());
        }
        // SAFETY: the bytes are those of a slice of `self.0` with the lifetime of `self`, which keeps the map alive; the
        // bitmap that it has too is not needed, because its bytes have been marked above.
        Some(unsafe { VolatileSlice::new(slice.ptr_guard_mut().as_ptr(), slice.len()) })
    }

    fn read_remote(&self, iova: u64, data: &mut [u8]) -> Result<(), DmaFault> {
        self.0.read_slice(data, GuestAddress(iova)).map_err(|_| DmaFault { iova })
    }

    fn write_remote(&self, iova: u64, data: &[u8]) -> Result<(), DmaFault> {
        self.0.write_slice(data, GuestAddress(iova)).map_err(|_| DmaFault { iova })
    }
}

#[cfg(test)]
mod tests {
    use vm_memory::bitmap::AtomicBitmap;
    use vm_memory::{GuestMemoryAtomic, GuestMemoryBackend, GuestMemoryMmap, GuestMemoryRegion};

    use super::*;

    type Mmap = GuestMemoryMmap<()>;

    fn map(ranges: &[(u64, usize)]) -> Mmap {
        let ranges: Vec<_> = ranges.iter().map(|(at, len)| (GuestAddress(*at), *len)).collect();
        Mmap::from_ranges(&ranges).unwrap()
    }

    #[test]
    fn slices_end_at_the_end_of_a_region_and_holes_fault() {
        let memory = map(&[(0x1000, 0x2000), (0x8000, 0x1000)]);
        memory.write_obj(7u32, GuestAddress(0x2ffc)).unwrap();
        let view = GuestRam::new(Arc::new(memory)).view(Function::PF);
        assert_eq!(view.slice(0x2ffc, 0x100, Access::Read).unwrap().len(), 4);
        assert!(
            view.slice(0x3000, 1, Access::Read).is_none()
                && view.slice(0xfff, 1, Access::Read).is_none()
                && view.slice(u64::MAX, 1, Access::Read).is_none()
        );
        let mut data = [0; 4];
        view.read_remote(0x2ffc, &mut data).unwrap();
        assert_eq!(u32::from_le_bytes(data), 7);
        assert!(view.read_remote(0x2ffd, &mut data).is_err() && view.write_remote(0x7fff, &data).is_err());
    }

    #[test]
    fn a_new_view_uses_the_new_map_and_an_old_view_keeps_the_old_map() {
        let atomic = GuestMemoryAtomic::new(map(&[(0, 0x1000)]));
        let ram = GuestRam::new(atomic.clone());
        let (old, again) = (ram.view(Function::PF), ram.view(Function::new(1).unwrap()));
        assert!(Arc::ptr_eq(&old, &again), "one view per map, not per step");
        atomic.lock().unwrap().replace(map(&[(0x1000, 0x1000)]));
        assert!(old.slice(0, 1, Access::Read).is_some() && old.slice(0x1000, 1, Access::Read).is_none());
        let new = ram.view(Function::PF);
        assert!(new.slice(0, 1, Access::Read).is_none() && new.slice(0x1000, 1, Access::Read).is_some());
        assert_eq!(Arc::strong_count(&old), 2, "only the test refers to the old view");
    }

    /// Writes are marked in the memory's bitmap, reads are not.
    #[test]
    fn memory_taken_for_a_write_is_marked() {
        let memory = Arc::new(GuestMemoryMmap::<AtomicBitmap>::from_ranges(&[(GuestAddress(0), 0x8000)]).unwrap());
        let view = GuestRam::new(memory.clone()).view(Function::PF);
        let pages = || {
            let region = memory.iter().next().unwrap();
            (0..8).filter(|page| region.bitmap().dirty_at(page * 0x1000)).collect::<Vec<usize>>()
        };
        let mut data = [0; 8];
        view.slice(0, 0x8000, Access::Read).unwrap();
        view.read_remote(0x1000, &mut data).unwrap();
        assert_eq!(pages(), [0_usize; 0]);
        let slice = view.slice(0x1ffc, 8, Access::Write).unwrap();
        slice.write_slice(&[1, 2, 3, 4, 5, 6, 7, 8], 0).unwrap();
        assert_eq!(pages(), [1, 2]);
        view.write_remote(0x4ffc, &data).unwrap();
        assert_eq!(pages(), [1, 2, 4, 5]);
        memory.read_slice(&mut data, GuestAddress(0x1ffc)).unwrap();
        assert_eq!(data, [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
