// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Exhaustive tests: each offset of the BAR, each GGTT page, each context ID, each register.

use arctic_device_model::gpu::{Gpu, VirtualFunctions};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use arctic_device_model::card::{GGTT_WINDOW, GTTMMADR_BYTES};
use arctic_device_model::doorbell;
use arctic_device_model::host::Function;
use arctic_device_model::memory::ggtt::{GGTT_BYTES, GgttEntry};
use arctic_device_model::memory::{Access, Space, Span, Tlb};
use arctic_device_model::registers::{Decoded, Kind, Scope};
use arctic_device_model::topology::EngineClass;
use arctic_fidelity::proves;
use arctic_guc_driver::{actions, ct};
use arctic_test_support::context;
use arctic_test_support::mi::{self, At, Reg};
use arctic_test_support::vfs::bench::*;
use arctic_test_support::vfs::canary;
use arctic_test_support::vfs::others::*;
use arctic_test_support::vfs::world::{RAM, private};

use crate::{Job, aim, works};

/// Number of entries of the GGTT.
const GGTT_ENTRIES: u64 = GGTT_BYTES as u64 / 8;
/// Registers that a batch accesses; its commands fit into a page.
const CHUNK: usize = 50;
/// Offset of a batch's results from its scratch memory.
const RESULTS: u64 = 0x1000;
/// Value that commands write to each register; also a masked write of several bits.
const WRITTEN: u32 = 0x0076_0076;
/// The context of the batches that access registers.
const CONTEXT: u32 = 5;

/// Indices of the attacker's GGTT entries.
fn own_pages() -> Range<u64> {
    base(ATTACKER) >> 12..(base(ATTACKER) + GLOBAL) >> 12
}

/// Returns a GGTT entry with the flags of `flags` and the address `page`.
fn entry(page: u64, flags: GgttEntry) -> u64 {
    page | u64::from(flags)
}

fn bench_with_filled_functions(mapped: bool) -> VfBench {
    let mut bench = VfBench::new(mapped);
    bench.victims.iter_mut().for_each(Vf::up);
    bench.attacker.up();
    fill(&bench);
    bench.work(100);
    bench
}

#[test]
fn accesses_to_any_bar_offset_do_not_affect_or_reveal_other_functions() {
    proves!(
        [V13_003, V13_004, V13_005, V13_006, V13_007, V13_021, V13_022, V13_023, V13_024, V13_025, V13_026],
        "reading and writing each dword of the 16 MiB in pseudo-random order and with all widths neither changes \
        nor reveals other functions' state"
    );
    for mapped in [false, true] {
        let mut bench = bench_with_filled_functions(mapped);
        let before = snapshot(&bench, true);
        let mut random = Random::new(1);
        let dwords = GTTMMADR_BYTES / 4;
        for n in 0..dwords {
            // An odd stride visits each dword once.
            let offset = n * 0x9_e377 % dwords * 4;
            let value = random.of(&[0, u32::MAX, random_word(n)]);
            let mut data = [0; 8];
            bench.card.write_gttmmadr(ATTACKER, offset, &value.to_le_bytes());
            let width = random.of(&[1, 2, 4, 8]);
            // Narrow reads together make the dword, in which a canary can be found.
            for (at, bytes) in (offset..).step_by(width).zip(data[..width.max(4)].chunks_mut(width)) {
                bench.card.read_gttmmadr(ATTACKER, at, bytes);
            }
            assert_eq!(canary::find(&data[..width.max(4)]), None, "at {offset:#x}, {width} bytes at a time");
            let misalignment = if random.one_in(8) { random.below(4) } else { 0 };
            if misalignment != 0 {
                bench.card.read_gttmmadr(ATTACKER, offset + misalignment, &mut data);
                assert_eq!(canary::find(&data), None, "at {:#x}", offset + misalignment);
            }
            if random.one_in(16) {
                bench.card.write_gttmmadr(ATTACKER, offset + misalignment, &random.any().to_le_bytes()[..width]);
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
fn forged_ggtt_entries_map_only_own_pages() {
    proves!(
        [V13_020, V13_021, V13_022, V13_023, V13_024, V13_025, V13_026, V13_027, V13_028, V13_029, V13_030, V13_031],
        "GGTT entries forged by the attacker, for local and guest memory and with other functions as owner, map to \
        the attacker's own pages or are invalid"
    );
    for mapped in [false, true] {
        let bench = bench_with_filled_functions(mapped);
        let mut random = Random::new(2);
        for index in 0..GGTT_ENTRIES {
            let target = match index % 4 {
                // Any address and flags.
                0 => aim::entry(&mut random),
                // Local memory, with the first victim as owner.
                1 => entry(index % 1024 << 12, GgttEntry::assigned(VICTIMS[0].number()).with_local(true)),
                // Memory that only the first victim's guest maps, without an owner.
                2 => entry(private(VICTIMS[0]), GgttEntry::new().with_valid(true)),
                // Guest memory, with the second victim as owner.
                _ => entry(RAM.0 + (index % 256 << 12), GgttEntry::assigned(VICTIMS[1].number())),
            };
            bench.attacker.set_global(index, target);
        }
        let before = snapshot(&bench, true);
        let memory = &bench.card.gt().memory;
        let views = memory.views();
        let mut tlb = Tlb::default();
        let mut gam = memory.gam(ATTACKER, &views, &mut tlb);
        let own = own_pages();
        let mut reached = 0;
        for index in 0..GGTT_ENTRIES {
            let at = (index << 12) + random.below(0x3f0) * 4;
            let seen = gam.read_u32(Space::Ggtt, at);
            let written = gam.write(Space::Ggtt, at, &[0xa7; 8]);
            let long = gam.span(Space::Ggtt, at, 1 << 20, Access::Write).map(|span| span.len());
            assert!(long.is_err() || long.is_ok_and(|len| len <= 4096), "{index:#x}: a span of {long:?} bytes");
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
fn random_ppgtt_tables_map_only_own_memory_or_fault() {
    proves!(
        [V13_101, V13_102, V13_103, V13_104, V13_105, V13_106, V13_107, V13_108, V13_109, V13_110, V13_111, V13_112],
        "PPGTT tables with random contents, walked for random addresses, map to the attacker's own memory or fault"
    );
    let bench = bench_with_filled_functions(true);
    let mut random = Random::new(3);
    let before = snapshot(&bench, true);
    let (mut read, mut written, mut cleared, mut refused) = (0, 0, 0, 0);
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
        let space = |random: &mut Random| {
            Space::Ppgtt(match random.below(8) {
                0 => aim::foreign_local(random),
                1 => random.any(),
                _ => at::TABLES,
            })
        };
        let address = |random: &mut Random| match random.below(3) {
            0 => random.below(0x60_0000),
            1 => random.below(1 << 31),
            _ => random.edge(),
        };
        for _ in 0..400 {
            let (space, address) = (space(&mut random), address(&mut random));
            let mut data = [0; 64];
            match gam.read(space, address, &mut data) {
                Ok(()) => {
                    assert_eq!(canary::find(&data), None, "{space:x?}, {address:#x}");
                    read += 1;
                }
                Err(_) => refused += 1,
            }
            if let Ok(span @ Span::Mapped(_)) = gam.ccs_span(space, address, 0x1_0000, Access::Write)
                && span.write(&vec![0; span.len()]).is_ok()
            {
                cleared += 1;
            }
            written += u32::from(gam.write(space, address, &[0; 64]).is_ok());
        }
        // Last: they can clear the tables, after which no walk reaches memory.
        for _ in 0..8 {
            let _ = gam.zero(space(&mut random), address(&mut random), 1 << 21);
        }
    }
    assert!(
        read > 5000 && written > 5000 && cleared > 2000 && refused > 5000,
        "{read} reads and {written} writes reached memory, {cleared} compression data; {refused} reads faulted"
    );
    unharmed(&before, &snapshot(&bench, true));
    nothing_leaked(&bench, false);
}

/// A context ID in a request refers to a context of the requesting function, or to none (contract C.5, F.1).
#[test]
fn requests_with_any_context_id_do_not_affect_other_functions() {
    let mut bench = bench_with_filled_functions(true);
    let jobs = [0, 1].map(|victim| Job::start(&mut bench, victim, EngineClass::Render));
    let before = snapshot(&bench, false);
    bench.attacker.write_context(0, 0, &[0; 4]);
    let descriptor = context::descriptor(PLACES.image(0, 0));
    for id in (0..0x1_0000u32).chain([0x1_0000, 0x1_0001, 0x7fff_ffff, u32::MAX - 1, u32::MAX]) {
        let vf = &mut bench.attacker;
        vf.request(actions::SCHED_CONTEXT, &[id]);
        vf.request(actions::UPDATE_CONTEXT_POLICIES, &[id, actions::PRIORITY_KLV, 0]);
        vf.request(actions::SCHED_CONTEXT_MODE_SET, &[id, 0]);
        vf.request(actions::ALLOCATE_DOORBELL, &[id, id, 0x40_0000 + id % 1024 * 4096, 0, 0]);
        vf.request(actions::DEALLOCATE_DOORBELL, &[id]);
        vf.request(actions::DEREGISTER_CONTEXT, &[id]);
        if id >= QUOTA.contexts {
            vf.request(actions::REGISTER_CONTEXT, &[1, id, 0, 1, 0, 0, 0, 0, 0, descriptor, 0]);
        }
        bench.work(3);
        bench.attacker.consume();
        if id % 0x1000 == 0xfff {
            assert!(!bench.attacker.rings_stopped(), "id {id:#x} stopped the attacker's buffers");
            assert_eq!(bench.card.status().functions[ATTACKER.index()].contexts, Some(0), "id {id:#x}");
        }
    }
    unharmed(&before, &snapshot(&bench, false));
    let contexts = |bench: &VfBench| {
        bench.card.status().functions.iter().filter_map(|function| function.contexts).collect::<Vec<_>>()
    };
    assert_eq!(contexts(&bench), [0, 1, 0, 1]);
    for id in 0..100 {
        bench.attacker.request(actions::REGISTER_CONTEXT, &[1, id, 0, 1, 0, 0, 0, 0, 0, descriptor, 0]);
        bench.work(3);
        bench.attacker.consume();
    }
    assert_eq!(contexts(&bench), [0, 1, QUOTA.contexts, 1], "contexts per function");
    jobs.into_iter().for_each(|job| job.finish(&mut bench));
}

#[test]
fn commands_on_any_register_do_not_read_or_change_secrets() {
    proves!(
        [V13_052, V13_080],
        "from rings and batches on each engine, the attacker writes each register and stores each register's value \
        in its memory. It neither reads nor changes a secret of the PF or of a victim"
    );
    let mut bench = bench_with_filled_functions(true);
    let registers: Vec<u32> = bench.card.gt().registers.listing().map(|(offset, _)| offset).collect();
    for class in EngineClass::BY_GUC {
        let jobs = [0, 1].map(|victim| Job::start(&mut bench, victim, class));
        let file = &bench.card.gt().registers;
        // Stored registers of the card, with canaries of the PF as secrets: no command of a VF may read or write them.
        let secret =
            |found: &Decoded| matches!(found.register.kind, Kind::Storage(_)) && found.register.scope == Scope::Card;
        let card_registers: Vec<(u32, u32)> =
            file.listing().filter(|(_, found)| secret(found)).map(|(offset, _)| (offset, file.value(offset))).collect();
        let canary = |offset: u32| canary::word(Function::PF.number(), offset.into());
        for (offset, _) in &card_registers {
            file.set(*offset, canary(*offset));
        }
        let before = snapshot(&bench, false);
        for privileged in [true, false] {
            for part in registers.chunks(CHUNK) {
                let operand = |address| At::new(privileged, address);
                let result = |n: usize| operand(SCRATCH + RESULTS + n as u64 * 4);
                let gpr = Reg::Own(mi::GPR0);
                let mut words = Vec::new();
                for (n, register) in part.iter().map(|register| Reg::Mmio(*register)).enumerate() {
                    words.extend(mi::store_register_mem(register, result(2 * n)));
                    words.extend(mi::load_register_reg(gpr, register));
                    words.extend(mi::store_register_mem(gpr, result(2 * n + 1)));
                }
                words.extend(mi::load_register_imm(gpr, WRITTEN));
                for register in part.iter().map(|register| Reg::Mmio(*register)) {
                    words.extend(mi::load_register_imm(register, WRITTEN));
                    words.extend(mi::load_register_reg(register, gpr));
                }
                words.extend(mi::store_data_imm(operand(SCRATCH), 1));
                words.push(mi::BATCH_BUFFER_END);
                assert!(words.len() <= 1024, "{} dwords", words.len());
                let vf = &mut bench.attacker;
                vf.write_words(Vf::batch(CONTEXT), &words);
                let ring = mi::batch_buffer_start(operand(PLACES.batch(CONTEXT)));
                vf.submit(CONTEXT, class, &ring);
                bench.until("a batch", 60_000, |bench| bench.attacker.peek(at::SCRATCH) != 0);
                bench.attacker.poke(at::SCRATCH, 0);
                bench.attacker.request(actions::DEREGISTER_CONTEXT, &[CONTEXT]);
                bench.until("its end", 60_000, |bench| {
                    bench.attacker.consume();
                    bench.card.status().functions[ATTACKER.index()].contexts == Some(0)
                });
                no_result_is_a_canary(&bench.attacker);
            }
        }
        unharmed(&before, &snapshot(&bench, false));
        for (offset, value) in card_registers {
            let registers = &bench.card.gt().registers;
            assert_eq!(registers.value(offset), canary(offset), "the register at {offset:#x} on {class:?}");
            registers.set(offset, value);
        }
        jobs.into_iter().for_each(|job| job.finish(&mut bench));
    }
    nothing_leaked(&bench, false);
}

fn no_result_is_a_canary(vf: &Vf) {
    for n in 0..2 * CHUNK as u64 {
        let seen = vf.peek(at::SCRATCH + RESULTS + n * 4);
        assert_eq!(canary::owner(seen), None, "register {} of the chunk leaks {seen:#x}", n / 2);
    }
}

#[test]
fn own_ggtt_entries_read_without_owner_and_foreign_entries_read_zero() {
    proves!(
        [V13_010, V13_108],
        "the attacker reads its own GGTT entries without the owner field, and 0 for all other entries"
    );
    let bench = bench_with_filled_functions(false);
    // The PF assigns the pages; then the attacker maps some of them.
    let valid = GgttEntry::new().with_valid(true);
    let mut expected: BTreeMap<u64, u64> = own_pages().map(|page| (page, valid.into())).collect();
    expected.extend(bench.attacker.global_entries().map(|(index, target)| (index, entry(target, valid))));
    let mut seen = [0; 8];
    for index in 0..GGTT_ENTRIES {
        bench.card.read_gttmmadr(ATTACKER, GGTT_WINDOW + index * 8, &mut seen);
        let entry = u64::from_le_bytes(seen);
        assert_eq!(entry, expected.get(&index).copied().unwrap_or_default(), "entry {index:#x}: {entry:#x}");
    }
}

#[test]
fn shared_registers_are_those_of_the_reviewed_list() {
    proves!(
        V13_080,
        "registers without function-specific state (constants and clocks), which commands of any function may read. \
        Additions to this list require a review"
    );
    let bench = VfBench::new(false);
    let listing = bench.card.gt().registers.listing();
    let shared = listing.filter(|(_, found)| found.register.scope == Scope::Common);
    let names: BTreeSet<&str> = shared.map(|(_, found)| found.register.name).collect();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), SHARED);
}

/// Registers that have no state of a function and that commands of every function may read. Additions require a review.
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
    let bench = bench_with_filled_functions(false);
    let before = snapshot(&bench, true);
    let mut random = Random::new(5);
    for enabled in [63, 3] {
        // VFs 4 to 63 exist, but have no resources; then they do not exist.
        let exists = enabled == 63;
        bench.card.enable_vfs(enabled);
        for vf in (4..64).filter_map(Function::new) {
            for _ in 0..200 {
                let code = random.of(&[
                    actions::SELF_CFG,
                    actions::CONTROL_CTB,
                    actions::GET_HWCONFIG,
                    actions::VF_RESET,
                    actions::MATCH_VERSION,
                    actions::QUERY_SINGLE_KLV,
                ]);
                let key = random.of(&ct::self_cfg::ADDRESSES) << 16 | 2;
                for (n, value) in (0..).zip([code, key, aim::foreign_global(&mut random) as u32, 0]) {
                    bench.card.write_gttmmadr(vf, u64::from(MAILBOX) + n * 4, &u32::to_le_bytes(value));
                }
                bench.card.write_gttmmadr(vf, u64::from(GUC_HOST_INTERRUPT), &[1, 0, 0, 0]);
                let index = random.below(GGTT_ENTRIES);
                bench.card.write_gttmmadr(vf, GGTT_WINDOW + index * 8, &random.any().to_le_bytes());
                bench.card.write_gttmmadr(vf, doorbell::WINDOW + random.below(1024) * doorbell::PAGE_BYTES, &[1; 4]);
                bench.card.write_local(vf, random.below(4 * LOCAL), &[0xa7; 64]);
                let (mut entry, mut local) = ([1; 8], [0; 64]);
                bench.card.read_gttmmadr(vf, GGTT_WINDOW + index * 8, &mut entry);
                bench.card.read_local(vf, random.below(4 * LOCAL), &mut local);
                assert_eq!(local, [0xff; 64]);
                assert_eq!(entry, if exists { [0; 8] } else { [0xff; 8] });
            }
            bench.work(4);
        }
    }
    unharmed(&before, &snapshot(&bench, true));
    assert_eq!(bench.card.panics(), 0);
}
