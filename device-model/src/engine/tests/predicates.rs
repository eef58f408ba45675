//! Predication: which command heeds which result.

use super::*;

/// V8-140: MI_SET_PREDICATE_RESULT suppresses everything but the commands with control of their own; MI_SET_PREDICATE
/// is always executed (trap T3).
#[test]
fn the_global_predicate() {
    let mut bench = Bench::new(EngineClass::Copy);
    let mut batch = vec![0x1108_0001, 0x3b8, 1];
    batch.extend(store(VA + DATA, 1));
    batch.push(0x0080_0000);
    batch.extend(store(VA + DATA + 4, 1));
    assert_eq!(bench.batch(&batch), Outcome::Complete);
    assert_eq!((bench.get(DATA), bench.get(DATA + 4)), (0, 1));
}

/// V8-141, contract G.5: i915's repair of a stray predicate: the ring would be skipped, so a batch ends or clears it.
#[test]
fn i915_recovers_from_a_stray_predicate() {
    for stray in [false, true] {
        let mut bench = Bench::new(EngineClass::Render);
        let context = bench.context(0);
        let page = (context.at + 0x6000) as u32;
        let repair = u64::from(page) + 0x800;
        bench.write(
            repair,
            &[0x1040_0002, page + 0xff8, 0, 0, 0x0500_8000, 0x0080_0000, 0x1040_0002, page + 0xff8, 0, 1, END],
        );
        bench.write(BATCH, &[0x1108_0001, 0x3b8, u32::from(stray), END]);
        bench.emit(context, &[0x0400_0001, 0x14c8_0002, 0x3b8, page + 0xff8, 0]);
        bench.emit(context, &[0x1880_0101, (VA + BATCH) as u32, 0, 0x1880_0001, repair as u32, 0, 0x0400_0000]);
        bench.emit(context, &store(VA + DATA, 1));
        assert_eq!(bench.submit(context), Outcome::Complete);
        assert_eq!(bench.get(DATA), 1, "the ring goes on");
        assert_eq!(bench.get(u64::from(page) + 0xff8), u32::from(stray));
    }
}

/// V8-140: the explicit predicate bit of batch start and end.
#[test]
fn explicit_predicates() {
    let mut bench = Bench::new(EngineClass::Copy);
    let other = BATCH + 0x1000;
    bench.put(other, END);
    for (result, marks) in [(0u32, [0, 0]), (1, [1, 1])] {
        (0..2).for_each(|n| bench.put(DATA + 4 * n, 0));
        // Taken jumps end the batch early; with bit 15 and the result set they are not taken.
        let batch = [&[0x1108_0001, 0x3b8, result][..], &[0x1880_8101, (VA + other) as u32, 0, 0x0080_0000]].concat();
        let batch = [&batch[..], &store(VA + DATA, 1)].concat();
        assert_eq!(bench.batch(&batch), Outcome::Complete);
        let batch = [&[0x1108_0001, 0x3b8, result][..], &[0x0500_8000, 0x0080_0000], &store(VA + DATA + 4, 1)].concat();
        assert_eq!(bench.batch(&batch), Outcome::Complete);
        assert_eq!([0, 4].map(|n| bench.get(DATA + n)), marks, "result {result}");
    }
}

/// V8-106, V8-142: sources of MI_SET_PREDICATE.
#[test]
fn set_predicate_sources() {
    let cases = [
        (0, 0, true),
        (1, 0, false),
        (2, 0, true),
        (3, 0, false),
        (4, 0, true),
        (5, 0, false),
        (6, 0, true),
        (1, 1, true),
        (2, 1, false),
        (3, 1, true),
        (4, 1, false),
        (5, 1, true),
        (6, 1, false),
        (15, 1, false),
    ];
    for (enable, result, executed) in cases {
        let mut bench = Bench::new(EngineClass::Compute);
        let mut batch = vec![0x1108_0005, 0x3bc, result, 0x418, result, 0x41c, result, 0x0080_0000 | enable];
        batch.extend(store(VA + DATA, 1));
        batch.push(0x0080_0000);
        assert_eq!(bench.batch(&batch), Outcome::Complete);
        assert_eq!(bench.get(DATA) == 1, executed, "enable {enable} result {result}");
    }
}

/// V8-114 (IVB-150): load, combine and compare of MI_PREDICATE.
#[test]
fn predicate_operations() {
    for (sources, data) in [((5u32, 5u32), 0u32), ((7, 5), 2), ((7, 5), 3)] {
        let delta = sources.0.wrapping_sub(sources.1);
        for present in [false, true] {
            for combine in 0..4u32 {
                for load in [2u32, 3] {
                    for compare in 0..4u32 {
                        let compared = [true, false, delta == 0, delta == data][compare as usize];
                        let combined = match combine {
                            0 => compared,
                            1 => present & compared,
                            2 => present | compared,
                            _ => present ^ compared,
                        };
                        let mut bench = Bench::new(EngineClass::Render);
                        let batch = [
                            0x1108_0007,
                            0x400,
                            sources.0,
                            0x408,
                            sources.1,
                            0x410,
                            data,
                            0x418,
                            u32::from(present),
                            0x0600_0000 | load << 6 | combine << 3 | compare,
                        ];
                        assert_eq!(bench.batch(&batch), Outcome::Complete);
                        let expected = combined ^ (load == 3);
                        assert_eq!(bench.own(0x418), u32::from(expected), "{load} {combine} {compare} {present}");
                        if compare == 2 {
                            assert_eq!(bench.own(0x410), delta);
                        }
                    }
                }
            }
        }
    }
}

/// V8-126, V8-137, V8-140: MI_STORE_REGISTER_MEM and PIPE_CONTROL heed MI_PREDICATE_RESULT if asked to.
#[test]
fn result_predicates() {
    for result in [0u32, 1] {
        let mut bench = Bench::new(EngineClass::Render);
        let at = (VA + DATA) as u32;
        let batch =
            [0x1108_0003, 0x418, result, 0x600, 9, 0x1228_0002, 0x600, at, 0, 0x7a00_0104, 0x4000, at + 8, 0, 9, 0];
        assert_eq!(bench.batch(&batch), Outcome::Complete);
        assert_eq!((bench.get(DATA), bench.get(DATA + 8)), (9 * result, 9 * result));
    }
}

/// IGT (i915_crc.c): with WPARID set, MI_LOAD_REGISTER_MEM adds CS_MI_ADDRESS_OFFSET.
#[test]
fn indexed_loads() {
    let mut bench = Bench::new(EngineClass::Copy);
    bench.put(DATA + 8, 0x99);
    let batch = [0x1108_0003, 0x21c, 1, 0x3b4, 8, 0x1489_0002, 0x600, (VA + DATA) as u32, 0];
    assert_eq!(bench.batch(&batch), Outcome::Complete);
    assert_eq!(bench.own(0x600), 0x99);
}
