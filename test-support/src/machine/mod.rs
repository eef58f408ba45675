// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Machines that contain the card, as guest software and a VMM access it, and a driver that runs on them.

pub mod bus;
pub mod by_messages;
pub mod driver;
pub mod in_process;
pub mod transport;
pub mod vfio_user;
