//! The engines' time.
