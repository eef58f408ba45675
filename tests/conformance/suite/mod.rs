//! The tests: behaviour of the card that does not depend on the transport.

pub mod alone;
pub mod bars;
pub mod configuration;
pub mod functions;
pub mod memory;
pub mod work;
