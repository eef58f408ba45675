// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The device model behind a card, for tests that look inside.

use std::any::Any;

use arctic_device_model::card::Card;
use arctic_gpu::VirtualCard;

/// A card of the Xe-HPG family.
pub trait FlexCard {
    /// The device model. Panics if the card is of another family.
    fn model(&self) -> &Card;
}

impl FlexCard for VirtualCard {
    fn model(&self) -> &Card {
        let gpu: &dyn Any = &**self.gpu();
        gpu.downcast_ref().expect("the card is of the Xe-HPG family")
    }
}
