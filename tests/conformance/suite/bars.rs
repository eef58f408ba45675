// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! BARs: registers, windows, resets of the card.

use arctic_fidelity::proves;
use arctic_test_support::machine::bus::*;
use arctic_test_support::machine::driver::{Driver, GGTT, GTTMMADR_BYTES, MAILBOX, VF_CAP};
use arctic_test_support::machine::transport::Machine;

const LMEM_BYTES: u64 = 2 << 30;
const DOORBELLS: u64 = 4 << 20;
/// SOFT_SCRATCH(14): a register that stores the value written.
const SCRATCH: u32 = 0xc180 + 14 * 4;

/// PCI: BARs are decoded while memory space is enabled; otherwise reads return all ones and writes are dropped.
pub fn bars_answer_with_memory_space_only(machine: &mut dyn Machine) {
    place(machine);
    machine.set_config16(0, COMMAND, BUS_MASTER);
    machine.set_bar32(0, 2, 0, 0x0909_0909);
    machine.set_register(0, SCRATCH, 5);
    assert_eq!((machine.bar32(0, 2, 0), machine.register(0, SCRATCH)), (u32::MAX, u32::MAX));
    enable(machine, 0);
    assert_eq!(
        (machine.bar32(0, 2, 0), machine.register(0, SCRATCH)),
        (0, 0),
        "a write had an effect while memory space was disabled"
    );
    machine.set_register(0, SCRATCH, 5);
    machine.set_config16(0, COMMAND, 0);
    assert_eq!(machine.register(0, SCRATCH), u32::MAX);
    enable(machine, 0);
    assert_eq!(machine.register(0, SCRATCH), 5, "the register was changed while memory space was disabled");
}

/// PCI power management, contract A.3: in D3hot a function responds only to configuration accesses and keeps its state.
pub fn bars_answer_in_d0_only(machine: &mut dyn Machine) {
    bring_up(machine);
    let power = capability(machine, 0, POWER_MANAGEMENT);
    assert_ne!(machine.config16(0, power + 4) & 1 << 3, 0, "No_Soft_Reset");
    machine.set_bar32(0, 2, 0x1000, 7);
    machine.set_register(0, SCRATCH, 5);
    machine.set_config16(0, power + 4, 3);
    assert_eq!(machine.config16(0, power + 4) & 3, 3);
    assert_eq!((machine.bar32(0, 2, 0x1000), machine.register(0, SCRATCH)), (u32::MAX, u32::MAX));
    machine.set_config16(0, power + 4, 0);
    assert_eq!((machine.bar32(0, 2, 0x1000), machine.register(0, SCRATCH)), (7, 5));
}

/// PCI: a BAR is decoded at the last address written, a VF's BAR at the address in the PF's SR-IOV capability. Its
/// contents do not depend on the address.
pub fn bars_answer_where_they_have_been_moved_to(machine: &mut dyn Machine) {
    proves!(
        V13_014,
        "PCI: a BAR is decoded at the last address written, a VF's BAR at the address in the PF's SR-IOV capability"
    );
    let _pf = Driver::pf_with_vfs(machine, 1);
    for round in 0..4 {
        for function in [0, 1] {
            assert_eq!(machine.register(function, VF_CAP), u32::from(function), "round {round}");
            machine.set_bar32(function, 2, 0x1000_u64 << function, 0x5000 + round);
            assert_eq!(machine.bar32(function, 2, 0x1000_u64 << function), 0x5000 + round);
        }
        let places = if machine.visibility().places_vf_bars { &PLACES[..] } else { &PLACES[..2] };
        for (n, place) in places.iter().enumerate() {
            // A register, and an offset that may be mapped.
            for offset in if n % 2 == 0 { [u64::from(VF_CAP), GGTT] } else { [0x1000, 0x2000] } {
                if let Some(seen) = machine.read_bus(place + offset) {
                    assert_eq!(seen == u32::MAX, round % 2 == 1, "round {round}: {seen:#x} at {:#x}", place + offset);
                }
            }
        }
        match round {
            // Round 0 disables decoding for the move, as operating systems do; rounds 1 and 2 move decoded BARs.
            0 => {
                machine.set_config16(0, COMMAND, 0);
                place_elsewhere(machine);
                enable(machine, 0);
            }
            1 => place(machine),
            2 => place_elsewhere(machine),
            _ => {}
        }
    }
}

pub fn registers_take_every_width(machine: &mut dyn Machine) {
    proves!(
        V13_004,
        "registers are doublewords. Accesses of 1, 2 and 8 bytes, aligned or not, read or write exactly the \
        addressed bytes"
    );
    bring_up(machine);
    let at = u64::from(SCRATCH - 4);
    machine.set_bar64(0, 0, at, 0x8877_6655_4433_2211);
    assert_eq!((machine.bar32(0, 0, at), machine.bar32(0, 0, at + 4)), (0x4433_2211, 0x8877_6655));
    assert_eq!(machine.bar64(0, 0, at), 0x8877_6655_4433_2211);
    for n in 0..8 {
        let mut byte = [0];
        machine.read_bar(0, 0, at + n, &mut byte);
        assert_eq!(byte[0], 0x11 * (n as u8 + 1));
    }
    for n in 0..7 {
        let mut word = [0; 2];
        machine.read_bar(0, 0, at + n, &mut word);
        assert_eq!(word, [0x11 * (n as u8 + 1), 0x11 * (n as u8 + 2)]);
    }
    assert_eq!(machine.bar32(0, 0, at + 2), 0x6655_4433);
    machine.write_bar(0, 0, at + 1, &[0xaa]);
    machine.write_bar(0, 0, at + 6, &[0xbb, 0xcc]);
    assert_eq!(machine.bar64(0, 0, at), 0xccbb_6655_4433_aa11);
}

/// Local memory supports accesses of any width and alignment, across page boundaries, and at its first and last bytes.
pub fn local_memory_takes_every_width(machine: &mut dyn Machine) {
    bring_up(machine);
    for at in [0, 0x1000 - 4, LMEM_BYTES - 16] {
        machine.set_bar64(0, 2, at, 0x8877_6655_4433_2211);
        machine.set_bar64(0, 2, at + 8, 0);
        assert_eq!(machine.bar32(0, 2, at + 3), 0x7766_5544);
        assert_eq!(machine.bar64(0, 2, at + 1), 0x0088_7766_5544_3322);
        machine.write_bar(0, 2, at + 7, &[0xaa, 0xbb]);
        machine.write_bar(0, 2, at + 1, &[0xcc]);
        assert_eq!((machine.bar64(0, 2, at), machine.bar64(0, 2, at + 8)), (0xaa77_6655_4433_cc11, 0xbb));
    }
}

pub fn mapped_and_trapped_accesses_reach_the_same_bytes(machine: &mut dyn Machine) {
    proves!(
        V13_004,
        "a VMM's mapping of a BAR and trapped accesses address the same memory, in the GGTT half of GTTMMADR and in \
        local memory; registers and doorbells cannot be mapped"
    );
    bring_up(machine);
    let places = [(0, GGTT), (0, GGTT + 0x12_3458), (0, GTTMMADR_BYTES - 8), (2, 0), (2, 1 << 30), (2, LMEM_BYTES - 8)];
    for (n, (bar, at)) in (1..).zip(places) {
        let value = n << 32 | 0x1234_5001;
        machine.set_bar64(0, bar, at, value);
        let mut seen = [0; 8];
        assert!(machine.read_beside(0, bar, at, &mut seen), "no alternative path to BAR {bar} at {at:#x}");
        assert_eq!(u64::from_le_bytes(seen), value);
        assert!(machine.write_beside(0, bar, at, &(value + 0x1000).to_le_bytes()));
        assert_eq!(machine.bar64(0, bar, at), value + 0x1000);
    }
    for at in [0, u64::from(MAILBOX), DOORBELLS, GGTT - 8] {
        assert!(!machine.read_beside(0, 0, at, &mut [0; 8]), "{at:#x} must be trapped");
    }
}

pub fn doorbell_window_does_not_store_writes(machine: &mut dyn Machine) {
    proves!(
        V13_091,
        "pages of the doorbell window without an armed doorbell do not store what is written. User space writes the \
        last page of the window as a barrier (contract C.2)"
    );
    bring_up(machine);
    for at in [DOORBELLS, GGTT - 0x1000, GGTT - 4] {
        machine.set_bar32(0, 0, at, 7);
        assert_eq!(machine.bar32(0, 0, at), 0xdead_beef, "{at:#x}");
    }
    assert!(machine.report().unmodelled.is_empty());
}

/// Contract C.1, C.2: VF_CAP_REG identifies PF and VF to a driver; writes, which drivers make often, have no effect.
pub fn vf_cap_reg_identifies_the_function(machine: &mut dyn Machine) {
    bring_up(machine);
    bring_up_vfs(machine, 2);
    for function in 0..=2 {
        for value in [0, 1, u32::MAX] {
            machine.set_register(function, VF_CAP, value);
            assert_eq!(machine.register(function, VF_CAP), u32::from(function != 0));
        }
    }
}

/// Accesses to unmodelled registers are reported over each transport: reads return 0, writes are dropped, and both are
/// counted.
pub fn missing_registers_are_reported(machine: &mut dyn Machine) {
    bring_up(machine);
    assert!(machine.report().unmodelled.is_empty());
    // Above the last register that a manual lists, below the doorbells.
    const HOLE: u32 = 0x3f_fff0;
    let before = machine.report().trapped;
    machine.set_register(0, HOLE, 7);
    machine.set_register(0, HOLE, 7);
    assert_eq!(machine.register(0, HOLE), 0);
    let report = machine.report();
    let [missing] = &report.unmodelled[..] else { panic!("{report}") };
    assert_eq!((missing.offset, missing.reads, missing.writes), (HOLE, 1, 2));
    let count = |name: &str| report.trapped[name] - before[name];
    assert_eq!((count("register_reads"), count("register_writes")), (1, 2));
    assert_eq!((count("doorbells"), count("local_memory"), count("config")), (0, 0, 0));
}

/// Checks that the card is in reset state: no BAR decoded, no VF enabled, registers at their reset values.
fn as_new(machine: &mut dyn Machine) {
    assert_eq!(machine.config16(0, COMMAND), 0);
    let msi = capability(machine, 0, MSI);
    assert_eq!(machine.config16(0, msi + 2) & 1, 0, "MSI Enable after a reset");
    let capability = sriov(machine);
    assert_eq!(machine.config16(0, capability + SRIOV_CONTROL), 0);
    assert_eq!(machine.config16(0, capability + NUM_VFS), 0);
    bring_up(machine);
    assert_eq!((machine.register(0, SCRATCH), machine.register(0, MAILBOX)), (0, 0));
    assert_eq!(machine.register(0, 0xc000) & 0x8000_0000, 0, "the GuC still runs");
    enable_vfs(machine, 1);
    enable(machine, 1);
    assert_eq!(machine.register(1, MAILBOX), 0);
    enable_vfs(machine, 0);
}

/// Puts the card into a state that differs from reset state: GuC running, VFs enabled, registers and memory written.
fn used(machine: &mut dyn Machine) {
    Driver::pf_with_vfs(machine, 2);
    Driver::vf(machine, 1);
    machine.set_register(0, SCRATCH, 5);
    machine.set_register(0, MAILBOX, 5);
    machine.set_register(1, MAILBOX, 6);
    machine.set_bar64(0, 2, 0x20_0000, 0x0102_0304_0506_0708);
}

pub fn conventional_reset_restores_the_reset_state(machine: &mut dyn Machine) {
    proves!(V13_114, "a conventional reset clears the function's registers and disables its VFs");
    used(machine);
    machine.reset(0);
    assert_eq!(machine.config32(0, BAR0) & !0xf, 0, "BAR 0 still has an address after the reset");
    as_new(machine);
}

pub fn flr_has_the_effect_of_a_conventional_reset(machine: &mut dyn Machine) {
    proves!(V13_115, "a Function Level Reset has the same effect as a conventional reset");
    used(machine);
    flr(machine, 0);
    as_new(machine);
}

/// A power cycle clears all data of the previous guest: local memory and GGTT read zero, and the card is in reset
/// state.
pub fn power_cycle_clears_memory_and_registers(machine: &mut dyn Machine) {
    used(machine);
    machine.power_cycle();
    as_new(machine);
    for at in [0x20_0000, 256 << 20, LMEM_BYTES - 8] {
        assert_eq!(machine.bar64(0, 2, at), 0, "local memory at {at:#x}");
    }
    for at in (GGTT..GTTMMADR_BYTES).step_by(1 << 20).chain([GGTT + (0x2000_0000 >> 12) * 8]) {
        assert_eq!(machine.bar64(0, 0, at), 0, "the GGTT at {at:#x}");
    }
}
