//! The edges of the virtual card: vfio-user server, configuration, command line, metrics.

pub mod dma;
pub mod vfio_user;
