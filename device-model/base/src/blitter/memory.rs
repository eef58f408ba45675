// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The interface of a copy engine to the memory of its family: translation of addresses, and compression of pixels.

use std::convert::Infallible;

use crate::memory::{Access, Span, SpanError, Zeroed};

/// Memory as a copy engine accesses it in one step. `'m` is the lifetime of the spans, which must not be used after the
/// end of the step.
///
/// The methods have no default: each family states what its memory does.
pub trait BlitMemory<'m> {
    /// An address space.
    type Space: Copy;
    /// A failed access, with its address.
    type Fault;
    /// Control data of compressed memory; [`Infallible`] for a family without compression.
    type Control: Compression;

    /// Translates an address to a span of bytes `[address, address + n)` of `space`, 1 <= n <= `len`, limited by the end
    /// of the page or of its mapping.
    ///
    /// Addresses have 48 bits ([`super::tiling::ADDRESS_MASK`]). A family with narrower addresses fails, or ignores the
    /// upper bits, as its hardware does.
    fn span(&mut self, space: Self::Space, address: u64, len: usize, access: Access) -> Result<Span<'m>, Self::Fault>;

    /// Makes memory that starts at `address` read as zeros, up to `len` bytes, without writing to host memory that is
    /// already zero. Returns `None` if nothing was done: the caller then writes zeros through [`BlitMemory::span`]. A
    /// family that does not know which of its pages are zero always returns `None`.
    fn zero(&mut self, space: Self::Space, address: u64, len: u64) -> Result<Option<Zeroed>, Self::Fault>;

    /// The control data of the memory of a span of `len` bytes at `address`, which a compressed surface accesses. `None`
    /// if that memory has none: its pixels are stored unchanged. A family without compression always returns `None`.
    fn control(
        &mut self,
        space: Self::Space,
        address: u64,
        len: usize,
        access: Access,
    ) -> Result<Option<Self::Control>, Self::Fault>;

    /// The fault for an address that is translated to memory that the function's VMM does not map.
    fn not_mapped(space: Self::Space, address: u64, access: Access) -> Self::Fault;

    /// The same fault for another address: the one that was requested, if a translation of the start of its page failed.
    fn with_address(fault: Self::Fault, address: u64) -> Self::Fault;
}

/// A part of translated memory.
#[derive(Clone, Copy)]
pub struct Piece<'a, 'm> {
    /// The translated memory.
    pub span: &'a Span<'m>,
    /// Address of the span's first byte.
    pub start: u64,
    /// Offset of the part in the span.
    pub offset: usize,
}

/// Control data of compressed memory: pixels are accessed through it. It starts with the control data of the first byte
/// of [`Piece::span`], for which it was obtained by [`BlitMemory::control`].
pub trait Compression {
    /// Reads and decompresses pixels. The piece has at least `data.len()` bytes.
    fn read(&self, memory: Piece<'_, '_>, data: &mut [u8]) -> Result<(), SpanError>;

    /// Writes pixels and compresses them. The piece has at least `data.len()` bytes.
    fn write(&self, memory: Piece<'_, '_>, data: &[u8]) -> Result<(), SpanError>;

    /// Decompresses all blocks of the first `len` bytes of the piece in place.
    fn resolve(&self, memory: Piece<'_, '_>, len: usize) -> Result<(), SpanError>;
}

/// No memory is compressed.
impl Compression for Infallible {
    fn read(&self, _: Piece<'_, '_>, _: &mut [u8]) -> Result<(), SpanError> {
        match *self {}
    }

    fn write(&self, _: Piece<'_, '_>, _: &[u8]) -> Result<(), SpanError> {
        match *self {}
    }

    fn resolve(&self, _: Piece<'_, '_>, _: usize) -> Result<(), SpanError> {
        match *self {}
    }
}
