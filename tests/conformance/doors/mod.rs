// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The transports.

pub mod by_messages;
pub mod in_process;
pub mod kvm;
pub mod vfio_user;
