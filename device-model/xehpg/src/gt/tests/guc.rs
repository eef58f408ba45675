// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the registers by which the host and the GuC interrupt each other.

use super::*;
use arctic_fidelity::proves;

/// Returns the GuC's events that the host is shown, and clears them.
fn events(gt: &Gt) -> u32 {
    if gt.read(0x19_0018) >> 25 & 1 == 0 {
        return 0;
    }
    gt.write(0x19_0070, 1 << 25);
    let events = gt.read(0x19_0060);
    gt.write(0x19_0060, 1 << 31);
    gt.write(0x19_0018, 1 << 25);
    events & 0xffff
}

#[test]
fn the_host_interrupts_the_guc_with_a_value() {
    proves!(
        V13_206,
        "a write of 0xC4C8 interrupts the GuC, and the value is in 0xC590, where the host cannot change it. \
        The register of the drivers, 0x1901F0, interrupts without a value"
    );
    let GtBench { gt, .. } = bench();
    assert_eq!(gt.read(0xc590), 0);
    for value in [0x1234_5678, 0, 0xffff_ffff] {
        assert_eq!(gt.write(0xc4c8, value), Some(SideEffect::NotifyGuc));
        assert_eq!(gt.read(0xc590), value);
    }
    assert_eq!(gt.write(0xc590, 5), None);
    assert_eq!(gt.write(0x19_01f0, 7), Some(SideEffect::NotifyGuc));
    assert_eq!(gt.read(0xc590), 0xffff_ffff);
    gt.reset();
    assert_eq!(gt.read(0xc590), 0);
}

#[test]
fn the_guc_interrupts_the_host_with_its_own_bits() {
    proves!(
        V13_207,
        "a write of 0xC4B8 interrupts the host with a vector of 16 bits. Firmware can set only its own: \
        software interrupts 0 to 6 and the message to the host. The others, which the hardware sets, are \
        ignored"
    );
    let GtBench { gt, msis, .. } = bench();
    gt.write(0x19_0008, 1 << 31);
    gt.write(0x19_0010, 1 << 31);
    gt.write(0x19_0038, 0xffff_0000);
    gt.write(0x19_00e8, 0);
    for bit in 0..16 {
        msis.0.store(0, Ordering::SeqCst);
        gt.write(0xc4b8, 1 << bit);
        let own = matches!(bit, 0..=6 | 15);
        assert_eq!(msis.0.load(Ordering::SeqCst), u64::from(own), "bit {bit}");
        assert_eq!(events(&gt), if own { 1 << bit } else { 0 }, "bit {bit}");
        gt.write(0x19_0008, 1 << 31);
    }
    gt.write(0xc4b8, 0xffff_ffff);
    assert_eq!(events(&gt), 0x807f);
    gt.interrupts.raise_guc(0xffff);
    assert_eq!(events(&gt), 0xffff, "the hardware sets all");
    gt.interrupt_by_guc(Function::PF, 0xffff);
    assert_eq!(events(&gt), 0x807f);
    assert_eq!(gt.read(0xc4b8), 0);
}

#[test]
fn the_shim_has_registers() {
    proves!(
        V13_185,
        "GUC_STATUS is set by the GuC alone; SOFT_SCRATCH has 16 registers and UOS_RSA_SCRATCH 64, which keep what is \
        written"
    );
    let GtBench { gt, .. } = bench();
    let scratch: Vec<u32> = (0..16).map(|n| 0xc180 + 4 * n).chain((0..64).map(|n| 0xc200 + 4 * n)).collect();
    for at in &scratch {
        gt.write(*at, 0x5a00_0000 | at);
    }
    assert!(scratch.iter().all(|at| gt.read(*at) == 0x5a00_0000 | at));
    gt.write(0xc000, 0xffff_ffff);
    assert_eq!(gt.read(0xc000), 1);
}

#[test]
fn only_software_offsets_of_the_interrupt_block_have_an_effect() {
    proves!(
        V13_288,
        "only the software addresses of the interrupt block count: a write of any other offset raises no interrupt, \
        changes no register and reads as 0"
    );
    let GtBench { gt, msis, .. } = bench();
    for (offset, value) in [(0x19_0008, 1 << 31), (0x19_0030, !0), (0x19_0034, !0), (0x19_0038, !0), (0x19_0048, !0)] {
        gt.write(offset, value);
    }
    for function in [Function::PF, Function::new(1).unwrap()] {
        let own = |at: &u32| gt.registers.decode(*at).is_some();
        // The PF's views of the VFs' registers follow the block.
        let block: Vec<u32> = (0x19_0000..0x19_0400).step_by(4).collect();
        let (listed, others): (Vec<u32>, Vec<u32>) = block.into_iter().partition(own);
        assert!(listed.len() > 20 && others.len() > 150);
        let values = || listed.iter().map(|at| gt.mmio_read(function, *at)).collect::<Vec<_>>();
        let before = values();
        for at in others {
            for value in [1, 0xffff_ffff, 1 << 31 | 4 << 16 | 0x8000] {
                assert_eq!(gt.mmio_write(function, at, value, !0), None, "{at:#x}");
                assert_eq!(gt.mmio_read(function, at), 0, "{at:#x}");
            }
        }
        assert_eq!((values(), msis.0.load(Ordering::SeqCst)), (before, 0));
    }
}
