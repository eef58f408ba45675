// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of each command, in valid and invalid forms, with a raw client.

use arctic_device_model::host;
use std::thread;
use std::time::Instant;

use vfio_bindings::bindings::vfio::*;
use vmm_sys_util::eventfd::EventFd;

use super::*;

const EINVAL: u32 = libc::EINVAL as u32;

#[test]
fn version_is_negotiated_first_and_once() {
    let bench = ServerBench::new();
    let mut raw = bench.connect();
    assert_eq!(raw.request(command::DEVICE_GET_INFO, &dwords(&[16, 0, 0, 0])).header.error, EINVAL);
    assert_eq!(raw.request(command::VERSION, b"\x01\0\0\0{}\0").header.error, EINVAL, "major 1");
    assert_eq!(raw.request(command::VERSION, b"\0\0\0\0{]\0").header.error, EINVAL, "no JSON");
    assert_eq!(raw.request(command::VERSION, b"\0\0\0").header.error, EINVAL, "short");
    let reply = raw.request(command::VERSION, b"\0\0\x01\0{\"capabilities\":{\"max_msg_fds\":8,\"new\":[1]}}\0");
    assert_eq!(reply.header.error, 0);
    assert_eq!(reply.body[..4], [0; 4], "QEMU accepts minor 0 only");
    assert_eq!(reply.body.last(), Some(&0));
    let json: serde_json::Value = serde_json::from_slice(&reply.body[4..reply.body.len() - 1]).unwrap();
    let capabilities = &json["capabilities"];
    assert_eq!(capabilities["max_msg_fds"], 16);
    assert_eq!(capabilities["max_data_xfer_size"], 1 << 20);
    assert_eq!(capabilities["pgsizes"], 4096);
    assert!(capabilities.get("write_multiple").is_none());
    assert_eq!(raw.request(command::VERSION, b"\0\0\0\0{}\0").header.error, EINVAL, "twice");
    let mut without_capabilities = {
        drop(raw);
        bench.client_after_disconnect(1)
    };
    assert_eq!(without_capabilities.request(command::VERSION, b"\0\0\0\0").header.error, 0, "without capabilities");
}

impl ServerBench {
    /// Opens a new connection, after the server has processed the disconnection of `n` clients.
    fn client_after_disconnect(&self, n: usize) -> Raw {
        eventually("the sessions have ended", || self.device.disconnects.load(Ordering::Relaxed) == n);
        self.connect()
    }
}

#[test]
fn the_device_is_described() {
    let bench = ServerBench::new();
    let mut raw = bench.client();
    let info = raw.request(command::DEVICE_GET_INFO, &dwords(&[16, 0, 0, 0]));
    assert_eq!([4, 8, 12].map(|at| info.u32(at)), [VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET, 9, 3]);

    let region = |raw: &mut Raw, argsz, index| {
        raw.request(command::DEVICE_GET_REGION_INFO, &dwords(&[argsz, 0, index, 0, 0, 0, 0, 0]))
    };
    let rw = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
    let bar0 = region(&mut raw, 32, 0);
    assert_eq!((bar0.u32(0), bar0.u32(4), bar0.u64(16)), (32, rw, 0x1000));
    assert!(bar0.file.is_none());

    let short = region(&mut raw, 32, 2);
    assert_eq!((short.body.len(), short.u32(0)), (32, 64), "the required size is returned");
    assert!(short.file.is_none(), "the file is sent only with the complete reply");
    let bar2 = region(&mut raw, 64, 2);
    assert_eq!(bar2.u32(4), rw | VFIO_REGION_INFO_FLAG_MMAP | VFIO_REGION_INFO_FLAG_CAPS);
    assert_eq!((bar2.u32(12), bar2.u64(16)), (32, 0x4000));
    assert_eq!((bar2.body[32], bar2.body[34], bar2.u32(36)), (1, 1, 0), "one sparse-mmap capability");
    assert_eq!((bar2.u32(40), bar2.u64(48), bar2.u64(56)), (1, BAR2_AREA.start, 0x2000));
    assert_eq!(bar2.file.unwrap().metadata().unwrap().len(), 0x4000);

    let vga = region(&mut raw, 32, 8);
    assert_eq!((vga.header.error, vga.u32(4), vga.u64(16)), (0, 0, 0), "absent, not an error");
    assert_eq!(region(&mut raw, 32, 9).header.error, EINVAL);

    let irq = |raw: &mut Raw, index| raw.request(command::DEVICE_GET_IRQ_INFO, &dwords(&[16, 0, index, 0]));
    let msi = irq(&mut raw, VFIO_PCI_MSI_IRQ_INDEX);
    assert_eq!((msi.u32(4), msi.u32(12)), (VFIO_IRQ_INFO_EVENTFD, 1));
    assert_eq!(irq(&mut raw, VFIO_PCI_INTX_IRQ_INDEX).u32(12), 0);
    assert_eq!(irq(&mut raw, VFIO_PCI_ERR_IRQ_INDEX).header.error, EINVAL);
}

#[test]
fn accesses_reach_the_device() {
    let bench = ServerBench::new();
    let mut raw = bench.client();
    let pattern = [1, 2, 3, 4, 5, 6, 7, 8];
    for count in [1usize, 2, 4, 8] {
        let at = count as u64 * 16;
        let write = raw.request(command::REGION_WRITE, &access(at, 0, count as u32, &pattern[..count]));
        assert_eq!((write.header.error, write.body.len()), (0, 16));
        let read = raw.request(command::REGION_READ, &access(at, 0, count as u32, &[]));
        assert_eq!(read.u32(12), count as u32);
        assert_eq!(read.body[16..], pattern[..count]);
    }
    let config = raw.request(command::REGION_READ, &access(0, CONFIG_REGION, 4096, &[]));
    assert_eq!(config.body.len(), 16 + 4096, "QEMU reads configuration space in one access");
}

#[test]
fn accesses_outside_of_regions_are_refused() {
    let bench = ServerBench::new();
    let mut raw = bench.client();
    let bad = [(0xffc, 0, 8), (u64::MAX, 0, 4), (0, 1, 4), (0, 9, 4), (0, u32::MAX, 4), (0, 0, 3), (0, 0, 0)];
    let bad = bad.into_iter().chain([(0, 0, 4096), (0, CONFIG_REGION, 4097), (0, CONFIG_REGION, u32::MAX)]);
    for (offset, region, count) in bad {
        let read = raw.request(command::REGION_READ, &access(offset, region, count, &[]));
        assert_eq!((read.header.error, read.body.len()), (EINVAL, 0), "{offset:x} {region} {count}");
        let write = raw.request(command::REGION_WRITE, &access(offset, region, count, &[0; 8]));
        assert_eq!(write.header.error, EINVAL, "{offset:x} {region} {count}");
    }
    assert_eq!(
        raw.request(command::REGION_WRITE, &access(0, 0, 8, &[0; 4])).header.error,
        EINVAL,
        "less data than the count"
    );
    assert_eq!(raw.request(command::REGION_READ, &[0; 15]).header.error, EINVAL);
    assert_eq!(
        raw.request(command::REGION_READ, &access(0, 0, 4, &[])).header.error,
        0,
        "the stream is still synchronised"
    );
}

#[test]
fn posted_writes_get_no_answer() {
    let bench = ServerBench::new();
    let mut raw = bench.client();
    for body in [access(0, 0, 4, &[9; 4]), access(0, 77, 4, &[9; 4])] {
        let header = raw.header(command::REGION_WRITE, &body, FLAG_NO_REPLY);
        raw.send(header, &body, &[]);
    }
    let read = raw.request(command::REGION_READ, &access(0, 0, 4, &[]));
    assert_eq!(read.body[16..], [9; 4]);
}

#[test]
fn unknown_commands_are_answered_and_their_bodies_skipped() {
    let bench = ServerBench::new();
    let mut raw = bench.client();
    for unknown in [0, 6, 14, 15, 16, 17, 18, 999, u16::MAX] {
        assert_eq!(raw.request(unknown, &[0xaa; 333]).header.error, libc::ENOTSUP as u32);
    }
    for mine in [command::DMA_READ, command::DMA_WRITE] {
        assert_eq!(raw.request(mine, &[0; 16]).header.error, libc::ENOTSUP as u32, "a command of the server only");
    }
    assert_eq!(raw.request(command::REGION_READ, &access(0, 0, 4, &[])).header.error, 0);
}

#[test]
fn impossible_sizes_end_the_connection_with_an_answer() {
    for size in [0, 15, MAX_MESSAGE as u32 + 1, u32::MAX] {
        let bench = ServerBench::new();
        let mut raw = bench.client();
        let header = Header { id: 3, command: command::REGION_WRITE, size, flags: 0, error: 0 };
        raw.send(header, &[], &[]);
        assert_eq!(raw.receive().header.error, libc::EMSGSIZE as u32);
        assert!(raw.closed());
        drop(raw);
        let mut next = bench.client_after_disconnect(1);
        assert_eq!(next.request(command::VERSION, b"\0\0\0\0").header.error, 0, "the server continues");
    }
}

#[test]
fn message_in_single_bytes_is_processed() {
    let bench = ServerBench::new();
    let mut raw = bench.client();
    let body = access(8, 0, 4, &[5, 6, 7, 8]);
    let header = raw.header(command::REGION_WRITE, &body, 0);
    for byte in [&header.encode()[..], &body].concat() {
        raw.stream.write_all(&[byte]).unwrap();
        thread::sleep(Duration::from_micros(300));
    }
    assert_eq!(raw.receive().header.error, 0);
    assert_eq!(bench.device.bytes.lock().unwrap()[&0][8..12], [5, 6, 7, 8]);
}

#[test]
fn interrupts_arrive_through_eventfds() {
    let bench = ServerBench::new();
    let mut raw = bench.client();
    let fd = EventFd::new(libc::EFD_NONBLOCK).unwrap();
    let flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
    let body = dwords(&[20, flags, VFIO_PCI_MSI_IRQ_INDEX, 0, 1]);
    assert_eq!(raw.request_with_fds(command::DEVICE_SET_IRQS, &body, &[fd.as_raw_fd()]).header.error, 0);
    bench.vectors.raise_msi(0);
    bench.vectors.wait();
    assert_eq!(fd.read().unwrap(), 1);
    drop(raw);
    eventually("disconnect", || bench.device.disconnects.load(Ordering::Relaxed) == 1);
    bench.vectors.raise_msi(0);
    assert!(fd.read().is_err(), "a disconnected client gets no interrupts");
}

/// The reply to an access waits for the interrupts that the access raised, but at most for the time of a wake-up if the
/// client blocks its own eventfd.
#[test]
fn the_reply_follows_the_interrupts_of_the_access() {
    let bench = ServerBench::new();
    let mut raw = bench.client();
    let fd = EventFd::new(0).unwrap();
    let flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
    let body = dwords(&[20, flags, VFIO_PCI_MSI_IRQ_INDEX, 0, 1]);
    assert_eq!(raw.request_with_fds(command::DEVICE_SET_IRQS, &body, &[fd.as_raw_fd()]).header.error, 0);
    fd.write(u64::MAX - 1).unwrap();
    let begun = Instant::now();
    assert_eq!(raw.request(command::REGION_WRITE, &access(RAISE, 0, 1, &[1])).header.error, 0);
    assert!(begun.elapsed() >= irq::SETTLE, "{:?}", begun.elapsed());
    assert_eq!(fd.read().unwrap(), u64::MAX - 1);
}

#[test]
fn guest_memory_is_mapped_and_unmapped() {
    let bench = ServerBench::new();
    let mut raw = bench.client();
    let file = sealed(0x4000);
    let map = dma_map(3, 0x1000, 0x10_0000, 0x2000);
    assert_eq!(raw.request_with_fds(command::DMA_MAP, &map, &[file.as_raw_fd()]).header.error, 0);
    assert_eq!(raw.request(command::DMA_MAP, &map).header.error, libc::EEXIST as u32);
    assert_eq!(raw.request(command::DMA_MAP, &dma_map(3, 0, 0x20_0000, 0x1000)).header.error, 0, "without descriptor");
    assert!(bench.memory.client().unwrap().first_slow_access(), "memory that is not accessed causes no warning");
    let view = bench.memory.view();
    assert_eq!(view.slice(0x10_1000, 0x4000, host::Access::Read).unwrap().len(), 0x1000);
    assert!(view.slice(0x20_0000, 1, host::Access::Read).is_none());
    drop(view);
    let unmap = dma_unmap(0, 0x10_0000, 0x2000);
    let reply = raw.request(command::DMA_UNMAP, &unmap);
    assert_eq!((reply.header.error, &reply.body), (0, &unmap));
    for nothing in [&unmap, &dma_unmap(0, 0x40_0000, 0x4000_0000), &dma_unmap(0, 1 << 63, 1 << 63)] {
        let reply = raw.request(command::DMA_UNMAP, nothing);
        assert_eq!((reply.header.error, &reply.body), (0, nothing), "a range that holds nothing");
    }
    assert_eq!(bench.memory.sections(), 1);
    assert_eq!(raw.request(command::DMA_UNMAP, &dma_unmap(VFIO_DMA_UNMAP_FLAG_ALL, 0, 0)).header.error, 0);
    assert_eq!(bench.memory.sections(), 0);
}

/// Guest memory without a descriptor: an engine thread sends requests, the client replies, large accesses are split.
#[test]
fn remote_guest_memory_is_fetched_by_message() {
    let bench = ServerBench::new();
    let mut raw = bench.connect();
    raw.request(command::VERSION, b"\0\0\0\0{\"capabilities\":{\"max_data_xfer_size\":4096}}\0");
    raw.request(command::DMA_MAP, &dma_map(3, 0, 0x1000, 0x10000));
    let engine = {
        let view = bench.memory.view();
        thread::spawn(move || {
            let mut data = vec![0; 6000];
            view.write_remote(0x2000, &[0x5a; 100])?;
            view.read_remote(0x1000, &mut data).map(|()| data)
        })
    };
    let write = raw.receive();
    assert_eq!((write.header.command, write.u64(0), write.u64(8)), (command::DMA_WRITE, 0x2000, 100));
    assert_eq!(write.body[16..], [0x5a; 100]);
    raw.send(Header { size: 16, flags: TYPE_REPLY, ..write.header }, &[], &[]);
    for (at, count) in [(0x1000, 4096), (0x2000, 1904)] {
        let read = raw.receive();
        assert_eq!((read.header.command, read.u64(0), read.u64(8)), (command::DMA_READ, at, count));
        let body = [&read.body[..], &vec![(at >> 12) as u8; count as usize]].concat();
        raw.send(Header { size: 16 + body.len() as u32, flags: TYPE_REPLY, ..read.header }, &body, &[]);
    }
    let data = engine.join().unwrap().unwrap();
    assert_eq!((data[0], data[4095], data[4096], data[5999]), (1, 1, 2, 2));
    assert!(!bench.memory.client().unwrap().first_slow_access(), "a warning was logged");
}

/// A request of the client takes a lock whose holder waits for the client's reply, as a register write or a reset that
/// waits for an engine's step. The client replies after it has sent the request.
#[test]
fn an_access_is_answered_while_a_request_waits_for_its_end() {
    let bench = ServerBench::new();
    let mut raw = bench.client();
    raw.request(command::DMA_MAP, &dma_map(3, 0, 0x1000, 0x1000));
    let lock = access(LOCKED, 0, 4, &[1; 4]);
    for (command, body) in [(command::REGION_WRITE, &lock[..]), (command::DEVICE_RESET, &[])] {
        thread::scope(|scope| {
            let held = bench.device.take_lock();
            let locking = bench.device.locking.load(Ordering::Relaxed);
            let step = scope.spawn(|| {
                let (view, mut data) = (bench.memory.view(), [0; 8]);
                let read =
                    view.read_remote(0x1000, &mut data[..4]).and_then(|()| view.read_remote(0x1004, &mut data[4..]));
                (read.map(|()| data), view.unanswered())
            });
            let mut question = raw.receive();
            let header = raw.header(command, body, 0);
            raw.send(header, body, &[]);
            eventually("the request waits", || bench.device.locking.load(Ordering::Relaxed) > locking);
            for last in [false, true] {
                let body = [&question.body[..], &[7; 4]].concat();
                let size = (HEADER_LEN + body.len()) as u32;
                raw.send(Header { size, flags: TYPE_REPLY, ..question.header }, &body, &[]);
                if !last {
                    question = raw.receive();
                }
            }
            assert_eq!(step.join().unwrap(), (Ok([7; 8]), false));
            drop(held);
            let reply = raw.receive();
            assert_eq!((reply.header.id, reply.header.error), (header.id, 0));
        });
    }
}

#[test]
fn refused_wrong_or_missing_dma_reply_is_a_fault() {
    let bench = ServerBench::new();
    let mut raw = bench.client();
    raw.request(command::DMA_MAP, &dma_map(3, 0, 0x1000, 0x1000));
    let request = |bench: &ServerBench| {
        let view = bench.memory.view();
        thread::spawn(move || view.read_remote(0x1000, &mut [0; 8]))
    };
    let engine = request(&bench);
    let read = raw.receive();
    raw.send(Header { size: 16, flags: TYPE_REPLY | FLAG_ERROR, error: 19, ..read.header }, &[], &[]);
    assert!(engine.join().unwrap().is_err(), "refused");

    let engine = request(&bench);
    let read = raw.receive();
    raw.send(Header { id: read.header.id ^ 0x55, size: 16, flags: TYPE_REPLY, ..read.header }, &[], &[]);
    raw.send(Header { size: 16, flags: TYPE_REPLY, ..read.header }, &[], &[]);
    assert!(engine.join().unwrap().is_err(), "a reply without the data");

    let engine = request(&bench);
    raw.receive();
    let start = Instant::now();
    drop(raw);
    assert!(engine.join().unwrap().is_err(), "disconnected");
    let ends_at_once = start.elapsed() < arctic_test_support::in_time!(Duration::from_millis(900));
    assert!(ends_at_once, "the wait ends immediately when the client disconnects");
}

#[test]
fn reset_disconnect_and_the_next_client() {
    let bench = ServerBench::new();
    let mut raw = bench.client();
    assert_eq!(raw.request(command::DEVICE_RESET, &[]).header.error, 0);
    assert_eq!(bench.device.resets.load(Ordering::Relaxed), 1);
    raw.request(command::DMA_MAP, &dma_map(3, 0, 0x1000, 0x1000));
    assert!(bench.connect().closed(), "one client per function");
    assert_eq!(raw.request(command::DEVICE_RESET, &[]).header.error, 0, "the first client is not affected");
    drop(raw);
    bench.client_after_disconnect(1);
    assert_eq!(bench.memory.sections(), 0, "its memory is unmapped");
}

/// A function that is not enabled rejects clients immediately, and accepts them when it is enabled.
#[test]
fn client_of_a_disabled_function_is_rejected_immediately() {
    let bench = ServerBench::new();
    bench.device.closed.store(true, Ordering::Relaxed);
    for _ in 0..3 {
        assert!(bench.connect().closed());
    }
    bench.device.closed.store(false, Ordering::Relaxed);
    bench.client();
    eventually("one client was served", || bench.device.disconnects.load(Ordering::Relaxed) == 1);
}

#[test]
fn socket_in_use_is_refused_and_stale_one_replaced() {
    let mut bench = ServerBench::new();
    let function =
        Function { device: bench.device.clone(), memory: bench.memory.clone(), vectors: bench.vectors.clone() };
    let busy = Server::start(&bench.path, function.clone(), Settings::default());
    assert_eq!(busy.err().unwrap().kind(), std::io::ErrorKind::AddrInUse);
    let mut raw = bench.connect();
    bench.server = None;
    assert!(raw.closed(), "stopping the server ends the connection");
    assert!(!bench.path.exists());
    drop(std::os::unix::net::UnixListener::bind(&bench.path).unwrap());
    assert!(bench.path.exists(), "as a killed server leaves it");
    let server = Server::start(&bench.path, function, Settings::default()).unwrap();
    assert_eq!(server.path(), bench.path);
}

#[test]
fn too_many_descriptors_end_the_connection_only() {
    let bench = ServerBench::new();
    let mut raw = bench.client();
    let header = raw.header(command::DEVICE_RESET, &[], 0);
    let fd = raw.stream.as_raw_fd();
    raw.send(header, &[], &[fd; MAX_FDS + 1]);
    assert!(raw.closed());
    drop(raw);
    bench.client_after_disconnect(1);
}
