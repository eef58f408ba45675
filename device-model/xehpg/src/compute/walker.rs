// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! COMPUTE_WALKER as it is executed: the groups, what their threads start with, and what follows their end (EU-020..028).

use arctic_base::command::Field;
use arctic_eu::capture::CapturedLaunch;
use arctic_eu::exec::payload::{Dispatch, Header, LocalIds};
use arctic_sriov::number::{high, low, qword};

use super::bases::{ADDRESS, Bases};
use super::state::ComputeState;
use crate::command::gfx::walker::{self as field, DWORDS};

/// The dwords of a walker.
pub type WalkerWords = [u32; DWORDS];

/// Most threads of a group: those of one dual sub-slice with 128 registers each, all of which a barrier needs at once.
const MOST_THREADS: u32 = 128;
/// Most bytes of code of a kernel that are translated; a thread that comes to more ends. Translated, an instruction takes 50 times
/// its bytes, and each engine translates a kernel.
pub(super) const MOST_CODE: usize = 1 << 20;
/// Order of the dimensions of local ids, the innermost first, by the value of the field (EU-033).
const ID_ORDERS: [[u32; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0]];
/// Order of the dimensions of groups, the innermost first.
const GROUP_ORDERS: [[usize; 3]; 2] = [[0, 1, 2], [1, 0, 2]];
/// Bytes of shared local memory by the code of the field (EU-050).
const SLM_BYTES: [usize; 8] = [0, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];

/// Bits of cr0.0 and cr0.1 at the start of a thread (EU-032).
mod control {
    /// cr0.0: all channels follow the first one.
    pub const SINGLE_FLOW: u32 = 1 << 0;
    /// cr0.0: first bit of the rounding mode.
    pub const ROUNDING: u32 = 4;
    /// cr0.1: mask stack exceptions are enabled.
    pub const MASK_STACK: u32 = 1 << 11;
    /// cr0.1: illegal opcode exceptions are enabled.
    pub const ILLEGAL: u32 = 1 << 12;
    /// cr0.1: software exceptions are enabled.
    pub const SOFTWARE: u32 = 1 << 13;
}

/// Why a walker is not executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WalkerError {
    /// The command has fewer dwords than a walker.
    #[error("too short")]
    Length,
    /// A field has a value that the documents do not have.
    #[error("reserved value {value} of \"{field}\"")]
    Reserved {
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: u32,
    },
    /// More threads than can be on one dual sub-slice at once.
    #[error("a group of {0} threads")]
    Threads(u32),
}

/// What is written when all threads have ended (EU-025).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostSync {
    /// Nothing.
    None,
    /// This qword.
    Immediate {
        /// Virtual address.
        address: u64,
        /// Value.
        value: u64,
    },
    /// Timestamps of start and end, four dwords.
    Timestamp {
        /// Virtual address.
        address: u64,
    },
}

/// A walker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walker {
    words: WalkerWords,
    start: [u32; 3],
    end: [u32; 3],
    order: [usize; 3],
    /// First group to execute; `None` if the range is empty.
    pub first: Option<[u32; 3]>,
    /// Offset of the kernel from the instruction base.
    pub kernel: u32,
    /// What threads start with.
    pub dispatch: Dispatch,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of shared local memory of a group.
    pub slm: usize,
    /// What the addresses of messages are relative to.
    pub bases: Bases,
    /// Offset of the system routine from the instruction base, if the context has one (EU-061).
    pub system_routine: Option<u32>,
    /// What is written at the end.
    pub post_sync: PostSync,
}

impl Walker {
    /// Reads the command with the state of its context (EU-010: a copy). `indirect` has the ends of the range of groups that
    /// registers hold (EU-027).
    ///
    /// # Errors
    /// If the command has no meaning.
    pub fn new(words: &[u32], state: &ComputeState, indirect: [u32; 3]) -> Result<Walker, WalkerError> {
        let mut words: WalkerWords =
            words.get(..DWORDS).and_then(|words| words.try_into().ok()).ok_or(WalkerError::Length)?;
        if field::INDIRECT.is_set(&words) {
            for (end, value) in field::GROUPS_END.iter().zip(indirect) {
                set(&mut words, usize::from(end.dword), value);
            }
            words[0] &= !field::INDIRECT.mask();
        }
        let words = words;
        let reserved = |field| reserved(field, &words);
        let simd = match field::SIMD.get(&words) {
            size @ 0..3 => 8 << size,
            _ => return Err(reserved(field::SIMD)),
        };
        let threads = field::THREADS.get(&words);
        if threads > MOST_THREADS {
            return Err(WalkerError::Threads(threads));
        }
        let slm = *SLM_BYTES.get(field::SLM.get(&words) as usize).ok_or(reserved(field::SLM))?;
        let order = *GROUP_ORDERS.get(field::GROUP_ORDER.get(&words) as usize).ok_or(reserved(field::GROUP_ORDER))?;
        let [start, end, resume] =
            [field::GROUPS_START, field::GROUPS_END, field::RESUME].map(|fields| fields.map(|field| field.get(&words)));
        let first = if field::VARIANT.get(&words) == 0 { start } else { resume };
        let inside = (0..3).all(|axis| first.get(axis) >= start.get(axis) && first.get(axis) < end.get(axis));
        Ok(Walker {
            start,
            end,
            order,
            first: inside.then_some(first).filter(|_| threads != 0),
            kernel: low(field::KERNEL.wide(&words)),
            dispatch: Dispatch {
                simd,
                threads,
                last_mask: field::LAST_MASK.get(&words),
                header: Header {
                    indirect: low(field::INDIRECT_DATA.wide(&words)),
                    sampler: low(field::SAMPLERS.wide(&words)),
                    bindings: field::BINDING_TABLE.get(&words) << field::BINDING_TABLE.low,
                    scratch: state.scratch(),
                },
                ids: local_ids(&words, simd)?,
                inline: field::EMIT_INLINE.is_set(&words).then(|| inline(&words)),
                cr0: control_registers(&words),
                exceptions: true,
            },
            registers: state.registers(),
            slm,
            bases: bases(&words, state),
            system_routine: state.system_routine(),
            post_sync: post_sync(&words),
            words,
        })
    }

    /// What it executes, for a capture.
    pub(super) fn captured(&self) -> CapturedLaunch {
        CapturedLaunch {
            dispatch: self.dispatch.clone(),
            registers: self.registers,
            slm: u32::try_from(self.slm).unwrap_or(0),
            instruction_base: self.bases.instruction & ADDRESS,
            kernel: self.kernel,
            system_routine: self.system_routine,
            code_limit: u32::try_from(MOST_CODE).unwrap_or(u32::MAX),
            general_base: self.bases.general & ADDRESS,
            first: self.first,
            start: self.start,
            end: self.end,
            order: self.order.map(|axis| u8::try_from(axis).unwrap_or(0)),
        }
    }

    /// The command.
    pub(super) fn words(&self) -> &WalkerWords {
        &self.words
    }

    /// Address of the kernel.
    pub fn kernel_address(&self) -> u64 {
        self.bases.instruction.wrapping_add(self.kernel.into()) & ADDRESS
    }

    /// The group after `group`, in the walker's order (EU-024).
    #[allow(clippy::arithmetic_side_effects, reason = "an id in the range is below its end")]
    pub fn after(&self, mut group: [u32; 3]) -> Option<[u32; 3]> {
        for axis in self.order {
            let (Some(id), Some(start), Some(end)) = (group.get_mut(axis), self.start.get(axis), self.end.get(axis))
            else {
                return None;
            };
            if *id < *end - 1 {
                *id += 1;
                return Some(group);
            }
            *id = *start;
        }
        None
    }

    /// The command that resumes the walker at `group`: at the end of the range if there is none. `ticket` names the object that
    /// has its groups in flight, or is 0.
    pub fn resume_at(&self, group: Option<[u32; 3]>, ticket: u64) -> WalkerWords {
        let mut words = self.words;
        words[0] |= 1 << field::VARIANT.low;
        for ((at, id), end) in field::RESUME.iter().zip(group.unwrap_or(self.end)).zip(self.end) {
            set(&mut words, usize::from(at.dword), id.min(end));
        }
        let [first, second] = field::PARTITION.map(|field| usize::from(field.dword));
        set(&mut words, first, low(ticket));
        set(&mut words, second, high(ticket));
        words
    }

    /// The ticket in a command of [`Walker::resume_at`].
    pub fn ticket(words: &[u32]) -> u64 {
        let [first, second] = field::PARTITION.map(|field| field.get(words));
        qword(first, second)
    }
}

fn reserved(field: Field, words: &WalkerWords) -> WalkerError {
    WalkerError::Reserved { field: field.name, value: field.get(words) }
}

fn set(words: &mut WalkerWords, at: usize, value: u32) {
    if let Some(word) = words.get_mut(at) {
        *word = value;
    }
}

fn inline(words: &WalkerWords) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (raw, word) in bytes.chunks_exact_mut(4).zip(words.get(field::INLINE..).unwrap_or_default()) {
        raw.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// Local ids in the payload (EU-031, EU-033).
#[allow(clippy::arithmetic_side_effects, reason = "a size has 10 bits, and there are three dimensions")]
fn local_ids(words: &WalkerWords, simd: u32) -> Result<Option<LocalIds>, WalkerError> {
    let emit = field::EMIT_IDS.get(words);
    if emit == 0 {
        return Ok(None);
    }
    let order = field::ID_ORDER.get(words);
    let order = *ID_ORDERS.get(order as usize).ok_or(reserved(field::ID_ORDER, words))?;
    if field::TILE_LAYOUT.is_set(words) {
        return Err(reserved(field::TILE_LAYOUT, words));
    }
    Ok(Some(LocalIds {
        local: field::LOCAL_SIZE.map(|size| size.get(words) + 1),
        order,
        emitted: [0, 1, 2].map(|axis| emit >> axis & 1 != 0),
        registers: emit.count_ones() * if simd == 32 { 2 } else { 1 },
    }))
}

fn control_registers(words: &WalkerWords) -> [u32; 2] {
    let flag = |field: Field, bits: u32| if field.is_set(words) { bits } else { 0 };
    [
        field::ROUNDING.get(words) << control::ROUNDING | flag(field::SINGLE_FLOW, control::SINGLE_FLOW),
        flag(field::SOFTWARE_EXCEPTIONS, control::SOFTWARE)
            | flag(field::MASK_STACK_EXCEPTIONS, control::MASK_STACK)
            | flag(field::ILLEGAL_EXCEPTIONS, control::ILLEGAL),
    ]
}

fn bases(words: &WalkerWords, state: &ComputeState) -> Bases {
    let sum = |base: u64, offset: u64| base.wrapping_add(offset) & ADDRESS;
    let table = field::BINDING_TABLE.get(words) << field::BINDING_TABLE.low;
    Bases {
        general: state.general(),
        surface: state.surface(),
        dynamic: state.dynamic(),
        instruction: state.instruction(),
        bindless_surfaces: state.bindless_surfaces(),
        bindless_samplers: state.bindless_samplers(),
        binding_table: sum(state.binding_tables(), table.into()),
        samplers: sum(state.dynamic(), field::SAMPLERS.wide(words)),
    }
}

fn post_sync(words: &WalkerWords) -> PostSync {
    let address = field::ADDRESS.wide(words);
    match field::OPERATION.get(words) {
        1 => PostSync::Immediate { address, value: field::IMMEDIATE.wide(words) },
        3 => PostSync::Timestamp { address },
        _ => PostSync::None,
    }
}

#[cfg(test)]
mod tests {
    use arctic_fidelity::proves;

    use super::*;

    /// `eu-vectors.md`: vector A.
    const HARDWARE_IDS: [u32; 39] = [
        0x7208_0025,
        0,
        0x40,
        0xffa5_0000,
        0xbe04_0000,
        0xffff_ffff,
        0x3f,
        0x10,
        1,
        1,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0xfffe_00c0,
        0,
        0,
        0,
        0x10c0,
        0x0c00_0002,
        8,
        0,
        0x1027,
        0xffe8_0000,
        0xffff_80ab,
        0,
        0,
        0,
        0,
        0x40,
        1,
        1,
        0,
        0xffdf_0000,
        0xffff_80ff,
    ];

    fn walker(words: &[u32]) -> Result<Walker, WalkerError> {
        Walker::new(words, &ComputeState::default(), [0; 3])
    }

    fn groups(walker: &Walker) -> Vec<[u32; 3]> {
        std::iter::successors(walker.first, |group| walker.after(*group)).take(100).collect()
    }

    fn with(changes: &[(usize, u32)]) -> [u32; 39] {
        let mut words = HARDWARE_IDS;
        changes.iter().for_each(|(at, value)| words[*at] = *value);
        words
    }

    #[test]
    fn fields_of_a_walker_by_opencl() {
        proves!([EU_020, EU_021], "the fields of NEO's walker and of its interface descriptor");
        let walker = walker(&HARDWARE_IDS).unwrap();
        assert_eq!((walker.kernel, walker.slm, walker.registers), (0xfffe_00c0, 0, 128));
        assert_eq!(walker.post_sync, PostSync::Timestamp { address: 0x80ab_ffe8_0000 });
        assert_eq!(groups(&walker), (0..16).map(|x| [x, 0, 0]).collect::<Vec<_>>());
        let dispatch = &walker.dispatch;
        assert_eq!((dispatch.simd, dispatch.threads, dispatch.last_mask), (32, 2, !0));
        assert_eq!((dispatch.header.indirect, dispatch.header.bindings), (0xffa5_0000, 0x10c0));
        let ids = LocalIds { local: [64, 1, 1], order: [0, 1, 2], emitted: [true; 3], registers: 6 };
        assert_eq!(dispatch.ids, Some(ids));
        assert_eq!(dispatch.inline.unwrap()[24..28], 0xffdf_0000_u32.to_le_bytes());
        assert_eq!(walker.bases.binding_table, 0x10c0);
    }

    #[test]
    fn ranges_of_groups() {
        proves!(
            [EU_022, EU_024],
            "a dimension is the end of its range; an empty range has no groups. X, Y, Z in this order, or Y first"
        );
        let range = [(7, 3), (8, 4), (9, 1), (10, 1), (11, 2)];
        let expected = [[1, 2, 0], [2, 2, 0], [1, 3, 0], [2, 3, 0]];
        assert_eq!(groups(&walker(&with(&range)).unwrap()), expected);
        let y_first = [&range[..], &[(4, 0xbe04_0020)]].concat();
        assert_eq!(groups(&walker(&with(&y_first)).unwrap()), [[1, 2, 0], [1, 3, 0], [2, 2, 0], [2, 3, 0]]);
        for empty in [(7, 0), (8, 0), (10, 16), (23, 0)] {
            assert_eq!(groups(&walker(&with(&[empty])).unwrap()), [[0; 3]; 0], "{empty:?}");
        }
        let huge = walker(&with(&[(7, u32::MAX), (10, u32::MAX - 1), (8, u32::MAX), (11, u32::MAX - 1)])).unwrap();
        assert_eq!(groups(&huge), [[u32::MAX - 1, u32::MAX - 1, 0]]);
    }

    #[test]
    fn ends_of_the_range_in_registers() {
        proves!(EU_027, "the ends of the range come from registers, and a resumed walker keeps them");
        let words = with(&[(0, 0x7208_0425)]);
        let walker = Walker::new(&words, &ComputeState::default(), [2, 3, 1]).unwrap();
        assert_eq!(groups(&walker).len(), 6);
        assert_eq!(walker.resume_at(None, 0)[..9], [0x7209_0025, 0, 0x40, 0xffa5_0000, 0xbe04_0000, !0, 0x3f, 2, 3]);
    }

    #[test]
    fn a_walker_is_resumed_at_a_group() {
        proves!(EU_070, "a resumed walker executes the groups that are left");
        let walker = walker(&with(&[(7, 3), (8, 2)])).unwrap();
        let all = groups(&walker);
        for at in 0..=all.len() {
            let words = walker.resume_at(all.get(at).copied(), 0x1234_5678_9abc_def0);
            assert_eq!(Walker::ticket(&words), 0x1234_5678_9abc_def0);
            let resumed = Walker::new(&words, &ComputeState::default(), [0; 3]).unwrap();
            assert_eq!(groups(&resumed), all[at..]);
        }
        let outside = with(&[(0, 0x7209_0025), (15, 99)]);
        assert_eq!(groups(&super::Walker::new(&outside, &ComputeState::default(), [0; 3]).unwrap()), [[0; 3]; 0]);
    }

    #[test]
    fn walkers_without_meaning_are_refused() {
        proves!([EU_028, EU_024], "values without a meaning are refused, and groups that cannot be resident at once");
        let reserved = |field, value| Err(WalkerError::Reserved { field, value });
        let error = |changes: &[(usize, u32)]| walker(&with(changes)).map(|_| ());
        assert_eq!(error(&[(4, 0xfe04_0000)]), reserved("SIMD Size", 3));
        assert_eq!(error(&[(4, 0xbe04_0000 | 6 << 22)]), reserved("Walk Order", 6));
        assert_eq!(error(&[(4, 0xbe04_0000 | 1 << 19)]), reserved("Tile Layout", 1));
        assert_eq!(error(&[(4, 0xbe04_0000 | 2 << 5)]), reserved("Dispatch Walk Order", 2));
        assert_eq!(error(&[(23, 8 << 16 | 1)]), reserved("Shared Local Memory Size", 8));
        assert_eq!(error(&[(23, 129)]), Err(WalkerError::Threads(129)));
        assert_eq!(walker(&HARDWARE_IDS[..38]).map(|_| ()), Err(WalkerError::Length));
    }
}
