// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Saving and restoring functions after random accesses, and states that no function can have.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

use proptest::prelude::*;

use super::*;
use crate::bar::{Bar, BarKind};
use crate::capability::{Capability, ID_MSI, ID_POWER_MANAGEMENT, ID_SRIOV, ID_VF_RESIZABLE_BAR};
use crate::config::Field;
use crate::event::Event;
use crate::testing::{FLEX_170, dword, events, layout, physical, word};

fn flex_170() -> PciFunction {
    physical(16 << 30, Some(&layout(31, &[256 << 20, 512 << 20, 1 << 30], 512 << 20))).unwrap()
}

fn conventional() -> PciFunction {
    let bars = vec![
        Bar::memory_64(0, 4 << 20, false).unwrap(),
        Bar::memory_64(2, 256 << 20, true).unwrap(),
        Bar::new(4, 64, BarKind::Io).unwrap(),
    ];
    let registers = [Field::word(0x50, 0x0211), Field::dword(0xfc, 0).writable(!0)];
    let capabilities = [Capability::msi_32(0x90), Capability::power_management(0xd0)];
    PciFunction::new(&FLEX_170, bars, &registers, &capabilities).unwrap()
}

/// Offset, width and value of a random write; half of them to the first 256 bytes.
fn write() -> impl Strategy<Value = (u64, usize, u32)> {
    let offset = prop_oneof![0..0x100_u64, 0x100..0x440_u64, 0x320..0x360_u64];
    (offset, prop_oneof![Just(1_usize), Just(2), Just(4)], any::<u32>())
}

proptest! {
    /// After any writes, a fresh function with the restored state reads the same, and a later write has the same
    /// effects on both. The state is that of its parts.
    #[test]
    fn a_restored_function_is_the_saved_one(writes in prop::collection::vec(write(), 0..24), next in write()) {
        for fresh in [flex_170, conventional] {
            let mut original = fresh();
            for (offset, width, value) in &writes {
                original.write_config(*offset, &value.to_le_bytes()[..*width]);
            }
            original.raise_msi(0);
            let saved = original.save();
            prop_assert_eq!(&SavedConfig::new(saved.parts()), &saved);
            let mut restored = fresh();
            restored.restore(&saved).unwrap();
            let all = |function: &PciFunction| {
                let mut data = vec![0; 4096];
                function.read_config(0, &mut data);
                data
            };
            prop_assert_eq!(all(&original), all(&restored));
            let (offset, width, value) = next;
            let effects = [&mut original, &mut restored]
                .map(|function| events(function.write_config(offset, &value.to_le_bytes()[..width])));
            prop_assert_eq!(&effects[0], &effects[1]);
            prop_assert_eq!(all(&original), all(&restored));
        }
    }

    /// Any bytes for any part: an error leaves the function unchanged, and a state that is accepted is read back.
    #[test]
    fn a_hostile_state_is_restored_exactly_or_refused(
        part in 0..9_usize, at in 0..64_usize, bits in 1..=u8::MAX
    ) {
        for fresh in [flex_170, conventional] {
            let mut function = fresh();
            let before = function.save();
            let mut saved = before.clone();
            let count = saved.parts.len();
            let registers = &mut saved.parts[part % count].registers;
            let len = registers.len();
            registers[at % len] ^= bits;
            match function.restore(&saved) {
                Ok(_) => prop_assert_eq!(function.save(), saved),
                Err(ConfigError::Value(..)) => prop_assert_eq!(function.save(), before),
                Err(error) => prop_assert!(false, "{}", error),
            }
        }
    }
}

/// The effects of a restore are those that the machine needs to place BARs, send interrupts and enable VFs.
#[test]
fn a_restore_reports_its_effects() {
    let mut original = flex_170();
    original.write_config(0x04, &[6, 0]);
    original.write_config(0x18, &0x80_0000_0000_u64.to_le_bytes());
    original.write_config(0x320 + 0x10, &[2, 0]);
    original.write_config(0x320 + 0x08, &[9, 0]);
    let mut restored = flex_170();
    let effects = events(restored.restore(&original.save()).unwrap());
    for expected in [
        Event::BarMoved { bar: 2, address: 0x80_0000_0000 },
        Event::MemorySpace(true),
        Event::BusMaster(true),
        Event::VfEnable { count: 2 },
        Event::VfMemorySpace(true),
    ] {
        assert!(effects.contains(&expected), "{expected:?} of {effects:?}");
    }
    assert_eq!(events(restored.restore(&original.save()).unwrap()), []);
}

/// A VF BAR has the size that was selected, and keeps its address.
#[test]
fn a_resized_vf_bar_is_restored() {
    let mut original = flex_170();
    original.write_config(0x420 + 0x08, &(8_u32 << 8).to_le_bytes());
    original.write_config(0x320 + 0x2c, &0x1000_0000_u32.to_le_bytes());
    let address = original.vf_bar_address(2, 2);
    assert_eq!(address, Some(0x2000_0000));
    let mut restored = flex_170();
    restored.restore(&original.save()).unwrap();
    assert_eq!(restored.vf_bar_address(2, 2), address);
}

/// An interrupt that is pending while it is masked is sent after the restore, when it is unmasked.
#[test]
fn a_pending_interrupt_is_restored() {
    let mut original = flex_170();
    original.write_config(0x04, &[6, 0]);
    original.write_config(0xac + 0x10, &[1]);
    original.write_config(0xac + 0x02, &[1]);
    assert_eq!(original.raise_msi(0), None);
    let mut restored = flex_170();
    restored.restore(&original.save()).unwrap();
    assert_eq!(dword(&restored, 0xac + 0x14), 1);
    assert!(events(restored.write_config(0xac + 0x10, &[0])).contains(&Event::MsiUnmasked(1)));
}

#[test]
fn a_state_that_does_not_fit_is_refused_by_name() {
    let saved = flex_170().save();
    let part = |id: PartId| saved.parts.iter().position(|of| of.part == id).unwrap();
    let refused = |change: &dyn Fn(&mut SavedConfig)| {
        let (mut function, mut state) = (flex_170(), saved.clone());
        change(&mut state);
        let result = function.restore(&state);
        assert_eq!(function.save(), saved, "{result:?}");
        result.unwrap_err()
    };
    let (power, rebar) = (PartId::Standard(ID_POWER_MANAGEMENT), PartId::Extended(ID_VF_RESIZABLE_BAR));
    let sriov = PartId::Extended(ID_SRIOV);
    let msi = PartId::Standard(ID_MSI);
    assert_eq!(refused(&|state| drop(state.parts.remove(part(msi)))), ConfigError::Missing(msi));
    assert_eq!(refused(&|state| state.parts.push(state.parts[part(msi)].clone())), ConfigError::Missing(msi));
    let other = SavedPart { part: PartId::Extended(1), registers: vec![0; 4] };
    assert_eq!(refused(&|state| state.parts.push(other.clone())), ConfigError::Unknown(PartId::Extended(1)));
    assert_eq!(refused(&|state| state.parts[part(msi)].registers.truncate(1)), ConfigError::Length(msi));
    // The device ID, the power state D1, a VF BAR of 2 GiB, two page sizes at once.
    assert_eq!(refused(&|state| state.parts[0].registers[2] ^= 1), ConfigError::Value(PartId::Header, 2));
    assert_eq!(refused(&|state| state.parts[part(power)].registers[4] |= 1), ConfigError::Value(power, 0xd4));
    assert_eq!(refused(&|state| state.parts[part(rebar)].registers[9] = 11), ConfigError::Value(rebar, 0x428));
    assert_eq!(refused(&|state| state.parts[part(sriov)].registers[0x20] |= 2), ConfigError::Value(sriov, 0x340));
}

/// A conventional function has 256 bytes, an I/O BAR that the I/O bit enables, and an MSI with a 32-bit address.
#[test]
fn a_conventional_function_decodes_each_space_by_its_own_bit() {
    let mut function = conventional();
    assert_eq!((function.config_bytes(), flex_170().config_bytes()), (256, 4096));
    function.write_config(0x10, &0x1_0040_0000_u64.to_le_bytes());
    function.write_config(0x20, &0xe040_u32.to_le_bytes());
    let decoded = |function: &PciFunction| [0, 2, 4].map(|bar| function.decoded(bar));
    assert_eq!(events(function.write_config(0x04, &[1, 0])), [Event::IoSpace(true)]);
    assert_eq!(decoded(&function), [None, None, Some(0xe040)]);
    function.write_config(0x04, &[6, 0]);
    assert_eq!(decoded(&function), [Some(0x1_0040_0000), Some(0), None]);
    assert_eq!(word(&function, 0x90 + 2), 0);
    function.write_config(0x94, &0xfee0_0000_u32.to_le_bytes());
    function.write_config(0x98, &[0x41, 0]);
    function.write_config(0x92, &[1, 0]);
    let message = function.raise_msi(0).unwrap();
    assert_eq!((message.address, message.data), (0xfee0_0000, 0x41));
}
