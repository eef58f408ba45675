// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Replays the corpora of the fuzz targets (`fuzz/`) for the external interfaces, plus random inputs.
//! `ARCTIC_FUZZ_INPUTS` sets the number of random inputs.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]
#![cfg(feature = "vfio-user")]

use arctic_test_support::harness::{card_file, functions, gen6_bars, gen6_streamer, vfio_user};
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

/// For any accesses to an integrated GPU, reads have no effect, and a reset sets its registers.
#[test]
fn integrated_gpus_in_any_order() {
    replay::corpus("gen6_bars", gen6_bars::run);
    replay::random(200, 600, gen6_bars::run);
}

/// For any commands of an integrated GPU, those of user space change only what the PPGTT maps, and restoring saved state
/// changes no result.
#[test]
fn commands_of_integrated_gpus() {
    replay::corpus("gen6_streamer", gen6_streamer::run);
    replay::random(500, 600, gen6_streamer::run);
}

/// For any messages from a client, the server replies to each request once, replies contain no memory of another
/// function, and the next client is served.
#[test]
fn vfio_user_messages() {
    replay::corpus("vfio_user", vfio_user::run);
    replay::random(1000, 600, vfio_user::run);
}
