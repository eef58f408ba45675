// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The interpreter as a device model embeds it: with memory of its own that is neither shared nor `Sync`, that tiles its images,
//! counts what accesses cost and names faults. Without the features `launch` and `program`.

use std::cell::Cell;
use std::rc::Rc;

use arctic_eu::exec::memory::{
    Access, Addressing, Atomic, Channel, ChannelOrder, Dimensions, Filter, Image, ImageFormat, Memory, Sampler, Surface,
};
use arctic_eu::exec::payload::{Dispatch, Header, LocalIds, Payload};
use arctic_eu::exec::thread::CR;
use arctic_eu::exec::{
    self, AccessKind, Budget, Environment, Fault, FaultAccess, FaultKind, Group, GroupStop, Host, MESSAGE_COST,
    MemoryFault, Program, Stop, Thread, Way, Workgroup,
};
use arctic_eu::text::assemble;

/// The end of a thread.
const END: &str = "(W) send.gtwy (1|M0) null r127 null:0 0x0 0x02000010 {EOT}\n";
/// Virtual address of the memory.
const BASE: u64 = 0x1_0000;
/// Bytes of the memory.
const SIZE: usize = 0x1000;
/// Offset of the surface with index 1, and its bytes.
const BUFFER: u64 = 0x800;
const BUFFER_BYTES: u64 = 64;
/// Cost of an access.
const COST: u64 = 1000;

/// Memory of one page. Surface 0 is an image of 16 dwords by 4 rows of one-byte texels, with the bytes of each row in
/// reverse order, as a stand-in for tiling; surface 1 is a buffer.
struct Page {
    bytes: Vec<u8>,
    cost: u64,
    /// Number of accesses. Not `Sync`.
    accesses: Rc<Cell<u64>>,
    /// Encoding of the image.
    channel: Channel,
    sampler: Option<Sampler>,
}

/// Handle of the image.
const HANDLE: u64 = 0x1234_5678_9abc_def0;

impl Page {
    fn new() -> Page {
        Page {
            bytes: (0..SIZE).map(|index| (index * 7) as u8).collect(),
            cost: 0,
            accesses: Rc::default(),
            channel: Channel::Uint8,
            sampler: None,
        }
    }

    fn place(&mut self, surface: Surface, address: u64, size: usize) -> Result<Option<usize>, MemoryFault> {
        self.accesses.set(self.accesses.get() + 1);
        self.cost += COST;
        let address = match surface {
            Surface::Flat => address,
            Surface::Binding(1) if address + size as u64 > BUFFER_BYTES => return Ok(None),
            Surface::Binding(1) => BASE + BUFFER + address,
            _ => return Err(FaultKind::Surface.into()),
        };
        let fault = MemoryFault { kind: FaultKind::Address, address: Some(address) };
        let at = usize::try_from(address.checked_sub(BASE).ok_or(fault)?).map_err(|_| fault)?;
        if at + size > SIZE { Err(fault) } else { Ok(Some(at)) }
    }

    /// Place of a byte of a row of the image.
    fn tiled(image: &Image, x: u32, y: u32) -> usize {
        assert_eq!(image.handle, HANDLE);
        (y * 64 + 63 - x) as usize
    }
}

impl Memory for Page {
    fn read(&mut self, surface: Surface, address: u64, _: usize, bytes: &mut [u8]) -> Result<Access, MemoryFault> {
        let Some(at) = self.place(surface, address, bytes.len())? else {
            bytes.fill(0);
            return Ok(Access::Outside);
        };
        bytes.copy_from_slice(&self.bytes[at..at + bytes.len()]);
        Ok(Access::Inside)
    }

    fn write(&mut self, surface: Surface, address: u64, _: usize, bytes: &[u8]) -> Result<Access, MemoryFault> {
        let Some(at) = self.place(surface, address, bytes.len())? else { return Ok(Access::Outside) };
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(Access::Inside)
    }

    fn atomic(
        &mut self,
        surface: Surface,
        address: u64,
        size: u32,
        operation: Atomic,
        operands: [u64; 2],
    ) -> Result<Option<u64>, MemoryFault> {
        let Some(at) = self.place(surface, address, size as usize)? else { return Ok(None) };
        let bytes = &mut self.bytes[at..at + size as usize];
        let old = bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        bytes.copy_from_slice(&operation.apply(old, operands, size).to_le_bytes()[..size as usize]);
        Ok(Some(old))
    }

    fn image(&mut self, surface: Surface) -> Result<Image, MemoryFault> {
        if surface != Surface::Binding(0) {
            return Err(FaultKind::Surface.into());
        }
        Ok(Image {
            base: BASE,
            width: 16,
            height: 4,
            depth: 1,
            pitch: 64,
            slice: 0,
            dimensions: Dimensions::Two,
            array: false,
            format: ImageFormat { order: ChannelOrder::R, channel: self.channel },
            handle: HANDLE,
        })
    }

    fn sampler(&mut self, _: Option<u32>, _: u8) -> Result<Sampler, MemoryFault> {
        self.sampler.ok_or(FaultKind::Surface.into())
    }

    fn read_texel(&mut self, image: &Image, [x, y, _]: [u32; 3], bytes: &mut [u8]) -> Result<(), MemoryFault> {
        bytes.copy_from_slice(&[self.bytes[Page::tiled(image, x, y)]]);
        Ok(())
    }

    fn write_texel(&mut self, image: &Image, [x, y, _]: [u32; 3], bytes: &[u8]) -> Result<(), MemoryFault> {
        self.bytes[Page::tiled(image, x, y)] = bytes[0];
        Ok(())
    }

    fn read_row(&mut self, image: &Image, x: u32, y: u32, bytes: &mut [u8]) -> Result<(), MemoryFault> {
        for (at, byte) in (x..).zip(bytes) {
            *byte = self.bytes[Page::tiled(image, at, y)];
        }
        Ok(())
    }

    fn write_row(&mut self, image: &Image, x: u32, y: u32, bytes: &[u8]) -> Result<(), MemoryFault> {
        for (at, byte) in (x..).zip(bytes) {
            self.bytes[Page::tiled(image, at, y)] = *byte;
        }
        Ok(())
    }

    fn take_cost(&mut self) -> u64 {
        std::mem::take(&mut self.cost)
    }
}

fn code(text: &str) -> Vec<u8> {
    assemble(text).unwrap_or_else(|errors| panic!("{}", errors.render(text, "test")))
}

/// A thread with addresses of consecutive dwords of the memory in r40 and r41, those of lane 3 and from lane 12 on in r44
/// beyond the memory, and numbers in r60.
fn thread() -> Thread {
    let mut thread = Thread::new(128, 0xffff);
    for lane in 0..16usize {
        let mut set = |register: usize, value: u32| thread.set_grf(register + lane / 8, lane % 8, value);
        set(40, BASE as u32 + lane as u32 * 4);
        set(44, BASE as u32 + lane as u32 * if lane == 3 || lane >= 12 { 0x1_0000 } else { 8 });
        set(48, lane as u32 * 8);
        set(60, lane as u32);
    }
    thread
}

/// Executes a text to its stop.
fn run(text: &str, memory: &mut Page, thread: &mut Thread) -> Stop {
    let code = Program::translate(&code(&format!("{text}\n{END}")), 0, 128, Host::Portable);
    let mut group = Group { slm: vec![0; 64], ..Group::default() };
    let mut environment = Environment::new(memory, &mut group);
    exec::run(&code, thread, &mut environment, Budget::instructions(100), Way::Fast, &mut ())
}

fn fault(text: &str) -> Fault {
    match run(text, &mut Page::new(), &mut thread()) {
        Stop::Fault(fault) => fault,
        other => panic!("{text}: {other:?}"),
    }
}

/// A fault has the lane, the kind of the access, the address as the message has it, and the virtual address that the memory
/// names.
#[test]
fn faults_name_the_access() {
    let beyond = BASE + 3 * 0x1_0000;
    let access =
        |kind, surface, address, virtual_address| Some(FaultAccess { kind, surface, address, virtual_address });
    for (text, lane, expected) in [
        (
            "send.ugm (16|M0) r20 r44 null:0 0x0 0x04200500",
            Some(3),
            access(AccessKind::Read, Some(Surface::Flat), beyond, Some(beyond)),
        ),
        (
            "send.ugm (16|M0) null r44 r60:2 0x0 0x04000504",
            Some(3),
            access(AccessKind::Write, Some(Surface::Flat), beyond, Some(beyond)),
        ),
        (
            "send.ugm (16|M0) null r44 r60:2 0x0 0x0400050C",
            Some(3),
            access(AccessKind::Atomic, Some(Surface::Flat), beyond, Some(beyond)),
        ),
        // Binding table entry 2 does not exist.
        (
            "send.ugm (16|M0) r20 r48 null:0 0x02000000 0x64200500",
            Some(0),
            access(AccessKind::Read, Some(Surface::Binding(2)), 0, None),
        ),
        (
            "send.dc1 (8|M0) null r10 r40:4 0x0 0x04035003",
            None,
            access(AccessKind::Write, Some(Surface::Binding(3)), 0, None),
        ),
        // A block at r60.2, which is 2.
        (
            "(W) send.dc0 (16|M0) r20 r60 null:0 0x0 0x021842FD",
            None,
            access(AccessKind::Read, Some(Surface::Stateless), 2, None),
        ),
    ] {
        let fault = fault(text);
        assert_eq!((fault.lane, fault.access), (lane, expected), "{text}");
        assert_eq!(fault.instruction, 0);
    }
    // An atomic operation that is not aligned, of surface and of local memory: lane 1 has the address 1.
    let fault = fault("send.slm (16|M0) null r60 r60:2 0x0 0x0400050C");
    assert_eq!((fault.kind, fault.lane), (FaultKind::Alignment, Some(1)));
    assert_eq!(fault.access, access(AccessKind::Atomic, None, 1, None));
    // Faults of other kinds have none.
    assert_eq!(self::fault("illegal").access, None);
}

/// Texels and rows go through the memory, which places them by the image's handle; a row is as long as the image is wide in
/// dwords, whatever its format (IGT's surfaces of R8).
#[test]
fn texels_and_rows_are_those_of_the_memory() {
    let mut memory = Page::new();
    let mut state = thread();
    for lane in 0..8 {
        state.set_grf(10, lane, lane as u32);
        state.set_grf(11, lane, 2);
        state.set_grf(12, lane, 0xa0 + lane as u32);
    }
    let before = memory.bytes.clone();
    let text = "send.dc1 (8|M0) r20 r10 null:0 0x0 0x04115E00\nsend.dc1 (8|M0) null r10 r12:1 0x0 0x04035E00";
    assert_eq!(run(text, &mut memory, &mut state), Stop::End);
    for lane in 0..8 {
        assert_eq!(state.grf(20, lane), u32::from(before[2 * 64 + 63 - lane]));
        assert_eq!(memory.bytes[2 * 64 + 63 - lane], 0xa0 + lane as u8);
    }
    // 32 bytes from byte 16 of row 1 on: beyond the sixteen texels, inside the sixteen dwords.
    for (dword, value) in [(0, 16), (1, 1), (2, 31)] {
        state.set_grf(30, dword, value);
    }
    state.next = 0;
    let text = "(W) send.dc1 (8|M0) r31 r30 null:0 0x0 0x02190000\n(W) send.dc1 (8|M0) null r30 r12:1 0x0 0x020A8000";
    let before = memory.bytes.clone();
    assert_eq!(run(text, &mut memory, &mut state), Stop::End);
    for byte in 0..32 {
        let value = state.grf(31, byte / 4) >> (byte % 4 * 8) & 0xff;
        assert_eq!(value, u32::from(before[64 + 63 - 16 - byte]), "{byte}");
        let stored = state.grf(12, byte / 4) >> (byte % 4 * 8) & 0xff;
        assert_eq!(u32::from(memory.bytes[64 + 63 - 16 - byte]), stored, "{byte}");
    }
}

/// A message costs its lanes and what the memory says; a budget of cost ends before the next instruction, at most one later
/// than it is used up, and says what was used.
#[test]
fn budgets_count_what_accesses_cost() {
    let text = "mov (16|M0) r20.0<1>:ud r60.0<1;1,0>:ud\nsend.ugm (16|M0) r20 r40 null:0 0x0 0x04200500\n\
                mov (16|M0) r22.0<1>:ud r60.0<1;1,0>:ud\nsend.ugm (16|M0) r20 r48 null:0 0x01000000 0x64200500\n";
    let program = Program::translate(&code(&format!("{text}{END}")), 0, 128, Host::Portable);
    let mut memory = Page::new();
    let accesses = memory.accesses.clone();
    let mut thread = thread();
    let mut group = Group::default();
    let mut environment = Environment::new(&mut memory, &mut group);
    let mut step = |cost| {
        let before = (thread.executed, environment.cost);
        let stop = exec::run(&program, &mut thread, &mut environment, Budget::cost(cost), Way::Fast, &mut ());
        (stop, thread.executed - before.0, environment.cost - before.1)
    };
    assert_eq!(step(0), (Stop::Budget, 0, 0));
    assert_eq!(step(1), (Stop::Budget, 1, 0));
    // The addresses are consecutive: one access. It ends the budget, whatever is left of it.
    assert_eq!(step(2), (Stop::Budget, 1, MESSAGE_COST - 1 + 16 + COST));
    assert_eq!(accesses.get(), 1);
    // One access for each lane, half of them outside the buffer.
    let gather = MESSAGE_COST - 1 + 16 + 16 * COST;
    assert_eq!(step(gather + 2), (Stop::Budget, 2, gather));
    assert_eq!(accesses.get(), 17);
    assert_eq!(step(1), (Stop::End, 1, MESSAGE_COST));
    assert_eq!(environment.outside, 8);
}

/// ISA-226: eight lanes of the upper half of 16 channels are the upper slots, as Mesa's compiler has them, or the lower ones.
#[test]
fn typed_messages_of_eight_lanes_have_either_slot_group() {
    for (place, descriptor, passes) in
        [("M8", 0x0411_6E00, true), ("M8", 0x0411_5E00, true), ("M0", 0x0411_6E00, false)]
    {
        let mut memory = Page::new();
        let mut state = thread();
        for lane in 0..8 {
            state.set_grf(10, lane, lane as u32);
            state.set_grf(11, lane, 1);
        }
        // Channels 9 to 12.
        state.mask = 0x1e00;
        let text = format!("send.dc1 (8|{place}) r20 r10 null:0 0x0 {descriptor:#010X}");
        let stop = run(&text, &mut memory, &mut state);
        if !passes {
            assert!(matches!(stop, Stop::Fault(Fault { kind: FaultKind::Message, .. })), "{text}: {stop:?}");
            continue;
        }
        assert_eq!(stop, Stop::End, "{text}");
        for lane in 0..8 {
            let texel = if (1..5).contains(&lane) { u32::from(memory.bytes[64 + 63 - lane]) } else { 0 };
            assert_eq!(state.grf(20, lane), texel, "{text} {lane}");
        }
    }
}

/// A color of each lane at u and v, of a message to the sampler with this type.
fn sample(memory: &mut Page, message: u32, parameters: &[[f32; 8]]) -> [[u32; 8]; 4] {
    let mut state = thread();
    for (register, values) in parameters.iter().enumerate() {
        for (lane, value) in values.iter().enumerate() {
            state.set_grf(10 + register, lane, value.to_bits());
        }
    }
    let descriptor = (parameters.len() as u32) << 25 | 4 << 20 | 1 << 17 | message << 12;
    let text = format!("send.smpl (8|M0) r20 r10 null:0 0x0 {descriptor:#010X}");
    assert_eq!(run(&text, memory, &mut state), Stop::End, "{text}");
    [0, 1, 2, 3].map(|channel| [0, 1, 2, 3, 4, 5, 6, 7].map(|lane| state.grf(20 + channel, lane)))
}

/// EU-080: each axis has its addressing; the border has the sampler's color.
#[test]
fn samplers_have_an_addressing_for_each_axis_and_a_border() {
    let mut memory = Page::new();
    let texel = |memory: &Page, x: u32, y: u32| u32::from(memory.bytes[(y * 64 + 63 - x) as usize]);
    let u = [-1.0, 0.0, 15.5, 16.0, -3.0, -40.0, 33.0, 7.0];
    let v = [0.0, -1.0, 3.0, 4.0, 1.0, 2.0, 9.0, -7.0];
    for (axes, columns, rows) in [
        (
            [Addressing::Wrap, Addressing::Clamp],
            [15, 0, 15, 0, 13, 8, 1, 7].map(Some),
            [0, 0, 3, 3, 1, 2, 3, 0].map(Some),
        ),
        (
            [Addressing::MirrorOnce, Addressing::Mirror],
            [0, 0, 15, 15, 2, 15, 15, 7].map(Some),
            [0, 0, 3, 3, 1, 2, 1, 6 - 5].map(Some),
        ),
        (
            [Addressing::Clamp, Addressing::Border],
            [0, 0, 15, 15, 0, 0, 15, 7].map(Some),
            [Some(0), None, Some(3), None, Some(1), Some(2), None, None],
        ),
        (
            [Addressing::HalfBorder, Addressing::Wrap],
            [0, 0, 15, 15, 0, 0, 15, 7].map(Some),
            [0, 3, 3, 0, 1, 2, 1, 1].map(Some),
        ),
    ] {
        let mut sampler = Sampler::uniform(Addressing::Wrap, false, false);
        sampler.addressing[..2].copy_from_slice(&axes);
        sampler.border = [0x55, 0x66, 0x77, 0x88];
        memory.sampler = Some(sampler);
        let [red, green, _, alpha] = sample(&mut memory, 24, &[u, v]);
        for lane in 0..8 {
            let expected = match (columns[lane], rows[lane]) {
                (Some(x), Some(y)) => texel(&memory, x, y),
                _ => 0x55,
            };
            // The format has one component: the others are 0, the last 1, on the border too.
            assert_eq!((red[lane], green[lane], alpha[lane]), (expected, 0, 1), "{axes:?} lane {lane}");
        }
    }
}

/// EU-080: the level of detail, within the sampler's bounds, chooses the filter; rounding bits round its weights.
#[test]
fn levels_choose_the_filter_and_rounding_bits_its_weights() {
    let mut memory = Page::new();
    memory.channel = Channel::Unorm8;
    let texel = |memory: &Page, x: u32| f32::from(memory.bytes[(63 - x) as usize]) / 255.0;
    // Between the centers of texels 3 and 4: 0.7 of 256 are 179.2, and 0.999 are 255.7.
    let (u, v) = ([4.2f32, 4.499, 4.2, 4.2, 4.2, 4.2, 4.2, 4.2], [0.5; 8]);
    let level = [0.0, 0.0, 0.5, 3.0, -1.0, f32::NAN, 1e9, f32::NEG_INFINITY];
    for (bounds, linear) in [
        ([0, 14 << 8], [false, false, true, true, false, false, true, false]),
        ([0, 0], [false; 8]),
        ([1 << 7, 1 << 8], [true; 8]),
    ] {
        for rounding in [false, true] {
            let mut sampler = Sampler::uniform(Addressing::Clamp, false, false);
            sampler.minify = Filter { linear: true, rounding: [rounding; 3] };
            sampler.level = bounds;
            memory.sampler = Some(sampler);
            let [red, ..] = sample(&mut memory, 2, &[level, u, v]);
            for lane in 0..8 {
                let fraction = (u[lane] - 0.5 - 3.0) * 256.0;
                let weight = if rounding { fraction.round() } else { fraction.floor() } / 256.0;
                let mean = (1.0 - weight) * texel(&memory, 3) + weight * texel(&memory, 4);
                let expected = if linear[lane] { mean } else { texel(&memory, 4) };
                assert_eq!(f32::from_bits(red[lane]), expected, "{bounds:?} {rounding} lane {lane}");
            }
        }
    }
    // A nearest texel of a coordinate that is rounded to 1/256 first.
    let mut sampler = Sampler::uniform(Addressing::Clamp, false, false);
    sampler.magnify.rounding[0] = true;
    memory.sampler = Some(sampler);
    let [red, ..] = sample(&mut memory, 24, &[[3.999; 8], v]);
    assert_eq!(f32::from_bits(red[0]), texel(&memory, 4));
}

/// Virtual address of the instruction base.
const ORIGIN: u64 = 0x7_0000_0000;
/// Id of the address space.
const SPACE: u64 = 42;

/// Code at addresses relative to the instruction base; elsewhere the bytes of `junk`, up to `end`.
struct CodeMemory {
    bytes: Vec<u8>,
}

impl CodeMemory {
    fn new(end: usize, pieces: &[(usize, Vec<u8>)]) -> CodeMemory {
        // Decoded, these are calls of addresses far away.
        let call = branch("SELF:\ncall (16|M0) r30.0 SELF", 0x4000_0000);
        let mut bytes: Vec<u8> = call.into_iter().cycle().take(end).collect();
        for (at, code) in pieces {
            bytes[*at..*at + code.len()].copy_from_slice(code);
        }
        CodeMemory { bytes }
    }

    fn fetch(&self) -> impl FnMut(u64, u64, &mut [u8]) -> Result<usize, MemoryFault> + '_ {
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

fn on_demand() -> Program {
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

/// EU-060, EU-061: an exception is a stop; in the system routine cr0 says what it was and where, and the thread goes on where
/// the routine says. Without the enable bit, an instruction that is none is passed over; without exceptions it is a fault.
#[test]
fn illegal_instructions_are_exceptions_if_they_are_enabled() {
    let text = "mov (16|M0) r20.0<1>:ud 0x1:ud\nillegal\nmov (16|M0) r22.0<1>:ud 0x2:ud\n";
    let routine = "
(W)     mov (4|M0) r24.0<1>:ud cr0.0<4;4,1>:ud
        illegal
(W)     add (1|M0) cr0.2<1>:ud cr0.2<0;1,0>:ud 0x10:uw
(W)     and (1|M0) cr0.1<1>:ud cr0.1<0;1,0>:ud 0xFFFFFFF:ud
(W)     and (1|M0) cr0.0<1>:ud cr0.0<0;1,0>:ud 0x7FFFFFFD:ud
(W)     mov (1|M0) r26.0<1>:ud 0xDEAD:ud
";
    let memory = CodeMemory::new(0x1000, &[(0x40, code(&format!("{text}{END}"))), (0x400, code(routine))]);
    let at = 0x40 + code("mov (16|M0) r20.0<1>:ud 0x1:ud").len() as u32;
    let mut program = on_demand();
    let mut state = thread();
    assert!(matches!(
        memory.run(&mut program, &mut state, 0x40),
        Ok(Stop::Fault(Fault { kind: FaultKind::Illegal, .. }))
    ));
    let mut state = thread();
    state.exceptions = true;
    assert_eq!(memory.run(&mut program, &mut state, 0x40), Ok(Stop::End));
    assert_eq!((state.grf(22, 0), state.u32(CR + 4)), (2, 0));
    let mut state = thread();
    state.exceptions = true;
    state.set_u32(CR + 4, 1 << 12);
    assert_eq!(memory.run(&mut program, &mut state, 0x40), Ok(Stop::Exception(at)));
    assert_eq!((state.grf(20, 0), state.grf(22, 0)), (1, 0));
    state.enter_system_routine(0x400);
    let mut page = Page::new();
    let mut group = Group::default();
    let mut environment = Environment::new(&mut page, &mut group);
    let stop = loop {
        match exec::run(&program, &mut state, &mut environment, Budget::instructions(1), Way::General, &mut ()) {
            Stop::Fetch(address) => {
                program.extend(address, &mut memory.fetch()).unwrap();
            }
            Stop::Budget => {}
            stop => break stop,
        }
    };
    assert_eq!(stop, Stop::End);
    assert_eq!([0, 1, 2].map(|dword| state.grf(24, dword)), [1 << 31, 1 << 28 | 1 << 12, at]);
    assert_eq!((state.grf(22, 0), state.grf(26, 0), state.u32(CR + 4), state.u32(CR)), (2, 0, 1 << 12, 0));
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

/// Each thread adds its number to a counter in shared local memory, waits for the others, and stores the sum for its group.
const SUM: &str = "
(W)     and (1|M0) r10.0<1>:ud r0.2<0;1,0>:ud 0xFF:uw
(W)     mov (1|M0) r11.0<1>:ud 0x0:ud
(W)     send.slm (1|M0) null r11 r10:1 0x0 0x0200050C
(W)     mov (1|M0) r12.0<1>:ud 0x0:ud
(W)     mov (1|M0) r12.10<1>:ub r0.11<0;1,0>:ub
(W)     mov (1|M0) r12.11<1>:ub r0.11<0;1,0>:ub
(W)     send.gtwy (1|M0) null r12 null:0 0x0 0x02000004
(W)     sync.bar null
(W)     send.slm (1|M0) r13 r11 null:0 0x0 0x02100500
(W)     shl (1|M0) r14.0<1>:ud r10.0<0;1,0>:ud 0x2:uw
(W)     add (1|M0) r14.0<1>:ud r14.0<0;1,0>:ud 0x10000:ud
(W)     add (1|M0) r13.0<1>:ud r13.0<0;1,0>:ud r0.1<0;1,0>:ud
(W)     send.ugm (1|M0) null r14 r13:1 0x0 0x02000504
";

fn payload(threads: u32) -> Payload {
    Payload::new(Dispatch {
        simd: 16,
        threads,
        last_mask: 0xff,
        header: Header::default(),
        ids: Some(LocalIds {
            local: [threads * 16 - 8, 1, 1],
            order: [0, 1, 2],
            emitted: [true, false, false],
            registers: 1,
        }),
        inline: None,
        cr0: [0; 2],
        exceptions: false,
    })
}

fn workgroup(threads: u32) -> Workgroup {
    let mut group = Workgroup::new(threads as usize, 128, 1024);
    for (number, thread) in (0..).zip(group.threads_mut()) {
        payload(threads).write(thread, [100, 0, 0], number, number);
        thread.start_at(0x40);
    }
    group
}

/// A group is plain data: it is stepped by any budget of cost, parked and copied between steps, and does the same.
#[test]
fn groups_are_stepped_by_cost_and_parked() {
    fn is_plain<T: Clone + Send + 'static>(_: &T) {}
    let code = CodeMemory::new(0x1000, &[(0x40, code(&format!("{SUM}{END}")))]);
    let mut results = Vec::new();
    for budget in [1, 3, 50, 2_000, u64::MAX] {
        let (mut page, mut program, mut group) = (Page::new(), on_demand(), workgroup(7));
        is_plain(&group);
        let mut steps = 0u64;
        loop {
            let before = group.cost();
            let stop = group.step(&program, &mut page, budget, Way::Fast, &mut ());
            assert!(group.cost() - before < budget.saturating_add(2 * COST), "{budget}");
            match stop {
                GroupStop::Budget => steps += 1,
                GroupStop::Fetch(address) => {
                    program.extend(address, &mut code.fetch()).unwrap();
                }
                stop => {
                    assert_eq!(stop, GroupStop::End);
                    break;
                }
            }
            let parked = group.clone();
            drop(group);
            group = parked;
        }
        for thread in 0..7 {
            let stored = u32::from_le_bytes(page.bytes[thread * 4..][..4].try_into().unwrap());
            assert_eq!(stored, 21 + 100, "{thread}");
        }
        assert_eq!(budget == u64::MAX, steps == 0);
        assert_eq!(group.shared().slm[0], 21);
        results.push((
            group.executed(),
            group.cost(),
            page.bytes,
            group.threads().iter().map(|t| t.executed).collect::<Vec<_>>(),
        ));
        // The next group finds nothing of this one.
        group.restart(3);
        assert_eq!((group.threads().len(), group.shared().slm[0], group.cost()), (3, 0, 0));
    }
    assert!(results.iter().all(|result| *result == results[0]));
}

/// Threads that wait for a barrier that no thread completes, a thread that does not end, and faults, have their place.
#[test]
fn groups_that_do_not_end_are_reported_with_their_place() {
    let wait = "(W) sync.bar null\n";
    let program = |text: &str| {
        let mut bytes = vec![0; 0x40];
        bytes.extend(code(&format!("{text}{END}")));
        Program::translate(&bytes, 0, 128, Host::Portable)
    };
    let run = |text: &str, limit: u64| {
        let (mut page, mut group) = (Page::new(), workgroup(3));
        group.set_limit(limit);
        let program = program(text);
        loop {
            match group.step(&program, &mut page, 10, Way::Fast, &mut ()) {
                GroupStop::Budget => {}
                stop => return (stop, program),
            }
        }
    };
    let address = |program: &Program, instruction: u32| program.instructions[instruction as usize].address;
    match run(wait, u64::MAX) {
        (GroupStop::Deadlock(place), program) => {
            assert_eq!((place.thread, address(&program, place.instruction)), (0, 0x40));
        }
        (stop, _) => panic!("{stop:?}"),
    }
    match run("SELF:\n(W) jmpi SELF\n", 100) {
        (GroupStop::Limit(place), program) => {
            assert_eq!((place.thread, address(&program, place.instruction)), (0, 0x40));
        }
        (stop, _) => panic!("{stop:?}"),
    }
    // The last thread's number leads beyond the memory.
    let text = "
(W)     and (1|M0) r10.0<1>:ud r0.2<0;1,0>:ud 0xFE:uw
(W)     shl (1|M0) r10.0<1>:ud r10.0<0;1,0>:ud 0x10:uw
(W)     add (1|M0) r10.0<1>:ud r10.0<0;1,0>:ud 0x10000:ud
(W)     send.ugm (1|M0) null r10 r10:1 0x0 0x02000504
";
    match run(text, u64::MAX) {
        (GroupStop::Fault(place, fault), _) => {
            assert_eq!((place.thread, place.lane), (2, Some(0)));
            assert_eq!(fault.access.map(|access| (access.kind, access.address)), Some((AccessKind::Write, 0x3_0000)));
        }
        (stop, _) => panic!("{stop:?}"),
    }
}
