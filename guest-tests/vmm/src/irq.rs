// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Interrupts of the card's functions: an irqfd and an MSI route per function.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use arctic_gpu::{Function, MsiMessage, MsiSink};
use arctic_sriov::number::{count, high, low};
use kvm_bindings::{
    KVM_IRQ_ROUTING_IRQCHIP, KVM_IRQ_ROUTING_MSI, KVM_IRQCHIP_IOAPIC, KVM_IRQCHIP_PIC_MASTER, KVM_IRQCHIP_PIC_SLAVE,
    KvmIrqRouting, kvm_irq_routing_entry,
};
use kvm_ioctls::VmFd;
use std::sync::PoisonError;
use vmm_sys_util::eventfd::EventFd;

use crate::layout;

/// Passes a routing table to KVM.
type Install = Box<dyn Fn(&[kvm_irq_routing_entry]) -> io::Result<()> + Send + Sync>;

/// All MSI routes of the VM. KVM replaces the routing table as a whole, so each change passes the complete table.
pub struct Routes {
    vm: Arc<VmFd>,
    install: Install,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    messages: BTreeMap<u32, MsiMessage>,
    /// KVM has accepted a table with `messages`. False from the start of an update until KVM has accepted it.
    installed: bool,
}

impl Routes {
    /// Creates a routing table without MSIs.
    pub fn new(vm: Arc<VmFd>) -> Arc<Self> {
        let kvm = vm.clone();
        let install: Install = Box::new(move |entries| {
            let table = KvmIrqRouting::from_entries(entries).map_err(|error| io::Error::other(format!("{error:?}")))?;
            kvm.set_gsi_routing(&table).map_err(|error| io::Error::from_raw_os_error(error.errno()))
        });
        Arc::new(Routes { vm, install, table: Mutex::default() })
    }

    /// Sets the message of `gsi`; `None` removes its route.
    fn set(&self, gsi: u32, message: Option<MsiMessage>) {
        set(&self.install, &self.table, gsi, message);
    }
}

/// Sets the message of `gsi` in `routes` and passes the table to `install` if KVM does not have it already. A table
/// that was not accepted is passed again by the next call, also if that call changes nothing.
fn set(install: &Install, routes: &Mutex<Table>, gsi: u32, message: Option<MsiMessage>) {
    let mut routes = routes.lock().unwrap_or_else(PoisonError::into_inner);
    let before = match message {
        Some(message) => routes.messages.insert(gsi, message),
        None => routes.messages.remove(&gsi),
    };
    // KVM synchronises with all vCPUs when it replaces its table, so redundant changes are skipped.
    if before == message && routes.installed {
        return;
    }
    routes.installed = false;
    match install(&table(&routes.messages)) {
        Ok(()) => routes.installed = true,
        Err(error) => log::error!("KVM did not accept the interrupt routes: {error}"),
    }
}

/// Builds the table: KVM's default routes of the interrupt controllers' inputs, followed by the MSIs.
fn table(messages: &BTreeMap<u32, MsiMessage>) -> Vec<kvm_irq_routing_entry> {
    let mut entries = Vec::new();
    let mut pin = |gsi: u32, chip: u32, pin: u32| {
        let mut entry = kvm_irq_routing_entry { gsi, type_: KVM_IRQ_ROUTING_IRQCHIP, ..Default::default() };
        entry.u.irqchip.irqchip = chip;
        entry.u.irqchip.pin = pin;
        entries.push(entry);
    };
    for gsi in 0..layout::IO_APIC_PINS {
        pin(gsi, KVM_IRQCHIP_IOAPIC, gsi);
        match gsi {
            0..8 => pin(gsi, KVM_IRQCHIP_PIC_MASTER, gsi),
            8..16 => pin(gsi, KVM_IRQCHIP_PIC_SLAVE, gsi - 8),
            _ => {}
        }
    }
    for (gsi, message) in messages {
        let mut entry = kvm_irq_routing_entry { gsi: *gsi, type_: KVM_IRQ_ROUTING_MSI, ..Default::default() };
        entry.u.msi.address_lo = low(message.address);
        entry.u.msi.address_hi = high(message.address);
        entry.u.msi.data = message.data;
        entries.push(entry);
    }
    entries
}

/// The MSI of one function.
pub struct Msi {
    routes: Arc<Routes>,
    gsi: u32,
    event: EventFd,
}

impl Msi {
    /// Registers the function's irqfd at its GSI.
    pub fn connect(routes: &Arc<Routes>, function: Function) -> io::Result<Arc<Self>> {
        let gsi = layout::IO_APIC_PINS + count(function.index());
        let event = EventFd::new(libc::EFD_NONBLOCK)?;
        // KVM ignores the event while the GSI has no route.
        routes.vm.register_irqfd(&event, gsi).map_err(|error| io::Error::from_raw_os_error(error.errno()))?;
        Ok(Arc::new(Msi { routes: routes.clone(), gsi, event }))
    }
}

impl MsiSink for Msi {
    fn route(&self, message: Option<MsiMessage>) {
        self.routes.set(self.gsi, message);
    }

    fn trigger(&self) {
        // The write fails only if the counter is full, in which case the interrupt is already pending.
        let _ = self.event.write(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The routes that KVM has refused are not recorded as its routes.
    #[test]
    fn routes_that_kvm_has_refused_are_passed_again() {
        let message = |data| Some(MsiMessage { address: 0xfee0_0000, data });
        let calls = Arc::new(Mutex::new(Vec::new()));
        let install: Install = {
            let calls = calls.clone();
            Box::new(move |entries| {
                let mut calls = calls.lock().unwrap();
                calls.push(entries.len());
                if calls.len() == 2 { Err(io::Error::other("no memory")) } else { Ok(()) }
            })
        };
        let routes = Mutex::<Table>::default();
        for (data, calls_after) in [(1, 1), (1, 1), (2, 2), (2, 3), (2, 3)] {
            set(&install, &routes, 24, message(data));
            assert_eq!(calls.lock().unwrap().len(), calls_after);
        }
        set(&install, &routes, 24, None);
        set(&install, &routes, 24, None);
        assert_eq!(*calls.lock().unwrap(), [41, 41, 41, 40]);
    }

    #[test]
    fn messages_are_behind_the_chips_inputs() {
        let message = MsiMessage { address: 0x1_fee0_1000, data: 0x4031 };
        let table = table(&BTreeMap::from([(25, message)]));
        assert_eq!(table.len(), 24 + 16 + 1);
        let io_apic = table.iter().filter(|entry| {
            // SAFETY: all members of the union are integers.
            entry.type_ == KVM_IRQ_ROUTING_IRQCHIP && unsafe { entry.u.irqchip.irqchip } == KVM_IRQCHIP_IOAPIC
        });
        assert_eq!(io_apic.count(), 24);
        let last = table.last().unwrap();
        // SAFETY: an entry of this type has this member.
        let msi = unsafe { last.u.msi };
        assert_eq!((last.gsi, last.type_), (25, KVM_IRQ_ROUTING_MSI));
        assert_eq!((msi.address_lo, msi.address_hi, msi.data), (0xfee0_1000, 1, 0x4031));
    }
}
