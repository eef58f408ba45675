// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The form of messages between hosts and the GuC: CT buffers, HXG, key-length values, and who may send what.

pub mod ctb;
pub mod hxg;
pub(super) mod invalidations;
pub mod klv;
pub mod sender;
pub(super) mod service;
