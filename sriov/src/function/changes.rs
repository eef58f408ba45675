// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The changes of a function that are reported as events.

use super::PciFunction;
use crate::bar::BAR_REGISTERS;
use crate::event::{Event, Events, MsiMessage, PowerState};
use crate::header::Command;
use crate::sriov_capability::SriovState;

/// State that is compared to derive the events of a change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Controls {
    command: Command,
    power: PowerState,
    bars: [u64; BAR_REGISTERS as usize],
    msi: Option<MsiMessage>,
    sriov: SriovState,
}

impl PciFunction {
    pub(super) fn controls(&self) -> Controls {
        let mut bars = [0; BAR_REGISTERS as usize];
        for (address, bar) in bars.iter_mut().zip(&self.bars) {
            *address = self.address(bar);
        }
        Controls {
            command: self.command(),
            power: self.power_state(),
            bars,
            msi: self.msi_message(),
            sriov: self.sriov_state(),
        }
    }

    /// Appends the differences from `before`. Removals precede additions.
    pub(super) fn changes(&self, before: Controls, events: &mut Events) {
        let now = self.controls();
        let switched = |bit: fn(&Command) -> bool| {
            let (before, now) = (bit(&before.command), bit(&now.command));
            (before != now).then_some(now)
        };
        let (vfs_before, vfs) = (before.sriov, now.sriov);
        if vfs_before.memory_space && !vfs.memory_space {
            events.push(Event::VfMemorySpace(false));
        }
        if vfs_before.vfs != vfs.vfs && vfs_before.vfs != 0 {
            events.push(Event::VfDisable);
        }
        if let Some(on) = switched(Command::memory_space).filter(|on| !on) {
            events.push(Event::MemorySpace(on));
        }
        if let Some(on) = switched(Command::io_space).filter(|on| !on) {
            events.push(Event::IoSpace(on));
        }
        if before.power != now.power {
            events.push(Event::PowerState(now.power));
        }
        for (bar, (old, new)) in self.bars.iter().zip(before.bars.into_iter().zip(now.bars)) {
            if old != new {
                events.push(Event::BarMoved { bar: bar.index(), address: new });
            }
        }
        for bar in vfs.bars.iter().zip(&vfs_before.bars).filter(|(new, old)| new != old).map(|(new, _)| *new) {
            events.push(Event::VfBarMoved(bar));
        }
        if let Some(on) = switched(Command::memory_space).filter(|on| *on) {
            events.push(Event::MemorySpace(on));
        }
        if let Some(on) = switched(Command::io_space).filter(|on| *on) {
            events.push(Event::IoSpace(on));
        }
        if let Some(on) = switched(Command::bus_master) {
            events.push(Event::BusMaster(on));
        }
        if before.msi != now.msi {
            events.push(Event::Msi(now.msi));
        }
        if vfs_before.vfs != vfs.vfs && vfs.vfs != 0 {
            events.push(Event::VfEnable { count: vfs.vfs });
        }
        if vfs.memory_space && !vfs_before.memory_space {
            events.push(Event::VfMemorySpace(true));
        }
    }
}
