// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The transports.

#[path = "../../../test-support/src/machine/by_messages.rs"]
pub mod by_messages;
#[path = "../../../test-support/src/machine/in_process.rs"]
pub mod in_process;
pub mod kvm;
#[path = "../../../test-support/src/machine/vfio_user.rs"]
pub mod vfio_user;
