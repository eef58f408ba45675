//! What the fuzzer of context images (`fuzz/`) has found worth keeping is run again, and some inputs of no particular
//! merit. `ARCTIC_FUZZ_INPUTS` sets how many of the latter.

#[path = "../../../fuzz/shared/bytes.rs"]
mod bytes;
#[path = "../differential/choice.rs"]
#[allow(dead_code)] // the differential test uses the rest, of this and of what follows
mod choice;
#[path = "../differential/grammar/mod.rs"]
#[allow(dead_code)]
mod grammar;
#[path = "../differential/guests.rs"]
mod guests;
mod harness;
#[path = "../differential/layout.rs"]
#[allow(dead_code)]
mod layout;
#[path = "../../../fuzz/shared/replay.rs"]
mod replay;
#[path = "../differential/world.rs"]
#[allow(dead_code)]
mod world;

/// Rules 5 and 6: every input of the corpus leaves the neighbours unharmed and the engine at work.
#[test]
fn the_corpus() {
    replay::corpus("context_images", harness::run);
}

/// Rule 6: so does any input.
#[test]
fn random_inputs() {
    replay::random(2000, 400, harness::run);
}
