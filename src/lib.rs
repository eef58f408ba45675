//! The edges of the virtual card: vfio-user server, guest memory, card files, firmware, command line.

pub mod card;
pub mod card_file;
pub mod cli;
pub mod decode;
pub mod dma;
pub mod fidelity;
pub mod firmware;
pub mod listening;
pub mod report;
pub mod status_socket;
pub mod trace_socket;
pub mod vfio_user;
