// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Layout of a logical ring context's register image on each engine, and the registers that it contains (V8-042,
//! V8-046..051). The engine writes images in this layout, and drivers rely on positions in it. The documented sections
//! are followed by a section specific to this model with LRIs of the remaining context registers, and on engines with a
//! compute pipeline the commands that set its state.

use crate::command::gfx::walker;
use crate::command::mi::{MiHeader, fields, lri};
use crate::compute::{ComputeState, has_compute};
use crate::registers::observation::OAC;
use crate::registers::{Kind, Live, Register, RegisterFile, RegisterTables, all_selected, engine_offsets as reg};
use crate::topology::{EngineClass, EngineInfo, TRTT_REGISTERS, trtt};

/// MI_LOAD_REGISTER_MEM.
pub const LRM: u32 = MiHeader::of(0x29);
/// MI_FORCE_WAKEUP.
pub const FORCE_WAKEUP: u32 = MiHeader::of(0x1d);
/// MI_BATCH_BUFFER_END with bit 0 set, which ends an image (xe, i915: set_offsets).
pub const END: u32 = MiHeader::of(0x0a) | 1;
/// LRI, LRM bit 19: the offset is relative to the engine's register block.
pub const RELATIVE: u32 = fields::CS_MMIO.mask();
/// LRI bit 17: offsets of a class's first instance are remapped to the executing instance (trap T19).
pub const REMAP: u32 = fields::MMIO_REMAP.mask();
/// LRI bit 12: writes may be posted.
pub const POSTED: u32 = fields::FORCE_POSTED.mask();

/// Length in dwords of the longest image of any generation: the length of arrays that hold an image.
pub const IMAGE_DWORDS: usize = 0x400;

/// Format of the register images of a generation's contexts.
pub struct ContextFormat {
    /// Sections of the images of a class, except the LRIs of the registers that no section has.
    sections: fn(EngineClass) -> [&'static [Part]; 5],
    /// First and last of the registers that are part of the ring context, or batch position registers of the engine
    /// context, by offset from the engine's base.
    ring_context: &'static [(u32, u32)],
    /// First dword of the engine context.
    pub engine_context: usize,
    /// Length in dwords that drivers allocate for a copy or media context, at most [`IMAGE_DWORDS`].
    pub dwords: usize,
    /// Cacheline of the image at which INDIRECT_CTX runs if INDIRECT_CTX_OFFSET does not specify one in the engine
    /// context.
    pub indirect_ctx_offset: usize,
}

impl ContextFormat {
    /// Returns whether the register at offset `own` from the engine's base is part of the ring context or is a batch
    /// position register of the engine context. These registers are context state, but commands of the context may not
    /// write them.
    pub fn in_ring_context(&self, own: u32) -> bool {
        self.ring_context.iter().any(|(first, last)| (*first..=*last).contains(&own))
    }
}

/// The images of Xe-HPG.
pub static XE_HPG_CONTEXTS: ContextFormat = ContextFormat {
    sections: parts,
    ring_context: &[
        (reg::RING_TAIL, reg::RING_CTL),
        (reg::INT_SRC_RPT_PTR, reg::INT_SRC_RPT_PTR),
        (reg::INT_STATUS_RPT_PTR, reg::INT_STATUS_RPT_PTR),
        (reg::BB_STATE, reg::BB_STATE),
        (reg::PRT_BB_STATE, reg::PRT_BB_STATE + 4),
        (reg::BBADDR, reg::BBADDR),
        (reg::BB_ADD_DIFF, reg::BB_ADD_DIFF),
        (reg::BBADDR_UDW, reg::BBADDR_UDW),
        (reg::CCID, reg::CCID),
        (reg::BB_PER_CTX_PTR, reg::INDIRECT_CTX_OFFSET),
        (reg::CONTEXT_CONTROL, reg::CONTEXT_CONTROL),
        (reg::PDP0, reg::PDP3 + 4),
        (reg::SEMAPHORE_TOKEN, reg::SEMAPHORE_TOKEN),
    ],
    // After six cachelines of ring context (V8-042, trap T16; xe: xe_lrc_reg_size).
    engine_context: 0x60,
    // xe: xe_gt_lrc_size.
    dwords: 0x400,
    // i915: GEN12_CTX_RCS_INDIRECT_CTX_OFFSET_DEFAULT; xe writes 0 and relies on the default.
    indirect_ctx_offset: 0xd,
};

/// A section of an image.
enum Part {
    /// The given number of MI_NOOPs.
    Noop(usize),
    /// MI_LOAD_REGISTER_IMM with these header bits and register offsets from the engine's base.
    Load(u32, &'static [Span]),
    /// MI_LOAD_REGISTER_MEM of the interrupt mask.
    LoadMask,
    /// MI_FORCE_WAKEUP.
    Wakeup,
    /// LRI of the six TRTT registers, with the offsets of the class's first instance, remapped (V8-051).
    Trtt,
}

/// Consecutive register dwords: first offset and count.
struct Span(u32, u32);

use Part::{Load, LoadMask, Noop, Trtt, Wakeup};

/// One register.
const fn one(offset: u32) -> Span {
    Span(offset, 1)
}

/// Length in dwords of [`RING`].
const RING_DWORDS: usize = 0x34;
/// Dwords 0x00 to 0x33, identical on all engines (V8-047; i915: dg2_xcs_offsets, dg2_rcs_offsets). The header of 13
/// registers in the PRM does not include PRT_BB_STATE (trap T17).
const RING: &[Part] = &[
    Noop(1),
    Load(
        RELATIVE | POSTED,
        &[
            one(reg::CONTEXT_CONTROL),
            one(reg::RING_HEAD),
            one(reg::RING_TAIL),
            one(reg::RING_START),
            one(reg::RING_CTL),
            one(reg::BBADDR_UDW),
            one(reg::BBADDR),
            one(reg::BB_STATE),
            one(reg::BB_PER_CTX_PTR),
            one(reg::INDIRECT_CTX),
            one(reg::INDIRECT_CTX_OFFSET),
            one(reg::CCID),
            one(reg::SEMAPHORE_TOKEN),
            Span(reg::PRT_BB_STATE, 2),
        ],
    ),
    Noop(1),
    Load(
        RELATIVE | POSTED,
        &[
            one(reg::CTX_TIMESTAMP),
            one(reg::PDP3 + 4),
            one(reg::PDP3),
            one(reg::PDP2 + 4),
            one(reg::PDP2),
            one(reg::PDP1 + 4),
            one(reg::PDP1),
            one(reg::PDP0 + 4),
            one(reg::PDP0),
        ],
    ),
];
/// Dwords 0x34 to 0x4f on the render engine, as defined by the drivers (V8-048; i915, xe: dg2_rcs_offsets).
const RING_RENDER: &[Part] = &[
    Load(RELATIVE | POSTED, &[one(reg::POSH_LRCA), Span(reg::CTX_SCHEDULING_ATTRIBUTES, 2)]),
    Noop(6),
    Load(RELATIVE, &[one(reg::PWR_CLK_STATE)]),
    Noop(12),
];
/// Base of the registers of bcs0.
const BCS0: u32 = 0x2_2000;
/// Dwords 0x34 to 0x4f on the copy engine: BCS_SWCTRL and BLIT_CCTL. Bit 19 of the header is clear, so the offsets are
/// absolute.
const RING_COPY: &[Part] = &[Noop(13), Load(POSTED, &[Span(BCS0 + reg::BCS_SWCTRL, 2)]), Noop(10)];
/// The same on the other engines.
const RING_PLAIN: &[Part] = &[Noop(28)];
/// Dwords 0x50 to 0x5f: memory-based interrupts (V8-049; xe: set_memory_based_intr). The LRI header in the PRM
/// specifies one register, but its register list and xe have two. The trailing MI_NOOPs start at 0x5a (trap T18).
const RING_INTERRUPTS: &[Part] =
    &[LoadMask, Noop(1), Load(RELATIVE | POSTED, &[one(reg::INT_STATUS_RPT_PTR), one(reg::INT_SRC_RPT_PTR)]), Noop(6)];
/// Dwords 0x60 to 0xcf (V8-050).
const ENGINE: &[Part] = &[
    Noop(1),
    Load(
        RELATIVE | POSTED,
        &[
            one(reg::BB_STACK_WRITE_PORT),
            one(reg::BB_STACK_WRITE_PORT),
            one(reg::BB_STACK_WRITE_PORT),
            one(reg::BB_STACK_WRITE_PORT),
            one(reg::BB_STACK_WRITE_PORT),
            one(reg::BB_STACK_WRITE_PORT),
            one(reg::EXCC),
            one(reg::MI_MODE),
            one(reg::INSTPM),
            one(reg::PR_CTR_CTRL),
            one(reg::PR_CTR_THRSH),
            one(reg::TIMESTAMP),
            one(reg::BB_START_ADDR_UDW),
            one(reg::BB_START_ADDR),
            one(reg::BB_ADD_DIFF),
            one(reg::BB_OFFSET),
            one(reg::PREDICATE_RESULT_1),
            Span(reg::GPR, 32),
            one(reg::IPEHR),
            one(reg::CMD_BUF_CCTL),
            one(reg::MI_ADDRESS_OFFSET),
            one(reg::SET_PREDICATE_RESULT),
            one(reg::WPARID),
            one(reg::PREDICATION_MASK),
        ],
    ),
];
/// Dwords 0xd0 to 0xef of a media engine, including TRTT (V8-050, V8-051). The dword numbers of the TRTT section in the
/// PRM contradict its dword counts, according to which the section starts at 0xd8.
const TRTT_MEDIA: &[Part] = &[Wakeup, Noop(6), Trtt, Noop(6)];
/// The same on the other engines.
const TRTT_OTHER: &[Part] = &[Noop(8), Trtt, Noop(6)];

/// Returns the sections of the images of a class.
fn parts(class: EngineClass) -> [&'static [Part]; 5] {
    let (cacheline, trtt) = match class {
        EngineClass::Render => (RING_RENDER, TRTT_OTHER),
        EngineClass::Compute => (RING_PLAIN, TRTT_OTHER),
        EngineClass::Copy => (RING_COPY, TRTT_OTHER),
        EngineClass::VideoDecode | EngineClass::VideoEnhance => (RING_PLAIN, TRTT_MEDIA),
    };
    [RING, cacheline, RING_INTERRUPTS, ENGINE, trtt]
}

/// A register that is stored in the image.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// Dword index of the value in the image.
    pub dword: usize,
    /// Register offset.
    pub register: u32,
    masked: bool,
}

impl Kept {
    /// Returns the image value for a register value. Masked registers are saved with their mask.
    pub fn saved(&self, value: u32) -> u32 {
        if self.masked { all_selected(value) } else { value }
    }
}

/// Image layout of one engine.
pub struct Layout {
    /// The format.
    pub format: &'static ContextFormat,
    /// The engine's class.
    pub class: EngineClass,
    /// Offset of the engine's registers.
    base: u32,
    /// The image with all headers and offsets, values 0.
    pub template: Vec<u32>,
    /// Registers in the image, except the batch stack and the clocks.
    pub kept: Vec<Kept>,
    /// Dword index of the commands that set the state of the compute pipeline ([`ComputeState::commands`]), which the walker
    /// in progress follows; `None` on an engine without one.
    pub compute: Option<usize>,
    /// Dword indices of the values of OAC's registers, on a compute engine.
    pub oac: Vec<usize>,
}

/// Returns all modelled registers that are context state on `engine`, with their offsets.
#[allow(clippy::arithmetic_side_effects, reason = "the rows of the tables lie below 4 MiB")]
fn context_registers(tables: &RegisterTables, engine: &EngineInfo) -> impl Iterator<Item = (u32, &'static Register)> {
    let base = engine.mmio_base;
    let own = tables.engine.iter().map(move |register| (base, register));
    let others = tables.card.iter().flat_map(|table| table.iter()).map(|register| (0, register));
    own.chain(others).filter(move |(_, register)| register.scope.kept_by(engine)).flat_map(|(base, register)| {
        (0..u32::from(register.count)).map(move |n| (base + register.offset + n * register.stride, register))
    })
}

/// Returns the kind of the engine register at offset `own` from the base, or `None` if it is not modelled.
fn own_kind(tables: &RegisterTables, own: u32) -> Option<Kind<Live>> {
    let holds = |register: &&Register| own.wrapping_sub(register.offset) / 4 < u32::from(register.count);
    tables.engine.iter().find(holds).map(|register| register.kind)
}

/// Maximum number of registers per LRI in the model-specific section.
const GROUP: usize = 64;

impl Layout {
    /// Returns the layout of the images of an engine with these registers.
    #[allow(clippy::arithmetic_side_effects, reason = "the rows of the tables lie below 4 MiB")]
    pub fn of(format: &'static ContextFormat, tables: &RegisterTables, info: &EngineInfo) -> Self {
        let (class, base) = (info.class, info.mmio_base);
        let mut image =
            Layout { format, class, base, template: Vec::new(), kept: Vec::new(), compute: None, oac: Vec::new() };
        for part in (format.sections)(info.class).into_iter().flatten() {
            match part {
                Noop(dwords) => image.template.extend(std::iter::repeat_n(0, *dwords)),
                Wakeup => image.template.extend([FORCE_WAKEUP, 0]),
                LoadMask => image.template.extend([LRM | fields::GLOBAL.mask() | RELATIVE | 2, reg::IMR, 0, 0]),
                Trtt => {
                    let (first, own) = (trtt(info.class, 0).unwrap_or(0), trtt(info.class, info.instance));
                    image.template.push(0);
                    image.load(
                        REMAP | POSTED,
                        (0..TRTT_REGISTERS).map(|n| (first + 4 * n, own.map(|at| (at + 4 * n, false)))),
                    );
                    image.template.extend([0; 4]);
                }
                Load(flags, spans) => {
                    let base = if flags & RELATIVE != 0 { info.mmio_base } else { 0 };
                    let each = spans.iter().flat_map(|Span(first, n)| (0..*n).map(move |n| base + first + 4 * n));
                    let kept = |at: u32| match own_kind(tables, at - info.mmio_base) {
                        Some(Kind::Live(_)) => None,
                        _ if at - info.mmio_base == reg::BB_STACK_WRITE_PORT => None,
                        kind => Some((at, kind == Some(Kind::Masked))),
                    };
                    image.load(*flags, each.map(|at| (at, kept(at))));
                }
            }
        }
        // The live context register, CTX_TIMESTAMP, is already in the ring context.
        let rest: Vec<_> = context_registers(tables, info)
            .filter(|(at, register)| {
                !matches!(register.kind, Kind::Live(_)) && !image.kept.iter().any(|kept| kept.register == *at)
            })
            .map(|(at, register)| (at, Some((at, register.kind == Kind::Masked))))
            .collect();
        let (own, others): (Vec<_>, Vec<_>) = rest.into_iter().partition(|(at, _)| info.holds(*at));
        for (flags, registers) in [(RELATIVE | POSTED, own), (POSTED, others)] {
            for group in registers.chunks(GROUP) {
                image.load(flags, group.iter().copied());
            }
        }
        let oac = OAC.iter().filter_map(|offset| image.kept.iter().find(|kept| kept.register == *offset));
        image.oac = oac.map(|kept| kept.dword).collect();
        if has_compute(info.class) {
            image.compute = Some(image.template.len());
            image.template.extend(ComputeState::default().commands());
            // The walker in progress: MI_NOOPs if there is none.
            image.template.extend([0; walker::DWORDS]);
        }
        image.template.push(END);
        image.template.resize(image.template.len().next_multiple_of(16), 0);
        image
    }

    /// Appends an LRI. Each register has an encoded offset and, if its value is stored, its absolute offset and whether
    /// it is masked.
    #[allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "the header was just appended")]
    fn load(&mut self, flags: u32, registers: impl Iterator<Item = (u32, Option<(u32, bool)>)>) {
        let header = self.template.len();
        self.template.push(0);
        let mut count = 0;
        for (written, kept) in registers {
            count += 1;
            self.template.extend([written, 0]);
            let dword = self.template.len() - 1;
            self.kept.extend(kept.map(|(register, masked)| Kept { dword, register, masked }));
        }
        self.template[header] = lri(flags, count);
    }

    /// Resets the registers of the engine context.
    pub fn clear_engine_context(&self, registers: &RegisterFile) {
        let in_ring = |register: u32| self.format.in_ring_context(register.wrapping_sub(self.base));
        for kept in self.kept.iter().filter(|kept| !in_ring(kept.register)) {
            registers.reset_register(kept.register);
        }
    }

    /// Returns the image that software writes for a context that has not run yet, valid for any engine: headers and
    /// offsets of dwords 0x00 to 0x33, followed by the end command (xe, i915: set_offsets). All values are 0.
    pub(crate) fn blank(&self) -> Vec<u32> {
        let relative = |word: &u32| if *word & !0x7ff == self.base { word.wrapping_sub(self.base) } else { *word };
        self.template.iter().take(RING_DWORDS).map(relative).chain([END]).collect()
    }

    /// Resets all registers of a context.
    pub fn clear(&self, registers: &RegisterFile) {
        for kept in &self.kept {
            registers.reset_register(kept.register);
        }
    }
}
