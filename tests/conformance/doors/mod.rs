//! The doors.

pub mod in_process;
pub mod kvm;
pub mod vfio_user;
