//! The edges of the virtual card: vfio-user server, guest memory, card files, firmware, command line.

pub mod card_file;
pub mod dma;
pub mod firmware;
pub mod vfio_user;
