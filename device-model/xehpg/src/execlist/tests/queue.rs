// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the submission queue, its port, and Load.

use super::*;
use crate::generation::XE_HPG;
use crate::gpu::VirtualFunctions;
use crate::registers::engine_offsets::{
    CTXID_PREEMPTION_HINT, CTXT_PREMP_DBG, EQ_ELEMENT_MASK, GPR, PREEMPT_DLY, PREEMPTION_HINT, PREEMPTION_HINT_UDW,
    STOP_PARSER_CONTROL, STOP_PARSER_HINT_ADDR,
};
use arctic_fidelity::proves;

/// Bits of EXECLIST_STATUS (V8-022).
const NOT_VALID: u32 = 1 << 0;
const SEVERAL_PENDING: u32 = 1 << 1;
const LAST_IS_EMPTY: u32 = 1 << 2;
const VALID: u32 = 3 << 3;
const ACTIVE: u32 = 1 << 7;
const ARBITRATION: u32 = 1 << 27;
const LOAD_PENDING: u32 = 1 << 30;
/// The bits that describe pending Loads, and that the queue is not valid.
const LOADS: u32 = LOAD_PENDING | LAST_IS_EMPTY | SEVERAL_PENDING | NOT_VALID;

/// The field of EXECLIST_STATUS with the running element.
fn element(n: u32) -> u32 {
    n << 8
}

/// Values of GFX_MODE, a masked register, for the bit that enables execlists.
const DISABLE_EXECLISTS: u32 = 0x0008_0000;
const ENABLE_EXECLISTS: u32 = 0x0008_0008;
/// RC6 residency of the GT (xe: regs/xe_gt_regs.h).
const GT_GFX_RC6: u64 = 0x13_8108;
/// MI_LOAD_REGISTER_MEM and MI_STORE_REGISTER_MEM in the process space.
const LOAD_REGISTER_MEM: u32 = 0x1480_0002;
const STORE_REGISTER_MEM: u32 = 0x1200_0002;

/// Registers of an engine that store all 32 bits (V8-009, V8-023, V8-082).
const STORED: [u32; 9] = [
    EQ_ELEMENT_MASK,
    PREEMPT_DLY,
    CTXT_PREMP_DBG,
    STOP_PARSER_CONTROL,
    STOP_PARSER_HINT_ADDR,
    STOP_PARSER_HINT_ADDR + 4,
    PREEMPTION_HINT,
    PREEMPTION_HINT_UDW,
    CTXID_PREEMPTION_HINT,
];

#[test]
fn sq_dwords_written_in_any_order_read_back() {
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
    // A valid descriptor of a context that does not exist.
    host.write(SQ, 0xdead_b001);
    host.write(SQ, context.descriptor() as u32);
    host.work();
    assert_eq!((host.get(host.data(0)), host.head_of(context)), (0, 0));
    host.write(CONTROL, LOAD);
    host.work();
    assert_eq!(host.get(host.data(0)), 1);
}

#[test]
fn elsp_writes_fill_elements_cyclically() {
    proves!(V8_011, "writes of ELSP fill E0 to E7 in order, high dword before low, and wrap to E0. ELSP reads as 0");
    let host = Host::new();
    for n in 1..=9 {
        host.write(ELSP, 0x100 + n);
        assert_eq!(host.read(SQ + (n - 1) % 8 * 8), if n == 9 { 0x201 } else { 0 }, "half an element is not stored");
        host.write(ELSP, 0x200 + n);
    }
    for element in 0..8 {
        let n = if element == 0 { 9 } else { element + 1 };
        assert_eq!((host.read(SQ + element * 8), host.read(SQ + element * 8 + 4)), (0x200 + n, 0x100 + n));
    }
    assert_eq!(host.read(ELSP), 0);
}

#[test]
fn contexts_written_to_elsp_run_after_load() {
    proves!([V8_011, V8_013], "contexts written to ELSP run once they are loaded");
    let mut host = Host::new();
    let context = host.with(0, &store(host.data(0), 1));
    host.push_elsp(context.descriptor());
    host.work();
    assert_eq!(host.get(host.data(0)), 0);
    host.write(CONTROL, LOAD);
    host.work();
    assert_eq!((host.get(host.data(0)), host.switches().len()), (1, 2));
}

#[test]
fn elsp_writes_that_fill_the_queue_start_nothing() {
    proves!(
        [V8_011, V8_013],
        "writes of ELSP that fill the whole queue, and wrap, start nothing. Load then runs the queue as it is"
    );
    let mut host = Host::new();
    let contexts: Vec<_> = (0..8).map(|n| host.with(n, &store(host.data(8 * n), 1))).collect();
    let stored = |host: &Host| (0..8).map(|n| host.get(host.data(8 * n))).sum::<u32>();
    for context in contexts.iter().chain(&contexts[..2]) {
        host.write(ELSP, (context.descriptor() >> 32) as u32);
        host.work();
        host.write(ELSP, context.descriptor() as u32);
        host.work();
        let status = host.status() as u32 & (ACTIVE | VALID | NOT_VALID);
        assert_eq!((stored(&host), host.switches().len(), status), (0, 0, NOT_VALID));
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
    let shared = host.data(0);
    // Each element copies the value that the previous one stored, then stores its own number plus 1.
    let context_with = |host: &Host, number: u64| {
        let register = host.mmio_base() + GPR;
        let result = host.data(0x100 + 8 * number);
        let load = [LOAD_REGISTER_MEM, register, (VA + shared) as u32, 0];
        let copy = [STORE_REGISTER_MEM, register, (VA + result) as u32, 0];
        host.with(number, &commands(&[&load, &copy, &store(shared, number as u32 + 1)]))
    };
    let contexts: Vec<_> = (0..3).map(|number| context_with(&host, number)).collect();
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
    assert_eq!(
        host.status() as u32 & (ACTIVE | VALID | NOT_VALID),
        NOT_VALID,
        "the queue is no longer valid, and no element is active"
    );
}

#[test]
fn execlist_control_ignores_all_bits_but_load() {
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
fn sq_writes_after_load_do_not_change_loaded_queue() {
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
fn sq_contents_are_preserved_across_load_and_rc6() {
    proves!(
        [V8_015, V8_023, V8_082],
        "the submission queue, the element mask and the hint registers are preserved across Load and RC6, and a \
        second Load submits the same elements again (trap T12)"
    );
    let mut host = Host::new();
    let contexts: Vec<_> = (0..2).map(|n| host.with(n, &store(host.data(8 * n), 1))).collect();
    host.load(&contexts);
    let queue = host.queue();
    assert_eq!(u64::from(queue[2]) | u64::from(queue[3]) << 32, contexts[1].descriptor());
    let stored: Vec<(u32, u32)> = STORED.into_iter().zip(0x1234_5600..).collect();
    for (offset, value) in &stored {
        host.write(*offset, *value);
    }
    host.write(CSB_MASK, 1 << 20);
    let kept = [(CSB_MASK, host.read(CSB_MASK)), (HWS_PGA, host.page() as u32)];
    let check = |host: &Host, when: &str| {
        for (offset, value) in stored.iter().chain(&kept) {
            assert_eq!(host.read(*offset), *value, "{offset:#x} {when}");
        }
    };
    check(&host, "after the write");
    host.work();
    let rc6_residency = || {
        let mut data = [0; 4];
        host.card.read_gttmmadr(Function::PF, GT_GFX_RC6, &mut data);
        u32::from_le_bytes(data)
    };
    host.card.gt().permit_rc6(true);
    host.clock.advance(10_000_000);
    assert!(rc6_residency() > 0);
    host.card.gt().permit_rc6(false);
    assert_eq!(host.queue(), queue);
    check(&host, "after RC6");
    // Discard the events of the first Load.
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
fn cleared_execlist_enable_starts_nothing() {
    proves!(
        V8_008,
        "without the enable bit in the mode register, nothing starts and nothing is reported. With it, the same \
        queue runs. Checked on each engine class"
    );
    for name in ["rcs0", "bcs0", "ccs0", "vcs0", "vecs0"] {
        let engine = XE_HPG.engines.named(name).unwrap();
        let mut host = Host::of(engine);
        host.write(GFX_MODE, DISABLE_EXECLISTS);
        let context = host.with(0, &store(host.data(0), 1));
        host.load(&[context]);
        host.work();
        assert_eq!((host.get(host.data(0)), host.switches().len(), host.status() as u32 & ACTIVE), (0, 0, 0), "{name}");
        let undone = host.card.engines().undone();
        assert!(undone.keys().any(|what| what.starts_with(name) && what.contains("GFX_MODE")), "{undone:?}");
        host.write(GFX_MODE, ENABLE_EXECLISTS);
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
    let low_memory = |host: &Host| (0..0x8000).step_by(8).map(|at| host.get64(at)).collect::<Vec<_>>();
    for at in (0..0x8000).step_by(8) {
        host.put64(at, 0x5a5a_0000_0000_5a5a + at);
    }
    let (before, image) = (low_memory(&host), (0..0x180).map(|n| host.get(context.image(n))).collect::<Vec<_>>());
    host.load(&[context]);
    host.work();
    assert_ne!(host.status() as u32 & ACTIVE, 0);
    assert!(low_memory(&host) == before, "GGTT address 0 must not be written");
    assert!((0..0x180).map(|n| host.get(context.image(n))).eq(image), "the image must only be read so far");
    host.put(host.data(0), 1);
    host.work();
    assert!(low_memory(&host) == before);
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
    assert_eq!(host.status(), u64::from(NOT_VALID), "after reset");
    let data = host.data(0);
    let first = host.with(0, &commands(&[&wait(data, 1), &[ARB_OFF], &wait(data, 2), &[ARB_ON, ARB_CHECK]]));
    let second = host.with(1, &wait(data, 3));
    host.submit(&[0, 0, 0, first.descriptor(), 0, second.descriptor()]);
    assert_eq!(host.status() >> 32, first.descriptor() >> 32);
    host.work();
    assert_eq!(host.status() as u32, ARBITRATION | element(3) | ACTIVE | VALID);
    host.put(data, 1);
    host.work();
    assert_eq!(host.status() as u32, element(3) | ACTIVE | VALID, "arbitration is off");
    host.submit(&[second.descriptor()]);
    assert_eq!(host.status() as u32 & !element(3), LOAD_PENDING | ACTIVE | VALID);
    host.submit(&[]);
    assert_eq!(
        host.status() as u32 & LOADS,
        LOAD_PENDING | LAST_IS_EMPTY | SEVERAL_PENDING,
        "two Loads, the last of them empty"
    );
    host.submit(&[0, second.descriptor()]);
    assert_eq!(host.status() as u32 & LOADS, LOAD_PENDING | SEVERAL_PENDING);
    host.put(data, 2);
    host.work();
    let low = ARBITRATION | element(1) | ACTIVE | VALID;
    assert_eq!(host.status(), second.descriptor() >> 32 << 32 | u64::from(low));
    host.put(data, 3);
    host.work();
    assert_eq!(host.status(), u64::from(NOT_VALID));
}

#[test]
fn elsp_writes_of_a_vf_are_ignored() {
    proves!(
        [V8_010, V8_013],
        "only the physical function can access the registers of a queue. A virtual function can access neither the \
        queue, ELSP nor Load by MMIO, and its writes of ELSP do not move the position of the next element"
    );
    let mut host = Host::new();
    let contexts = [0, 1].map(|n| host.with(n, &store(host.data(8 * n), 1)));
    host.card.enable_vfs(1);
    host.fill(&[contexts[0].descriptor(), 0, 0x1111_2222_3333_4440]);
    let queue = host.queue();
    let write = |offset: u32, data: &[u8]| {
        host.card.write_gttmmadr(Function::new(1).unwrap(), u64::from(host.mmio_base() + offset), data);
        host.work();
    };
    write(CONTROL, &LOAD.to_le_bytes());
    write(SQ, &[0; 8]);
    // The first two make an element, the third half of one.
    for _ in 0..3 {
        write(ELSP, &[1; 4]);
    }
    assert_eq!((host.get(host.data(0)), host.queue()), (0, queue.clone()));
    for offset in [SQ, ELSP, CONTROL] {
        let mut read = [1; 4];
        host.card.read_gttmmadr(Function::new(1).unwrap(), u64::from(host.mmio_base() + offset), &mut read);
        assert_eq!(read, [0; 4], "{offset:#x}");
    }
    assert!(host.switches().is_empty());
    let descriptor = contexts[1].descriptor();
    host.push_elsp(descriptor);
    assert_eq!(host.queue()[..2], [descriptor as u32, (descriptor >> 32) as u32]);
    assert_eq!(host.queue()[2..], queue[2..]);
}

#[test]
fn fused_off_engine_does_not_start() {
    proves!(V8_013, "a fused-off engine starts nothing");
    let host = Host::new();
    let context = host.with(0, &store(host.data(0), 1));
    let fused_off = XE_HPG.engines.find(EngineClass::VideoDecode, 7).unwrap();
    assert!(!host.card.engines().has(fused_off));
    let fused_off = host.beside(fused_off);
    fused_off.load(&[context]);
    fused_off.work();
    assert_eq!((fused_off.status() as u32 & ACTIVE, host.get(host.data(0))), (0, 0));
    // The same context runs on an engine of the card.
    host.load(&[context]);
    host.work();
    assert_eq!(host.get(host.data(0)), 1);
}
