//! Which registers the engine context has, and where the image holds them (V8-047..050): what a context switch saves and
//! restores, and what it gives reset values when a virtual function leaves.

use std::sync::LazyLock;

use super::id::{EngineClass, EngineId};
use crate::registers::{ENGINE_TABLE, Kind, Register, RegisterFile, TABLES, admitted};

/// A register of the engine context with a place that drivers know: dword of its value in the image, behind its offset;
/// offset from the engine's base or, from 0x1000 on, the register itself.
struct Placed(usize, u32);

/// The engine context that every engine has (V8-050), the GPRs apart.
const COMMON: &[Placed] = &[
    Placed(0x6f, 0x028),
    Placed(0x71, 0x09c),
    Placed(0x73, 0x0c0),
    Placed(0x75, 0x178),
    Placed(0x77, 0x17c),
    Placed(0x7b, 0x170),
    Placed(0x7d, 0x150),
    Placed(0x81, 0x158),
    Placed(0x83, 0x41c),
    Placed(0xc5, 0x068),
    Placed(0xc7, 0x084),
    Placed(0xc9, 0x3b4),
    Placed(0xcb, 0x3b8),
    Placed(0xcd, 0x21c),
    Placed(0xcf, 0x1fc),
];
/// Value of GPR0's low dword; 31 more follow, each behind its offset (i915: lrc_ring_gpr0).
const GPR: usize = 0x85;
/// GPRs' dwords.
const GPRS: u32 = 32;
/// MI_PREDICATE's registers, behind an LRI at 0xd1 (V8-142, V8-144: engine context; the place is the model's own).
const PREDICATE: &[Placed] = &[
    Placed(0xd3, 0x418),
    Placed(0xd5, 0x400),
    Placed(0xd7, 0x404),
    Placed(0xd9, 0x408),
    Placed(0xdb, 0x40c),
    Placed(0xdd, 0x410),
    Placed(0xdf, 0x414),
];
/// Chicken bits of the 3D pipeline that the drivers program by context, behind an LRI at 0xe1 (xe: xe_wa.c lrc_was,
/// xe_tuning.c lrc_tunings; i915: dg2_ctx_workarounds_init; the place is the model's own).
const RENDER: &[Placed] = &[
    Placed(0xe3, 0x6208),
    Placed(0xe5, 0x6604),
    Placed(0xe7, 0x7004),
    Placed(0xe9, 0x703c),
    Placed(0xeb, 0x7044),
    Placed(0xed, 0x731c),
    Placed(0xef, 0x83a4),
    Placed(0xf1, 0xb158),
];
/// Registers of [`RENDER`], for its LRI.
pub const RENDER_REGISTERS: u32 = RENDER.len() as u32;
/// BCS_SWCTRL and BLIT_CCTL (V8-048).
const COPY: &[Placed] = &[Placed(0x43, 0x200), Placed(0x45, 0x204)];

/// First dword of the values of all other registers of the context, one behind the other: they are nobody's to read but
/// the engine's, and so come without offsets, behind the end of what can be read as commands.
const BARE: usize = 0x100;
/// Dwords of the image that the engine reads and writes; what the drivers reserve beyond is left alone.
pub const IMAGE_DWORDS: usize = 0x180;

/// A register of the engine context on one engine.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// Dword of its value in the image.
    pub dword: usize,
    /// Its offset.
    pub register: u32,
    /// Whether the dword before the value is the offset, for drivers that read the image.
    pub named: bool,
    kind: Kind,
}

impl Kept {
    /// What the image gets of the register's value: a masked register is saved with its mask.
    pub fn saved(&self, value: u32) -> u32 {
        if self.kind == Kind::Masked { value | 0xffff_0000 } else { value }
    }

    /// What the register gets of the image's value.
    pub fn restored(&self, value: u32) -> u32 {
        match self.kind {
            Kind::Masked => value & value >> 16,
            // Read-only to commands; the card's own value comes back.
            Kind::ReadOnly => value,
            kind => admitted(kind, value),
        }
    }
}

static LAYOUTS: LazyLock<Vec<Vec<Kept>>> = LazyLock::new(|| EngineId::all().map(lay_out).collect());

/// The registers of the contexts of `engine`.
pub fn layout(engine: EngineId) -> &'static [Kept] {
    LAYOUTS.get(engine.index()).map_or(&[], Vec::as_slice)
}

/// Every modelled register that contexts of `engine` have, with its offset.
fn context_registers(engine: EngineId) -> impl Iterator<Item = (u32, &'static Register)> {
    let base = engine.info().mmio_base;
    let own = ENGINE_TABLE.iter().map(move |register| (base, register));
    let others = TABLES.iter().flat_map(|table| table.iter()).map(|register| (0, register));
    own.chain(others).filter(move |(_, register)| register.scope.kept_by(engine)).flat_map(|(base, register)| {
        (0..u32::from(register.count)).map(move |n| (base + register.offset + n * register.stride, register))
    })
}

fn lay_out(engine: EngineId) -> Vec<Kept> {
    let info = engine.info();
    let own: [&[Placed]; 2] = match info.class {
        EngineClass::Render => [PREDICATE, RENDER],
        EngineClass::Compute => [PREDICATE, &[]],
        EngineClass::Copy => [COPY, &[]],
        EngineClass::VideoDecode | EngineClass::VideoEnhance => [&[], &[]],
    };
    let place = |register: u32| {
        let behind = register.wrapping_sub(info.mmio_base);
        let gpr = behind.wrapping_sub(0x600) / 4;
        if behind >= 0x600 && gpr < GPRS {
            return Some(GPR + 2 * gpr as usize);
        }
        let mut placed = COMMON.iter().chain(own.into_iter().flatten());
        placed.find(|Placed(_, at)| *at == if *at < 0x1000 { behind } else { register }).map(|Placed(dword, _)| *dword)
    };
    let mut bare = BARE;
    let mut next = || {
        bare += 1;
        bare - 1
    };
    // CTX_TIMESTAMP, the live one, has a place of its own in the ring context.
    context_registers(engine)
        .filter(|(_, register)| !matches!(register.kind, Kind::Live(_)))
        .map(|(at, register)| match place(at) {
            Some(dword) => Kept { dword, register: at, named: true, kind: register.kind },
            None => Kept { dword: next(), register: at, named: false, kind: register.kind },
        })
        .collect()
}

/// Gives the registers of the engine context their reset values.
pub fn clear(engine: EngineId, registers: &RegisterFile) {
    for kept in layout(engine) {
        registers.set(kept.register, reset_value(registers, kept.register));
    }
}

/// A register's value after reset.
pub fn reset_value(registers: &RegisterFile, register: u32) -> u32 {
    registers.decode(register).map_or(0, |decoded| decoded.reset)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// V8-050, V13-052: every register of a context has one place in its image, those that drivers look for the place
    /// that they know, and the image has room for all.
    #[test]
    fn registers_have_places() {
        for engine in EngineId::all() {
            let layout = layout(engine);
            let dwords: BTreeSet<_> = layout.iter().map(|kept| kept.dword).collect();
            let registers: BTreeSet<_> = layout.iter().map(|kept| kept.register).collect();
            assert_eq!((dwords.len(), registers.len()), (layout.len(), layout.len()), "{}", engine.info().name);
            assert!(dwords.iter().all(|dword| *dword < IMAGE_DWORDS));
            let gpr = layout.iter().find(|kept| kept.register == engine.info().mmio_base + 0x67c).unwrap();
            assert_eq!((gpr.dword, gpr.named), (0xc3, true));
            let named = layout.iter().filter(|kept| kept.named).count();
            let placed = match engine.info().class {
                EngineClass::Render => PREDICATE.len() + RENDER.len(),
                EngineClass::Compute => PREDICATE.len(),
                EngineClass::Copy => COPY.len(),
                _ => 0,
            };
            assert_eq!(named, COMMON.len() + GPRS as usize + placed, "a placed register is not in the tables as such");
        }
    }

    /// A masked register comes back from the image as it was, whatever its upper half says.
    #[test]
    fn values_survive_the_image() {
        let kept = |kind| Kept { dword: 0, register: 0, named: true, kind };
        let masked = kept(Kind::Masked);
        assert_eq!((masked.saved(5), masked.restored(0xffff_0005), masked.restored(0x0001_0005)), (0xffff_0005, 5, 1));
        assert_eq!(kept(Kind::Storage(0xff0)).restored(0x1234), 0x230);
    }
}
