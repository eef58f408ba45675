// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Kernels that run on the card inside a guest, through Intel's unmodified OpenCL and Level Zero drivers, and whose results
//! are compared with computations on the CPU (`arctic guest compute`).
//!
//! A [`cases::Case`] is data: a kernel with its arguments and what they are afterwards ([`problem::Problem`]). `opencl` and
//! `level_zero` execute problems. They load the drivers at run time, so the program also runs where there are none. A
//! supervisor starts the worker process that uses the drivers, and ends it if a kernel does not finish.

pub mod cases;
mod command;
mod half;
mod level_zero;
mod library;
pub mod mandelbrot;
mod numbers;
mod opencl;
pub mod picture;
pub mod problem;
pub mod programs;
pub mod report;
mod supervisor;
mod worker;

pub use command::{Compute, run};
