// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the registers with one value per steered instance.

use super::*;
use crate::registers::ranges::Replication;
use arctic_fidelity::proves;

#[test]
fn steering_to_a_missing_instance() {
    proves!(
        [V13_144, V13_145, V13_146, V13_161],
        "with steering to a missing instance, reads return 0 and unicast writes are dropped"
    );
    let GtBench { gt, .. } = bench();
    let sampler_mode = 0xe18c;
    gt.write(sampler_mode, 0x0001_0001);
    assert_eq!(gt.read(sampler_mode), 1);
    gt.write(0xfdc, 1 << 31 | 7 << 27 | 3 << 24);
    assert_eq!(gt.read(sampler_mode), 1);
    // Subslice 4 of a slice does not exist.
    gt.write(0xfdc, 1 << 31 | 4 << 24);
    assert_eq!(gt.read(sampler_mode), 0);
    gt.write(sampler_mode, 0x0002_0002);
    gt.write(0xfdc, 4 << 24);
    gt.write(sampler_mode, 0x0004_0004);
    gt.write(0xfdc, 1 << 31);
    assert_eq!((gt.read(sampler_mode), gt.read(0xfdc)), (3, 1 << 31));
}

/// A replicated register, and the steering values of its instances.
struct Replicated {
    offset: u32,
    selector: u32,
    instances: Vec<u32>,
}

impl Replicated {
    /// All replicated registers of which each bit is stored.
    fn stored(gt: &Gt) -> Vec<Replicated> {
        let each = |slices: u32, subslices: u32| (0..slices).flat_map(move |s| (0..subslices).map(move |u| (s, u)));
        let rows = gt.registers.listing().filter(|(_, found)| found.register.kind == Kind::Storage(u32::MAX));
        let steered = rows.filter_map(|(offset, found)| {
            let range = found.range?;
            let ids: Vec<_> = match range.replication {
                Replication::Single | Replication::Gam => return None,
                Replication::Sqidi => each(1, 8).collect(),
                Replication::Gslice | Replication::Lncf => each(8, 1).collect(),
                Replication::Dss | Replication::L3Bank => each(8, 4).collect(),
                Replication::Mslice => each(4, 1).collect(),
            };
            let instances = ids.into_iter().map(|(slice, subslice)| slice << 27 | subslice << 24).collect();
            Some(Replicated { offset, selector: range.selector(), instances })
        });
        steered.collect()
    }
}

#[test]
fn replicated_registers_have_a_value_per_instance() {
    proves!(
        [V13_144, V13_145, V13_146, V13_147, V13_148],
        "a multicast write reaches every instance of every replicated register, a unicast write only the selected \
        one. A read returns the selected instance, by multicast and by unicast. A reset resets all instances. \
        Steering has no effect on a register that is not replicated"
    );
    const MULTICAST: u32 = 1 << 31;
    let GtBench { gt, .. } = bench();
    let registers = Replicated::stored(&gt);
    for offset in [0xb020, 0xb188, 0xe530, 0xe90c, 0x8724, 0x94d4] {
        assert!(registers.iter().any(|register| register.offset == offset), "{offset:#x}");
    }
    for Replicated { offset, selector, instances } in &registers {
        let reset = gt.read(*offset);
        let all = || -> Vec<u32> {
            let read = |(steering, multicast): (&u32, u32)| {
                gt.write(*selector, steering | multicast);
                gt.read(*offset)
            };
            let [unicast, multicast]: [Vec<u32>; 2] =
                [0, MULTICAST].map(|bit| instances.iter().map(|at| read((at, bit))).collect());
            assert_eq!(unicast, multicast, "{offset:#x}");
            unicast
        };
        // The ids are ignored, also those of no instance.
        gt.write(*selector, MULTICAST | 0x7f << 24);
        gt.write(*offset, 0x5a5a_5a5a);
        assert_eq!(all(), vec![0x5a5a_5a5a; instances.len()], "{offset:#x}");
        for (steering, n) in instances.iter().zip(0..) {
            gt.write(*selector, *steering);
            gt.write(*offset, 0x100 + n);
            let written = (0..).zip(instances).map(|(m, _)| if m <= n { 0x100 + m } else { 0x5a5a_5a5a });
            assert_eq!(all(), written.collect::<Vec<u32>>(), "{offset:#x}");
        }
        // A byte of one instance.
        gt.write(*selector, instances[1]);
        gt.mmio_write(Function::PF, *offset, 0xee, 0xff);
        assert_eq!(all()[..3], [0x100, 0x1ee, 0x102], "{offset:#x}");
        gt.reset();
        assert_eq!(all(), vec![reset; instances.len()], "{offset:#x}");
        gt.write(*selector, MULTICAST);
    }
    let own_steering = [(0xfdc, 7 << 27 | 3 << 24), (0xfd0, 7 << 24), (0xfd8, 7 << 24)];
    for (n, (selector, steering)) in (1..).zip(own_steering) {
        gt.write(selector, steering);
        gt.write(0xa024, n);
        assert_eq!(gt.read(0xa024), n, "a register that is not replicated");
    }
}

#[test]
fn a_masked_write_keeps_each_instances_bits() {
    proves!([V13_144, V13_153], "a masked register is written in every instance, each with its own other bits");
    let GtBench { gt, .. } = bench();
    let row_chicken = 0xe4f0;
    gt.write(0xfdc, 2 << 27);
    gt.write(row_chicken, 0x00f0_0050);
    gt.write(0xfdc, 1 << 31);
    gt.write(row_chicken, 0x0003_0002);
    let at = |steering| {
        gt.write(0xfdc, steering);
        gt.read(row_chicken)
    };
    assert_eq!((at(2 << 27), at(1 << 31), at(3 << 27 | 1 << 24)), (0x52, 2, 2));
}

#[test]
fn a_status_register_is_read_by_instance() {
    proves!(V13_164, "status registers differ by instance, and each can be read by unicast");
    let GtBench { gt, .. } = bench();
    let row_instdone = 0xe164;
    gt.registers.set_instance(row_instdone, 9, 0xffff_fffe);
    for dss in 0..32 {
        gt.write(0xfdc, dss / 4 << 27 | dss % 4 << 24);
        assert_eq!(gt.read(row_instdone), if dss == 9 { 0xffff_fffe } else { u32::MAX }, "{dss}");
        gt.write(row_instdone, 0);
    }
    assert_eq!(gt.registers.instance_value(row_instdone, 9), 0xffff_fffe, "it is read-only");
}

#[test]
fn fused_off_instances_read_zero() {
    proves!(
        [V13_153, V13_161, V13_162],
        "on a die with eight dual subslices, the other instances read 0 and drop writes, by unicast and by \
        multicast; the super queue has two instances, and the default steering selects one of them"
    );
    let mut profile = crate::registers::tests::profile();
    (profile.fuses.dss_mask, profile.fuses.mslice_mask) = (0xff, 1);
    let GtBench { gt, .. } = bench_of(&profile);
    assert_eq!([0xfd0, 0xfd8, 0xfdc].map(|selector| gt.read(selector)), [0x8200_0000, 0x8200_0000, 0x8000_0000]);
    for Replicated { offset, selector, instances } in Replicated::stored(&gt) {
        gt.write(selector, 1 << 31);
        gt.write(offset, 7);
        let seen: Vec<u32> = instances
            .iter()
            .map(|steering| {
                gt.write(selector, *steering);
                gt.write(offset, gt.read(offset) | 8);
                gt.read(offset)
            })
            .collect();
        let present: Vec<usize> = (0..seen.len()).filter(|n| seen[*n] != 0).collect();
        let expected = match seen.len() {
            4 => vec![0],
            8 if selector != 0xfdc => vec![2, 3],
            8 => vec![0, 1],
            _ => (0..8).collect(),
        };
        assert_eq!(present, expected, "{offset:#x}");
        assert!(present.iter().all(|n| seen[*n] == 15), "{offset:#x}");
    }
}

#[test]
fn each_steering_register_has_its_ranges() {
    proves!(
        [V13_140, V13_148],
        "of the five steering registers, the CPU's accesses to a range follow one, which depends on the range. The \
        register of the hardware agents (0xfd4) and the GuC's (0xc060) steer none of them, and the registers of the \
        GAM have one value, which no steering of other units moves"
    );
    const SELECTORS: [u32; 6] = [0xfd0, 0xfd4, 0xfd8, 0xfdc, 0xfe0, 0xc060];
    let GtBench { gt, .. } = bench();
    let registers = Replicated::stored(&gt);
    let owners: Vec<u32> = registers.iter().map(|register| register.selector).collect();
    assert!(owners.contains(&0xfd0) && owners.contains(&0xfdc), "{owners:x?}");
    for Replicated { offset, selector, instances } in registers {
        for (steering, n) in instances.iter().zip(1..) {
            gt.write(selector, *steering);
            gt.write(offset, n);
        }
        gt.write(selector, instances[1]);
        for other in SELECTORS.into_iter().filter(|other| *other != selector) {
            let before = gt.read(other);
            gt.write(other, instances[0]);
            assert_eq!(gt.read(offset), 2, "{offset:#x} after a write of {other:#x}");
            gt.write(other, before);
        }
        gt.write(selector, instances[0]);
        assert_eq!(gt.read(offset), 1, "{offset:#x}");
    }
    // The SF endpoints have no stored register.
    let selector = |offset| gt.generation.registers.ranges.find(offset).unwrap().selector();
    assert_eq!([0xb00, 0x1000, 0x1ffc].map(selector), [0xfd8; 3]);
    let gam = [0x4900, 0x4ab0, 0xcebc, 0xcf58, 0xf000];
    assert_eq!(gam.map(selector), [0xfe0; 5]);
    gt.write(0xcf58, 0x8000_0123);
    for other in [0xfd0, 0xfd4, 0xfd8, 0xfdc, 0xc060] {
        for steering in [0, 3 << 27, 0xf << 27 | 7 << 24, 1 << 31 | 7 << 27] {
            gt.write(other, steering);
            assert_eq!((gt.read(0xcf58), gt.read(0x4900)), (0x8000_0123, 0x1000), "{other:#x}");
        }
    }
}

#[test]
fn steering_is_multicast_after_a_reset() {
    proves!(
        V13_143,
        "on a full die, the steering registers select multicast and instance 0.0 after a reset. The fields are bit \
        31 multicast, 30:27 slice id and 26:24 subslice id"
    );
    proves!(
        V13_158,
        "the GAM's selects its primary instance, 1; set back to it, a register of the GAM reads the primary's value"
    );
    let GtBench { gt, .. } = bench();
    let values = || [0xfd0, 0xfd4, 0xfd8, 0xfdc, 0xc060, 0xfe0].map(|selector| gt.read(selector));
    let expected = [1 << 31, 1 << 31, 1 << 31, 1 << 31, 1 << 31, 1 << 31 | 1 << 27];
    assert_eq!(values(), expected);
    for selector in [0xfd0, 0xfd4, 0xfd8, 0xfdc, 0xc060, 0xfe0] {
        gt.write(selector, 0x7f00_0000);
    }
    assert_eq!(values(), [0x7f00_0000; 6]);
    gt.write(0xfe0, 1 << 31 | 1 << 27);
    gt.write(0xcf58, 0x8000_0123);
    assert_eq!((gt.read(0xcf58), gt.read(0x4900)), (0x8000_0123, 0x1000));
    gt.reset();
    assert_eq!(values(), expected);
    // Each field by its effect: a unicast write reaches slice 5, subslice 2 alone.
    let row_chicken = 0xe4f0;
    gt.write(0xfdc, 5 << 27 | 2 << 24);
    gt.write(row_chicken, 0x0040_0040);
    let with = |dss: &u16| gt.registers.instance_value(row_chicken, *dss) == 0x40;
    assert_eq!((0..32).filter(with).collect::<Vec<_>>(), [5 * 4 + 2]);
    gt.write(0xfdc, 1 << 31);
    gt.write(row_chicken, 0x0040_0040);
    assert_eq!((0..32).filter(with).count(), 32);
}

#[test]
fn replicas_with_separate_offsets_are_not_steered() {
    proves!(
        V13_150,
        "units whose replicas have offsets of their own, the compute engines and the media boxes, are outside of \
        steering: each replica keeps its own value under every steering"
    );
    let GtBench { gt, .. } = bench();
    let separate = |class| matches!(class, EngineClass::Compute | EngineClass::VideoDecode | EngineClass::VideoEnhance);
    let bases: Vec<u32> =
        XE_HPG.engines.list().iter().filter(|engine| separate(engine.class)).map(|engine| engine.mmio_base).collect();
    assert_eq!(bases.len(), 4 + 8 + 4);
    let ranges = gt.generation.registers.ranges;
    let blocks =
        bases.iter().flat_map(|base| (*base..base + 0x800).step_by(4)).chain((0x1c_0000..0x24_0000).step_by(4));
    for offset in blocks {
        assert!(ranges.find(offset).is_none_or(|range| range.replication == Replication::Single), "{offset:#x}");
    }
    for steering in [1 << 31, 1 << 31 | 7 << 27 | 3 << 24, 0, 1 << 27 | 1 << 24, 0x7f00_0000] {
        for selector in [0xfd0, 0xfd8, 0xfdc] {
            gt.write(selector, steering);
        }
        for (base, n) in bases.iter().zip(1..) {
            gt.write(base + 0x80, (n << 12) + (steering >> 24 << 20));
        }
        for (base, n) in bases.iter().zip(1..) {
            assert_eq!(gt.read(base + 0x80), (n << 12) + (steering >> 24 << 20), "{base:#x}, {steering:#x}");
        }
    }
}

#[test]
fn users_of_a_steering_register_are_not_serialised() {
    proves!(
        V13_149,
        "the card does not serialise users of a steering register: software must, and must restore multicast. The \
        access of one user follows the steering of another that came between, and without multicast later writes \
        reach one instance"
    );
    let GtBench { gt, .. } = bench();
    let row_chicken = 0xe4f0;
    (0..32).for_each(|dss| gt.registers.set_instance(row_chicken, dss, 0x100 + u32::from(dss)));
    let dss = |n: u32| (n / 4) << 27 | (n % 4) << 24;
    gt.write(0xfdc, dss(5));
    gt.write(0xfdc, dss(9));
    assert_eq!(gt.read(row_chicken), 0x109, "the first user reads the second's instance");
    gt.write(row_chicken, 0x0200_0200);
    let with = |dss: &u16| gt.registers.instance_value(row_chicken, *dss) & 0x200 != 0;
    assert_eq!((0..32).filter(with).collect::<Vec<_>>(), [9]);
    gt.write(0xfdc, 1 << 31);
    gt.write(row_chicken, 0x0200_0200);
    assert_eq!((0..32).filter(with).count(), 32);
}
