// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Saved state of the interrupt registers.

use arctic_base::interrupts::Sources;
use arctic_base::state::{Document, Record, RestoreError, SavedState, Tag, Writer};
use zerocopy::little_endian::U32;

use super::{Banks, Interrupts, Registers};

/// The registers of all banks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedInterrupts {
    display: Registers,
    graphics: Registers,
    power: Registers,
    south: Registers,
}

impl SavedState for SavedInterrupts {
    const UNIT: &'static str = "interrupts";
    const TAGS: &'static [Tag] = &[BanksRecord::TAG];

    fn write(&self, to: &mut Writer) {
        let SavedInterrupts { display, graphics, power, south } = *self;
        let fields = |Registers { status, mask, identity, enable }| [status, mask, identity, enable].map(U32::new);
        to.record(BanksRecord { banks: [display, graphics, power, south].map(fields) });
    }

    fn read(from: &Document<'_>) -> Result<Self, RestoreError> {
        let BanksRecord { banks } = from.record()?;
        let [display, graphics, power, south] = banks.map(|fields| {
            let [status, mask, identity, enable] = fields.map(U32::get);
            Registers { status, mask, identity, enable }
        });
        Ok(SavedInterrupts { display, graphics, power, south })
    }
}

arctic_base::record! {
    /// Display, graphics, power, south: status, mask, identity and enable of each.
    struct BanksRecord[b"INTR", 64] {
        banks: [[U32; 4]; 4],
    }
}

impl Banks {
    fn save(&self) -> SavedInterrupts {
        // The level follows from the registers.
        let Banks { display, graphics, power, south, setup: _, level: _ } = self;
        SavedInterrupts { display: *display, graphics: *graphics, power: *power, south: *south }
    }

    /// The banks in the saved state. The MSI of a level that is high was sent before they were saved.
    fn restored(&self, saved: &SavedInterrupts) -> Banks {
        let SavedInterrupts { display, graphics, power, south } = *saved;
        let mut banks = Banks { display, graphics, power, south, setup: self.setup, level: false };
        banks.settle();
        banks
    }
}

impl Interrupts {
    /// Returns the registers.
    pub fn save(&self) -> SavedInterrupts {
        self.0.with(|banks| banks.save())
    }

    /// Checks that [`Interrupts::restore`] can restore saved registers. `states` are the bits of the engines' sources with
    /// a state.
    pub fn check(&self, saved: &SavedInterrupts, states: u32) -> Result<(), RestoreError> {
        let invalid = RestoreError::invalid::<SavedInterrupts>;
        let SavedInterrupts { graphics, power, south, .. } = saved;
        if graphics.status & !states != 0 || power.status | south.status != 0 {
            return Err(invalid("the state of a source that has none"));
        }
        if self.0.with(|banks| {
            banks.restored(saved).save() != *saved || saved.display.status & !banks.setup.pch_event.mask() != 0
        }) {
            return Err(invalid("the state of the PCH's interrupt"));
        }
        Ok(())
    }

    /// Replaces the registers by saved ones that were checked. No MSI is sent: that of a level that is high was sent before
    /// they were saved. The pin gets the level.
    pub fn restore(&self, saved: &SavedInterrupts) {
        self.0.with(|banks| *banks = banks.restored(saved));
        self.0.update_line();
    }
}
