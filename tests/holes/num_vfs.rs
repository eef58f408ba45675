//! QEMU made as many VFs as NumVFs said and unmade as many as it said then: CVE-2024-26327, CVE-2024-26328.

use std::sync::Arc;

use arctic_device_model::world::Unconnected;
use arctic_gpu::{Arrangement, CardFunction, PciDevice, VirtualCard};

use crate::machine::*;

const OFFERED: u8 = 3;
/// VF_CAP_REG: 1 tells a driver that it drives a VF.
const VF_CAP: u64 = 0x19_01f8;

fn exists(vf: &CardFunction) -> bool {
    assert_eq!(register(vf, VF_CAP) == 1, vf.enabled(), "{}", vf.name());
    vf.enabled()
}

fn existing(card: &VirtualCard) -> usize {
    let vfs = card.functions()[1..].iter().filter(|vf| exists(vf)).count();
    assert_eq!(vfs, usize::from(card.model().vfs()), "the card and its functions");
    vfs
}

fn arrangements() -> impl Iterator<Item = (VirtualCard, Arc<Witness>)> {
    let all = [Arrangement::Native, Arrangement::Together, Arrangement::Split];
    all.into_iter().map(|arrangement| card(OFFERED, arrangement, Arc::new(Unconnected)))
}

/// The functions' own memory space, which a VF on a bus has not and the others need.
fn decode(card: &VirtualCard) {
    card.functions()[1..].iter().for_each(|vf| vf.write_config(COMMAND, &MEMORY_AND_BUS_MASTER));
}

/// CVE-2024-26327. Guard: `Sriov::vfs`, which compares NumVFs with TotalVFs whenever it is used.
#[test]
fn num_vfs_above_total_vfs_enables_nothing() {
    for (card, witness) in arrangements() {
        assert_eq!(config(card.pf(), TOTAL_VFS), u16::from(OFFERED));
        for number in [u16::from(OFFERED) + 1, 63, 64, 255, 256, 257, 0x7fff, 0x8000, u16::MAX] {
            // In two writes, in one, and with VF Enable first.
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
            assert_eq!(existing(&card), 0, "{number}: it is locked while VF Enable is set");
            set_config(card.pf(), CONTROL, 0);
        }
        assert_eq!(witness.take(), [], "the machine hears of no VF");
    }
}

/// CVE-2024-26328, its first half. Guard: `Sriov::settle`, which takes a write of NumVFs back while VF Enable is set, so
/// that as many go as have come.
#[test]
fn as_many_vfs_go_as_have_come() {
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
            // Another number in the very write that clears VF Enable.
            card.pf().write_config(CONTROL, &[0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);
            assert_eq!(existing(&card), 0);
            let all: Vec<u8> = (1..=number).collect();
            assert_eq!(witness.take(), [(true, all.clone()), (false, all)]);
        }
    }
}

/// CVE-2024-26328, its second half. Guard: `PciFunction::reset_config`: NumVFs and VF Enable go with every reset, and
/// the VFs with them, once.
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
                // VF Enable alone brings nothing back.
                set_config(card.pf(), CONTROL, ENABLE_AND_MSE);
                assert_eq!(existing(&card), 0);
                set_config(card.pf(), CONTROL, 0);
            }
        }
    }
}
