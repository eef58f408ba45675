// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The family for decoders of dumps and captures.

use std::sync::LazyLock;

use arctic_base::decode::family::{Engine, Family, Kernels};

use super::kernel::WalkerKernels;
use super::{Line, Message, context, status};
use crate::command::mi::LRI;
use crate::command::mi::fields::CS_MMIO;
use crate::context_image::POSTED;
use crate::generation::{EngineRef, XE_HPG};

/// The Flex series, and the other parts with graphics IP 12.55.
#[derive(Debug)]
pub struct FlexSeries;

/// PCI device IDs of parts beside those of the dies (Linux: include/drm/intel/pciids.h, INTEL_DG2_*, INTEL_ATS_M_*).
const OTHER_PARTS: [u16; 37] = [
    0x4f80, 0x4f81, 0x4f82, 0x4f83, 0x4f84, 0x4f85, 0x4f86, 0x4f87, 0x4f88, 0x5690, 0x5691, 0x5692, 0x5693, 0x5694,
    0x5695, 0x5696, 0x5697, 0x56a0, 0x56a1, 0x56a2, 0x56a3, 0x56a4, 0x56a5, 0x56a6, 0x56b0, 0x56b1, 0x56b2, 0x56b3,
    0x56ba, 0x56bb, 0x56bc, 0x56bd, 0x56be, 0x56bf, 0x56c0, 0x56c1, 0x56c2,
];

static ENGINES: LazyLock<Vec<EngineRef>> =
    LazyLock::new(|| XE_HPG.engines.all().map(|id| EngineRef { generation: &XE_HPG, id }).collect());

/// The first command of an image: MI_LOAD_REGISTER_IMM whose writes are posted and have the engine's base added, which
/// user batches do not have together.
const IMAGE_START: u32 = LRI | POSTED | CS_MMIO.mask();

/// Bits of its header that have other values in other images: flags and length.
const IMAGE_VARIES: u32 = 0x0007_0fff;

impl Family<Message> for FlexSeries {
    fn name(&self) -> Option<&'static str> {
        None
    }

    fn title(&self) -> &'static str {
        "the Flex series"
    }

    fn platform(&self) -> &'static str {
        "dg2"
    }

    fn has_device(&self, device: u16) -> bool {
        XE_HPG.dies.iter().any(|die| die.devices.contains(&device)) || OTHER_PARTS.contains(&device)
    }

    fn engines(&'static self) -> Vec<&'static dyn Engine<Message>> {
        ENGINES.iter().map(|engine| engine as &dyn Engine<Message>).collect()
    }

    fn fence(&self, _: u64) -> Option<String> {
        None
    }
}

impl Engine<Message> for EngineRef {
    fn is_of_class(&self, name: &str) -> bool {
        let class = self.info().class;
        [class.name(), class.prefix()].contains(&name)
    }

    fn error_register(&self, _: &str, _: u32) -> Option<String> {
        None
    }

    fn page_dwords(&self) -> usize {
        context::PAGE_DWORDS
    }

    fn is_image(&self, dwords: &[u32]) -> bool {
        dwords.get(1).is_some_and(|header| header & !IMAGE_VARIES == IMAGE_START)
    }

    fn image(&self, image: &[u32]) -> Vec<Line> {
        context::image(image, *self)
    }

    fn status(&self, page: &[u32]) -> Vec<Line> {
        status::buffer(page)
    }

    fn kernels(&self) -> Option<Box<dyn Kernels<Message>>> {
        Some(Box::new(WalkerKernels::new(*self)))
    }
}
