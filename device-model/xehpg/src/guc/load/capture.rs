// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Error capture: the engine registers that the GuC logs before it resets an engine (contract B.13).
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use arctic_sriov::number::count;
use bitfield_struct::bitfield;

use crate::generation::AdsFormat;
use crate::gt::Gt;
use crate::memory::{Fault, Gam, Space};
use crate::topology::{EngineClass, EngineId};

/// Number of classes with separate lists (xe: guc_capture_list_class_type).
const CLASSES: usize = 4;
/// Maximum number of registers of a list: the count in a capture's header has ten bits.
const MOST_REGISTERS: u32 = 0x3ff;
/// Dwords of a list entry and of a captured register: offset, value, flags, mask.
const ENTRY_DWORDS: usize = 4;

/// Flags of a list entry (xe: xe_guc_fwif.h, GUC_REGSET_STEERING_*).
#[bitfield(u32)]
struct EntryFlags {
    __: bool,
    /// The register is replicated. i915 sets only the ids.
    steered: bool,
    #[bits(10)]
    __: u16,
    /// Id of the slice to read.
    #[bits(4)]
    group: u8,
    #[bits(4)]
    __: u8,
    /// Id of the subslice to read.
    #[bits(4)]
    instance: u8,
    __: u8,
}

/// The GuC's first parameter (xe: GUC_CTL_LOG_PARAMS). A section has 1 to 16 units.
#[bitfield(u32)]
struct LogParams {
    /// The host has configured a log.
    valid: bool,
    __: bool,
    /// The section of captures has units of 1 MiB instead of 4 KiB.
    capture_megabytes: bool,
    /// The other sections have units of 1 MiB instead of 4 KiB.
    megabytes: bool,
    /// Units of the section of crash dumps, minus 1.
    #[bits(2)]
    crash: u32,
    /// Units of the section of debug messages, minus 1.
    #[bits(4)]
    debug: u32,
    /// Units of the section of captures, minus 1.
    #[bits(2)]
    capture: u32,
    /// Bits 31:12 of the log's address in the GGTT.
    #[bits(20)]
    page: u32,
}

/// Size in bytes of the section states, which precede the first section of the log.
const STATES: u64 = 0x1000;
/// Offset of the state of the capture section: the third, 36 bytes each.
const CAPTURE_STATE: u64 = 2 * 36;
const READ_POINTER: u64 = CAPTURE_STATE + 0x08;
const WRITE_POINTER: u64 = CAPTURE_STATE + 0x0c;
const SECTION_BYTES: u64 = CAPTURE_STATE + 0x10;
const SAMPLED_WRITE_POINTER: u64 = CAPTURE_STATE + 0x14;
const FLAGS: u64 = CAPTURE_STATE + 0x1c;
/// Flag of a section's state: the host should read the section.
const FLUSH_TO_FILE: u32 = 1 << 0;

/// Types of captures (xe: guc_state_capture_type).
const TYPE_GLOBAL: u32 = 0;
const TYPE_CLASS: u32 = 1;
const TYPE_INSTANCE: u32 = 2;
/// LRCA and context id of a capture that belongs to no context.
const NO_ENGINE: u32 = u32::MAX;

/// Status of STATE_CAPTURE_NOTIFICATION.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The capture is in the log.
    Written = 0,
    /// The section is full, because the host has not read earlier captures.
    NoSpace = 1,
}

/// GGTT addresses of the physical function's register lists; 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    global: u32,
    class: [u32; CLASSES],
    instance: [u32; CLASSES],
}

impl Lists {
    /// Reads the addresses from the ADS at GGTT address `ads`.
    pub fn read(gam: &mut Gam<'_>, ads: u64, format: &AdsFormat) -> Result<Lists, Fault> {
        let mut pointer = |at: u64| gam.read_u32(Space::Ggtt, ads.wrapping_add(at));
        let mut lists = Lists { global: pointer(format.global_list)?, ..Lists::default() };
        for (at, (class, instance)) in (0..).step_by(4).zip(lists.class.iter_mut().zip(&mut lists.instance)) {
            *class = pointer(format.class_lists.wrapping_add(at))?;
            *instance = pointer(format.instance_lists.wrapping_add(at))?;
        }
        Ok(lists)
    }
}

/// An engine about to be reset, and the context that caused the reset.
#[derive(Clone, Copy, Debug)]
pub struct Hung {
    /// The engine.
    pub engine: EngineId,
    /// GGTT address of the logical ring context.
    pub lrca: u32,
    /// The context's id.
    pub context: u32,
}

/// The capture section of the log and the register lists.
#[derive(Clone, Copy, Debug)]
pub struct Capture {
    /// GGTT address of the log; `None` if the host has not configured one.
    log: Option<u64>,
    /// Offset and size in bytes of the section.
    section: (u64, u32),
    lists: Lists,
}

impl Capture {
    /// Reads the location and section sizes of the log from the GuC's first parameter (xe: GUC_CTL_LOG_PARAMS).
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "a section has at most sixteen units of at most 1 MiB, by the widths of the fields"
    )]
    pub fn new(log_params: u32, lists: Lists) -> Self {
        let params = LogParams::from(log_params);
        let bytes = |megabytes: bool, units: u32| (units + 1) << if megabytes { 20 } else { 12 };
        let others = [params.debug(), params.crash()].map(|units| u64::from(bytes(params.megabytes(), units)));
        let log = params.valid().then_some(u64::from(params.page()) << 12);
        let capture = bytes(params.capture_megabytes(), params.capture());
        Capture { log, section: (STATES + others.iter().sum::<u64>(), capture), lists }
    }

    /// Captures the registers of the `hung` engines as one group. Returns `None` if the host has not configured
    /// captures, or if its lists or log cannot be accessed.
    pub fn write(&self, gt: &Gt, gam: &mut Gam<'_>, hung: &[Hung]) -> Option<Status> {
        let log = self.log.filter(|_| self.lists.global != 0 && !hung.is_empty())?;
        // The host may have unmapped the lists or the log; nothing is captured in that case.
        let group = self.group(gt, gam, hung).ok()?;
        self.append(gam, log, &group).ok()
    }

    fn group(&self, gt: &Gt, gam: &mut Gam<'_>, hung: &[Hung]) -> Result<Vec<u32>, Fault> {
        let mut group = vec![0, count(hung.len()).saturating_mul(2).saturating_add(1)];
        captured(gt, gam, &mut group, (TYPE_GLOBAL, NO_ENGINE, NO_ENGINE), self.lists.global, 0)?;
        let listed = |lists: [u32; CLASSES], class: usize| lists.get(class).copied().unwrap_or(0);
        for Hung { engine, lrca, context } in hung {
            let info = gt.engine(*engine);
            let list = match info.class {
                EngineClass::Render | EngineClass::Compute => 0,
                EngineClass::VideoDecode => 1,
                EngineClass::VideoEnhance => 2,
                EngineClass::Copy => 3,
            };
            let class = u32::from(info.class.guc()) << 4;
            let instance = class | u32::from(info.instance) << 8 | TYPE_INSTANCE;
            captured(
                gt,
                gam,
                &mut group,
                (class | TYPE_CLASS, NO_ENGINE, NO_ENGINE),
                listed(self.lists.class, list),
                0,
            )?;
            let list = listed(self.lists.instance, list);
            captured(gt, gam, &mut group, (instance, *lrca, *context), list, info.mmio_base)?;
        }
        Ok(group)
    }

    fn append(&self, gam: &mut Gam<'_>, log: u64, group: &[u32]) -> Result<Status, Fault> {
        let (at, size) = self.section;
        let place = |at: u64| log.wrapping_add(at);
        let mut state = |at: u64| gam.read_u32(Space::Ggtt, place(at));
        let inside = |pointer: u32| if pointer < size { pointer & !3 } else { 0 };
        let (read, write) = (inside(state(READ_POINTER)?), inside(state(WRITE_POINTER)?));
        let flags = state(FLAGS)?;
        let used = write.checked_sub(read).unwrap_or_else(|| size.wrapping_sub(read).wrapping_add(write));
        let bytes: Vec<u8> = group.iter().flat_map(|dword| dword.to_le_bytes()).collect();
        // One dword stays free, because a full section would be indistinguishable from an empty one.
        if bytes.len().saturating_add(4) > size.saturating_sub(used) as usize {
            return Ok(Status::NoSpace);
        }
        let (to_end, from_start) = bytes.split_at(bytes.len().min(size.saturating_sub(write) as usize));
        gam.write(Space::Ggtt, place(at).wrapping_add(u64::from(write)), to_end)?;
        gam.write(Space::Ggtt, place(at), from_start)?;
        let next = write.wrapping_add(count(bytes.len())).checked_rem(size).unwrap_or(0);
        for (field, value) in [
            (SECTION_BYTES, size),
            (WRITE_POINTER, next),
            (SAMPLED_WRITE_POINTER, next),
            (FLAGS, flags | FLUSH_TO_FILE),
        ] {
            gam.write_u32(Space::Ggtt, place(field), value)?;
        }
        Ok(Status::Written)
    }
}

/// Adds one capture to `group`: the registers of `list`, with offsets relative to `base`.
fn captured(
    gt: &Gt,
    gam: &mut Gam<'_>,
    group: &mut Vec<u32>,
    (info, lrca, context): (u32, u32, u32),
    list: u32,
    base: u32,
) -> Result<(), Fault> {
    let list = u64::from(list);
    let count = match list {
        0 => 0,
        list => (gam.read_u32(Space::Ggtt, list)? & 0xffff).min(MOST_REGISTERS),
    };
    group.extend([0, info, lrca, context, count]);
    let mut entries = vec![[[0; 4]; ENTRY_DWORDS]; count as usize];
    if count > 0 {
        gam.read(Space::Ggtt, list.wrapping_add(4), entries.as_flattened_mut().as_flattened_mut())?;
    }
    for entry in entries {
        let [offset, _, flags, mask] = entry.map(u32::from_le_bytes);
        let steering = EntryFlags::from(flags);
        let ids = (steering.group(), steering.instance());
        let instance = (steering.steered() || ids != (0, 0)).then_some(ids);
        let register = base.wrapping_add(offset);
        group.extend([offset, gt.read_for_guc(register, instance), flags, mask]);
    }
    Ok(())
}
