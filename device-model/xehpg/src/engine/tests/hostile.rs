// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Steps are bounded and the streamer does not panic for any memory contents provided by a guest.

use proptest::prelude::*;

use super::*;

/// Generates dwords that are often valid commands.
fn dword() -> impl Strategy<Value = u32> {
    prop_oneof![
        any::<u32>(),
        (0u32..64, any::<u32>()).prop_map(|(opcode, rest)| opcode << 23 | rest & 0x7f_ffff),
        (0u32..64, 0u32..8).prop_map(|(opcode, len)| opcode << 23 | len),
        Just((VA + BATCH) as u32),
        Just((VA + DATA) as u32),
        Just(0),
    ]
}

fn class() -> impl Strategy<Value = EngineClass> {
    prop::sample::select(EngineClass::BY_GUC.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 96 } else { 1000 }))]

    /// Random batches do not panic, and steps are bounded.
    #[test]
    fn random_batches(
        class in class(),
        batch in prop::collection::vec(dword(), 0..64),
        ring in any::<bool>(),
        vf in any::<bool>(),
    ) {
        let mut bench = EngineBench::new(class);
        if vf {
            bench.give(Function::new(63).unwrap());
        }
        bench.write(BATCH, &batch);
        let context = bench.context(0);
        if ring {
            bench.emit(context, &batch);
        }
        bench.emit(context, &start(VA + BATCH));
        bench.engine.load(&bench.gt, Load { function: bench.function, ..context.load() });
        for step in 0..20 {
            if step == 10 {
                bench.engine.request_preemption();
            }
            bench.engine.tail_moved();
            bench.engine.step(&bench.gt, 200);
        }
        bench.engine.reset(&bench.gt);
        prop_assert_eq!(bench.engine.step(&bench.gt, 200), Outcome::Idle);
    }

    /// Random context images do not panic, and steps are bounded.
    #[test]
    fn random_images(
        class in class(),
        image in prop::collection::vec(any::<u32>(), 0x180),
        descriptor in any::<u64>(),
        vf in any::<bool>(),
    ) {
        let mut bench = EngineBench::new(class);
        if vf {
            bench.give(Function::new(1).unwrap());
        }
        let context = bench.context(0);
        bench.write(context.image(0), &image);
        for descriptor in [descriptor, context.load().descriptor] {
            bench.engine.load(&bench.gt, Load { descriptor, function: bench.function, ..context.load() });
            for _ in 0..10 {
                bench.engine.step(&bench.gt, 200);
            }
            bench.engine.reset(&bench.gt);
        }
    }
}
