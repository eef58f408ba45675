// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The fuzz targets' harnesses: each runs one input and panics if an invariant is violated. Tests replay the corpora.

#[cfg(feature = "vfio-user")]
pub mod card_file;
pub mod command_streamer;
pub mod context_images;
#[cfg(feature = "vfio-user")]
pub mod functions;
pub mod guc_messages;
#[cfg(feature = "vfio-user")]
pub mod vfio_user;
