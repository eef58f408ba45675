// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Writes the values of a capture's file.

use super::super::{
    CapturedEnd, CapturedImage, CapturedLaunch, CapturedSurface, Content, EndPlace, EndReason, Page, PageName, Planes,
    SamplerName, SurfaceName, Tile,
};
use super::{ADDRESSING_MODES, CHANNELS, COMPARISONS, COMPONENTS, DIMENSIONS, LEVEL_FILTERS, ORDERS, REDUCTIONS, flag};
use crate::exec::memory::{Filter, Image, Levels, Sampler, SurfaceMemory};
use crate::exec::payload::{Dispatch, LocalIds};

/// The number of a value in its table, which has all of them.
fn number<T: PartialEq>(table: &[T], value: &T) -> u8 {
    let position = table.iter().position(|other| other == value);
    debug_assert!(position.is_some(), "the table has all values");
    position.unwrap_or(0) as u8
}

/// Writes values.
pub struct Writer(pub Vec<u8>);

impl Writer {
    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub fn u16(&mut self, value: u16) {
        self.0.extend(value.to_le_bytes());
    }

    pub fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    pub fn u32s(&mut self, values: &[u32]) {
        values.iter().for_each(|value| self.u32(*value));
    }

    pub fn flags(&mut self, flags: &[bool]) {
        self.u8(flags.iter().rev().fold(0, |sum, flag| sum << 1 | u8::from(*flag)));
    }

    /// A section: its name, its length, and what `content` writes.
    pub fn section(&mut self, name: &str, content: impl FnOnce(&mut Writer)) {
        self.0.extend(name.as_bytes());
        let at = self.0.len();
        self.u64(0);
        content(self);
        let len = (self.0.len() - at - 8) as u64;
        self.0[at..at + 8].copy_from_slice(&len.to_le_bytes());
    }

    pub fn optional(&mut self, value: Option<u32>) {
        self.u8(value.is_some().into());
        self.u32(value.unwrap_or(0));
    }

    pub fn launch(&mut self, launch: &CapturedLaunch) {
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

    pub fn surface(&mut self, name: SurfaceName, surface: &CapturedSurface) {
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

    pub fn image(&mut self, image: &Image) {
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

    pub fn planes(&mut self, planes: &Planes) {
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

    pub fn sampler(&mut self, name: SamplerName, sampler: &Option<Sampler>) {
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

    pub fn page(&mut self, name: PageName, page: &Page) {
        let mut flags = if name.compressed { flag::COMPRESSED } else { 0 };
        let mut before = None;
        let mut after = None;
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

    pub fn end(&mut self, end: &CapturedEnd) {
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
