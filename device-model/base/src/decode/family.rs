// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What decoders of dumps and captures need of a family of GPUs: its parts and its engines.

use std::fmt::Debug;

use super::line::Line;
use super::show::Names;
use crate::command::Decode;

/// A family of GPUs, or a generation of one: its engines have the same commands and registers. `M` is the message in
/// [`Line`].
pub trait Family<M: 'static>: Debug + Sync {
    /// Name in captures; `None` if its captures name no family.
    fn name(&self) -> Option<&'static str>;

    /// Name in sentences.
    fn title(&self) -> &'static str;

    /// Name of the platform in i915's error states, in lower case.
    fn platform(&self) -> &'static str;

    /// Returns whether a part with this PCI device ID has these engines.
    fn has_device(&self, device: u16) -> bool;

    /// The engines; of each class, the first instance first.
    fn engines(&'static self) -> Vec<&'static dyn Engine<M>>;

    /// The region of a fence register; `None` if it is not valid, or the family has no fences.
    fn fence(&self, value: u64) -> Option<String>;

    /// The engine with this name (`rcs0`), or all engines of the class with this name (`render`, `vcs`).
    fn select(&'static self, name: &str) -> Vec<&'static dyn Engine<M>> {
        let mut engines = self.engines();
        let named = engines.iter().find(|engine| engine.name() == name).copied();
        engines.retain(|engine| named.map_or_else(|| engine.is_of_class(name), |named| engine.name() == named.name()));
        engines
    }

    /// The first engine of [`Family::select`].
    fn engine(&'static self, name: &str) -> Option<&'static dyn Engine<M>> {
        self.select(name).first().copied()
    }
}

/// An engine of a family.
pub trait Engine<M>: Decode + Names + Debug + Sync {
    /// Returns whether its class has this name: `video-decode`, or as its engines are called, `vcs`.
    fn is_of_class(&self, name: &str) -> bool;

    /// Meaning of the register that i915's error state has under `name`, if it is known.
    fn error_register(&self, name: &str, value: u32) -> Option<String>;

    /// Number of dwords of the status page that precedes the image of each context in memory; 0 without one.
    fn page_dwords(&self) -> usize;

    /// Returns whether dwords begin like the image of a context, in a way in which user batches do not begin.
    fn is_image(&self, dwords: &[u32]) -> bool;

    /// Disassembles the image of a context.
    fn image(&self, image: &[u32]) -> Vec<Line<M>>;

    /// Decodes the status page of the engine.
    fn status(&self, page: &[u32]) -> Vec<Line<M>>;

    /// A decoder of the kernels that its batches dispatch; `None` if kernels of the family are not decoded.
    fn kernels(&self) -> Option<Box<dyn Kernels<M>>>;

    /// Splits a context in memory into status page and image.
    fn split<'d>(&self, context: &'d [u32]) -> (&'d [u32], &'d [u32]) {
        context.split_at(self.page_dwords().min(context.len()))
    }

    /// Finds the image of a context at the start of `dwords` or behind a status page. Returns the page, which is empty
    /// without one, and the image; `None` if there is no image.
    fn find_image<'d>(&self, dwords: &'d [u32]) -> Option<(&'d [u32], &'d [u32])> {
        if self.is_image(dwords) {
            return Some((&[], dwords));
        }
        let (page, image) = self.split(dwords);
        self.is_image(image).then_some((page, image))
    }
}

/// The kernels that the batches of an engine dispatch.
pub trait Kernels<M> {
    /// Notes a command of a batch, by its dwords. Commands are noted in the order of their execution, as far as it is known.
    fn note(&mut self, dwords: &[u32]);

    /// Virtual addresses of the kernels, ascending.
    fn starts(&self) -> Vec<u64>;

    /// Disassembles the code of a kernel at `address`, up to the end of its threads.
    fn code(&self, dwords: &[u32], address: u64) -> Vec<Line<M>>;
}
