// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A card with three virtual functions, their drivers and guests, and checks that they are isolated.

pub mod bench;
pub mod canary;
pub mod others;
pub mod pf;
pub mod world;
