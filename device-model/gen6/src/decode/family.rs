// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The generations for decoders of dumps and captures.

use std::sync::LazyLock;

use arctic_base::decode::family::{Engine, Family, Kernels};
use arctic_base::decode::line::Line;

use super::{context, state};
use crate::command::mi::{MI_LOAD_REGISTER_IMM, MI_NOOP};
use crate::generation::{self, EngineRef, Generation};
use crate::topology::EngineClass;

/// A generation.
#[derive(Debug)]
pub struct Integrated {
    generation: &'static Generation,
    /// Name of the platform in i915, in lower case.
    platform: &'static str,
    /// PCI device IDs of its other parts.
    other_parts: &'static [u16],
    engines: LazyLock<Vec<EngineRef>>,
}

/// Sandy Bridge; other parts by include/drm/intel/pciids.h of Linux, INTEL_SNB_*.
pub static SANDY_BRIDGE: Integrated = Integrated {
    generation: &generation::SANDY_BRIDGE,
    platform: "sandybridge",
    other_parts: &[0x0106, 0x010a, 0x0116, 0x0126],
    engines: LazyLock::new(|| engines(&generation::SANDY_BRIDGE)),
};

/// Ivy Bridge; other parts by include/drm/intel/pciids.h of Linux, INTEL_IVB_*.
pub static IVY_BRIDGE: Integrated = Integrated {
    generation: &generation::IVY_BRIDGE,
    platform: "ivybridge",
    other_parts: &[0x0156, 0x015a, 0x0166, 0x016a],
    engines: LazyLock::new(|| engines(&generation::IVY_BRIDGE)),
};

/// Bits of MI_LOAD_REGISTER_IMM's header beside the opcode, and those of its length: twice the number of registers, less one.
const LENGTH_AND_FLAGS: u32 = (1 << 23) - 1;
const LENGTH: u32 = 0xff;

fn engines(generation: &'static Generation) -> Vec<EngineRef> {
    generation.engines().map(|(id, _)| EngineRef { generation, id }).collect()
}

impl<M: 'static> Family<M> for Integrated {
    fn name(&self) -> Option<&'static str> {
        Some(self.generation.name)
    }

    fn title(&self) -> &'static str {
        self.generation.name
    }

    fn platform(&self) -> &'static str {
        self.platform
    }

    fn has_device(&self, device: u16) -> bool {
        self.generation.devices.contains(&device) || self.other_parts.contains(&device)
    }

    fn engines(&'static self) -> Vec<&'static dyn Engine<M>> {
        self.engines.iter().map(|engine| engine as &dyn Engine<M>).collect()
    }

    fn fence(&self, value: u64) -> Option<String> {
        state::fence(value)
    }
}

impl<M> Engine<M> for EngineRef {
    fn is_of_class(&self, name: &str) -> bool {
        let names = match self.info().class {
            EngineClass::Render => ["render", "rcs"],
            EngineClass::Video => ["video-decode", "vcs"],
            EngineClass::Copy => ["copy", "bcs"],
        };
        names.contains(&name)
    }

    fn error_register(&self, name: &str, value: u32) -> Option<String> {
        state::of_name(*self, name, value)
    }

    fn page_dwords(&self) -> usize {
        0
    }

    /// ILK-170: MI_NOOP, then MI_LOAD_REGISTER_IMM of more than one register. Only the render engine has contexts.
    fn is_image(&self, dwords: &[u32]) -> bool {
        let [MI_NOOP, header, ..] = *dwords else { return false };
        self.info().class == EngineClass::Render
            && header & !LENGTH_AND_FLAGS == MI_LOAD_REGISTER_IMM
            && header & LENGTH > 1
    }

    fn image(&self, image: &[u32]) -> Vec<Line<M>> {
        context::image(image, *self)
    }

    fn status(&self, page: &[u32]) -> Vec<Line<M>> {
        context::page(page)
    }

    fn kernels(&self) -> Option<Box<dyn Kernels<M>>> {
        None
    }
}
