// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Data remanence: state of a function that its next user could read, in memory, registers, contexts and doorbells.
//! Checked inside the card and through the interfaces of a VMM. (LeftoverLocals, CVE-2023-4969.)

use arctic_device_model::card::Card;
use arctic_device_model::gpu::{Gpu, VirtualFunctions};
use arctic_test_support::model::observed;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use arctic_device_model::host::NullHost;
use arctic_device_model::profile::provision::Quota;
use arctic_device_model::topology::EngineClass;
use arctic_gpu::{CardFunction, PciDevice, Topology, card_file};
use arctic_test_support::mi::{self, Global};
use arctic_test_support::vfs::bench::*;
use arctic_test_support::vfs::canary;
use arctic_test_support::vfs::world::Time;

use crate::machine;
use crate::machine::*;

/// Returns the attacker's registers as its driver reads them, and a dword of each doorbell page, with their offsets.
fn registers(bench: &VfBench) -> Vec<(u64, u32)> {
    let offsets = (0..0x40_0000).step_by(4).chain((0x40_0000..0x80_0000).step_by(4096));
    let read = |offset| {
        let mut dword = [0; 4];
        bench.card.read_gttmmadr(ATTACKER, offset, &mut dword);
        (offset, u32::from_le_bytes(dword))
    };
    offsets.map(read).collect()
}

const DOORBELL: u32 = 3;

fn allocate_doorbell(bench: &mut VfBench, id: u32) {
    let page = 0x40_0000 + u64::from(DOORBELL) * 4096;
    bench.attacker.request(0x0010, &[id, DOORBELL, page as u32, (page >> 32) as u32, 0]);
    bench.work(20);
}

/// Returns true if a doorbell write starts a new context's commands. The context is registered and enabled while its
/// ring is empty, and the commands are added without a message to the GuC.
fn doorbell_works(bench: &mut VfBench, allocate: bool) -> bool {
    bench.attacker.poke(at::SCRATCH, 0);
    bench.attacker.submit(5, EngineClass::Copy, &[]);
    bench.work(40);
    if allocate {
        allocate_doorbell(bench, 5);
    }
    let job = mi::store_data_imm(bench.attacker.global(at::SCRATCH), 0xbe11);
    bench.attacker.write_words(Vf::ring(5, 0), &job);
    bench.attacker.set_ring_tail(5, 16);
    bench.attacker.set(0x40_0000 + DOORBELL * 4096, 1);
    bench.work(60);
    bench.attacker.peek(at::SCRATCH) == 0xbe11
}

/// Creates all state that a driver can leave behind: contexts, one of them with a doorbell, a running batch, mailbox
/// contents, interrupt enables, GGTT entries, memory contents.
fn live(bench: &mut VfBench) {
    bench.attacker_up();
    let scratch = bench.attacker.base() + at::SCRATCH;
    let job = mi::store_data_imm(Global(scratch), 0x600d);
    bench.attacker.poke(at::SCRATCH, 0);
    bench.attacker.submit(1, EngineClass::Copy, &job);
    bench.until("the job", 1000, |bench| bench.attacker.peek(at::SCRATCH) == 0x600d);
    assert!(doorbell_works(bench, true));
    let ring = bench.attacker.jump(2);
    bench.attacker.write_words(Vf::batch(2), &ring);
    bench.attacker.submit(2, EngineClass::Render, &ring);
    bench.work(20);
    let secret = canary::bytes(ATTACKER.number(), 0x1000);
    let words: Vec<u32> = secret.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    bench.attacker.write_words(at::DATA, &words);
    for register in (0x19_0240..0x19_0250).step_by(4).chain([0x19_0030, 0x19_0038, 0x19_003c, 0x19_0010]) {
        bench.attacker.set(register, canary::word(ATTACKER.number(), register.into()));
    }
}

/// Guards: `Gt::vf(..).reset()` for registers, `Guc::function_reset` for contexts and doorbells, `Memory::clear_vf` and
/// `forget_vfs` for memory, `Ggtt::empty_vf` for entries. For the next driver, registers have their reset values,
/// there is no context, the doorbell is disabled, and memory is zero.
#[test]
fn function_is_in_reset_state_for_the_next_driver() {
    type Ending = fn(&VfBench);
    let endings: [(&str, Ending); 4] = [
        ("FLR", |bench| bench.card.reset_function(ATTACKER)),
        ("VF Enable off and on", |bench| {
            bench.card.disable_vfs();
            bench.work(40);
            bench.card.provision(&[QUOTA; 3]).unwrap();
        }),
        ("new provisioning", |bench| {
            let other = Quota { local_memory: 2 << 20, ..QUOTA };
            bench.card.provision(&[other; 3]).unwrap();
            bench.card.provision(&[QUOTA; 3]).unwrap();
        }),
        ("a reset of the card", |bench| {
            bench.card.reset_card();
            bench.card.provision(&[QUOTA; 3]).unwrap();
        }),
    ];
    // With and without a PF driver; with a PF driver only the FLR is tested.
    for (mapped, driver) in [(true, false), (false, false), (true, true), (false, true)] {
        let fresh_bench = || VfBench::with(mapped, (!driver).then_some(QUOTA), Time::real());
        let fresh = registers(&fresh_bench());
        for (ending, end) in endings.into_iter().take(if driver { 1 } else { 4 }) {
            let mut bench = fresh_bench();
            live(&mut bench);
            assert_ne!(registers(&bench), fresh, "{ending}: a used function reads the same as an unused one");
            end(&bench);
            bench.work(200);
            let seen = registers(&bench);
            let different: Vec<_> = seen.iter().zip(&fresh).filter(|(seen, fresh)| seen != fresh).collect();
            assert!(different.is_empty(), "{ending}, mapped {mapped}: offset, now; offset, fresh: {different:x?}");
            let status = bench.card.status();
            assert_eq!(status.functions[ATTACKER.index()].contexts, Some(0), "{ending}");
            assert!(
                status.engines.iter().all(|engine| engine.function.is_none()),
                "{ending}: an engine still runs a function"
            );
            let memory = arctic_test_support::vfs::world::read(&bench.attacker.local, 0, BAR as usize);
            assert_eq!(memory.iter().position(|byte| *byte != 0), None, "{ending}: memory");
            for index in 0..GLOBAL >> 12 {
                let entry = bench.card.gt().memory.ggtt().effective((bench.attacker.base() >> 12) + index);
                assert_eq!(entry.address(), 0, "{ending}: GGTT entry {index:#x}");
            }
            // The next driver registers a context with the same ID and writes the doorbell of the previous driver.
            bench.attacker_up();
            assert!(!doorbell_works(&mut bench, false), "{ending}: the previous driver's doorbell still works");
        }
    }
}

fn file(vf: &CardFunction, bar: u8) -> File {
    vf.mappings(bar)[0].file.try_clone().unwrap()
}

/// Returns the position of the first nonzero byte in a file.
fn content(file: &File) -> Option<usize> {
    let mut found = None;
    let mut at = 0;
    let mut bytes = vec![0; 1 << 20];
    while found.is_none() {
        let n = file.read_at(&mut bytes, at as u64).unwrap();
        if n == 0 {
            break;
        }
        found = bytes[..n].iter().position(|byte| *byte != 0).map(|place| at + place);
        at += n;
    }
    found
}

/// A VMM may hold the files of a VF's BARs for any time, also when the next VMM has them. After an FLR, after clearing
/// VF Enable and after a reset the files contain zeros, regardless of which VMM wrote to them and of the path: through
/// the file, through the BAR, beyond the quota. Guards: as above; `Storage::settle` and `free_unused`, which clear
/// files without memory assigned to the function.
#[test]
fn the_files_of_a_vfs_bars_are_empty_for_the_next_client() {
    let (model, inside) = observed(card_file::load("small").unwrap());
    let card = machine::plug(model, 2, Topology::Provisioned, Arc::new(NullHost), &Arc::default());
    let secret = canary::bytes(1, 0x2000);
    let [vf, neighbour] = [1, 2].map(|n| card.functions()[n].clone());
    for function in [&vf, &neighbour] {
        function.write_config(COMMAND, &MEMORY_AND_BUS_MASTER);
    }
    let files = [file(&vf, LMEM), file(&vf, GTTMMADR)];
    let quota = inside.card::<Card>().status().functions.swap_remove(1).quota.unwrap();
    let leave = || {
        files[0].write_all_at(&secret, 0).unwrap();
        files[0].write_all_at(&secret, quota.local_memory - 0x2000).unwrap();
        files[0].write_all_at(&secret, files[0].metadata().unwrap().len() - 0x2000).unwrap();
        // GGTT entries of the VF, in the upper half of GTTMMADR.
        files[1].write_all_at(&secret, (8 << 20) + quota.ggtt_start / 4096 * 8).unwrap();
        vf.write_bar(LMEM, 0x10_0000, &secret[..8]);
        vf.write_bar(GTTMMADR, 0x19_0244, &secret[..4]);
    };
    let seen_by_neighbour = || {
        let mut bytes = vec![0; 0x2000];
        file(&neighbour, LMEM).read_exact_at(&mut bytes, 0).unwrap();
        canary::find(&bytes)
    };
    leave();
    assert!(content(&files[0]).is_some() && content(&files[1]).is_some() && register(&vf, 0x19_0244) != 0);
    assert_eq!(seen_by_neighbour(), None);
    let flr = || set_config(&vf, DEVICE_CONTROL, FLR);
    let reset = || vf.reset();
    let endings: [(&str, &dyn Fn()); 2] = [("FLR", &flr), ("reset", &reset)];
    for (ending, end) in endings {
        leave();
        end();
        vf.write_config(COMMAND, &MEMORY_AND_BUS_MASTER);
        for _ in 0..100 {
            if content(&files[0]).is_none() && content(&files[1]).is_none() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert_eq!((content(&files[0]), content(&files[1])), (None, None), "{ending}");
        assert_eq!(register(&vf, 0x19_0244), 0, "{ending}");
        let mut bytes = [0; 8];
        vf.read_bar(LMEM, 0x10_0000, &mut bytes);
        assert_eq!(bytes, [0; 8], "{ending}");
    }
    // Other sizes are provisioned, which reassigns memory of the first VF to the second.
    leave();
    let other = |local| Quota {
        local_memory: local,
        ggtt: 1 << 20,
        contexts: 8,
        doorbells: 2,
        exec_quantum_ms: 5,
        preempt_timeout_us: 10_000,
    };
    inside.card::<Card>().provision(&[other(2 << 20), other(6 << 20)]).unwrap();
    assert_eq!((content(&files[0]), content(&files[1])), (None, None), "new provisioning");
    assert_eq!((content(&file(&neighbour, LMEM)), seen_by_neighbour()), (None, None));
}

/// If a PF driver enables and disables VFs, the files of disabled VFs contain zeros. Their whole BARs are mapped.
#[test]
fn vfs_that_do_not_exist_have_empty_files() {
    let (card, _) = machine::card(2, Topology::Together, Arc::new(NullHost));
    let files: Vec<File> = card.functions()[1..].iter().flat_map(|vf| [file(vf, LMEM), file(vf, GTTMMADR)]).collect();
    let secret = canary::bytes(1, 0x1000);
    for reset in [false, true] {
        set_config(card.pf(), NUM_VFS, 2);
        set_config(card.pf(), CONTROL, ENABLE_AND_MSE);
        for file in &files {
            file.write_all_at(&secret, 0).unwrap();
        }
        files[1].write_all_at(&secret, 8 << 20).unwrap();
        if reset {
            card.pf().reset();
        } else {
            set_config(card.pf(), CONTROL, 0);
        }
        for (n, file) in files.iter().enumerate().filter(|(n, _)| n % 2 == 0) {
            assert_eq!(content(file), None, "LMEM of VF {}", n / 2 + 1);
        }
        let mut window = vec![0; 8 << 20];
        files[1].read_exact_at(&mut window, 8 << 20).unwrap();
        assert_eq!(canary::find(&window), None, "the GGTT entries of VF 1");
        card.pf().write_config(COMMAND, &MEMORY_AND_BUS_MASTER);
    }
}
