// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Guest memory whose client does not answer for a time: accesses are tried again, and only after a limit they fault.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::host::{Access, DmaFault, DmaView};
use vm_memory::VolatileSlice;

/// The page of the PPGTT that is mapped to the guest's memory.
const GUEST_VA: u64 = VA + (200 << 20);
const SECOND: u64 = 1_000_000_000;

/// A page of guest memory at IOVA 0, accessed by messages.
#[derive(Default)]
struct Client {
    memory: Mutex<Vec<u8>>,
    /// The client does not answer.
    silent: AtomicBool,
    /// Writes are performed although they are not answered.
    late: AtomicBool,
    /// Only writes are not answered.
    reads: AtomicBool,
}

struct View(Arc<Client>, AtomicBool);

impl View {
    fn unanswered(&self, iova: u64) -> DmaFault {
        self.1.store(true, Ordering::Relaxed);
        DmaFault { iova }
    }
}

impl DmaView for View {
    fn slice(&self, _: u64, _: usize, _: Access) -> Option<VolatileSlice<'_>> {
        None
    }

    fn read_remote(&self, iova: u64, data: &mut [u8]) -> Result<(), DmaFault> {
        if self.0.silent.load(Ordering::Relaxed) && !self.0.reads.load(Ordering::Relaxed) {
            return Err(self.unanswered(iova));
        }
        let memory = self.0.memory.lock().unwrap();
        let bytes = memory.get(iova as usize..).and_then(|rest| rest.get(..data.len())).ok_or(DmaFault { iova })?;
        data.copy_from_slice(bytes);
        Ok(())
    }

    fn write_remote(&self, iova: u64, data: &[u8]) -> Result<(), DmaFault> {
        let silent = self.0.silent.load(Ordering::Relaxed);
        if !silent || self.0.late.load(Ordering::Relaxed) {
            self.0.memory.lock().unwrap()[iova as usize..][..data.len()].copy_from_slice(data);
        }
        if silent { Err(self.unanswered(iova)) } else { Ok(()) }
    }

    fn may_wait_for_client(&self) -> bool {
        true
    }

    fn unanswered(&self) -> bool {
        self.1.load(Ordering::Relaxed)
    }
}

struct Guest(Arc<Client>);

impl Dma for Guest {
    fn view(&self, _: Function) -> Arc<dyn DmaView> {
        Arc::new(View(self.0.clone(), AtomicBool::new(false)))
    }
}

fn bench() -> (EngineBench, Arc<Client>) {
    let client = Arc::new(Client { memory: Mutex::new(vec![0; 0x1000]), ..Client::default() });
    let bench = EngineBench::beside(EngineClass::Copy, Arc::new(Guest(client.clone())));
    bench.put64(ROOT + 0x2000 + 8 * 100, 0x83);
    (bench, client)
}

fn dword(client: &Client, at: usize) -> u32 {
    u32::from_le_bytes(client.memory.lock().unwrap()[at..at + 4].try_into().unwrap())
}

/// The command is executed again until the client answers; the rest of the batch follows it.
#[test]
fn an_unanswered_access_is_tried_again() {
    let (mut bench, client) = bench();
    client.silent.store(true, Ordering::Relaxed);
    let batch = [store(VA + DATA, 1), store(GUEST_VA, 2), store(VA + DATA + 4, 3)].concat();
    assert_eq!(bench.batch(&batch), Outcome::Spinning);
    bench.clock.advance(29 * SECOND);
    assert_eq!(bench.run(), Outcome::Spinning);
    assert_eq!((bench.get(DATA), bench.get(DATA + 4)), (1, 0));
    client.silent.store(false, Ordering::Relaxed);
    assert_eq!(bench.run(), Outcome::Complete);
    assert_eq!((dword(&client, 0), bench.get(DATA + 4)), (2, 3));
}

/// An access to memory that the client refuses, and one that is not answered for a long time, is a fault.
#[test]
fn refused_and_abandoned_accesses_fault() {
    let (mut bench, client) = bench();
    client.memory.lock().unwrap().clear();
    let copy = mi::copy_mem_mem(Process(VA + DATA), Process(GUEST_VA));
    assert!(matches!(bench.batch(&copy), Outcome::Halted(Halt::Fault(_))));
    let (mut bench, client) = self::bench();
    client.silent.store(true, Ordering::Relaxed);
    assert_eq!(bench.batch(&store(GUEST_VA, 2)), Outcome::Spinning);
    bench.clock.advance(30 * SECOND);
    assert!(matches!(bench.run(), Outcome::Halted(Halt::Fault(_))));
}

/// A context that waits for the client leaves the engine when it is preempted, and continues later with the same command.
#[test]
fn a_context_with_an_unanswered_access_is_preempted() {
    let (mut bench, client) = bench();
    client.silent.store(true, Ordering::Relaxed);
    assert_eq!(bench.batch(&store(GUEST_VA, 2)), Outcome::Spinning);
    bench.engine.request_preemption();
    assert_eq!(bench.run(), Outcome::Preempted);
    let context = bench.context_at(0);
    client.silent.store(false, Ordering::Relaxed);
    assert_eq!(bench.submit(context), Outcome::Complete);
    assert_eq!(dword(&client, 0), 2);
}

/// A write that is performed but not answered is not the operand of the same atomic operation when it is tried again.
#[test]
fn an_atomic_operation_is_performed_once() {
    let (mut bench, client) = bench();
    let increment = [MI_ATOMIC | 1 | 0x05 << 8, GUEST_VA as u32, 0];
    for flag in [&client.silent, &client.late, &client.reads] {
        flag.store(true, Ordering::Relaxed);
    }
    assert_eq!(bench.batch(&increment), Outcome::Spinning);
    assert_eq!(bench.run(), Outcome::Spinning);
    client.silent.store(false, Ordering::Relaxed);
    assert_eq!(bench.run(), Outcome::Complete);
    assert_eq!(dword(&client, 0), 1);
}

/// The image of a context in guest memory: neither its restore nor its save is given up.
#[test]
fn an_unanswered_image_is_restored_and_saved_later() {
    let (mut bench, client) = bench();
    let context = bench.context(0);
    bench.emit(context, &store(VA + DATA, 1));
    // The pages of the image are moved to the guest's memory.
    client.memory.lock().unwrap().resize(0x1_0000, 0);
    for page in (context.at >> 12)..(context.at >> 12) + 16 {
        let offset = (page << 12) - context.at;
        for at in (0..0x1000).step_by(4) {
            let bytes = bench.get((page << 12) + at).to_le_bytes();
            client.memory.lock().unwrap()[(offset + at) as usize..][..4].copy_from_slice(&bytes);
        }
        bench.gt.memory.ggtt().set_entry(page, GgttEntry::from(offset | 1));
    }
    client.silent.store(true, Ordering::Relaxed);
    assert_eq!(bench.submit(context), Outcome::Spinning);
    client.silent.store(false, Ordering::Relaxed);
    assert_eq!(bench.run(), Outcome::Complete);
    assert_eq!(bench.get(DATA), 1);
    let head = (context.image(0x05) - context.at) as usize;
    assert_eq!(dword(&client, head) & 0xffff, 16, "RING_HEAD was saved");
    // A step that is not answered at its save.
    let tail = (context.image(0x07) - context.at) as usize;
    client.memory.lock().unwrap()[tail..tail + 4].copy_from_slice(&32_u32.to_le_bytes());
    client.reads.store(true, Ordering::Relaxed);
    client.silent.store(true, Ordering::Relaxed);
    assert_eq!(bench.submit(context), Outcome::Spinning);
    assert_eq!(bench.run(), Outcome::Spinning);
    client.silent.store(false, Ordering::Relaxed);
    assert_eq!(bench.run(), Outcome::Complete);
    assert_eq!(dword(&client, head) & 0xffff, 32);
}
