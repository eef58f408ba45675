//! What the fuzzer of the GuC's messages (`fuzz/`) has found worth keeping is run again, and some inputs of no particular
//! merit. `ARCTIC_FUZZ_INPUTS` sets how many of the latter.

#[path = "../hostile_vf/bench.rs"]
#[allow(dead_code)] // the test of a hostile function uses the rest, of this and of what follows
mod bench;
#[path = "../../../fuzz/shared/bytes.rs"]
mod bytes;
#[path = "../hostile_vf/canary.rs"]
mod canary;
#[path = "../hostile/grammar.rs"]
#[allow(dead_code)]
mod grammar;
mod harness;
#[path = "../hostile_vf/pf.rs"]
mod pf;
#[path = "../hostile/process.rs"]
#[allow(dead_code)]
mod process;
#[path = "../hostile/random.rs"]
#[allow(dead_code)]
mod random;
#[path = "../../../fuzz/shared/replay.rs"]
mod replay;
#[path = "../hostile_vf/world.rs"]
#[allow(dead_code)]
mod world;

/// Rules 5 and 6: every input of the corpus leaves the neighbours unharmed and the card at work.
#[test]
fn the_corpus() {
    replay::corpus("guc_messages", harness::run);
}

/// Rule 6: so does any input.
#[test]
fn random_inputs() {
    replay::random(300, 1000, harness::run);
}
