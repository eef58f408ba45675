// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A virtual function assigned to a guest, and as seen by QEMU and a guest's PCI core next to its physical function.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

use arctic_fidelity::proves;
use proptest::prelude::*;

use super::*;
use crate::config::CONFIG_BYTES;
use crate::event::Event;
use crate::registers::DeviceControl;
use crate::testing::{
    COMMAND_BUS_MASTER, COMMAND_MEMORY_SPACE, EXPRESS, FLEX_170, INITIATE_FLR, MSI, bars, vf_capabilities,
};

const FLR_BYTE: u64 = EXPRESS as u64 + DeviceControl::AT as u64 + 1;

fn plain() -> PciFunction {
    PciFunction::virtual_function(&FLEX_170, bars(512 << 20).unwrap(), &vf_capabilities()).unwrap()
}

fn shim() -> VfConfigShim {
    VfConfigShim::new(plain())
}

fn dword(function: &PciFunction, offset: u64) -> u32 {
    let mut data = [0; 4];
    function.read_config(offset, &mut data);
    u32::from_le_bytes(data)
}

fn seen(shim: &VfConfigShim, offset: u64, width: usize) -> u64 {
    let mut data = [0; 8];
    shim.read_config(offset, &mut data[..width]);
    u64::from_le_bytes(data)
}

fn events(events: Events) -> Vec<Event> {
    events.into_iter().collect()
}

/// The card's writes through ECAM that program a VF's BARs.
fn place(shim: &mut VfConfigShim) {
    for (register, value) in [(0x10, 0x9000_0000_u32), (0x14, 1), (0x18, 0), (0x1c, 2)] {
        shim.write_config(register, &value.to_le_bytes());
    }
    shim.write_config(COMMAND.into(), &COMMAND_MEMORY_SPACE.to_le_bytes());
}

#[test]
fn identity_and_capabilities() {
    proves!(
        V13_034,
        "identity, Express and MSI as on the PF; no power management, no SR-IOV, no GGC (contract A.3, A.4)"
    );
    let function = plain();
    let ids = [0x00, 0x08, 0x2c, 0x3c, 0x50].map(|at| dword(&function, at));
    assert_eq!(ids, [0x56c0_8086, 0x0380_0008, 0x4905_8086, 0, 0]);
    let standard = [0x34, 0x70, 0xac].map(|at| dword(&function, at) & 0xffff);
    assert_eq!(standard, [0x70, 0xac10, 0x0005]);
    assert_ne!(dword(&function, 0x74) & 1 << 28, 0, "FLR");
    assert_eq!(dword(&function, 0x100), 0x0001_000e);
    assert_eq!((function.total_vfs(), function.bars().len()), (0, 2));
}

/// PCIe 9.3.4.1: on an SR-IOV aware bus, a scan does not find a VF by its IDs, and it has neither BARs nor a memory
/// space bit. All other registers equal those of an assigned VF.
#[test]
fn vf_on_an_sriov_bus_has_no_ids_or_bars() {
    let mut function = PciFunction::virtual_function_on_bus(&FLEX_170, &vf_capabilities()).unwrap();
    function.write_config(COMMAND.into(), &0xffff_u16.to_le_bytes());
    for bar in (0x10..0x28).step_by(4) {
        function.write_config(bar, &u32::MAX.to_le_bytes());
    }
    let plain = plain();
    for at in (0..CONFIG_BYTES as u64).step_by(4) {
        let expected = match at {
            0 => u32::MAX,
            0x04 => dword(&plain, at) | u32::from(COMMAND_BUS_MASTER),
            0x10..0x28 => 0,
            _ => dword(&plain, at),
        };
        assert_eq!(dword(&function, at), expected, "{at:#x}");
    }
    assert!(function.bus_master() && function.bars().is_empty());
    assert!(
        function
            .write_config(FLR_BYTE, &[(INITIATE_FLR >> 8) as u8])
            .into_iter()
            .any(|e| e == Event::FunctionLevelReset)
    );
    assert!(!function.bus_master());
}

/// Contract A.4: BARs of a VF assigned to a guest are sized and decoded like those of any function.
#[test]
fn bars_of_an_assigned_vf_are_sized_and_decoded() {
    let mut function = plain();
    function.write_config(0x10, &[0xff; 16]);
    assert_eq!([0x10, 0x14, 0x18, 0x1c].map(|at| dword(&function, at)), [0xff00_000c, !0, 0xe000_000c, !0]);
    function.write_config(0x10, &0x1_9000_0000_u64.to_le_bytes());
    assert_eq!(function.decoded(0), None);
    function.write_config(COMMAND.into(), &[6, 0]);
    assert_eq!(function.decoded(0), Some(0x1_9000_0000));
    assert!(function.bus_master());
}

#[test]
fn flr_keeps_the_windows() {
    proves!([V13_113, V13_116], "a VF's FLR preserves BARs and memory space, and clears bus mastering and MSI");
    let mut function = plain();
    function.write_config(0x10, &0x1_9000_0000_u64.to_le_bytes());
    function.write_config(0x18, &0x2_0000_0000_u64.to_le_bytes());
    function.write_config(COMMAND.into(), &[6, 0]);
    function.write_config(u64::from(MSI) + 2, &[1]);
    assert_eq!(
        events(function.write_config(FLR_BYTE, &[(INITIATE_FLR >> 8) as u8])),
        [Event::FunctionLevelReset, Event::BusMaster(false), Event::Msi(None)]
    );
    assert_eq!((function.decoded(0), function.decoded(2)), (Some(0x1_9000_0000), Some(0x2_0000_0000)));
    assert!(events(function.reset()).contains(&Event::MemorySpace(false)), "a conventional reset clears memory space");
    assert_eq!(dword(&function, 0x10), 0xc);
}

#[test]
fn disabled_vf_reads_all_ones_and_drops_writes() {
    proves!(
        V13_016,
        "before VF Enable, a scan finds no function at any width and writes are dropped. QEMU's own reads return \
        the register values"
    );
    let mut shim = shim();
    for (offset, width) in [(0, 4), (0, 2), (2, 2), (0, 1), (8, 4), (0x0e, 1), (0x34, 1), (0x70, 4), (0x100, 4)] {
        assert_eq!(seen(&shim, offset, width), u64::MAX >> (64 - 8 * width), "at {offset:#x}");
    }
    for (offset, width, value) in
        [(0x10, 4, 0xc), (0x14, 4, 0), (0x18, 4, 0xc), (0x20, 4, 0), (0x30, 4, 0), (0x3d, 1, 0), (0xae, 2, 0x180)]
    {
        assert_eq!(seen(&shim, offset, width), value, "at {offset:#x}");
    }
    let before = shim.function.config.clone();
    assert_eq!(events(shim.write_config(FLR_BYTE, &[0x80])), []);
    assert_eq!(events(shim.write_config(u64::from(MSI) + 2, &[1])), []);
    assert_eq!(events(shim.write_config(COMMAND.into(), &[4, 4])), [], "no bus mastering");
    let same = |at: u16| shim.function.config.dword(at) == before.dword(at);
    assert!((0..CONFIG_BYTES as u16).step_by(4).all(same));
}

/// QEMU's bulk read returns the real IDs; short reads never do.
#[test]
fn ids_depend_on_the_width() {
    let mut shim = shim();
    for enabled in [false, true] {
        shim.set_enabled(enabled);
        let mut bulk = [0; CONFIG_BYTES];
        shim.read_config(0, &mut bulk);
        assert_eq!(bulk[..4], [0x86, 0x80, 0xc0, 0x56]);
        assert_eq!(seen(&shim, 0, 4), 0xffff_ffff);
        assert_eq!([seen(&shim, 0, 2), seen(&shim, 2, 2), seen(&shim, 3, 1)], [0xffff, 0xffff, 0xff]);
    }
    assert_eq!(seen(&shim, 2, 4), 0xffff, "bytes 4 and 5 are not part of the IDs");
    assert_eq!(seen(&shim, 8, 4), 0x0380_0008);
}

#[test]
fn bars_programmed_before_vf_enable_are_kept() {
    proves!(
        V13_016,
        "BARs programmed before VF Enable are preserved while it is set and after it is cleared, and are decoded \
        only while it is set"
    );
    let mut shim = shim();
    place(&mut shim);
    assert_eq!(seen(&shim, COMMAND.into(), 2), u64::from(COMMAND_MEMORY_SPACE));
    assert_eq!(seen(&shim, 0x10, 4), 0x9000_000c);
    assert!(!shim.decodes());
    shim.set_memory_space(true);
    assert!(!shim.decodes(), "VF MSE without VF Enable");
    for _ in 0..2 {
        assert_eq!(events(shim.set_enabled(true)), []);
        assert!(!shim.decodes());
        shim.set_memory_space(true);
        assert!(shim.decodes());
        shim.write_config(COMMAND.into(), &[6, 0]);
        shim.write_config(u64::from(MSI) + 2, &[1]);
        assert!(shim.bus_master() && shim.raise_msi(0).is_some());
        assert_eq!(events(shim.set_enabled(false)), [Event::BusMaster(false), Event::Msi(None)]);
        assert!(!shim.decodes() && !shim.bus_master() && shim.raise_msi(0).is_none());
        assert_eq!(shim.function().decoded(0), Some(0x1_9000_0000));
        assert_eq!(shim.function().decoded(2), Some(0x2_0000_0000));
    }
    shim.reset();
    assert_eq!(seen(&shim, 0x10, 4), 0xc, "cleared like QEMU's copy after its reset");
}

#[test]
fn flr_under_the_pf() {
    proves!(V13_116, "a guest's FLR of an enabled VF preserves the BARs that the card has programmed");
    let mut shim = shim();
    place(&mut shim);
    shim.set_enabled(true);
    shim.set_memory_space(true);
    assert_eq!(events(shim.write_config(FLR_BYTE, &[0x80])), [Event::FunctionLevelReset]);
    assert!(shim.decodes());
    assert_eq!(seen(&shim, COMMAND.into(), 2), u64::from(COMMAND_MEMORY_SPACE));
}

#[derive(Clone, Debug)]
enum Act {
    Write(u64, Vec<u8>),
    Enable(bool),
    MemorySpace(bool),
    Reset,
}

fn act() -> impl Strategy<Value = Act> {
    let offset = prop_oneof![0..0x110_u64, 0..CONFIG_BYTES as u64 + 8, any::<u64>()];
    prop_oneof![
        8 => (offset, prop::collection::vec(any::<u8>(), 1..=64)).prop_map(|(offset, data)| Act::Write(offset, data)),
        1 => any::<bool>().prop_map(Act::Enable),
        1 => any::<bool>().prop_map(Act::MemorySpace),
        1 => Just(Act::Reset),
    ]
}

proptest! {
    #[test]
    fn random_accesses_to_a_vf_keep_its_invariants(acts in prop::collection::vec(act(), 1..64), at in 0..CONFIG_BYTES as u64, width in 1..=4_usize) {
        proves!(
            V13_016,
            "for any guest and VMM accesses: no panic; a disabled VF neither decodes nor sends; events report bus \
            mastering; short reads return all ones for the IDs, otherwise the same bytes as the bulk read"
        );
        let mut shim = shim();
        let mut master = false;
        for act in acts {
            let raised = match act {
                Act::Write(offset, data) => shim.write_config(offset, &data),
                Act::Enable(on) => shim.set_enabled(on),
                Act::MemorySpace(on) => { shim.set_memory_space(on); Events::default() }
                Act::Reset => shim.reset(),
            };
            for event in raised {
                if let Event::BusMaster(on) = event {
                    master = on;
                }
            }
            prop_assert_eq!(shim.bus_master(), master);
            prop_assert!(shim.enabled() || !shim.decodes() && !master && shim.raise_msi(0).is_none());
        }
        let mut bulk = [0; CONFIG_BYTES];
        shim.read_config(0, &mut bulk);
        prop_assert_eq!(&bulk[..4], &[0x86, 0x80, 0xc0, 0x56]);
        let mut data = [0xee; 4];
        shim.read_config(at, &mut data[..width]);
        for (n, byte) in data[..width].iter().enumerate() {
            let place = at as usize + n;
            let real = bulk.get(place).copied().unwrap_or(0);
            let silent = place < 4 || !shim.enabled() && !VMM_READS.contains(&(at, width));
            prop_assert_eq!(*byte, if silent { 0xff } else { real }, "at {:#x}", place);
        }
    }
}
