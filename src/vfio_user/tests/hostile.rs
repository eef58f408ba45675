// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests with malicious clients, which stall, exhaust resources, or remove memory that the card is using.

use arctic_device_model::host;
use std::ffi::CString;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rustix::fs::SealFlags;
use vm_memory::Bytes;

use super::*;

const RW: u32 = DMA_READABLE | DMA_WRITABLE;

/// A client that stops in the middle of a message blocks only its own function's thread, neither other clients nor the
/// server.
#[test]
fn a_stalled_client_does_not_block_others() {
    let (stalled, other) = (ServerBench::new(), ServerBench::new());
    let body = access(0, 0, 4, &[1; 4]);
    for cut in [1, HEADER_LEN - 1, HEADER_LEN, HEADER_LEN + 3] {
        let mut raw = stalled.client();
        let header = raw.header(command::REGION_WRITE, &body, 0);
        raw.stream.write_all(&[&header.encode()[..], &body].concat()[..cut]).unwrap();
        assert_eq!(other.client().request(command::REGION_READ, &access(0, 0, 4, &[])).header.error, 0);
        let before = stalled.device.disconnects.load(Ordering::Relaxed);
        drop(raw);
        eventually("the session has ended", || stalled.device.disconnects.load(Ordering::Relaxed) == before + 1);
    }
    let mut raw = stalled.client();
    raw.stream.write_all(&[1; 5]).unwrap();
    let start = Instant::now();
    drop(stalled);
    assert!(start.elapsed() < arctic_test_support::in_time!(Duration::from_secs(2)), "the server does not stop");
}

/// Descriptors received with fragments of a message are all closed.
#[test]
fn floods_of_descriptors() {
    let bench = ServerBench::new();
    let file = TempFile::new().unwrap().into_file();
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let mut raw = bench.client();
    let before = open();
    for _ in 0..100 {
        let header = raw.header(command::DEVICE_GET_INFO, &dwords(&[16, 0, 0, 0]), 0);
        let message = [&header.encode()[..], &dwords(&[16, 0, 0, 0])].concat();
        for piece in message.chunks(5) {
            raw.stream.send_with_fds(&[piece], &[file.as_raw_fd(); MAX_FDS]).unwrap();
        }
        assert_eq!(raw.receive().header.error, 0);
    }
    // Other tests of this process also open descriptors.
    assert!(open() < before + 200, "descriptors leak");
}

/// A client with thousands of sections is served, and its sections are removed when it disconnects.
#[test]
fn thousands_of_sections() {
    let bench = ServerBench::new();
    let mut raw = bench.client();
    for n in 0..4000u64 {
        // The order causes insertions at all positions of the table.
        let iova = (n * 1733 % 4000) << 13;
        assert_eq!(raw.request(command::DMA_MAP, &dma_map(RW, 0, iova, 0x1000)).header.error, 0);
        assert_eq!(
            raw.request(command::DMA_MAP, &dma_map(RW, 0, iova + 0x800, 0x1000)).header.error,
            libc::EEXIST as u32
        );
    }
    for (iova, size) in [(u64::MAX - 0xfff, 0x2000), (0, u64::MAX), (1 << 63, 0), (0x1001, 0xfff0_0000_0000_0000)] {
        assert_ne!(raw.request(command::DMA_MAP, &dma_map(RW, 0, iova, size)).header.error, 0, "{iova:x} {size:x}");
    }
    assert_eq!(bench.memory.sections(), 4000);
    drop(raw);
    eventually("the sections are gone", || bench.memory.sections() == 0);
}

/// Returns whether this process has the file mapped.
fn mapped(name: &str) -> bool {
    std::fs::read_to_string("/proc/self/maps").unwrap().contains(name)
}

/// After the reply to an unmap the section is neither accessed nor mapped any more.
#[test]
fn unmapped_memory_is_not_accessed() {
    const IOVA: u64 = 0x10_0000;
    let bench = ServerBench::new();
    let stop = Arc::new(AtomicBool::new(false));
    let touched = Arc::new(AtomicUsize::new(0));
    let engines: Vec<_> = (0..2)
        .map(|_| {
            let (memory, stop, touched) = (bench.memory.clone(), stop.clone(), touched.clone());
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let view = memory.view();
                    for page in 0..4 {
                        if let Some(slice) = view.slice(IOVA + page * 0x1000, 8, host::Access::Write) {
                            slice.store(page, 0, Ordering::Release).unwrap();
                            touched.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            })
        })
        .collect();
    let mut raw = bench.client();
    for round in 0..200 {
        let name = CString::new(format!("round-{round}-of-unmapping")).unwrap();
        let file = memory_file(&name, 0x4000, SealFlags::SHRINK);
        let map = dma_map(RW, 0, IOVA, 0x4000);
        assert_eq!(raw.request_with_fds(command::DMA_MAP, &map, &[file.as_raw_fd()]).header.error, 0);
        assert!(mapped(name.to_str().unwrap()));
        if round % 4 == 0 {
            let before = touched.load(Ordering::Relaxed);
            eventually("the engines access the section", || touched.load(Ordering::Relaxed) > before + 8);
        }
        if round % 5 == 0 {
            // The sections of a disconnected client are unmapped when the server reports the disconnection.
            let gone = bench.device.disconnects.load(Ordering::Relaxed) + 1;
            drop(raw);
            eventually("the session has ended", || bench.device.disconnects.load(Ordering::Relaxed) == gone);
            raw = bench.client();
        } else {
            let unmap = dma_unmap(0, IOVA, 0x4000);
            assert_eq!(raw.request(command::DMA_UNMAP, &unmap).header.error, 0);
            assert!(!mapped(name.to_str().unwrap()), "round {round}");
            file.write_all_at(&[0; 0x4000], 0).unwrap();
            std::thread::yield_now();
            let mut bytes = [1; 0x4000];
            file.read_exact_at(&mut bytes, 0).unwrap();
            assert_eq!(bytes, [0; 0x4000], "round {round}");
        }
    }
    stop.store(true, Ordering::Relaxed);
    engines.into_iter().for_each(|engine| engine.join().unwrap());
    assert!(touched.load(Ordering::Relaxed) > 0);
}

/// A panic in a request ends only its client's session; the next client is served.
#[test]
fn panic_in_a_request_ends_only_its_session() {
    let bench = ServerBench::new();
    let mut raw = bench.client();
    let body = access(BUG, 0, 4, &[]);
    let header = raw.header(command::REGION_READ, &body, 0);
    raw.send(header, &body, &[]);
    assert!(raw.closed());
    eventually("the device is notified", || bench.device.disconnects.load(Ordering::Relaxed) == 1);
    assert_eq!(bench.client().request(command::REGION_READ, &access(0, 0, 4, &[])).header.error, 0);
}
