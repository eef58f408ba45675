// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Effects of configuration accesses outside configuration space.

use std::array;
use std::iter::Flatten;

use crate::bar::BAR_REGISTERS;
use crate::reverted::{RevertedWrite, RevertedWrites};
use crate::sriov_capability::{MAX_VF_BARS, VfBar};

/// Device power states that the function supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerState {
    /// Fully operational.
    D0,
    /// Low power, state preserved. The function responds only to configuration accesses.
    D3hot,
}

impl PowerState {
    /// Name of the state, as in the PCI Power Management specification.
    pub fn name(self) -> &'static str {
        match self {
            PowerState::D0 => "D0",
            PowerState::D3hot => "D3hot",
        }
    }
}

/// Address and data of an MSI memory write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsiMessage {
    /// Target address.
    pub address: u64,
    /// Data to write.
    pub data: u32,
}

/// Effect of a configuration write or a reset outside configuration space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A Function Level Reset was initiated, or the function left D3hot with No_Soft_Reset clear. Configuration space is
    /// already reset; the caller must reset the device.
    FunctionLevelReset,
    /// Bus mastering was enabled or disabled: whether the function may send memory requests.
    BusMaster(bool),
    /// Memory space was enabled or disabled. BARs are decoded only in D0, see [`decoded`](crate::function::PciFunction::decoded).
    MemorySpace(bool),
    /// I/O space was enabled or disabled.
    IoSpace(bool),
    /// The power state changed.
    PowerState(PowerState),
    /// A BAR address changed. Also reported while the BAR is not decoded.
    BarMoved {
        /// Index of the BAR.
        bar: u8,
        /// New bus address.
        address: u64,
    },
    /// MSI was enabled (with the message of vector 0), its message changed, or it was disabled (`None`).
    Msi(Option<MsiMessage>),
    /// Bit mask of vectors that were raised while masked and must be sent now.
    MsiUnmasked(u32),
    /// Virtual functions 1 to `count` were enabled; they are in reset state (V13-016).
    VfEnable {
        /// Number of virtual functions.
        count: u16,
    },
    /// All virtual functions were disabled (V13-113..115).
    VfDisable,
    /// Decoding of the VF BARs was enabled or disabled. Never true while no virtual function exists.
    VfMemorySpace(bool),
    /// The address or size of a VF BAR changed. Also reported while the BAR is not decoded.
    VfBarMoved(VfBar),
}

/// One event of each kind, one per BAR and one per VF BAR.
const MAX_EVENTS: usize = 10 + BAR_REGISTERS as usize + MAX_VF_BARS;

/// Events of one access, in the order in which the caller must handle them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Events {
    list: [Option<Event>; MAX_EVENTS],
    count: usize,
    pub(crate) reverted: RevertedWrites,
}

impl Events {
    pub(crate) fn push(&mut self, event: Event) {
        if let Some(slot) = self.list.get_mut(self.count) {
            *slot = Some(event);
            self.count = self.count.saturating_add(1);
        }
    }

    /// The fields that the access has written and that keep their values. They have no effect on the device.
    pub fn reverted(&self) -> impl Iterator<Item = RevertedWrite> + '_ {
        self.reverted.iter()
    }
}

impl IntoIterator for Events {
    type Item = Event;
    type IntoIter = Flatten<array::IntoIter<Option<Event>, MAX_EVENTS>>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter().flatten()
    }
}
