//! Several processors at the same functions, resets and FLRs in the midst of work: what is under way is done or lost as a
//! whole, nobody else notices, nothing gets stuck, and afterwards a fresh driver finds a card as good as new.
//!
//! `interleaved` lets actors take turns at single accesses, and the card at single steps, in one thread and in an order that
//! a seed decides: what fails once fails again with `RACES_SEED`. `threads` has them all at once, for as long as
//! `RACES_MS` says. What happens within one access is the matter of `tests/loom`.

#[path = "../hostile_vf/bench.rs"]
#[allow(dead_code)]
mod bench;
#[path = "../hostile_vf/canary.rs"]
#[allow(dead_code)]
mod canary;
mod driver;
#[path = "../hostile/grammar.rs"]
#[allow(dead_code)]
mod grammar;
mod interleaved;
#[path = "../hostile_vf/others.rs"]
#[allow(dead_code)]
mod others;
#[path = "../hostile_vf/pf.rs"]
#[allow(dead_code)]
mod pf;
#[path = "../hostile/process.rs"]
#[allow(dead_code)]
mod process;
#[path = "../hostile/random.rs"]
#[allow(dead_code)]
mod random;
mod registers;
mod threads;
#[path = "../hostile_vf/world.rs"]
#[allow(dead_code)]
mod world;
