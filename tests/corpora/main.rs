//! What the fuzzers of the doors (`fuzz/`) have found worth keeping is run again, and some inputs of no particular merit.
//! `ARCTIC_FUZZ_INPUTS` sets how many of the latter.
#![cfg(feature = "vfio-user")]

#[path = "../../fuzz/shared/bytes.rs"]
mod bytes;
mod card_file;
mod functions;

#[path = "../../fuzz/shared/replay.rs"]
mod replay;
mod vfio_user;

/// Rule 6: a card file is a card, or is refused in one sentence with its line.
#[test]
fn card_files() {
    replay::corpus("card_file", card_file::run);
    replay::random(500, 300, card_file::run);
}

/// Rule 6: whatever is done to configuration spaces and BARs, functions that do not exist read all ones, no VF
/// changes what is not its own, and the machine is told a story that holds together.
#[test]
fn functions_in_any_order() {
    replay::corpus("functions", functions::run);
    replay::random(100, 600, functions::run);
}

/// Rules 5 and 6: whatever a client sends, each request is answered once, the next client is served, and another
/// function's memory is not in it.
#[test]
fn vfio_user_messages() {
    replay::corpus("vfio_user", vfio_user::run);
    replay::random(1000, 600, vfio_user::run);
}
