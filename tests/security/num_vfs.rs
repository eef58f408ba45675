// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! QEMU used NumVFs unchecked to create VFs, and its later value to remove them: CVE-2024-26327, CVE-2024-26328.

use std::sync::Arc;

use arctic_device_model::host::NullHost;
use arctic_gpu::{CardFunction, PciDevice, Topology, VirtualCard};

use crate::machine::*;

const OFFERED: u8 = 3;
/// VF_CAP_REG: reads 1 on a VF.
const VF_CAP: u64 = 0x19_01f8;

fn exists(vf: &CardFunction) -> bool {
    assert_eq!(register(vf, VF_CAP) == 1, vf.enabled(), "{}", vf.name());
    vf.enabled()
}

fn existing(card: &VirtualCard) -> usize {
    let vfs = card.functions()[1..].iter().filter(|vf| exists(vf)).count();
    assert_eq!(vfs, usize::from(card.status().enabled_vfs), "VF count of the card and of its functions");
    vfs
}

fn arrangements() -> impl Iterator<Item = (VirtualCard, Arc<Witness>)> {
    let all = [Topology::Native, Topology::Together, Topology::Split];
    all.into_iter().map(|topology| card(OFFERED, topology, Arc::new(NullHost)))
}

/// Sets Memory Space Enable of each VF. The bit is hardwired to 0 with `Native` and required otherwise.
fn decode(card: &VirtualCard) {
    card.functions()[1..].iter().for_each(|vf| vf.write_config(COMMAND, &MEMORY_AND_BUS_MASTER));
}

/// CVE-2024-26327. Guard: `Sriov::vfs`, which compares NumVFs with TotalVFs on each use.
#[test]
fn num_vfs_above_total_vfs_enables_nothing() {
    for (card, witness) in arrangements() {
        assert_eq!(config(card.pf(), TOTAL_VFS), u16::from(OFFERED));
        for number in [u16::from(OFFERED) + 1, 63, 64, 255, 256, 257, 0x7fff, 0x8000, u16::MAX] {
            // NumVFs and VF Enable in two writes, in one write, and with NumVFs written after VF Enable.
            set_config(card.pf(), NUM_VFS, number);
            set_config(card.pf(), CONTROL, ENABLE_AND_MSE);
            decode(&card);
            assert_eq!(existing(&card), 0, "{number}");
            set_config(card.pf(), CONTROL, 0);
            let mut both = [0; 10];
            both[0] = ENABLE_AND_MSE as u8;
            both[8..].copy_from_slice(&number.to_le_bytes());
            card.pf().write_config(CONTROL, &both);
            assert_eq!(existing(&card), 0, "{number}");
            set_config(card.pf(), NUM_VFS, 1);
            assert_eq!(existing(&card), 0, "{number}: NumVFs was writable while VF Enable was set");
            set_config(card.pf(), CONTROL, 0);
        }
        assert_eq!(witness.take(), [], "notifications about VFs that were not enabled");
    }
}

/// CVE-2024-26328, first half. Guard: `Sriov::settle`, which reverts a write of NumVFs while VF Enable is set, so
/// exactly the VFs that were enabled are disabled.
#[test]
fn num_vfs_written_while_enabled_is_reverted() {
    for (card, witness) in arrangements() {
        for number in [1_u8, 3] {
            set_config(card.pf(), NUM_VFS, number.into());
            set_config(card.pf(), CONTROL, ENABLE_AND_MSE);
            decode(&card);
            for other in [0, 1, 2, 3, 4, 63, u16::MAX] {
                set_config(card.pf(), NUM_VFS, other);
                assert_eq!(config(card.pf(), NUM_VFS), u16::from(number));
                assert_eq!(existing(&card), usize::from(number));
            }
            // The write that clears VF Enable also changes NumVFs.
            card.pf().write_config(CONTROL, &[0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);
            assert_eq!(existing(&card), 0);
            let all: Vec<u8> = (1..=number).collect();
            assert_eq!(witness.take(), [(true, all.clone()), (false, all)]);
        }
    }
}

/// CVE-2024-26328, second half. Guard: `PciFunction::reset_config`. Every reset clears NumVFs and VF Enable and
/// disables the VFs exactly once.
#[test]
fn num_vfs_is_zero_after_every_reset() {
    for (card, witness) in arrangements() {
        let flr = |pf: &CardFunction| set_config(pf, DEVICE_CONTROL, FLR);
        let conventional = |pf: &CardFunction| pf.reset();
        let resets: [&dyn Fn(&CardFunction); 2] = [&flr, &conventional];
        for reset in resets {
            for number in [0_u16, 2, 3, 700] {
                set_config(card.pf(), NUM_VFS, number);
                set_config(card.pf(), CONTROL, ENABLE_AND_MSE);
                decode(&card);
                let came = if number <= u16::from(OFFERED) { number } else { 0 };
                assert_eq!(existing(&card), usize::from(came));
                reset(card.pf());
                assert_eq!((config(card.pf(), NUM_VFS), config(card.pf(), CONTROL)), (0, 0), "{number}");
                assert_eq!(existing(&card), 0);
                let all: Vec<u8> = (1..=came as u8).collect();
                let expected = if came == 0 { vec![] } else { vec![(true, all.clone()), (false, all)] };
                assert_eq!(witness.take(), expected);
                card.pf().write_config(COMMAND, &MEMORY_AND_BUS_MASTER);
                // VF Enable without NumVFs enables no VF.
                set_config(card.pf(), CONTROL, ENABLE_AND_MSE);
                assert_eq!(existing(&card), 0);
                set_config(card.pf(), CONTROL, 0);
            }
        }
    }
}
