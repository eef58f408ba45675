// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Machines with the card in them, as guest software and a VMM access it, and a driver for them.

pub mod bus;
mod by_messages;
pub mod driver;
pub mod in_process;
pub mod transport;
pub mod vfio_user;
