//! One engine as the scheduler sees it: the context on it, of which load, and until when. Times are engine time
//! ([`crate::engine::EngineClock`]) of that engine.

use crate::world::Function;

use super::queue::Place;

/// What is on an engine, or was loaded last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seat {
    /// Who has it.
    pub context: u16,
    /// Whose context it is.
    pub function: Option<Function>,
    /// Which of its members.
    pub member: u8,
    /// Name of this one load: a report with another name is of the past.
    pub ticket: u32,
    /// The context holds the engine, also while this member has nothing to run.
    pub held: bool,
    /// The member is on the engine.
    pub loaded: bool,
    /// When its time slice ends, in ns of engine time; `None` for an unlimited one.
    pub slice_end: Option<u64>,
    /// It has been asked to leave.
    pub leaving: bool,
    /// When it has to have left, in ns of engine time.
    pub leave_by: Option<u64>,
    /// It has been asked to because its function's turn is over.
    pub ousted: bool,
    /// It was reported to wait for memory to change.
    pub waiting: bool,
    /// In a loop of its own, which is work as far as other functions are concerned.
    pub spins: bool,
    /// It cannot go on, and nobody may reset the engine.
    pub stuck: bool,
}

impl Seat {
    /// For the queue's plan; `priority` is the context's, `waits` what the engine found at its last look, `time` engine
    /// time.
    pub fn place(&self, priority: u8, waits: bool, time: u64) -> Place {
        match (self.held, self.leaving) {
            (false, _) => Place::Free,
            (true, true) => Place::Leaving,
            (true, false) => {
                Place::Busy { priority, slice_left: self.slice_left(time), waiting: self.waiting && waits }
            }
        }
    }

    /// What is left of the time slice at engine time `time`, in ns; `None` for an unlimited one.
    pub fn slice_left(&self, time: u64) -> Option<u64> {
        self.slice_end.map(|end| end.saturating_sub(time))
    }

    /// Whose context is on the engine.
    pub fn occupant(&self) -> Option<Function> {
        self.function.filter(|_| self.loaded)
    }

    /// Whether the context has use for its function's turn; `waits` is what the engine found at its last look.
    pub fn works(&self, waits: bool) -> bool {
        self.held && !self.leaving && !(self.waiting && !self.spins && waits)
    }

    /// Notes that the context is asked to leave, until `leave_by` at the latest; of two requests the shorter counts.
    pub fn leave(&mut self, leave_by: Option<u64>) {
        self.leave_by = match (self.leave_by, leave_by) {
            (Some(before), now) if self.leaving => Some(now.map_or(before, |now| before.min(now))),
            _ => leave_by,
        };
        self.leaving = true;
    }
}
