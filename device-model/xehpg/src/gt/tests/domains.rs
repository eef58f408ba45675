// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the ranges' forcewake domains.

use super::*;
use crate::topology::WakeDomain;
use arctic_fidelity::proves;

/// Wakes or releases a driver's forcewake request.
fn wake(gt: &Gt, request: u32, awake: bool) {
    gt.write(request, 1 << 16 | u32::from(awake));
}

#[test]
fn registers_outside_the_table_have_no_domain() {
    proves!(
        V13_132,
        "the table of domains ends at 0x240000 and has a gap from 0x40000 to 0x1c0000. The registers there are in \
        no domain and are not steered: acknowledgement and status of power, the BAR's own registers and the \
        interrupt tree can be read and written while the whole GT sleeps, under any steering"
    );
    let GtBench { gt, clock, .. } = bench();
    let outside = |offset: &u32| matches!(offset, 0x4_0000..0x1c_0000 | 0x24_0000..);
    let listed: Vec<u32> = gt.registers.listing().map(|(offset, _)| offset).filter(outside).collect();
    for offset in [0x4_44e4, 0x10_1010, 0x13_0044, 0x13_8060, 0x19_0008, 0x19_0240, 0x37_3004, 0x3f_f000] {
        assert!(listed.contains(&offset), "{offset:#x}");
    }
    assert!(listed.iter().all(|offset| gt.registers.decode(*offset).unwrap().range.is_none()));
    let table = gt.generation.registers.ranges;
    assert!((0x4_0000..0x1c_0000).step_by(4).chain([0x24_0000, 0x3f_fffc]).all(|at| table.find(at).is_none()));
    // The page of the VMM lies outside and is empty.
    assert_eq!((gt.read(0x17_8000), table.find(0x17_8000).is_none()), (0, true));
    wake(&gt, 0xa278, true);
    gt.permit_rc6(true);
    wake(&gt, 0xa278, false);
    clock.advance(1_280_000);
    [0xfd0, 0xfd8, 0xfdc].iter().for_each(|selector| gt.registers.set(*selector, 0x7f00_0000));
    assert_eq!((gt.read(0x13_8060), gt.read(0x13_0044)), (3, 0));
    for (offset, value) in [(0x4_44e4, 0x5a5a_5a5a), (0x19_0008, 1 << 31), (0x19_0240, 0x1234_5678)] {
        gt.write(offset, value);
        assert_eq!(gt.read(offset), value, "{offset:#x}");
    }
    assert!(gt.registers.asleep().is_empty());
}

#[test]
fn ranges_with_two_domains() {
    proves!(
        V13_134,
        "of four ranges, the document and the drivers name different domains. They can be accessed while either is \
        awake, and are asleep if both are"
    );
    let GtBench { gt, .. } = bench();
    wake(&gt, 0xa188, true);
    gt.write(0xa210, 3);
    let (vdbox, render) = (|n: u32| 0xa540 + 4 * n, 0xa278);
    for (first, last, domains) in [
        (0x1_4000, 0x1_41ff, [vdbox(0), vdbox(2)]),
        (0x1_4400, 0x1_45ff, [vdbox(4), vdbox(2)]),
        (0x1_4600, 0x1_47ff, [vdbox(6), vdbox(2)]),
        (0x2_0000, 0x2_0fff, [vdbox(0), render]),
    ] {
        for offset in [first, last - 3] {
            let range = gt.generation.registers.ranges.find(offset).unwrap();
            let noted = || {
                let before = gt.registers.asleep().get(&offset).map_or(0, |touches| touches.reads);
                gt.note_asleep(offset, range, false);
                gt.registers.asleep().get(&offset).map_or(0, |touches| touches.reads) != before
            };
            assert!(noted(), "{offset:#x}: both are asleep");
            for domain in domains {
                wake(&gt, domain, true);
                assert!(!noted(), "{offset:#x}: {domain:#x} is awake");
                wake(&gt, domain, false);
                assert!(noted(), "{offset:#x}: both are asleep again");
            }
        }
    }
    assert_eq!(gt.generation.registers.ranges.second_domain(0x1_4200), None);
    assert_eq!(gt.generation.registers.ranges.second_domain(0x2_0fff), Some(WakeDomain::Render));
}

#[test]
fn the_request_of_an_absent_box_is_acknowledged() {
    proves!(
        V13_139,
        "the acknowledgement of a media box that the fuses disable mirrors the request, as that of a present box"
    );
    let mut profile = crate::registers::tests::profile();
    (profile.fuses.vdbox_mask, profile.fuses.vebox_mask) = (0b101, 0b11);
    let GtBench { gt, .. } = bench_of(&profile);
    let vdboxes = (0..8).filter(|n| !profile.has_video_decode(*n)).map(|n| (0xa540, 0xd50, u32::from(n)));
    let veboxes = (0..4).filter(|n| !profile.has_video_enhance(*n)).map(|n| (0xa560, 0xd70, u32::from(n)));
    let absent: Vec<_> = vdboxes.chain(veboxes).collect();
    assert_eq!(absent.len(), 6 + 2);
    for (request, ack, n) in absent {
        wake(&gt, request + 4 * n, true);
        assert_eq!(gt.read(ack + 4 * n), 1, "{request:#x}[{n}]");
        wake(&gt, request + 4 * n, false);
        assert_eq!(gt.read(ack + 4 * n), 0, "{request:#x}[{n}]");
    }
}

#[test]
fn the_guc_requests_domains_independently() {
    proves!(
        [V13_136, V13_138],
        "the GuC has requests of its own, one register for render and one for the media boxes. A domain is \
        awake while either the driver or the GuC requests it"
    );
    let GtBench { gt, .. } = bench();
    gt.permit_rc6(true);
    gt.write(0xa210, 3);
    let asleep = |domain| gt.asleep(domain);
    let boxes = (0..8).map(WakeDomain::Vdbox).chain((0..4).map(WakeDomain::Vebox));
    let media = (0..).zip(boxes).map(|(bit, domain)| (0xa274, bit, domain, 0xa540 + 4 * bit));
    for (guc, bit, domain, driver) in media.chain([(0xa27c, 0, WakeDomain::Render, 0xa278)]) {
        let request = 1 << bit;
        assert!(asleep(domain), "{domain:?}");
        gt.write(guc, request << 16 | request);
        assert_eq!((gt.read(guc), asleep(domain), asleep(WakeDomain::Gt)), (request, false, false), "{domain:?}");
        let others = (0..8).map(WakeDomain::Vdbox).chain((0..4).map(WakeDomain::Vebox)).chain([WakeDomain::Render]);
        assert!(others.filter(|other| *other != domain).all(asleep), "{domain:?}: no other domain is awake");
        wake(&gt, driver, true);
        gt.write(guc, request << 16);
        assert!(!asleep(domain), "{domain:?}: the driver holds it");
        gt.write(guc, request << 16 | request);
        wake(&gt, driver, false);
        assert!(!asleep(domain), "{domain:?}: the GuC holds it");
        gt.write(guc, request << 16);
        assert!(asleep(domain) && asleep(WakeDomain::Gt), "{domain:?}");
    }
    // Bits that are not masked in, and bits without a domain, are not stored.
    gt.write(0xa274, 0xffff);
    gt.write(0xa274, 0xf000_f000);
    gt.write(0xa27c, 0xfffe_fffe);
    assert_eq!((gt.read(0xa274), gt.read(0xa27c), asleep(WakeDomain::Gt)), (0, 0, true));
    // The GuC holds a request while it accesses the registers of an engine, and leaves others as they are.
    for (name, register, request, domain) in
        [("rcs0", 0xa27c, 1, WakeDomain::Render), ("vcs2", 0xa274, 4, WakeDomain::Vdbox(2))]
    {
        let engine = XE_HPG.engines.named(name).unwrap();
        gt.awake_for_guc(engine, || assert_eq!((gt.read(register), asleep(domain)), (request, false), "{name}"));
        assert_eq!((gt.read(register), asleep(domain)), (0, true), "{name}");
        gt.write(register, request << 16 | request);
        gt.awake_for_guc(engine, || ());
        assert_eq!(gt.read(register), request, "{name}");
        gt.write(register, request << 16);
    }
    gt.write(0xa274, 0x1_0001);
    gt.drop_guc_forcewakes();
    assert_eq!((gt.read(0xa274), asleep(WakeDomain::Gt)), (0, true));
    gt.write(0xa27c, 0x1_0001);
    gt.reset();
    gt.permit_rc6(true);
    assert_eq!((gt.read(0xa27c), asleep(WakeDomain::Gt)), (0, true));
}

#[test]
fn the_status_of_domains_is_by_slice() {
    proves!(
        V13_137,
        "the status has a bit for render and one for each slice of media boxes, which is set while any box of \
        the slice is awake, by a request of the driver, of the GuC, or by its engine"
    );
    let GtBench { gt, .. } = bench();
    let status = || gt.read(0xa2a0);
    assert_eq!(status(), 0x1f, "nothing is gated");
    gt.permit_rc6(true);
    assert_eq!(status(), 0, "the GT is asleep");
    wake(&gt, 0xa188, true);
    assert_eq!(status(), 0x1f, "no domain is gated while the GT is awake");
    gt.write(0xa210, 3);
    assert_eq!(status(), 0);
    let slice = |n: u32| [0, 2, 3, 4][n as usize];
    let vdboxes = (0..8).map(|n| (0xa540 + 4 * n, slice(n / 2)));
    let veboxes = (0..4).map(|n| (0xa560 + 4 * n, slice(n)));
    for (request, bit) in vdboxes.chain(veboxes).chain([(0xa278, 1)]) {
        wake(&gt, request, true);
        assert_eq!(status(), 1 << bit, "{request:#x}");
        wake(&gt, request, false);
    }
    gt.write(0xa274, 0x80_0080);
    gt.write(0xa27c, 0x1_0001);
    assert_eq!(status(), 0x12, "VDBOX7 and render by the GuC");
    gt.drop_guc_forcewakes();
    let vecs1 = XE_HPG.engines.named("vecs1").unwrap();
    gt.start_context_clock(vecs1);
    assert_eq!(status(), 4);
    gt.context_clock(vecs1).stop(gt.timestamp());
    gt.write(0xa210, 1);
    assert_eq!(status(), 0x1d, "only render is gated");
    gt.write(0xa2a0, 0xffff_ffff);
    assert_eq!(status(), 0x1d, "the register is read-only");
}
