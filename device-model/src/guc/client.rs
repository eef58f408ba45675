//! What the GuC keeps for each function that talks to it: rings, interrupt, opt-ins, quotas, and how its requests went.

use std::array;

use serde::{Deserialize, Serialize};

use super::ctb::{Channel, Location};
use super::firmware::Version;
use super::provisioning::VfConfig;
use crate::interrupts::memirq;
use crate::memory::Gam;
use crate::world::{FUNCTIONS, Function};

/// Messages that may wait for a function that does not empty its ring before others' messages to it are refused.
pub const MOST_WAITING: usize = 64;

/// Bit of GUC2HOST in the GuC's vector (V13-276, contract C.3).
const GUC2HOST_BIT: u8 = 15;

/// Requests that did not go as the host may have wished, for observation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Requests carried out.
    pub done: u64,
    /// Requests that were answered with an error.
    pub failed: u64,
    /// Requests for actions that do not exist.
    pub unknown: u64,
    /// Messages that were no requests.
    pub malformed: u64,
}

/// Where the GuC's memory-based interrupt goes (SELF_CFG keys 0x0900 and 0x0901); GGTT addresses, 0 = not configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryInterrupt {
    /// The GuC's byte in the source page.
    pub source: u64,
    /// The GuC's sixteen status bytes.
    pub status: u64,
}

impl MemoryInterrupt {
    /// Whether both addresses are known.
    pub fn configured(self) -> bool {
        self.source != 0 && self.status != 0
    }

    /// Writes GUC2HOST: the status before the source, so that who sees the source finds the status (contract C.3). True
    /// where the function can see it.
    pub fn write(self, gam: &mut Gam<'_>) -> bool {
        memirq::write(gam, self.status, self.source, GUC2HOST_BIT).is_ok()
    }
}

/// What the GuC does for a function (contract D.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Its requests are carried out.
    #[default]
    Running,
    /// The PF has paused it: nothing of it is on an engine, its requests wait.
    Paused {
        /// The PF has been told that it is so.
        told: bool,
    },
    /// The PF has stopped it: only a reset brings it back.
    Stopped,
    /// It was reset; the PF has been told and has not begun its part yet.
    ResetPending,
    /// The PF resets what is its own: until FLR_FINISH.
    Resetting,
    /// It was reset without a PF driver to lead: the card clears its memory.
    Clearing,
}

/// One function as the GuC knows it.
#[derive(Default)]
pub struct Client {
    /// Where the rings are to be: host to GuC, GuC to host.
    pub rings: (Location, Location),
    /// The rings in use.
    pub channel: Option<Channel>,
    /// Its memory-based interrupt.
    pub interrupt: MemoryInterrupt,
    /// TLB invalidations (their sequence numbers) that are to be answered.
    pub invalidations: Vec<u32>,
    /// Version of the interface that it was told (VFs).
    pub version: Option<Version>,
    /// How its requests went since the last boot.
    pub counters: Counters,
    /// What the PF has given it; stays over a reset of the client.
    pub config: VfConfig,
    /// What is done for it.
    pub state: State,
}

impl Client {
    /// Forgets everything that the function itself has asked for (VF_RESET, FLR); its quotas stay.
    pub fn reset(&mut self) {
        self.rings = Default::default();
        self.channel = None;
        self.interrupt = MemoryInterrupt::default();
        self.invalidations.clear();
        self.version = None;
    }
}

/// All clients by function; a VF's comes into being when there is something to keep for it.
pub struct Clients([Option<Box<Client>>; FUNCTIONS]);

impl Default for Clients {
    fn default() -> Self {
        Clients(array::from_fn(|_| None))
    }
}

impl Clients {
    /// The client of `function`.
    pub fn of(&mut self, function: Function) -> &mut Client {
        self.0[function.index()].get_or_insert_default()
    }

    /// The client of `function`, where there is one.
    pub fn get(&self, function: Function) -> Option<&Client> {
        self.0[function.index()].as_deref()
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, function: Function) -> Option<&mut Client> {
        self.0[function.index()].as_deref_mut()
    }

    /// Those that there are.
    pub fn iter(&self) -> impl Iterator<Item = (Function, &Client)> {
        (0..).map(Function).zip(&self.0).filter_map(|(function, client)| Some((function, client.as_deref()?)))
    }
}
