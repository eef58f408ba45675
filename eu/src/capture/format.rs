// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Files of captures, as `docs/capture.md` describes them: sections of little-endian values. Files are untrusted.

use std::collections::BTreeMap;

use thiserror::Error;

use super::{
    ADDRESS, Capture, CapturedEnd, CapturedImage, CapturedLaunch, CapturedSurface, Content, EndPlace, EndReason,
    MOST_SLM, MOST_THREADS, Origin, PAGE_BYTES, Page, PageName, Planes, SamplerName, SurfaceName, Tile,
};
use crate::exec::memory::{
    Addressing, Channel, ChannelOrder, Comparison, Component, Dimensions, Filter, Image, ImageFormat, LevelFilter,
    Levels, MipLayout, Reduction, Sampler, SurfaceMemory,
};
use crate::exec::payload::{Dispatch, Header, LocalIds, Payload};
use crate::exec::{CODE_LIMIT, thread};

/// First bytes of a file.
pub const MAGIC: [u8; 16] = *b"\x89EU-WALKER\r\n\x1a\n\0\0";
/// Version of the format.
pub const VERSION: u32 = 2;

/// Why a file is no capture.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CaptureError {
    /// The first bytes are others.
    #[error("the file is no captured walker")]
    Magic,
    /// Another version.
    #[error("the capture has version {0} of the format, and this program reads version {VERSION}")]
    Version(u32),
    /// The file ends inside of a section.
    #[error("the file ends in the section {0}: it was not written to its end")]
    End(String),
    /// The section is too short for what it has.
    #[error("the section {0} is too short for what it has to have")]
    Short(&'static str),
    /// Bytes are left in the section.
    #[error("the section {0} has bytes behind its end")]
    Long(&'static str),
    /// A section that every capture has.
    #[error("the section {0} is missing")]
    Missing(&'static str),
    /// A section that is in the file twice.
    #[error("the section {0} is in the file twice")]
    Twice(&'static str),
    /// A value without a meaning.
    #[error("the section {section} has the value {value:#x} for {what}, which has no meaning")]
    Value {
        /// Section.
        section: &'static str,
        /// What has the value.
        what: &'static str,
        /// The value.
        value: u64,
    },
}

const ORIGIN: &str = "ORIG";
const COMMANDS: &str = "CMDS";
const WALKER: &str = "WALK";
const LAUNCH: &str = "EXEC";
const SURFACES: &str = "SURF";
const SAMPLERS: &str = "SAMP";
const PAGES: &str = "PAGE";
const END: &str = "ENDS";
const SECTIONS: [&str; 8] = [ORIGIN, COMMANDS, WALKER, LAUNCH, SURFACES, SAMPLERS, PAGES, END];

// Values by their number in the file.
const ORDERS: [ChannelOrder; 10] = [
    ChannelOrder::R,
    ChannelOrder::Rg,
    ChannelOrder::Rgba,
    ChannelOrder::Bgra,
    ChannelOrder::Srgba,
    ChannelOrder::Sbgra,
    ChannelOrder::A,
    ChannelOrder::Intensity,
    ChannelOrder::Luminance,
    ChannelOrder::Depth,
];
const CHANNELS: [Channel; 12] = [
    Channel::Unorm8,
    Channel::Unorm16,
    Channel::Snorm8,
    Channel::Snorm16,
    Channel::Uint8,
    Channel::Uint16,
    Channel::Uint32,
    Channel::Sint8,
    Channel::Sint16,
    Channel::Sint32,
    Channel::Float16,
    Channel::Float32,
];
const COMPONENTS: [Component; 6] =
    [Component::Zero, Component::One, Component::Red, Component::Green, Component::Blue, Component::Alpha];
const DIMENSIONS: [Dimensions; 3] = [Dimensions::One, Dimensions::Two, Dimensions::Three];
const ADDRESSING_MODES: [Addressing; 8] = [
    Addressing::Wrap,
    Addressing::Mirror,
    Addressing::Clamp,
    Addressing::Border,
    Addressing::MirrorOnce,
    Addressing::HalfBorder,
    Addressing::Cube,
    Addressing::MirrorEdge,
];
const LEVEL_FILTERS: [LevelFilter; 3] = [LevelFilter::None, LevelFilter::Nearest, LevelFilter::Linear];
const COMPARISONS: [Comparison; 8] = [
    Comparison::Always,
    Comparison::Never,
    Comparison::Less,
    Comparison::Equal,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::NotEqual,
    Comparison::GreaterOrEqual,
];
const REDUCTIONS: [Reduction; 3] = [Reduction::Mean, Reduction::Minimum, Reduction::Maximum];

/// Flags of a page.
mod flag {
    pub const COMPRESSED: u8 = 1 << 0;
    pub const NULL: u8 = 1 << 1;
    pub const BEFORE_BYTES: u8 = 1 << 2;
    pub const AFTER_ZEROS: u8 = 1 << 3;
    pub const AFTER_BYTES: u8 = 1 << 4;
    pub const ALL: u8 = 0x1f;
}

impl Capture {
    /// Returns whether a file is a capture, by its first bytes.
    pub fn is_file(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC)
    }

    /// The bytes of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut file = Writer(Vec::with_capacity(self.content_bytes() + 32 * self.pages.len() + 4096));
        file.0.extend(MAGIC);
        file.u32(VERSION);
        file.section(ORIGIN, |out| {
            out.u8(self.origin.function);
            out.u64(self.origin.number);
            out.0.extend(self.origin.engine.as_bytes());
        });
        file.section(COMMANDS, |out| self.commands.iter().for_each(|dword| out.u32(*dword)));
        file.section(WALKER, |out| self.walker.iter().for_each(|dword| out.u32(*dword)));
        file.section(LAUNCH, |out| out.launch(&self.launch));
        file.section(SURFACES, |out| self.surfaces.iter().for_each(|(name, surface)| out.surface(*name, surface)));
        file.section(SAMPLERS, |out| self.samplers.iter().for_each(|(name, sampler)| out.sampler(*name, sampler)));
        file.section(PAGES, |out| self.pages.iter().for_each(|(name, page)| out.page(*name, page)));
        file.section(END, |out| out.end(&self.end));
        file.0
    }

    /// Bytes of the contents of all pages in a file.
    fn content_bytes(&self) -> usize {
        let bytes = |content: &Content| if matches!(content, Content::Zeros) { 0 } else { PAGE_BYTES };
        let pages = self.pages.values().map(|page| match page {
            Page::Null => 0,
            Page::Memory { before, after } => bytes(before) + after.as_ref().map_or(0, bytes),
        });
        pages.sum()
    }

    /// Reads a file. Sections that this version does not know are passed over.
    ///
    /// # Errors
    /// If it is no capture, or is damaged.
    pub fn parse(bytes: &[u8]) -> Result<Capture, CaptureError> {
        let rest = bytes.strip_prefix(&MAGIC).ok_or(CaptureError::Magic)?;
        let mut file = Reader { section: "HEAD", rest };
        let version = file.u32()?;
        if version != VERSION {
            return Err(CaptureError::Version(version));
        }
        let mut sections: [Option<&[u8]>; SECTIONS.len()] = [None; SECTIONS.len()];
        while !file.rest.is_empty() {
            let tag = file.bytes(4)?;
            let name = || String::from_utf8_lossy(tag).into_owned();
            let len = file.u64().map_err(|_| CaptureError::End(name()))?;
            let len = usize::try_from(len).ok().filter(|len| *len <= file.rest.len());
            let content = file.bytes(len.ok_or_else(|| CaptureError::End(name()))?)?;
            if let Some(at) = SECTIONS.iter().position(|section| section.as_bytes() == tag)
                && sections[at].replace(content).is_some()
            {
                return Err(CaptureError::Twice(SECTIONS[at]));
            }
        }
        let mut readers = SECTIONS.into_iter().zip(sections);
        let mut next = || -> Result<Reader<'_>, CaptureError> {
            let (section, content) = readers.next().unwrap_or((END, None));
            Ok(Reader { section, rest: content.ok_or(CaptureError::Missing(section))? })
        };
        Ok(Capture {
            origin: next()?.complete(Reader::origin)?,
            commands: next()?.list(Reader::u32)?,
            walker: next()?.list(Reader::u32)?,
            launch: next()?.complete(Reader::launch)?,
            surfaces: next()?.names(Reader::surface)?.into_iter().collect(),
            samplers: next()?.names(Reader::sampler)?.into_iter().collect(),
            pages: next()?.pages()?,
            end: next()?.complete(Reader::end)?,
        })
    }
}

/// The number of a value in its table, which has all of them.
fn number<T: PartialEq>(table: &[T], value: &T) -> u8 {
    table.iter().position(|other| other == value).unwrap_or(0) as u8
}

/// Writes values.
struct Writer(Vec<u8>);

impl Writer {
    fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    fn u16(&mut self, value: u16) {
        self.0.extend(value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    fn u32s(&mut self, values: &[u32]) {
        values.iter().for_each(|value| self.u32(*value));
    }

    fn flags(&mut self, flags: &[bool]) {
        self.u8(flags.iter().rev().fold(0, |sum, flag| sum << 1 | u8::from(*flag)));
    }

    /// A section: its name, its length, and what `content` writes.
    fn section(&mut self, name: &str, content: impl FnOnce(&mut Writer)) {
        self.0.extend(name.as_bytes());
        let at = self.0.len();
        self.u64(0);
        content(self);
        let len = (self.0.len() - at - 8) as u64;
        self.0[at..at + 8].copy_from_slice(&len.to_le_bytes());
    }

    fn optional(&mut self, value: Option<u32>) {
        self.u8(value.is_some().into());
        self.u32(value.unwrap_or(0));
    }

    fn launch(&mut self, launch: &CapturedLaunch) {
        let Dispatch { simd, threads, last_mask, header, ids, inline, cr0, exceptions } = &launch.dispatch;
        self.u32s(&[*simd, *threads, *last_mask]);
        self.u32s(&[header.indirect, header.sampler, header.bindings, header.scratch]);
        self.u8(ids.is_some().into());
        if let Some(LocalIds { local, order, emitted, registers }) = ids {
            self.u32s(local);
            self.u32s(order);
            self.flags(emitted);
            self.u32(*registers);
        }
        self.u8(inline.is_some().into());
        self.0.extend(inline.iter().flatten());
        self.u32s(cr0);
        self.u8((*exceptions).into());
        self.u32s(&[launch.registers, launch.slm]);
        self.u64(launch.instruction_base);
        self.u32(launch.kernel);
        self.optional(launch.system_routine);
        self.u32(launch.code_limit);
        self.u64(launch.general_base);
        self.u8(launch.first.is_some().into());
        self.u32s(&launch.first.unwrap_or_default());
        self.u32s(&launch.start);
        self.u32s(&launch.end);
        self.0.extend(launch.order);
    }

    fn surface(&mut self, name: SurfaceName, surface: &CapturedSurface) {
        let (kind, value) = match name {
            SurfaceName::Binding(index) => (0, u32::from(index)),
            SurfaceName::Bindless(offset) => (1, offset),
            SurfaceName::State(offset) => (2, offset),
        };
        self.u8(kind);
        self.u32(value);
        self.u64(surface.address);
        let (kind, values) = match surface.memory {
            SurfaceMemory::Null => (0, [0; 3]),
            SurfaceMemory::Buffer { base, bytes } => (1, [base, bytes, 0]),
            SurfaceMemory::Scratch { base, pitch, threads } => (2, [base, pitch, threads]),
            SurfaceMemory::Texels => (3, [0; 3]),
        };
        self.u8(kind);
        values.iter().for_each(|value| self.u64(*value));
        match &surface.image {
            CapturedImage::None => self.u8(0),
            CapturedImage::Unsupported => self.u8(1),
            CapturedImage::Null(image) => {
                self.u8(2);
                self.image(image);
            }
            CapturedImage::Texels(image, planes) => {
                self.u8(3);
                self.image(image);
                self.planes(planes);
            }
        }
    }

    fn image(&mut self, image: &Image) {
        self.u64(image.base);
        self.u32s(&[image.width, image.height, image.depth]);
        self.u64(image.pitch);
        self.u64(image.slice);
        self.u8(number(&DIMENSIONS, &image.dimensions));
        self.u8(image.array.into());
        self.u8(number(&ORDERS, &image.format.order));
        self.u8(number(&CHANNELS, &image.format.channel));
        image.components.iter().for_each(|component| self.u8(number(&COMPONENTS, component)));
        self.u8(image.cube.into());
        let Levels { number, count, least } = image.levels;
        self.u8(number);
        self.u8(count);
        self.u16(least);
    }

    fn planes(&mut self, planes: &Planes) {
        self.u64(planes.base);
        self.u64(planes.pitch);
        self.u32s(&[planes.texel_bytes, planes.rows, planes.first, planes.corner[0], planes.corner[1]]);
        self.u32s(&planes.mips.size);
        self.u32s(&planes.mips.align);
        self.u8(planes.mips.in_line.into());
        self.u8(planes.compressed.into());
        self.u8(planes.tile.is_some().into());
        if let Some(Tile { columns, rows, slices }) = planes.tile {
            self.u32s(&[columns, rows, slices]);
        }
    }

    fn sampler(&mut self, name: SamplerName, sampler: &Option<Sampler>) {
        self.optional(name.pointer);
        self.u8(name.index);
        self.u8(sampler.is_some().into());
        if let Some(sampler) = sampler {
            let Sampler { addressing, magnify, minify, normalized, level, border, .. } = sampler;
            addressing.iter().for_each(|mode| self.u8(number(&ADDRESSING_MODES, mode)));
            for Filter { linear, rounding: [x, y, z], anisotropic } in [magnify, minify] {
                self.flags(&[*linear, *x, *y, *z, *anisotropic]);
            }
            self.u8((*normalized).into());
            level.iter().for_each(|level| self.u16(*level));
            self.u32s(border);
            self.u8(number(&LEVEL_FILTERS, &sampler.levels));
            self.flags(&[sampler.clamps_first, sampler.overrides_cubes]);
            self.u16(sampler.bias.cast_unsigned());
            self.u8(sampler.anisotropy);
            self.u8(number(&COMPARISONS, &sampler.comparison));
            self.u8(number(&REDUCTIONS, &sampler.reduction));
        }
    }

    fn page(&mut self, name: PageName, page: &Page) {
        let mut flags = if name.compressed { flag::COMPRESSED } else { 0 };
        let (mut before, mut after) = (None, None);
        match page {
            Page::Null => flags |= flag::NULL,
            Page::Memory { before: first, after: last } => {
                if let Content::Bytes(bytes) = first {
                    flags |= flag::BEFORE_BYTES;
                    before = Some(bytes);
                }
                match last {
                    None => {}
                    Some(Content::Zeros) => flags |= flag::AFTER_ZEROS,
                    Some(Content::Bytes(bytes)) => {
                        flags |= flag::AFTER_BYTES;
                        after = Some(bytes);
                    }
                }
            }
        }
        self.u64(name.address);
        self.u8(flags);
        [before, after].into_iter().flatten().for_each(|bytes| self.0.extend(bytes.as_slice()));
    }

    fn end(&mut self, end: &CapturedEnd) {
        self.u64(end.groups);
        self.u64(end.instructions);
        let (kind, place) = match end.reason {
            EndReason::Complete => (0, None),
            EndReason::Fault(place) => (1, Some(place)),
            EndReason::Barrier(place) => (2, Some(place)),
        };
        self.u8(kind);
        if let Some(EndPlace { group, thread, address }) = place {
            self.u32s(&group);
            self.u32(thread);
            self.u64(address);
        }
    }
}

/// Reads values of a section.
struct Reader<'b> {
    section: &'static str,
    rest: &'b [u8],
}

type Read<T> = Result<T, CaptureError>;

impl<'b> Reader<'b> {
    fn bytes(&mut self, count: usize) -> Read<&'b [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or(CaptureError::Short(self.section))?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(CaptureError::Short(self.section))?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn u8(&mut self) -> Read<u8> {
        self.array().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Read<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Read<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Read<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn u32s<const N: usize>(&mut self) -> Read<[u32; N]> {
        let mut values = [0; N];
        for value in &mut values {
            *value = self.u32()?;
        }
        Ok(values)
    }

    fn error(&self, what: &'static str, value: impl Into<u64>) -> CaptureError {
        CaptureError::Value { section: self.section, what, value: value.into() }
    }

    /// A value that `is_valid` accepts.
    fn valid<T: Copy + Into<u64>>(&self, what: &'static str, value: T, is_valid: impl Fn(T) -> bool) -> Read<T> {
        if is_valid(value) { Ok(value) } else { Err(self.error(what, value)) }
    }

    fn flag(&mut self, what: &'static str) -> Read<bool> {
        let value = self.u8()?;
        self.valid(what, value, |value| value < 2).map(|value| value == 1)
    }

    fn flags<const N: usize>(&mut self, what: &'static str) -> Read<[bool; N]> {
        let value = self.u8()?;
        self.valid(what, value, |value| u32::from(value) < 1 << N)?;
        Ok(std::array::from_fn(|bit| value >> bit & 1 != 0))
    }

    fn of<T: Copy>(&mut self, what: &'static str, table: &[T]) -> Read<T> {
        let value = self.u8()?;
        table.get(usize::from(value)).copied().ok_or_else(|| self.error(what, value))
    }

    fn optional(&mut self, what: &'static str) -> Read<Option<u32>> {
        let is_some = self.flag(what)?;
        let value = self.u32()?;
        self.valid(what, value, |value| is_some || value == 0).map(|value| is_some.then_some(value))
    }

    fn address(&mut self, what: &'static str) -> Read<u64> {
        let value = self.u64()?;
        self.valid(what, value, |value| value <= ADDRESS)
    }

    /// All of the section.
    fn complete<T>(mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        let value = read(&mut self)?;
        if self.rest.is_empty() { Ok(value) } else { Err(CaptureError::Long(self.section)) }
    }

    /// Values up to the end of the section.
    fn list<T>(mut self, read: impl Fn(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let mut list = Vec::new();
        while !self.rest.is_empty() {
            list.push(read(&mut self)?);
        }
        Ok(list)
    }

    /// Values with different names up to the end of the section.
    fn names<K: Ord, T>(self, read: impl Fn(&mut Self) -> Read<(K, T)>) -> Read<BTreeMap<K, T>> {
        let section = self.section;
        let list = self.list(read)?;
        let count = list.len();
        let names: BTreeMap<K, T> = list.into_iter().collect();
        if names.len() == count {
            Ok(names)
        } else {
            Err(CaptureError::Value {
                section,
                what: "the number of names that are used twice",
                value: (count - names.len()) as u64,
            })
        }
    }

    fn origin(&mut self) -> Read<Origin> {
        let (function, number) = (self.u8()?, self.u64()?);
        let engine = self.bytes(self.rest.len())?;
        let is_name = engine.len() < 32 && engine.iter().all(u8::is_ascii_graphic);
        self.valid("the length of the engine's name", engine.len() as u64, |_| is_name)?;
        Ok(Origin { function, number, engine: String::from_utf8_lossy(engine).into_owned() })
    }

    fn launch(&mut self) -> Read<CapturedLaunch> {
        let [simd, threads, last_mask] = self.u32s()?;
        self.valid("the lanes of a thread", simd, |simd| matches!(simd, 8 | 16 | 32))?;
        self.valid("the threads of a group", threads, |threads| threads <= MOST_THREADS)?;
        let [indirect, sampler, bindings, scratch] = self.u32s()?;
        let ids = if self.flag("the presence of local ids")? {
            let (local, order) = (self.u32s()?, self.u32s()?);
            for axis in order {
                self.valid("a direction", axis, |axis| axis < 3)?;
            }
            let (emitted, registers) = (self.flags("the ids that are emitted")?, self.u32()?);
            self.valid("the registers of local ids", registers, |count| count <= Payload::MOST_ID_REGISTERS)?;
            Some(LocalIds { local, order, emitted, registers })
        } else {
            None
        };
        let inline =
            if self.flag("the presence of inline data")? { Some(self.array::<{ thread::REG }>()?) } else { None };
        let (cr0, exceptions) = (self.u32s()?, self.flag("the enable of exceptions")?);
        let header = Header { indirect, sampler, bindings, scratch };
        let [registers, slm] = self.u32s()?;
        self.valid("the registers of a thread", registers, |count| matches!(count, 128 | 256))?;
        self.valid("the bytes of shared local memory", slm, |bytes| bytes <= MOST_SLM)?;
        let (instruction_base, kernel) = (self.address("the instruction base")?, self.u32()?);
        let system_routine = self.optional("the system routine")?;
        let code_limit = self.u32()?;
        self.valid("the limit of code", code_limit, |bytes| bytes as usize <= CODE_LIMIT)?;
        let general_base = self.address("the general state base")?;
        let has_first = self.flag("the presence of a first group")?;
        let first: [u32; 3] = self.u32s()?;
        for id in first {
            self.valid("an unused value", id, |id| has_first || id == 0)?;
        }
        let first = has_first.then_some(first);
        let (start, end, order) = (self.u32s()?, self.u32s()?, self.array()?);
        for axis in order {
            self.valid("a direction", axis, |axis| axis < 3)?;
        }
        let dispatch = Dispatch { simd, threads, last_mask, header, ids, inline, cr0, exceptions };
        Ok(CapturedLaunch {
            dispatch,
            registers,
            slm,
            instruction_base,
            kernel,
            system_routine,
            code_limit,
            general_base,
            first,
            start,
            end,
            order,
        })
    }

    fn surface(&mut self) -> Read<(SurfaceName, CapturedSurface)> {
        let (kind, value) = (self.u8()?, self.u32()?);
        let name = match kind {
            0 => SurfaceName::Binding(u8::try_from(value).map_err(|_| self.error("a binding", value))?),
            1 => SurfaceName::Bindless(value),
            2 => SurfaceName::State(value),
            _ => return Err(self.error("the kind of a name", kind)),
        };
        let address = self.address("the address of a surface state")?;
        let kind = self.u8()?;
        let [first, second, third] = [self.u64()?, self.u64()?, self.u64()?];
        let used = match kind {
            0 | 3 => 0,
            1 => 2,
            _ => 3,
        };
        for value in [first, second, third].into_iter().skip(used) {
            self.valid("an unused value", value, |value| value == 0)?;
        }
        let memory = match kind {
            0 => SurfaceMemory::Null,
            1 => SurfaceMemory::Buffer { base: first, bytes: second },
            2 => SurfaceMemory::Scratch { base: first, pitch: second, threads: third },
            3 => SurfaceMemory::Texels,
            _ => return Err(self.error("the kind of a surface's memory", kind)),
        };
        let kind = self.u8()?;
        let image = match kind {
            0 => CapturedImage::None,
            1 => CapturedImage::Unsupported,
            2 => CapturedImage::Null(self.image()?),
            3 => CapturedImage::Texels(self.image()?, self.planes()?),
            _ => return Err(self.error("the kind of an image", kind)),
        };
        Ok((name, CapturedSurface { address, memory, image }))
    }

    fn image(&mut self) -> Read<Image> {
        let base = self.u64()?;
        let [width, height, depth] = self.u32s()?;
        let distances = (self.u64()?, self.u64()?);
        let dimensions = self.of("the dimensions of an image", &DIMENSIONS)?;
        let array = self.flag("an array")?;
        let order = self.of("the order of channels", &ORDERS)?;
        let channel = self.of("a channel", &CHANNELS)?;
        let mut components = Component::COLOR;
        for component in &mut components {
            *component = self.of("a component", &COMPONENTS)?;
        }
        let format = ImageFormat { order, channel };
        let cube = self.flag("a cube")?;
        let levels = Levels { number: self.u8()?, count: self.u8()?, least: self.u16()? };
        self.valid("the number of levels", levels.count, |count| (1..=MipLayout::MOST).contains(&count))?;
        let (pitch, slice) = distances;
        Ok(Image {
            base,
            width,
            height,
            depth,
            pitch,
            slice,
            dimensions,
            array,
            cube,
            levels,
            format,
            components,
            handle: 0,
        })
    }

    fn planes(&mut self) -> Read<Planes> {
        let (base, pitch) = (self.u64()?, self.u64()?);
        let [texel_bytes, rows, first, column, row] = self.u32s()?;
        self.valid("the bytes of a texel", texel_bytes, |bytes| (1..=16).contains(&bytes))?;
        let mips = MipLayout { size: self.u32s()?, align: self.u32s()?, in_line: self.flag("levels in a line")? };
        self.valid("the alignment of levels", mips.align[0], |_| mips.is_valid())?;
        let compressed = self.flag("compression")?;
        let tile = if self.flag("the presence of tiles")? {
            let [columns, rows, slices] = self.u32s()?;
            let tile = Tile { columns, rows, slices };
            self.valid("the bits of a tile's columns", columns, |_| tile.is_valid())?;
            Some(tile)
        } else {
            None
        };
        Ok(Planes { base, pitch, texel_bytes, rows, first, corner: [column, row], mips, tile, compressed })
    }

    fn sampler(&mut self) -> Read<(SamplerName, Option<Sampler>)> {
        let name = SamplerName { pointer: self.optional("the pointer of a sampler")?, index: self.u8()? };
        if !self.flag("the presence of a sampler")? {
            return Ok((name, None));
        }
        let mut addressing = [Addressing::Wrap; 3];
        for mode in &mut addressing {
            *mode = self.of("the addressing of a sampler", &ADDRESSING_MODES)?;
        }
        let [magnify, minify] = [self.filter()?, self.filter()?];
        let normalized = self.flag("normalized coordinates")?;
        let (level, border) = ([self.u16()?, self.u16()?], self.u32s()?);
        let levels = self.of("the filter of levels", &LEVEL_FILTERS)?;
        let [clamps_first, overrides_cubes] = self.flags("the bounds of levels")?;
        let bias = self.u16()?.cast_signed();
        let anisotropy = self.u8()?;
        self.valid("the anisotropy", anisotropy, |ratio| (2..=16).contains(&ratio))?;
        let comparison = self.of("a comparison", &COMPARISONS)?;
        let reduction = self.of("a reduction", &REDUCTIONS)?;
        let sampler = Sampler {
            addressing,
            magnify,
            minify,
            levels,
            normalized,
            level,
            clamps_first,
            bias,
            anisotropy,
            comparison,
            reduction,
            overrides_cubes,
            border,
        };
        Ok((name, Some(sampler)))
    }

    fn filter(&mut self) -> Read<Filter> {
        let [linear, x, y, z, anisotropic] = self.flags("a filter")?;
        Ok(Filter { linear, rounding: [x, y, z], anisotropic })
    }

    fn pages(self) -> Read<BTreeMap<PageName, Page>> {
        let section = self.section;
        let pages = self.names(Reader::page)?;
        let both = pages.keys().zip(pages.keys().skip(1)).find(|(one, other)| one.address == other.address);
        match both {
            None => Ok(pages),
            Some((page, _)) => Err(CaptureError::Value {
                section,
                what: "an address with and without compression",
                value: page.address,
            }),
        }
    }

    fn page(&mut self) -> Read<(PageName, Page)> {
        let (address, flags) = (self.address("the address of a page")?, self.u8()?);
        self.valid("the address of a page", address, |address| address.is_multiple_of(PAGE_BYTES as u64))?;
        let has = |bit: u8| flags & bit != 0;
        let contents = has(flag::BEFORE_BYTES | flag::AFTER_ZEROS | flag::AFTER_BYTES);
        let is_valid = flags & !flag::ALL == 0
            && !(has(flag::NULL) && contents)
            && !(has(flag::AFTER_ZEROS) && has(flag::AFTER_BYTES));
        self.valid("the flags of a page", flags, |_| is_valid)?;
        let name = PageName { address, compressed: has(flag::COMPRESSED) };
        if has(flag::NULL) {
            return Ok((name, Page::Null));
        }
        let mut content = |bytes: bool| match bytes {
            false => Ok(Content::Zeros),
            true => self.array().map(|bytes| Content::Bytes(Box::new(bytes))),
        };
        let before = content(has(flag::BEFORE_BYTES))?;
        let after = match has(flag::AFTER_ZEROS | flag::AFTER_BYTES) {
            true => Some(content(has(flag::AFTER_BYTES))?),
            false => None,
        };
        Ok((name, Page::Memory { before, after }))
    }

    fn end(&mut self) -> Read<CapturedEnd> {
        let (groups, instructions, kind) = (self.u64()?, self.u64()?, self.u8()?);
        let reason = match kind {
            0 => EndReason::Complete,
            1 => EndReason::Fault(self.place()?),
            2 => EndReason::Barrier(self.place()?),
            _ => return Err(self.error("the reason of the end", kind)),
        };
        Ok(CapturedEnd { groups, instructions, reason })
    }

    fn place(&mut self) -> Read<EndPlace> {
        Ok(EndPlace { group: self.u32s()?, thread: self.u32()?, address: self.u64()? })
    }
}
