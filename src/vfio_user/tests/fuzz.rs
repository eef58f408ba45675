// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests with random bytes and mutated messages: the server replies or disconnects, and always serves the next client.

use rustix::fs::SealFlags;

use super::*;

/// xorshift64* with a fixed seed: the same messages in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }

    fn edge(&mut self) -> u64 {
        const EDGES: [u64; 10] = [0, 1, 4, 0xfff, 0x1000, 0x7fff_ffff, 0xffff_ffff, 1 << 40, u64::MAX - 7, u64::MAX];
        if self.below(3) == 0 { self.next() } else { EDGES[self.below(EDGES.len())] }
    }
}

/// Well-formed bodies of every command, to be mutated.
fn dictionary() -> Vec<(u16, Vec<u8>)> {
    vec![
        (command::VERSION, b"\0\0\0\0{\"capabilities\":{\"max_msg_fds\":1}}\0".to_vec()),
        (command::DMA_MAP, dma_map(3, 0, 0x1000, 0x1000)),
        (command::DMA_UNMAP, dma_unmap(0, 0x1000, 0x1000)),
        (command::DEVICE_GET_INFO, dwords(&[16, 0, 0, 0])),
        (command::DEVICE_GET_REGION_INFO, dwords(&[64, 0, 2, 0, 0, 0, 0, 0])),
        (command::DEVICE_GET_IRQ_INFO, dwords(&[16, 0, 1, 0])),
        (command::DEVICE_SET_IRQS, dwords(&[20, 0x24, 1, 0, 1])),
        (command::REGION_READ, access(0, 0, 4, &[])),
        (command::REGION_WRITE, access(0, 0, 8, &[1; 8])),
        (command::DMA_READ, vec![0; 16]),
        (command::DEVICE_RESET, Vec::new()),
    ]
}

#[test]
fn mutated_messages_are_answered_one_by_one() {
    let bench = ServerBench::new();
    let mut raw = bench.client();
    let mut random = Random(0x1f1e_55aa_1234_5678);
    let dictionary = dictionary();
    // A file that is mapped, one that may be truncated, and one that is not in memory.
    let memory =
        [sealed(0x3000), memory_file(c"guest", 0x3000, SealFlags::empty()), TempFile::new().unwrap().into_file()];
    memory[2].set_len(0x3000).unwrap();
    let (mut good, mut bad) = (0, 0);
    for _ in 0..20_000 {
        let (command, body) = &dictionary[random.below(dictionary.len())];
        let mut body = body.clone();
        for _ in 0..random.below(3) {
            if body.len() >= 8 {
                let at = random.below(body.len() / 4) * 4;
                let len = if random.below(2) == 0 { 4 } else { 8.min(body.len() - at) };
                body[at..at + len].copy_from_slice(&random.edge().to_le_bytes()[..len]);
            }
        }
        if random.below(10) == 0 {
            body.resize(random.below(200), 0xcc);
        }
        let file = &memory[random.below(memory.len())];
        let fds = vec![file.as_raw_fd(); if random.below(3) == 0 { random.below(3) } else { 0 }];
        let reply = raw.request_with_fds(*command, &body, &fds);
        if reply.header.error == 0 { good += 1 } else { bad += 1 }
    }
    assert!(good > 1000 && bad > 1000, "{good} good, {bad} bad: the mutations are no longer effective");
    assert_eq!(raw.request(command::REGION_READ, &access(0, 0, 4, &[])).header.error, 0);
}

#[test]
fn random_bytes_never_take_the_server_down() {
    let bench = ServerBench::new();
    let mut random = Random(0xdead_beef_0bad_cafe);
    for round in 0..300 {
        let mut raw = bench.connect();
        if round % 2 == 0 {
            raw.request(command::VERSION, b"\0\0\0\0");
        }
        let bytes: Vec<u8> = (0..random.below(3000)).map(|_| random.next() as u8).collect();
        // The server may disconnect before the end.
        let _ = raw.stream.write_all(&bytes);
        drop(raw);
        let gone = round + 1;
        eventually("the session has ended", || bench.device.disconnects.load(Ordering::Relaxed) == gone);
    }
    let mut raw = bench.client();
    assert_eq!(raw.request(command::REGION_READ, &access(0, 0, 4, &[])).header.error, 0);
}

#[test]
fn disconnect_within_a_message_ends_the_session() {
    let bench = ServerBench::new();
    let body = access(0, 0, 4, &[1; 4]);
    for cut in 1..HEADER_LEN + body.len() {
        let mut raw = bench.client();
        let header = raw.header(command::REGION_WRITE, &body, 0);
        raw.stream.write_all(&[&header.encode()[..], &body].concat()[..cut]).unwrap();
        drop(raw);
        eventually("the session has ended", || bench.device.disconnects.load(Ordering::Relaxed) == cut);
    }
}
