//! The transports.

pub mod by_messages;
pub mod in_process;
pub mod kvm;
pub mod vfio_user;
