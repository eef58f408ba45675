// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Cached translations: what invalidates them, in both modes of GFX_MODE, and what does not.

use std::time::Duration;

use arctic_base::trace::{EventKind, Filter};

use super::*;

/// Pages of the guest to which the data page of the PPGTT is mapped, one after the other.
const OLD: u32 = BEHIND + DATA;
const NEW: u32 = 0x1_7000;
/// Entry of the data page in the PPGTT's table, which the GGTT has at the same address.
const ENTRY: u32 = TABLE + (DATA >> 12) * 4;
/// A store to the data page of the PPGTT.
const STORE: [u32; 4] = [0x1000_0002, 0, DATA, 1];
/// A store to the entry that maps the data page to the other page.
const MAP: [u32; 4] = [0x1040_0002, 0, ENTRY, NEW | 1];
/// Values of GFX_MODE: a full flush of the pipeline invalidates, or only what asks for it does.
const MODES: [u32; 2] = [0x2000_0000, 0x2000_2000];

impl EngineBench {
    fn set_mode(&self, mode: u32) {
        self.write(self.base() + 0x29c, mode);
    }

    /// Maps the data page to the other page.
    fn map(&self) {
        self.put(ENTRY, NEW | 1);
    }

    /// Returns whether the last store was to the page to which the data page is mapped now, not to the one before.
    fn fresh(&self) -> bool {
        let pages = [OLD, NEW].map(|page| self.get(page));
        assert!(pages == [1, 0] || pages == [1, 1], "{pages:?}");
        pages == [1, 1]
    }

    /// Stores to the data page, and maps it to another page.
    fn translate_and_map(&mut self) {
        self.run(&STORE);
        assert_eq!([OLD, NEW].map(|page| self.get(page)), [1, 0]);
        self.map();
    }
}

/// Returns whether `change` invalidates the translation of a page, in both modes.
fn invalidates(engine: EngineId, change: impl Fn(&mut EngineBench)) -> [bool; 2] {
    MODES.map(|mode| {
        let mut bench = EngineBench::new(engine);
        bench.set_mode(mode);
        bench.translate_and_map();
        change(&mut bench);
        bench.run(&STORE);
        bench.fresh()
    })
}

/// Returns whether commands of the ring invalidate the translation of a page, in both modes.
fn commands_invalidate(engine: EngineId, commands: &[u32]) -> [bool; 2] {
    invalidates(engine, |bench| {
        bench.run(commands);
    })
}

const ALWAYS: [bool; 2] = [true, true];
const NEVER: [bool; 2] = [false, false];
const BY_FLUSH: [bool; 2] = [true, false];

/// IVB-036, IVB-046: an entry that is changed in memory is not used before an invalidation.
#[test]
fn a_changed_entry_is_not_used_before_an_invalidation() {
    proves!(
        [IVB_036, IVB_046, ILK_139],
        "a translation of the PPGTT stays in use until it is invalidated: by a PIPE_CONTROL or MI_FLUSH_DW that says so, \
         in both modes"
    );
    for engine in [RCS, BCS] {
        assert_eq!(commands_invalidate(engine, &[0, 0]), NEVER, "nothing");
        assert_eq!(commands_invalidate(engine, &[0x1240_0001, 0x2094, STATUS, 0]), NEVER, "another store");
    }
    // Of the whole page, for reads too.
    let mut bench = EngineBench::new(BCS);
    bench.translate_and_map();
    bench.put(OLD + 0xffc, 5);
    bench.batch(BEHIND + BATCH, &[0x1000_0002, 0, DATA + 0xffc, 6]);
    bench.run(&[0x1000_0002, 0, DATA + 0xff8, 7]);
    assert_eq!((bench.get(OLD + 0xff8), bench.get(NEW + 0xff8)), (7, 0));
    assert_eq!(commands_invalidate(RCS, &[0x7a00_0002, 1 << 18, 0, 0]), ALWAYS, "PIPE_CONTROL");
    assert_eq!(commands_invalidate(BCS, &[0x1304_0001, 0, 0, 0]), ALWAYS, "MI_FLUSH_DW");
    // The driver's change of an entry by a command (IVB-046).
    let mut bench = EngineBench::new(RCS);
    bench.set_mode(MODES[1]);
    bench.run(&STORE);
    bench.run(&MAP);
    bench.run(&STORE);
    assert!(!bench.fresh());
    bench.run(&[0x7a00_0002, 1 << 18, 0, 0]);
    bench.run(&STORE);
    assert!(bench.fresh());
}

/// IVB-036, ILK-139: a flush of the whole pipeline invalidates in one of the modes.
#[test]
fn a_flush_invalidates_unless_it_must_be_explicit() {
    proves!(
        [IVB_036, ILK_139],
        "a flush of the whole pipeline invalidates translations, unless bit 13 of GFX_MODE is set"
    );
    for flush in [0, 5, 12, 20] {
        assert_eq!(commands_invalidate(RCS, &[0x7a00_0002, 1 << flush, 0, 0]), BY_FLUSH, "PIPE_CONTROL, bit {flush}");
    }
    for other in [1, 2, 3, 4, 10, 11, 13] {
        assert_eq!(commands_invalidate(RCS, &[0x7a00_0002, 1 << other, 0, 0]), NEVER, "PIPE_CONTROL, bit {other}");
    }
    assert_eq!(commands_invalidate(BCS, &[0x1300_0001, 0, 0, 0]), BY_FLUSH, "MI_FLUSH_DW");
    assert_eq!(commands_invalidate(RCS, &[0x0200_0000, 0]), NEVER, "MI_FLUSH is disabled");
    let flush = invalidates(RCS, |bench| {
        bench.write(0x209c, 0x1000_1000);
        bench.run(&[0x0200_0000, 0]);
    });
    assert_eq!(flush, BY_FLUSH, "MI_FLUSH");
    // Each engine has its mode.
    let other = invalidates(BCS, |bench| {
        bench.write(0x229c, 0x2000_2000);
        bench.run(&[0x1300_0001, 0, 0, 0]);
    });
    assert_eq!(other, BY_FLUSH);
}

/// IVB-036: the boundaries of batches invalidate, in both modes.
#[test]
fn the_boundaries_of_batches_invalidate() {
    proves!(IVB_036, "the start of a batch, also from a batch, and its end invalidate, in both modes");
    for mode in MODES {
        for space in [0, 0x100] {
            let behind = if space == 0 { 0 } else { BEHIND };
            let bench = || {
                let bench = EngineBench::new(RCS);
                bench.set_mode(mode);
                bench
            };
            // The start alone is before the store.
            let mut start = bench();
            start.translate_and_map();
            start.batch(behind + BATCH, &STORE);
            start.run(&[0x1880_0000 | space, BATCH]);
            assert!(start.fresh(), "start");
            // The store of the ring is behind the end of a batch that has changed the entry. Only a privileged one can.
            let mut end = bench();
            end.batch(BATCH, &[STORE, MAP].concat());
            end.run(&[&[0x1880_0000, BATCH][..], &STORE].concat());
            assert!(end.fresh(), "end");
            // Without a boundary between them.
            let mut none = bench();
            none.batch(BATCH, &[STORE, MAP, STORE].concat());
            none.run(&[0x1880_0000, BATCH]);
            assert!(!none.fresh(), "no boundary");
            let mut chained = bench();
            chained.batch(BATCH, &[&STORE[..], &MAP, &[0x1880_0000, BATCH + 0x800]].concat());
            chained.batch(BATCH + 0x800, &STORE);
            chained.run(&[0x1880_0000, BATCH]);
            assert!(chained.fresh(), "start from a batch");
        }
    }
}

/// IVB-036, IVB-065, IVB-149: a sync flush invalidates when it is executed.
#[test]
fn a_sync_flush_invalidates_when_it_is_executed() {
    proves!(
        [IVB_036, IVB_065, IVB_149],
        "a sync flush invalidates translations, in both modes; a suspended one when it is resumed"
    );
    assert_eq!(commands_invalidate(RCS, &[0x1100_0001, 0x20c0, 0x0020_0020, 0]), ALWAYS, "by a command");
    assert_eq!(invalidates(RCS, |bench| bench.write(0x20c0, 0x0220_0220)), ALWAYS, "by a CPU");
    assert_eq!(invalidates(RCS, |bench| bench.write(0x20c0, 0x0200_0200)), NEVER, "the bit alone");
    assert_eq!(invalidates(BCS, |bench| bench.write(0x20c0, 0x0020_0020)), NEVER, "of another engine");
    let suspended = |bench: &mut EngineBench| {
        bench.run(&[0x0580_0001, 0]);
        bench.write(0x20c0, 0x0020_0020);
    };
    assert_eq!(invalidates(RCS, suspended), NEVER, "suspended");
    let resumed = invalidates(RCS, |bench| {
        suspended(bench);
        bench.run(&[0x0580_0000, 0]);
    });
    assert_eq!(resumed, ALWAYS, "resumed");
}

/// IVB-032, IVB-033, ILK-019: a load of the page directory begins without translations.
#[test]
fn a_load_of_the_page_directory_invalidates() {
    proves!(
        [IVB_032, IVB_033, ILK_019],
        "a load of PP_DIR_BASE or PP_DCLV, by commands, a CPU or a context, invalidates translations"
    );
    for (offset, value) in [(0x220, !0), (0x228, 0x0100_0000)] {
        for (engine, base) in [(RCS, 0x2000), (BCS, 0x2_2000)] {
            assert_eq!(commands_invalidate(engine, &[0x1100_0001, base + offset, value, 0]), ALWAYS, "{offset:#x}");
            assert_eq!(invalidates(engine, |bench| bench.write(base + offset, value)), ALWAYS, "{offset:#x}");
        }
        assert_eq!(invalidates(RCS, |bench| bench.write(0x2_2000 + offset, value)), NEVER, "of another engine");
    }
    // Another directory, of which the table maps the data page to the other page, and back.
    let mut bench = EngineBench::new(BCS);
    bench.set_mode(MODES[1]);
    bench.gt.ggtt.set(0x1010, Pte(0xd001));
    bench.put(0xd000 + (DATA >> 12) * 4, NEW | 1);
    bench.run(&STORE);
    bench.run(&[0x1100_0001, 0x2_2228, 0x0101_0000, 0]);
    bench.run(&[0x1000_0002, 0, DATA, 2]);
    bench.run(&[0x1100_0001, 0x2_2228, 0x0100_0000, 0]);
    bench.run(&[0x1000_0002, 0, DATA, 3]);
    assert_eq!([OLD, NEW].map(|page| bench.get(page)), [3, 2]);
}

#[test]
fn invalidations_are_traced() {
    let mut bench = EngineBench::new(BCS);
    bench.set_mode(MODES[1]);
    let trace = bench.gt.trace.subscribe(Filter::default());
    let traced = || {
        let events = trace.take(Duration::ZERO).into_iter();
        let of_engine = events.filter(|event| event.engine.as_deref() == Some("bcs0"));
        of_engine.filter(|event| matches!(event.what, EventKind::TlbInvalidation { all: false, .. })).count()
    };
    bench.run(&[0, 0, 0, 0]);
    let none = traced();
    bench.run(&[0x1304_0001, 0, 0, 0]);
    assert_eq!(traced(), none + 1, "MI_FLUSH_DW");
    bench.write(0x2_2228, 0x0100_0000);
    assert_eq!(traced(), 1, "PP_DIR_BASE");
}

/// IVB-036, ILK-128, ILK-139: a switch of contexts.
#[test]
fn a_switch_of_contexts_invalidates() {
    proves!(
        [IVB_036, ILK_128, ILK_139],
        "a switch of contexts is a flush of the pipeline; one that restores PP_DCLV invalidates in both modes"
    );
    let other = CONTEXT + 0x2000;
    assert_eq!(commands_invalidate(RCS, &[0x0c00_0000, CONTEXT | 0x10d, 0, 0]), BY_FLUSH, "without a restore");
    let current = invalidates(RCS, |bench| {
        bench.run(&[0x0c00_0000, CONTEXT | 0x10d, 0, 0]);
        bench.write(0x2220, !0);
        bench.run(&[0x7a00_0002, 1 << 18, 0, 0]);
        bench.put(ENTRY, OLD | 1);
        bench.run(&STORE);
        bench.map();
        bench.run(&[0x0c00_0000, CONTEXT | 0x10c, 0, 0]);
    });
    assert_eq!(current, NEVER, "the current context");
    for (image, expected) in [(&[0x1100_0001, 0x2220, !0][..], ALWAYS), (&[0x1100_0001, 0x7004, 0x0040_0040], BY_FLUSH)]
    {
        let restored = invalidates(RCS, |bench| {
            bench.batch(other, image);
            bench.run(&[0x0c00_0000, other | 0x10c, 0, 0]);
        });
        assert_eq!(restored, expected, "{image:x?}");
    }
}

/// IVB-078: a ring that is disabled while it is empty invalidates the state of its engine.
#[test]
fn an_empty_ring_that_is_disabled_invalidates_the_state() {
    proves!(
        IVB_078,
        "a ring that is disabled with its head at its tail invalidates the translations and the context of its engine; \
         otherwise it does not, nor does a ring that is disabled already"
    );
    let disable = |bench: &mut EngineBench| {
        bench.write(0x203c, 0);
        bench.write(0x203c, 0x1001);
    };
    assert_eq!(invalidates(RCS, disable), ALWAYS);
    assert_eq!(invalidates(RCS, |bench| bench.write(0x203c, 0x1001)), NEVER, "enabled again");
    let not_empty = invalidates(RCS, |bench| {
        bench.write(0x2030, bench.tail + 8);
        disable(bench);
        bench.write(0x2030, bench.tail);
    });
    assert_eq!(not_empty, NEVER);
    let disabled = invalidates(RCS, |bench| {
        bench.write(0x2030, bench.tail + 8);
        bench.write(0x203c, 0);
        bench.write(0x2030, bench.tail);
        disable(bench);
    });
    assert_eq!(disabled, NEVER, "disabled already");
    let mut bench = EngineBench::new(RCS);
    bench.run(&[0x0c00_0000, CONTEXT | 0x10d, 0, 0]);
    assert_eq!(bench.register(0x180) & 1, 1);
    bench.write(0x2030, bench.tail + 8);
    disable(&mut bench);
    assert_eq!(bench.register(0x180) & 1, 1, "not empty");
    bench.write(0x2030, bench.tail);
    disable(&mut bench);
    assert_eq!(bench.register(0x180), CONTEXT | 0x10c, "empty");
    // The context is not current: the same address restores it, and does not save it before.
    bench.batch(CONTEXT, &[0x1100_0001, 0x7004, 0x0040_0040]);
    bench.run(&[0x0c00_0000, CONTEXT | 0x10c, 0, 0]);
    assert_eq!((bench.gt.read(0x7004), bench.get(CONTEXT)), (0x1c0, 0x1100_0001));
}

/// XY_COLOR_BLT of one pixel.
fn fill(address: u32, colour: u32) -> [u32; 6] {
    [0x5430_0004, 0x03f0_0000, 0, 0x1_0001, address, colour]
}

/// ILK-139: surfaces of blits, in both spaces.
#[test]
fn translations_of_surfaces_are_invalidated_by_flushes() {
    proves!(
        ILK_139,
        "translations of a blit's surfaces, in the PPGTT and the GGTT, are invalidated by a flush, not by a write of an \
         entry; those of the command streamer in the GGTT and of a CPU by the write"
    );
    let fresh = |bench: &mut EngineBench, pages: [u32; 2], between: &[u32]| {
        bench.run(between);
        bench.run(&fill(DATA, 2));
        let pages = pages.map(|page| bench.get(page));
        assert!(pages == [2, 0] || pages == [1, 2], "{pages:?}");
        pages == [1, 2]
    };
    // The GGTT's page has an entry that a CPU or a command writes.
    let global = |write: &dyn Fn(&mut EngineBench), between: &[u32]| {
        let mut bench = EngineBench::new(BCS);
        bench.write(0x2_229c, 0x0200_0000);
        bench.run(&fill(DATA, 1));
        write(&mut bench);
        fresh(&mut bench, [DATA, 0x7000], between)
    };
    let by_cpu = |bench: &mut EngineBench| bench.gt.ggtt.set(DATA >> 12, Pte(0x7001));
    let by_command =
        |bench: &mut EngineBench| assert_eq!(bench.run(&[0x11c0_0001, DATA, 0x7001, 0]), Outcome::Progress);
    for write in [&by_cpu as &dyn Fn(&mut EngineBench), &by_command] {
        assert!(!global(write, &[0, 0]) && global(write, &[0x1300_0001, 0, 0, 0]));
    }
    let own = |between: &[u32]| {
        let mut bench = EngineBench::new(BCS);
        bench.run(&fill(DATA, 1));
        bench.map();
        fresh(&mut bench, [OLD, NEW], between)
    };
    assert!(!own(&[0, 0]) && own(&[0x1300_0001, 0, 0, 0]));
    // The command streamer's stores and a CPU's accesses follow the entry.
    let mut bench = EngineBench::new(BCS);
    bench.run(&[0x1040_0002, 0, DATA, 1]);
    by_cpu(&mut bench);
    bench.run(&[0x1040_0002, 0, DATA, 2]);
    by_command(&mut bench);
    bench.gt.ggtt.set(DATA >> 12, Pte(DATA | 1));
    bench.run(&[0x1040_0002, 0, DATA + 4, 3]);
    assert_eq!([DATA, 0x7000, DATA + 4].map(|at| bench.get(at)), [1, 2, 3]);
    let seen = |bench: &EngineBench| {
        let (view, mut data) = (bench.gt.view(), [0; 4]);
        bench.gt.aperture.read(&Memory::new(&bench.gt.ggtt, &*view), DATA, &mut data);
        u32::from_le_bytes(data)
    };
    assert_eq!(seen(&bench), 1);
    by_cpu(&mut bench);
    assert_eq!(seen(&bench), 2);
}

/// IVB-037: translations of a surface in the GGTT, which no register selects.
#[test]
fn a_reset_of_the_engine_keeps_translations() {
    proves!(IVB_037, "a soft reset leaves the translations; an invalidation after it ends their use");
    let mut bench = EngineBench::new(BCS);
    bench.write(0x2_229c, 0x0200_0000);
    bench.run(&fill(DATA, 1));
    bench.gt.ggtt.set(DATA >> 12, Pte(0x7001));
    bench.engine.reset();
    bench.gt.reset_activity(BCS);
    bench.gt.reset_domains(1 << 3);
    assert_eq!((bench.register(0x3c), bench.gt.take_restart(BCS)), (0, true));
    bench.tail = 0;
    bench.engine.restart();
    bench.write(0x2_2038, RING);
    bench.write(0x2_203c, 0x1001);
    bench.run(&fill(DATA, 2));
    assert_eq!([DATA, 0x7000].map(|at| bench.get(at)), [2, 0]);
    bench.run(&[0x1304_0001, 0, 0, 0]);
    bench.run(&fill(DATA, 3));
    assert_eq!([DATA, 0x7000].map(|at| bench.get(at)), [2, 3]);
    // A reset of the function invalidates.
    bench.gt.reset();
    (1..16).for_each(|page| bench.gt.ggtt.set(page, Pte(page << 12 | 1)));
    bench.tail = 0;
    bench.engine.restart();
    bench.write(0x2_2038, RING);
    bench.write(0x2_203c, 0x1001);
    bench.run(&fill(DATA, 4));
    assert_eq!([DATA, 0x7000].map(|at| bench.get(at)), [4, 3]);
}

/// ILK-160: faults of each kind stay until an invalidation.
#[test]
fn invalid_entries_are_cached() {
    proves!(
        ILK_160,
        "an invalid entry, of a table or of the directory, causes faults until it is invalidated, although it is valid in \
         memory"
    );
    let mut bench = EngineBench::new(RCS);
    bench.set_mode(MODES[1]);
    let fault = |bench: &mut EngineBench, address: u32| {
        bench.write(0x4094, 0);
        bench.run(&[0x1000_0002, 0, address, 1]);
        bench.gt.read(0x4094)
    };
    bench.put(TABLE + 5 * 4, OLD);
    // In different slots.
    let (page, directory) = (DATA, 0x40_6000);
    assert_eq!(fault(&mut bench, page), page | 8 << 3 | 1);
    assert_eq!(fault(&mut bench, directory), directory | 8 << 3 | 1 << 1 | 1);
    bench.put(ENTRY, OLD | 1);
    bench.gt.ggtt.set(0x1001, Pte(TABLE | 1));
    assert_eq!(fault(&mut bench, page), page | 8 << 3 | 1);
    assert_eq!(fault(&mut bench, directory), directory | 8 << 3 | 1 << 1 | 1);
    assert_eq!(bench.get(OLD), 0);
    bench.run(&[0x7a00_0002, 1 << 18, 0, 0]);
    assert_eq!((fault(&mut bench, page), fault(&mut bench, directory)), (0, 0));
    assert_eq!(bench.get(OLD), 1);
}

/// Pages of one slot, and equal numbers in both spaces, have their own translations.
#[test]
fn translations_of_different_pages_are_not_confused() {
    let mut bench = EngineBench::new(BCS);
    bench.put(TABLE + (512 + 5) * 4, NEW | 1);
    for n in 0..3 {
        bench.run(&[0x1000_0002, 0, DATA, n, 0x1000_0002, 0, DATA + (512 << 12), n + 10]);
        assert_eq!([OLD, NEW].map(|at| bench.get(at)), [n, n + 10]);
    }
    bench.run(&fill(DATA, 20));
    bench.write(0x2_229c, 0x0200_0000);
    bench.run(&fill(DATA, 21));
    bench.write(0x2_229c, 0x0200_0200);
    bench.run(&fill(DATA + 4, 22));
    assert_eq!([OLD, DATA, OLD + 4].map(|at| bench.get(at)), [20, 21, 22]);
}
