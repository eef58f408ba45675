// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The interrupt registers against a plain model of them, with random events and accesses (G67-045, G67-048).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use proptest::prelude::*;

use super::*;
use crate::generation::GENERATIONS;

const REGISTERS: [BankRegister; 4] = [BankRegister::Isr, BankRegister::Imr, BankRegister::Iir, BankRegister::Ier];

#[derive(Default)]
struct Counter {
    sent: AtomicU32,
    pin: AtomicBool,
}

impl InterruptSink for Counter {
    fn raise(&self, _: Function, _: u16) {
        self.sent.fetch_add(1, Ordering::SeqCst);
    }

    fn set_line(&self, _: Function, requested: bool) {
        assert_ne!(self.pin.swap(requested, Ordering::SeqCst), requested, "no change");
    }
}

/// What happens to the registers.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Write(Bank, BankRegister, u32),
    Event(Bank, u32),
    States(Bank, u32, u32),
    Reset,
}

/// ISR, IMR, IIR and IER of a bank, bit by bit.
#[derive(Clone, Copy)]
struct Bits32 {
    isr: [bool; 32],
    imr: [bool; 32],
    iir: [bool; 32],
    ier: [bool; 32],
}

struct Model {
    /// By [`Bank::index`].
    banks: [Bits32; 4],
    pch_event: usize,
    enabled_by_firmware: bool,
    level: bool,
    sent: u32,
}

fn bit(value: u32, n: usize) -> bool {
    value & 1 << n != 0
}

fn dword(bits: &[bool; 32]) -> u32 {
    (0..32).filter(|n| bits[*n]).fold(0, |value, n| value | 1 << n)
}

impl Model {
    fn new(pch_event: usize, enabled_by_firmware: bool) -> Model {
        let bank = Bits32 { isr: [false; 32], imr: [true; 32], iir: [false; 32], ier: [false; 32] };
        let mut model = Model { banks: [bank; 4], pch_event, enabled_by_firmware, level: false, sent: 0 };
        model.banks[0].ier[31] = enabled_by_firmware;
        model
    }

    fn operate(&mut self, operation: Operation) {
        match operation {
            Operation::Write(bank, register, value) => {
                let bank = &mut self.banks[bank.index()];
                for n in 0..32 {
                    match register {
                        BankRegister::Isr => {}
                        BankRegister::Imr => {
                            bank.imr[n] = bit(value, n);
                            bank.iir[n] |= bank.isr[n] && !bank.imr[n];
                        }
                        BankRegister::Iir => bank.iir[n] &= !bit(value, n),
                        BankRegister::Ier => bank.ier[n] = bit(value, n),
                    }
                }
            }
            Operation::Event(bank, events) => {
                let bank = &mut self.banks[bank.index()];
                (0..32).filter(|n| bit(events, *n)).for_each(|n| bank.iir[n] |= !bank.imr[n]);
            }
            Operation::States(bank, mask, states) => {
                let bank = &mut self.banks[bank.index()];
                (0..32).filter(|n| bit(mask, *n)).for_each(|n| bank.isr[n] = bit(states, n));
            }
            Operation::Reset => {
                *self = Model { sent: self.sent, ..Model::new(self.pch_event, self.enabled_by_firmware) };
            }
        }
        let pending = |bank: &Bits32| (0..32).any(|n| bank.iir[n] && bank.ier[n]);
        let south = pending(&self.banks[3]);
        let display = &mut self.banks[0];
        if south && !display.isr[self.pch_event] && !display.imr[self.pch_event] {
            display.iir[self.pch_event] = true;
        }
        display.isr[self.pch_event] = south;
        let display = (0..31).any(|n| display.iir[n] && display.ier[n]);
        let level = self.banks[0].ier[31] && (display || pending(&self.banks[1]) || pending(&self.banks[2]));
        self.sent += u32::from(level && !self.level);
        self.level = level;
    }
}

/// A value in which few bits are set, or few are clear, so that banks are often without a pending event.
fn sparse() -> impl Strategy<Value = u32> {
    let few =
        prop::collection::vec(0..32u32, 0..4).prop_map(|bits| bits.into_iter().fold(0, |all, bit| all | 1 << bit));
    let shared = prop::sample::select(vec![1u32 << 31, 1 << 28, 1 << 21, 1, 0, !0]);
    prop_oneof![few.clone(), few.prop_map(|value| !value), shared]
}

fn operation() -> impl Strategy<Value = Operation> {
    let bank = || prop::sample::select(Bank::ALL.to_vec());
    prop_oneof![
        8 => (bank(), proptest::sample::select(&REGISTERS), sparse())
            .prop_map(|(bank, register, value)| Operation::Write(bank, register, value)),
        4 => (bank(), sparse()).prop_map(|(bank, bits)| Operation::Event(bank, bits)),
        2 => (bank(), sparse(), sparse()).prop_map(|(bank, mask, states)| Operation::States(bank, mask, states)),
        1 => Just(Operation::Reset),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// After each operation, all registers have the values of the model, as many MSIs have been sent, and the pin has the
    /// model's level. In between, the registers are saved and restored with another sink.
    #[test]
    fn the_registers_do_what_the_model_does(
        generation in 0..GENERATIONS.len(),
        enabled_by_firmware: bool,
        operations in prop::collection::vec((operation(), prop::bool::weighted(0.1)), 1..60),
    ) {
        let pch_event = GENERATIONS[generation].pch_event;
        let setup = InterruptSetup { pch_event, enabled_by_firmware };
        let counter = Arc::new(Counter::default());
        let mut interrupts = Interrupts::new(counter.clone(), setup);
        let mut model = Model::new(pch_event.mask().trailing_zeros() as usize, enabled_by_firmware);
        for (operation, moved) in operations {
            match operation {
                Operation::Write(bank, register, value) => interrupts.write(bank, register, value),
                Operation::Event(bank, events) => interrupts.event(bank, events),
                Operation::States(bank, mask, states) => interrupts.set_status(bank, mask, states),
                Operation::Reset => interrupts.reset(),
            }
            model.operate(operation);
            for bank in Bank::ALL {
                let expected = &model.banks[bank.index()];
                let found = REGISTERS.map(|register| {
                    interrupts.read(bank, register)
                });
                let expected = [&expected.isr, &expected.imr, &expected.iir, &expected.ier].map(dword);
                prop_assert_eq!(found, expected, "{:?} after {:?}", bank, operation);
            }
            prop_assert_eq!(counter.sent.load(Ordering::SeqCst), model.sent, "MSIs after {:?}", operation);
            prop_assert_eq!(counter.pin.load(Ordering::SeqCst), model.level, "INTA# after {:?}", operation);
            if moved {
                // The pin of another card.
                counter.pin.store(false, Ordering::SeqCst);
                let next = Interrupts::new(counter.clone(), setup);
                next.restore(&interrupts.save());
                interrupts = next;
                prop_assert_eq!(counter.pin.load(Ordering::SeqCst), model.level, "INTA# after a restore");
            }
        }
    }
}
