// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A conventional function with an interrupt pin, Advanced Features and power management of version 2.

use super::*;
use crate::header::{INTERRUPT_PIN, Pin};

const POWER: u64 = 0xd0;
const FEATURES: u64 = 0xa4;
const MSI: u64 = 0x90;
/// Interrupt Status.
const REQUESTED: u16 = 1 << 3;

fn conventional(pin: Option<Pin>) -> PciFunction {
    let bars = vec![Bar::memory_64(0, 4 << 20, false).unwrap()];
    let capabilities =
        [Capability::msi_32(0x90), Capability::power_management_2(0xd0), Capability::advanced_features(0xa4)];
    PciFunction::new(&Identity { pin, ..FLEX_170 }, bars, &[], &capabilities).unwrap()
}

fn in_d0_with_memory() -> PciFunction {
    let mut function = conventional(Some(Pin::A));
    function.write_config(0x10, &0xfe00_0000_u32.to_le_bytes());
    function.write_config(4, &[6, 0]);
    function
}

/// The registers as in listings of Intel's integrated GPUs: `13 00 06 03 00 00` and `01 a4 22 00 00 00`.
#[test]
fn the_capabilities_of_a_conventional_function() {
    let function = conventional(Some(Pin::A));
    let bytes = |at, len| {
        let mut data = vec![0; len];
        function.read_config(at, &mut data);
        data
    };
    assert_eq!(bytes(0x34, 1), [0x90]);
    assert_eq!(bytes(MSI, 4), [0x05, 0xd0, 0, 0]);
    assert_eq!(bytes(POWER, 6), [0x01, 0xa4, 0x22, 0, 0, 0]);
    assert_eq!(bytes(FEATURES, 6), [0x13, 0, 0x06, 0x03, 0, 0]);
    assert_eq!(bytes(u64::from(INTERRUPT_PIN), 1), [1]);
}

/// Initiate FLR of AF Control: by a write of any width that contains the byte. It reads 0.
#[test]
fn advanced_features_reset_the_function() {
    for (at, data) in [(FEATURES + 4, &[1][..]), (FEATURES + 4, &[0xff, 0xff]), (FEATURES, &[0, 0, 0, 0, 1, 0])] {
        let mut function = in_d0_with_memory();
        assert_eq!(
            events(function.write_config(at, data)),
            [
                Event::FunctionLevelReset,
                Event::MemorySpace(false),
                Event::BarMoved { bar: 0, address: 0 },
                Event::BusMaster(false)
            ]
        );
        assert_eq!(word(&function, FEATURES + 4), 0);
    }
    let mut function = in_d0_with_memory();
    for (at, data) in [(FEATURES + 4, 0xfe), (FEATURES + 5, 1), (FEATURES + 3, 1)] {
        assert_eq!(events(function.write_config(at, &[data])), [], "{at:#x}");
    }
}

/// Without No_Soft_Reset, D3hot to D0 resets the function; D3hot itself and writes of D0 in D0 do not.
#[test]
fn leaving_d3hot_resets_a_function_without_no_soft_reset() {
    let mut function = in_d0_with_memory();
    assert_eq!(events(function.write_config(POWER + 4, &[0])), []);
    assert_eq!(events(function.write_config(POWER + 4, &[3])), [Event::PowerState(PowerState::D3hot)]);
    assert_eq!(dword(&function, 0x10), 0xfe00_0004);
    assert_eq!(events(function.write_config(POWER + 4, &[3])), []);
    assert_eq!(
        events(function.write_config(POWER + 4, &[0])),
        [
            Event::FunctionLevelReset,
            Event::MemorySpace(false),
            Event::PowerState(PowerState::D0),
            Event::BarMoved { bar: 0, address: 0 },
            Event::BusMaster(false),
        ]
    );
    assert_eq!((dword(&function, 0x10), word(&function, POWER + 4)), (4, 0));
}

/// Interrupt Status follows the request; the pin also needs Interrupt Disable and MSI Enable clear, and D0.
#[test]
fn the_pin_follows_status_disable_msi_and_power_state() {
    let mut function = in_d0_with_memory();
    let status = |function: &PciFunction| word(function, 6) & REQUESTED;
    assert!(!function.asserts_pin() && status(&function) == 0);
    function.set_interrupt_status(true);
    assert!(function.asserts_pin() && status(&function) != 0);
    function.write_config(6, &[0xff, 0xff]);
    assert!(status(&function) != 0, "read-only for software");
    for (at, off, on) in [(5, 4, 0), (MSI + 2, 1, 0), (4, 0, 0)] {
        function.write_config(at, &[off]);
        assert_eq!((function.asserts_pin(), status(&function)), (at == 4, REQUESTED), "{at:#x}");
        function.write_config(at, &[on]);
        assert!(function.asserts_pin(), "bus mastering and memory space are not required");
    }
    function.write_config(POWER + 4, &[3]);
    assert!(!function.asserts_pin());
    function.write_config(POWER + 4, &[0]);
    assert!(!function.asserts_pin() && status(&function) == 0, "reset");
    function.set_interrupt_status(true);
    let saved = function.save();
    function.set_interrupt_status(false);
    assert!(!function.asserts_pin());
    function.restore(&saved).unwrap();
    assert!(function.asserts_pin());
    function.reset();
    assert!(!function.asserts_pin() && status(&function) == 0);
}

/// A function without a pin has no Interrupt Status, and cannot be restored to have it.
#[test]
fn a_function_without_a_pin_has_no_interrupt_status() {
    let mut function = conventional(None);
    function.set_interrupt_status(true);
    assert_eq!((word(&function, 6) & REQUESTED, function.asserts_pin()), (0, false));
    let mut with_pin = conventional(Some(Pin::A));
    with_pin.set_interrupt_status(true);
    let Err(error) = function.restore(&with_pin.save()) else { panic!("restored") };
    assert!(error.to_string().contains("at 0x6"), "{error}");
}

/// The registers of the header that a function implements in part.
#[test]
fn header_registers_can_be_replaced() {
    let function = conventional(Some(Pin::A));
    let command = Command::new().with_memory_space(true).with_bus_master(true).with_interrupt_disable(true);
    let mut function = function.with_header(&[
        Field::register(Command::new()).writable(command.value()),
        Field::register(Status::new().with_capabilities(true).with_fast_back_to_back(true)),
        Field::byte(0x0c, 0),
    ]);
    function.write_config(4, &[0xff; 12]);
    assert_eq!([4, 6, 0x0c].map(|at| word(&function, at)), [0x0406, 0x0090, 0]);
    function.reset();
    assert_eq!([4, 6].map(|at| word(&function, at)), [0, 0x0090]);
}
