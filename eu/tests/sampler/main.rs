// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Messages to the sampler on images with levels, array elements and cubes, against plain computations in double precision.

mod anisotropy;
mod bounds;
mod compare;
mod cubes;
mod gather;
mod levels;

use std::cell::Cell;

use arctic_eu::exec::memory::{
    Access, Addressing, Atomic, Channel, ChannelOrder, Component, Dimensions, Image, ImageFormat, Levels, Memory,
    Sampler, Surface,
};
use arctic_eu::exec::{self, Budget, Environment, FaultKind, Group, Host, MemoryFault, Program, Stop, Thread, Way};
use arctic_eu::text::assemble;

const END: &str = "(W) send.gtwy (1|M0) null r127 null:0 0x0 0x02000010 {EOT}\n";
/// Lanes of a message.
const LANES: usize = 8;
/// Register of the first parameter, behind that of the header, and of the result.
const PAYLOAD: usize = 11;
const RESULT: usize = 60;

/// An image of four floats per texel, of which each level has its own texels.
struct Picture {
    image: Image,
    sampler: Sampler,
    /// Value of the red component of a texel: level, element or slice, row, column.
    red: fn(u8, [u32; 3]) -> f32,
    reads: Cell<u32>,
}

/// A number of 0 to 1 for a texel, different from that of its neighbours.
fn texel_value(level: u8, [x, y, z]: [u32; 3]) -> f32 {
    let mixed = (x * 7919 + y * 104_729 + z * 1_299_709 + u32::from(level) * 15_485_863) % 1009;
    mixed as f32 / 1008.0
}

impl Picture {
    fn new(size: [u32; 3], dimensions: Dimensions, levels: u8) -> Picture {
        let image = Image {
            base: 0,
            width: size[0],
            height: size[1],
            depth: size[2],
            pitch: 0,
            slice: 0,
            dimensions,
            array: false,
            cube: false,
            levels: Levels { count: levels, ..Levels::ONE },
            format: ImageFormat { order: ChannelOrder::Rgba, channel: Channel::Float32 },
            components: Component::COLOR,
            handle: 0,
        };
        let sampler = Sampler::uniform(Addressing::Clamp, false, true);
        Picture { image, sampler, red: texel_value, reads: Cell::new(0) }
    }

    /// A plane of 16 by 8 texels.
    fn plane(levels: u8) -> Picture {
        Picture::new([16, 8, 1], Dimensions::Two, levels)
    }

    /// The components of a texel.
    fn texel(&self, level: u8, at: [u32; 3]) -> [f32; 4] {
        let red = (self.red)(level, at);
        [red, 1.0 - red, red / 2.0, 1.0]
    }

    /// Columns, rows and slices of a level.
    fn size(&self, level: u8) -> [u32; 3] {
        let half = |size: u32| (size >> level).max(1);
        let Image { width, height, depth, array, cube, .. } = self.image;
        [half(width), half(height), if array || cube { depth } else { half(depth) }]
    }

    /// Executes a message with a header for eight lanes, and returns its result or its fault.
    fn send(&mut self, kind: u32, control: u32, parameters: &[[u32; LANES]]) -> Result<[[u32; LANES]; 4], FaultKind> {
        let mut thread = Thread::new(128, 0xff);
        thread.set_grf(PAYLOAD - 1, 2, control);
        for (register, values) in parameters.iter().enumerate() {
            for (lane, value) in values.iter().enumerate() {
                thread.set_grf(PAYLOAD + register, lane, *value);
            }
        }
        let length = parameters.len() as u32 + 1;
        let descriptor = length << 25 | 4 << 20 | 1 << 19 | 1 << 17 | kind << 12;
        let header = PAYLOAD - 1;
        let text = format!("send.smpl (8|M0) r{RESULT} r{header} null:0 0x0 {descriptor:#010X}\n{END}");
        let code = assemble(&text).unwrap_or_else(|errors| panic!("{}", errors.render(&text, "test")));
        let program = Program::translate(&code, 0, 128, Host::Portable);
        let mut group = Group::default();
        let mut environment = Environment::new(self, &mut group);
        match exec::run(&program, &mut thread, &mut environment, Budget::instructions(10), Way::Fast, &mut ()) {
            Stop::End => Ok([0, 1, 2, 3].map(|channel| {
                let lanes = [0, 1, 2, 3, 4, 5, 6, 7];
                lanes.map(|lane| thread.grf(RESULT + channel, lane))
            })),
            Stop::Fault(fault) => Err(fault.kind),
            other => panic!("{text}: {other:?}"),
        }
    }

    /// The colors that a message with parameters that are floats returns.
    fn colors(&mut self, kind: u32, control: u32, parameters: &[[f32; LANES]]) -> [[f32; 4]; LANES] {
        let parameters: Vec<_> = parameters.iter().map(|values| values.map(f32::to_bits)).collect();
        let components = self.send(kind, control, &parameters).unwrap();
        [0, 1, 2, 3, 4, 5, 6, 7].map(|lane| components.map(|values| f32::from_bits(values[lane])))
    }

    /// The color of a point of the plane of a level, by the definition of a linear filter, with addressing to the edge.
    fn linear(&self, level: u8, [u, v]: [f64; 2], layer: u32) -> [f64; 4] {
        let [width, height, _] = self.size(level).map(f64::from);
        let (x, y) = (u * width - 0.5, v * height - 0.5);
        let mut color = [0.0; 4];
        for (row, column) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let weight = |at: f64, upper: i32| if upper == 0 { 1.0 - (at - at.floor()) } else { at - at.floor() };
            let share = weight(x, column) * weight(y, row);
            let place = |at: f64, upper: i32, size: f64| (at.floor() + f64::from(upper)).clamp(0.0, size - 1.0) as u32;
            let texel = self.texel(level, [place(x, column, width), place(y, row, height), layer]);
            for (sum, component) in color.iter_mut().zip(texel) {
                *sum += share * f64::from(component);
            }
        }
        color
    }

    /// The texel of a level at a point.
    fn nearest(&self, level: u8, [u, v]: [f64; 2], layer: u32) -> [f64; 4] {
        let [width, height, _] = self.size(level).map(f64::from);
        let place = |at: f64, size: f64| (at * size).floor().clamp(0.0, size - 1.0) as u32;
        self.texel(level, [place(u, width), place(v, height), layer]).map(f64::from)
    }
}

impl Memory for Picture {
    fn read(&mut self, _: Surface, _: u64, _: usize, _: &mut [u8]) -> Result<Access, MemoryFault> {
        Err(FaultKind::Surface.into())
    }

    fn write(&mut self, _: Surface, _: u64, _: usize, _: &[u8]) -> Result<Access, MemoryFault> {
        Err(FaultKind::Surface.into())
    }

    fn atomic(&mut self, _: Surface, _: u64, _: u32, _: Atomic, _: [u64; 2]) -> Result<Option<u64>, MemoryFault> {
        Err(FaultKind::Surface.into())
    }

    fn image(&mut self, _: Surface) -> Result<Image, MemoryFault> {
        Ok(self.image)
    }

    fn sampler(&mut self, _: Option<u32>, _: u8) -> Result<Sampler, MemoryFault> {
        Ok(self.sampler)
    }

    fn read_texel(&mut self, image: &Image, at: [u32; 3], bytes: &mut [u8]) -> Result<(), MemoryFault> {
        let level = image.levels.number - self.image.levels.number;
        assert!(level < self.image.levels.count, "level {level}");
        let size = self.size(level);
        assert_eq!([image.width, image.height, image.depth], size, "level {level}");
        assert!(at.iter().zip(size).all(|(at, size)| *at < size), "{at:?} of {size:?}");
        self.reads.set(self.reads.get() + 1);
        let texel = self.texel(level, at).map(f32::to_le_bytes);
        bytes.copy_from_slice(&texel.as_flattened()[..bytes.len()]);
        Ok(())
    }
}

/// Panics unless colors are equal but for the eight bits of weights.
fn near(found: [f32; 4], expected: [f64; 4], what: &str) {
    for (found, expected) in found.iter().zip(expected) {
        assert!((f64::from(*found) - expected).abs() < 0.01, "{what}: {found} for {expected}");
    }
}

/// Numbers of 0 to 1 for the lanes.
fn spread(seed: u32) -> [f32; LANES] {
    [0, 1, 2, 3, 4, 5, 6, 7].map(|lane: u32| ((lane * 37 + seed * 61 + 11) % 97) as f32 / 97.0)
}
