// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the submission queue, its port, and Load.

use super::*;
use crate::generation::XE_HPG;
use arctic_fidelity::proves;

#[test]
fn queue_dwords_are_written_in_any_order() {
    proves!(
        [V8_010, V8_210],
        "the sixteen dwords can be written in any order and any number of times, and read back as written. A \
        partially written descriptor has no effect"
    );
    let host = Host::new();
    let context = host.with(0, &store(host.data(0), 1));
    for n in [11, 3, 8, 15, 0, 6, 1, 14, 2, 13, 4, 9, 5, 12, 7, 10] {
        host.write(SQ + 4 * n, 0x1000_0000 + n);
    }
    assert!((0..16).all(|n| host.read(SQ + 4 * n) == 0x1000_0000 + n));
    // High dword first, then the low dword without the valid bit, then the complete low dword.
    host.fill(&[]);
    host.write(SQ + 4, (context.descriptor() >> 32) as u32);
    host.write(SQ, context.descriptor() as u32 & !1);
    host.work();
    host.write(SQ, 0xdead_b001);
    host.write(SQ, context.descriptor() as u32);
    host.work();
    assert_eq!((host.get(host.data(0)), host.head_of(context)), (0, 0));
    host.write(CONTROL, LOAD);
    host.work();
    assert_eq!(host.get(host.data(0)), 1);
}

#[test]
fn the_port_fills_the_queue_in_turn() {
    proves!(V8_011, "writes of ELSP fill E0 to E7 in order, high dword before low, and wrap to E0. ELSP reads as 0");
    let host = Host::new();
    for n in 1..=9 {
        host.write(0x230, 0x100 + n);
        assert_eq!(host.read(SQ + (n - 1) % 8 * 8), if n == 9 { 0x201 } else { 0 }, "half an element is not stored");
        host.write(0x230, 0x200 + n);
    }
    for element in 0..8 {
        let n = if element == 0 { 9 } else { element + 1 };
        assert_eq!((host.read(SQ + element * 8), host.read(SQ + element * 8 + 4)), (0x200 + n, 0x100 + n));
    }
    assert_eq!(host.read(0x230), 0);
}

#[test]
fn the_port_submits() {
    proves!([V8_011, V8_013], "contexts written to ELSP run once they are loaded");
    let mut host = Host::new();
    let context = host.with(0, &store(host.data(0), 1));
    host.write(0x230, (context.descriptor() >> 32) as u32);
    host.write(0x230, context.descriptor() as u32);
    host.work();
    assert_eq!(host.get(host.data(0)), 0);
    host.write(CONTROL, LOAD);
    host.work();
    assert_eq!((host.get(host.data(0)), host.switches().len()), (1, 2));
}

#[test]
fn the_full_port_waits_for_load() {
    proves!(
        [V8_011, V8_013],
        "writes of ELSP that fill the whole queue, and wrap, start nothing. Load then runs the queue as it is"
    );
    let mut host = Host::new();
    let contexts: Vec<_> = (0..8).map(|n| host.with(n, &store(host.data(8 * n), 1))).collect();
    let stored = |host: &Host| (0..8).map(|n| host.get(host.data(8 * n))).sum::<u32>();
    for context in contexts.iter().chain(&contexts[..2]) {
        host.write(0x230, (context.descriptor() >> 32) as u32);
        host.work();
        host.write(0x230, context.descriptor() as u32);
        host.work();
        assert_eq!((stored(&host), host.switches().len(), host.status() & 0x99), (0, 0, 1));
        assert!(contexts.iter().all(|context| host.head_of(*context) == 0));
    }
    host.write(CONTROL, LOAD);
    host.work();
    assert_eq!((stored(&host), host.switches().len()), (8, 9));
}

#[test]
fn invalid_elements_are_skipped() {
    proves!(
        [V8_012, V8_016],
        "valid elements run in order from E0 to E7, and invalid elements are skipped. The engine is idle afterwards"
    );
    let mut host = Host::new();
    let at = host.data(0);
    // Each element copies the value that the previous one stored, then stores its own number plus 1.
    let step = |host: &Host, number: u64| {
        let mut ring = vec![0x1480_0002, XE_HPG.engines.info(host.engine).mmio_base + 0x600, (VA + at) as u32, 0];
        let own = host.data(0x100 + 8 * number);
        ring.extend([0x1200_0002, XE_HPG.engines.info(host.engine).mmio_base + 0x600, (VA + own) as u32, 0]);
        ring.extend(store(at, number as u32 + 1));
        host.with(number, &ring)
    };
    let contexts: Vec<_> = (0..3).map(|number| step(&host, number)).collect();
    let mut queue = [0; 8];
    for (element, context) in [1, 4, 7].into_iter().zip(&contexts) {
        queue[element] = context.descriptor();
    }
    // Descriptors without the valid bit, complete otherwise.
    queue[2] = contexts[0].descriptor() & !1;
    queue[5] = contexts[2].descriptor() & !1;
    host.submit(&queue);
    host.work();
    assert_eq!([0, 1, 2].map(|n| host.get(host.data(0x100 + 8 * n))), [0, 1, 2], "elements must run in order");
    let expected = [switch(1, IDLE, 1, 0), switch(0, 1, 2, 0), switch(0, 2, 3, 0), switch(0, 3, IDLE, 0)];
    assert_eq!(host.switches(), expected);
    assert_eq!(host.status() & 0x99, 1, "the queue is no longer valid, and no element is active");
}

#[test]
fn filling_the_queue_executes_nothing() {
    proves!(V8_013, "only bit 0 of EXECLIST_CONTROL has an effect. The register reads as 0");
    let mut host = Host::new();
    let context = host.with(0, &store(host.data(0), 1));
    host.fill(&[context.descriptor()]);
    host.write(CONTROL, !LOAD);
    host.work();
    assert_eq!((host.get(host.data(0)), host.head_of(context), host.switches().len()), (0, 0, 0));
    assert_eq!(host.witness.msis.load(Ordering::SeqCst), 0);
    host.write(CONTROL, LOAD);
    assert_eq!(host.read(CONTROL), 0);
    host.work();
    assert_eq!((host.get(host.data(0)), host.head_of(context)), (1, host.tail_of(context)));
}

#[test]
fn the_loaded_queue_is_a_copy() {
    proves!(V8_014, "writes to the submission queue after Load do not change the loaded queue");
    let mut host = Host::new();
    let contexts: Vec<_> = (0..4).map(|n| host.with(n, &store(host.data(8 * n), 1))).collect();
    host.load(&contexts[..2]);
    host.fill(&[contexts[2].descriptor(), contexts[3].descriptor()]);
    host.work();
    assert_eq!([0, 1, 2, 3].map(|n| host.get(host.data(8 * n))), [1, 1, 0, 0]);
    assert_eq!(host.switches(), [switch(1, IDLE, 1, 0), switch(0, 1, 2, 0), switch(0, 2, IDLE, 0)]);
}

#[test]
fn the_queue_survives_load_and_sleep() {
    proves!(
        [V8_015, V8_023, V8_082],
        "the submission queue, the element mask and the hint registers are preserved across Load and RC6, and a \
        second Load submits the same elements again (trap T12)"
    );
    let mut host = Host::new();
    let contexts: Vec<_> = (0..2).map(|n| host.with(n, &store(host.data(8 * n), 1))).collect();
    host.load(&contexts);
    let queue: Vec<u32> = (0..16).map(|n| host.read(SQ + 4 * n)).collect();
    assert_eq!(u64::from(queue[2]) | u64::from(queue[3]) << 32, contexts[1].descriptor());
    let kept = [0x56c, 0x214, 0x248, 0x424, 0x428, 0x42c, 0x4bc, 0x4c8, 0x4cc, CSB_MASK, HWS_PGA];
    for (n, offset) in kept[..9].iter().enumerate() {
        host.write(*offset, 0x1234_5600 + n as u32);
    }
    host.write(CSB_MASK, 1 << 20);
    let before = kept.map(|offset| host.read(offset));
    assert_eq!(before[..2], [0x1234_5600, 0x1234_5601]);
    host.work();
    let slept = || {
        let mut data = [0; 4];
        host.card.read(Function::PF, 0x13_8108, &mut data);
        u32::from_le_bytes(data)
    };
    host.card.gt().permit_rc6(true);
    host.clock.advance(10_000_000);
    assert!(slept() > 0);
    host.card.gt().permit_rc6(false);
    assert_eq!((0..16).map(|n| host.read(SQ + 4 * n)).collect::<Vec<_>>(), queue);
    assert_eq!(kept.map(|offset| host.read(offset)), before);
    host.switches();
    for (n, context) in contexts.iter().enumerate() {
        host.emit(*context, &store(host.data(8 * n as u64), 2));
    }
    host.write(CONTROL, LOAD);
    host.work();
    assert_eq!([0, 1].map(|n| host.get(host.data(8 * n))), [2, 2]);
    assert_eq!(host.switches(), [switch(1, IDLE, 1, 0), switch(0, 1, 2, 0), switch(0, 2, IDLE, 0)]);
}

#[test]
fn the_mode_register_gates() {
    proves!(
        V8_008,
        "without the enable bit in the mode register, nothing starts and nothing is reported. With it, the same \
        queue runs. Checked on each engine class"
    );
    for name in ["rcs0", "bcs0", "ccs0", "vcs0", "vecs0"] {
        let engine = XE_HPG.engines.named(name).unwrap();
        let mut host = Host::of(engine);
        host.write(GFX_MODE, 0x0008_0000);
        let context = host.with(0, &store(host.data(0), 1));
        host.load(&[context]);
        host.work();
        assert_eq!((host.get(host.data(0)), host.switches().len(), host.status() & 0x80), (0, 0, 0), "{name}");
        let undone = host.card.engines().undone();
        assert!(undone.keys().any(|what| what.starts_with(name) && what.contains("GFX_MODE")), "{undone:?}");
        host.write(GFX_MODE, 0x0008_0008);
        host.write(CONTROL, LOAD);
        host.work();
        assert_eq!((host.get(host.data(0)), host.switches().len()), (1, 2), "{name}");
    }
}

#[test]
fn the_first_load_saves_nothing() {
    proves!(
        V8_211,
        "after reset there is no context to save. The first Load only writes the image of its own context, on \
        completion"
    );
    let host = Host::new();
    let context = host.with(0, &wait(host.data(0), 1));
    let canary = |host: &Host| (0..0x8000).step_by(8).map(|at| host.get64(at)).collect::<Vec<_>>();
    for at in (0..0x8000).step_by(8) {
        host.put64(at, 0x5a5a_0000_0000_5a5a + at);
    }
    let (before, image) = (canary(&host), (0..0x180).map(|n| host.get(context.image(n))).collect::<Vec<_>>());
    host.load(&[context]);
    host.work();
    assert_eq!(host.status() >> 7 & 1, 1);
    assert!(canary(&host) == before, "GGTT address 0 must not be written");
    assert!((0..0x180).map(|n| host.get(context.image(n))).eq(image), "the image must only be read so far");
    host.put(host.data(0), 1);
    host.work();
    assert!(canary(&host) == before);
    assert_eq!(host.head_of(context), host.tail_of(context));
}

#[test]
fn status_register_shows_the_running_context() {
    proves!(
        V8_022,
        "the 64 bits at 0x234 contain the running context's IDs in the high dword, which i915 reads. Bit 7 is set \
        while a context is active (xe polls it), and bit 0 while the queue is not valid. Other bits show the \
        element, pending Loads and arbitration"
    );
    let host = Host::new();
    assert_eq!(host.status(), 1, "after reset");
    let data = host.data(0);
    let first = host.with(0, &commands(&[&wait(data, 1), &[ARB_OFF], &wait(data, 2), &[ARB_ON, ARB_CHECK]]));
    let second = host.with(1, &wait(data, 3));
    host.submit(&[0, 0, 0, first.descriptor(), 0, second.descriptor()]);
    assert_eq!(host.status() >> 32, first.descriptor() >> 32);
    host.work();
    assert_eq!(host.status() as u32, 1 << 27 | 3 << 8 | 1 << 7 | 3 << 3);
    host.put(data, 1);
    host.work();
    assert_eq!(host.status() as u32, 3 << 8 | 1 << 7 | 3 << 3, "arbitration is off");
    host.submit(&[second.descriptor()]);
    assert_eq!(host.status() as u32 & !(3 << 8), 1 << 30 | 1 << 7 | 3 << 3);
    host.submit(&[]);
    assert_eq!(host.status() as u32 & 0x4000_0007, 1 << 30 | 1 << 2 | 1 << 1, "two Loads, the last of them empty");
    host.submit(&[0, second.descriptor()]);
    assert_eq!(host.status() as u32 & 0x4000_0007, 1 << 30 | 1 << 1);
    host.put(data, 2);
    host.work();
    assert_eq!(host.status(), second.descriptor() >> 32 << 32 | 1 << 27 | 1 << 8 | 1 << 7 | 3 << 3);
    host.put(data, 3);
    host.work();
    assert_eq!(host.status(), 1);
}

#[test]
fn elsp_writes_of_a_vf_are_ignored() {
    proves!(
        [V8_010, V8_013],
        "only the physical function can access the registers of a queue. A virtual function can access neither the \
        queue nor Load by MMIO. A fused-off engine starts nothing"
    );
    let mut host = Host::new();
    let context = host.with(0, &store(host.data(0), 1));
    host.card.enable_vfs(1);
    host.fill(&[context.descriptor()]);
    let base = u64::from(XE_HPG.engines.info(host.engine).mmio_base);
    host.card.write(Function(1), base + u64::from(CONTROL), &LOAD.to_le_bytes());
    host.card.write(Function(1), base + u64::from(SQ), &[0; 8]);
    host.card.write(Function(1), base + 0x230, &[1; 4]);
    host.work();
    assert_eq!((host.get(host.data(0)), host.read(SQ)), (0, context.descriptor() as u32));
    let mut seen = [1; 4];
    host.card.read(Function(1), base + u64::from(SQ), &mut seen);
    assert_eq!(seen, [0; 4]);
    assert!(host.switches().is_empty());
    let fused = XE_HPG.engines.find(EngineClass::VideoDecode, 7).unwrap();
    assert!(!host.card.engines().has(fused));
    let fused = Host { engine: fused, card: host.card.clone(), clock: host.clock.clone(), ..Host::new() };
    fused.enable();
    fused.load(&[context]);
    fused.work();
    assert_eq!((fused.status() & 0x80, host.get(host.data(0))), (0, 0));
}
