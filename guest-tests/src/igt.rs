//! The IGT scenario.
