// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Texels of images and rows of media blocks: tiled, and compressed by flat CCS (EU-045, EU-085).

use arctic_base::blitter::{Compression, Piece};
use arctic_eu::exec::FaultKind;
use arctic_eu::exec::memory::{Atomic, Image, Memory as _, MemoryFault, Surface};

use super::super::bases::ADDRESS;
use super::super::surfaces::StateName;
use super::super::texels::{Place, Planes, Texels};
use super::KernelMemory;
use crate::blitter::ControlBytes;
use crate::memory::{self, Span, SpanError};

impl<'m> KernelMemory<'_, 'm> {
    /// The image of a surface. Its handle is the index of the surface state, which remains the same during a message.
    pub(super) fn stored_image(&mut self, surface: Surface) -> Result<Image, MemoryFault> {
        let name = StateName::of(surface).ok_or(FaultKind::Surface)?;
        let state = match self.surfaces.find(name) {
            Some(state) => *state,
            None => self.decode(name)?,
        };
        Ok(Image { handle: self.surfaces.index(name).into(), ..state.image?.image })
    }

    /// The texels of an image of the message; `None` for a null surface.
    #[inline]
    fn planes(&self, image: &Image) -> Result<Option<Planes>, MemoryFault> {
        let state = u16::try_from(image.handle).ok().and_then(|index| self.surfaces.state(index));
        match state.ok_or(FaultKind::Surface)?.image?.texels {
            Texels::Null => Ok(None),
            Texels::Planes(planes) => Ok(Some(planes)),
        }
    }

    #[inline]
    pub(super) fn load_texel(&mut self, image: &Image, at: [u32; 3], bytes: &mut [u8]) -> Result<(), MemoryFault> {
        match self.planes(image)? {
            Some(planes) => self.load_place(planes.texel(image.levels.number, at), bytes),
            None => {
                bytes.fill(0);
                Ok(())
            }
        }
    }

    #[inline]
    pub(super) fn store_texel(&mut self, image: &Image, at: [u32; 3], bytes: &[u8]) -> Result<(), MemoryFault> {
        match self.planes(image)? {
            Some(planes) => self.store_place(planes.texel(image.levels.number, at), bytes),
            None => Ok(()),
        }
    }

    /// Applies an operation to a texel of 4 bytes. Compressed memory has none: drivers do not compress images with atomic
    /// operations (Mesa `anv_image.c`), and what the hardware does is not public.
    pub(super) fn update_texel(
        &mut self,
        image: &Image,
        at: [u32; 3],
        operation: Atomic,
        operands: [u64; 2],
    ) -> Result<u64, MemoryFault> {
        let Some(planes) = self.planes(image)? else { return Ok(0) };
        let place = planes.texel(image.levels.number, at);
        if place.compressed {
            return Err(FaultKind::Image.into());
        }
        // An address without a surface is in bounds.
        Ok(self.atomic(Surface::Flat, place.address, 4, operation, operands)?.unwrap_or(0))
    }

    /// Reads bytes of a row of the first plane, from byte `x` on.
    pub(super) fn load_row(&mut self, image: &Image, x: u32, y: u32, bytes: &mut [u8]) -> Result<(), MemoryFault> {
        let Some(planes) = self.planes(image)? else {
            bytes.fill(0);
            return Ok(());
        };
        let (mut x, mut rest) = (u64::from(x), bytes);
        while !rest.is_empty() {
            let place = planes.byte(image.levels.number, x, y, 0);
            let (part, after) = rest.split_at_mut(place.run.min(rest.len()));
            self.load_place(place, part)?;
            (x, rest) = (x.wrapping_add(part.len() as u64), after);
        }
        Ok(())
    }

    /// Writes bytes of a row of the first plane, from byte `x` on.
    pub(super) fn store_row(&mut self, image: &Image, x: u32, y: u32, bytes: &[u8]) -> Result<(), MemoryFault> {
        let Some(planes) = self.planes(image)? else { return Ok(()) };
        let (mut x, mut rest) = (u64::from(x), bytes);
        while !rest.is_empty() {
            let place = planes.byte(image.levels.number, x, y, 0);
            let (part, after) = rest.split_at(place.run.min(rest.len()));
            self.store_place(place, part)?;
            (x, rest) = (x.wrapping_add(part.len() as u64), after);
        }
        Ok(())
    }

    #[inline]
    fn load_place(&mut self, place: Place, bytes: &mut [u8]) -> Result<(), MemoryFault> {
        if place.compressed { self.load_compressed(place.address, bytes) } else { self.load(place.address, bytes) }
    }

    #[inline]
    fn store_place(&mut self, place: Place, bytes: &[u8]) -> Result<(), MemoryFault> {
        if place.compressed { self.store_compressed(place.address, bytes) } else { self.store(place.address, bytes) }
    }

    /// Reads bytes of a compressed surface, from page to page.
    fn load_compressed(&mut self, at: u64, bytes: &mut [u8]) -> Result<(), MemoryFault> {
        let (mut at, mut rest) = (at, bytes);
        while !rest.is_empty() {
            let Some((span, control)) = self.controlled(at, rest.len(), memory::Access::Read)? else {
                return self.load(at, rest);
            };
            let (part, after) = rest.split_at_mut(span.len().min(rest.len()));
            let read = control.read(Piece { span: &span, start: at, offset: 0 }, part);
            self.check(at, memory::Access::Read, read)?;
            (at, rest) = (at.wrapping_add(part.len() as u64) & ADDRESS, after);
        }
        Ok(())
    }

    /// Writes bytes of a compressed surface, from page to page. A block keeps its form: this does not change its control data,
    /// so that several threads can write parts of a block at the same time.
    fn store_compressed(&mut self, at: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let (mut at, mut rest) = (at, bytes);
        while !rest.is_empty() {
            let Some((span, control)) = self.controlled(at, rest.len(), memory::Access::Write)? else {
                return self.store(at, rest);
            };
            let (part, after) = rest.split_at(span.len().min(rest.len()));
            let written = control.write_in_form(Piece { span: &span, start: at, offset: 0 }, part);
            self.check(at, memory::Access::Write, written)?;
            (at, rest) = (at.wrapping_add(part.len() as u64) & ADDRESS, after);
        }
        Ok(())
    }

    /// A span of at most `len` bytes with its control data; `None` if the memory has none.
    pub(super) fn controlled(
        &mut self,
        at: u64,
        len: usize,
        access: memory::Access,
    ) -> Result<Option<(Span<'m>, ControlBytes<'m>)>, MemoryFault> {
        let control = self.gam.ccs_span(self.space, at, len, access);
        let control = control.map_err(|fault| self.failed(fault))?;
        if matches!(control, Span::Null(_)) {
            return Ok(None);
        }
        let span = self.gam.span(self.space, at, len, access).map_err(|fault| self.failed(fault))?;
        Ok(Some((span, ControlBytes(control))))
    }

    fn check(&mut self, at: u64, access: memory::Access, result: Result<(), SpanError>) -> Result<(), MemoryFault> {
        result.map_err(|_| {
            let fault = self.not_mapped(at, access);
            self.failed(fault)
        })
    }
}
