// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! All engines: register bases, separate registers, concurrent execution.

use super::whitelists::BASES;
use super::*;
use crate::generation::XE_HPG;
use crate::interrupts::USER_INTERRUPT;
use arctic_fidelity::proves;

#[test]
fn waiting_engine_does_not_block_others() {
    proves!(
        V8_001,
        "a waiting engine does not block others. For every pair, one engine waits while the other engine stores and \
        raises its interrupt. The waiting engine then continues"
    );
    for first in XE_HPG.engines.all() {
        let mut bench = EngineBench::on(first);
        bench.listen(Function::PF);
        let waiting = bench.context(0);
        bench.emit(waiting, &wait(4, VA + DATA, 1));
        bench.emit(waiting, &store(VA + DATA + 4, 2));
        bench.put64(DATA, 0);
        assert_eq!(bench.submit(waiting), Outcome::Waiting);
        for second in XE_HPG.engines.all().filter(|second| *second != first) {
            let mut engine = Engine::new(&XE_HPG, second);
            let context = bench.context(1);
            bench.put(DATA + 8, 0);
            bench.emit(context, &store(VA + DATA + 8, 3));
            bench.emit(context, &[MI_USER_INTERRUPT, 0]);
            engine.load(&bench.gt, context.load());
            assert_eq!(engine.step(&bench.gt, 100), Outcome::Complete, "{}", XE_HPG.engines.info(second).name);
            let info = XE_HPG.engines.info(second);
            let identity = bench.take_identity(Function::PF, second);
            assert_eq!((bench.get(DATA + 8), identity), (3, Some((info.class as u8, info.instance, USER_INTERRUPT))));
            assert_eq!(bench.engine.step(&bench.gt, 100), Outcome::Waiting);
        }
        assert_eq!((bench.engine.loaded().is_some(), bench.get(DATA + 4)), (true, 0));
        bench.put(DATA, 1);
        assert_eq!(bench.run(), Outcome::Complete);
        assert_eq!(bench.get(DATA + 4), 2);
    }
}

#[test]
fn eighteen_streamers_have_their_bases() {
    proves!(
        V8_002,
        "there are eighteen streamers with the documented bases. Registers are not shared between streamers"
    );
    assert_eq!(XE_HPG.engines.all().count(), BASES.len());
    let bench = EngineBench::new(EngineClass::Copy);
    for (n, (class, instance, base)) in BASES.into_iter().enumerate() {
        assert_eq!(XE_HPG.engines.info(XE_HPG.engines.find(class, instance).unwrap()).mmio_base, base);
        bench.gt.write(base + 0x94, n as u32 + 1);
    }
    for (n, (class, instance, base)) in BASES.into_iter().enumerate() {
        assert_eq!(bench.gt.read(base + 0x94), n as u32 + 1, "{class:?} {instance}");
        let name = bench.gt.registers.name(bench.gt.registers.decode(base + 0x94).unwrap());
        assert!(name.starts_with(XE_HPG.engines.info(XE_HPG.engines.find(class, instance).unwrap()).name), "{name}");
    }
}

#[test]
fn engines_identify_themselves() {
    proves!(
        V8_005,
        "non-privileged batches and the driver can read the instance (9:4) and the class (2:0) from ENGINE_ID"
    );
    for (class, instance, base) in BASES {
        let mut bench = EngineBench::on(XE_HPG.engines.find(class, instance).unwrap());
        assert_eq!(bench.batch(&store_register(0x8c, VA + DATA)), Outcome::Complete);
        let expected = u32::from(instance) << 4 | class as u32;
        assert_eq!((bench.get(DATA), bench.gt.read(base + 0x8c)), (expected, expected));
        bench.gt.write(base + 0x8c, u32::MAX);
        assert_eq!(bench.gt.read(base + 0x8c), expected);
        assert_eq!(bench.engine.counters().register_refusals, 0);
    }
}

/// Bits of a written value that a register stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// These bits.
    Bits(u32),
    /// Masked register: bits 15:0, selected by bits 31:16.
    Masked,
    /// None. The register is read-only.
    Nothing,
    /// Not tested, because the register has side effects or special rules. Only the presence of the register is tested.
    There,
}

use Kept::{Bits, Masked, Nothing, There};

const ALL: Kept = Bits(u32::MAX);
const EVERY: &[EngineClass] = &EngineClass::BY_GUC;
const PIPELINES: &[EngineClass] = &[EngineClass::Render, EngineClass::Compute];
const COPY: &[EngineClass] = &[EngineClass::Copy];

/// Registers that Volume 8 lists by offset from an engine's base: first offset, dwords, stored bits, engine classes
/// (V8-009).
#[rustfmt::skip]
const CATALOGUE: &[(u32, u32, Kept, &[EngineClass])] = &[
    (0x010, 4, ALL, EVERY), (0x028, 1, Masked, EVERY), (0x030, 1, Bits(0x001f_fff8), EVERY),
    (0x034, 1, Bits(0xffff_fffc), EVERY), (0x038, 1, Bits(0xffff_f000), EVERY), (0x03c, 1, There, EVERY),
    (0x054, 1, ALL, EVERY), (0x058, 1, ALL, EVERY), (0x068, 1, Nothing, EVERY), (0x080, 1, Bits(0xffff_f000), EVERY),
    (0x084, 1, ALL, EVERY), (0x08c, 1, Nothing, EVERY), (0x094, 1, There, EVERY), (0x098, 1, ALL, EVERY),
    (0x09c, 1, Masked, EVERY), (0x0a4, 1, ALL, EVERY), (0x0a8, 1, ALL, EVERY), (0x0ac, 1, ALL, EVERY),
    (0x0b0, 1, There, EVERY), (0x0b4, 1, There, EVERY), (0x0c0, 1, Masked, EVERY), (0x0c4, 1, Masked, EVERY),
    (0x0cc, 1, ALL, EVERY), (0x110, 1, There, EVERY), (0x114, 1, There, EVERY), (0x118, 1, There, EVERY),
    (0x11c, 1, There, EVERY), (0x120, 2, There, EVERY), (0x134, 1, There, EVERY), (0x138, 2, There, EVERY),
    (0x140, 1, There, EVERY), (0x148, 1, There, EVERY), (0x14c, 1, There, EVERY), (0x150, 1, There, EVERY),
    (0x154, 1, There, EVERY), (0x158, 1, There, EVERY), (0x168, 1, There, EVERY), (0x16c, 1, There, EVERY),
    (0x170, 1, There, EVERY), (0x178, 2, ALL, EVERY), (0x180, 1, There, EVERY), (0x188, 2, ALL, EVERY),
    (0x1ac, 1, ALL, EVERY), (0x1c0, 1, There, EVERY), (0x1c4, 1, There, EVERY), (0x1c8, 1, There, EVERY),
    (0x1d0, 4, ALL, EVERY), (0x1f8, 1, ALL, EVERY), (0x1fc, 1, ALL, EVERY), (0x200, 1, Masked, COPY),
    (0x204, 1, There, COPY), (0x214, 1, ALL, EVERY), (0x218, 1, There, EVERY), (0x21c, 1, There, EVERY),
    (0x234, 2, There, EVERY), (0x23c, 1, ALL, EVERY), (0x244, 1, Masked, EVERY), (0x248, 1, There, EVERY),
    (0x24c, 1, ALL, EVERY), (0x270, 8, ALL, EVERY), (0x290, 2, ALL, PIPELINES), (0x29c, 1, Masked, EVERY),
    (0x2b4, 1, There, EVERY), (0x2b8, 1, ALL, EVERY), (0x2c0, 2, ALL, EVERY), (0x2d0, 2, ALL, EVERY),
    (0x2e8, 1, ALL, EVERY), (0x2ec, 1, ALL, EVERY), (0x358, 2, There, EVERY), (0x360, 1, ALL, PIPELINES),
    (0x364, 1, ALL, PIPELINES), (0x370, 12, There, EVERY), (0x3a0, 1, There, EVERY), (0x3a8, 1, There, EVERY),
    (0x3b4, 1, There, EVERY), (0x3b8, 1, There, EVERY), (0x3bc, 1, There, EVERY), (0x3c0, 12, There, EVERY),
    (0x400, 6, ALL, PIPELINES), (0x418, 1, There, PIPELINES), (0x41c, 1, There, EVERY), (0x424, 1, There, EVERY),
    (0x428, 2, There, EVERY), (0x4bc, 1, There, EVERY), (0x4c8, 1, There, EVERY), (0x4cc, 1, There, EVERY),
    (0x4d0, 12, ALL, EVERY), (0x500, 3, ALL, PIPELINES), (0x510, 16, ALL, EVERY), (0x56c, 1, There, EVERY),
    (0x588, 1, There, EVERY), (0x600, 32, ALL, EVERY),
];

#[test]
fn every_engine_has_the_registers_of_the_catalogue() {
    proves!(
        [V8_009, V8_004],
        "every register of the catalogue is present at its offset from the base of each engine that has it, and is \
        independent of all other registers. None is reported as unmodelled"
    );
    let mut written: Vec<(u32, u32)> = Vec::new();
    let bench = EngineBench::new(EngineClass::Copy);
    for (class, instance, base) in BASES {
        let rows = CATALOGUE.iter().filter(|(.., classes)| classes.contains(&class));
        for (offset, kept) in rows.flat_map(|(first, n, kept, _)| (0..*n).map(move |n| (first + 4 * n, *kept))) {
            let at = base + offset;
            let decoded = bench.gt.registers.decode(at).unwrap_or_else(|| panic!("{class:?} {offset:#x}"));
            assert_eq!(decoded.engine, XE_HPG.engines.find(class, instance), "{offset:#x}");
            let before = bench.gt.read(at);
            // A value specific to this register and its complement test each bit as 0 and 1.
            let value = at.wrapping_mul(0x9e37_79b9) & 0xffff | 0x5a5a_0000;
            let mut last = before;
            for value in [value, !value] {
                match kept {
                    Bits(mask) => {
                        bench.gt.write(at, value);
                        last = before & !mask | value & mask;
                    }
                    Masked => {
                        bench.gt.write(at, value);
                        last = last & !(value >> 16) & 0xffff | value & value >> 16;
                    }
                    Nothing => drop(bench.gt.write(at, value)),
                    There => {}
                }
                if kept != There {
                    assert_eq!(bench.gt.read(at), last, "{} {kept:?}", bench.gt.registers.name(decoded));
                }
            }
            if kept != There {
                written.push((at, last));
            }
        }
    }
    for (at, value) in &written {
        assert_eq!(bench.gt.read(*at), *value, "{at:#x}: changed by a write of another register");
    }
    assert_eq!(bench.gt.registers.unmodelled(), Default::default());
    // Examples in Volume 8.
    for (at, name) in [(0x1c_8244, "vecs0.RING_CONTEXT_CONTROL"), (0x2_2244, "bcs0.RING_CONTEXT_CONTROL")] {
        assert_eq!(bench.gt.registers.name(bench.gt.registers.decode(at).unwrap()), name);
    }
}

#[test]
fn commands_name_registers_either_way() {
    proves!(
        V8_004,
        "if the header bit is set, an offset is relative to the base of the executing engine, otherwise it is \
        absolute"
    );
    for (class, instance, base) in BASES {
        let mut bench = EngineBench::on(XE_HPG.engines.find(class, instance).unwrap());
        assert_eq!(bench.ring(&[0x1108_0001, 0x94, 5, 0x1100_0001, 0x2_2098, 6, 0x1100_0001, base + 0x98, 7]), {
            Outcome::Complete
        });
        let copy = if class == EngineClass::Copy { 7 } else { 6 };
        assert_eq!((bench.own(0x94), bench.own(0x98), bench.gt.registers.value(0x2_2098)), (5, 7, copy));
        for (other, ..) in BASES.into_iter().filter(|(.., other)| *other != base) {
            let other = XE_HPG.engines.info(XE_HPG.engines.find(other, 0).unwrap()).mmio_base;
            assert!(other == base || bench.gt.registers.value(other + 0x94) == 0);
        }
    }
}
