//! Guest memory as a function's client maps it: an immutable table of sections, replaced at each map and unmap.

use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use arctic_device_model::world::{DmaFault, DmaView};
use vm_memory::mmap::MmapRegionBuilder;
use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory, VolatileSlice};

use crate::vfio_user::wire::{DMA_HINTS, DMA_READABLE, DMA_WRITABLE, MAX_DMA_MAPS};
use crate::vfio_user::{ClientDma, Errno};

/// How long an unmap waits for engines to drop their views; a step lasts under 1 ms.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// One section of guest memory, as DMA_MAP announced it.
#[derive(Clone)]
struct Mapping {
    iova: u64,
    /// Last address; a section can end at the top of the 64-bit space.
    last: u64,
    flags: u32,
    /// The section in this process, where the client sent a descriptor.
    memory: Option<Arc<MmapRegion>>,
}

impl Mapping {
    fn allows(&self, flags: u32) -> bool {
        self.flags & flags == flags
    }

    /// Bytes `[at, at + len)` where the section is mapped here, cut at its end.
    fn bytes<'m>(&self, memory: &'m MmapRegion, at: u64, len: usize) -> Option<VolatileSlice<'m>> {
        let offset = usize::try_from(at.checked_sub(self.iova)?).ok()?;
        memory.get_slice(offset, len.min(memory.size().checked_sub(offset)?)).ok()
    }
}

/// The sections of one client at one moment, sorted and without overlaps.
#[derive(Default)]
struct Table {
    mappings: Vec<Mapping>,
    client: Option<Arc<ClientDma>>,
}

impl Table {
    fn find(&self, iova: u64) -> Option<&Mapping> {
        let after = self.mappings.partition_point(|mapping| mapping.iova <= iova);
        self.mappings[..after].last().filter(|mapping| iova <= mapping.last)
    }

    /// Runs `step` on each section that `[iova, iova + len)` touches, with the piece's address and range of the data.
    fn pieces(
        &self,
        iova: u64,
        len: usize,
        needs: u32,
        mut step: impl FnMut(&Mapping, u64, std::ops::Range<usize>) -> Option<()>,
    ) -> Result<(), DmaFault> {
        let mut done = 0;
        while done < len {
            let at = iova.checked_add(done as u64).ok_or(DmaFault { iova })?;
            let mapping = self.find(at).filter(|mapping| mapping.allows(needs)).ok_or(DmaFault { iova: at })?;
            let rest = usize::try_from(mapping.last - at).unwrap_or(usize::MAX).saturating_add(1);
            let end = done + rest.min(len - done);
            step(mapping, at, done..end).ok_or(DmaFault { iova: at })?;
            done = end;
        }
        Ok(())
    }
}

impl DmaView for Table {
    /// Only sections that the device may both read and write: a write through the mapping of a read-only one would
    /// be a fault of this process. Those are reached like memory without a descriptor, and checked there.
    fn slice(&self, iova: u64, len: usize) -> Option<VolatileSlice<'_>> {
        let mapping = self.find(iova).filter(|mapping| mapping.allows(DMA_READABLE | DMA_WRITABLE))?;
        mapping.bytes(mapping.memory.as_ref()?, iova, len)
    }

    fn read_remote(&self, iova: u64, data: &mut [u8]) -> Result<(), DmaFault> {
        self.pieces(iova, data.len(), DMA_READABLE, |mapping, at, range| match &mapping.memory {
            Some(memory) => mapping.bytes(memory, at, range.len())?.read_slice(&mut data[range], 0).ok(),
            None => self.client.as_ref()?.read(at, &mut data[range]).ok(),
        })
    }

    fn write_remote(&self, iova: u64, data: &[u8]) -> Result<(), DmaFault> {
        self.pieces(iova, data.len(), DMA_WRITABLE, |mapping, at, range| match &mapping.memory {
            Some(memory) => mapping.bytes(memory, at, range.len())?.write_slice(&data[range], 0).ok(),
            None => self.client.as_ref()?.write(at, &data[range]).ok(),
        })
    }

    fn sections(&self) -> usize {
        self.mappings.len()
    }
}

/// The guest memory of one function.
#[derive(Default)]
pub struct GuestMemory {
    table: ArcSwap<Table>,
    /// One change at a time.
    change: Mutex<()>,
}

impl GuestMemory {
    /// The present sections.
    pub fn view(&self) -> Arc<dyn DmaView> {
        self.table.load_full()
    }

    /// Sections mapped now.
    pub fn sections(&self) -> usize {
        self.table.load().mappings.len()
    }

    /// The client that maps the memory, once it has said its version.
    pub(crate) fn client(&self) -> Option<Arc<ClientDma>> {
        self.table.load().client.clone()
    }

    /// Names the client that memory without descriptors is fetched from.
    pub(crate) fn connect(&self, client: Arc<ClientDma>) {
        let _change = self.change.lock().unwrap_or_else(PoisonError::into_inner);
        self.table.store(Arc::new(Table { mappings: Vec::new(), client: Some(client) }));
    }

    /// Forgets all sections: the client is gone. Views in use keep their mappings until they are dropped.
    pub(crate) fn clear(&self) {
        let _change = self.change.lock().unwrap_or_else(PoisonError::into_inner);
        self.table.store(Arc::default());
    }

    /// Adds the section `[iova, iova + size)`; with a file, it is the file's bytes from `offset` on.
    ///
    /// EINVAL for a section that makes no sense, EEXIST for one that overlaps another, ENOSPC beyond 65535 sections,
    /// ENOMEM where the file cannot be mapped.
    pub(crate) fn map(&self, iova: u64, size: u64, flags: u32, offset: u64, file: Option<File>) -> Result<(), Errno> {
        let last = size.checked_sub(1).and_then(|size| iova.checked_add(size)).ok_or(Errno::EINVAL)?;
        if flags & (DMA_READABLE | DMA_WRITABLE) == 0 || flags & !(DMA_READABLE | DMA_WRITABLE | DMA_HINTS) != 0 {
            return Err(Errno::EINVAL);
        }
        let _change = self.change.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.table.load();
        let at = old.mappings.partition_point(|mapping| mapping.iova <= iova);
        let before = at.checked_sub(1).and_then(|at| old.mappings.get(at));
        if before.is_some_and(|mapping| mapping.last >= iova) {
            return Err(Errno::EEXIST);
        }
        if old.mappings.get(at).is_some_and(|mapping| mapping.iova <= last) {
            return Err(Errno::EEXIST);
        }
        if old.mappings.len() >= MAX_DMA_MAPS {
            return Err(Errno::ENOSPC);
        }
        let memory = file.map(|file| map_file(file, offset, size, flags)).transpose()?.map(Arc::new);
        let mut mappings = Vec::with_capacity(old.mappings.len() + 1);
        mappings.extend_from_slice(&old.mappings[..at]);
        mappings.push(Mapping { iova, last, flags, memory });
        mappings.extend_from_slice(&old.mappings[at..]);
        self.table.store(Arc::new(Table { mappings, client: old.client.clone() }));
        Ok(())
    }

    /// Removes all sections inside `[iova, iova + size)` (or all there are), and returns when no engine holds them.
    ///
    /// ENOENT where there is none, EINVAL where a section would be cut in two, EBUSY where an engine has not let go
    /// within a second (the section is gone from the table all the same).
    pub(crate) fn unmap(&self, range: Option<(u64, u64)>) -> Result<(), Errno> {
        let gone = {
            let _change = self.change.lock().unwrap_or_else(PoisonError::into_inner);
            let old = self.table.load_full();
            let (from, to) = match range {
                None => (0, old.mappings.len()),
                Some((iova, size)) => old.inside(iova, size)?,
            };
            let gone = old.mappings[from..to].to_vec();
            let mut mappings = Vec::with_capacity(old.mappings.len() - gone.len());
            mappings.extend_from_slice(&old.mappings[..from]);
            mappings.extend_from_slice(&old.mappings[to..]);
            self.table.store(Arc::new(Table { mappings, client: old.client.clone() }));
            gone
        };
        let start = Instant::now();
        for memory in gone.into_iter().filter_map(|mapping| mapping.memory) {
            // Every table that knew the section, however old, holds it; the last one to go leaves only this handle.
            while Arc::strong_count(&memory) > 1 {
                if start.elapsed() > DRAIN_TIMEOUT {
                    return Err(Errno::EBUSY);
                }
                thread::sleep(Duration::from_micros(50));
            }
        }
        Ok(())
    }
}

impl Table {
    /// Indexes of the sections inside `[iova, iova + size)`.
    fn inside(&self, iova: u64, size: u64) -> Result<(usize, usize), Errno> {
        let last = size.checked_sub(1).and_then(|size| iova.checked_add(size)).ok_or(Errno::EINVAL)?;
        let from = self.mappings.partition_point(|mapping| mapping.last < iova);
        let to = self.mappings.partition_point(|mapping| mapping.iova <= last);
        let range = self.mappings.get(from..to).filter(|range| !range.is_empty()).ok_or(Errno::ENOENT)?;
        let cut = range.iter().any(|mapping| mapping.iova < iova || mapping.last > last);
        if cut { Err(Errno::EINVAL) } else { Ok((from, to)) }
    }
}

/// Maps a section of the client's file with the rights that the client grants.
fn map_file(file: File, offset: u64, size: u64, flags: u32) -> Result<MmapRegion, Errno> {
    let len = usize::try_from(size).map_err(|_| Errno::EINVAL)?;
    let end = offset.checked_add(size).ok_or(Errno::EINVAL)?;
    // A mapping beyond the end of a file is a fault when touched.
    let file_len = file.metadata().map_err(|_| Errno::EINVAL)?.len();
    if end > file_len {
        return Err(Errno::EINVAL);
    }
    let mut prot = 0;
    if flags & DMA_READABLE != 0 {
        prot |= libc::PROT_READ;
    }
    if flags & DMA_WRITABLE != 0 {
        prot |= libc::PROT_WRITE;
    }
    MmapRegionBuilder::new(len)
        .with_file_offset(FileOffset::new(file, offset))
        .with_mmap_prot(prot)
        .with_mmap_flags(libc::MAP_SHARED | libc::MAP_NORESERVE)
        .build()
        .map_err(|_| Errno::ENOMEM)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    use vmm_sys_util::tempfile::TempFile;

    use super::*;

    const RW: u32 = DMA_READABLE | DMA_WRITABLE;

    fn file(pages: usize) -> File {
        let mut file = TempFile::new().unwrap().into_file();
        for page in 0..pages {
            file.write_all(&[page as u8 + 1; 4096]).unwrap();
        }
        file
    }

    fn byte(view: &dyn DmaView, iova: u64) -> Option<u8> {
        view.slice(iova, 1)?.load(0, std::sync::atomic::Ordering::Relaxed).ok()
    }

    #[test]
    fn slices_come_from_the_section_that_holds_the_address() {
        let memory = GuestMemory::default();
        let backing = file(3);
        memory.map(0x10_0000, 0x1000, RW, 0x2000, Some(backing.try_clone().unwrap())).unwrap();
        memory.map(0x8000, 0x2000, RW, 0, Some(backing.try_clone().unwrap())).unwrap();
        let view = memory.view();
        assert_eq!(byte(&*view, 0x7fff), None);
        assert_eq!(byte(&*view, 0x8000), Some(1));
        assert_eq!(byte(&*view, 0x9fff), Some(2));
        assert_eq!(byte(&*view, 0xa000), None);
        assert_eq!(byte(&*view, 0x10_0fff), Some(3));
        assert_eq!(byte(&*view, u64::MAX), None);
        assert_eq!(view.slice(0x8800, 1 << 20).unwrap().len(), 0x1800, "as far as the section goes");
        view.slice(0x8001, 1).unwrap().write_slice(&[0xab], 0).unwrap();
        let mut seen = [0; 1];
        backing.read_at(&mut seen, 1).unwrap();
        assert_eq!(seen, [0xab]);
    }

    #[test]
    fn overlaps_and_nonsense_are_refused() {
        let memory = GuestMemory::default();
        memory.map(0x1000, 0x2000, RW, 0, None).unwrap();
        for (iova, size) in [(0x1000, 0x1000), (0, 0x1001), (0x2fff, 1), (0, u64::MAX)] {
            assert_eq!(memory.map(iova, size, RW, 0, None), Err(Errno::EEXIST), "{iova:x} {size:x}");
        }
        assert_eq!(memory.map(0x8000, 0, RW, 0, None), Err(Errno::EINVAL));
        assert_eq!(memory.map(u64::MAX, 2, RW, 0, None), Err(Errno::EINVAL));
        assert_eq!(memory.map(0x8000, 0x1000, 0, 0, None), Err(Errno::EINVAL));
        assert_eq!(memory.map(0x8000, 0x1000, 0x80 | RW, 0, None), Err(Errno::EINVAL));
        assert_eq!(memory.map(0x8000, 0x1000, RW, 0x1000, Some(file(1))), Err(Errno::EINVAL), "past the file's end");
        assert_eq!(memory.map(0x8000, 0x1000, RW, u64::MAX, Some(file(1))), Err(Errno::EINVAL));
        memory.map(u64::MAX, 1, RW, 0, None).unwrap();
        assert_eq!(memory.sections(), 2);
    }

    #[test]
    fn an_unmap_takes_whole_sections_only() {
        let memory = GuestMemory::default();
        for page in 1..5 {
            memory.map(page * 0x1000, 0x1000, RW, 0, None).unwrap();
        }
        assert_eq!(memory.unmap(Some((0x1000, 0x1800))), Err(Errno::EINVAL));
        assert_eq!(memory.unmap(Some((0x8000, 0x1000))), Err(Errno::ENOENT));
        assert_eq!(memory.unmap(Some((0x1000, 0))), Err(Errno::EINVAL));
        memory.unmap(Some((0, 0x3000))).unwrap();
        assert_eq!(memory.sections(), 2);
        memory.unmap(None).unwrap();
        assert_eq!(memory.sections(), 0);
    }

    /// Design rule 8: an unmap is answered only when every engine has passed a step boundary.
    #[test]
    fn an_unmap_waits_for_the_oldest_view() {
        let memory = Arc::new(GuestMemory::default());
        memory.map(0x1000, 0x1000, RW, 0, Some(file(1))).unwrap();
        let view = memory.view();
        memory.map(0x8000, 0x1000, RW, 0, None).unwrap();
        let unmapper = {
            let memory = memory.clone();
            thread::spawn(move || memory.unmap(Some((0x1000, 0x1000))))
        };
        while memory.sections() == 2 {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(5));
        assert!(!unmapper.is_finished(), "answered while a view is in use");
        assert_eq!(byte(&*view, 0x1000), Some(1), "the old view still works");
        assert_eq!(byte(&*memory.view(), 0x1000), None, "the new one knows nothing of it");
        drop(view);
        assert_eq!(unmapper.join().unwrap(), Ok(()));
    }

    #[test]
    fn a_view_that_is_never_dropped_does_not_hang_the_client() {
        let memory = GuestMemory::default();
        memory.map(0x1000, 0x1000, RW, 0, Some(file(1))).unwrap();
        let _view = memory.view();
        assert_eq!(memory.unmap(Some((0x1000, 0x1000))), Err(Errno::EBUSY));
        assert_eq!(memory.sections(), 0);
    }

    #[test]
    fn a_read_only_section_can_be_read_but_never_written() {
        let memory = GuestMemory::default();
        memory.map(0x1000, 0x1000, DMA_READABLE, 0, Some(file(1))).unwrap();
        let view = memory.view();
        assert!(view.slice(0x1000, 4).is_none());
        let mut data = [0; 4];
        view.read_remote(0x1ffc, &mut data).unwrap();
        assert_eq!(data, [1; 4]);
        assert_eq!(view.read_remote(0x1ffd, &mut data), Err(DmaFault { iova: 0x2000 }));
        assert_eq!(view.write_remote(0x1000, &[0]), Err(DmaFault { iova: 0x1000 }));
    }

    #[test]
    fn a_function_without_client_has_no_memory() {
        let mut data = [0; 4];
        let view = GuestMemory::default().view();
        assert!(view.slice(0, 4).is_none());
        assert_eq!(view.read_remote(0, &mut data), Err(DmaFault { iova: 0 }));
        assert_eq!(view.write_remote(u64::MAX, &data), Err(DmaFault { iova: u64::MAX }));
    }
}
