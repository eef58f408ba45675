// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Memory and register ordering, as observed by CPUs and by later commands, and command prefetch.

use arctic_fidelity::proves;
use vm_memory::mmap::MmapRegion;
use vm_memory::{VolatileMemory, VolatileSlice};

use std::sync::atomic::AtomicBool;

use super::*;
use crate::host::{Access, DmaView};

/// Address of the sequence number that a completion writes.
const SEQNO: u64 = DATA + 0xf00;
/// Index of the GGTT entry that is rewritten, and its address.
const ENTRY: u64 = 0x3f0;
const ENTRY_ADDRESS: u32 = 0x3f_0000;
/// Offset in the context's status page.
const INDEX: u32 = 0x240;
const ROUNDS: u32 = 60;

/// Loads a dword of local memory with acquire ordering, as a CPU does.
fn seen(gt: &Gt, at: u64) -> u32 {
    gt.memory.local().slice(at, 4).unwrap().load(0, Ordering::Acquire).unwrap()
}

/// Returns MI_STORE_DATA_IMM of one dword to the GGTT.
fn global(at: u64, value: u32) -> [u32; 4] {
    [MI_STORE_DATA_IMM | GGTT | 2, at as u32, 0, value]
}

/// Returns MI_LOAD_REGISTER_IMM of an engine register.
fn load(register: u32, value: u32) -> [u32; 3] {
    [MI_LOAD_REGISTER_IMM | CS_MMIO | 1, register, value]
}

/// MI_MATH.
fn math(instructions: &[u32]) -> Vec<u32> {
    [&[MI_MATH | (instructions.len() as u32 - 1)][..], instructions].concat()
}

/// Returns MI_MATH of R`sum` = R`a` + R`b`.
fn add(sum: u32, a: u32, b: u32) -> Vec<u32> {
    math(&[0x080 << 20 | 0x20 << 10 | a, 0x080 << 20 | 0x21 << 10 | b, 0x100 << 20, 0x180 << 20 | sum << 10 | 0x31])
}

/// Returns the target address of store `n`.
fn target(n: u64) -> u64 {
    DATA + 0x100 * n
}

/// Returns all commands with posted stores, each storing `round` at a separate address (V8-200).
fn producers(round: u32) -> Vec<u32> {
    let at = |n| target(n) as u32;
    let mut commands = global(target(0), round).to_vec();
    commands.extend(load(0x600, round));
    commands.extend([MI_STORE_REGISTER_MEM | GGTT | CS_MMIO | 2, 0x600, at(1), 0]);
    commands.extend([MI_COPY_MEM_MEM | GGTT | DESTINATION_GGTT | 3, at(2), 0, at(0), 0]);
    commands.extend([MI_STORE_DATA_INDEX | PER_PROCESS_PAGE | 1, INDEX, round]);
    commands.extend([MI_UPDATE_GTT | 2, ENTRY_ADDRESS, round << 12 | 3, 0]);
    commands.extend([MI_REPORT_PERF_COUNT | 2, at(3) | 1, 0, round]);
    // MI_MATH: stores R0 at the PPGTT address in R1.
    commands.extend(load(0x608, (VA + target(4)) as u32));
    commands.extend(math(&[
        0x080 << 20 | 0x20 << 10 | 1,
        0x081 << 20 | 0x21 << 10,
        0x100 << 20,
        0x181 << 20 | 0x31 << 10,
    ]));
    commands.extend([PIPE_CONTROL | 4, PIPE_GGTT | PIPE_WRITE, at(5), 0, round, 0]);
    commands.extend([MI_ATOMIC | GGTT | ATOMIC_INLINE | 0x4 << 8 | 9, at(6), 0, round, 0, 0, 0, 0, 0, 0, 0]);
    commands.push(MI_REPORT_HEAD);
    commands
}

/// Returns the commands that make earlier stores observable and then write a sequence number, with their names
/// (V8-201).
fn completions(round: u32) -> [(&'static str, Vec<u32>); 6] {
    let seqno = SEQNO as u32;
    let then_store = |commands: &[u32]| [commands, &global(SEQNO, round)].concat();
    [
        ("MI_FLUSH_DW with a write", vec![MI_FLUSH_DW | FLUSH_WRITE | 2, seqno | 4, 0, round]),
        ("stalling PIPE_CONTROL with a write", vec![PIPE_CONTROL | 4, 0x0110_4000, seqno, 0, round, 0]),
        ("stalling MI_ATOMIC", vec![0x17c6_0409, seqno, 0, round, 0, 0, 0, 0, 0, 0, 0]),
        ("MI_FLUSH_DW", then_store(&[MI_FLUSH_DW | 1, 0, 0])),
        ("stalling PIPE_CONTROL", then_store(&[PIPE_CONTROL | 4, 0x0010_0000, 0, 0, 0, 0])),
        ("MI_MATH with FENCE_WR", then_store(&math(&[0x002 << 20]))),
    ]
}

#[test]
fn a_visible_completion_implies_visible_stores() {
    proves!(
        [V8_200, V8_201],
        "a CPU that reads the sequence number of a completion observes every earlier posted store, for all storing \
        and completing commands"
    );
    for kind in 0..completions(0).len() {
        let mut bench = EngineBench::new(EngineClass::Compute);
        let context = bench.context(0);
        let mut commands = Vec::new();
        for round in 1..=ROUNDS {
            commands.extend(producers(round));
            commands.extend(completions(round)[kind].1.iter());
        }
        commands.push(END);
        // The commands are in a batch because they exceed the size of the ring.
        bench.write(BATCH, &commands);
        (0..16).for_each(|n| bench.put(target(n), 0));
        bench.put(context.pphwsp() + u64::from(INDEX), 0);
        bench.gt.memory.ggtt().set_entry(ENTRY, GgttEntry::from(0));
        bench.emit(context, &[MI_BATCH_BUFFER_START | 1, BATCH as u32, 0]);
        bench.engine.load(&bench.gt, context.load());
        let EngineBench { gt, engine, .. } = &mut bench;
        let gt = &*gt;
        let name = completions(0)[kind].0;
        let ended = AtomicBool::new(false);
        let ended = &ended;
        let outcome = std::thread::scope(|scope| {
            let observer = scope.spawn(move || {
                loop {
                    let last = ended.load(Ordering::Acquire);
                    let round = seen(gt, SEQNO);
                    let mut stored: Vec<u32> = (0..7).map(|n| seen(gt, target(n))).collect();
                    stored.push(seen(gt, context.pphwsp() + u64::from(INDEX)));
                    stored.push((gt.memory.ggtt().entry(ENTRY).into_bits() >> 12) as u32);
                    assert!(stored.iter().all(|value| *value >= round), "{name}: round {round}, {stored:?}");
                    if last {
                        return round;
                    }
                }
            });
            // The steps are small to let the CPU observe many rounds.
            let outcome = loop {
                match engine.step(gt, 3) {
                    Outcome::More => {}
                    outcome => break outcome,
                }
            };
            ended.store(true, Ordering::Release);
            (outcome, observer.join().unwrap())
        });
        assert_eq!(outcome, (Outcome::Complete, ROUNDS), "{name}");
    }
}

#[test]
fn readers_see_earlier_stores() {
    proves!(
        V8_202,
        "commands that read memory observe the stores of earlier commands without a flush. This includes commands \
        that software must order explicitly on hardware"
    );
    let data = VA + DATA;
    let at = data as u32;
    let mut bench = EngineBench::new(EngineClass::Compute);
    let commands = [
        // MI_LOAD_REGISTER_MEM.
        &store(data, 5)[..],
        &[MI_LOAD_REGISTER_MEM | CS_MMIO | 2, 0x610, at, 0],
        &store_register(0x610, data + 0x100),
        // MI_ATOMIC: an increment.
        &store(data + 8, 6),
        &[MI_ATOMIC | ATOMIC_INC << 8 | 1, at + 8, 0],
        // MI_SEMAPHORE_WAIT.
        &store(data + 16, 7),
        &wait(4, data + 16, 7),
        // MI_COPY_MEM_MEM.
        &store(data + 24, 8),
        &[MI_COPY_MEM_MEM | 3, at + 0x108, 0, at + 24, 0],
        // MI_MATH, LOADIND: loads R3 from the address in R2.
        &store(data + 32, 9),
        &load(0x610, at + 32),
        &math(&[0x080 << 20 | 0x20 << 10 | 2, 0x081 << 20 | 0x21 << 10, 0x100 << 20, 0x082 << 20 | 3 << 10 | 0x31]),
        &store_register(0x618, data + 0x110),
        // MI_CONDITIONAL_BATCH_BUFFER_END: continues while memory is greater than 3.
        &store(data + 40, 4),
        &[MI_CONDITIONAL_BATCH_BUFFER_END | COMPARE_SEMAPHORE | 2, 3, at + 40, 0],
        &store(data + 0x118, 1),
        &store(data + 40, 3),
        &[MI_CONDITIONAL_BATCH_BUFFER_END | COMPARE_SEMAPHORE | 2, 3, at + 40, 0],
        &store(data + 0x118, 2),
    ]
    .concat();
    (0..0x80).for_each(|n| bench.put(DATA + 4 * n, 0));
    assert_eq!(bench.batch(&commands), Outcome::Complete);
    let found = [0x100, 8, 0x108, 0x110, 0x118].map(|offset| bench.get(DATA + offset));
    assert_eq!(found, [5, 7, 8, 9, 1]);
}

#[test]
fn registers_are_written_when_the_command_is_done() {
    proves!(
        V8_203,
        "a command that reads a register observes the values written by earlier commands without intermediate \
        commands. This covers every command that writes or reads registers"
    );
    let data = VA + DATA;
    let mut bench = EngineBench::new(EngineClass::Compute);
    let own = bench.base();
    bench.put(DATA + 0x40, 9);
    (0..8).for_each(|n| bench.put(DATA + 4 * n, 0));
    let commands = [
        // MI_LOAD_REGISTER_IMM, MI_MATH, MI_LOAD_REGISTER_REG, MI_STORE_REGISTER_MEM.
        &load(0x600, 5)[..],
        &load(0x608, 7),
        &add(2, 0, 1),
        &[MI_LOAD_REGISTER_REG | CS_MMIO | SOURCE_CS_MMIO | 1, 0x610, 0x618],
        &store_register(0x618, data),
        // MI_LOAD_REGISTER_MEM, MI_MATH.
        &[MI_LOAD_REGISTER_MEM | CS_MMIO | 2, 0x620, (data + 0x40) as u32, 0],
        &add(5, 4, 2),
        &store_register(0x628, data + 4),
        // PIPE_CONTROL, MI_SEMAPHORE_WAIT on a register.
        &[PIPE_CONTROL | 4, PIPE_REGISTER | PIPE_WRITE, own + 0x630, 0, 3, 0],
        &[MI_SEMAPHORE_WAIT | SEMAPHORE_REGISTER | SEMAPHORE_POLL | 4 << 12 | 3, 3, own + 0x630, 0, 0],
        // MI_PREDICATE: the sources are equal.
        &load(0x400, 11),
        &load(0x408, 11),
        &load(0x418, 0),
        &[MI_PREDICATE | 0x82],
        &store_register(0x418, data + 8),
        // MI_SET_PREDICATE by MI_PREDICATE_RESULT_2: following commands are skipped until it is cleared.
        &load(0x3bc, 1),
        &[MI_SET_PREDICATE | 2],
        &store(data + 12, 1),
        &[MI_SET_PREDICATE],
        &store(data + 16, 1),
    ]
    .concat();
    assert_eq!(bench.batch(&commands), Outcome::Complete);
    assert_eq!([0, 4, 8, 12, 16].map(|offset| bench.get(DATA + offset)), [12, 21, 1, 0, 1]);
}

#[test]
fn the_parser_reads_ahead_without_side_effects() {
    proves!(
        V8_205,
        "the parser prefetches exactly eight cachelines of a batch, and modifications by commands within that \
        distance have no effect. Prefetch does not follow jumps. Prefetch beyond the end of a batch does not fault \
        (trap T31)"
    );
    // Distance of the modified dword from the start of the batch, and whether the modification is executed.
    for (dword, in_time) in [(8, false), (127, false), (128, true), (400, true)] {
        let mut bench = EngineBench::new(EngineClass::Copy);
        let mut commands = vec![0; 500];
        commands[..4].copy_from_slice(&store(VA + BATCH + 4 * dword, 2));
        commands[dword as usize - 3..=dword as usize].copy_from_slice(&store(VA + DATA, 1));
        assert_eq!(bench.batch(&commands), Outcome::Complete);
        assert_eq!(bench.get(DATA), if in_time { 2 } else { 1 }, "dword {dword}");
    }
    // The batch ends at the end of mapped memory, or before a jump to an unmapped address.
    let end = LOCAL as u64 - 24;
    let nowhere = start(VA + LOCAL as u64 + 0x1000);
    for (at, behind) in [(end, &[][..]), (BATCH, &nowhere)] {
        let mut bench = EngineBench::new(EngineClass::Copy);
        bench.listen(Function::PF);
        bench.put(DATA, 0);
        bench.write(at, &store(VA + DATA, 3));
        bench.put(at + 16, END);
        bench.write(at + 20, behind);
        assert_eq!(bench.ring(&start(VA + at)), Outcome::Complete);
        assert_eq!((bench.get(DATA), bench.own(reg::ESR)), (3, 0));
        assert_eq!(bench.take_identity(Function::PF, bench.engine.id()), None, "no page fault");
    }
}

/// MI_ARB_CHECK with its mask bit, disabling and enabling the pre-parser.
const PRE_PARSER_OFF: u32 = MI_ARB_CHECK | 0x101;
const PRE_PARSER_ON: u32 = MI_ARB_CHECK | 0x100;

#[test]
fn changed_batches_are_executed_as_they_are() {
    proves!(
        [V8_205, V8_206],
        "advanced prefetch is controlled by GFX_MODE and MI_ARB_CHECK. A modified batch that is then started, \
        chained or nested, is executed as modified. The PRM requires the pre-parser to be disabled around the \
        modification, but the model does not. The same applies to a batch that modifies and restarts itself"
    );
    let child = BATCH + 0x1000;
    for mode in [MI_ARB_ON_OFF, MI_ARB_ON_OFF | 1 << 10] {
        for header in [0x1880_0101, 0x18c0_0101] {
            for bracket in [true, false] {
                let mut bench = EngineBench::new(EngineClass::Render);
                bench.gt.write(bench.base() + reg::GFX_MODE, mode);
                assert_eq!(bench.gt.read(bench.base() + reg::GFX_MODE), mode & 0xffff);
                bench.put(DATA, 0);
                let first = if bracket { PRE_PARSER_ON } else { 0 };
                bench.write(child, &[&[first][..], &store(VA + DATA, 1), &[END]].concat());
                let change = store(VA + child + 16, 2);
                let before = if bracket { PRE_PARSER_OFF } else { 0 };
                let commands = [&change[..], &[before, header, (VA + child) as u32, 0]].concat();
                assert_eq!(bench.batch(&commands), Outcome::Complete);
                assert_eq!(bench.get(DATA), 2, "{header:#x} bracket {bracket}");
                assert!(bench.engine.counters().nonzero().is_empty());
            }
        }
    }
    // The batch stores 1, modifies the store to 2, and ends in its second iteration at the conditional end.
    let mut bench = EngineBench::new(EngineClass::VideoDecode);
    let at = VA + BATCH;
    let commands = [
        &store(VA + DATA, 1)[..],
        &[MI_ATOMIC | ATOMIC_INC << 8 | 1, (VA + DATA) as u32 + 8, 0],
        &store(at + 12, 2),
        &[MI_CONDITIONAL_BATCH_BUFFER_END | COMPARE_SEMAPHORE | 2, 1, (VA + DATA) as u32 + 12, 0],
        &store(VA + DATA + 12, 0),
        &[MI_BATCH_BUFFER_START | BATCH_PPGTT | 1, at as u32, 0],
    ]
    .concat();
    bench.put64(DATA + 8, 2 << 32);
    assert_eq!(bench.batch(&commands), Outcome::Complete);
    assert_eq!((bench.get(DATA), bench.get(DATA + 8)), (2, 2));
}

/// Guest memory of 2 MiB at IOVA 0.
struct Guest(MmapRegion);

impl DmaView for Guest {
    fn slice(&self, iova: u64, len: usize, _: Access) -> Option<VolatileSlice<'_>> {
        let at = usize::try_from(iova).ok()?;
        self.0.get_slice(at, len.min(self.0.size().checked_sub(at).filter(|rest| *rest > 0)?)).ok()
    }
}

struct OneGuest(Arc<Guest>);

impl Dma for OneGuest {
    fn view(&self, _: Function) -> Arc<dyn DmaView> {
        self.0.clone()
    }
}

#[test]
fn batches_are_fetched_as_the_processor_wrote_them() {
    proves!(
        V8_216,
        "a batch written by a CPU with plain stores to guest memory or mapped local memory is executed as written, \
        repeatedly and without a flush"
    );
    const GUEST_VA: u64 = VA + (200 << 20);
    let guest = Arc::new(Guest(MmapRegion::new(2 << 20).unwrap()));
    let mut bench = EngineBench::beside(EngineClass::Copy, Arc::new(OneGuest(guest.clone())));
    // A 2 MiB page of guest memory.
    bench.put64(ROOT + 0x2000 + 8 * 100, 0x83);
    let context = bench.context(0);
    for round in 1..=50u32 {
        for (at, address) in [(BATCH, VA + BATCH), (0x1000, GUEST_VA + 0x1000)] {
            let words = [&store(VA + DATA, round)[..], &store(GUEST_VA + 8, round), &[END]].concat();
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let gt = &bench.gt;
            let guest = &guest;
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    let size = bytes.len();
                    let local = || gt.memory.local().slice(at, size).unwrap();
                    let memory =
                        if address == GUEST_VA + 0x1000 { guest.0.get_slice(0x1000, size).unwrap() } else { local() };
                    memory.copy_from(&bytes);
                });
            });
            bench.put(DATA, 0);
            guest.0.get_slice(8, 4).unwrap().store(0u32, 0, Ordering::Release).unwrap();
            bench.emit(context, &start(address));
            assert_eq!(bench.submit(context), Outcome::Complete);
            let guests: u32 = guest.0.get_slice(8, 4).unwrap().load(0, Ordering::Acquire).unwrap();
            assert_eq!((bench.get(DATA), guests), (round, round));
        }
    }
}
