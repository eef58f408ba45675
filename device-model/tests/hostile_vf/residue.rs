// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Data remanence: after a reset or new provisioning, the next owner finds no data of the previous owner.

use arctic_device_model::gpu::{Gpu, VirtualFunctions};
use arctic_device_model::host::Function;
use arctic_device_model::profile::provision::Quota;
use arctic_device_model::topology::EngineClass;
use arctic_fidelity::proves;
use arctic_test_support::mi::blt::{self, Control};
use arctic_test_support::vfs::bench::*;
use arctic_test_support::vfs::canary;
use arctic_test_support::vfs::others::*;
use arctic_test_support::vfs::world::read;
use vm_memory::Bytes;

use crate::{Job, works};

#[test]
fn flr_clears_memory_and_compression_control() {
    proves!(
        [V13_121, V13_122, V13_123, V13_124, V13_125],
        "an FLR without a PF driver clears memory and its compression control data; other functions are not \
        affected (contract H.3.4)"
    );
    let mut bench = VfBench::new(true);
    bench.victims.iter_mut().for_each(Vf::up);
    fill(&bench);
    bench.attacker.up();
    // Loads 256 bytes of control data, which cover 64 KiB of memory, from memory.
    let data = canary::bytes(ATTACKER.number(), 0x100);
    bench.attacker.local.slice(at::DATA, data.len()).unwrap().write_slice(&data, 0).unwrap();
    let from = Control::Memory(base(ATTACKER) + at::DATA);
    let to = Control::Surface(base(ATTACKER) + 0x10_0000);
    bench.attacker.submit(1, EngineClass::Copy, &blt::ctrl_surf_copy(to, from, 1));
    bench.until("the copy", 1000, |bench| own_control(bench).iter().any(|byte| *byte != 0));
    let before = snapshot(&bench, true);
    bench.card.reset_function(ATTACKER);
    assert!(own_control(&bench).iter().all(|byte| *byte == 0), "compression control data was not cleared");
    assert!(read(&bench.attacker.local, 0, BAR as usize).iter().all(|byte| *byte == 0), "memory was not cleared");
    unharmed(&before, &snapshot(&bench, true));
}

/// After new provisioning by the card, no function can read another function's old data.
#[test]
fn new_provisioning_exposes_no_old_data() {
    for mapped in [false, true] {
        let bench = VfBench::new(mapped);
        fill(&bench);
        let quota = |local: u64, ggtt: u64| Quota { local_memory: local, ggtt, ..QUOTA };
        let others = [quota(2 << 20, 8 << 20), quota(6 << 20, 24 << 20), quota(4 << 20, 16 << 20)];
        for quotas in [others, [QUOTA; 3], others] {
            bench.card.provision(&quotas).unwrap();
            for vf in bench.victims.iter().chain([&bench.attacker]) {
                let seen = read(&vf.local, 0, BAR as usize);
                assert_eq!(canary::find(&seen), None, "{:?} after {quotas:?}", vf.function);
                let secret = canary::bytes(vf.function.number(), 2 << 20);
                vf.local.slice(0, secret.len()).unwrap().write_slice(&secret, 0).unwrap();
            }
            let control = read(bench.card.gt().memory.local(), bench.layout.usable, 6 * 0x2000);
            assert_eq!(control.iter().position(|byte| *byte != 0), None, "compression control");
            let secret = canary::bytes(1, control.len());
            let home = bench.card.gt().memory.local();
            home.slice(bench.layout.usable, secret.len()).unwrap().write_slice(&secret, 0).unwrap();
        }
    }
}

#[test]
fn disabling_working_vfs_clears_their_memory() {
    proves!(
        V13_127,
        "VF Enable is cleared and set while all functions work: their memory is zero afterwards, and the card works"
    );
    let mut bench = VfBench::new(true);
    for round in 0..8 {
        bench.victims.iter_mut().for_each(Vf::up);
        bench.attacker.up();
        fill(&bench);
        let class = EngineClass::BY_GUC[round % 5];
        let _jobs = [0, 1].map(|victim| Job::start(&mut bench, victim, class));
        // An endless batch.
        let ring = bench.attacker.jump(2);
        bench.attacker.write_words(Vf::batch(2), &ring);
        bench.attacker.submit(2, class, &ring);
        bench.work(round as u32 * 3);
        bench.card.disable_vfs();
        bench.work(20);
        assert!(
            bench.card.status().engines.iter().all(|engine| engine.function.is_none()),
            "an engine still runs a function"
        );
        for file in &bench.files[1..] {
            assert_eq!(file.held(), 0, "files of disabled functions have contents");
        }
        let mut data = [0; 8];
        bench.card.read_gttmmadr(ATTACKER, 0x19_0240, &mut data);
        assert_eq!(data, [0xff; 8], "a disabled function responds");
        bench.card.enable_vfs(3);
        for vf in bench.victims.iter().chain([&bench.attacker]) {
            assert_eq!(canary::find(&read(&vf.local, 0, BAR as usize)), None);
        }
    }
    bench.victims.iter_mut().for_each(Vf::up);
    fill(&bench);
    works(&mut bench, EngineClass::Copy);
    assert_eq!(bench.card.panics(), 0);
}

/// A reset of the PF clears the state of all VFs, and none of their memory is visible to another function.
#[test]
fn card_reset_exposes_no_old_data() {
    let bench = VfBench::new(true);
    fill(&bench);
    bench.card.reset_card();
    for vf in bench.victims.iter().chain([&bench.attacker]) {
        assert!(read(&vf.local, 0, BAR as usize).iter().all(|byte| *byte == 0), "{:?}", vf.function);
    }
    bench.card.provision(&[QUOTA; 3]).unwrap();
    bench.card.reset_function(Function::new(1).unwrap());
    for vf in [&bench.victims[0], &bench.attacker, &bench.victims[1]] {
        assert_eq!(canary::find(&read(&vf.local, 0, BAR as usize)), None, "{:?}", vf.function);
    }
}
