//! The PCI Express fabric: configuration space of host bridge, root port and card, and what moves with BARs.

mod card;
mod host;
mod registers;
mod root_port;

pub use card::{Bars, CardSlot};
pub use host::Host;
