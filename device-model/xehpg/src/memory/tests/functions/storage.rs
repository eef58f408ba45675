// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the storage of frames: moves, releases, clears, and compression control data.

use super::*;

/// SRIOV storage: a frame moves to the function's file and back without its contents; its VMM accesses it at the
/// guest's offset, and all other accesses use the unchanged address. The memory freed by the move is released to the
/// host in chunks. Also tested on memory without files.
#[test]
fn frames_move_without_their_contents() {
    for bench in [MemoryBench::new(), MemoryBench::on(&|len| SharedRegion::anonymous(len as usize).unwrap())] {
        let sparse = bench.memory.local().is_file();
        let held =
            |region: &SharedRegion, from| region.data(from..region.len()).map(|run| run.end - run.start).sum::<u64>();
        let scrub = || while bench.memory.scrub() {};
        bench.put(5 * FRAME + 0x1_0000, 0x55);
        bench.put(6 * FRAME + 8, 0x66);
        bench.put(9 * FRAME, 0x99);
        let file = bench.memory.storage.region(VF1).unwrap();
        for page in [0, 1, 3] {
            file.slice(page * FRAME + 8, 8).unwrap().store(0xbad_u64, 0, Ordering::Release).unwrap();
        }
        bench.provision(VF1, &[5, 6]);
        // Checked before the contents are read, because reads allocate pages.
        if sparse {
            assert_eq!((held(file, 0), held(bench.memory.local(), FRAME)), (4096, 3 * 4096), "released by scrub only");
            scrub();
            assert_eq!((held(file, 0), held(bench.memory.local(), FRAME)), (0, 4096), "no frame may be stored twice");
            assert!(!bench.memory.scrub());
        }
        assert_eq!((bench.window(VF1, 8), bench.window(VF1, 0x1_0000), bench.window(VF1, FRAME + 8)), (0, 0, 0));
        assert_eq!((bench.get(5 * FRAME + 0x1_0000), bench.get(6 * FRAME + 8), bench.get(9 * FRAME)), (0, 0, 0x99));
        // Each kind of access returns data written by the others.
        file.slice(FRAME + 16, 8).unwrap().store(0x111_u64, 0, Ordering::Release).unwrap();
        assert_eq!((bench.get(6 * FRAME + 16), bench.bar(Function::PF, 6 * FRAME + 16)), (0x111, 0x111));
        bench.memory.write_bar(Function::PF, 5 * FRAME, &[1; 8]);
        assert_eq!((bench.window(VF1, 0), bench.bar(VF1, 0)), (u64::from_le_bytes([1; 8]), u64::from_le_bytes([1; 8])));
        // One frame keeps its page and its contents, one changes its page, and one is newly assigned.
        bench.put(7 * FRAME, 0x77);
        bench.provision(VF1, &[7, 6, 5]);
        assert_eq!((bench.window(VF1, 0), bench.window(VF1, FRAME + 16), bench.window(VF1, 2 * FRAME)), (0, 0x111, 0));
        // The frames are reassigned to another function: no data of the first one remains.
        for page in 0..PAGES {
            bench.grant(VF1, page, None);
        }
        bench.put(5 * FRAME + 24, 0x24);
        bench.provision(VF2, &[5, 6]);
        let second = [bench.window(VF2, 24), bench.window(VF2, FRAME + 16), bench.get(6 * FRAME + 16)];
        assert_eq!(second, [0; 3]);
        bench.put(6 * FRAME + 16, 0x222);
        bench.memory.forget_vfs();
        assert_eq!((bench.get(6 * FRAME + 16), bench.bar(VF2, 0)), (0, u64::MAX));
        assert!((0..16).all(|frame| bench.memory.storage.place(frame * FRAME) == FrameBacking::PF));
        assert_eq!(bench.get(9 * FRAME), 0x99);
        if sparse {
            scrub();
            assert_eq!((held(file, 0), held(bench.memory.storage.region(VF2).unwrap(), 0)), (0, 0));
        }
    }
}

/// SRIOV storage: a page is cleared before it stores a frame of its function, either in advance while the engines run,
/// or during the move; pages in use are not cleared in advance.
#[test]
fn pages_are_empty_before_they_are_given() {
    for prepared in [false, true] {
        let bench = MemoryBench::new();
        bench.provision(VF1, &[5]);
        let file = bench.memory.storage.region(VF1).unwrap();
        for page in 0..PAGES {
            file.slice(page * FRAME, 8).unwrap().store(page + 1, 0, Ordering::Release).unwrap();
        }
        // Page 0 will store another frame; pages 1 and 2 are newly assigned.
        (0..3).for_each(|page| bench.grant(VF1, page, Some(6 + page)));
        bench.memory.set_quota(VF1, 3 * FRAME);
        if prepared {
            bench.memory.prepare_adoption();
            let pages = [0, 1, 2, 3].map(|page| file.first_data(&(page * FRAME..(page + 1) * FRAME)).is_some());
            assert_eq!(pages, [true, false, false, true]);
            assert_eq!((bench.get(5 * FRAME), bench.window(VF1, 0)), (1, 1), "the frame must still be stored there");
        }
        bench.memory.adopt_lmtt();
        assert_eq!([0, 1, 2].map(|page| bench.window(VF1, page * FRAME)), [0; 3]);
        bench.memory.free_unused(VF1);
        assert_eq!(file.first_data(&(3 * FRAME..4 * FRAME)), None);
    }
}

/// SRIOV storage: an FLR releases data that a function has written outside its frames, even if scattered, and does not
/// change its frames. The same holds for scrubbing, even if frames move before it has finished.
#[test]
fn pages_without_a_frame_are_freed() {
    for flr in [true, false] {
        let bench = MemoryBench::new();
        bench.provision(VF1, &[5]);
        bench.grant(VF1, 2, Some(6));
        bench.memory.set_quota(VF1, 4 * FRAME);
        bench.memory.adopt_lmtt();
        let file = bench.memory.storage.region(VF1).unwrap();
        let fill = || file.slice(0, (PAGES * FRAME) as usize).unwrap().write_slice(&[1; (PAGES * FRAME) as usize], 0);
        fill().unwrap();
        if flr {
            bench.memory.free_unused(VF1);
        } else {
            assert!(bench.memory.scrub());
            // Pages that were assigned in the meantime are not scrubbed.
            bench.grant(VF1, 1, Some(7));
            bench.memory.adopt_lmtt();
            fill().unwrap();
            while bench.memory.scrub() {}
        }
        let runs: Vec<_> = file.data(0..PAGES * FRAME).collect();
        let frame = |page: u64| page * FRAME..(page + 1) * FRAME;
        assert_eq!(runs, if flr { vec![frame(0), frame(2)] } else { vec![Range { start: 0, end: 3 * FRAME }] });
    }
}

/// SRIOV storage: an FLR with a PF driver releases all data of the function, from the end and one frame at a time, and
/// no data of other functions.
#[test]
fn a_region_is_emptied_from_its_end() {
    let bench = MemoryBench::new();
    bench.provision(VF1, &[5, 6]);
    bench.provision(VF2, &[7]);
    let fill = |vf: Function, page: u64| {
        let file = bench.memory.storage.region(vf).unwrap();
        file.slice(page * FRAME, FRAME as usize).unwrap().write_slice(&[1; FRAME as usize], 0).unwrap();
    };
    (0..3).for_each(|page| fill(VF1, page));
    fill(VF2, 0);
    assert!(bench.memory.begin_emptying(VF1) && !bench.memory.begin_emptying(VF1));
    let pieces = std::cell::Cell::new(0);
    let stop = || pieces.replace(pieces.get() + 1) == PAGES - 2;
    bench.memory.empty(VF1, stop);
    assert_eq!(bench.memory.stored_by(VF1), 2 * FRAME);
    assert_eq!([0, 1].map(|page| bench.window(VF1, page * FRAME) & 0xff), [1; 2], "these are last");
    bench.memory.empty(VF1, || false);
    assert_eq!([VF1, VF2].map(|vf| bench.memory.stored_by(vf)), [0, FRAME]);
    assert_eq!([VF1, VF2].map(|vf| bench.memory.is_emptying(vf)), [true, false]);
    assert!(!bench.memory.end_emptying(VF1), "once more for the second reset");
    assert!(bench.memory.is_emptying(VF1) && bench.memory.end_emptying(VF1) && !bench.memory.is_emptying(VF1));
    assert!(bench.memory.begin_emptying(VF1));
}

/// SRIOV storage: the PF's LMTT may map a frame twice, map its own tables, or map missing memory: only the first
/// mapping is visible in a BAR, the tables stay in the PF's region, and engines always use the result of the table
/// walk.
#[test]
fn odd_tables() {
    let bench = MemoryBench::new();
    bench.provision(VF2, &[5, 0, 5, 6]);
    bench.provision(VF1, &[6, 5, 5, 0x1fff]);
    bench.put(5 * FRAME, 0x55);
    let place = |frame: u64| bench.memory.storage.place(frame * FRAME);
    assert_eq!((place(5), place(6), place(0)), (FrameBacking::of(VF1, 1), FrameBacking::of(VF1, 0), FrameBacking::PF));
    for vf in [VF1, VF2] {
        bench.memory.ggtt().assign(vf, u64::from(vf.number()) << 14..u64::from(vf.number() + 1) << 14);
        (0..4).for_each(|page| bench.set_ggtt(vf, u64::from(vf.number()) * 4 + page, page * FRAME | LMEM));
    }
    let read = |vf: Function, page: u64| bench.read(vf, Space::Ggtt, (u64::from(vf.number()) * 4 + page) << 12);
    assert_eq!((read(VF1, 1), read(VF1, 2), read(VF1, 3)), (Ok(0x55), Ok(0x55), Err(FaultReason::OutsideLocal)));
    assert_eq!((read(VF2, 0), read(VF2, 1), read(VF2, 2)), (Ok(0x55), Ok(0), Ok(0x55)));
    // The PF has erroneously assigned the LMTT tables to VF 2. VF 2's writes to them take effect at the next walk.
    assert_eq!(bench.write(VF2, Space::Ggtt, (9 << 12) + 0x40, 7), Ok(()));
    assert_eq!(bench.get(0x40), 7);
    // A quota larger than the BAR, and tables outside the memory.
    bench.memory.set_quota(VF1, u64::MAX);
    bench.memory.adopt_lmtt();
    bench.put32(DIRECTORY + 4, !0);
    bench.memory.adopt_lmtt();
    assert_eq!((place(5), read(VF1, 1)), (FrameBacking::of(VF2, 0), Err(FaultReason::OutsideLocal)));
    assert_eq!(read(VF2, 0), Ok(0));
}

/// Contract B.9, H.3.4: compression control data follows the frame's address on the card, regardless of where the frame
/// is stored, for both the VF and the PF.
#[test]
fn control_follows_the_frame() {
    let bench = MemoryBench::new();
    bench.provision(VF1, &[5]);
    bench.memory.ggtt().assign(VF1, 0..0x1000);
    bench.set_ggtt(VF1, 0, 0x3000 | LMEM);
    let views = bench.memory.views();
    let mut tlb = Tlb::default();
    let span = bench.memory.gam(VF1, &views, &mut tlb).ccs_span(Space::Ggtt, 0x100, 256, Access::Write).unwrap();
    span.write(&[0x5c]).unwrap();
    let mut control = [0; 2];
    let at = USABLE + (5 * FRAME + 0x3000) / 256;
    bench.memory.local().slice(at, 2).unwrap().read_slice(&mut control, 0).unwrap();
    assert_eq!(control, [0, 0x5c]);
    // Control data belongs to the contents, and is cleared with them when the frame is assigned to another function.
    bench.grant(VF1, 0, None);
    bench.provision(VF2, &[5]);
    bench.memory.local().slice(at, 2).unwrap().read_slice(&mut control, 0).unwrap();
    assert_eq!(control, [0, 0]);
}

/// Contract H.3.4, D.7: VF memory that the PF clears becomes a hole in the VF's file; clears by the VF itself preserve
/// holes. `clear_vf` releases all memory of the VF.
#[test]
fn zeros_are_holes() {
    let bench = MemoryBench::new();
    bench.provision(VF1, &[5, 6]);
    let file = bench.memory.storage.region(VF1).unwrap();
    let held = || file.data(0..PAGES * FRAME).map(|run| run.end - run.start).sum::<u64>();
    // The PF's identity map: 2 MiB pages of a table in frame 0.
    bench.put(0x1000, 0x2003);
    bench.put(0x2000, 0x3003);
    (0..16).for_each(|frame| bench.put(0x3000 + frame * 8, frame * FRAME | 3 | DM | PS));
    let zero = |function, space, address, len| {
        let (views, mut tlb) = (bench.memory.views(), Tlb::default());
        bench.memory.gam(function, &views, &mut tlb).zero(space, address, len).map_err(|fault| fault.reason)
    };
    let pf = Space::Ppgtt(0x1000);
    file.slice(MIB, MIB as usize).unwrap().write_slice(&[9; MIB as usize], 0).unwrap();
    bench.put(6 * FRAME, 3);
    assert_eq!(held(), MIB + 4096);
    assert_eq!(zero(Function::PF, pf, 5 * FRAME, 64 * MIB), Ok(Some(Zeroed { len: FRAME, held: MIB })));
    assert_eq!(held(), 4096);
    assert_eq!(zero(Function::PF, pf, 5 * FRAME, 64 * MIB), Ok(Some(Zeroed { len: FRAME, held: 0 })));
    assert_eq!((bench.window(VF1, MIB), bench.window(VF1, FRAME)), (0, 3));
    assert_eq!(zero(Function::PF, pf, 6 * FRAME, 4096), Ok(None), "too short for a hole search");
    // The PF's own memory is overwritten, but only where it contains data.
    bench.put(8 * FRAME + MIB, 8);
    assert_eq!(zero(Function::PF, pf, 8 * FRAME, 3 * MIB / 2), Ok(Some(Zeroed { len: 3 * MIB / 2, held: 64 * KIB })));
    assert_eq!(bench.get(8 * FRAME + MIB), 0);
    // Guest memory and the end of local memory are not handled.
    bench.put(0x3000, 3 | PS);
    assert_eq!(zero(Function::PF, pf, 0, MIB), Ok(None));
    bench.put(0x3008, LOCAL | 3 | DM | PS);
    assert_eq!(zero(Function::PF, pf, FRAME, MIB), Ok(None));
    assert_eq!(zero(Function::PF, pf, 100 * FRAME, MIB), Err(FaultReason::NotPresent { level: 1 }));
    bench.memory.clear_vf(VF1);
    assert_eq!((held(), bench.window(VF1, FRAME)), (0, 0));
}
