// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of saved state with random contents of the registers.

use proptest::prelude::*;

use super::*;
use crate::registers::{EngineRegister, Kind, Live};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Writes to any registers, and commands of any dwords: the state that they leave is restored, and the card that has it
    /// reads as the one that was saved, and goes on as it.
    #[test]
    fn restored_state_saves_to_the_same_state(
        writes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u32>(), any::<u32>()), 0..400),
        dwords in proptest::collection::vec((0..6u32, any::<u32>()), 0..200),
        which in 0..3usize,
    ) {
        let machine = Machine::set_up(&cards()[which]);
        let offsets: Vec<u32> = machine.card.gt.registers.listing().map(|(offset, _)| offset).collect();
        let mut headers = [0x0040_0000, 0x1100_0001, 0x1040_0002, 0x0c00_0000, 0x5430_0004, 0x0b50_0001].into_iter().cycle();
        for (kind, dword) in dwords {
            let dword = if kind == 0 { headers.next().unwrap_or(0) } else { dword };
            machine.submit([RCS, BCS][kind as usize % 2], &[dword]);
        }
        for (at, value, small) in writes {
            machine.write(*at.get(&offsets), if small % 3 == 0 { value % 0x1_0000 } else { value });
            if small % 16 == 0 {
                machine.card.work();
                machine.clock.advance(u64::from(small % 100_000));
            }
        }
        let other = machine.moved();
        machine.card.engines.iter().for_each(EngineSlot::poll_now);
        for machine in [&machine, &other] {
            machine.clock.advance(50_000);
        }
        // A restored card has no cached translations, which the read ports show.
        let ports = Kind::Live(Live::Engine(EngineRegister::Translation));
        let compared: Vec<u32> = machine.card.gt.registers.listing().filter(|(_, row)| row.register.kind != ports).map(|(at, _)| at).collect();
        let values = |machine: &Machine| compared.iter().map(|at| machine.read(*at)).collect::<Vec<_>>();
        prop_assert_eq!(values(&machine), values(&other));
        for machine in [&machine, &other] {
            machine.finish();
        }
        prop_assert!(machine.state() == other.state(), "the cards differ");
    }
}

/// Each register, in each value that a write of 0, of ones or of a mask with ones leaves in it.
#[test]
fn each_register_is_restored() {
    for card in cards() {
        for value in [0, !0, 0x5555_5555, 0xffff_aaaa] {
            let machine = Machine::set_up(&card);
            for (offset, _) in machine.card.gt.registers.listing() {
                machine.write(offset, value);
            }
            let other = machine.moved();
            for (offset, decoded) in machine.card.gt.registers.listing() {
                assert_eq!(machine.read(offset), other.read(offset), "{}", decoded.name());
            }
        }
    }
}
