//! The edges of the virtual card: the library that a VMM links, and the vfio-user server and program in front of it.

pub mod card;
pub mod card_file;
#[cfg(feature = "program")]
pub mod cli;
#[cfg(feature = "program")]
pub mod decode;
#[cfg(feature = "vfio-user")]
pub mod dma;
#[cfg(feature = "program")]
pub mod fidelity;
pub mod firmware;
mod io_events;
#[cfg(feature = "program")]
pub mod listening;
pub mod pci;
mod ram;
pub mod report;
#[cfg(feature = "program")]
pub mod status_socket;
#[cfg(feature = "program")]
pub mod trace_socket;
#[cfg(feature = "vfio-user")]
pub mod vfio_user;

pub use arctic_device_model::profile::CardProfile;
pub use card::{Arrangement, CardError, CardFunction, VirtualCard};
pub use io_events::{IoEventHandler, IoEventThread};
pub use pci::{Bar, BarMapping, Function, IoEvent, Machine, MsiMessage, MsiSink, PciDevice};
pub use ram::GuestRam;
