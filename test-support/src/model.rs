// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The device model behind a card, for tests that look inside.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use arctic_device_model::gpu::{Gpu, Host, Model, PowerOnError, RegisterMap};
use arctic_device_model::limits::Limits;
use arctic_sriov::function::{FunctionError, PciFunction};
use arctic_sriov::header::Identity;

/// A model that keeps the running card for the test.
pub struct Observed<M> {
    model: M,
    inside: Inside,
}

/// The card that a model has powered on.
#[derive(Clone, Default)]
pub struct Inside(Arc<OnceLock<Arc<dyn Gpu>>>);

/// Returns `model`, and the card once it has been powered on.
pub fn observed<M: Model>(model: M) -> (Observed<M>, Inside) {
    let inside = Inside::default();
    (Observed { model, inside: inside.clone() }, inside)
}

impl Inside {
    /// The running card, of type `Card`. Panics if it has not been powered on or has another type.
    pub fn card<Card: 'static>(&self) -> &Card {
        let gpu: &dyn Any = &**self.0.get().expect("the card has been powered on");
        gpu.downcast_ref().expect("the card has the type of its family")
    }
}

impl<M: Model> Model for Observed<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn identity(&self) -> Identity {
        self.model.identity()
    }

    fn total_vfs(&self) -> u8 {
        self.model.total_vfs()
    }

    fn limits(&self) -> Limits {
        self.model.limits()
    }

    fn posted_writes(&self) -> bool {
        self.model.posted_writes()
    }

    fn physical_function(&self, vfs: u8) -> Result<PciFunction, FunctionError> {
        self.model.physical_function(vfs)
    }

    fn virtual_function(&self) -> Result<PciFunction, FunctionError> {
        self.model.virtual_function()
    }

    fn virtual_function_on_bus(&self) -> Result<PciFunction, FunctionError> {
        self.model.virtual_function_on_bus()
    }

    fn register_map(&self) -> RegisterMap {
        self.model.register_map()
    }

    fn power_on(&self, vfs: u8, provisioned: bool, host: Host) -> Result<Arc<dyn Gpu>, PowerOnError> {
        let gpu = self.model.power_on(vfs, provisioned, host)?;
        Ok(self.inside.0.get_or_init(|| gpu).clone())
    }
}
