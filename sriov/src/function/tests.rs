// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Configuration accesses as made by drivers, firmware and VMMs, and random accesses.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

mod conventional;

use arctic_fidelity::proves;
use proptest::prelude::*;

use super::*;
use crate::config::CONFIG_BYTES;
use crate::event::MsiMessage;
use crate::testing::{FLEX_170, INITIATE_FLR, MEMORY_BAR, REGISTERS_BAR, dword, events, physical, word};

const EXPRESS: u64 = 0x70;
const MSI: u64 = 0xac;
const PMCSR: u64 = 0xd4;

fn flex_170() -> PciFunction {
    physical(16 << 30, None).unwrap()
}

/// Contract A.1, A.3: the IDs that drivers match, no INTx, and the GGC word that i915 reads.
#[test]
fn identity() {
    let function = flex_170();
    assert_eq!(dword(&function, 0x00), 0x56c0_8086);
    assert_eq!(dword(&function, 0x08), 0x0380_0008);
    assert_eq!(dword(&function, 0x2c), 0x4905_8086);
    assert_eq!(dword(&function, 0x3c), 0);
    assert_eq!(word(&function, 0x50), 0x00c0);
}

/// Contract A.3: both capability lists, walked as `lspci` does. MSI and FLR are present, MSI-X is not.
#[test]
fn capability_lists() {
    let function = flex_170();
    assert_ne!(word(&function, 0x06) & 1 << 4, 0);
    let mut found = Vec::new();
    let mut at = u64::from(word(&function, 0x34) & 0xff);
    while at != 0 {
        found.push((at, word(&function, at) & 0xff));
        at = u64::from(word(&function, at) >> 8);
    }
    assert_eq!(found, [(0x70, 0x10), (0xac, 0x05), (0xd0, 0x01)]);
    assert_ne!(dword(&function, EXPRESS + 4) & 1 << 28, 0);
    assert_eq!(dword(&function, 0x100), 0x0001_0003);
}

#[test]
fn bars_are_sized_and_placed() {
    proves!(
        [V13_004, V13_009, V13_013],
        "sizing by all ones in both halves, then programming. No third BAR (aperture) (contract A.2)"
    );
    let mut function = flex_170();
    function.write_config(0x10, &[0xff; 16]);
    assert_eq!([0x10, 0x14, 0x18, 0x1c].map(|at| dword(&function, at)), [0xff00_000c, !0, 0xc, 0xffff_fffc]);
    function.write_config(0x10, &0xfe00_0000_u64.to_le_bytes());
    function.write_config(0x18, &[0; 4]);
    assert_eq!(
        events(function.write_config(0x1c, &8_u32.to_le_bytes())),
        [Event::BarMoved { bar: MEMORY_BAR, address: 0x8_0000_0000 }]
    );
    assert_eq!(function.decoded(MEMORY_BAR), None);
    assert_eq!(events(function.write_config(4, &[0x06, 0])), [Event::MemorySpace(true), Event::BusMaster(true)]);
    assert_eq!(function.decoded(REGISTERS_BAR), Some(0xfe00_0000));
    assert_eq!(function.decoded(MEMORY_BAR), Some(0x8_0000_0000));
    assert_eq!(dword(&function, 0x20) | dword(&function, 0x24) | dword(&function, 0x30), 0);
}

/// Contract A.3: one 64-bit vector. A masked vector becomes pending; without bus mastering no message is sent.
#[test]
fn msi() {
    let mut function = flex_170();
    let message = MsiMessage { address: 0x1_fee0_1000, data: 0x4023 };
    function.write_config(MSI + 4, &message.address.to_le_bytes());
    function.write_config(MSI + 12, &message.data.to_le_bytes());
    assert_eq!(function.raise_msi(0), None);
    assert_eq!(events(function.write_config(MSI + 2, &[1, 0])), [Event::Msi(Some(message))]);
    assert_eq!(function.raise_msi(0), None, "no bus mastering");
    function.write_config(4, &[4, 0]);
    assert_eq!(function.raise_msi(0), Some(message));
    assert_eq!(function.raise_msi(1), None);

    function.write_config(MSI + 0x10, &[1]);
    assert_eq!(function.raise_msi(0), None);
    assert_eq!(dword(&function, MSI + 0x14), 1);
    assert_eq!(events(function.write_config(MSI + 0x10, &[0])), [Event::MsiUnmasked(1)]);
    assert_eq!(dword(&function, MSI + 0x14), 0);
    assert_eq!(events(function.write_config(MSI + 2, &[0])), [Event::Msi(None)]);
}

#[test]
fn function_level_reset() {
    proves!(
        [V13_113, V13_115],
        "an FLR is started by a write of any width that sets the bit. Registers are reset, link settings are \
        preserved"
    );
    let mut function = flex_170();
    function.write_config(0x10, &0x8000_0000_u32.to_le_bytes());
    function.write_config(4, &[6, 0]);
    function.write_config(MSI + 2, &[1]);
    function.write_config(EXPRESS + 0x10, &[0x43]);
    let flr = (u32::from(INITIATE_FLR) | 0x2910).to_le_bytes();
    assert_eq!(
        events(function.write_config(EXPRESS + 8, &flr)),
        [
            Event::FunctionLevelReset,
            Event::MemorySpace(false),
            Event::BarMoved { bar: REGISTERS_BAR, address: 0 },
            Event::BusMaster(false),
            Event::Msi(None),
        ]
    );
    assert_eq!(word(&function, EXPRESS + 8), 0x2910);
    assert_eq!(word(&function, EXPRESS + 0x10), 0x0043);
    assert_eq!(events(function.write_config(EXPRESS + 9, &[0xa9])), [Event::FunctionLevelReset]);
    assert_eq!(events(function.write_config(EXPRESS + 8, &[0xff])), []);
}

#[test]
fn conventional_reset() {
    proves!([V13_113, V13_114], "a conventional reset restores every register");
    let (mut function, fresh) = (flex_170(), flex_170());
    function.write_config(0, &[0xa5; CONFIG_BYTES]);
    function.reset();
    assert!((0..CONFIG_BYTES as u64).step_by(4).all(|at| dword(&function, at) == dword(&fresh, at)));
}

/// Contract A.3, B.12: registers are preserved across D3hot (No_Soft_Reset). Unsupported power states are ignored.
#[test]
fn power_states() {
    let mut function = flex_170();
    function.write_config(4, &[6, 0]);
    assert_ne!(word(&function, PMCSR) & 1 << 3, 0);
    assert_eq!(events(function.write_config(PMCSR, &[3, 0])), [Event::PowerState(PowerState::D3hot)]);
    assert_eq!(function.decoded(REGISTERS_BAR), None);
    assert_eq!(events(function.write_config(PMCSR, &[1, 0])), []);
    assert_eq!(function.power_state(), PowerState::D3hot);
    assert_eq!(events(function.write_config(PMCSR, &[0, 0])), [Event::PowerState(PowerState::D0)]);
    assert_eq!(function.decoded(REGISTERS_BAR), Some(0));
    assert!(function.bus_master());
}

/// A memory size in the card file that is not a valid BAR size is an error, not a panic.
#[test]
fn impossible_memory_size_is_refused() {
    let result = physical(3 << 30, None);
    assert_eq!(
        result.err(),
        Some(FunctionError::Bar(BarError::Size(3 << 30, BarKind::Memory64 { prefetchable: true })))
    );
}

fn access() -> impl Strategy<Value = (u64, Vec<u8>)> {
    let offset = prop_oneof![0..0x110_u64, 0..CONFIG_BYTES as u64 + 8, any::<u64>()];
    (offset, prop::collection::vec(any::<u8>(), 1..=16))
}

proptest! {
    /// For any guest writes: no panic, read-only bits keep their value, and reads of every width are consistent.
    #[test]
    fn random_accesses(writes in prop::collection::vec(access(), 1..64), offset in 0..CONFIG_BYTES as u64) {
        let mut function = flex_170();
        for (offset, data) in &writes {
            function.write_config(*offset, data);
        }
        // Read-only bits in the first 64 bytes of a DG2 and in the header of every capability.
        for (at, mask, value) in [
            (0x00, !0, 0x56c0_8086), (0x04, 0x06ff_fab9, 0x0010_0000), (0x08, !0, 0x0380_0008), (0x10, 0x00ff_ffff, 0xc),
            (0x18, !0, 0xc), (0x1c, 3, 0), (0x2c, !0, 0x4905_8086), (0x34, !0, 0x70), (0x3c, 0xffff_ff00, 0),
            (0x50, !0, 0xc0), (0x70, !0, 0x0002_ac10), (0x74, !0, 0x1000_8020), (0xac, 0xff8e_ffff, 0x0180_d005),
            (0xc0, !0, 0), (0xd0, !0, 0x4803_0001), (0xd4, 0xffff_7efc, 8), (0x100, !0, 0x0001_0003),
        ] {
            prop_assert_eq!(dword(&function, at) & mask, value, "at {:#x}", at);
        }
        let mut space = [0; CONFIG_BYTES];
        function.read_config(0, &mut space);
        for width in [1, 2, 3, 4, 8] {
            let mut data = vec![0xee; width];
            function.read_config(offset, &mut data);
            let expected = (0..width).map(|n| space.get(offset as usize + n).copied().unwrap_or(0));
            prop_assert!(data.iter().copied().eq(expected));
        }
    }

    /// Events are complete: the state after any sequence of writes can be derived from the events alone.
    #[test]
    fn events_cover_every_change(writes in prop::collection::vec(access(), 1..64)) {
        let mut function = flex_170();
        let (mut memory, mut master, mut power, mut msi) = (false, false, PowerState::D0, None);
        let mut bars = [(REGISTERS_BAR, 0), (MEMORY_BAR, 0)];
        for (offset, data) in &writes {
            for event in function.write_config(*offset, data) {
                match event {
                    Event::MemorySpace(on) => memory = on,
                    Event::BusMaster(on) => master = on,
                    Event::PowerState(state) => power = state,
                    Event::Msi(message) => msi = message,
                    Event::BarMoved { bar, address } => bars.iter_mut().filter(|b| b.0 == bar).for_each(|b| b.1 = address),
                    Event::FunctionLevelReset | Event::MsiUnmasked(_) => {}
                    Event::IoSpace(_)
                    | Event::VfEnable { .. }
                    | Event::VfDisable
                    | Event::VfMemorySpace(_)
                    | Event::VfBarMoved(_) => {
                        prop_assert!(false, "unexpected event from a function without I/O BAR and SR-IOV: {:?}", event);
                    }
                }
            }
        }
        for (bar, address) in bars {
            prop_assert_eq!(function.decoded(bar), (memory && power == PowerState::D0).then_some(address));
        }
        prop_assert_eq!((function.bus_master(), function.power_state()), (master, power));
        prop_assert_eq!(function.msi_message(), msi);
    }
}

/// A fatal error sets Fatal Error Detected, which software clears. It is reported by a message if either enable is set;
/// only SERR# also sets Signaled System Error.
#[test]
fn a_fatal_error_is_recorded_and_reported() {
    let mut function = flex_170();
    let status = |function: &PciFunction| (word(function, EXPRESS + 0x0a), word(function, 0x06) & 1 << 14);
    assert_eq!(status(&function), (0, 0));
    assert!(!function.record_fatal_error());
    assert_eq!(status(&function), (1 << 2, 0));
    function.write_config(EXPRESS + 0x0a, &[1 << 2, 0]);
    assert_eq!(status(&function), (0, 0));
    function.write_config(EXPRESS + 0x08, &[1 << 0 | 1 << 1 | 1 << 3, 0]);
    assert!(!function.record_fatal_error(), "reporting of other errors");
    function.write_config(EXPRESS + 0x08, &[1 << 2, 0]);
    assert!(function.record_fatal_error());
    assert_eq!(status(&function), (1 << 2, 0));
    function.write_config(EXPRESS + 0x08, &[0, 0]);
    function.write_config(0x04, &[0, 1]);
    assert!(function.record_fatal_error());
    assert_eq!(status(&function), (1 << 2, 1 << 14));
    function.reset();
    assert_eq!(status(&function), (0, 0));
}
