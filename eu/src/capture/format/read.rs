// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Reads and checks the values of a capture's file, which is untrusted.

use std::collections::BTreeMap;

use super::super::{
    ADDRESS, CapturedEnd, CapturedImage, CapturedLaunch, CapturedSurface, Content, EndPlace, EndReason, MOST_SLM,
    MOST_THREADS, Origin, PAGE_BYTES, Page, PageName, Planes, SamplerName, SurfaceName, Tile,
};
use super::{
    ADDRESSING_MODES, CHANNELS, COMPARISONS, COMPONENTS, CaptureError, DIMENSIONS, LEVEL_FILTERS, ORDERS, REDUCTIONS,
    flag,
};
use crate::exec::memory::{
    Addressing, Component, Filter, Image, ImageFormat, Levels, MipLayout, Sampler, SurfaceMemory,
};
use crate::exec::payload::{Dispatch, Header, LocalIds, Payload};
use crate::exec::{CODE_LIMIT, thread};

/// Reads values of a section.
pub struct Reader<'b> {
    pub section: &'static str,
    pub rest: &'b [u8],
}

pub type Read<T> = Result<T, CaptureError>;

impl<'b> Reader<'b> {
    pub fn bytes(&mut self, count: usize) -> Read<&'b [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or(CaptureError::Short(self.section))?;
        self.rest = rest;
        Ok(bytes)
    }

    pub fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(CaptureError::Short(self.section))?;
        self.rest = rest;
        Ok(*bytes)
    }

    pub fn u8(&mut self) -> Read<u8> {
        self.array().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Read<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Read<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Read<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn u32s<const N: usize>(&mut self) -> Read<[u32; N]> {
        let mut values = [0; N];
        for value in &mut values {
            *value = self.u32()?;
        }
        Ok(values)
    }

    pub fn error(&self, what: &'static str, value: impl Into<u64>) -> CaptureError {
        CaptureError::Value { section: self.section, what, value: value.into() }
    }

    /// A value that `is_valid` accepts.
    pub fn valid<T: Copy + Into<u64>>(&self, what: &'static str, value: T, is_valid: impl Fn(T) -> bool) -> Read<T> {
        if is_valid(value) { Ok(value) } else { Err(self.error(what, value)) }
    }

    pub fn flag(&mut self, what: &'static str) -> Read<bool> {
        let value = self.u8()?;
        self.valid(what, value, |value| value < 2).map(|value| value == 1)
    }

    pub fn flags<const N: usize>(&mut self, what: &'static str) -> Read<[bool; N]> {
        let value = self.u8()?;
        self.valid(what, value, |value| u32::from(value) < 1 << N)?;
        Ok(std::array::from_fn(|bit| value >> bit & 1 != 0))
    }

    pub fn of<T: Copy>(&mut self, what: &'static str, table: &[T]) -> Read<T> {
        let value = self.u8()?;
        table.get(usize::from(value)).copied().ok_or_else(|| self.error(what, value))
    }

    pub fn optional(&mut self, what: &'static str) -> Read<Option<u32>> {
        let is_some = self.flag(what)?;
        let value = self.u32()?;
        self.valid(what, value, |value| is_some || value == 0).map(|value| is_some.then_some(value))
    }

    pub fn address(&mut self, what: &'static str) -> Read<u64> {
        let value = self.u64()?;
        self.valid(what, value, |value| value <= ADDRESS)
    }

    /// All of the section.
    pub fn complete<T>(mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        let value = read(&mut self)?;
        if self.rest.is_empty() { Ok(value) } else { Err(CaptureError::Long(self.section)) }
    }

    /// Values up to the end of the section.
    pub fn list<T>(mut self, read: impl Fn(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let mut list = Vec::new();
        while !self.rest.is_empty() {
            list.push(read(&mut self)?);
        }
        Ok(list)
    }

    /// Values with different names up to the end of the section.
    pub fn names<K: Ord, T>(self, read: impl Fn(&mut Self) -> Read<(K, T)>) -> Read<BTreeMap<K, T>> {
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

    pub fn origin(&mut self) -> Read<Origin> {
        let function = self.u8()?;
        let number = self.u64()?;
        let engine = self.bytes(self.rest.len())?;
        let is_name = engine.len() < 32 && engine.iter().all(u8::is_ascii_graphic);
        self.valid("the length of the engine's name", engine.len() as u64, |_| is_name)?;
        Ok(Origin { function, number, engine: String::from_utf8_lossy(engine).into_owned() })
    }

    pub fn launch(&mut self) -> Read<CapturedLaunch> {
        let [simd, threads, last_mask] = self.u32s()?;
        self.valid("the lanes of a thread", simd, |simd| matches!(simd, 8 | 16 | 32))?;
        self.valid("the threads of a group", threads, |threads| threads <= MOST_THREADS)?;
        let [indirect, sampler, bindings, scratch] = self.u32s()?;
        let ids = if self.flag("the presence of local ids")? {
            let local = self.u32s()?;
            let order = self.u32s()?;
            for axis in order {
                self.valid("a direction", axis, |axis| axis < 3)?;
            }
            let emitted = self.flags("the ids that are emitted")?;
            let registers = self.u32()?;
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
        let instruction_base = self.address("the instruction base")?;
        let kernel = self.u32()?;
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
        let start = self.u32s()?;
        let end = self.u32s()?;
        let order = self.array()?;
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

    pub fn surface(&mut self) -> Read<(SurfaceName, CapturedSurface)> {
        let kind = self.u8()?;
        let value = self.u32()?;
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

    pub fn image(&mut self) -> Read<Image> {
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

    pub fn planes(&mut self) -> Read<Planes> {
        let base = self.u64()?;
        let pitch = self.u64()?;
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

    pub fn sampler(&mut self) -> Read<(SamplerName, Option<Sampler>)> {
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
        let level = [self.u16()?, self.u16()?];
        let border = self.u32s()?;
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

    pub fn filter(&mut self) -> Read<Filter> {
        let [linear, x, y, z, anisotropic] = self.flags("a filter")?;
        Ok(Filter { linear, rounding: [x, y, z], anisotropic })
    }

    pub fn pages(self) -> Read<BTreeMap<PageName, Page>> {
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

    pub fn page(&mut self) -> Read<(PageName, Page)> {
        let address = self.address("the address of a page")?;
        let flags = self.u8()?;
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
        let mut content = |has_bytes: bool| {
            if has_bytes { self.array().map(|bytes| Content::Bytes(Box::new(bytes))) } else { Ok(Content::Zeros) }
        };
        let before = content(has(flag::BEFORE_BYTES))?;
        let is_changed = has(flag::AFTER_ZEROS | flag::AFTER_BYTES);
        let after = if is_changed { Some(content(has(flag::AFTER_BYTES))?) } else { None };
        Ok((name, Page::Memory { before, after }))
    }

    pub fn end(&mut self) -> Read<CapturedEnd> {
        let groups = self.u64()?;
        let instructions = self.u64()?;
        let kind = self.u8()?;
        let reason = match kind {
            0 => EndReason::Complete,
            1 => EndReason::Fault(self.place()?),
            2 => EndReason::Barrier(self.place()?),
            _ => return Err(self.error("the reason of the end", kind)),
        };
        Ok(CapturedEnd { groups, instructions, reason })
    }

    pub fn place(&mut self) -> Read<EndPlace> {
        Ok(EndPlace { group: self.u32s()?, thread: self.u32()?, address: self.u64()? })
    }
}
