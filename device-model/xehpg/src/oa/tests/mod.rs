// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of formats, counters and events without a card.
#![allow(clippy::cast_possible_truncation, reason = "test values are in range")]

mod formats;
mod replay;
