// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The engines of a generation, and their identifiers in the interrupt, GuC and register interfaces (contract K.3); the
//! identities of all units that workers step.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use arctic_sriov::number::byte;

/// Hardware engine class, as encoded in ENGINE_ID and in interrupt identities (V13-267).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum EngineClass {
    /// Render (RCS).
    Render = 0,
    /// Video decode (VCS).
    VideoDecode = 1,
    /// Video enhancement (VECS).
    VideoEnhance = 2,
    /// Copy (BCS).
    Copy = 3,
    /// Compute (CCS).
    Compute = 5,
}

impl EngineClass {
    /// All classes, ordered by GuC class number.
    pub const BY_GUC: [EngineClass; 5] = [
        EngineClass::Render,
        EngineClass::VideoDecode,
        EngineClass::VideoEnhance,
        EngineClass::Copy,
        EngineClass::Compute,
    ];

    /// Returns the GuC class number, which differs from the hardware class (contract B.7).
    pub const fn guc(self) -> u8 {
        match self {
            EngineClass::Render => 0,
            EngineClass::VideoDecode => 1,
            EngineClass::VideoEnhance => 2,
            EngineClass::Copy => 3,
            EngineClass::Compute => 4,
        }
    }

    /// Name for users: `render`, `video-decode`.
    pub const fn name(self) -> &'static str {
        match self {
            EngineClass::Render => "render",
            EngineClass::VideoDecode => "video-decode",
            EngineClass::VideoEnhance => "video-enhance",
            EngineClass::Copy => "copy",
            EngineClass::Compute => "compute",
        }
    }

    /// What the names of its engines in the drivers begin with: `rcs`, `vcs`.
    pub const fn prefix(self) -> &'static str {
        match self {
            EngineClass::Render => "rcs",
            EngineClass::VideoDecode => "vcs",
            EngineClass::VideoEnhance => "vecs",
            EngineClass::Copy => "bcs",
            EngineClass::Compute => "ccs",
        }
    }

    /// Returns the class with this [name](EngineClass::name) or [prefix](EngineClass::prefix).
    pub fn named(name: &str) -> Option<EngineClass> {
        EngineClass::BY_GUC.into_iter().find(|class| class.name() == name || class.prefix() == name)
    }

    /// Returns the class with this number of the hardware.
    pub fn numbered(number: u64) -> Option<EngineClass> {
        EngineClass::BY_GUC.into_iter().find(|class| *class as u64 == number)
    }

    /// Offset bits that are used when the engine's base is added. Drivers also write the base into the other bits
    /// (i915: selftest_lrc.c get_lri_mask).
    pub const fn relative_mask(self) -> u32 {
        match self {
            EngineClass::Render | EngineClass::Compute => 0x7ff,
            EngineClass::Copy => 0xfff,
            EngineClass::VideoDecode | EngineClass::VideoEnhance => 0x3fff,
        }
    }

    /// Returns the class with this GuC class number.
    pub fn from_guc(number: u32) -> Option<EngineClass> {
        Self::BY_GUC.get(usize::try_from(number).ok()?).copied()
    }
}

/// A set of engine classes, one bit per class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes(u8);

impl Classes {
    /// Every class.
    pub const ALL: Classes = Classes(0x3f);
    /// Render and compute.
    pub const RENDER_COMPUTE: Classes = Self::of(&[EngineClass::Render, EngineClass::Compute]);
    /// Render only.
    pub const RENDER: Classes = Self::of(&[EngineClass::Render]);
    /// Compute.
    pub const COMPUTE: Classes = Self::of(&[EngineClass::Compute]);
    /// Copy.
    pub const COPY: Classes = Self::of(&[EngineClass::Copy]);
    /// Render and copy.
    pub const RENDER_COPY: Classes = Self::of(&[EngineClass::Render, EngineClass::Copy]);
    /// All except render.
    pub const NOT_RENDER: Classes = Classes(Self::ALL.0 & !Self::RENDER.0);

    #[allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "evaluated at compile time")]
    const fn of(classes: &[EngineClass]) -> Classes {
        let mut bits = 0;
        let mut n = 0;
        while n < classes.len() {
            bits |= 1 << classes[n] as u8;
            n += 1;
        }
        Classes(bits)
    }

    /// Returns whether `class` is in the set.
    pub const fn has(self, class: EngineClass) -> bool {
        self.0 >> class as u8 & 1 != 0
    }
}

/// Forcewake domain that keeps a register accessible (V13-135).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WakeDomain {
    /// Always powered.
    AlwaysOn,
    /// GT.
    Gt,
    /// Render and copy.
    Render,
    /// Media decode box.
    Vdbox(u8),
    /// Media enhancement box.
    Vebox(u8),
}

/// Fixed properties of one engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineInfo {
    /// Engine name used by the drivers, e.g. `vcs2`.
    pub name: &'static str,
    /// Hardware class.
    pub class: EngineClass,
    /// Physical instance within the class.
    pub instance: u8,
    /// Offset of the engine's register block in GTTMMADR.
    pub mmio_base: u32,
    /// Interrupt bank (0 or 1) and bit within it (V13-263).
    pub interrupt: (u8, u8),
    /// Bit of GDRST that resets the engine; engines may share one (xe: XEHP GRDOM; i915: get_reset_domain).
    pub reset: u8,
    /// Forcewake domain.
    pub wake: WakeDomain,
    /// Thousandths of the power between that of the idle card and that of the board which the busy engine needs at the
    /// maximum frequency. An estimate: half for the engines that use execution units, less for fixed functions.
    pub power: u16,
}

/// Size in bytes of the register block that every engine has.
pub const ENGINE_BLOCK: u32 = 0x800;

/// Offsets of a video decoder's HEVC and AV1 blocks from its base (V8-003).
const HEVC_BLOCK: u32 = 0x2800;
const AV1_BLOCK: u32 = 0x2b00;

impl EngineInfo {
    /// Returns whether the register at `offset` is in the engine's register block.
    pub const fn holds(&self, offset: u32) -> bool {
        offset.wrapping_sub(self.mmio_base) < ENGINE_BLOCK
    }

    /// Returns the register offset that `raw` encodes in a command that adds the engine's base (V8-004; contract F.4).
    #[inline]
    #[allow(clippy::arithmetic_side_effects, reason = "the base is below 4 MiB, and the mask has at most 14 bits")]
    pub const fn relative(&self, raw: u32) -> u32 {
        self.mmio_base + (raw & self.class.relative_mask() & !3)
    }

    /// Returns the offset in GTTMMADR of the register at `own` from the engine's base. The sum wraps, to an offset that
    /// no engine has.
    #[inline]
    pub const fn register(&self, own: u32) -> u32 {
        self.mmio_base.wrapping_add(own)
    }

    const fn media_block(&self, behind: u32) -> Option<u32> {
        if matches!(self.class, EngineClass::VideoDecode) { Some(self.register(behind)) } else { None }
    }

    /// Returns the base of the HEVC block of a video decoder (V8-003).
    pub const fn hevc_base(&self) -> Option<u32> {
        self.media_block(HEVC_BLOCK)
    }

    /// Returns the base of the AV1 block of a video decoder (V8-003). No whitelist contains a register of this block.
    pub const fn av1_base(&self) -> Option<u32> {
        self.media_block(AV1_BLOCK)
    }
}

/// Number of registers in an engine's tiled resource table (TRTT).
pub const TRTT_REGISTERS: u32 = 6;

/// Returns the first register of an engine's tiled resource table. Each engine has a separate table, except media
/// engines for which the PRM lists none (V8-181..183, V8-185).
#[allow(clippy::arithmetic_side_effects, reason = "the patterns match instances up to 3")]
pub const fn trtt(class: EngineClass, instance: u8) -> Option<u32> {
    Some(match (class, instance) {
        (EngineClass::Render, 0) => 0x4400,
        (EngineClass::Copy, 0) => 0x4480,
        (EngineClass::Compute, 0..=3) => 0x4580 + 0x20 * instance as u32,
        (EngineClass::VideoDecode, 0 | 1) => 0x4420 + 0x20 * instance as u32,
        (EngineClass::VideoDecode, 2 | 3) => 0x4520 + 0x20 * (instance as u32 - 2),
        (EngineClass::VideoEnhance, 0) => 0x4460,
        (EngineClass::VideoEnhance, 1) => 0x4560,
        _ => return None,
    })
}

macro_rules! engines {
    ($($name:literal $class:ident $instance:literal $base:literal $bank:literal.$bit:literal $reset:literal $power:literal $wake:expr;)*) => {
        /// The engines of Xe-HPG, before fusing.
        pub const XE_HPG_ENGINES: EngineTable = EngineTable::new(&[$(EngineInfo {
            name: $name, class: EngineClass::$class, instance: $instance, mmio_base: $base,
            interrupt: ($bank, $bit), reset: $reset, power: $power, wake: $wake,
        }),*]);
    };
}

engines! {
    "rcs0"  Render 0       0x00_2000 0 . 0  1   500 WakeDomain::Render;
    "bcs0"  Copy 0         0x02_2000 0 . 15 2   100 WakeDomain::Render;
    "ccs0"  Compute 0      0x01_a000 0 . 4  1   500 WakeDomain::Render;
    "ccs1"  Compute 1      0x01_c000 0 . 5  1   500 WakeDomain::Render;
    "ccs2"  Compute 2      0x01_e000 0 . 6  1   500 WakeDomain::Render;
    "ccs3"  Compute 3      0x02_6000 0 . 7  1   500 WakeDomain::Render;
    "vcs0"  VideoDecode 0  0x1c_0000 1 . 0  5   100 WakeDomain::Vdbox(0);
    "vcs1"  VideoDecode 1  0x1c_4000 1 . 1  6   100 WakeDomain::Vdbox(1);
    "vcs2"  VideoDecode 2  0x1d_0000 1 . 2  7   100 WakeDomain::Vdbox(2);
    "vcs3"  VideoDecode 3  0x1d_4000 1 . 3  8   100 WakeDomain::Vdbox(3);
    "vcs4"  VideoDecode 4  0x1e_0000 1 . 4  9   100 WakeDomain::Vdbox(4);
    "vcs5"  VideoDecode 5  0x1e_4000 1 . 5  10  100 WakeDomain::Vdbox(5);
    "vcs6"  VideoDecode 6  0x1f_0000 1 . 6  11  100 WakeDomain::Vdbox(6);
    "vcs7"  VideoDecode 7  0x1f_4000 1 . 7  12  100 WakeDomain::Vdbox(7);
    "vecs0" VideoEnhance 0 0x1c_8000 1 . 31 13  50  WakeDomain::Vebox(0);
    "vecs1" VideoEnhance 1 0x1d_8000 1 . 30 14  50  WakeDomain::Vebox(1);
    "vecs2" VideoEnhance 2 0x1e_8000 1 . 29 15  50  WakeDomain::Vebox(2);
    "vecs3" VideoEnhance 3 0x1f_8000 1 . 28 16  50  WakeDomain::Vebox(3);
}

/// Maximum number of engines of a generation: the length of arrays that are indexed by [`EngineId::index`]. Xe-HPG has
/// the most engines of the generations described.
pub const MAX_ENGINES: usize = 18;

/// An engine of a generation: an index into its [`EngineTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EngineId(u8);

impl EngineId {
    /// Returns the index for arrays of [`MAX_ENGINES`] entries.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Returns the engine as a bit of a set.
    pub fn bit(self) -> u32 {
        const { assert!(MAX_ENGINES <= 32) };
        1 << self.0
    }
}

/// A unit of the card that workers step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnitId {
    /// The execution of register writes that were deferred to a worker.
    DeferredWrites,
    /// The GuC.
    Guc,
    /// An engine.
    Engine(EngineId),
    /// Observation.
    Observation,
    /// The return of unused memory to the host.
    UnusedMemory,
    /// A cluster of execution units, with a number below [`CLUSTERS`].
    Cluster(u8),
    /// A unit beside these, with a number below [`FURTHER_UNITS`]. No two units of a card have the same.
    Further(u8),
}

/// Maximum number of units of a card beside its engines, the GuC and the work on registers and memory.
pub const FURTHER_UNITS: usize = 16;

/// Number of clusters of execution units, which help the engines: the host has workers for a few.
pub const CLUSTERS: usize = 15;

/// Length of arrays that are indexed by [`UnitId::index`].
pub const MAX_UNITS: usize = MAX_ENGINES + 4 + FURTHER_UNITS + CLUSTERS;

impl UnitId {
    /// Returns the index for arrays of [`MAX_UNITS`] entries.
    #[inline]
    #[allow(clippy::arithmetic_side_effects, reason = "the sums are below MAX_UNITS")]
    pub fn index(self) -> usize {
        match self {
            UnitId::Engine(engine) => engine.index(),
            UnitId::DeferredWrites => MAX_ENGINES,
            UnitId::Guc => MAX_ENGINES + 1,
            UnitId::UnusedMemory => MAX_ENGINES + 2,
            UnitId::Observation => MAX_ENGINES + 3,
            UnitId::Further(number) => MAX_ENGINES + 4 + usize::from(number) % FURTHER_UNITS,
            UnitId::Cluster(number) => MAX_ENGINES + 4 + FURTHER_UNITS + usize::from(number) % CLUSTERS,
        }
    }
}

impl From<EngineId> for UnitId {
    #[inline]
    fn from(engine: EngineId) -> UnitId {
        UnitId::Engine(engine)
    }
}

/// The engines of a generation, before fusing. An [`EngineId`] is an index into this table.
#[derive(Clone, Copy, Debug)]
pub struct EngineTable(&'static [EngineInfo]);

impl EngineTable {
    /// Creates a table of at most [`MAX_ENGINES`] engines.
    pub const fn new(engines: &'static [EngineInfo]) -> Self {
        assert!(engines.len() <= MAX_ENGINES, "more engines than MAX_ENGINES");
        EngineTable(engines)
    }

    /// Returns the properties of all engines, by [`EngineId::index`].
    pub const fn list(self) -> &'static [EngineInfo] {
        self.0
    }

    /// Returns all engines.
    pub fn all(self) -> impl DoubleEndedIterator<Item = EngineId> + Clone {
        (0..byte(self.0.len())).map(EngineId)
    }

    /// Returns the fixed properties of `engine`.
    #[inline]
    #[allow(clippy::indexing_slicing, reason = "an EngineId is an index into its generation's table")]
    pub fn info(self, engine: EngineId) -> &'static EngineInfo {
        &self.0[engine.index()]
    }

    fn search(self, matches: impl Fn(&EngineInfo) -> bool) -> Option<EngineId> {
        self.all().find(|engine| matches(self.info(*engine)))
    }

    /// Returns the engine with this class and physical instance.
    pub fn find(self, class: EngineClass, instance: u8) -> Option<EngineId> {
        self.search(|info| info.class == class && info.instance == instance)
    }

    /// Returns the engine with this driver name.
    pub fn named(self, name: &str) -> Option<EngineId> {
        self.search(|info| info.name == name)
    }

    /// Returns the engine whose register block contains `offset`.
    pub fn at_offset(self, offset: u32) -> Option<EngineId> {
        self.search(|info| info.holds(offset))
    }

    /// Returns whether `raw` is a relative offset on `engine`, either without a base or with the base of an instance of
    /// its class, as in images of that class.
    pub fn takes_relative(self, engine: EngineId, raw: u32) -> bool {
        let info = self.info(engine);
        let above = raw & !info.class.relative_mask();
        let of_class = || self.0.iter().any(|other| other.class == info.class && other.mmio_base == above);
        raw < 0x1000 || above == info.mmio_base || of_class()
    }
}

#[cfg(test)]
mod tests {
    use super::{EngineClass, XE_HPG_ENGINES};

    /// Contract G.1: GDRST has a bit for each media engine, one for the copy engine, and one that render and compute
    /// share (i915: get_reset_domain).
    #[test]
    fn reset_bits() {
        let bits = |class| {
            let engines = XE_HPG_ENGINES.list().iter().filter(move |engine| engine.class == class);
            engines.map(|engine| u32::from(engine.reset)).collect::<Vec<_>>()
        };
        assert_eq!((bits(EngineClass::Render), bits(EngineClass::Compute)), (vec![1], vec![1; 4]));
        assert_eq!(bits(EngineClass::Copy), [2]);
        assert_eq!(bits(EngineClass::VideoDecode), (5..13).collect::<Vec<_>>());
        assert_eq!(bits(EngineClass::VideoEnhance), (13..17).collect::<Vec<_>>());
    }
}
