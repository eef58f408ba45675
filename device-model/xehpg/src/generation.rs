// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Hardware generations as data: one descriptor for each, which refers to the tables of the units. Units receive the
//! descriptor, or the parts of it that they need, as a parameter.

mod firmware;
mod hwconfig;
mod sriov;

use std::fmt;

use crate::command::{CommandSet, XE_HPG_COMMANDS};
use crate::context_image::{self, ContextFormat, XE_HPG_CONTEXTS};
use crate::host::Timebase;
use crate::interrupts::{InterruptMap, XE_HPG_INTERRUPTS};
use crate::memory::ppgtt::{PageTableFormat, XE_HPG_PAGE_TABLES};
use crate::oa::{ObservationFacts, XE_HPG_OBSERVATION};
use crate::registers::{RegisterTables, XE_HPG_REGISTERS};
use crate::topology::{EngineClass, EngineId, EngineInfo, EngineTable, XE_HPG_ENGINES};
pub use firmware::{AdsFormat, FirmwareInterface, Version, XE_HPG_FIRMWARE};
pub use sriov::{SriovLimits, XE_HPG_SRIOV};

/// Facts that all cards of a hardware generation have in common. Its dies differ by their [`Die`], cards with the same
/// die by their [`crate::profile::CardProfile`].
pub struct Generation {
    /// Name of the generation.
    pub name: &'static str,
    /// All engines, before fusing.
    pub engines: EngineTable,
    /// The registers.
    pub registers: &'static RegisterTables,
    /// Commands of the engines.
    pub commands: &'static CommandSet,
    /// Register images of the contexts.
    pub contexts: &'static ContextFormat,
    /// Page tables of processes.
    pub page_tables: &'static PageTableFormat,
    /// Interface of the GuC.
    pub firmware: &'static FirmwareInterface,
    /// Hardware configuration table of a die: keys, lengths in dwords, values.
    pub hwconfig: fn(&Die) -> Vec<u32>,
    /// Division of the card among its functions.
    pub sriov: &'static SriovLimits,
    /// Rate of the timestamp counters.
    pub timebase: Timebase,
    /// Observation.
    pub observation: &'static ObservationFacts,
    /// Sources of interrupts.
    pub interrupts: &'static InterruptMap,
    /// The dies.
    pub dies: &'static [&'static Die],
}

impl Generation {
    /// Returns the die with this name.
    pub fn die(&self, name: &str) -> Option<&'static Die> {
        self.dies.iter().find(|die| die.name == name).copied()
    }

    /// Returns the layout of the context images of an engine.
    pub fn context_layout(&self, engine: EngineId) -> context_image::Layout {
        context_image::Layout::of(self.contexts, self.registers, self.engines.info(engine))
    }

    /// Returns the image that software writes for a context that has not run yet: `Layout::blank` of a compute engine,
    /// valid for any engine.
    pub fn blank_image(&self) -> Vec<u32> {
        let engine = self.engines.find(EngineClass::Compute, 0);
        engine.map_or(Vec::new(), |engine| self.context_layout(engine).blank())
    }
}

/// A die of a generation: the units that exist before fusing, and its products.
pub struct Die {
    /// Name in card files.
    pub name: &'static str,
    /// The generation.
    pub generation: &'static Generation,
    /// PCI device IDs of the cards with this die, from which drivers derive the die. The first is the default of a card
    /// file.
    pub devices: &'static [u16],
    /// Valid PCI revisions, with the names of the steppings that they encode.
    pub steppings: &'static [(u8, &'static str)],
    /// Number of the die in the protocol of firmware updates (igsc: gsc_sku_id; fwupd: plugins/intel-gsc/igsc.quirk).
    pub firmware_sku: u32,
    /// Number of slices, each with [`DSS_PER_SLICE`] dual subslices.
    pub slices: u8,
    /// Memory slices with L3, one bit each.
    pub mslices: u8,
    /// Video decode engines, one bit each.
    pub vdboxes: u8,
    /// Video enhancement engines, one bit each.
    pub veboxes: u8,
}

/// Number of dual subslices of a slice (V13-155).
pub const DSS_PER_SLICE: u8 = 4;
/// Number of dual subslices of a compute engine (xe: xe_hw_engine.c).
pub const DSS_PER_COMPUTE_ENGINE: u8 = 8;

impl Die {
    /// Returns the mask of the dual subslices before fusing.
    pub const fn dss(&self) -> u32 {
        u32::MAX >> (32 - self.dual_subslices())
    }

    /// Returns the number of dual subslices before fusing, at most 32.
    pub const fn dual_subslices(&self) -> u32 {
        self.slices as u32 * DSS_PER_SLICE as u32
    }

    /// Returns the number of compute engines before fusing.
    pub const fn compute_engines(&self) -> u32 {
        self.dual_subslices().div_ceil(DSS_PER_COMPUTE_ENGINE as u32)
    }
}

impl PartialEq for Die {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Die {}

impl fmt::Debug for Die {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Debug for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// An engine of a generation, with its properties.
#[derive(Clone, Copy, Debug)]
pub struct EngineRef {
    /// The generation.
    pub generation: &'static Generation,
    /// The engine.
    pub id: EngineId,
}

impl PartialEq for EngineRef {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.generation, other.generation) && self.id == other.id
    }
}

impl Eq for EngineRef {}

impl EngineRef {
    /// Returns the engine's fixed properties.
    #[inline]
    pub fn info(self) -> &'static EngineInfo {
        self.generation.engines.info(self.id)
    }
}

/// Xe-HPG with graphics IP 12.55: DG2, ATS-M.
pub static XE_HPG: Generation = Generation {
    name: "xe-hpg",
    engines: XE_HPG_ENGINES,
    registers: &XE_HPG_REGISTERS,
    commands: &XE_HPG_COMMANDS,
    contexts: &XE_HPG_CONTEXTS,
    page_tables: &XE_HPG_PAGE_TABLES,
    firmware: &XE_HPG_FIRMWARE,
    hwconfig: hwconfig::table,
    sriov: &XE_HPG_SRIOV,
    // A crystal of 38.4 MHz, divided by two (RPM_CONFIG0 = 0x14; xe: xe_gt_clock.c).
    timebase: Timebase::new(19_200_000),
    observation: &XE_HPG_OBSERVATION,
    interrupts: &XE_HPG_INTERRUPTS,
    dies: &[&DG2_G10, &DG2_G11],
};

/// The larger die of DG2 (xe: xe_step.c; include/drm/intel/pciids.h, INTEL_ATS_M150_IDS).
static DG2_G10: Die = Die {
    name: "dg2-g10",
    generation: &XE_HPG,
    devices: &[0x56c0],
    steppings: &[(0, "A0"), (1, "A1"), (4, "B0"), (5, "B1"), (8, "C0")],
    firmware_sku: 0,
    slices: 8,
    mslices: 0xf,
    vdboxes: 0xff,
    veboxes: 0xf,
};

/// The smaller die of DG2 (xe: xe_step.c; include/drm/intel/pciids.h, INTEL_ATS_M75_IDS). The number of
/// memory slices is not public; assumption: two.
static DG2_G11: Die = Die {
    name: "dg2-g11",
    generation: &XE_HPG,
    devices: &[0x56c1],
    steppings: &[(0, "A0"), (4, "B0"), (5, "B1")],
    firmware_sku: 1,
    slices: 2,
    mslices: 0x3,
    vdboxes: 0x05,
    veboxes: 0x3,
};
