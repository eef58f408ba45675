// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Messages of hosts to the GuC and back: mailbox, CT buffers, actions, relay, and their names.

pub mod action;
pub mod ctb;
pub mod hxg;
pub(super) mod invalidations;
pub mod klv;
pub mod mailbox;
pub mod names;
pub(super) mod relay;
pub mod sender;
pub(super) mod service;
