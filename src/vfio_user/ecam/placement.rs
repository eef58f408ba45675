// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Which write to configuration space is due next, so that the VFs' BARs in the VMM are those of the PF's SR-IOV
//! capability. Pure state: no threads, no I/O, no time.
//!
//! A VF's BARs are to be decoded while VF Enable and VF MSE are set, and at no other time. The registers of a VF's
//! function in the VMM change one write at a time: memory space off, BARs, memory space on. What the VMM has is known
//! from two sources:
//! - A VF with a client is *attached*. The VMM passes each write to the function's registers on to its client socket,
//!   whatever its origin, so the registers are observed ([`Placement::memory_space`], [`Placement::bar`]).
//! - Of other functions only the effects of completed writes are known.
//!
//! From the start of a write to its reply the VF's state counts as unknown, and it remains unknown if no reply arrives:
//! the VMM may execute the write at any later time, but before any write that is sent after it. A write that the VMM
//! refused has not been executed.

/// Bus addresses of one VF's two BARs: GTTMMADR and LMEM.
pub type BarAddresses = [u64; 2];

/// No BAR is at these addresses.
const UNKNOWN: BarAddresses = [u64::MAX; 2];

/// A write to the registers of a VF's function in the VMM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Clears Memory Space Enable.
    MemoryOff,
    /// Writes both BARs. The function decodes nothing at that time.
    Bars(BarAddresses),
    /// Sets Memory Space Enable.
    MemoryOn,
}

/// How a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The VMM has executed it.
    Done,
    /// The VMM has rejected it, or a message that is required before it.
    Refused,
    /// There was no reply. The VMM may execute it later.
    Unanswered,
    /// It was not sent, because the attempt has ended early.
    Unsent,
}

/// The registers of a VF's function in the VMM, if known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Registers {
    memory_space: bool,
    bars: BarAddresses,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Vf {
    /// `None` if the VF must not decode its BARs.
    wanted: Option<BarAddresses>,
    attached: bool,
    registers: Registers,
    /// A write may be executed, or may have been executed, that is not in `registers`.
    unknown: bool,
}

impl Vf {
    /// The registers of a function after a reset of its machine.
    fn reset(&mut self) {
        (self.registers, self.unknown) = (Registers::default(), false);
    }

    fn placed(&self) -> bool {
        !self.unknown && self.decoded() == self.wanted
    }

    fn decoded(&self) -> Option<BarAddresses> {
        self.registers.memory_space.then_some(self.registers.bars)
    }

    fn next(&self) -> Option<Step> {
        let Registers { memory_space, bars } = self.registers;
        match self.wanted {
            _ if self.placed() => None,
            // Repeats the last write of a VF that is likely to be in use. Its reply confirms all earlier writes.
            Some(_) if self.attached && self.decoded() == self.wanted => Some(Step::MemoryOn),
            Some(wanted) if !self.unknown && !memory_space => {
                Some(if bars == wanted { Step::MemoryOn } else { Step::Bars(wanted) })
            }
            _ => Some(Step::MemoryOff),
        }
    }
}

/// The write that is being executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Flight {
    vf: usize,
    step: Step,
    /// [`Vf::unknown`] before it.
    unknown: bool,
    /// The function was reset or replaced meanwhile, or the client that executes the write has disconnected.
    overtaken: bool,
}

/// The BARs of all VFs. VFs are counted from 0 here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Placement {
    vfs: Vec<Vf>,
    flight: Option<Flight>,
    /// The VMM does not execute the writes since the VFs were enabled.
    refused: bool,
}

impl Placement {
    /// The functions of `vfs` VFs after a reset of their machine.
    pub fn new(vfs: usize) -> Self {
        Placement { vfs: vec![Vf::default(); vfs], flight: None, refused: false }
    }

    /// Sets the required BAR addresses of the VFs that decode their BARs, from the first one on; the others must not
    /// decode theirs.
    pub fn want(&mut self, wanted: &[BarAddresses]) {
        if self.vfs.iter().all(|vf| vf.wanted.is_none()) {
            self.refused = false;
        }
        for (n, vf) in self.vfs.iter_mut().enumerate() {
            vf.wanted = wanted.get(n).copied();
        }
    }

    /// Returns the next VF that needs a write, without starting the write.
    fn next(&self) -> Option<(usize, Step)> {
        self.vfs.iter().enumerate().find_map(|(n, vf)| Some((n, vf.next()?)))
    }

    /// Returns whether a write is due. There is at most one at a time.
    pub fn due(&self) -> bool {
        self.flight.is_none() && self.next().is_some()
    }

    /// Starts the next write that is due. [`Placement::finish`] must follow.
    pub fn begin(&mut self) -> Option<(usize, Step)> {
        if self.flight.is_some() {
            return None;
        }
        let (n, step) = self.next()?;
        let vf = self.vfs.get_mut(n)?;
        self.flight = Some(Flight { vf: n, step, unknown: vf.unknown, overtaken: false });
        vf.unknown = true;
        if matches!(step, Step::Bars(_)) && !vf.attached {
            // A write that is refused may have been executed in part.
            vf.registers.bars = UNKNOWN;
        }
        Some((n, step))
    }

    /// Records how the write ended. Returns whether it had its effect.
    pub fn finish(&mut self, outcome: Outcome) -> bool {
        let Some(flight) = self.flight.take() else { return false };
        let Some(vf) = self.vfs.get_mut(flight.vf) else { return false };
        match outcome {
            Outcome::Done => self.refused = false,
            Outcome::Refused => self.refused = true,
            Outcome::Unanswered | Outcome::Unsent => {}
        }
        if flight.overtaken {
            // Executed before the reset or after it. For an attached VF the observation decides.
            vf.unknown |= matches!(outcome, Outcome::Done | Outcome::Unanswered) && !vf.attached;
            return outcome == Outcome::Done;
        }
        match outcome {
            Outcome::Done => {
                vf.unknown = false;
                let mut effect = vf.registers;
                match flight.step {
                    Step::MemoryOff => effect.memory_space = false,
                    Step::Bars(bars) => effect.bars = bars,
                    Step::MemoryOn => effect.memory_space = true,
                }
                if !vf.attached {
                    vf.registers = effect;
                }
                // If a function's registers do not follow, it must not be written to without end.
                vf.registers == effect
            }
            Outcome::Refused | Outcome::Unsent => {
                vf.unknown = flight.unknown;
                false
            }
            Outcome::Unanswered => false,
        }
    }

    /// Memory Space Enable of an attached VF was written or reset.
    pub fn memory_space(&mut self, vf: usize, on: bool) {
        if let Some(vf) = self.vfs.get_mut(vf).filter(|vf| vf.attached) {
            vf.registers.memory_space = on;
        }
    }

    /// BAR `bar` (0: GTTMMADR, 1: LMEM) of an attached VF was written or reset.
    pub fn bar(&mut self, vf: usize, bar: usize, address: u64) {
        let registers = self.vfs.get_mut(vf).filter(|vf| vf.attached).map(|vf| &mut vf.registers);
        if let Some(register) = registers.and_then(|registers| registers.bars.get_mut(bar)) {
            *register = address;
        }
    }

    /// A client has connected to the VF, with its function in reset state, or has disconnected from it.
    pub fn attach(&mut self, vf: usize, attached: bool) {
        self.overtake(|n| n == vf);
        if let Some(vf) = self.vfs.get_mut(vf) {
            vf.attached = attached;
            vf.reset();
        }
    }

    /// The PF was reset with its machine. The resets of attached VFs are observed.
    pub fn machine_reset(&mut self) {
        let attached: Vec<_> = self.vfs.iter().map(|vf| vf.attached).collect();
        self.overtake(|n| attached.get(n) == Some(&false));
        self.vfs.iter_mut().filter(|vf| !vf.attached).for_each(Vf::reset);
    }

    /// The client that executes the writes has disconnected. The next one has a new machine.
    pub fn client_gone(&mut self) {
        self.flight = None;
        for vf in &mut self.vfs {
            vf.unknown = false;
            if !vf.attached {
                vf.reset();
            }
        }
    }

    fn overtake(&mut self, concerned: impl Fn(usize) -> bool) {
        if let Some(flight) = self.flight.as_mut().filter(|flight| concerned(flight.vf)) {
            flight.overtaken = true;
        }
    }

    /// The writes have failed for so long that they are not repeated.
    pub fn give_up(&mut self) {
        self.refused = true;
    }

    /// Returns whether a VF must not be used: its BARs are required but not in place, and the VMM does not execute the
    /// writes.
    pub fn withheld(&self, vf: usize) -> bool {
        self.refused && self.vfs.get(vf).is_some_and(|vf| vf.wanted.is_some() && !vf.placed())
    }
}

#[cfg(test)]
mod tests;
