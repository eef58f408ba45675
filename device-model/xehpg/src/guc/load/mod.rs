// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Load of the firmware: DMA engine, boot checks, and the structure that the driver hands over.

pub mod ads;
pub(super) mod dma;
pub mod firmware;
