// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! SR-IOV capability accesses as made by the PCI core and xe, accesses by a hostile guest, and the resulting events.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

use arctic_fidelity::proves;
use proptest::prelude::*;

use super::*;
use crate::capability::{ID_ARI, ID_VENDOR_SPECIFIC};
use crate::config::CONFIG_BYTES;
use crate::event::Event;
use crate::function::{FunctionError, PciFunction};
use crate::registers::DeviceControl;
use crate::testing::{
    ARI_CAPABLE_HIERARCHY, INITIATE_FLR, VF_ENABLE, VF_MEMORY_SPACE_ENABLE, dword, events, physical, word,
};

const SRIOV: u64 = 0x320;
const VF_REBAR: u64 = 0x420;
const CONTROL: u64 = SRIOV + SRIOV_CONTROL as u64;
const NUMBER: u64 = SRIOV + NUM_VFS as u64;
const LMEM: u64 = SRIOV + VF_BAR0 as u64 + 8;

fn layout(total_vfs: u16) -> SriovLayout {
    crate::testing::layout(total_vfs, &[256 << 20, 512 << 20, 4 << 30], 512 << 20)
}

fn card() -> PciFunction {
    physical(16 << 30, Some(&layout(63))).unwrap()
}

fn write_word(function: &mut PciFunction, offset: u64, value: u16) -> Vec<Event> {
    events(function.write_config(offset, &value.to_le_bytes()))
}

fn write_dword(function: &mut PciFunction, offset: u64, value: u32) -> Vec<Event> {
    events(function.write_config(offset, &value.to_le_bytes()))
}

/// NumVFs, then VF Enable and VF MSE in one write, as `sriov_enable` of the PCI core does.
fn enable(function: &mut PciFunction, vfs: u16) -> Vec<Event> {
    write_word(function, NUMBER, vfs);
    write_word(function, CONTROL, VF_ENABLE | VF_MEMORY_SPACE_ENABLE)
}

fn start_flr(function: &mut PciFunction) -> Vec<Event> {
    write_word(function, 0x70 + u64::from(DeviceControl::AT), INITIATE_FLR)
}

fn extended_capabilities(read: impl Fn(u64) -> u32) -> Vec<(u64, u16)> {
    let mut found = Vec::new();
    let mut at = 0x100;
    while at != 0 && found.len() < 64 {
        found.push((at, read(at) as u16));
        at = u64::from(read(at) >> 20);
    }
    found
}

#[test]
fn extended_capability_list() {
    proves!(
        [V13_001, V13_110, V13_112],
        "SR-IOV is at 0x320; ARI and VF Resizable BAR are in the list after the serial number. No other capability \
        is present, in particular no ATS and no PASID (contract A.3)"
    );
    let function = card();
    let expected = [(0x100, 0x0003), (0x200, ID_ARI), (SRIOV, ID_SRIOV), (VF_REBAR, ID_VF_RESIZABLE_BAR)];
    assert_eq!(extended_capabilities(|at| dword(&function, at)), expected);
    let without = physical(16 << 30, Some(&layout(0))).unwrap();
    assert_eq!(extended_capabilities(|at| dword(&without, at)), [(0x100, 0x0003)]);
    assert_eq!((without.total_vfs(), without.vfs_enabled(), without.vf_bars().count()), (0, 0, 0));
}

#[test]
fn registers_out_of_reset() {
    proves!([V13_001, V13_002, V13_004], "reset values of all 64 bytes of the capability (contract A.3, A.4)");
    let function = card();
    let registers: Vec<u32> = (0..SRIOV_BYTES / 4).map(|n| dword(&function, SRIOV + 4 * u64::from(n))).collect();
    assert_eq!(
        registers,
        [0x4201_0010, 2, 0, 63 << 16 | 63, 0, 1 << 16 | 1, 0x56c0_0000, 0x553, 1, 0xc, 0, 0xc, 0, 0, 0, 0]
    );
    assert_eq!(dword(&function, VF_REBAR + 4), (1 << 8 | 1 << 9 | 1 << 12) << 4);
    assert_eq!(dword(&function, VF_REBAR + 8), 9 << 8 | 1 << 5 | 2);
}

#[test]
fn vf_bars_are_sized_and_placed() {
    proves!([V13_004, V13_013], "the PCI core sizes VF BARs like any other BAR; the BARs of the VFs are contiguous");
    let mut function = card();
    function.write_config(SRIOV + 0x24, &[0xff; 24]);
    let sized: Vec<u32> = (0..6).map(|n| dword(&function, SRIOV + 0x24 + 4 * n)).collect();
    assert_eq!(sized, [0xff00_000c, !0, 0xe000_000c, !0, 0, 0]);
    function.write_config(SRIOV + 0x24, &0x10_0000_0000_u64.to_le_bytes());
    assert_eq!(
        events(function.write_config(LMEM, &0x20_0000_0000_u64.to_le_bytes())),
        [Event::VfBarMoved(VfBar { index: 2, address: 0x20_0000_0000, size: 512 << 20 })]
    );
    assert_eq!(function.vf_bar_address(1, 0), Some(0x10_0000_0000));
    assert_eq!(function.vf_bar_address(63, 0), Some(0x10_0000_0000 + 62 * (16 << 20)));
    assert_eq!(function.vf_bar_address(3, 2), Some(0x20_4000_0000));
    for (vf, bar) in [(0, 0), (64, 0), (1, 1), (1, 4)] {
        assert_eq!(function.vf_bar_address(vf, bar), None);
    }
    function.write_config(LMEM, &[0xff; 8]);
    assert_eq!(function.vf_bar_address(2, 2), None, "beyond the end of the address space");
}

#[test]
fn all_63_vfs_are_enabled_and_disabled() {
    proves!([V13_002, V13_016], "enables and disables all 63 VFs as the PCI core does (contract D.4)");
    let mut function = card();
    assert_eq!(write_word(&mut function, NUMBER, 63), []);
    assert_eq!((function.vfs_enabled(), function.vf_memory_space()), (0, false));
    assert_eq!(write_word(&mut function, CONTROL, VF_MEMORY_SPACE_ENABLE), [], "VF MSE alone has no effect");
    assert_eq!(
        write_word(&mut function, CONTROL, VF_ENABLE | VF_MEMORY_SPACE_ENABLE),
        [Event::VfEnable { count: 63 }, Event::VfMemorySpace(true)]
    );
    assert_eq!((function.vfs_enabled(), function.vf_memory_space()), (63, true));
    assert_eq!(write_word(&mut function, CONTROL, VF_ENABLE), [Event::VfMemorySpace(false)]);
    assert_eq!(write_word(&mut function, CONTROL, 0), [Event::VfDisable]);
    assert_eq!(enable(&mut function, 2), [Event::VfEnable { count: 2 }, Event::VfMemorySpace(true)]);
    assert_eq!(write_word(&mut function, CONTROL, 0), [Event::VfMemorySpace(false), Event::VfDisable]);
}

#[test]
fn enabled_vfs_lock_their_registers() {
    proves!(V13_016, "while VF Enable is set, NumVFs, page size, ARI hierarchy and VF BAR size cannot be changed");
    let mut function = card();
    enable(&mut function, 5);
    write_word(&mut function, NUMBER, 7);
    write_dword(&mut function, SRIOV + 0x20, 2);
    write_dword(&mut function, VF_REBAR + 8, 12 << 8);
    write_word(&mut function, CONTROL, VF_ENABLE | VF_MEMORY_SPACE_ENABLE | ARI_CAPABLE_HIERARCHY);
    let now = (word(&function, NUMBER), dword(&function, SRIOV + 0x20), dword(&function, VF_REBAR + 8) >> 8);
    assert_eq!((now, word(&function, CONTROL)), ((5, 1, 9), VF_ENABLE | VF_MEMORY_SPACE_ENABLE));
    assert_eq!(function.vfs_enabled(), 5);
    write_word(&mut function, CONTROL, ARI_CAPABLE_HIERARCHY);
    assert_eq!(word(&function, CONTROL), 0, "the state before the write decides");
    write_word(&mut function, CONTROL, ARI_CAPABLE_HIERARCHY);
    assert_eq!(word(&function, CONTROL), ARI_CAPABLE_HIERARCHY);
}

/// Each field that keeps its value is reported with the written and the kept value; a write of the same value is not.
#[test]
fn reverted_writes_are_reported() {
    let mut function = card();
    let mut reverted = |offset: u64, value: u32| -> Vec<(&'static str, u16, u32, u32)> {
        let events = function.write_config(offset, &value.to_le_bytes());
        events.reverted().map(|write| (write.register, write.offset, write.written, write.kept)).collect()
    };
    assert_eq!(reverted(NUMBER, 5), []);
    assert_eq!(reverted(SRIOV + 0x20, 3), [("System Page Size", 0x340, 3, 1)]);
    assert_eq!(reverted(VF_REBAR + 8, 3 << 8), [("VF BAR Size", 0x428, 3 << 8, 9 << 8)]);
    assert_eq!(reverted(0xd4, 1), [("PowerState", 0xd4, 1, 0)]);
    assert_eq!(reverted(CONTROL, (VF_ENABLE | VF_MEMORY_SPACE_ENABLE).into()), []);
    assert_eq!(reverted(NUMBER, 7), [("NumVFs", 0x330, 7, 5)]);
    assert_eq!(reverted(NUMBER, 5), []);
    assert_eq!(reverted(SRIOV + 0x20, 2), [("System Page Size", 0x340, 2, 1)]);
    assert_eq!(reverted(VF_REBAR + 8, 12 << 8), [("VF BAR Size", 0x428, 12 << 8, 9 << 8)]);
    let ari = (VF_ENABLE | ARI_CAPABLE_HIERARCHY).into();
    assert_eq!(reverted(CONTROL, ari), [("ARI Capable Hierarchy", 0x328, ARI_CAPABLE_HIERARCHY.into(), 0)]);
}

/// One access of all registers reverts all fields, and reports each.
#[test]
fn one_write_reports_each_reverted_field() {
    let mut function = card();
    enable(&mut function, 5);
    let events = function.write_config(0, &[0xff; CONFIG_BYTES]);
    assert_eq!(events.reverted().count(), 4, "{events:?}");
    assert_eq!((word(&function, NUMBER), dword(&function, SRIOV + 0x20)), (0, 1), "reset by the FLR of the same write");
    let mut function = card();
    enable(&mut function, 5);
    let mut data = [0xff; CONFIG_BYTES];
    data[usize::from(0x70 + DeviceControl::AT)..][..2].fill(0);
    data[0xd4] = 1;
    assert_eq!(function.write_config(0, &data).reverted().count(), 5);
    assert_eq!((word(&function, NUMBER), dword(&function, SRIOV + 0x20)), (5, 1));
}

#[test]
fn num_vfs_of_0_or_above_total_vfs_enables_nothing() {
    proves!(V13_002, "NumVFs of 0 or above TotalVFs enables no VF, and a later write of NumVFs does not either");
    for number in [0, 64, 256, 0xffff] {
        let mut function = card();
        assert_eq!(enable(&mut function, number), []);
        assert_eq!(word(&function, NUMBER), number);
        assert_eq!(word(&function, CONTROL), VF_ENABLE | VF_MEMORY_SPACE_ENABLE);
        assert_eq!(write_word(&mut function, NUMBER, 1), []);
        assert_eq!((function.vfs_enabled(), function.vf_memory_space()), (0, false));
    }
}

/// VF migration cannot be enabled; a page size is exactly one supported bit.
#[test]
fn vf_migration_cannot_be_enabled_and_one_page_size_is_set() {
    let mut function = card();
    write_word(&mut function, CONTROL, !VF_ENABLE);
    assert_eq!(dword(&function, CONTROL), u32::from(VF_MEMORY_SPACE_ENABLE | ARI_CAPABLE_HIERARCHY));
    for (written, kept) in [(0x10, 0x10), (0x4, 0x10), (0x3, 0x10), (0, 0x10), (0x401, 0x10), (0x400, 0x400)] {
        write_dword(&mut function, SRIOV + 0x20, written);
        assert_eq!(dword(&function, SRIOV + 0x20), kept, "after {written:#x}");
    }
}

#[test]
fn vf_bar_is_resized() {
    proves!(
        V13_013,
        "xe resizes VF BAR 2 before it enables VFs. Writes of unsupported sizes are ignored (contract D.4)"
    );
    let mut function = card();
    function.write_config(LMEM, &0x1_6000_0000_u64.to_le_bytes());
    let larger = VfBar { index: 2, address: 0x1_0000_0000, size: 4 << 30 };
    assert_eq!(write_dword(&mut function, VF_REBAR + 8, 12 << 8), [Event::VfBarMoved(larger)]);
    function.write_config(LMEM, &[0xff; 8]);
    assert_eq!([dword(&function, LMEM), dword(&function, LMEM + 4)], [0xc, !0]);
    for size in [0, 10, 13, 31, 32, 63] {
        assert_eq!(write_dword(&mut function, VF_REBAR + 8, size << 8), []);
        assert_eq!(dword(&function, VF_REBAR + 8), 12 << 8 | 1 << 5 | 2);
    }
    write_dword(&mut function, VF_REBAR + 8, 8 << 8);
    function.write_config(LMEM, &[0xff; 8]);
    assert_eq!([dword(&function, LMEM), dword(&function, LMEM + 4)], [0xf000_000c, !0]);
    write_dword(&mut function, VF_REBAR + 8, 12 << 8);
    function.reset();
    function.write_config(LMEM, &[0xff; 8]);
    assert_eq!([dword(&function, LMEM), dword(&function, LMEM + 4)], [0xe000_000c, !0]);
}

#[test]
fn resets_clear_vf_enable() {
    proves!([V13_114, V13_115], "both resets of the PF disable the VFs and reset every register of the capability");
    let fresh = card();
    let resets: [fn(&mut PciFunction) -> Vec<Event>; 2] = [start_flr, |function| events(function.reset())];
    for reset in resets {
        let mut function = card();
        write_dword(&mut function, SRIOV + 0x20, 0x10);
        write_dword(&mut function, VF_REBAR + 8, 8 << 8);
        function.write_config(LMEM, &0x20_1000_0000_u64.to_le_bytes());
        write_word(&mut function, CONTROL, ARI_CAPABLE_HIERARCHY);
        enable(&mut function, 63);
        let raised = reset(&mut function);
        let gone: Vec<Event> = raised.into_iter().filter(|event| *event != Event::FunctionLevelReset).collect();
        let back = VfBar { index: 2, address: 0, size: 512 << 20 };
        assert_eq!(gone, [Event::VfMemorySpace(false), Event::VfDisable, Event::VfBarMoved(back)]);
        for at in (SRIOV..SRIOV + 0x40).chain(VF_REBAR..VF_REBAR + 12).step_by(4) {
            assert_eq!(dword(&function, at), dword(&fresh, at), "at {at:#x}");
        }
    }
}

/// Contract A.3, A.4: VFs have no separate power state. In the PF's D3hot they stay enabled but do not decode accesses.
#[test]
fn vfs_do_not_decode_in_d3hot_of_the_pf() {
    let mut function = card();
    enable(&mut function, 3);
    assert!(write_word(&mut function, 0xd4, 3).contains(&Event::VfMemorySpace(false)));
    assert_eq!((function.vfs_enabled(), function.vf_memory_space()), (3, false));
    assert!(write_word(&mut function, 0xd4, 0).contains(&Event::VfMemorySpace(true)));
}

#[test]
fn bulk_reads_report_vendor_specific_capabilities() {
    proves!(
        V13_001,
        "under QEMU, bulk reads at any offset report SR-IOV and ARI as vendor-specific. No other byte differs"
    );
    let function = card();
    let (mut bulk, mut real) = ([0; CONFIG_BYTES], [0; CONFIG_BYTES]);
    function.read_config_disguised(0, &mut bulk);
    function.read_config(0, &mut real);
    let seen = extended_capabilities(|at| u32::from_le_bytes(bulk[at as usize..][..4].try_into().unwrap()));
    let expected = [(0x100, 3), (0x200, ID_VENDOR_SPECIFIC), (SRIOV, ID_VENDOR_SPECIFIC), (VF_REBAR, 0x24)];
    assert_eq!(seen, expected);
    for (at, id) in [(0x200, ID_ARI), (SRIOV, ID_SRIOV)] {
        let mut short = [0; 4];
        function.read_config_disguised(at, &mut short);
        assert_eq!(short[..2], id.to_le_bytes(), "reads of up to 4 bytes are guest reads");
    }
    let differing: Vec<usize> = (0..CONFIG_BYTES).filter(|at| bulk[*at] != real[*at]).collect();
    assert_eq!(differing, [0x200, 0x320]);
}

/// Errors in the card file are reported, not panics.
#[test]
fn impossible_layouts_are_refused() {
    let built = |layout: SriovLayout| physical(16 << 30, Some(&layout)).err();
    let with = |sizes: &[u64], size| crate::testing::layout(1, sizes, size);
    let refused = |error| Some(FunctionError::Sriov(error));
    assert_eq!(built(layout(256)), refused(SriovError::TotalVfs(256)));
    assert_eq!(built(layout(255)), None);
    for size in [0, 3 << 30, 512 << 10, 1 << 48] {
        assert_eq!(built(with(&[size], 1 << 30)), refused(SriovError::Size(size)));
    }
    for size in [0, 3 << 30] {
        let kind = BarKind::Memory64 { prefetchable: true };
        assert_eq!(crate::testing::bars(size).err(), Some(FunctionError::Bar(BarError::Size(size, kind))));
    }
    for size in [512 << 10, 1 << 48] {
        assert_eq!(built(with(&[1 << 30], size)), refused(SriovError::Size(size)));
    }
    assert_eq!(built(SriovLayout { resizable: 4, ..layout(1) }), refused(SriovError::Resizable(4)));
    for bar in [Bar::new(4, 64, BarKind::Io), Bar::new(5, 4096, BarKind::Memory32 { prefetchable: false })] {
        let mut layout = layout(1);
        layout.bars.extend(bar);
        let index = layout.bars.last().map_or(0, Bar::index);
        assert_eq!(built(layout), refused(SriovError::Kind(index)));
    }
    assert_eq!(built(with(&[1 << 30], 2 << 30)), Some(FunctionError::Sriov(SriovError::NotOffered(2 << 30))));
    assert_eq!(built(with(&[1 << 20, 1 << 47], 1 << 47)), None);
}

/// Accesses biased towards the capability's registers and meaningful values.
fn access() -> impl Strategy<Value = (u64, Vec<u8>)> {
    let value = prop_oneof![any::<u32>(), 0..70_u32, (0..16_u32).prop_map(|n| n << 8), Just(9), Just(0x19)];
    let register =
        prop::sample::select(vec![4, 0x78, 0xd4, CONTROL, NUMBER, SRIOV + 0x20, LMEM, LMEM + 4, VF_REBAR + 8]);
    let aimed =
        (register, value, 1..=4_usize).prop_map(|(at, value, width)| (at, value.to_le_bytes()[..width].to_vec()));
    let wild = (SRIOV - 8..VF_REBAR + 16, prop::collection::vec(any::<u8>(), 1..=64));
    prop_oneof![4 => aimed, 1 => wild]
}

/// Any offset, and offsets near the disguised IDs.
fn place() -> impl Strategy<Value = u64> {
    prop_oneof![0..CONFIG_BYTES as u64, 0x1fc..0x204_u64, 0x31c..0x324_u64]
}

proptest! {
    #[test]
    fn events_and_invariants(total in 1..=63_u16, writes in prop::collection::vec(access(), 1..64)) {
        proves!(
            [V13_002, V13_016],
            "the state after any writes can be derived from events alone. VFs never exceed TotalVFs, exist only \
            while VF Enable is set, and their number does not change while they exist. Read-only registers do not \
            change"
        );
        let mut function = physical(16 << 30, Some(&layout(total))).unwrap();
        let fresh = physical(16 << 30, Some(&layout(total))).unwrap();
        let (mut vfs, mut memory) = (0, false);
        let mut bars: Vec<VfBar> = function.vf_bars().collect();
        for (offset, data) in &writes {
            for event in function.write_config(*offset, data) {
                match event {
                    Event::VfEnable { count } => {
                        prop_assert_eq!(vfs, 0, "enabled twice");
                        vfs = count;
                    }
                    Event::VfDisable => {
                        prop_assert!(vfs != 0 && !memory, "disabled while not enabled, or while decoding");
                        vfs = 0;
                    }
                    Event::VfMemorySpace(on) => {
                        prop_assert_ne!(memory, on);
                        memory = on;
                    }
                    Event::VfBarMoved(bar) => bars.iter_mut().filter(|b| b.index == bar.index).for_each(|b| *b = bar),
                    _ => {}
                }
            }
            prop_assert_eq!((function.vfs_enabled(), function.vf_memory_space()), (vfs, memory));
            prop_assert!(vfs <= total && (vfs == 0 || word(&function, CONTROL) & VF_ENABLE != 0));
            prop_assert!(function.vf_bars().eq(bars.iter().copied()));
            for bar in &bars {
                prop_assert!(bar.size.is_power_of_two() && bar.address % bar.size == 0);
            }
            prop_assert!(layout(total).sizes.contains(&bars[1].size));
            prop_assert!(dword(&function, SRIOV + 0x20).is_power_of_two());
        }
        for at in [0, 4, 0xc, 0x14, 0x18, 0x1c, 0x34, 0x38, 0x3c] {
            prop_assert_eq!(dword(&function, SRIOV + at), dword(&fresh, SRIOV + at));
        }
        for at in [0, 4, 12] {
            prop_assert_eq!(dword(&function, VF_REBAR + at), dword(&fresh, VF_REBAR + at));
        }
    }

    /// Reads of every width and offset are consistent, except for the two IDs that a bulk read disguises.
    #[test]
    fn reads_of_every_width_are_consistent(writes in prop::collection::vec(access(), 0..16), at in place(), width in 1..80_usize) {
        let mut function = card();
        for (offset, data) in &writes {
            function.write_config(*offset, data);
        }
        let mut space = [0; CONFIG_BYTES];
        function.read_config(0, &mut space);
        let mut data = vec![0xee; width];
        function.read_config_disguised(at, &mut data);
        for (n, byte) in data.into_iter().enumerate() {
            let place = at as usize + n;
            let real = space.get(place).copied().unwrap_or(0);
            let disguised = width > 4 && [0x200, 0x320].contains(&place);
            prop_assert_eq!(byte, if disguised { 0x0b } else { real }, "at {:#x}", place);
        }
    }
}

/// Every base in a 256-byte range at the bottom, in the middle (across 4 GiB) and at the top of the address space,
/// every power-of-two size up to 128 bytes, and every VF number up to 300: 3 * 256 * 8 * 301 = 1 849 344 cases. A BAR
/// that would start beyond the last address is `None`; the others are contiguous.
#[test]
fn every_window_of_a_small_space() {
    let mut windows = 0;
    for space in [0, (1_u64 << 32) - 128, u64::MAX - 255] {
        for address in (0..256).map(|offset| space + offset) {
            for size in (0..8).map(|shift| 1_u64 << shift) {
                let bar = VfBar { index: 2, address, size };
                for vf in 0..=300_u16 {
                    let begin = i128::from(address) + i128::from(size) * (i128::from(vf) - 1);
                    let expected = u64::try_from(begin).ok().filter(|_| vf != 0);
                    assert_eq!(bar.window(vf), expected, "{address:#x} {size} {vf}");
                    windows += 1;
                }
            }
        }
    }
    assert_eq!(windows, 3 * 256 * 8 * 301);
    for vf in 0..=u16::MAX {
        let most = VfBar { index: 2, address: 0, size: 1 << 63 };
        assert_eq!(most.window(vf), [None, Some(0), Some(1 << 63)].get(usize::from(vf)).copied().flatten());
    }
}

/// Through the registers: every size that VF Resizable BAR can encode (28), every address with one bit set, with all
/// but one set, zero and all ones (130), with TotalVFs 1, 2, 62 and 63, for every VF number up to 65: 28 * 130 * 4 * 66
/// = 960 960 addresses of VF BAR 2. They consist of the address bits above the size and never overlap.
#[test]
fn every_vf_bar() {
    let sizes: Vec<u64> = (20..48).map(|shift| 1 << shift).collect();
    let mut windows = 0;
    for (n, size) in sizes.iter().enumerate() {
        for total_vfs in [1, 2, 62, 63] {
            let layout = crate::testing::layout(total_vfs, &sizes, sizes[0]);
            let mut function = physical(16 << 30, Some(&layout)).unwrap();
            write_dword(&mut function, VF_REBAR + 8, (n as u32) << 8);
            for address in (0..64).flat_map(|bit| [1_u64 << bit, !(1 << bit)]).chain([0, u64::MAX]) {
                function.write_config(LMEM, &address.to_le_bytes());
                let base = u128::from(address / size * size);
                for vf in 0..=65_u16 {
                    let begin = base + u128::from(*size) * u128::from(vf.saturating_sub(1));
                    let expected = u64::try_from(begin).ok().filter(|_| (1..=total_vfs).contains(&vf));
                    assert_eq!(function.vf_bar_address(vf, 2), expected, "{size:#x} {address:#x} {vf} of {total_vfs}");
                    windows += 1;
                }
                assert_eq!((function.vf_bar_address(1, 1), function.vf_bar_address(1, 4)), (None, None));
            }
        }
    }
    assert_eq!(windows, 28 * 130 * 4 * 66);
}

/// Every NumVFs (65 536) with every relevant TotalVFs (1, 2, 31, 62, 63): 327 680 pairs. VFs exist if and only if 1 <=
/// NumVFs <= TotalVFs, and never more than TotalVFs (CVE-2024-26327).
#[test]
fn every_number_of_vfs() {
    for total in [1, 2, 31, 62, 63] {
        let mut function = physical(16 << 30, Some(&layout(total))).unwrap();
        for number in 0..=u16::MAX {
            let raised = enable(&mut function, number);
            let expected = if number <= total { number } else { 0 };
            assert_eq!(function.vfs_enabled(), expected, "{number} of {total}");
            assert_eq!(function.vf_memory_space(), expected != 0);
            assert_eq!(raised.contains(&Event::VfEnable { count: number }), expected != 0);
            write_word(&mut function, CONTROL, 0);
        }
    }
}
