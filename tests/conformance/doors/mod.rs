//! The doors.

pub mod in_process;
pub mod vfio_user;
