//! The doors.

pub mod vfio_user;
