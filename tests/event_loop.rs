// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Notifications of the GuC in the event loop of a VMM based on `event-manager`.

use std::sync::Arc;

use arctic_gpu::vm_memory::{GuestAddress, GuestMemoryMmap};
use arctic_gpu::{GuestRam, PciDevice, VirtualCard, card_file};
use arctic_test_support::null_machine::NullMachine;
use event_manager::{EventManager, SubscriberOps};

/// Each function's handler is a subscriber that consumes only its own ioeventfd, even after the card has been dropped.
#[test]
fn handlers_serve_notifications_of_the_guc() {
    let ram = GuestRam::new(Arc::new(GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0), 1 << 20)]).unwrap()));
    let card =
        VirtualCard::builder(card_file::load("small").unwrap()).vfs(2).plug_into(Arc::new(NullMachine), ram).unwrap();
    let mut events = EventManager::new().unwrap();
    for handler in card.io_event_handlers().unwrap() {
        events.add_subscriber(handler);
    }
    assert_eq!(events.run_with_timeout(0).unwrap(), 0, "no notification was signalled");
    for function in card.functions() {
        let notification = function.io_events()[0].event.try_clone().unwrap();
        notification.write(3).unwrap();
        assert_eq!(events.run_with_timeout(1000).unwrap(), 1, "{}", function.name());
        assert!(notification.read().is_err(), "{}: the handler did not consume the event", function.name());
    }
    // The VMM still holds an eventfd, and the guest still signals it.
    let notification = card.functions()[0].io_events()[0].event.try_clone().unwrap();
    drop(card);
    assert_eq!(events.run_with_timeout(0).unwrap(), 0);
    notification.write(1).unwrap();
    assert_eq!(events.run_with_timeout(1000).unwrap(), 1);
    assert_eq!(events.run_with_timeout(0).unwrap(), 0, "the event is still signalled");
}
