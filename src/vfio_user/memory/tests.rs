// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of sections of every kind of memory file: map, unmap, misuse.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an overflow fails the test")]
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

mod pages;
mod tables;

use arctic_device_model::host;
use std::ffi::CStr;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Instant;

use arctic_device_model::host::DmaFault;
use arctic_device_model::profile::limits::Limits;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use vm_memory::Bytes;

use super::*;

const RW: u32 = DMA_READABLE | DMA_WRITABLE;

/// A memfd of `bytes` zeros with these seals, which cannot be removed; more can be added unless F_SEAL_SEAL is among
/// them.
pub(crate) fn memory_file(name: &CStr, bytes: u64, seals: SealFlags) -> File {
    let file = File::from(memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap());
    file.set_len(bytes).unwrap();
    fcntl_add_seals(&file, seals).unwrap();
    file
}

/// Guest memory sealed like QEMU's memory-backend-memfd.
pub(crate) fn sealed(bytes: u64) -> File {
    memory_file(c"guest", bytes, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
}

/// Fills page n with the byte n + 1.
fn numbered(file: File, pages: u64) -> File {
    for page in 0..pages {
        file.write_all_at(&[page as u8 + 1; 4096], page * 4096).unwrap();
    }
    file
}

fn file(pages: u64) -> File {
    numbered(sealed(pages * 4096), pages)
}

fn unsealed(pages: u64) -> File {
    numbered(memory_file(c"guest", pages * 4096, SealFlags::empty()), pages)
}

fn byte(view: &dyn DmaView, iova: u64) -> Option<u8> {
    view.slice(iova, 1, host::Access::Read)?.load(0, std::sync::atomic::Ordering::Relaxed).ok()
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
    assert_eq!(
        view.slice(0x8800, 1 << 20, host::Access::Read).unwrap().len(),
        0x1800,
        "truncated at the end of the section"
    );
    view.slice(0x8001, 1, host::Access::Write).unwrap().write_slice(&[0xab], 0).unwrap();
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
fn an_unmap_removes_its_range_only() {
    let memory = GuestMemory::default();
    for page in 1..5 {
        memory.map(page * 0x1000, 0x1000, RW, 0, None).unwrap();
    }
    assert_eq!(memory.sections(), 1, "pages that continue each other are one section");
    memory.unmap(Some((0x1800, 0x800))).unwrap();
    assert_eq!(memory.sections(), 2, "the parts outside the range are kept");
    assert_eq!(memory.map(0x17ff, 2, RW, 0, None), Err(Errno::EEXIST));
    memory.map(0x1800, 0x800, RW, 0, None).unwrap();
    assert_eq!(memory.sections(), 1);
    assert_eq!(memory.unmap(Some((0x8000, 0x1000))), Ok(()), "a range that holds nothing");
    for (iova, size) in [(0x1000, 0), (u64::MAX, 2)] {
        assert_eq!(memory.unmap(Some((iova, size))), Err(Errno::EINVAL));
    }
    memory.unmap(Some((0, 0x3000))).unwrap();
    assert_eq!(memory.sections(), 1);
    memory.unmap(None).unwrap();
    assert_eq!(memory.sections(), 0);
}

/// An unmap returns only after every engine has passed a step boundary.
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
    assert!(!unmapper.is_finished(), "completed while a view is in use");
    assert_eq!(byte(&*view, 0x1000), Some(1), "the old view still works");
    assert_eq!(byte(&*memory.view(), 0x1000), None, "the new view does not have the section");
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
    assert!(view.slice(0x1000, 4, host::Access::Read).is_none());
    let mut data = [0; 4];
    view.read_remote(0x1ffc, &mut data).unwrap();
    assert_eq!(data, [1; 4]);
    assert_eq!(view.read_remote(0x1ffd, &mut data), Err(DmaFault { iova: 0x2000 }));
    assert_eq!(view.write_remote(0x1000, &[0]), Err(DmaFault { iova: 0x1000 }));
}

#[test]
fn memory_of_a_function_without_client_faults() {
    let mut data = [0; 4];
    let view = GuestMemory::default().view();
    assert!(view.slice(0, 4, host::Access::Read).is_none());
    assert_eq!(view.read_remote(0, &mut data), Err(DmaFault { iova: 0 }));
    assert_eq!(view.write_remote(u64::MAX, &data), Err(DmaFault { iova: u64::MAX }));
}

/// If a client truncates its file, accesses fault and the process survives, because a file without the seal is not
/// mapped.
#[test]
fn a_file_that_can_become_shorter_is_not_mapped() {
    let memory = GuestMemory::default();
    let backing = unsealed(3);
    memory.map(0x8000, 0x2000, RW, 0x1000, Some(backing.try_clone().unwrap())).unwrap();
    let view = memory.view();
    assert!(view.slice(0x8000, 4, host::Access::Read).is_none());
    let mut data = [0; 4];
    view.read_remote(0x8ffe, &mut data).unwrap();
    assert_eq!(data, [2, 2, 3, 3]);
    view.write_remote(0x9ffc, &[7; 4]).unwrap();
    backing.read_exact_at(&mut data, 0x2ffc).unwrap();
    assert_eq!(data, [7; 4]);
    backing.set_len(0x1800).unwrap();
    view.read_remote(0x87fc, &mut data).unwrap();
    assert_eq!(view.read_remote(0x87fe, &mut data), Err(DmaFault { iova: 0x87fe }));
    assert_eq!(view.read_remote(0x9000, &mut data), Err(DmaFault { iova: 0x9000 }));
    // A seal added later does not change the kind of access to existing sections.
    fcntl_add_seals(&backing, SealFlags::SHRINK | SealFlags::WRITE).unwrap();
    assert_eq!(view.write_remote(0x8000, &data), Err(DmaFault { iova: 0x8000 }));
}

/// Every combination of seals (2^5) and rights (3): a file is mapped only with F_SEAL_SHRINK, and then with the
/// section's rights; with a write seal, a writable mapping fails immediately instead of faulting later.
#[test]
fn every_combination_of_seals() {
    let kinds = [SealFlags::SHRINK, SealFlags::GROW, SealFlags::WRITE, SealFlags::FUTURE_WRITE, SealFlags::SEAL];
    let mut counts = [0; 3];
    for set in 0..1 << kinds.len() {
        let seals = (0..kinds.len()).filter(|n| set >> n & 1 != 0).map(|n| kinds[n]).collect::<SealFlags>();
        let write_sealed = seals.intersects(SealFlags::WRITE | SealFlags::FUTURE_WRITE);
        for flags in [DMA_READABLE, DMA_WRITABLE, RW] {
            let backing = unsealed(1);
            fcntl_add_seals(&backing, seals).unwrap();
            let memory = GuestMemory::default();
            let outcome = memory.map(0x1000, 0x1000, flags, 0, Some(backing));
            let shrinks = !seals.contains(SealFlags::SHRINK);
            if !shrinks && write_sealed && flags & DMA_WRITABLE != 0 {
                assert_eq!(outcome, Err(Errno::ENOMEM), "{seals:?} {flags}");
                counts[0] += 1;
                continue;
            }
            assert_eq!(outcome, Ok(()), "{seals:?} {flags}");
            let view = memory.view();
            assert_eq!(
                view.slice(0x1000, 1, host::Access::Read).is_some(),
                !shrinks && flags == RW,
                "{seals:?} {flags}"
            );
            assert_eq!(memory.slow.load(Ordering::Relaxed), shrinks, "{seals:?}: logged");
            counts[if shrinks { 1 } else { 2 }] += 1;
            let mut data = [0; 4];
            let fault = Err(DmaFault { iova: 0x1ffc });
            let read = if flags & DMA_READABLE != 0 { Ok(()) } else { fault };
            assert_eq!(view.read_remote(0x1ffc, &mut data), read, "{seals:?} {flags}");
            let written = if flags & DMA_WRITABLE != 0 && !write_sealed { Ok(()) } else { fault };
            assert_eq!(view.write_remote(0x1ffc, &[9; 4]), written, "{seals:?} {flags}");
        }
    }
    assert_eq!(counts, [24, 48, 24], "refused, served by system calls, mapped");
}

/// A file of another file system may block an access indefinitely, or have no page available; such memory is accessed
/// by messages to the client.
#[test]
fn files_that_are_not_in_memory_are_left_to_the_client() {
    let file = File::open("/sys/devices/system/cpu/online").unwrap();
    assert_eq!(file.metadata().unwrap().len(), 4096, "sysfs gives every file a page");
    let memory = GuestMemory::default();
    memory.map(0x1000, 0x1000, RW, 0, Some(file)).unwrap();
    assert!(memory.table.load().backings.is_empty());
    let view = memory.view();
    assert!(view.slice(0x1000, 1, host::Access::Read).is_none());
    assert_eq!(view.read_remote(0x1000, &mut [0; 4]), Err(DmaFault { iova: 0x1000 }), "no client is connected");
}

/// An unmap also waits for views of files that are not mapped.
#[test]
fn an_unmap_waits_for_views_of_files() {
    let memory = GuestMemory::default();
    memory.map(0x1000, 0x1000, RW, 0, Some(unsealed(1))).unwrap();
    let view = memory.view();
    assert_eq!(memory.unmap(None), Err(Errno::EBUSY));
    drop(view);
}

/// Two threads access the memory while the client truncates and extends the file. The process survives, and every
/// access succeeds or faults.
#[test]
fn file_that_changes_length_during_accesses_causes_only_faults() {
    let memory = GuestMemory::default();
    let backing = unsealed(4);
    memory.map(0, 0x4000, RW, 0, Some(backing.try_clone().unwrap())).unwrap();
    let stop = AtomicBool::new(false);
    let faults = AtomicU64::new(0);
    thread::scope(|scope| {
        let engine = || {
            let view = memory.view();
            let count = |failed: bool| faults.fetch_add(failed.into(), Ordering::Relaxed);
            while !stop.load(Ordering::Relaxed) {
                for page in 0..4 {
                    count(view.read_remote(page * 0x1000, &mut [0; 64]).is_err());
                    if page == 0 {
                        count(view.write_remote(0x10, &[1; 16]).is_err());
                    }
                }
            }
        };
        scope.spawn(engine);
        scope.spawn(engine);
        // The threads may begin late.
        let end = Instant::now() + Duration::from_secs(30);
        let met = || faults.load(Ordering::Relaxed) > 0;
        let mut rounds = 0_u64;
        while rounds < 2000 || !met() && Instant::now() < end {
            backing.set_len(rounds % 5 * 0x1000).unwrap();
            thread::yield_now();
            rounds += 1;
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(faults.into_inner() > 0, "no access has met the shorter file in 30 s");
}

/// Regression test: one client's sections could exhaust the address space. A client that halves the size after each
/// error gets no more than its limit, and the other function of the same card still gets its full limit.
#[test]
fn client_cannot_exhaust_the_address_space() {
    const TIB: u64 = 1 << 40;
    let limits = Limits { mapped: TIB, mapped_in_all: 2 * TIB, ..Limits::default() };
    let ledger = Ledger::new(limits.each(2).unwrap(), false);
    let [greedy, other] = [0; 2].map(|_| GuestMemory::new(Function::PF, "pf".into(), ledger.clone()));
    let sparse = || memory_file(c"sparse", 1 << 50, SealFlags::SHRINK);
    let (mut at, mut size, mut refusals) = (0, 1 << 46, Vec::new());
    while size >= 4096 {
        match greedy.map(at, size, RW, 0, Some(sparse())) {
            Ok(()) => at += size,
            Err(error) => {
                refusals.push(error);
                size >>= 1;
            }
        }
    }
    assert_eq!(at, TIB);
    assert!(refusals.iter().all(|error| *error == Errno::ENOSPC), "{refusals:?}");
    other.map(0, TIB, RW, 0, Some(sparse())).unwrap();
    // Released address space can be mapped again, once no view holds it.
    let view = greedy.view();
    assert_eq!(greedy.unmap(None), Err(Errno::EBUSY));
    assert_eq!(greedy.map(0, TIB, RW, 0, Some(sparse())), Err(Errno::ENOSPC));
    drop(view);
    greedy.map(0, TIB, RW, 0, Some(sparse())).unwrap();
    greedy.clear();
    greedy.map(0, TIB, RW, 0, Some(sparse())).unwrap();
}

/// Regression test: each section kept a descriptor, until the process had none left. Sections of the same file share
/// one, and the number of different files of a client is limited.
#[test]
fn client_cannot_exhaust_the_descriptors() {
    let limits = Limits { sections: 600, descriptors: 4, ..Limits::default() };
    for make in
        [memory_file as fn(&CStr, u64, SealFlags) -> File, |name, size, _| memory_file(name, size, SealFlags::empty())]
    {
        let memory = GuestMemory::new(Function::PF, "pf".into(), Ledger::new(limits, false));
        let same = make(c"guest", 0x1000, SealFlags::SHRINK);
        for n in 0..500 {
            memory.map(n << 16, 0x1000, RW, 0, Some(same.try_clone().unwrap())).unwrap();
        }
        assert_eq!(memory.table.load().backings.len(), 1, "one descriptor and one mapping for all sections");
        let kept = Arc::downgrade(memory.table.load().backings[0].as_ref().unwrap());
        for n in 500..503 {
            memory.map(n << 16, 0x1000, RW, 0, Some(make(c"guest", 0x1000, SealFlags::SHRINK))).unwrap();
        }
        let more = || Some(make(c"guest", 0x1000, SealFlags::SHRINK));
        assert_eq!(memory.map(503 << 16, 0x1000, RW, 0, more()), Err(Errno::ENOSPC));
        memory.map(503 << 16, 0x1000, RW, 0, Some(same.try_clone().unwrap())).unwrap();
        memory.unmap(Some((502 << 16, 0x1000))).unwrap();
        memory.map(504 << 16, 0x1000, RW, 0, more()).unwrap();
        memory.unmap(None).unwrap();
        assert_eq!(kept.strong_count(), 0, "unmapped sections keep no descriptor");
    }
}

/// Sections of the same file with different access modes have separate descriptors: a descriptor opened read-only
/// cannot be mapped writable.
#[test]
fn file_with_other_access_mode_has_its_own_descriptor() {
    for seals in [SealFlags::SHRINK, SealFlags::empty()] {
        let memory = GuestMemory::default();
        let backing = numbered(memory_file(c"guest", 0x1000, seals), 0);
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&backing));
        memory.map(0x1000, 0x1000, DMA_READABLE, 0, Some(File::open(path).unwrap())).unwrap();
        memory.map(0x8000, 0x1000, RW, 0, Some(backing.try_clone().unwrap())).unwrap();
        let view = memory.view();
        match view.slice(0x8000, 4, host::Access::Read) {
            Some(slice) => slice.write_slice(&[7; 4], 0).unwrap(),
            None => view.write_remote(0x8000, &[7; 4]).unwrap(),
        }
        let mut data = [0; 4];
        view.read_remote(0x1000, &mut data).unwrap();
        assert_eq!(data, [7; 4]);
    }
}

/// The number of sections is limited, regardless of their backing.
#[test]
fn one_client_has_a_limit_of_sections() {
    let memory =
        GuestMemory::new(Function::PF, "pf".into(), Ledger::new(Limits { sections: 16, ..Limits::default() }, false));
    for n in 0..16 {
        memory.map(n << 20, 0x3000, RW, 0, None).unwrap();
    }
    for file in [None, Some(file(1)), Some(unsealed(1))] {
        assert!(!memory.refused.swap(false, Ordering::Relaxed));
        assert_eq!(memory.map(16 << 20, 0x1000, RW, 0, file), Err(Errno::ENOSPC));
        assert!(memory.refused.load(Ordering::Relaxed), "a warning is logged");
        assert_eq!(memory.unmap(Some((0x1000, 0x1000))), Err(Errno::ENOSPC), "two sections instead of one");
        assert_eq!((memory.sections(), memory.account.in_use()), (16, [0, 0, 16, 0]), "nothing has changed");
        memory.refused.store(false, Ordering::Relaxed);
    }
    memory.map(0x3000, 0x1000, RW, 0, None).unwrap();
    memory.unmap(Some((0, 0x1000))).unwrap();
    assert_eq!(memory.sections(), 16, "a merged and a shortened section");
    memory.unmap(Some((0, 0x4000))).unwrap();
    memory.map(16 << 20, 0x1000, RW, 0, None).unwrap();
}

/// Only regular files are accepted, although directories and O_PATH descriptors also have a length.
#[test]
fn only_regular_files_are_memory() {
    let memory = GuestMemory::default();
    let path = rustix::fs::open("/dev/shm", rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
    for file in [File::open("/dev/shm").unwrap(), File::from(path)] {
        assert_eq!(memory.map(0, 1, RW, 0, Some(file)), Err(Errno::EINVAL));
    }
}
