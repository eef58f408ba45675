// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The bus as the card sees it: guest memory, interrupts and messages of all functions.

use std::sync::{Arc, Weak};

use arctic_device_model::host::{Dma, DmaView, Function, InterruptSink, NullHost};

use super::bus_port::BusPort;
use super::function::{AllFunctions, Exposure};
use crate::pci::{Machine, PciDevice};

/// The ports of all functions, the guest memory that they gate, and the machine.
pub struct BusPorts {
    /// Indexed by function number, the PF's first.
    pub ports: Vec<Arc<BusPort>>,
    /// Guest memory, as mapped by the machines.
    pub memory: Arc<dyn Dma>,
    /// The machine, which receives error messages.
    pub machine: Arc<dyn Machine>,
    /// The functions, once they have been created.
    pub functions: AllFunctions,
}

impl Dma for BusPorts {
    fn view(&self, function: Function) -> Arc<dyn DmaView> {
        match self.ports.get(function.index()) {
            Some(port) if port.bus_master() => self.memory.view(function),
            _ => Arc::new(NullHost),
        }
    }
}

impl InterruptSink for BusPorts {
    fn raise(&self, function: Function, vector: u16) {
        if let Some(port) = self.ports.get(function.index()) {
            port.raise(vector);
        }
    }

    fn set_line(&self, function: Function, requested: bool) {
        if let Some(port) = self.ports.get(function.index()) {
            port.set_line(requested);
        }
    }

    fn fatal_error(&self, function: Function) {
        if self.ports.get(function.index()).is_some_and(|port| port.record_fatal_error()) {
            self.machine.fatal_error(function);
        }
    }

    fn mappings_changed(&self, function: Function, bar: u8) {
        let functions = self.functions.get().into_iter().flatten().filter_map(Weak::upgrade);
        let mut usable = functions.filter(|it| it.number() == function && it.exposure == Exposure::Full);
        if let Some(function) = usable.next() {
            let function: Arc<dyn PciDevice> = function;
            self.machine.mappings_changed(&function, bar);
        }
    }
}
