// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Random tables of all types: a VF can access its assigned memory and its own guest's memory, and no other byte.

use arctic_fidelity::proves;
use proptest::prelude::*;

use super::*;

/// A frame for an LMTT entry: any frame except the first, which contains the tables of the LMTT. Some of the frames do
/// not exist.
fn frame() -> impl Strategy<Value = Option<u64>> {
    prop::option::weighted(0.8, 1..18_u64)
}

/// Entries that often point to valid memory: small local addresses, guest addresses, any flags.
fn entry() -> impl Strategy<Value = u64> {
    let near = (0..PAGES * 512, any::<u16>()).prop_map(|(page, flags)| page << 12 | u64::from(flags & 0xfff) | 3);
    let tables = (0..8_u64, any::<bool>()).prop_map(|(page, leaf)| page << 12 | 3 | u64::from(leaf) << 11);
    let guest = (0..17_u64).prop_map(|page| GUEST.start + (page << 12) | 3);
    prop_oneof![4 => tables, 2 => near, 1 => guest, 1 => any::<u64>()]
}

fn global_entry() -> impl Strategy<Value = u64> {
    let near = (0..PAGES * 512, 0..5_u64, 0..4_u64).prop_map(|(page, owner, flags)| page << 12 | owner << 2 | flags);
    prop_oneof![3 => near, 1 => any::<u64>()]
}

#[derive(Clone, Debug)]
struct Tables {
    grants: Vec<Option<u64>>,
    quotas: Vec<u64>,
    global: Vec<u64>,
    own_global: Vec<u64>,
    process: Vec<(u64, u64)>,
}

fn tables() -> impl Strategy<Value = Tables> {
    (
        prop::collection::vec(frame(), 2 * PAGES as usize),
        prop::collection::vec(0..PAGES + 2, 2),
        prop::collection::vec(global_entry(), 16),
        prop::collection::vec(global_entry(), 16),
        prop::collection::vec((0..8 * 512_u64, entry()), 64),
    )
        .prop_map(|(grants, quotas, global, own_global, process)| Tables {
            grants,
            quotas,
            global,
            own_global,
            process,
        })
}

impl MemoryBench {
    fn set(&self, tables: &Tables) {
        for (n, frame) in tables.grants.iter().enumerate() {
            self.grant(Function::new(n as u8 / PAGES as u8 + 1).unwrap(), n as u64 % PAGES, *frame);
        }
        for (n, pages) in tables.quotas.iter().enumerate() {
            self.memory.set_quota(Function::new(n as u8 + 1).unwrap(), pages * FRAME);
        }
        for (index, entry) in tables.global.iter().enumerate() {
            self.memory.ggtt().set_entry(index as u64, GgttEntry::from(*entry));
        }
        for (index, entry) in tables.own_global.iter().enumerate() {
            for vf in [VF1, VF2] {
                ggtt_table(self, vf).slice(index as u64 * 8, 8).unwrap().store(*entry, 0, Ordering::Release).unwrap();
            }
        }
    }

    /// Writes the process tables, in the first pages of the VF's own memory.
    fn set_process(&self, vf: Function, tables: &Tables) {
        for (index, entry) in &tables.process {
            self.memory.write_bar(vf, index * 8, &entry.to_le_bytes());
        }
    }

    /// Frames that are assigned to `vf`, computed from the tables only.
    fn given(&self, tables: &Tables, vf: Function) -> Vec<u64> {
        let n = usize::from(vf.number() - 1);
        let own = &tables.grants[n * PAGES as usize..][..PAGES as usize];
        own.iter().take(tables.quotas[n] as usize).flatten().copied().filter(|frame| *frame < 12).collect()
    }

    /// All bytes of a frame, regardless of where it is stored.
    fn contents(&self, frame: u64) -> Vec<u8> {
        let slice = self.memory.storage.slice(frame * FRAME, FRAME as usize).unwrap();
        let mut data = vec![0; FRAME as usize];
        slice.read_slice(&mut data, 0).unwrap();
        data
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn vf_writes_change_only_its_frames_and_guest_memory(
        tables in tables(),
        adopt in any::<bool>(),
        addresses in prop::collection::vec((any::<u64>(), 0..4_u32, 0..6000_usize), 40),
    ) {
        proves!(
            [V13_020, V13_021, V13_022, V13_023, V13_024, V13_025, V13_026, V13_027, V13_028, V13_029, V13_030, V13_031, V13_101, V13_102, V13_103, V13_104, V13_105, V13_106, V13_107, V13_108, V13_109],
            "regardless of the contents of VF 1's tables, its writes change only its assigned frames and its own \
            guest's memory, before and after the frames have moved to it, and there is no panic"
        );
        let bench = MemoryBench::new();
        bench.set(&tables);
        if adopt {
            bench.memory.adopt_lmtt();
        }
        bench.set_process(VF1, &tables);
        let given = bench.given(&tables, VF1);
        let foreign: Vec<u64> = (0..16).filter(|frame| !given.contains(frame)).collect();
        let before: Vec<_> = foreign.iter().map(|frame| bench.contents(*frame)).collect();
        let views = bench.memory.views();
        let mut tlb = Tlb::default();
        let mut reached = 0;
        for (address, kind, len) in &addresses {
            let mut gam = bench.memory.gam(VF1, &views, &mut tlb);
            let (space, address) = match kind {
                0 => (Space::Ggtt, address & 0xffff),
                1 => (Space::Ppgtt(address >> 60 << 12), address & 0xffff_ffff_ffff),
                2 => (Space::Ppgtt(0), address & 0x7f_ffff),
                _ => (Space::Ppgtt(address >> 40), *address),
            };
            reached += usize::from(gam.write(space, address, &vec![0xa5; *len]).is_ok());
            let _ = gam.write_u32(space, address & !3, 0xa5a5_a5a5);
            let _ = gam.write_u64(space, address & !7, !0);
            let _ = gam.zero(space, address, 1 << 20);
            let _ = gam.read_u64(space, address);
            let _ = gam.ccs_span(space, address, *len, Access::Read);
        }
        let _ = reached;
        for (frame, before) in foreign.iter().zip(&before) {
            prop_assert!(bench.contents(*frame) == *before, "VF 1 changed frame {frame}, assigned: {given:?}");
        }
        for function in [Function::PF, VF2, VF3, Function::new(4).unwrap()] {
            let guest = bench.guests.of(function);
            let mut bytes = vec![0; guest.0.size()];
            guest.0.get_slice(0, bytes.len()).unwrap().read_slice(&mut bytes, 0).unwrap();
            prop_assert!(bytes.iter().all(|byte| *byte == 0), "VF 1 changed {function:?}'s guest memory");
        }
        // Without assigned frames, its file contains no data, regardless of its writes.
        if adopt && given.is_empty() {
            prop_assert_eq!(bench.memory.storage.region(VF1).unwrap().first_data(&(0..PAGES * FRAME)), None);
        }
    }

    #[test]
    fn vf_and_pf_see_the_same_bytes_across_assignments(
        all in prop::collection::vec((tables(), 0..4_usize), 1..5),
        offset in 0..FRAME / 8,
    ) {
        proves!(
            [V13_010, V13_011, V13_109],
            "the VF reads at its own address the data that the PF writes at the frame's address, and vice versa, \
            across several assignments of frames. Compared with a simple model: a frame that keeps its location \
            keeps its bytes, a frame that moves to a VF holds zeros, and a frame that moves home holds zeros or its \
            previous contents at home. Frames at home and frames of other functions are unchanged. Complete or \
            partial scrubbing between the assignments does not change this"
        );
        let bench = MemoryBench::new();
        let at = offset * 8;
        let place = |frame: u64| bench.memory.storage.place(frame * FRAME);
        let mut model: Vec<(FrameBacking, u64)> = (0..12).map(|frame| (FrameBacking::PF, 0x1_0000 + frame)).collect();
        let mut at_home: Vec<u64> = model.iter().map(|(_, value)| *value).collect();
        for frame in 1..12 {
            bench.put(frame * FRAME + at, at_home[frame as usize]);
        }
        for (round, (tables, scrubs)) in all.iter().enumerate() {
            bench.set(tables);
            if scrubs % 2 == 1 {
                bench.memory.prepare_adoption();
            }
            bench.memory.adopt_lmtt();
            for frame in 1..12 {
                let now = bench.get(frame * FRAME + at);
                let (was, value) = &mut model[frame as usize];
                match place(frame) {
                    same if same == *was => prop_assert_eq!(now, *value, "frame {} has not moved", frame),
                    FrameBacking::PF => prop_assert!(now == 0 || now == at_home[frame as usize], "frame {frame}: {now:#x}"),
                    _ => prop_assert_eq!(now, 0, "frame {} has moved to a VF", frame),
                }
                *was = place(frame);
            }
            (0..*scrubs).for_each(|_| _ = bench.memory.scrub());
            for frame in 1..12 {
                let mark = (round as u64 + 2) << 16 | frame;
                bench.put(frame * FRAME + at, mark);
                model[frame as usize].1 = mark;
                if place(frame) == FrameBacking::PF {
                    at_home[frame as usize] = mark;
                }
            }
            for vf in [VF1, VF2] {
                let n = usize::from(vf.number() - 1);
                for page in 0..PAGES.min(tables.quotas[n]) {
                    let frame = tables.grants[n * PAGES as usize + page as usize].filter(|frame| *frame < 12);
                    let Some(frame) = frame else {
                        prop_assert_eq!(bench.bar(vf, page * FRAME + at), u64::MAX);
                        continue;
                    };
                    let mark = model[frame as usize].1;
                    prop_assert_eq!(bench.bar(vf, page * FRAME + at), mark);
                    if place(frame) == FrameBacking::of(vf, page as u16) {
                        prop_assert_eq!(bench.window(vf, page * FRAME + at), mark);
                        bench.memory.write_bar(vf, page * FRAME + at, &7_u64.to_le_bytes());
                        prop_assert_eq!(bench.bar(Function::PF, frame * FRAME + at), 7);
                        bench.put(frame * FRAME + at, mark);
                    }
                }
            }
            // The VF's client writes to pages of its BAR without a frame.
            for vf in [VF1, VF2] {
                for page in 0..PAGES {
                    let given = (0..12).any(|frame| place(frame) == FrameBacking::of(vf, page as u16));
                    if !given {
                        let region = bench.memory.storage.region(vf).unwrap();
                        region.slice(page * FRAME + at, 8).unwrap().store(0xbad_u64, 0, Ordering::Release).unwrap();
                    }
                }
            }
        }
    }
}
