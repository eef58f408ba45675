// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the GuC's FIFO of context switches.

use super::*;
use crate::execlist::status::ContextStatus;
use arctic_fidelity::proves;

#[test]
fn switches_are_appended_to_the_fifo() {
    proves!(
        [V8_060, V13_204],
        "every switch is also appended to the engine's FIFO, as the same quadword, until two reads have removed it. \
        An engine reset keeps it (V13-204), a device reset does not"
    );
    let host = Host::new();
    let port = &host.card.gt().csb_ports[host.engine.index()];
    let context = host.with(0, &store(host.data(0), 1));
    assert_eq!((port.waiting(), port.read()), (0, 0));
    host.load(&[context]);
    host.work();
    assert_eq!(port.waiting(), 2);
    assert!(host.card.gt().csb_ports.iter().map(|port| port.waiting()).sum::<usize>() == 2, "this engine's FIFO only");
    let (low, high) = (port.read(), port.read());
    assert_eq!(u64::from(high) << 32 | u64::from(low), host.get64(host.page() + 0x40));
    host.write_card(0x941c, 1 << 2);
    assert_eq!(port.waiting(), 1);
    assert_eq!(port.take(), Some(ContextStatus::from(host.get64(host.page() + 0x48))));
    host.submit(&[]);
    host.write(GFX_MODE, 0x0008_0008);
    host.submit(&[]);
    assert_eq!(port.waiting(), 1);
    host.card.reset_card();
    assert_eq!(port.waiting(), 0);
}

#[test]
fn guc_gets_no_reports_of_the_hosts_queue() {
    proves!(
        [V8_060, V13_257, V13_272],
        "in the model in which the host schedules, the GuC receives no report for contexts of the host's queue, whether waiting, complete or halted. Only the \
        FIFO contains their status quadwords"
    );
    let host = Host::new();
    let data = host.data(0);
    let mut reports = Vec::new();
    for (number, ring) in [(0, wait(data, 1).to_vec()), (1, store(data, 2).to_vec()), (2, vec![0x0800_0000, 0])] {
        let context = host.with(number, &ring);
        host.load(&[context]);
        host.card.step();
        host.card.engines().take_reports(&mut reports);
        assert!(reports.is_empty(), "{reports:?}");
        host.put(data, 1);
        host.clock.advance(1_000_000);
        host.card.step();
        host.card.engines().take_reports(&mut reports);
        assert!(reports.is_empty(), "{reports:?}");
    }
}
