// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Load of the firmware: DMA engine, boot checks, the structure that the driver hands over, and the error capture that it
//! requests.

pub mod ads;
pub(super) mod capture;
pub(super) mod dma;
pub mod firmware;
