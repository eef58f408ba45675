// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The power context, register state that engines preserve over RC6.

use super::*;
use crate::gt::power_context::{POWER_DWORDS, PowerImage, WITH_DISPLAY, WITH_RING, WITHOUT_DISPLAY};
use crate::registers::Kind;
use arctic_fidelity::proves;

/// Returns the index of the value dword of the `nth` pair with this offset.
fn value_of(image: &[u32], register: u32, nth: usize) -> Option<usize> {
    (2..image.len() - 1).step_by(2).filter(|at| image[*at] == register).nth(nth).map(|at| at + 1)
}

#[test]
fn power_images_have_the_documents_places() {
    proves!([V8_191, V8_192, V8_193], "pairs, header and dword indices of the three images (traps T18 and T28)");
    let bench = EngineBench::new(EngineClass::Copy);
    let (engine, base) = (bench.gt.engine(bench.engine.id()), bench.base());
    let emit = |kind: PowerImage| {
        let mut image = [0; POWER_DWORDS];
        let len = kind.emit(engine, &bench.gt.registers, &mut image);
        image[..len].to_vec()
    };
    type Places = &'static [(u32, usize)];
    let images: [(PowerImage, u32, usize, usize, Places); 3] = [
        (
            WITHOUT_DISPLAY,
            MI_LOAD_REGISTER_IMM | 179,
            0xb6,
            0xc0,
            &[
                (0x29c, 0x02),
                (0x080, 0x04),
                (0x054, 0x08),
                (0x058, 0x0a),
                (0x094, 0x0c),
                (0x098, 0x0e),
                (0x0b0, 0x12),
                (0x0cc, 0x1c),
                (0x3bc, 0x26),
                (0x370, 0x2a),
                (0x3c0, 0x42),
                (0x24c, 0x5a),
                (0x4d0, 0x5e),
                (0x010, 0x76),
                (0x1d0, 0x7e),
                (0x234, 0x86),
                (0x1ac, 0x8a),
                (0x428, 0x8e),
                (0x510, 0x92),
                (0x218, 0xb2),
                (0x56c, 0xb4),
            ],
        ),
        (
            WITH_DISPLAY,
            MI_LOAD_REGISTER_IMM | 199,
            0xca,
            0xd0,
            &[
                (0x054, 0x08),
                (0x2d0, 0x1c),
                (0x2ec, 0x20),
                (0x0cc, 0x22),
                (0x3bc, 0x2c),
                (0x2e8, 0x64),
                (0x4d0, 0x66),
                (0x234, 0x8e),
                (0x428, 0x96),
                (0x2b8, 0x9a),
                (0x2c0, 0x9c),
                (0x1f8, 0xa0),
                (0x188, 0xa2),
                (0x510, 0xa6),
                (0x218, 0xc6),
                (0x56c, 0xc8),
            ],
        ),
        (
            WITH_RING,
            MI_LOAD_REGISTER_IMM | 217,
            0xdc,
            0xe0,
            &[
                (0x03c, 0x06),
                (0x034, 0x08),
                (0x038, 0x0c),
                (0x168, 0x10),
                (0x11c, 0x16),
                (0x118, 0x1a),
                (0x054, 0x1e),
                (0x0a8, 0x26),
                (0x134, 0x2e),
                (0x14c, 0x34),
                (0x138, 0x4a),
                (0x3bc, 0x4e),
                (0x4d0, 0x88),
                (0x234, 0xa0),
                (0x1ac, 0xa4),
                (0x2b8, 0xac),
                (0x510, 0xb8),
                (0x56c, 0xda),
            ],
        ),
    ];
    for (kind, header, end, len, places) in images {
        let image = emit(kind);
        assert_eq!((image[0], image[1], image.len()), (0, header, len));
        assert_eq!((header as usize & 0xff).div_ceil(2), (end - 2) / 2, "the number of pairs is authoritative");
        for (offset, at) in places {
            assert_eq!(value_of(&image, base + offset, 0), Some(at + 1), "{offset:#x}");
        }
        assert!(image[end..].iter().all(|word| *word == 0));
        let holes = (2..end).step_by(2).filter(|at| image[*at] == 0).count();
        assert_eq!(holes, if header == 0x1100_00d9 { 1 } else { 2 });
    }
}

#[test]
fn the_ring_is_enabled_last() {
    proves!(V8_193, "the ring is disabled first and stays disabled until head, tail and start are restored (trap T27)");
    let bench = EngineBench::new(EngineClass::VideoDecode);
    let (engine, base) = (bench.gt.engine(bench.engine.id()), bench.base());
    let saved = [(0x34, 0x40), (0x30, 0x80), (0x38, 0x10_0000), (0x3c, 0x3001), (0x140, 0x2001), (0xa8, 0xff0f)];
    for (offset, value) in saved {
        bench.gt.registers.set(base + offset, value);
    }
    let mut image = [0; POWER_DWORDS];
    let len = WITH_RING.emit(engine, &bench.gt.registers, &mut image);
    let (first, last) = (value_of(&image, base + 0x3c, 0).unwrap(), value_of(&image, base + 0x3c, 1).unwrap());
    assert_eq!((first, image[first], last, image[last]), (0x07, 0, 0x0f, 0x3001));
    // Power-up state with the ring enabled and all other values inverted.
    for (offset, value) in saved {
        bench.gt.registers.set(base + offset, if offset == 0x3c { 1 } else { value ^ u32::MAX });
    }
    PowerImage::restore(&image[..len], &bench.gt.registers, |register, value| {
        bench.gt.registers.set(register, value);
        if bench.own(0x3c) & 1 != 0 && register != base + 0x29c && register != base + 0x80 {
            assert_eq!([0x34, 0x30, 0x38].map(|offset| bench.own(offset)), [0x40, 0x80, 0x10_0000]);
        }
    });
    for (offset, value) in saved {
        assert_eq!(bench.own(offset), value, "{offset:#x}");
    }
}

#[test]
fn global_state_survives_rc6() {
    proves!(
        [V8_015, V8_023, V8_082, V8_190, V8_191, V8_192, V8_193, V8_194],
        "every register of an engine's power image keeps its value over RC6, including the SQ, the back end \
        registers and MI_PREDICATE_RESULT_2. The GT exits RC6 by forcewake, by a submission and when RC6 is \
        disabled (traps T12, T21)"
    );
    for class in EngineClass::BY_GUC {
        let mut bench = EngineBench::new(class);
        let base = bench.base();
        let mut image = [0; POWER_DWORDS];
        let kind = PowerImage::of(bench.gt.engine(bench.engine.id()));
        let len = kind.emit(bench.gt.engine(bench.engine.id()), &bench.gt.registers, &mut image);
        let registers: Vec<u32> = image[2..len].chunks(2).map(|pair| pair[0]).filter(|at| *at != 0).collect();
        assert!(registers.len() >= 88);
        for (n, register) in (1..).zip(&registers) {
            let value = match bench.gt.registers.decode(*register).unwrap().register.kind {
                Kind::Masked => 0x5a00 | n,
                _ => 0x00a5_0000 | n << 3,
            };
            bench.gt.registers.set(*register, value);
        }
        let values = |bench: &EngineBench| registers.iter().map(|at| bench.gt.registers.value(*at)).collect::<Vec<_>>();
        let before = values(&bench);
        bench.gt.permit_rc6(true);
        assert!(bench.gt.residency.asleep());
        bench.gt.write(0xa188, 0x0001_0001);
        assert!(values(&bench) == before, "{class:?}: after a forcewake");
        bench.gt.write(0xa188, 0x0001_0000);
        assert!(bench.gt.residency.asleep());
        let context = bench.context(0);
        bench.emit(context, &[0, 0]);
        assert_eq!(bench.submit(context), Outcome::Complete);
        assert!(bench.gt.residency.asleep());
        // CCID is also restored with a context, and EXECLIST_STATUS shows the context.
        let but_the_contexts = |values: Vec<u32>| -> Vec<(u32, u32)> {
            registers
                .iter()
                .copied()
                .zip(values)
                .filter(|(at, _)| ![0x180, 0x234, 0x238].contains(&(at - base)))
                .collect()
        };
        assert!(but_the_contexts(values(&bench)) == but_the_contexts(before.clone()), "{class:?}: after a submission");
        bench.gt.permit_rc6(false);
        assert!(!bench.gt.residency.asleep());
        assert!(but_the_contexts(values(&bench)) == but_the_contexts(before), "{class:?}: after RC6 was disabled");
    }
}

#[test]
fn result_2_is_global() {
    proves!(
        V8_190,
        "NOPID and MI_PREDICATE_RESULT_2 belong to the engine, not to a context. The next context can read them \
        (IGT: gem_ctx_isolation, NOCTX), unlike MI_PREDICATE_RESULT_1. Other functions cannot read them (trap T21)"
    );
    let mut bench = EngineBench::new(EngineClass::Render);
    let (first, second) = (bench.context(0), bench.context(1));
    let write = [MI_LOAD_REGISTER_IMM | CS_MMIO | 5, 0x3bc, 1, 0x94, 0x1234, 0x41c, 1];
    let read = |bench: &mut EngineBench| {
        for (n, offset) in [0x3bc, 0x94, 0x41c].into_iter().enumerate() {
            bench.emit(second, &store_register(offset, VA + DATA + 4 * n as u64));
        }
        assert_eq!(bench.submit(second), Outcome::Complete);
        [0, 4, 8].map(|n| bench.get(DATA + n))
    };
    bench.emit(first, &write);
    assert_eq!(bench.submit(first), Outcome::Complete);
    assert_eq!(read(&mut bench), [1, 0x1234, 0]);
    bench.give(Function::new(2).unwrap());
    assert_eq!(read(&mut bench), [0, 0, 0], "not visible to a VF");
    bench.emit(first, &write);
    assert_eq!(bench.submit(first), Outcome::Complete);
    bench.give(Function::new(3).unwrap());
    assert_eq!(read(&mut bench), [0, 0, 0]);
    bench.give(Function::PF);
    assert_eq!(read(&mut bench), [1, 0x1234, 0], "the PF's values are restored");
}

#[test]
fn engine_global_registers_keep_their_value() {
    proves!(
        V8_190,
        "an engine-global register, SEMA_WAIT_POLL, keeps its value over context switches and RC6 until it is \
        written"
    );
    let mut bench = EngineBench::new(EngineClass::Copy);
    let contexts = [bench.context(0), bench.context(1)];
    bench.gt.write(bench.base() + 0x24c, 0x123);
    bench.gt.write(bench.base() + 0x29c, 0x0008_0008);
    bench.gt.permit_rc6(true);
    for context in contexts.into_iter().cycle().take(4) {
        bench.emit(context, &[0, 0]);
        assert_eq!(bench.submit(context), Outcome::Complete);
        assert_eq!((bench.own(0x24c), bench.own(0x29c)), (0x123, 8));
    }
}
