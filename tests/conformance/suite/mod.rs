//! The tests: what a card owes its software, whatever lies in between.

pub mod alone;
pub mod bars;
pub mod configuration;
pub mod functions;
pub mod memory;
pub mod work;
