// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The families of GPUs and their engines: each engine with the tables and decoders of its family.

use arctic_device_model::command::Requester;
use arctic_device_model::decode::{self, Line, engine, status};
use arctic_device_model::disassembler::{self, Addressing, Decode, Description, Names, Remarks, Shown};
use arctic_device_model::gen6::decode as gen6;
use arctic_device_model::gen6::generation::{EngineRef, GENERATIONS, Generation};
use arctic_device_model::gen6::topology::EngineClass;
use arctic_device_model::topology;
use arctic_gpu::card_file::CardFile;

/// Input of the disassembler.
pub type Batch<'b> = disassembler::Batch<'b, Engine>;

/// The names of the classes of engines, which the families have in common.
pub fn classes() -> [&'static str; 5] {
    topology::EngineClass::BY_GUC.map(topology::EngineClass::name)
}

/// PCI device IDs of parts that have the tables of a family, beside those of card files: by the name of the family. Source:
/// include/drm/intel/pciids.h of Linux 7.2 (INTEL_SNB_*, INTEL_IVB_*, INTEL_DG2_*, INTEL_ATS_M_*).
const OTHER_PARTS: [(Option<&str>, &[u16]); 3] = [
    (Some("sandy-bridge"), &[0x0106, 0x010a, 0x0116, 0x0126]),
    (Some("ivy-bridge"), &[0x0156, 0x015a, 0x0166, 0x016a]),
    (
        None,
        &[
            0x4f80, 0x4f81, 0x4f82, 0x4f83, 0x4f84, 0x4f85, 0x4f86, 0x4f87, 0x4f88, 0x5690, 0x5691, 0x5692, 0x5693,
            0x5694, 0x5695, 0x5696, 0x5697, 0x56a0, 0x56a1, 0x56a2, 0x56a3, 0x56a4, 0x56a5, 0x56a6, 0x56b0, 0x56b1,
            0x56b2, 0x56b3, 0x56ba, 0x56bb, 0x56bc, 0x56bd, 0x56be, 0x56bf, 0x56c0, 0x56c1, 0x56c2,
        ],
    ),
];

/// Names of engines in error states that Linux wrote before 4.11: of the registers (`blt`), of the objects (`blitter ring`).
/// Source: ring_str in i915_gpu_error.c, and the names in intel_ringbuffer.c and intel_lrc.c.
const OLD_NAMES: [(&str, &str); 14] = [
    ("render", "rcs0"),
    ("render ring", "rcs0"),
    ("rcs", "rcs0"),
    ("blt", "bcs0"),
    ("blitter ring", "bcs0"),
    ("bcs", "bcs0"),
    ("bsd", "vcs0"),
    ("bsd ring", "vcs0"),
    ("vcs", "vcs0"),
    ("bsd2", "vcs1"),
    ("bsd2 ring", "vcs1"),
    ("vebox", "vecs0"),
    ("video enhancement ring", "vecs0"),
    ("vecs", "vecs0"),
];

/// A family of GPUs: their engines have the same commands and registers.
#[derive(Clone, Copy, Debug)]
pub enum Family {
    /// The Flex series.
    XeHpg,
    /// A generation of integrated GPUs.
    Gen6(&'static Generation),
}

/// An engine of a family.
#[derive(Clone, Copy, Debug)]
pub enum Engine {
    /// Of the Flex series.
    XeHpg(decode::EngineRef),
    /// Of an integrated GPU.
    Gen6(EngineRef),
}

/// Evaluates an expression with the engine of the family.
macro_rules! of_family {
    ($engine:expr, $it:ident => $result:expr) => {
        match $engine {
            Engine::XeHpg($it) => $result,
            Engine::Gen6($it) => $result,
        }
    };
}

impl Family {
    /// All families.
    pub fn all() -> impl Iterator<Item = Family> {
        std::iter::once(Family::XeHpg).chain(GENERATIONS.map(Family::Gen6))
    }

    /// The family of a card.
    pub fn of_card(card: &CardFile) -> Family {
        match card {
            CardFile::Integrated(profile) => Family::Gen6(profile.generation),
            _ => Family::XeHpg,
        }
    }

    /// The family with this name in a capture; the Flex series has none.
    pub fn named(name: Option<&str>) -> Option<Family> {
        match name {
            None => Some(Family::XeHpg),
            Some(name) => GENERATIONS.into_iter().find(|generation| generation.name == name).map(Family::Gen6),
        }
    }

    /// Name in a capture: that of the generation. The Flex series has none.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Family::XeHpg => None,
            Family::Gen6(generation) => Some(generation.name),
        }
    }

    /// Name in sentences.
    pub fn title(self) -> &'static str {
        self.name().unwrap_or("the Flex series")
    }

    /// The family with this PCI device ID, or without an ID this name of a platform in i915, if there is one: the tables
    /// hold for all parts of a generation, also for those that no card file describes.
    pub fn of_device(device: Option<u16>, platform: Option<&str>) -> Option<Family> {
        let Some(device) = device else {
            let platform = platform?;
            let is = |name: &str| platform.eq_ignore_ascii_case(&name.replace('-', ""));
            let generation = GENERATIONS.into_iter().find(|generation| is(generation.name)).map(Family::Gen6);
            return generation.or_else(|| is("dg2").then_some(Family::XeHpg));
        };
        let other = OTHER_PARTS.iter().find(|(_, devices)| devices.contains(&device));
        let named = other.and_then(|(name, _)| Family::named(*name));
        let generation = GENERATIONS.into_iter().find(|generation| generation.devices.contains(&device));
        generation.map(Family::Gen6).or(named)
    }

    /// Finds an engine by name (`rcs0`), or the first engine of a class by the class name (`render`, `copy`, `vcs`...).
    pub fn engine(self, name: &str) -> Option<Engine> {
        match self {
            Family::XeHpg => engine::named(name).map(Engine::XeHpg),
            Family::Gen6(generation) => {
                // Names of classes, and of the first engine of each, are those of the Flex series.
                let own = || EngineRef::named(generation, engine::named(name)?.info().name);
                EngineRef::named(generation, name).or_else(own).map(Engine::Gen6)
            }
        }
    }

    /// Finds an engine by its name in an error state of any version of i915.
    pub fn engine_of_i915(self, name: &str) -> Option<Engine> {
        let old = OLD_NAMES.iter().find(|(old, _)| *old == name).map(|(_, name)| *name);
        self.engine(old.unwrap_or(name))
    }

    /// The engine with this name (`rcs0`), or all engines of the class with this name (`render`, `copy`, `vcs`...). None
    /// if the family has no such engine.
    pub fn select(self, name: &str) -> Vec<Engine> {
        let selected = select_xe_hpg(name).into_iter();
        match self {
            Family::XeHpg => selected.map(Engine::XeHpg).collect(),
            Family::Gen6(generation) => selected
                .filter_map(|engine| EngineRef::named(generation, engine.info().name))
                .map(Engine::Gen6)
                .collect(),
        }
    }

    /// Names of the engines.
    pub fn engines(self) -> Vec<&'static str> {
        match self {
            Family::XeHpg => engine::names().collect(),
            Family::Gen6(generation) => generation.engines.iter().map(|engine| engine.name).collect(),
        }
    }

    /// The region of a fence register, if the family has fences and this one is valid.
    pub fn fence(self, value: u64) -> Option<String> {
        match self {
            Family::XeHpg => None,
            Family::Gen6(_) => gen6::state::fence(value),
        }
    }
}

/// The engine of the Flex series with this name, or all engines of the class with this name, as [`Family::select`].
pub fn select_xe_hpg(name: &str) -> Vec<decode::EngineRef> {
    let Some(first) = engine::named(name) else { return Vec::new() };
    if first.info().name == name {
        return vec![first];
    }
    let engines = engine::names().filter_map(engine::named);
    engines.filter(|engine| engine.info().class == first.info().class).collect()
}

impl Engine {
    /// Name in the driver.
    pub fn name(self) -> &'static str {
        of_family!(self, engine => engine.info().name)
    }

    /// Name of the command with this header; `None` if the engine does not have it.
    pub fn command(self, header: u32) -> Option<&'static str> {
        self.describe(header).map(|command| command.name)
    }

    /// Meaning of the register that i915's error state has under `name`, if it is known.
    pub fn register(self, name: &str, value: u32) -> Option<String> {
        match (self, name) {
            (_, "IPEHR" | "RING_IPEHR") => self.command(value).map(Into::into),
            (Engine::XeHpg(_), _) => None,
            (Engine::Gen6(engine), _) => gen6::state::of_name(engine, name, value),
        }
    }

    /// Splits a context in memory into status page and image. The Flex series has a page for each context.
    pub fn split(self, context: &[u32]) -> (&[u32], &[u32]) {
        match self {
            Engine::XeHpg(_) => context.split_at(decode::context::PAGE_DWORDS.min(context.len())),
            Engine::Gen6(_) => (&[], context),
        }
    }

    /// Whether dwords begin like the image of a context: MI_NOOP, then MI_LOAD_REGISTER_IMM. That of a Flex card has bits
    /// 12 (posted) and 19 (add the engine's base), which user batches do not set together; that of an integrated GPU
    /// (ILK-170), whose render engine alone has contexts, loads more than one register.
    pub fn is_image(self, dwords: &[u32]) -> bool {
        let [first, header, ..] = *dwords else { return false };
        match self {
            Engine::XeHpg(_) => header & 0xfff8_f000 == 0x1108_1000,
            Engine::Gen6(engine) => {
                engine.info().class == EngineClass::Render && first == 0 && header >> 23 == 0x22 && header & 0xff > 1
            }
        }
    }

    /// Finds the image of a context at the start of `dwords` or behind a status page. Returns the page, which is empty
    /// without one, and the image; `None` if there is no image.
    pub fn find_image(self, dwords: &[u32]) -> Option<(&[u32], &[u32])> {
        if self.is_image(dwords) {
            return Some((&[], dwords));
        }
        let (page, image) = self.split(dwords);
        self.is_image(image).then_some((page, image))
    }

    /// Disassembles the image of a context.
    pub fn image(self, image: &[u32]) -> Vec<Line> {
        match self {
            Engine::XeHpg(engine) => decode::context::image(image, engine),
            Engine::Gen6(engine) => gen6::context::image(image, engine),
        }
    }

    /// Decodes the status page of the engine.
    pub fn status(self, page: &[u32]) -> Vec<Line> {
        match self {
            Engine::XeHpg(_) => status::buffer(page),
            Engine::Gen6(_) => gen6::context::page(page),
        }
    }
}

impl Decode for Engine {
    fn name(&self) -> &str {
        Engine::name(*self)
    }

    fn describe(&self, header: u32) -> Option<Description> {
        of_family!(self, engine => engine.describe(header))
    }

    fn remarks(&self, words: &[u32], requester: Requester) -> Remarks {
        of_family!(self, engine => engine.remarks(words, requester))
    }
}

impl Names for Engine {
    fn register(&self, offset: u32, addressing: Addressing) -> String {
        of_family!(self, engine => engine.register(offset, addressing))
    }

    fn address(&self, address: u64) -> Option<String> {
        of_family!(self, engine => engine.address(address))
    }

    fn element(&self, fields: &[Shown], words: &[u32]) -> String {
        of_family!(self, engine => engine.element(fields, words))
    }
}
