// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Programs that are decoded where threads come to, and writes of registers that change where and how threads go on.

use arctic_eu::exec::{
    self, Budget, Environment, Fault, FaultKind, Group, Host, MemoryFault, Program, Stop, Thread, Way,
};

use super::{END, Page, code, run, thread};

/// Virtual address of the instruction base.
pub const ORIGIN: u64 = 0x7_0000_0000;
/// Id of the address space.
const SPACE: u64 = 42;

/// Code at addresses relative to the instruction base; elsewhere the bytes of `junk`, up to `end`.
pub struct CodeMemory {
    bytes: Vec<u8>,
}

impl CodeMemory {
    pub fn new(end: usize, pieces: &[(usize, Vec<u8>)]) -> CodeMemory {
        // Decoded, these are calls of addresses far away.
        let call = branch("SELF:\ncall (16|M0) r30.0 SELF", 0x4000_0000);
        let mut bytes: Vec<u8> = call.into_iter().cycle().take(end).collect();
        for (at, code) in pieces {
            bytes[*at..*at + code.len()].copy_from_slice(code);
        }
        CodeMemory { bytes }
    }

    pub fn fetch(&self) -> impl FnMut(u64, u64, &mut [u8]) -> Result<usize, MemoryFault> + '_ {
        |space, address, bytes| {
            assert_eq!(space, SPACE);
            let fault = MemoryFault { kind: FaultKind::Address, address: Some(address) };
            let at = usize::try_from(address.wrapping_sub(ORIGIN)).map_err(|_| fault)?;
            let rest = self.bytes.get(at..).filter(|rest| !rest.is_empty()).ok_or(fault)?;
            // As a page ends anywhere, a few bytes at once.
            let count = bytes.len().min(rest.len()).min(12);
            bytes[..count].copy_from_slice(&rest[..count]);
            Ok(count)
        }
    }

    /// Runs a thread at an address, with a program that is decoded on demand.
    fn run(&self, program: &mut Program, thread: &mut Thread, address: u32) -> Result<Stop, MemoryFault> {
        let mut memory = Page::new();
        let mut group = Group::default();
        let mut environment = Environment::new(&mut memory, &mut group);
        thread.start_at(address);
        loop {
            match exec::run(program, thread, &mut environment, Budget::instructions(1000), Way::Fast, &mut ()) {
                Stop::Fetch(address) => program.extend(address, &mut self.fetch())?,
                stop => return Ok(stop),
            };
        }
    }
}

/// Code of which the last instruction is a branch, with this distance.
fn branch(text: &str, distance: i32) -> Vec<u8> {
    let mut code = code(text);
    let at = code.len() - 4;
    code[at..].copy_from_slice(&distance.to_le_bytes());
    code
}

pub fn on_demand() -> Program {
    Program::new(SPACE, ORIGIN, 128, Host::Portable)
}

/// The entry calls functions at a lower and at a higher address, the latter by a pointer; what lies between is not decoded.
const MAIN: &str = "
        mov (16|M0) r20.0<1>:ud 0x1:ud
(W)     mov (1|M0) r5.4<1>:ud 0x2000:ud
        calla (16|M0) r30.0 r5.4
        add (16|M0) r20.0<1>:ud r20.0<1;1,0>:ud 0x4:uw
SELF:
        call (16|M0) r30.0 SELF
";
const LOW: &str = "add (16|M0) r20.0<1>:ud r20.0<1;1,0>:ud 0x10:uw\nret (16|M0) r30.0\n";
const HIGH: &str = "
        cmp (16|M0) (lt)f0.0 null<1>:ud r60.0<1;1,0>:ud 0x4:uw
(f0.0)  goto (16|M0) SKIP SKIP
        add (16|M0) r20.0<1>:ud r20.0<1;1,0>:ud 0x100:uw
SKIP:
        join (16|M0) NEXT
NEXT:
        ret (16|M0) r30.0
";

#[test]
fn programs_are_decoded_where_threads_come_to_and_content_decides() {
    let length = code(MAIN).len();
    let main = [branch(MAIN, -(0x1000 + length as i32 - 16)), code(END)].concat();
    let lengths = main.len() + code(LOW).len() + code(HIGH).len();
    let mut memory = CodeMemory::new(0x3000, &[(0x1000, main), (0, code(LOW)), (0x2000, code(HIGH))]);
    let mut program = on_demand();
    let mut state = thread();
    assert_eq!(memory.run(&mut program, &mut state, 0x1000), Ok(Stop::End));
    for lane in 0..16 {
        let expected = 0x15 + if lane < 4 { 0 } else { 0x100 };
        assert_eq!(state.grf(20 + lane / 8, lane % 8), expected, "{lane}");
    }
    let used: usize = program.used_bytes().map(|(_, bytes)| bytes.len()).sum();
    assert_eq!(used, lengths, "only what was executed was decoded");
    assert!(program.instructions.len() <= lengths / 8 && program.host_bytes() > 0);
    // Another thread finds all of it.
    let decoded = program.instructions.len();
    let mut other = thread();
    assert_eq!(memory.run(&mut program, &mut other, 0x1000), Ok(Stop::End));
    assert_eq!((program.instructions.len(), other.grf(20, 7)), (decoded, 0x115));
    // Writes between the functions do not matter, writes to them do.
    assert!(program.is_current(&mut memory.fetch()));
    memory.bytes[0x800] ^= 0xff;
    memory.bytes[0x1fff] ^= 0xff;
    assert!(program.is_current(&mut memory.fetch()));
    for (at, current) in [(0x2000, false), (0x2000, true), (8, false), (8, true)] {
        memory.bytes[at] ^= 0x01;
        assert_eq!(program.is_current(&mut memory.fetch()), current, "{at:#x}");
    }
    memory.bytes.truncate(0x2000);
    assert!(!program.is_current(&mut memory.fetch()));
}

/// Places that were decoded as the middle of a block become targets later, and a branch can lead to itself.
#[test]
fn later_targets_in_decoded_blocks_are_joined() {
    // The loop's head is in the middle of the first block; the last round leaves one channel after the other.
    let text = "
        mov (16|M0) r20.0<1>:ud 0x0:ud
        mov (16|M0) r22.0<1>:ud r60.0<1;1,0>:ud
LOOP:
        add (16|M0) r20.0<1>:ud r20.0<1;1,0>:ud 0x1:uw
        cmp (16|M0) (gt)f0.0 null<1>:ud r22.0<1;1,0>:ud 0x0:uw
        add (16|M0) r22.0<1>:d r22.0<1;1,0>:d -1:w
(f0.0)  goto.b (16|M0) LOOP LOOP
        join (16|M0) NEXT
NEXT:
";
    let memory = CodeMemory::new(0x1000, &[(0, code(&format!("{text}{END}")))]);
    let mut expected = thread();
    assert_eq!(run(text, &mut Page::new(), &mut expected), Stop::End);
    let mut state = thread();
    assert_eq!(memory.run(&mut on_demand(), &mut state, 0), Ok(Stop::End));
    assert!(state.file == expected.file && state.executed == expected.executed);
    for lane in 0..16 {
        assert_eq!(state.grf(20 + lane / 8, lane % 8), lane as u32 + 1);
    }
    for text in ["SELF:\n(W) jmpi SELF", "SELF:\n(W) while (16|M0) SELF"] {
        let memory = CodeMemory::new(0x40, &[(0, code(text))]);
        let mut state = thread();
        assert_eq!(memory.run(&mut on_demand(), &mut state, 0), Ok(Stop::Budget), "{text}");
        assert_eq!(state.executed, 1000);
    }
}

/// A thread that leaves the code that can be fetched, comes to no instruction, or to too much code.
#[test]
fn code_that_cannot_be_fetched_is_a_fault_at_its_address() {
    let beyond = branch("SELF:\n(W) jmpi SELF", 0x2000);
    let between = code("(W) mov (1|M0) r5.0<1>:d 4:w\n(W) jmpi r5.0\n");
    let memory = CodeMemory::new(0x1000, &[(0, beyond), (0x100, between)]);
    let mut program = on_demand();
    let fault = memory.run(&mut program, &mut thread(), 0).unwrap_err();
    assert_eq!(fault, MemoryFault { kind: FaultKind::Address, address: Some(ORIGIN + 0x2000) });
    // The same once more: a place that cannot be fetched stays one.
    assert_eq!(memory.run(&mut program, &mut thread(), 0), Err(fault));
    let stop = memory.run(&mut program, &mut thread(), 0x100);
    assert!(matches!(stop, Ok(Stop::Fault(Fault { kind: FaultKind::Target, .. }))), "{stop:?}");
    let nops = "nop\n".repeat(64);
    let memory = CodeMemory::new(0x1000, &[(0, code(&nops))]);
    let mut program = on_demand();
    program.set_limit(512);
    let mut state = thread();
    let stop = memory.run(&mut program, &mut state, 0);
    assert!(matches!(stop, Ok(Stop::Fault(Fault { kind: FaultKind::TooMuchCode, .. }))), "{stop:?}");
    assert_eq!(state.executed, 33);
}

/// What one call decodes is bounded, however far the next branch is; threads go on from block to block.
#[test]
fn code_without_branches_is_decoded_in_blocks() {
    let text = format!("{}{END}", "add (16|M0) r20.0<1>:ud r20.0<1;1,0>:ud 0x1:uw\n".repeat(1000));
    let memory = CodeMemory::new(0x8000, &[(0, code(&text))]);
    let mut program = on_demand();
    let (mut state, mut count) = (thread(), 0);
    let before = state.grf(20, 0);
    while let Some(address) = {
        let mut group = Group::default();
        let mut page = Page::new();
        let mut environment = Environment::new(&mut page, &mut group);
        if count == 0 {
            state.start_at(0);
        }
        match exec::run(&program, &mut state, &mut environment, Budget::cost(100_000), Way::Fast, &mut ()) {
            Stop::Fetch(address) => Some(address),
            stop => {
                assert_eq!(stop, Stop::End);
                None
            }
        }
    } {
        let decoded = program.instructions.len();
        program.extend(address, &mut memory.fetch()).unwrap();
        assert!(program.instructions.len() - decoded <= 256);
        count += 1;
    }
    assert_eq!((state.executed, state.grf(20, 0).wrapping_sub(before)), (1001, 1000));
    assert!(count >= 4, "{count}");
}

/// Threads that come to other code each time do not make a program beyond its limit larger.
#[test]
fn a_program_does_not_grow_beyond_its_limit() {
    let memory = CodeMemory::new(0x10_0000, &[]);
    let mut program = on_demand();
    program.set_limit(4096);
    let mut sizes = Vec::new();
    for address in (0..0x10_0000).step_by(8) {
        program.extend(address, &mut memory.fetch()).unwrap();
        sizes.push(program.host_bytes());
        let _ = memory.run(&mut program, &mut thread(), address + 8);
    }
    let full = sizes.iter().position(|bytes| bytes == sizes.last().unwrap()).unwrap();
    assert!(full < 4096, "{full} of {}", sizes.len());
}

/// ISA-085: channels that a write of sr0.2 adds are enabled where it is; those that it takes away do not come back, wherever they
/// wait.
#[test]
fn writes_of_the_dispatch_mask_enable_and_disable_channels() {
    let text = "
        mov (16|M0) r20.0<1>:ud 0x1:ud
(W)     mov (1|M0) sr0.2<1>:ud 0xFFFF:ud
        mov (16|M0) r22.0<1>:ud 0x2:ud
        cmp (16|M0) (lt)f0.0 null<1>:ud r60.0<1;1,0>:ud 0x4:uw
(f0.0)  goto (16|M0) SKIP SKIP
(W)     mov (1|M0) sr0.2<1>:ud 0xFFC:ud
        mov (16|M0) r24.0<1>:ud 0x3:ud
SKIP:
        join (16|M0) NEXT
NEXT:
        mov (16|M0) r26.0<1>:ud 0x4:ud
";
    for way in [Way::Fast, Way::General] {
        let mut state = thread();
        state.reset(0xff);
        for lane in 0..16usize {
            state.set_grf(60 + lane / 8, lane % 8, lane as u32);
        }
        let program = Program::translate(&code(&format!("{text}{END}")), 0, 128, Host::Portable);
        let (mut page, mut group) = (Page::new(), Group::default());
        let mut environment = Environment::new(&mut page, &mut group);
        let stop = exec::run(&program, &mut state, &mut environment, Budget::instructions(100), way, &mut ());
        assert_eq!(stop, Stop::End);
        for lane in 0..16usize {
            let of = |register: usize| state.grf(register + lane / 8, lane % 8);
            assert_eq!(of(20), u32::from(lane < 8), "{way:?} {lane}");
            assert_eq!(of(22), 2, "{way:?} {lane}");
            assert_eq!(of(24), if (4..12).contains(&lane) { 3 } else { 0 }, "{way:?} {lane}");
            assert_eq!(of(26), if (2..12).contains(&lane) { 4 } else { 0 }, "{way:?} {lane}");
        }
        assert_eq!((state.dispatch, state.mask), (0xffc, 0xffc));
    }
}

/// A function with a loop of a call to another, which the lanes leave one after the other, as IGC translates it. Each lane has
/// its number in r7.
const NESTED: &str = "
        mov (8|M0) r7.0<1>:ud 0x76543210:v
        call (8|M0) r2.2 SUM
        mov (8|M0) r11.0<1>:ud r10.0<1;1,0>:ud
        mov (8|M0) r5.0<1>:d r7.0<1;1,0>:d
        call (8|M0) r2.0 SQUARE
        add (8|M0) r20.0<1>:d r11.0<1;1,0>:d r6.0<1;1,0>:d
(W)     send.gtwy (1|M0) null r127 null:0 0x0 0x02000010 {EOT}
SUM:
        cmp (8|M0) (eq)f0.1 null<1>:d r7.0<1;1,0>:d 0:w
(~f0.1) goto (8|M0) SOME SOME
        mov (8|M0) r4.0<1>:d 0:w
        goto (8|M0) SOME LEAVE
SOME:
        join (8|M0) LEAVE
(W)     mov (1|M0) r2.4<1>:d 1:w
        mov (8|M0) r4.0<1>:d 0:w
LOOP:
        mov (8|M0) r5.0<1>:d r2.4<0;1,0>:d
        call (8|M0) r2.0 SQUARE
(W)     add (1|M0) r2.4<1>:d r2.4<0;1,0>:d 1:w
        add (8|M0) r4.0<1>:d r4.0<1;1,0>:d r6.0<1;1,0>:d
        cmp (8|M0) (gt)f0.0 null<1>:ud r2.4<0;1,0>:ud r7.0<1;1,0>:ud
(~f0.0) goto.b (8|M0) LEAVE LOOP
LEAVE:
        join (8|M0) BEHIND
BEHIND:
        mov (8|M0) r10.0<1>:ud r4.0<1;1,0>:ud
        ret (8|M0) r2.2
SQUARE:
        mul (8|M0) r6.0<1>:d r5.0<1;1,0>:d r5.0<1;1,0>:d
        ret (8|M0) r2.0
";

#[test]
fn calls_in_loops_that_lanes_leave() {
    let code = code(NESTED);
    let memory = CodeMemory::new(code.len(), &[(0, code.clone())]);
    let mut full = Program::translate(&code, 0, 128, Host::Portable);
    for (what, program) in [("full", &mut full), ("on demand", &mut on_demand())] {
        // Compilers enable all other channels where functions are called by a stack.
        for dispatch in [0xff, !0] {
            let mut state = Thread::new(128, dispatch);
            assert_eq!(memory.run(program, &mut state, 0), Ok(Stop::End), "{what}");
            for lane in 0..8u32 {
                let expected = (1..=lane).map(|n| n * n).sum::<u32>() + lane * lane;
                assert_eq!(state.grf(20, lane as usize), expected, "{what}, lane {lane}");
            }
        }
    }
}
