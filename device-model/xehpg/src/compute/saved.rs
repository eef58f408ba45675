// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Saved state of a VF on the execution units: the walkers of contexts that have left their engines with groups in flight. The
//! groups go on where they were, so no instruction is executed twice.
//!
//! What else a walker has is in the image of its context; its code and its data are in the function's memory.

mod wire;

pub use wire::BYTES_WITHOUT_GROUPS;

use std::ops::Range;

use arctic_eu::exec::SavedGroup;

use super::parked::{MOST_OF_FUNCTION, Owner, ParkedWalkers};
use super::replay::SavedReplay;
use super::report::{Times, saved_bytes};
use super::run::SavedRun;
use super::slot::{InFlight, SavedInFlight};
use crate::host::Function;
use crate::memory::saved::Reach;
use crate::state::{RestoreError, SaveError, SaveState};
use crate::topology::CLUSTERS;

/// Bytes of a context's image from its PPHWSP on that the GGTT range has at least.
const PAGE: u64 = 0x1000;
/// Largest number of instructions that is restored, so that sums do not overflow.
const MOST_INSTRUCTIONS: u64 = 1 << 48;
/// Tickets count up from 1.
const MOST_TICKETS: u64 = 1 << 62;

/// A group in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SavedFlight {
    /// Number of its slot.
    slot: u32,
    /// Its number in the order of the walker, and its ids.
    number: u64,
    group: [u32; 3],
    message: SavedReplay,
    /// Its threads: `arctic_eu::exec::SavedGroup`.
    threads: Vec<u8>,
}

/// A walker with groups in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SavedWalker {
    /// PPHWSP of the context, as offset in the function's GGTT range.
    page: u64,
    /// Ticket in the image of the context.
    ticket: u64,
    /// CTX_TIMESTAMP and TIMESTAMP at its begin.
    started: [u32; 2],
    longest: u64,
    instructions: u64,
    /// The next group to begin.
    next: Option<[u32; 3]>,
    groups: Vec<SavedFlight>,
}

/// The walkers with groups in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedKernels {
    walkers: Vec<SavedWalker>,
}

/// The parked walkers of a VF.
pub struct Kernels<'g> {
    /// The parked walkers of the card.
    pub parked: &'g ParkedWalkers,
    /// The VF.
    pub function: Function,
    /// The function's GGTT range.
    pub ggtt: Range<u64>,
}

impl SaveState for Kernels<'_> {
    type Saved = SavedKernels;

    fn save(&self) -> Result<SavedKernels, SaveError> {
        let reach = Reach(self.ggtt.clone());
        let walkers = self.parked.save(self.function).into_iter().map(|(page, ticket, run)| {
            let page = reach.offset::<SavedKernels>(page.into())?;
            let Times { context, card } = run.started;
            Ok(SavedWalker {
                page,
                ticket,
                started: [context, card],
                longest: run.longest,
                instructions: run.instructions,
                next: run.next,
                groups: run.groups.iter().map(saved_flight).collect(),
            })
        });
        Ok(SavedKernels { walkers: walkers.collect::<Result<_, SaveError>>()? })
    }

    fn restore(&mut self, saved: &SavedKernels) -> Result<(), RestoreError> {
        let invalid = RestoreError::invalid::<SavedKernels>;
        let (reach, mut room) = (Reach(self.ggtt.clone()), 0_usize);
        let mut restored: Vec<(Owner, u64, SavedRun, usize)> = Vec::new();
        if saved.walkers.len() > MOST_OF_FUNCTION {
            return Err(invalid("too many walkers"));
        }
        for walker in &saved.walkers {
            let page = reach.address::<SavedKernels>(walker.page, PAGE, PAGE)?;
            let page = u32::try_from(page).map_err(|_| invalid("an address outside the range"))?;
            let owner = Owner { function: self.function, page };
            if restored.iter().any(|(other, ..)| *other == owner) {
                return Err(invalid("a context twice"));
            }
            if !(1..MOST_TICKETS).contains(&walker.ticket) {
                return Err(invalid("a ticket that is none"));
            }
            let SavedWalker { longest, instructions, next, .. } = *walker;
            if longest.max(instructions) > MOST_INSTRUCTIONS {
                return Err(invalid("a count that is too large"));
            }
            let mut groups: Vec<(u32, SavedInFlight)> = Vec::new();
            let mut bytes = 0_usize;
            for flight in &walker.groups {
                let threads = SavedGroup::from_bytes(&flight.threads).ok_or(invalid("a group that is none"))?;
                let replay = flight.message.replay().ok_or(invalid("a message that is none"))?;
                let slot = flight.slot;
                if slot as usize > CLUSTERS || groups.iter().any(|(other, _)| *other == slot) {
                    return Err(invalid("a slot that is none"));
                }
                if flight.number > MOST_TICKETS {
                    return Err(invalid("a group that is none"));
                }
                let (count, registers, slm) = threads.shape();
                bytes = bytes.saturating_add(saved_bytes(count, registers, slm));
                let group = InFlight { number: flight.number, group: flight.group };
                groups.push((slot, SavedInFlight { group, threads, replay }));
            }
            if groups.is_empty() {
                return Err(invalid("a walker without a group"));
            }
            room = room.saturating_add(bytes);
            let started = Times { context: walker.started[0], card: walker.started[1] };
            restored.push((owner, walker.ticket, SavedRun { started, longest, instructions, next, groups }, bytes));
        }
        if room > self.parked.limit_of(self.function) {
            return Err(invalid("more bytes than a function may have"));
        }
        self.parked.drop_function(self.function);
        for (owner, ticket, run, bytes) in restored {
            self.parked.restore(owner, ticket, run, bytes);
        }
        Ok(())
    }
}

fn saved_flight((slot, flight): &(u32, SavedInFlight)) -> SavedFlight {
    let SavedInFlight { group: InFlight { number, group }, threads, replay } = flight;
    SavedFlight { slot: *slot, number: *number, group: *group, message: replay.save(), threads: threads.to_bytes() }
}
