//! The gate's rules: what a function may see and touch, as functions over what the caller hands in.
//!
//! The card calls them on its register, translation and memory paths: they neither allocate nor lock, and do a bounded
//! amount of work. A function is given by its number, 0 for the PF and 1 to 63 for the VFs, which the caller has from
//! its own bookkeeping (the BAR that was hit, the GuC's record of a context), never from a guest.

pub mod ggtt;
pub mod lmtt;

/// Number of the physical function.
pub const PF: u8 = 0;
