// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of switch reports: status page, its copies in registers, interrupts, and their masks.

use super::*;
use arctic_fidelity::proves;

#[test]
fn the_buffer_wraps() {
    proves!(
        [V8_057, V8_058, V8_059],
        "entries are written in sequence from dword 10h of the status page on, where the drivers read them (trap \
        T1), and wrap. Only the lowest byte of dword 2Fh is written. It contains the index of the last written \
        entry, with bits 7:4 clear. Twelve register pairs and CTXT_ST_PTR have the same contents"
    );
    let mut host = Host::new();
    let page = host.page();
    host.put64(page + 0xb8, 0x5566_770b_1122_3344);
    for (at, value) in [(0x38, 0x1111), (0xa0, 0x2222), (0xa8, 0x3333), (0xb0, 0x4444), (0xc0, 0x5555)] {
        host.put64(page + at, value);
    }
    let mut written = [!0; 12];
    for k in 1..=30u32 {
        host.submit(&[]);
        let entry = (k - 1) % 12;
        written[entry as usize] = 0xffff_u64 << 42 | 1 << 33 | 0xffff << 10;
        assert_eq!(host.get64(page + 0xb8), 0x5566_7700_1122_3344 | u64::from(entry) << 32, "only one byte is written");
        assert_eq!(host.read(STATUS_PTR) & 0xff, entry);
        for (n, status) in (0..12u32).zip(written) {
            assert_eq!(host.get64(page + 0x40 + u64::from(n) * 8), status);
            let offset = if n < 6 { 0x370 + 8 * n } else { 0x3c0 + 8 * (n - 6) };
            let copy = u64::from(host.read(offset + 4)) << 32 | u64::from(host.read(offset));
            assert_eq!(copy, if status == !0 { 0 } else { status });
        }
    }
    for (at, value) in [(0x38, 0x1111), (0xa0, 0x2222), (0xa8, 0x3333), (0xb0, 0x4444), (0xc0, 0x5555)] {
        assert_eq!(host.get64(page + at), value, "outside the buffer");
    }
    assert_eq!(host.switches().len(), 6, "the driver sees the number of new entries modulo twelve");
}

#[test]
fn driver_writes_to_the_pointer_set_the_next_entry() {
    proves!(
        V8_058,
        "after reset the first report is written to entry 0 without action by the driver. If the driver writes the \
        pointer, subject to the register's write mask, reports continue with the entry after it"
    );
    let mut host = Host::new();
    host.write_card(0x941c, 1 << 2);
    assert_eq!(host.read(STATUS_PTR), 0x0b0b);
    host.enable();
    host.write(STATUS_PTR, 0x000f_0004);
    assert_eq!(host.read(STATUS_PTR), 0x0b04);
    host.submit(&[]);
    assert_eq!((host.read(STATUS_PTR), host.get(host.page() + 0xbc)), (0x0b05, 5));
    host.write(STATUS_PTR, 0x0f00_0500);
    assert_eq!(host.read(STATUS_PTR), 0x0505);
    host.write(STATUS_PTR, 0x000f_000f);
    host.submit(&[]);
    assert_eq!(host.read(STATUS_PTR), 0x0500, "the pointer wraps at the end of the buffer");
    assert!(!host.switches().is_empty());
}

#[test]
fn the_interrupt_comes_last() {
    proves!(
        [V8_055, V8_086],
        "each switch raises the engine's context-switch interrupt, bit 8. At that time the entry and its pointer, \
        written in this order, are visible in memory (trap T30)"
    );
    let mut host = Host::new();
    let data = host.data(0);
    let contexts: Vec<_> = (0..3).map(|n| host.with(n, &wait(data, n as u32 + 1))).collect();
    let mut expected = Vec::new();
    host.load(&contexts);
    for n in 0..4u32 {
        host.work();
        let interrupts = host.witness.seen.lock().unwrap().clone();
        assert_eq!(interrupts.len() as u32, n + 1, "one interrupt per switch");
        let (status, pointer) = interrupts[n as usize];
        let (away, to) = (if n == 0 { IDLE } else { n }, if n == 3 { IDLE } else { n + 1 });
        assert_eq!((pointer, (status >> 42) as u32, status as u32 >> 10), (n, away, to));
        assert_eq!(host.acknowledge(), 1 << 8);
        expected.push(switch(u8::from(n == 0), away, to, 0));
        host.put(data, n + 1);
    }
    assert_eq!(host.switches(), expected);
    assert_eq!(host.acknowledge(), 0);
}

#[test]
fn masked_reasons_are_not_reported() {
    proves!(
        V8_056,
        "a masked reason causes neither interrupt nor entry (trap T15). The others are reported as if the masked \
        switch had not occurred"
    );
    let run = |mask: u32| {
        let mut host = Host::new();
        host.write(CSB_MASK, mask);
        assert_eq!(host.read(CSB_MASK), mask);
        let data = host.data(0);
        let contexts: Vec<_> = (0..3).map(|n| host.with(n, &store(data + 8 * n, 1))).collect();
        host.load(&contexts);
        host.work();
        let msis = host.witness.msis.load(Ordering::SeqCst);
        assert_eq!(host.get(data + 16), 1);
        assert_eq!(host.acknowledge() != 0, msis != 0);
        (host.switches(), msis, host.card.gt().csb_ports[host.engine.index()].waiting())
    };
    let rows = [switch(1, IDLE, 1, 0), switch(0, 1, 2, 0), switch(0, 2, 3, 0), switch(0, 3, IDLE, 0)];
    assert_eq!(run(0), (rows.to_vec(), 1, 4));
    // With element switches masked only idle to active and active to idle are reported.
    assert_eq!(run(1 << 2), (vec![rows[0], rows[3]], 1, 2));
    assert_eq!(run(1 << 0), (rows[1..].to_vec(), 1, 3));
    assert_eq!(run(1 << 3), (rows[..3].to_vec(), 1, 3));
    assert_eq!(run(!0), (vec![], 0, 0));
    // A new queue and a lite restore.
    for (mask, left) in [(0, 2), (1 << 1, 1), (1 << 15, 1)] {
        let mut host = Host::new();
        let context = host.with(0, &wait(host.data(0), 1));
        host.load(&[context]);
        host.work();
        host.switches();
        host.write(CSB_MASK, mask);
        host.load(&[context]);
        host.submit(&[]);
        host.work();
        assert_eq!(host.switches().len(), left);
    }
}

#[test]
fn the_page_report_can_be_turned_off() {
    proves!(
        V8_057,
        "CSFE_CHICKEN1 bit 15 disables the report to the status page (xe: GHWSP_CSB_REPORT_DIS). The registers are \
        still updated, and the interrupt is raised. The adjacent bit is for the context's own page, to which no \
        status quadwords are written"
    );
    let mut host = Host::new();
    host.write(0xd4, 1 << 31 | 1 << 15);
    host.submit(&[]);
    assert!(host.switches().is_empty());
    assert_eq!((host.read(STATUS_PTR) & 0xff, host.read(0x370) >> 10), (0, IDLE));
    assert_eq!(host.acknowledge(), 1 << 8);
    host.write(0xd4, 1 << 31 | 1 << 30 | 1 << 14);
    let context = host.with(0, &[0, 0]);
    let own: Vec<u64> = (0..512).map(|n| host.get64(context.pphwsp() + 8 * n)).collect();
    host.load(&[context]);
    host.work();
    assert_eq!((host.get(host.page() + 0xbc), host.get64(host.page() + 0x50) >> 42), (2, 1));
    assert!((0..512).map(|n| host.get64(context.pphwsp() + 8 * n)).eq(own));
}

#[test]
fn the_page_moves() {
    proves!(
        V8_057,
        "the GGTT address of the page is read from HWS_PGA at the time of the switch. If the page is unmapped, only \
        the report is lost"
    );
    let host = Host::new();
    host.submit(&[]);
    let elsewhere = host.page() + 0x2_0000;
    host.write(HWS_PGA, elsewhere as u32);
    host.submit(&[]);
    assert_eq!((host.get(host.page() + 0xbc), host.get(elsewhere + 0xbc) & 0xff), (0, 1));
    assert_eq!(host.get64(elsewhere + 0x48) >> 42, u64::from(IDLE));
    host.write(HWS_PGA, 0x8000_0000);
    let context = host.with(0, &store(host.data(0), 1));
    host.load(&[context]);
    host.work();
    assert_eq!((host.get(host.data(0)), host.read(STATUS_PTR) & 0xff), (1, 3));
    assert!(host.card.engines().undone().keys().any(|what| what.contains("without a status page")));
}
