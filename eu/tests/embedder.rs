// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The interpreter as a device model embeds it: with memory of its own that is neither shared nor `Sync`, that tiles its images,
//! counts what accesses cost and names faults. Without the features `launch` and `program`.

use std::cell::Cell;
use std::rc::Rc;

use arctic_eu::exec::memory::{
    Access, Atomic, Channel, ChannelOrder, Dimensions, Image, ImageFormat, Memory, Sampler, Surface,
};
use arctic_eu::exec::{
    self, AccessKind, Budget, Code, Environment, Fault, FaultAccess, FaultKind, Group, Host, MESSAGE_COST, MemoryFault,
    Stop, Thread, Way,
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
}

/// Handle of the image.
const HANDLE: u64 = 0x1234_5678_9abc_def0;

impl Page {
    fn new() -> Page {
        Page { bytes: (0..SIZE).map(|index| (index * 7) as u8).collect(), cost: 0, accesses: Rc::default() }
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
            format: ImageFormat { order: ChannelOrder::R, channel: Channel::Uint8 },
            handle: HANDLE,
        })
    }

    fn sampler(&mut self, _: Option<u32>, _: u8) -> Result<Sampler, MemoryFault> {
        Err(FaultKind::Surface.into())
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
    let code = Code::translate(&code(&format!("{text}\n{END}")), 0, 128, Host::Portable);
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
    let program = Code::translate(&code(&format!("{text}{END}")), 0, 128, Host::Portable);
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
