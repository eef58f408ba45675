// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The interpreter as a device model embeds it: with memory of its own that is neither shared nor `Sync`, that tiles its images,
//! counts what accesses cost and names faults. Without the features `launch` and `program`.

mod accesses;
mod code;
mod exceptions;
mod groups;
mod images;

use std::cell::Cell;
use std::rc::Rc;

use arctic_eu::exec::memory::{
    Access, Atomic, Channel, ChannelOrder, Component, Dimensions, Image, ImageFormat, Levels, Memory, Sampler, Surface,
};
use arctic_eu::exec::{self, Budget, Environment, FaultKind, Group, Host, MemoryFault, Program, Stop, Thread, Way};
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
        if at + size > self.bytes.len() { Err(fault) } else { Ok(Some(at)) }
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
            cube: false,
            levels: Levels::ONE,
            format: ImageFormat { order: ChannelOrder::R, channel: self.channel },
            components: Component::COLOR,
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
