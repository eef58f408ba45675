// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Replays the corpora of the fuzz targets (`fuzz/`) for the external interfaces, plus random inputs.
//! `ARCTIC_FUZZ_INPUTS` sets the number of random inputs.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]
#![cfg(feature = "vfio-user")]

use arctic_test_support::harness::{card_file, functions, vfio_user};
use arctic_test_support::replay;

/// A card file is either valid or rejected with a one-sentence error that contains the line number.
#[test]
fn card_files() {
    replay::corpus("card_file", card_file::run);
    replay::random(500, 300, card_file::run);
}

/// For any accesses to configuration spaces and BARs, functions that do not exist read all ones, no VF changes state
/// outside its resources, and the notifications to the machine are consistent.
#[test]
fn functions_in_any_order() {
    replay::corpus("functions", functions::run);
    replay::random(100, 600, functions::run);
}

/// For any messages from a client, the server replies to each request once, replies contain no memory of another
/// function, and the next client is served.
#[test]
fn vfio_user_messages() {
    replay::corpus("vfio_user", vfio_user::run);
    replay::random(1000, 600, vfio_user::run);
}
