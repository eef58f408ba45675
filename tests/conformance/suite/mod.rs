// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The tests: behaviour of the card that does not depend on the transport.

pub mod alone;
pub mod bars;
pub mod configuration;
pub mod functions;
pub mod memory;
pub mod work;
