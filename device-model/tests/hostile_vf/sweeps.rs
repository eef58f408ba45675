// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Exhaustive tests: each offset of the BAR, each GGTT page, each context ID, each register.

use arctic_device_model::card::{GGTT_WINDOW, GTTMMADR_BYTES};
use arctic_device_model::host::Function;
use arctic_device_model::memory::{Access, Space, Tlb};
use arctic_device_model::registers::{Kind, Scope};
use arctic_device_model::topology::EngineClass;
use arctic_fidelity::proves;
use arctic_test_support::context;
use arctic_test_support::mi::{self, At, Reg};
use arctic_test_support::vfs::bench::*;
use arctic_test_support::vfs::canary;
use arctic_test_support::vfs::others::*;
use arctic_test_support::vfs::world::{RAM, private};

use crate::{Job, aim, works};

fn ready(mapped: bool) -> Bench {
    let mut bench = Bench::new(mapped);
    bench.victims.iter_mut().for_each(Vf::up);
    bench.attacker.up();
    fill(&bench);
    bench.work(100);
    bench
}

#[test]
fn every_offset_of_the_bar() {
    proves!(
        [V13_003, V13_004, V13_005, V13_006, V13_007, V13_021, V13_022, V13_023, V13_024, V13_025, V13_026],
        "reading and writing each dword of the 16 MiB in pseudo-random order and with all widths neither changes \
        nor reveals other functions' state"
    );
    for mapped in [false, true] {
        let mut bench = ready(mapped);
        let before = snapshot(&bench, true);
        let mut random = Random::new(1);
        let dwords = GTTMMADR_BYTES / 4;
        for n in 0..dwords {
            // An odd stride visits each dword once.
            let offset = n * 0x9_e377 % dwords * 4;
            let value = random.of(&[0, u32::MAX, random_word(n)]);
            let mut data = [0; 8];
            bench.card.write(ATTACKER, offset, &value.to_le_bytes());
            let width = random.of(&[1, 2, 4, 8]);
            let skew = if random.one_in(8) { random.below(4) } else { 0 };
            bench.card.read(ATTACKER, offset + skew, &mut data[..width]);
            assert_eq!(canary::owner(u32::from_le_bytes([data[0], data[1], data[2], data[3]])), None, "at {offset:#x}");
            if random.one_in(16) {
                bench.card.write(ATTACKER, offset + skew, &random.any().to_le_bytes()[..width]);
            }
            if n % 0x2000 == 0 {
                bench.work(2);
            }
        }
        bench.work(100);
        unharmed(&before, &snapshot(&bench, true));
        nothing_leaked(&bench, true);
        works(&mut bench, EngineClass::Copy);
        assert_eq!(bench.card.panics(), 0);
    }
}

fn random_word(n: u64) -> u32 {
    (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as u32
}

#[test]
fn every_global_page() {
    proves!(
        [V13_020, V13_021, V13_022, V13_023, V13_024, V13_025, V13_026, V13_027, V13_028, V13_029, V13_030, V13_031],
        "GGTT entries forged by the attacker, for local and guest memory and with other functions as owner, map to \
        the attacker's own pages or are invalid"
    );
    for mapped in [false, true] {
        let bench = ready(mapped);
        let mut random = Random::new(2);
        for index in 0..1 << 20 {
            let target = match index % 4 {
                0 => aim::entry(&mut random),
                1 => index % 1024 << 12 | 2 | u64::from(VICTIMS[0].0) << 2 | 1,
                2 => private(VICTIMS[0]) | 1,
                _ => RAM.0 + (index % 256 << 12) | u64::from(VICTIMS[1].0) << 2 | 1,
            };
            bench.attacker.set_global(index, target);
        }
        let before = snapshot(&bench, true);
        let memory = &bench.card.gt().memory;
        let views = memory.views();
        let mut tlb = Tlb::default();
        let mut gam = memory.gam(ATTACKER, &views, &mut tlb);
        let own = base(ATTACKER) >> 12..(base(ATTACKER) + GLOBAL) >> 12;
        let mut reached = 0;
        for index in 0..1u64 << 20 {
            let at = (index << 12) + random.below(0x3f0) * 4;
            let seen = gam.read_u32(Space::Ggtt, at);
            let written = gam.write(Space::Ggtt, at, &[0xa7; 8]);
            let long = gam.span(Space::Ggtt, at, 1 << 20, Access::Write).map(|span| span.len());
            assert!(long.is_err() || long.is_ok_and(|len| len <= 4096));
            if own.contains(&index) {
                reached += u32::from(written.is_ok());
                assert!(seen.is_err() || seen.is_ok_and(|word| canary::owner(word).is_none()), "{index:#x}: {seen:x?}");
            } else {
                assert!(
                    seen.is_err() && written.is_err() && long.is_err(),
                    "access to page {index:#x} of another function"
                );
            }
        }
        assert!(reached > 256, "only {reached} pages accessible");
        unharmed(&before, &snapshot(&bench, true));
        nothing_leaked(&bench, false);
    }
}

#[test]
fn random_process_tables() {
    proves!(
        [V13_101, V13_102, V13_103, V13_104, V13_105, V13_106, V13_107, V13_108, V13_109, V13_110, V13_111, V13_112],
        "PPGTT tables with random contents, walked for random addresses, map to the attacker's own memory or fault"
    );
    let bench = ready(true);
    let mut random = Random::new(3);
    let before = snapshot(&bench, true);
    let (mut reached, mut refused) = (0, 0);
    for _ in 0..400 {
        for _ in 0..64 {
            bench.attacker.poke64(at::TABLES + random.below(0x8000 / 8) * 8, aim::process_entry(&mut random));
        }
        for table in 0..3 {
            // Valid upper levels, so that walks reach the lower ones.
            bench.attacker.poke64(at::TABLES + table * 0x1000, (at::TABLES + (table + 1) * 0x1000) | 3);
        }
        let memory = &bench.card.gt().memory;
        let views = memory.views();
        let mut tlb = Tlb::default();
        let mut gam = memory.gam(ATTACKER, &views, &mut tlb);
        for _ in 0..400 {
            let root = match random.below(8) {
                0 => aim::foreign_local(&mut random),
                1 => random.any(),
                _ => at::TABLES,
            };
            let address = match random.below(3) {
                0 => random.below(0x60_0000),
                1 => random.below(1 << 31),
                _ => random.edge(),
            };
            let mut data = [0; 64];
            match gam.read(Space::Ppgtt(root), address, &mut data) {
                Ok(()) => assert_eq!(canary::find(&data), None, "{root:#x}, {address:#x}"),
                Err(_) => refused += 1,
            }
            if gam
                .ccs_span(Space::Ppgtt(root), address, 0x1_0000, Access::Write)
                .is_ok_and(|span| span.write(&vec![0; span.len()]).is_ok())
            {
                reached += 1;
            }
            let _ = gam.write(Space::Ppgtt(root), address, &[0; 64]);
            let _ = gam.zero(Space::Ppgtt(root), address, 1 << 21);
        }
    }
    assert!(reached > 1000 && refused > 1000, "{reached} accesses permitted, {refused} faulted");
    unharmed(&before, &snapshot(&bench, true));
    nothing_leaked(&bench, false);
}

/// Contract C.5, F.1: each ID, in each action with an ID, refers to a context of the attacker or to no context.
#[test]
fn every_context_id() {
    let mut bench = ready(true);
    let jobs = [0, 1].map(|victim| Job::start(&mut bench, victim, EngineClass::Render));
    let before = snapshot(&bench, false);
    bench.attacker.write_context(0, 0, &[0; 4]);
    let descriptor = context::descriptor(PLACES.image(0, 0));
    for id in (0..0x1_0000u32).chain([0x1_0000, 0x1_0001, 0x7fff_ffff, u32::MAX - 1, u32::MAX]) {
        let vf = &mut bench.attacker;
        vf.request(0x1000, &[id]);
        vf.request(0x100b, &[id, 0x2003_0001, 0]);
        vf.request(0x1001, &[id, 0]);
        vf.request(0x0010, &[id, id, 0x40_0000 + id % 1024 * 4096, 0, 0]);
        vf.request(0x0020, &[id]);
        vf.request(0x4503, &[id]);
        if id >= 64 {
            vf.request(0x4502, &[1, id, 0, 1, 0, 0, 0, 0, 0, descriptor, 0]);
        }
        bench.work(3);
        bench.attacker.consume();
        if id % 0x1000 == 0xfff {
            assert!(!bench.attacker.rings_stopped() && bench.card.status().functions[2].contexts == 0, "id {id:#x}");
        }
    }
    unharmed(&before, &snapshot(&bench, false));
    let contexts = |bench: &Bench| bench.card.status().functions.iter().map(|f| f.contexts).collect::<Vec<_>>();
    assert_eq!(contexts(&bench), [0, 1, 0, 1]);
    for id in 0..100 {
        bench.attacker.request(0x4502, &[1, id, 0, 1, 0, 0, 0, 0, 0, descriptor, 0]);
        bench.work(3);
        bench.attacker.consume();
    }
    assert_eq!(contexts(&bench), [0, 1, 64, 1], "contexts per function");
    jobs.into_iter().for_each(|job| job.finish(&mut bench));
}

#[test]
fn every_register_by_commands() {
    proves!(
        [V13_052, V13_080],
        "from rings and batches on each engine, the attacker writes each register and stores each register's value \
        in its memory. It neither reads nor changes a secret of the PF or of a victim"
    );
    let mut bench = ready(true);
    let registers: Vec<u32> = bench.card.gt().registers.listing().map(|(offset, _)| offset).collect();
    for class in EngineClass::BY_GUC {
        let jobs = [0, 1].map(|victim| Job::start(&mut bench, victim, class));
        let file = &bench.card.gt().registers;
        let secret = |found: &arctic_device_model::registers::Decoded| {
            matches!(found.register.kind, Kind::Storage(_)) && found.register.scope == Scope::Card
        };
        let secrets: Vec<(u32, u32)> =
            file.listing().filter(|(_, found)| secret(found)).map(|(offset, _)| (offset, file.value(offset))).collect();
        for (offset, _) in &secrets {
            file.set(*offset, canary::word(Function::PF.0, u64::from(*offset)));
        }
        let before = snapshot(&bench, false);
        for privileged in [true, false] {
            for part in registers.chunks(60) {
                let at = |address| At::new(privileged, address);
                let read = |n: usize| at(SCRATCH + 0x1000 + n as u64 * 4);
                let words: Vec<u32> = part
                    .iter()
                    .enumerate()
                    .flat_map(|(n, register)| mi::store_register_mem(Reg::Mmio(*register), read(n)))
                    .chain(part.iter().flat_map(|register| mi::load_register_imm(Reg::Mmio(*register), 0x0076_0076)))
                    .chain(
                        part.iter().flat_map(|register| mi::load_register_reg(Reg::Mmio(0x2600), Reg::Mmio(*register))),
                    )
                    .chain(mi::store_data_imm(at(SCRATCH), 1))
                    .chain([mi::BATCH_BUFFER_END])
                    .collect();
                let vf = &mut bench.attacker;
                vf.write_words(Vf::batch(5), &words);
                let ring = mi::batch_buffer_start(at(PLACES.batch(5)));
                vf.submit(5, class, &ring);
                bench.until("a batch", 60_000, |bench| bench.attacker.peek(at::SCRATCH) != 0);
                bench.attacker.poke(at::SCRATCH, 0);
                bench.attacker.request(0x4503, &[5]);
                bench.until("its end", 60_000, |bench| {
                    bench.attacker.consume();
                    bench.card.status().functions[2].contexts == 0
                });
                nothing_leaks_from(&bench.attacker);
            }
        }
        unharmed(&before, &snapshot(&bench, false));
        for (offset, value) in secrets {
            bench.card.gt().registers.set(offset, value);
        }
        jobs.into_iter().for_each(|job| job.finish(&mut bench));
    }
    nothing_leaked(&bench, false);
}

fn nothing_leaks_from(vf: &Vf) {
    for n in 0..64 {
        let seen = vf.peek(at::SCRATCH + 0x1000 + n * 4);
        assert_eq!(canary::owner(seen), None, "register {n} of the chunk leaks {seen:#x}");
    }
}

#[test]
fn every_entry_reads_as_its_owners() {
    proves!(
        [V13_010, V13_108],
        "the attacker reads its own GGTT entries without the owner field, and 0 for all other entries"
    );
    let bench = ready(false);
    let mut seen = [0; 8];
    for index in 0..1u64 << 20 {
        bench.card.read(ATTACKER, GGTT_WINDOW + index * 8, &mut seen);
        let own = (base(ATTACKER) >> 12..(base(ATTACKER) + GLOBAL) >> 12).contains(&index);
        let entry = u64::from_le_bytes(seen);
        assert!(own && entry >> 2 & 0x3ff == 0 || entry == 0, "entry {index:#x}: {entry:#x}");
    }
}

#[test]
fn shared_registers() {
    proves!(
        V13_080,
        "registers without function-specific state (constants and clocks), which commands of any function may read. \
        Additions to this list require a review"
    );
    let bench = Bench::new(false);
    let listing = bench.card.gt().registers.listing();
    let shared = listing.filter(|(_, found)| found.register.scope == Scope::Common);
    let names: std::collections::BTreeSet<&str> = shared.map(|(_, found)| found.register.name).collect();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), SHARED);
}

const SHARED: [&str; 10] = [
    "ENGINE_ID",
    "ENGINE_ID_ALTERNATE",
    "RING_CTX_TIMESTAMP_UDW",
    "RING_INSTDONE",
    "RING_TIMESTAMP",
    "RING_TIMESTAMP_ALTERNATE",
    "ROW_INSTDONE",
    "SAMPLER_INSTDONE",
    "SC_INSTDONE",
    "XEHPG_INSTDONE_GEOM_SVGUNIT",
];

#[test]
fn functions_without_resources_access_no_memory() {
    proves!(V13_016, "functions without resources and disabled functions cannot access any memory (contract C.1)");
    let bench = ready(false);
    let before = snapshot(&bench, true);
    let mut random = Random::new(5);
    for enabled in [63, 3] {
        bench.card.enable_vfs(enabled);
        for vf in (4..64).map(Function) {
            for _ in 0..200 {
                let code = random.of(&[0x0508, 0x4509, 0x4100, 0x5507, 0x5500, 0x5509]);
                let key = random.of(&[0x0900, 0x0901, 0x0902, 0x0903, 0x0905, 0x0906]) << 16 | 2;
                for (n, value) in (0..).zip([code, key, aim::foreign_global(&mut random) as u32, 0]) {
                    bench.card.write(vf, u64::from(MAILBOX) + n * 4, &u32::to_le_bytes(value));
                }
                bench.card.write(vf, u64::from(GUC_HOST_INTERRUPT), &[1, 0, 0, 0]);
                let index = random.below(1 << 20);
                bench.card.write(vf, GGTT_WINDOW + index * 8, &random.any().to_le_bytes());
                bench.card.write(vf, (4 << 20) + random.below(1024) * 4096, &[1; 4]);
                bench.card.write_local(vf, random.below(4 * LOCAL), &[0xa7; 64]);
                let (mut entry, mut local) = ([1; 8], [0; 64]);
                bench.card.read(vf, GGTT_WINDOW + index * 8, &mut entry);
                bench.card.read_local(vf, random.below(4 * LOCAL), &mut local);
                assert_eq!(local, [0xff; 64]);
                assert_eq!(entry, if enabled == 63 { [0; 8] } else { [0xff; 8] });
            }
            bench.work(4);
        }
    }
    unharmed(&before, &snapshot(&bench, true));
    assert_eq!(bench.card.panics(), 0);
}
