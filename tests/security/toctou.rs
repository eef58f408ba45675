// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! TOCTOU: the card reads each value in guest memory once, and uses the value that it has checked.
//!
//! Guest memory in these tests counts the reads of each dword and returns the true value only to the first read. (PPGTT
//! tables are in local memory. The unit tests `memory::tests::walks` count their reads.)

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use arctic_device_model::host::DmaFault;
use arctic_device_model::topology::EngineClass;
use arctic_test_support::actions;
use arctic_test_support::context::{self, Context};
use arctic_test_support::ct::{self, G2H, G2H_DESCRIPTOR, H2G, H2G_DESCRIPTOR};
use arctic_test_support::mi::{self, Global};
use arctic_test_support::vfs::bench::*;
use arctic_test_support::vfs::world::{RAM, Trap};

const BYTES: u64 = 0x1_0000;

/// Guest memory starting at [`RAM`].
#[derive(Default)]
struct ChangingMemory(Mutex<Dwords>);

#[derive(Default)]
struct Dwords {
    first: HashMap<u64, u32>,
    reads: HashMap<u64, u32>,
    /// Values that the second and later reads of a dword return.
    later: HashMap<u64, u32>,
    /// Value that the second and later reads of dwords without an entry in `later` return; `None`: the true value.
    always: Option<u32>,
}

impl Dwords {
    fn read(&mut self, at: u64) -> u32 {
        let reads = self.reads.entry(at).or_default();
        *reads += 1;
        let first = self.first.get(&at).copied().unwrap_or(0);
        if *reads == 1 { first } else { self.later.get(&at).copied().or(self.always).unwrap_or(first) }
    }
}

impl Trap for ChangingMemory {
    fn claims(&self, iova: u64) -> bool {
        (RAM.0..RAM.0 + BYTES).contains(&iova)
    }

    fn read(&self, iova: u64, data: &mut [u8]) -> Result<(), DmaFault> {
        assert_eq!((iova % 4, data.len() % 4), (0, 0), "{iova:#x}");
        let mut dwords = self.0.lock().unwrap();
        for (at, bytes) in (iova - RAM.0..).step_by(4).zip(data.chunks_exact_mut(4)) {
            bytes.copy_from_slice(&dwords.read(at).to_le_bytes());
        }
        Ok(())
    }

    fn write(&self, iova: u64, data: &[u8]) -> Result<(), DmaFault> {
        assert_eq!((iova % 4, data.len() % 4), (0, 0), "{iova:#x}");
        let mut dwords = self.0.lock().unwrap();
        for (at, bytes) in (iova - RAM.0..).step_by(4).zip(data.chunks_exact(4)) {
            dwords.first.insert(at, u32::from_le_bytes(bytes.try_into().unwrap()));
            dwords.later.remove(&at);
        }
        Ok(())
    }
}

impl ChangingMemory {
    fn put(&self, at: u64, words: &[u32]) {
        let mut dwords = self.0.lock().unwrap();
        dwords.first.extend((at..).step_by(4).zip(words.iter().copied()));
    }

    fn get(&self, at: u64) -> u32 {
        self.0.lock().unwrap().first.get(&at).copied().unwrap_or(0)
    }

    /// Resets the read counters and sets `always`. The next read of each dword returns the true value.
    fn begin(&self, always: Option<u32>) {
        let mut dwords = self.0.lock().unwrap();
        dwords.reads.clear();
        dwords.always = always;
    }

    fn set_later(&self, at: u64, word: u32) {
        self.0.lock().unwrap().later.insert(at, word);
    }

    fn reads(&self, at: u64) -> u32 {
        self.0.lock().unwrap().reads.get(&at).copied().unwrap_or(0)
    }

    fn most_read(&self, range: std::ops::Range<u64>) -> u32 {
        range.step_by(4).map(|at| self.reads(at)).max().unwrap_or(0)
    }
}

/// Offsets of a context image and its ring, after the CT buffers.
const PPHWSP: u64 = 0x4000;
const IMAGE: u64 = 0x5000;
const RING: u64 = 0x8000;

/// Returns a bench with the attacker's CT buffers in a [`ChangingMemory`].
fn bench() -> (VfBench, Arc<ChangingMemory>) {
    let mut bench = VfBench::new(true);
    bench.attacker_up();
    let memory = Arc::new(ChangingMemory::default());
    bench.guests.of(ATTACKER).set_trap(memory.clone());
    enable(&mut bench);
    (bench, memory)
}

fn shown(bench: &VfBench) -> u64 {
    bench.attacker.base() + at::RAM
}

fn enable(bench: &mut VfBench) {
    let shown = shown(bench);
    bench.attacker.must(&ct::DISABLE, ct::SUCCESS);
    for message in ct::registration(shown, shown + G2H) {
        bench.attacker.must(&message, ct::SUCCESS | 1);
    }
    bench.attacker.must(&ct::ENABLE, ct::SUCCESS);
}

/// Sends TLB invalidations with these sequence numbers and notifies the GuC.
fn invalidate(bench: &VfBench, memory: &ChangingMemory, numbers: &[u32], tail: u32) {
    let messages: Vec<u32> = numbers
        .iter()
        .flat_map(|n| ct::fast_request(actions::TLB_INVALIDATION, &[*n, actions::INVALIDATE_FLUSH | 3]))
        .collect();
    memory.put(H2G + u64::from(tail) * 4, &messages);
    memory.put(H2G_DESCRIPTOR + 4, &[tail + messages.len() as u32]);
    memory.begin(None);
    bench.attacker.set(GUC_HOST_INTERRUPT, 1);
}

/// Guard: `CtBuffer::read_next`, which reads a message's header and each of its dwords once, and the tail once per
/// call. Polls of the empty ring read the tail as well, so the test allows two more reads than messages.
#[test]
fn message_is_read_once() {
    let (bench, memory) = bench();
    invalidate(&bench, &memory, &[7, 8, 9], 0);
    // The second and later reads of a dword in the ring return the header of a very long message.
    memory.begin(Some(0xffff_00ff));
    for at in (H2G_DESCRIPTOR..H2G_DESCRIPTOR + 12).chain(G2H_DESCRIPTOR..G2H_DESCRIPTOR + 12).step_by(1) {
        memory.set_later(at & !3, memory.get(at & !3));
    }
    bench.work(40);
    let sent: Vec<u32> = (0..9).map(|n| memory.get(G2H + n * 4)).collect();
    let fences: Vec<u32> = sent.chunks(3).map(|message| message[2]).collect();
    assert_eq!(fences, [7, 8, 9], "{sent:x?}");
    for dword in 0..12 {
        assert_eq!(memory.reads(H2G + dword * 4), 1, "dword {dword} of the ring");
    }
    assert_eq!(memory.most_read(H2G + 48..H2G + 4096), 0, "beyond the tail");
    assert_eq!((memory.get(H2G_DESCRIPTOR), memory.get(H2G_DESCRIPTOR + 8)), (12, 0), "head and status");
    assert!(
        memory.reads(H2G_DESCRIPTOR + 4) <= 5,
        "reads of the tail for three messages: {}",
        memory.reads(H2G_DESCRIPTOR + 4)
    );
}

/// Guard: `Ring::next`, which validates the tail value that it has read. Each later value is beyond the ring, or before
/// the head. The message is processed. The next poll reads either an invalid tail, which sets the overflow status, or a
/// tail before the head, which means that the used part wraps around. No read is outside the ring.
#[test]
fn tail_is_validated_as_read() {
    for later in [4096 / 4, u32::MAX, 0x8000_0000, 3, 0] {
        let (mut bench, memory) = bench();
        invalidate(&bench, &memory, &[7], 0);
        memory.set_later(H2G_DESCRIPTOR + 4, later);
        bench.work(40);
        assert_eq!(memory.get(G2H + 8), 7, "the message, with tail {later:#x} afterwards");
        assert_eq!(bench.card.panics(), 0);
        if later >= 1024 {
            assert_eq!(memory.get(H2G_DESCRIPTOR + 8), 1, "overflow");
            assert_eq!(
                memory.most_read(H2G + 16..H2G + 4096),
                0,
                "reads beyond the message, with tail {later:#x} afterwards"
            );
        }
        // The rings work after they have been registered again.
        memory.put(H2G_DESCRIPTOR, &[0; 3]);
        memory.put(G2H_DESCRIPTOR, &[0; 3]);
        memory.begin(None);
        enable(&mut bench);
        invalidate(&bench, &memory, &[8], 0);
        bench.work(40);
        assert_eq!(memory.get(G2H + 8), 8);
    }
}

/// Guard: `CtBuffer::send`, which reads the host's head once per message, and validates it. If the head is beyond the
/// ring, the GuC reports an overflow. It never writes outside the ring, regardless of the head's value.
#[test]
fn head_is_validated_as_read() {
    // At two thirds of the ring, where the messages wrap around its end.
    const START: u32 = 700;
    for later in [0, 1, 3, START, 1023, 1024, u32::MAX] {
        let (mut bench, memory) = bench();
        memory.put(G2H_DESCRIPTOR, &[START, START, 0]);
        memory.begin(None);
        enable(&mut bench);
        let numbers: Vec<u32> = (1..=200).collect();
        invalidate(&bench, &memory, &numbers, 0);
        memory.set_later(G2H_DESCRIPTOR, later);
        bench.work(400);
        assert_eq!(bench.card.panics(), 0);
        let outside = [memory.get(G2H - 4), memory.get(G2H + 4096)];
        assert_eq!(outside, [0, 0], "{later:#x}");
        if later >= 1024 {
            assert_eq!(memory.get(G2H_DESCRIPTOR + 8), 1, "overflow");
        }
    }
}

/// Guard: `Image::read`, which reads the whole image in one pass, and `Lrc`, which does not repeat reads of values that
/// it has stored. The driver may move the ring's tail at any time, so the tail is read again, and validated each time.
#[test]
fn context_image_is_read_once() {
    for always in [None, Some(0xffff_ffff), Some(0x1100_1041)] {
        let (bench, memory) = bench();
        let shown = shown(&bench);
        let scratch = bench.attacker.base() + at::SCRATCH;
        memory.put(IMAGE, &[0; 0x400]);
        let job =
            [mi::store_data_imm(Global(scratch), 0x600d), mi::store_data_imm(Global(scratch + 4), 0x600e)].concat();
        memory.put(RING, &job);
        memory.put(IMAGE, &Context::of(shown + RING, &job, at::TABLES).image());
        bench.attacker.poke(at::SCRATCH, 0);
        bench.attacker.poke(at::SCRATCH + 4, 0);
        let class = u32::from(EngineClass::Copy.guc());
        let descriptor = context::descriptor(shown + PPHWSP);
        let register = ct::fast_request(0x4502, &context::registration(1, class, 1, descriptor));
        let messages = [register, ct::fast_request(0x1001, &[1, 1])].concat();
        memory.put(H2G, &messages);
        memory.put(H2G_DESCRIPTOR + 4, &[messages.len() as u32]);
        memory.begin(always);
        for at in [H2G_DESCRIPTOR, H2G_DESCRIPTOR + 4, H2G_DESCRIPTOR + 8, G2H_DESCRIPTOR, G2H_DESCRIPTOR + 8] {
            memory.set_later(at, memory.get(at));
        }
        // Head and tail, which the GuC and the engine each read.
        for dword in [5, 7] {
            memory.set_later(IMAGE + dword * 4, memory.get(IMAGE + dword * 4));
        }
        // Stops when the last store is visible: a save of the image overwrites its dwords and their `later`.
        for _ in 0..60 {
            bench.work(1);
            if bench.attacker.peek(at::SCRATCH + 4) == 0x600e {
                break;
            }
        }
        let done = [0, 4].map(|at| bench.attacker.peek(at::SCRATCH + at));
        assert_eq!(done, [0x600d, 0x600e], "with {always:x?} for the second and later reads");
        for dword in (0..0x400).filter(|dword| ![5, 7].contains(dword)) {
            assert!(memory.reads(IMAGE + dword * 4) <= 1, "repeated read of dword {dword:#x} of the image");
        }
        assert!(memory.most_read(RING..RING + 32) <= 1, "repeated read of commands");
        assert_eq!(bench.card.panics(), 0);
    }
}
