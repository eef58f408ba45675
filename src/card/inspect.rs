// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The state of a card as a tree.

use arctic_device_model::inspect::{self, Inspect, Inspector, Missing, Node, Path};

use super::VirtualCard;
use super::function::CardFunction;
use crate::pci::PciDevice;

/// Bytes of configuration space that are shown.
const CONFIG_BYTES: u64 = 4096;

impl VirtualCard {
    /// The part of the card's state at `path`, with `depth` levels of parts below it: what [`VirtualCard::status`] returns, the
    /// configuration space of its functions, and what the card's family has: registers, engines, translations. Reading has no
    /// effect on the card. May be called from any thread; waits for steps in progress, but not for a guest.
    ///
    /// The names are for people and for scripts of this version. They may change with the next one.
    ///
    /// # Errors
    /// There is no part at the path.
    ///
    /// ```no_run
    /// # use arctic_gpu::inspect::Path;
    /// # fn show(card: &arctic_gpu::VirtualCard) -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = card.inspect(&Path::new("engines/rcs0")?, 1)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn inspect(&self, path: &Path, depth: u8) -> Result<Node, Missing> {
        inspect::visit(self, path, depth)
    }
}

impl Inspect for VirtualCard {
    fn inspect(&self, to: &mut Inspector<'_>) {
        to.lazily("status", || Node::of(&self.status()));
        to.part("pci", |to| {
            for function in &self.functions {
                to.part(&function.name(), |to| function.inspect(to));
            }
        });
        self.shared.gpu.inspect(to);
    }
}

impl Inspect for CardFunction {
    fn inspect(&self, to: &mut Inspector<'_>) {
        to.value("enabled", self.enabled());
        to.value("connected", self.connected());
        to.value("bus_master", self.port.bus_master());
        // The methods above take the lock too.
        let config = self.port.config();
        to.value("power_state", config.power_state().name());
        to.part("bars", |to| {
            for bar in 0..6 {
                if let Some(address) = config.decoded(bar) {
                    to.address(&bar.to_string(), address);
                }
            }
        });
        to.table("config", |to| {
            for offset in (0..CONFIG_BYTES).step_by(4) {
                let mut dword = [0; 4];
                config.read(offset, &mut dword);
                let value = u32::from_le_bytes(dword);
                if value != 0 {
                    to.value(&format!("{offset:#05x}"), Node::hex(value, 8));
                }
            }
        });
    }
}
