// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fuzz harnesses. Each runs one input and panics if an invariant is violated. Tests replay the corpora with them.

#[cfg(feature = "vfio-user")]
pub mod card_file;
pub mod command_streamer;
pub mod context_images;
#[cfg(feature = "vfio-user")]
pub mod functions;
#[cfg(feature = "vfio-user")]
pub mod gen6_bars;
pub mod gen6_streamer;
pub mod guc_messages;
#[cfg(feature = "vfio-user")]
mod msi;
mod tree;
pub mod vf_blob;
#[cfg(feature = "vfio-user")]
pub mod vfio_user;
pub mod walkers;
