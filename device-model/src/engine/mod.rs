//! The engines: what they are, their logical contexts, and the command streamer that runs them.

pub mod id;
