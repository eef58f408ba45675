//! The `arctic` program.
fn main() {}
