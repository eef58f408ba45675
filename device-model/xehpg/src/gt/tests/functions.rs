// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the registers with one value per function.

use super::*;
use crate::registers::InterruptRegister::{Enable, Mask};
use arctic_fidelity::proves;

#[test]
fn each_vf_has_the_trees_registers() {
    proves!(
        [V13_005, V13_015, V13_124, V13_262, V13_279, V13_280],
        "each virtual function has a separate copy of the interrupt registers, with the enable bit in its primary \
        register, but neither the tile's register nor the display bits"
    );
    let GtBench { gt, msis, .. } = bench();
    let (one, two) = (Function::new(1).unwrap(), Function::new(2).unwrap());
    let copy = XE_HPG.engines.find(EngineClass::Copy, 0).unwrap();
    gt.mmio_write(one, 0x19_0030, 0x0001_0001, !0);
    gt.mmio_write(one, 0x19_00a0, 0xffff_fffe, !0);
    gt.mmio_write(one, 0x19_0008, 1 << 31, !0);
    assert_eq!((gt.mmio_read(one, 0x19_0030), gt.mmio_read(one, 0x19_00a0)), (0x0001_0001, 0xffff_fffe));
    assert_eq!((gt.mmio_read(two, 0x19_0030), gt.read(0x19_0030), gt.read(0x19_00a0)), (0, 0, 0));
    gt.interrupts_of(one).raise_engine(copy, USER_INTERRUPT);
    assert_eq!(msis.0.load(Ordering::SeqCst), 0, "a VF has no access to the tile's register");
    gt.mmio_write(one, 0x19_00a0, 0, !0);
    gt.mmio_write(one, 0x19_0010, 1 << 31, !0);
    assert_eq!(msis.0.load(Ordering::SeqCst), 1);
    assert_eq!(gt.mmio_read(one, 0x19_0010), 1 << 31 | 1);
    assert_eq!((gt.mmio_read(two, 0x19_0010), gt.read(0x19_0010), gt.read(0x19_0008)), (0, 0, 0));
    assert_eq!(gt.mmio_read(one, 0x19_0018), 1 << 15);
    gt.mmio_write(one, 0x19_0070, 1 << 15, !0);
    assert_eq!(gt.mmio_read(one, 0x19_0060), 0x8003_0001);
    gt.mmio_write(one, 0x19_0060, 1 << 31, !0);
    gt.mmio_write(one, 0x19_0018, 1 << 15, !0);
    assert_eq!((gt.mmio_read(one, 0x19_0010), gt.mmio_read(one, 0x19_0070)), (1 << 31, 0));
    gt.vf(one).unwrap().reset();
    assert!((0x19_0008..0x19_0108).step_by(4).all(|offset| gt.mmio_read(one, offset) == 0));
}

#[test]
fn registers_with_one_value_per_function() {
    proves!(
        [V13_005, V13_125],
        "every stored register with one value per function keeps a VF's value apart from those of the PF and of \
        other VFs, shows it in the PF's view of this VF only, and loses it with a reset of this VF only (contract \
        A.4, C.2)"
    );
    let GtBench { gt, .. } = bench();
    let (one, two, last) = (Function::new(1).unwrap(), Function::new(2).unwrap(), Function::new(63).unwrap());
    let view = |function: Function, offset| offset + 0x400 * u32::from(function.number());
    // Offset and stored bits.
    let own: Vec<(u32, u32)> = gt
        .registers
        .listing()
        .filter(|(_, found)| found.function_copy.is_some())
        .filter_map(|(offset, found)| match found.register.kind {
            Kind::Storage(mask) => Some((offset, mask)),
            Kind::Live(Live::Interrupt(Enable | Mask)) => Some((offset, u32::MAX)),
            _ => None,
        })
        .collect();
    assert!([0x19_003c, 0x19_00a0, 0x19_0240, 0x19_024c].iter().all(|at| own.iter().any(|(offset, _)| offset == at)));
    let fresh: Vec<_> = own.iter().map(|(offset, _)| (gt.read(*offset), gt.mmio_read(two, *offset))).collect();
    let value = |owner: u8, n: u32| (0x0101_0101 * u32::from(owner)) ^ n.wrapping_mul(0x9e37_79b9);
    let (of_one, of_two, of_last, of_pf) = (1, 2, 63, 0x55);
    for (n, (offset, _)) in (0..).zip(&own) {
        assert_eq!(gt.mmio_write(one, *offset, value(of_one, n), !0), None);
        gt.mmio_write(last, *offset, value(of_last, n), 0x0000_ff00);
        gt.write(*offset, value(of_pf, n));
    }
    let held = |reset: u32, mask: u32, value: u32| reset & !mask | value & mask;
    for ((n, (offset, mask)), (pf, vf)) in (0..).zip(&own).zip(&fresh) {
        assert_eq!(gt.mmio_read(one, *offset), held(*vf, *mask, value(of_one, n)), "{offset:#x}");
        assert_eq!(gt.mmio_read(last, *offset), held(*vf, *mask & 0xff00, value(of_last, n)), "{offset:#x}");
        assert_eq!((gt.read(*offset), gt.mmio_read(two, *offset)), (held(*pf, *mask, value(of_pf, n)), *vf));
        assert_eq!(gt.read(view(one, *offset)), gt.mmio_read(one, *offset), "{offset:#x}");
        gt.write(view(last, *offset), value(of_two, n));
        let written = held(*vf, *mask, value(of_two, n));
        assert_eq!((gt.mmio_read(last, *offset), gt.read(view(last, *offset))), (written, written), "{offset:#x}");
    }
    gt.vf(one).unwrap().reset();
    for ((n, (offset, mask)), (pf, vf)) in (0..).zip(&own).zip(&fresh) {
        let left = (gt.mmio_read(one, *offset), gt.read(*offset), gt.mmio_read(last, *offset));
        let kept = (held(*pf, *mask, value(of_pf, n)), held(*vf, *mask, value(of_two, n)));
        assert_eq!(left, (*vf, kept.0, kept.1), "{offset:#x}");
    }
    gt.reset();
    for ((offset, _), (pf, vf)) in own.iter().zip(&fresh) {
        assert_eq!((gt.read(*offset), gt.mmio_read(last, *offset)), (*pf, *vf), "{offset:#x}");
    }
    assert!(gt.registers.unmodelled().is_empty());
}

#[test]
fn vf_cap_reads_1_in_each_vf() {
    proves!(
        V13_005,
        "VF_CAP_REG reads 1 in each VF and in the PF's view of it, and 0 in the PF; it ignores writes. A write to \
        GUC_HOST_INTERRUPT notifies the GuC for the function that makes it, not through the PF's view (contract \
        C.2)"
    );
    let GtBench { gt, .. } = bench();
    for function in [Function::new(1).unwrap(), Function::new(63).unwrap()] {
        let view = 0x400 * u32::from(function.number());
        gt.mmio_write(function, 0x19_01f8, 0, !0);
        gt.write(0x19_01f8 + view, 0);
        assert_eq!((gt.mmio_read(function, 0x19_01f8), gt.read(0x19_01f8 + view), gt.read(0x19_01f8)), (1, 1, 0));
        assert_eq!(gt.mmio_write(function, 0x19_01f0, 1, !0), Some(SideEffect::NotifyGuc));
        assert_eq!(gt.write(0x19_01f0 + view, 1), None);
        gt.vf(function).unwrap().reset();
        assert_eq!(gt.mmio_read(function, 0x19_01f8), 1);
    }
    // Registers of the card, and offsets without a register.
    for offset in [0x19_0008, 0xa188, 0xcf58, 0x19_0640, 0x19_0300] {
        assert_eq!(gt.mmio_write(Function::new(1).unwrap(), offset, !0, !0), None);
        assert_eq!(gt.mmio_read(Function::new(1).unwrap(), offset), 0, "{offset:#x}");
    }
}

#[test]
fn a_vf_accesses_no_register_of_the_card() {
    proves!(
        [V13_005, V13_006, V13_034],
        "a VF reads and writes only its own copies of registers. Every other register reads 0 and keeps its value, \
        also the bases of stolen memory, which the PF reads as configured (xe: XE_REG_OPTION_VF)"
    );
    let GtBench { gt, .. } = bench();
    let vf = Function::new(1).unwrap();
    let (dsm, gsm) = (0x10_80c0, 0x10_8100);
    let base = |offset: u32| u64::from(gt.read(offset + 4)) << 32 | u64::from(gt.read(offset));
    let profile = crate::registers::tests::profile();
    let top = profile.local_memory;
    assert!(base(gsm) < base(dsm) && base(dsm) < top && top - base(gsm) < 1 << 30, "{:#x} {:#x}", base(dsm), base(gsm));
    let accessible = |offset: u32| {
        let tree = matches!(offset, 0x19_0010 | 0x19_0018 | 0x19_001c | 0x19_0060 | 0x19_0064 | 0x19_0070 | 0x19_0074);
        let enables_and_masks = matches!(offset, 0x19_0030..=0x19_0048 | 0x19_0090..=0x19_0104);
        let guc = matches!(offset, 0x19_01f0 | 0x19_01f8 | 0x19_0304 | 0x19_0240..=0x19_024c | 0x19_0310..=0x19_031c);
        tree || enables_and_masks || guc
    };
    let modelled: Vec<u32> = gt.registers.listing().map(|(offset, _)| offset).collect();
    assert!(modelled.len() > 2000 && [dsm, dsm + 4, gsm, gsm + 4].iter().all(|offset| modelled.contains(offset)));
    let canary = |offset: u32| offset.wrapping_mul(0x9e37_79b9) | 1;
    for offset in modelled.iter().copied().filter(|offset| !accessible(*offset)) {
        gt.registers.set_all(offset, canary(offset));
    }
    for offset in (0..4 << 20).step_by(4).filter(|offset| !accessible(*offset)) {
        assert_eq!(gt.mmio_read(vf, offset), 0, "{offset:#x}");
        assert_eq!(gt.mmio_write(vf, offset, !0, !0), None, "{offset:#x}");
        assert_eq!(gt.mmio_read(vf, offset), 0, "{offset:#x}");
    }
    for offset in modelled.into_iter().filter(|offset| !accessible(*offset)) {
        assert_eq!(gt.registers.value(offset), canary(offset), "{offset:#x}");
    }
}

/// A write of some bytes of a register with side effects leaves the value that a write of the dword leaves with the
/// other bits as they were.
#[test]
fn partial_write_of_a_live_register_keeps_the_other_bits() {
    let GtBench { gt, .. } = bench();
    let emr = gt.registers.engine(XE_HPG.engines.find(EngineClass::Copy, 0).unwrap()).offset(0xb4);
    let mut kept = Vec::new();
    for function in [Function::PF, Function::new(1).unwrap()] {
        for (offset, found) in gt.registers.listing() {
            let excluded = match found.register.kind {
                // Every write of a selector selects by its value alone.
                Kind::Live(Live::Heci(_) | Live::Interrupt(InterruptRegister::Selector)) => true,
                Kind::Live(_) => false,
                _ => true,
            };
            if excluded {
                continue;
            }
            for lanes in [0xff, 0xffff, 0xffff_0000] {
                gt.mmio_write(function, offset, !0, !0);
                let old = gt.mmio_read(function, offset);
                gt.mmio_write(function, offset, old & !lanes, !0);
                let wanted = gt.mmio_read(function, offset);
                gt.mmio_write(function, offset, !0, !0);
                gt.mmio_write(function, offset, 0, lanes);
                let name = found.name();
                assert_eq!(gt.mmio_read(function, offset), wanted, "{function:?} {name} {offset:#x}, {lanes:#x}");
                if wanted != old && wanted & !lanes != 0 {
                    kept.push((function, offset));
                }
            }
        }
    }
    // The enables and masks of each function, the PF's EMR, RC_CONTROL and LMEM_CFG, and the VF's primary register.
    let both = [0x19_0030, 0x19_00a0]
        .into_iter()
        .flat_map(|offset| [(Function::PF, offset), (Function::new(1).unwrap(), offset)]);
    for register in both.chain([emr, 0xa090, 0xcf58].map(|offset| (Function::PF, offset))) {
        assert!(kept.contains(&register), "{register:x?}");
    }
    gt.mmio_write(Function::new(1).unwrap(), 0x19_0010, 1 << 31, !0);
    gt.mmio_write(Function::new(1).unwrap(), 0x19_0010, 0, 0xffff);
    assert_eq!(gt.mmio_read(Function::new(1).unwrap(), 0x19_0010), 1 << 31);
}
