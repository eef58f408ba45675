// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Walkers of the hostile function: kernels that access any address, forge surfaces, do not end, rewrite themselves or cannot be
//! executed.

use std::fmt::Write;
use std::time::{Duration, Instant};

use arctic_device_model::gpu::Gpu;
use arctic_device_model::host::Function;
use arctic_device_model::topology::EngineClass;
use arctic_test_support::kernels::{ALONE_AT_BARRIER, ENDLESS, PROBE_BYTES, kernel, probe, set_address, taint};
use arctic_test_support::mi::compute::{Bases, Walker, cfe_state, state_base_address, state_compute_mode};
use arctic_test_support::mi::{self, Reg};
use arctic_test_support::process;
use arctic_test_support::vfs::bench::*;
use arctic_test_support::vfs::canary;
use arctic_test_support::vfs::others::*;
use arctic_test_support::vfs::world::read;

use crate::attacks::without_canaries;
use crate::{aim, retire};

/// Offset of the code of contexts, a page each.
const CODE: u64 = at::SCRATCH + 0x4_0000;
/// Offset of forged surface states with a binding table at their end.
const HEAP: u64 = at::SCRATCH + 0x6_0000;
/// Bytes of the surface states.
const HEAP_BYTES: u64 = 0x800;

/// Offset of the code of a context.
pub fn code(id: u32) -> u64 {
    CODE + u64::from(id) * 0x1000
}

/// Commands of the state, relative to the function's local memory.
pub fn state(vf: &Vf, id: u32, registers: u32) -> Vec<u32> {
    let bases = Bases {
        general: vf.base() + at::SCRATCH,
        surface: vf.base() + HEAP,
        dynamic: vf.base() + HEAP,
        instruction: vf.base() + code(id),
        bindless: vf.base() + HEAP,
    };
    [&state_base_address(&bases)[..], &state_compute_mode(registers == 256), &cfe_state(1 << 10)].concat()
}

/// Writes a context's batch with this kernel and walker; returns a ring that starts it.
pub fn write_walker(vf: &Vf, id: u32, registers: u32, text: &str, walker: &Walker) -> [u32; 3] {
    vf.write_words(code(id), &kernel(text));
    vf.write_words(Vf::batch(id), &[&state(vf, id, registers)[..], &walker.words(), &[mi::BATCH_BUFFER_END]].concat());
    vf.jump(id)
}

/// A virtual address that a kernel accesses: of the whole space, of pages of other functions, of forged entries, or of its own
/// memory, code and batches.
fn address(random: &mut Random) -> u64 {
    let own = base(ATTACKER);
    match random.below(12) {
        0 => random.any(),
        1 => random.edge(),
        2 => aim::foreign_global(random),
        3 => aim::foreign_local(random),
        4 => aim::foreign_system(random),
        5 => aim::window(random),
        6 => own + CODE + random.below(0x1_0000),
        7 => own + at::BATCHES + random.below(0x1_0000),
        8 => own + at::TABLES + random.below(0x8000),
        9 => own + HEAP + random.below(HEAP_BYTES),
        _ => random.below(0x200_0000),
    }
}

/// Instructions of an access by eight lanes: what it loads is stored in the attacker's memory.
fn access(random: &mut Random, text: &mut String) {
    for lane in 0..8 {
        let at = if random.one_in(2) { address(random) } else { base(ATTACKER) + at::SCRATCH + random.below(0x1_0000) };
        for (sub, half) in [at as u32, (at >> 32) as u32].into_iter().enumerate() {
            let sub = lane % 4 * 2 + sub;
            writeln!(text, "(W) mov (1|M0) r{}.{sub}<1>:ud {half:#x}:ud", 12 + lane / 4).unwrap();
        }
        if random.one_in(3) {
            break;
        }
    }
    let mask = if random.one_in(2) { "(W) " } else { "" };
    writeln!(text, "mov (8|M0) r10.0<1>:ud {:#x}:ud", random.dword()).unwrap();
    // Loads, stores, blocks and atomic operations, with flat addresses.
    let atomic = random.of(&[8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 24, 25, 26]);
    let message = match random.below(5) {
        0 => "send.ugm (8|M0) r20 r12 null:0 0x0 0x04100580".to_owned(),
        1 => "send.ugm (8|M0) null r12 r10:1 0x0 0x04000584".to_owned(),
        2 => "send.ugm (8|M0) r20 r12 null:0 0x0 0x04200780".to_owned(),
        3 => format!("send.ugm (8|M0) r20 r12 r10:2 0x0 {:#010X}", 0x0410_0580 | atomic),
        _ => format!("send.ugm (8|M0) r20 r12 r10:4 0x0 {:#010X}", 0x0420_0780 | atomic),
    };
    writeln!(text, "{mask}{message}").unwrap();
    keep(random, text);
}

/// Stores r20 in the attacker's memory.
fn keep(random: &mut Random, text: &mut String) {
    set_address(text, 28, base(ATTACKER) + at::SCRATCH + random.below(0x1000) * 32);
    *text += "(W) send.ugm (1|M0) null r28 r20:1 0x0 0x0200D584\n";
}

/// Instructions of an access by a surface state: by the binding table, bindless, or relative to the surface heap.
fn surface(random: &mut Random, text: &mut String) {
    writeln!(text, "mov (8|M0) r44.0<1>:ud {:#x}:ud", random.dword()).unwrap();
    writeln!(text, "mov (8|M0) r45.0<1>:ud {:#x}:ud", random.below(20)).unwrap();
    let offset = if random.one_in(4) { random.dword() } else { random.below(HEAP_BYTES) as u32 & !63 };
    writeln!(text, "(W) mov (1|M0) a0.2<1>:ud {offset:#x}:ud").unwrap();
    let (entry, kind) = (random.below(0x100) as u32 % 32, random.below(3) as u32 + 1);
    let place = if kind == 3 { format!("{:#010X}", entry << 24) } else { "a0.2".to_owned() };
    let number = if random.one_in(8) { random.below(0x100) as u32 } else { entry };
    let message = match random.below(7) {
        0 => format!("send.ugm (8|M0) r20 r44 null:0 {place} {:#010X}", 0x0210_0500 | kind << 29),
        1 => format!("send.ugm (8|M0) null r44 r10:1 {place} {:#010X}", 0x0200_0504 | kind << 29),
        2 => format!("send.ugm (8|M0) r20 r44 r10:1 {place} {:#010X}", 0x0210_050C | kind << 29),
        3 => format!("send.dc1 (8|M0) r20 r44 null:0 0x0 {:#010X}", 0x0441_5000 | number),
        4 => format!("send.dc1 (8|M0) null r44 r10:4 0x0 {:#010X}", 0x0403_5000 | number),
        5 => format!("(W) send.dc1 (1|M0) r20 r44 null:0 0x0 {:#010X}", 0x0219_0000 | number),
        _ => format!("send.smpl (8|M0) r20 r44 null:0 0x0 {:#010X}", 0x0442_A000 | number),
    };
    writeln!(text, "{message}").unwrap();
    keep(random, text);
}

/// Instructions that access shared local memory, mostly outside of it.
fn slm(random: &mut Random, text: &mut String) {
    writeln!(text, "mov (8|M0) r30.0<1>:ud {:#x}:ud", random.dword()).unwrap();
    let message = random.of(&[
        "send.slm (8|M0) r20 r30 null:0 0x0 0x02100500",
        "send.slm (8|M0) null r30 r10:1 0x0 0x02000504",
        "send.slm (8|M0) r20 r30 r10:1 0x0 0x0210050C",
        "(W) send.slm (1|M0) r20 r30 null:0 0x0 0x0280F500",
    ]);
    writeln!(text, "{message}").unwrap();
    keep(random, text);
}

/// A kernel.
fn text(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..1 + random.below(5) {
        match random.below(8) {
            0..3 => access(random, &mut text),
            3..5 => surface(random, &mut text),
            5 => slm(random, &mut text),
            6 => {
                // A jump to anything.
                let target = random.dword();
                let target = if random.one_in(2) { target & 0xff8 } else { target };
                if random.one_in(3) {
                    writeln!(text, "(W) mov (1|M0) r5.4<1>:ud {target:#x}:ud\ncalla (16|M0) r30.0 r5.4").unwrap();
                }
            }
            _ => writeln!(text, "(W) mov (1|M0) sr0.2<1>:ud {:#x}:ud", random.dword()).unwrap(),
        }
    }
    match random.below(12) {
        0 => text += ENDLESS,
        1 => text += ALONE_AT_BARRIER,
        2 => writeln!(text, "L{}:\n(W) jmpi L{}", 1 << 20, 1 << 20).unwrap(),
        _ => {}
    }
    text
}

/// Forged surface states: of any type, format, size and address.
fn forge(vf: &Vf, random: &mut Random) {
    let mut words = Vec::new();
    for _ in 0..HEAP_BYTES / 64 - 2 {
        let mut state: [u32; 16] = std::array::from_fn(|_| if random.one_in(3) { random.dword() } else { 0 });
        let (any, size) = (random.below(0x200) as u32, random.dword());
        let format = random.of(&[0x1ff, 0xc7, 0xd7, 0x00, 0x140, 0x85, any]);
        state[0] = (random.below(8) as u32) << 29 | format << 18 | if random.one_in(4) { random.dword() } else { 0 };
        state[2] = random.of(&[0, 0x007f_007f, u32::MAX, size]);
        let base = address(random);
        (state[8], state[9]) = (base as u32, (base >> 32) as u32);
        words.extend(state);
    }
    words.extend((0..32).map(|n| if random.one_in(4) { random.dword() } else { n * 64 }));
    vf.write_words(HEAP, &without_canaries(words));
}

/// Submits a context with walkers.
pub fn attack(bench: &mut VfBench, random: &mut Random) {
    let id = random.below(u64::from(CONTEXTS)) as u32;
    let class = random.of(&[EngineClass::Render, EngineClass::Compute]);
    let vf = &mut bench.attacker;
    if random.one_in(4) {
        forge(vf, random);
    }
    let mut words = kernel(&text(random));
    while random.one_in(3) {
        // Instructions that are none, or others.
        let at = random.below(words.len() as u64) as usize;
        words[at] ^= 1 << random.below(32);
    }
    vf.write_words(code(id), &without_canaries(words));
    let mut batch = state(vf, id, random.of(&[128, 256]));
    for _ in 0..1 + random.below(3) {
        let anywhere = random.dword() & !63;
        let groups = [0; 3].map(|_| random.of(&[1, 1, 1, 2, 5, u32::MAX]));
        let walker = Walker {
            groups,
            threads: random.of(&[1, 1, 2, 3, 16, 128, 1023]),
            simd: random.below(4) as u32,
            last_mask: random.dword(),
            slm: random.below(9) as u32,
            bindings: (HEAP_BYTES - 128) as u32,
            inline: random.one_in(2).then(|| [0; 8].map(|_| random.dword())),
            ..Walker::of(random.of(&[0, 0, 0, 64, 0x1000, anywhere]))
        };
        let mut words = walker.words();
        while random.one_in(4) {
            // Also a walker that is resumed, with a ticket, or with a number of groups in registers.
            let at = random.of(&[0, 4, 13, 14, 15, 16, 17, 20, 22, 23, 26, 27, 28]);
            words[at] ^= if random.one_in(2) { 1 << random.below(32) } else { random.below(200) as u32 };
        }
        if random.one_in(6) {
            for axis in 0..3 {
                batch.extend(mi::load_register_imm(Reg::Mmio(0x2500 + axis * 4), random.dword()));
            }
            words[0] |= 1 << 10;
        }
        batch.extend(words);
    }
    let again = mi::batch_buffer_start(vf.process(Vf::batch(id)));
    let end = if random.one_in(6) { again.to_vec() } else { vec![mi::BATCH_BUFFER_END] };
    batch.extend(end);
    let batch = without_canaries(batch);
    vf.request(0x4503, &[id]);
    vf.write_words(Vf::batch(id), &batch);
    let ring = vf.jump(id);
    vf.submit(id, class, &ring);
    bench.work(random.below(12) as u32);
    match random.below(8) {
        0 => copy_image(bench, random, id, class),
        1 | 2 => bench.attacker.request(0x4503, &[id]),
        3 => bench.attacker.request(0x1001, &[id, 0]),
        _ => {}
    }
}

/// Submits a copy of a context's image, with its ticket, as another context; both may have tickets that others had.
fn copy_image(bench: &mut VfBench, random: &mut Random, from: u32, class: EngineClass) {
    bench.attacker.request(0x1001, &[from, 0]);
    bench.work(8);
    let vf = &mut bench.attacker;
    let to = random.below(u64::from(CONTEXTS)) as u32;
    vf.request(0x4503, &[to]);
    let words: Vec<u32> = (0..0x800).map(|n| vf.peek(Vf::image(from, 0) + 0x1000 + n * 4)).collect();
    vf.write_words(Vf::image(to, 0) + 0x1000, &words);
    vf.register(to, u32::from(class.guc()), 1);
    vf.request(0x1001, &[to, 1]);
    vf.request(0x1001, &[from, 1]);
}

/// A kernel of a victim that runs during the attack: it has values in its registers, waits for a dword in memory, and then stores
/// the registers.
pub fn waiting_job(vf: &Vf, id: u32, gate: u64, out: u64, done: u64, values: &[u32]) -> Vec<u32> {
    let mut text = String::new();
    for (register, value) in (30..).zip(values) {
        writeln!(text, "(W) mov (8|M0) r{register}.0<1>:ud {value:#x}:ud").unwrap();
    }
    set_address(&mut text, 12, vf.base() + gate);
    text += "
GATE:
(W) send.ugm (1|M0) r14 r12 null:0 0x0 0x02100580
(W) cmp (1|M0) (ne)f0.0 null<1>:ud r14.0<0;1,0>:ud 0x1:ud
(W&f0.0) jmpi GATE
";
    for (n, register) in (0..values.len() as u64).zip(30..) {
        set_address(&mut text, 12, vf.base() + out + n * 4);
        writeln!(text, "(W) send.ugm (1|M0) null r12 r{register}:1 0x0 0x02000584").unwrap();
    }
    let walker = Walker::of(0);
    write_walker(vf, id, 128, &text, &walker);
    let batch = [
        &state(vf, id, 128)[..],
        &walker.words(),
        &mi::store_data_imm(vf.process(done), 0x600d),
        &[mi::BATCH_BUFFER_END],
    ];
    vf.write_words(Vf::batch(id), &batch.concat());
    vf.jump(id).to_vec()
}

/// How the attacker's kernel ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// By itself.
    Complete,
    /// By the end of its context, after it has left the engine.
    Deregistered,
    /// By an FLR.
    Flr,
    /// It is parked while the next kernel runs.
    Never,
}

/// A probe in the same kernel finds what was written, so that zeros of the next kernel prove something.
#[test]
fn probes_find_what_is_left() {
    let mut bench = VfBench::new(true);
    bench.attacker.up();
    for registers in [128, 256] {
        let vf = &mut bench.attacker;
        let text = taint(registers, 1024, || u32::MAX) + &probe(registers, 1024, vf.base() + at::SCRATCH);
        let ring = write_walker(vf, 1, registers, &text, &Walker { slm: 1, ..Walker::of(0) });
        vf.write_words(at::SCRATCH, &[0; PROBE_BYTES as usize / 4]);
        vf.submit(1, EngineClass::Compute, &ring);
        bench.until("the probe", 60_000, |bench| bench.attacker.peek(at::SCRATCH) == u32::MAX);
        let seen = read(&bench.attacker.local, at::SCRATCH, PROBE_BYTES as usize);
        assert!(seen.iter().all(|byte| *byte == 0xff), "{registers} registers: {seen:02x?}");
        bench.flr();
    }
}

/// Registers, flags, accumulators and shared local memory of a kernel are not visible to the next one on its engine, however it
/// ends: threads start with zeros. So it is in the next context of the same function.
#[test]
fn kernels_leave_nothing_on_the_execution_units() {
    let mut bench = VfBench::new(true);
    bench.victims.iter_mut().for_each(Vf::up);
    bench.attacker.up();
    let shapes = [(128, 0, 1), (128, 1, 2), (256, 3, 1), (128, 7, 8)];
    for class in [EngineClass::Render, EngineClass::Compute] {
        for (registers, slm, threads) in shapes {
            for end in [End::Complete, End::Deregistered, End::Flr, End::Never] {
                let bytes = if slm == 0 { 0 } else { 512 << slm };
                let walker = Walker { threads, slm, ..Walker::of(0) };
                let mut place = 0;
                let mut text = taint(registers, bytes, || {
                    place += 1;
                    canary::word(ATTACKER.number(), place)
                });
                if end != End::Complete {
                    text += ENDLESS;
                }
                let ring = write_walker(&bench.attacker, 1, registers, &text, &walker);
                bench.attacker.submit(1, class, &ring);
                bench.work(30);
                match end {
                    End::Deregistered => bench.attacker.request(0x4503, &[1]),
                    End::Flr => bench.flr(),
                    End::Complete | End::Never => {}
                }
                let what = format!("{class:?}, {registers} registers, {bytes} bytes, {threads} threads, {end:?}");
                expect_zeros(&mut bench, class, registers, bytes, &walker, &what);
                if end != End::Flr {
                    bench.flr();
                }
            }
        }
    }
    assert_eq!(bench.card.panics(), 0);
}

/// Runs a probe of each victim, and checks what it finds.
fn expect_zeros(bench: &mut VfBench, class: EngineClass, registers: u32, slm: u32, walker: &Walker, what: &str) {
    for victim in 0..2 {
        let vf = &mut bench.victims[victim];
        let len = u64::from(walker.threads) * PROBE_BYTES;
        let ring = write_walker(vf, 1, registers, &probe(registers, slm, vf.base() + at::SCRATCH), walker);
        vf.write_words(at::SCRATCH, &vec![0x5555_5555; len as usize / 4]);
        vf.submit(1, class, &ring);
        bench.until("a victim's probe", 60_000, |bench| {
            bench.victims[victim].peek(at::SCRATCH + len - 4) != 0x5555_5555
        });
        retire(bench, victim, 1);
        let seen = read(&bench.victims[victim].local, at::SCRATCH, len as usize);
        assert!(seen.iter().all(|byte| *byte == 0), "{what}: the next kernel starts with {seen:02x?}");
    }
}

/// A function whose contexts are all parked in a kernel with much state has at most its share of the host's memory, an FLR gives
/// it back, and others work meanwhile.
#[test]
fn parked_kernels_are_bounded_and_dropped_by_an_flr() {
    let mut bench = VfBench::new(true);
    bench.victims.iter_mut().for_each(Vf::up);
    bench.attacker.up();
    fill(&bench);
    let before = snapshot(&bench, true);
    for round in 0..3 {
        for id in 0..CONTEXTS {
            let walker = Walker { threads: 128, slm: 7, groups: [u32::MAX; 3], ..Walker::of(0) };
            let ring = write_walker(&bench.attacker, id, 256, ENDLESS, &walker);
            let class = [EngineClass::Render, EngineClass::Compute][id as usize % 2];
            bench.attacker.submit(id, class, &ring);
        }
        let mut most = (0, 0);
        for _ in 0..600 {
            bench.work(1);
            bench.pass(1_000_000);
            let parked = &bench.card.gt().parked;
            most = most.max((parked.count(ATTACKER), parked.bytes(ATTACKER)));
            assert!(parked.count(ATTACKER) <= 64 && parked.bytes(ATTACKER) <= 64 << 20);
            assert!(VICTIMS.iter().all(|victim| parked.bytes(*victim) == 0));
        }
        assert!(most.0 > 3, "round {round}: only {most:?} parked");
        unharmed(&before, &snapshot(&bench, true));
        bench.flr();
        assert_eq!((bench.card.gt().parked.count(ATTACKER), bench.card.gt().parked.bytes(ATTACKER)), (0, 0));
    }
    assert_eq!(bench.card.gt().parked.count(Function::PF), 0);
    nothing_leaked(&bench, false);
    assert_eq!(bench.card.panics(), 0);
}

/// A step ends soon after its time, also during instructions that take the host long: lanes in pages of their own, floats in modes
/// that are executed lane by lane, products of matrices, groups with much state, code without branches.
#[test]
fn steps_of_costly_kernels_are_short() {
    let mut bench = VfBench::new(true);
    bench.attacker.up();
    let own = base(ATTACKER);
    let mut scattered = String::new();
    // 32 lanes, each in a page of its own: more pages than a TLB has, in turn.
    scattered += "
mov (8|M0) r22.0<1>:uw 0x76543210:uv
mov (8|M0) r24.0<1>:ud r22.0<1;1,0>:uw
add (8|M0) r25.0<1>:ud r24.0<1;1,0>:ud 0x8:uw
add (16|M0) r26.0<1>:ud r24.0<1;1,0>:ud 0x10:uw
shl (16|M0) r24.0<1>:ud r24.0<1;1,0>:ud 0x10:uw
shl (16|M0) r26.0<1>:ud r26.0<1;1,0>:ud 0x10:uw
";
    writeln!(scattered, "add (16|M0) r24.0<1>:ud r24.0<1;1,0>:ud {:#x}:ud", own as u32).unwrap();
    writeln!(scattered, "add (16|M0) r26.0<1>:ud r26.0<1;1,0>:ud {:#x}:ud", own as u32).unwrap();
    scattered += "
(W) mov (1|M0) r60.0<1>:ud 0x0:ud
LOOP:
add (16|M0) r30.0<1>:ud r24.0<1;1,0>:ud r60.0<0;1,0>:ud
add (16|M0) r32.0<1>:ud r26.0<1;1,0>:ud r60.0<0;1,0>:ud
send.ugm (32|M0) r40 r30 null:0 0x0 0x08400500
(W) add (1|M0) r60.0<1>:ud r60.0<0;1,0>:ud 0x1000:ud
(W) and (1|M0) r60.0<1>:ud r60.0<0;1,0>:ud 0xffff:ud
(W) jmpi LOOP
";
    let general = "LOOP:\n".to_owned()
        + &"mad (16|M0) r20.0<1>:f r20.0<1;0>:f r22.0<1;0>:f r24.0<1>:f\n".repeat(50)
        + "(W) jmpi LOOP\n";
    let products =
        "LOOP:\n".to_owned() + &"dpas.8x8 (8|M0) r64:d r56:d r40:s4 r48.0:s4\n".repeat(50) + "(W) jmpi LOOP\n";
    let math = "LOOP:\n".to_owned() + &"math.sin (16|M0) r20.0<1>:f r22.0<1;1,0>:f\n".repeat(50) + "(W) jmpi LOOP\n";
    let straight = "add (16|M0) r20.0<1>:ud r20.0<1;1,0>:ud 0x1:uw\n".repeat(200);
    for (what, text, slm, threads) in [
        ("scattered", scattered.as_str(), 0, 1),
        ("clears local memory", "", 7, 1),
        ("starts threads", "", 7, 128),
        ("straight", &straight, 0, 1),
        ("general floats", &general, 0, 1),
        ("products", &products, 0, 1),
        ("math", &math, 0, 1),
    ] {
        let walker = Walker { threads, slm, simd: 2, last_mask: u32::MAX, groups: [u32::MAX; 3], ..Walker::of(0) };
        let ring = write_walker(&bench.attacker, 1, 128, text, &walker);
        bench.attacker.submit(1, EngineClass::Compute, &ring);
        bench.work(10);
        let start = Instant::now();
        for _ in 0..50 {
            process::work(&bench.card, Duration::from_millis(20));
        }
        println!("{what}: {:?} per step", start.elapsed() / 50);
        assert_eq!(bench.card.status().functions[ATTACKER.index()].contexts, Some(1), "{what}: the kernel has ended");
        bench.flr();
    }
}
