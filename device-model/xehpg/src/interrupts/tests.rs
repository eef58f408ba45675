// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the tree with a driver's interrupt handler: step by step, with events at every step, and with threads that
//! raise random events.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

use arctic_fidelity::proves;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::sources::{Source, XE_HPG_INTERRUPTS};
use super::*;
use crate::generation::XE_HPG;
use crate::host::{Function, InterruptSink};
use crate::registers::InterruptRegister;
use crate::state::SaveState;
use crate::topology::{EngineClass, EngineId};

/// INTR_DATA_VALID of an identity register.
const DATA_VALID: u32 = 1 << 31;
/// The enable of DG1_MSTR_TILE_INTR.
const MASTER_ENABLE: u32 = 1 << 31;

/// An interrupt sink that counts MSIs.
#[derive(Default)]
struct Msis {
    sent: Mutex<usize>,
    changed: Condvar,
}

impl InterruptSink for Msis {
    fn raise(&self, function: Function, vector: u16) {
        assert_eq!((function, vector), (Function::PF, 0));
        *self.sent.lock().unwrap() += 1;
        self.changed.notify_all();
    }

    fn set_line(&self, _: Function, _: bool) {}
}

impl Msis {
    fn take(&self) -> usize {
        std::mem::take(&mut *self.sent.lock().unwrap())
    }
}

/// A register of the tree, by name.
#[derive(Clone, Copy)]
enum Reg {
    Master,
    Gt,
    Dw(u16),
    Selector(u16),
    Identity(u16),
}

fn read(tree: &Interrupts, reg: Reg) -> u32 {
    match reg {
        Reg::Master => tree.read(InterruptRegister::MasterTile, 0),
        Reg::Gt => tree.read(InterruptRegister::MasterGt, 0),
        Reg::Dw(bank) => tree.read(InterruptRegister::Bank, bank),
        Reg::Selector(bank) => tree.read(InterruptRegister::Selector, bank),
        Reg::Identity(bank) => tree.read(InterruptRegister::Identity, bank),
    }
}

fn write(tree: &Interrupts, reg: Reg, value: u32) {
    match reg {
        Reg::Master => tree.write(InterruptRegister::MasterTile, 0x19_0008, 0, value),
        Reg::Gt => tree.write(InterruptRegister::MasterGt, 0x19_0010, 0, value),
        Reg::Dw(bank) => tree.write(InterruptRegister::Bank, 0x19_0018 + u32::from(bank) * 4, bank, value),
        Reg::Selector(bank) => tree.write(InterruptRegister::Selector, 0x19_0070 + u32::from(bank) * 4, bank, value),
        Reg::Identity(bank) => tree.write(InterruptRegister::Identity, 0x19_0060 + u32::from(bank) * 4, bank, value),
    }
}

fn enable(tree: &Interrupts, register: u32, value: u32) {
    tree.write(InterruptRegister::Enable, register, 0, value);
}

fn mask(tree: &Interrupts, register: u32, value: u32) {
    tree.write(InterruptRegister::Mask, register, 0, value);
}

const ENABLES: [u32; 6] = [0x19_0030, 0x19_0034, 0x19_0038, 0x19_003c, 0x19_0044, 0x19_0048];
const MASKS: [u32; 13] = [
    0x19_00ec, 0x19_0090, 0x19_00a0, 0x19_00a8, 0x19_00ac, 0x19_00b0, 0x19_00b4, 0x19_00d0, 0x19_00d4, 0x19_00e8,
    0x19_00f4, 0x19_0100, 0x19_0104,
];

/// A tree with all sources enabled and unmasked and the master enabled.
fn open_tree() -> (Interrupts, Arc<Msis>) {
    let msis = Arc::new(Msis::default());
    let tree = Interrupts::new(Function::PF, &XE_HPG_INTERRUPTS, msis.clone());
    for register in ENABLES {
        enable(&tree, register, !0);
    }
    for register in MASKS {
        mask(&tree, register, 0);
    }
    write(&tree, Reg::Master, MASTER_ENABLE);
    (tree, msis)
}

fn engine(class: EngineClass, instance: u8) -> EngineId {
    XE_HPG.engines.find(class, instance).unwrap()
}

fn raise(tree: &Interrupts, source: usize, bits: u16) {
    tree.change(|tree| tree.raise(source, bits));
}

/// Equivalent of the driver's dg1_irq_handler (xe), one call of `step` per register access; passes identities to
/// `seen`.
fn handle(tree: &Interrupts, seen: &mut dyn FnMut(u32), step: &mut dyn FnMut()) -> bool {
    let mut access = |reg, value: Option<u32>| {
        step();
        match value {
            Some(value) => {
                write(tree, reg, value);
                0
            }
            None => read(tree, reg),
        }
    };
    access(Reg::Master, Some(0));
    let tile = access(Reg::Master, None);
    if tile == 0 {
        access(Reg::Master, Some(MASTER_ENABLE));
        return false;
    }
    assert_eq!(tile, 1, "with the master disabled only the tile's bit is set");
    access(Reg::Master, Some(tile));
    let gt = access(Reg::Gt, None);
    assert_eq!(gt & !3, 0);
    access(Reg::Gt, Some(gt));
    for bank in 0..2 {
        if gt & 1 << bank == 0 {
            continue;
        }
        let dw = access(Reg::Dw(bank), None);
        for bit in (0..32).filter(|bit| dw & 1 << bit != 0) {
            access(Reg::Selector(bank), Some(1 << bit));
            let identity = access(Reg::Identity(bank), None);
            assert_ne!(identity & DATA_VALID, 0, "identity of bank {bank} bit {bit} not valid");
            access(Reg::Identity(bank), Some(identity));
            seen(identity);
        }
        access(Reg::Dw(bank), Some(dw));
    }
    access(Reg::Master, Some(MASTER_ENABLE));
    true
}

/// Index of the source that is encoded in an identity.
fn named(identity: u32) -> usize {
    XE_HPG_INTERRUPTS
        .sources
        .iter()
        .position(|source| source.name() == identity & 0x03f7_0000)
        .expect("a known class and instance")
}

#[test]
fn each_source_has_its_place_and_name() {
    proves!(
        [V13_258, V13_260, V13_263, V13_267, V13_280],
        "every source has the documented bit, class and instance (contract B.10, K.3)"
    );
    let places: BTreeSet<_> = XE_HPG_INTERRUPTS.sources.iter().map(|source| (source.bank, source.bit)).collect();
    assert_eq!(places.len(), XE_HPG_INTERRUPTS.sources.len());
    for (number, source) in XE_HPG_INTERRUPTS.sources.iter().enumerate() {
        let (tree, msis) = open_tree();
        raise(&tree, number, USER_INTERRUPT | GUC2HOST);
        assert_eq!(msis.take(), 1);
        let bank = u16::from(source.bank);
        assert_eq!(read(&tree, Reg::Master), MASTER_ENABLE | 1);
        assert_eq!(read(&tree, Reg::Gt), 1 << bank);
        assert_eq!(read(&tree, Reg::Dw(bank)), 1 << source.bit);
        let mut identities = Vec::new();
        assert!(handle(&tree, &mut |identity| identities.push(identity), &mut || {}));
        assert_eq!(identities, [DATA_VALID | source.name() | 0x8001]);
        assert_eq!(read(&tree, Reg::Master), MASTER_ENABLE);
        assert_eq!(msis.take(), 0);
    }
    let identity = |source: &Source| source.name() | 1;
    assert_eq!(identity(&XE_HPG_INTERRUPTS.sources[engine(EngineClass::Copy, 0).index()]), 0x0003_0001);
    assert_eq!(identity(&XE_HPG_INTERRUPTS.sources[engine(EngineClass::Compute, 3).index()]), 0x0035_0001);
    assert_eq!(identity(&XE_HPG_INTERRUPTS.sources[XE_HPG_INTERRUPTS.guc]), 0x0004_0001);
    assert_eq!(identity(&XE_HPG_INTERRUPTS.sources[XE_HPG_INTERRUPTS.gsc]), 0x0064_0001);
}

#[test]
fn disabled_events_are_dropped_and_masked_ones_wait() {
    proves!(
        [V13_265, V13_266, V13_267],
        "a disabled event is dropped, a masked event stays pending until it is unmasked; only unmasked events set the \
        source's bit"
    );
    let (tree, msis) = open_tree();
    let rcs = engine(EngineClass::Render, 0);
    enable(&tree, 0x19_0030, u32::from(USER_INTERRUPT) << 16);
    tree.raise_engine(rcs, FLUSH_COMPLETE);
    tree.raise_engine(engine(EngineClass::Copy, 0), USER_INTERRUPT);
    enable(&tree, 0x19_0030, !0);
    assert_eq!((msis.take(), read(&tree, Reg::Gt)), (0, 0));
    mask(&tree, 0x19_0090, 0xffff_0000);
    tree.raise_engine(rcs, USER_INTERRUPT);
    assert_eq!((msis.take(), read(&tree, Reg::Gt)), (0, 0));
    mask(&tree, 0x19_0090, 0);
    assert_eq!((msis.take(), read(&tree, Reg::Gt)), (1, 1));
}

#[test]
fn a_host_takes_the_events_that_it_enables() {
    proves!(
        [V13_200, V13_272, V13_259],
        "a host that leaves scheduling to the GuC enables only events not related to scheduling; of the sixteen \
        events, only the enabled ones are reported to it (V13-259)"
    );
    for enabled in [0xffff, USER_INTERRUPT, !(CONTEXT_SWITCH | SEMAPHORE_WAIT), CONTEXT_SWITCH, 0x5555, 0] {
        let (tree, msis) = open_tree();
        enable(&tree, 0x19_0030, u32::from(enabled));
        tree.raise_engine(engine(EngineClass::Copy, 0), 0xffff);
        write(&tree, Reg::Selector(0), 1 << 15);
        let identity = if enabled == 0 { 0 } else { DATA_VALID | 3 << 16 | u32::from(enabled) };
        assert_eq!((read(&tree, Reg::Identity(0)), msis.take()), (identity, usize::from(enabled != 0)));
        assert_eq!(tree.enable_or_mask(0x19_0030) as u16, enabled);
    }
}

#[test]
fn engines_have_a_bit_in_two_vectors() {
    proves!(
        [V13_261, V13_267],
        "each engine has one bit in two 32-bit vectors; no engine shares a bit with a firmware unit"
    );
    let mut vectors = [0u32; 2];
    for id in XE_HPG.engines.all() {
        let (bank, bit) = XE_HPG.engines.info(id).interrupt;
        assert_eq!(vectors[usize::from(bank)] >> bit & 1, 0);
        vectors[usize::from(bank)] |= 1 << bit;
    }
    assert_eq!(vectors.map(u32::count_ones).iter().sum::<u32>() as usize, XE_HPG.engines.list().len());
    let firmware = [XE_HPG_INTERRUPTS.guc, XE_HPG_INTERRUPTS.gsc]
        .map(|unit| (usize::from(XE_HPG_INTERRUPTS.sources[unit].bank), XE_HPG_INTERRUPTS.sources[unit].bit));
    assert!(firmware.iter().all(|(bank, bit)| vectors[*bank] >> bit & 1 == 0));
}

#[test]
fn banks_are_cleared_after_the_service() {
    proves!(
        V13_271,
        "a bank's bits are cleared after their engines have been serviced, either one by one or together. If they \
        are cleared earlier, the engine's events are still pending and are shown again"
    );
    for at_once in [true, false] {
        let (tree, msis) = open_tree();
        let bits = [0u32, 4, 15];
        let engines = [engine(EngineClass::Render, 0), engine(EngineClass::Compute, 0), engine(EngineClass::Copy, 0)];
        engines.iter().for_each(|id| tree.raise_engine(*id, USER_INTERRUPT));
        let mut left = read(&tree, Reg::Dw(0));
        for bit in bits {
            write(&tree, Reg::Selector(0), 1 << bit);
            assert_ne!(read(&tree, Reg::Identity(0)) & DATA_VALID, 0);
            write(&tree, Reg::Identity(0), DATA_VALID);
            if !at_once {
                write(&tree, Reg::Dw(0), 1 << bit);
                left &= !(1 << bit);
                assert_eq!(read(&tree, Reg::Dw(0)), left);
            }
        }
        write(&tree, Reg::Dw(0), left);
        assert_eq!((read(&tree, Reg::Gt), msis.take()), (0, 1));
    }
    let (tree, msis) = open_tree();
    tree.raise_engine(engine(EngineClass::Copy, 0), USER_INTERRUPT);
    let shown = read(&tree, Reg::Dw(0));
    write(&tree, Reg::Dw(0), shown);
    assert_eq!((read(&tree, Reg::Dw(0)), msis.take()), (1 << 15, 2));
}

/// Contract B.10: the even instance of a pair has the upper half of the mask register, the odd one the lower.
#[test]
fn a_pair_of_instances_shares_a_mask_register() {
    let (tree, msis) = open_tree();
    mask(&tree, 0x19_00ac, 0xffff_0000);
    tree.raise_engine(engine(EngineClass::VideoDecode, 2), USER_INTERRUPT);
    assert_eq!(msis.take(), 0);
    tree.raise_engine(engine(EngineClass::VideoDecode, 3), USER_INTERRUPT);
    assert_eq!((msis.take(), read(&tree, Reg::Dw(1))), (1, 1 << 3));
}

#[test]
fn a_bank_is_double_buffered() {
    proves!(
        V13_268,
        "events raised between the read and the complete clear are hidden until then, and count as a new event \
        afterwards"
    );
    let (tree, msis) = open_tree();
    tree.raise_engine(engine(EngineClass::Render, 0), USER_INTERRUPT);
    tree.raise_engine(engine(EngineClass::Compute, 1), USER_INTERRUPT);
    assert_eq!(msis.take(), 1);
    assert_eq!(read(&tree, Reg::Dw(0)), 1 | 1 << 5);
    tree.raise_guc(GUC2HOST);
    assert_eq!(read(&tree, Reg::Dw(0)), 1 | 1 << 5);
    for bit in [0, 5] {
        write(&tree, Reg::Selector(0), 1 << bit);
        write(&tree, Reg::Identity(0), DATA_VALID);
    }
    write(&tree, Reg::Dw(0), 1);
    assert_eq!((read(&tree, Reg::Dw(0)), msis.take()), (1 << 5, 0));
    write(&tree, Reg::Dw(0), 1 << 5);
    assert_eq!((read(&tree, Reg::Dw(0)), msis.take()), (1 << 25, 1));
}

#[test]
fn the_selector_takes_one_shown_source() {
    proves!(
        [V13_269, V13_270],
        "only a one-hot selection of a shown source is valid; writing DATA_VALID clears identity and selector"
    );
    let (tree, _) = open_tree();
    tree.raise_engine(engine(EngineClass::Render, 0), USER_INTERRUPT);
    tree.raise_engine(engine(EngineClass::Copy, 0), USER_INTERRUPT);
    for wrong in [0, 1 << 1, 1 << 4, 1 | 1 << 15] {
        write(&tree, Reg::Selector(0), wrong);
        assert_eq!(read(&tree, Reg::Identity(0)), 0);
    }
    write(&tree, Reg::Selector(0), 1 << 15);
    assert_eq!(read(&tree, Reg::Identity(0)), DATA_VALID | 3 << 16 | 1);
    write(&tree, Reg::Identity(0), 1);
    assert_eq!(read(&tree, Reg::Selector(0)), 1 << 15);
    write(&tree, Reg::Identity(0), DATA_VALID);
    assert_eq!((read(&tree, Reg::Selector(0)), read(&tree, Reg::Identity(0))), (0, 0));
}

#[test]
fn an_identity_that_is_not_acknowledged_keeps_its_events() {
    proves!(V13_270, "events of an identity that was not acknowledged are shown again");
    let (tree, _) = open_tree();
    tree.raise_engine(engine(EngineClass::Render, 0), USER_INTERRUPT);
    write(&tree, Reg::Selector(0), 1);
    tree.raise_engine(engine(EngineClass::Render, 0), FLUSH_COMPLETE);
    write(&tree, Reg::Selector(0), 1);
    assert_eq!(read(&tree, Reg::Identity(0)), DATA_VALID | u32::from(USER_INTERRUPT | FLUSH_COMPLETE));
}

#[test]
fn one_msi_until_it_is_served() {
    proves!(
        [V13_264, V13_278, V13_283],
        "no MSI while the master is disabled, one when it is enabled with an event pending, none for further events \
        until that MSI is serviced"
    );
    let (tree, msis) = open_tree();
    for _ in 0..100 {
        tree.raise_engine(engine(EngineClass::Render, 0), USER_INTERRUPT);
        tree.raise_guc(GUC2HOST);
    }
    assert_eq!(msis.take(), 1);
    write(&tree, Reg::Master, 0);
    tree.raise_engine(engine(EngineClass::VideoDecode, 2), USER_INTERRUPT);
    assert_eq!((msis.take(), read(&tree, Reg::Master)), (0, 1));
    write(&tree, Reg::Master, MASTER_ENABLE);
    assert_eq!(msis.take(), 1);
    while handle(&tree, &mut |_| {}, &mut || {}) {}
    assert_eq!((msis.take(), read(&tree, Reg::Master)), (0, MASTER_ENABLE));
}

#[test]
fn an_event_at_any_step_of_the_handler_is_seen() {
    proves!(
        [V13_281, V13_283],
        "an event raised at any step of the host's handler is handled in this pass, or in a pass triggered by \
        another MSI"
    );
    for late in 0..XE_HPG_INTERRUPTS.sources.len() {
        for at in 0.. {
            let (tree, msis) = open_tree();
            raise(&tree, 0, USER_INTERRUPT);
            raise(&tree, engine(EngineClass::VideoDecode, 2).index(), USER_INTERRUPT);
            let mut steps = 0;
            let mut seen = 0;
            let mut passes = 0;
            while msis.take() > 0 {
                passes += 1;
                assert!(passes <= 3, "interrupt storm");
                handle(
                    &tree,
                    &mut |identity| {
                        if named(identity) == late && identity & u32::from(FLUSH_COMPLETE) != 0 {
                            seen += 1;
                        }
                    },
                    &mut || {
                        if steps == at {
                            raise(&tree, late, FLUSH_COMPLETE);
                        }
                        steps += 1;
                    },
                );
            }
            if at >= steps {
                break;
            }
            assert_eq!(seen, 1, "source {late} raised before step {at}");
            assert_eq!(read(&tree, Reg::Master), MASTER_ENABLE);
        }
    }
}

#[test]
fn no_wakeup_is_lost_between_threads() {
    proves!(
        V13_281,
        "threads raise random events while a handler thread services each MSI; afterwards every event has been \
        handled"
    );
    const THREADS: usize = 4;
    const RAISES: u64 = 4000;
    let (tree, msis) = open_tree();
    let tree = Arc::new(tree);
    let raised: Arc<Vec<[AtomicBool; 16]>> =
        Arc::new(XE_HPG_INTERRUPTS.sources.iter().map(|_| Default::default()).collect());
    let running = Arc::new(AtomicUsize::new(THREADS));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (tree, raised, running) = (tree.clone(), raised.clone(), running.clone());
            std::thread::spawn(move || {
                let mut random = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(thread as u64 + 1);
                for _ in 0..RAISES {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let source = (random >> 40) as usize % XE_HPG_INTERRUPTS.sources.len();
                    let bit = (random >> 32) as usize % 16;
                    raised[source][bit].store(true, Ordering::SeqCst);
                    raise(&tree, source, 1 << bit);
                    if random >> 60 == 0 {
                        std::thread::yield_now();
                    }
                }
                running.fetch_sub(1, Ordering::SeqCst);
            })
        })
        .collect();
    let mut served = 0;
    loop {
        let done = running.load(Ordering::SeqCst) == 0;
        if msis.take() > 0 {
            handle(
                &tree,
                &mut |identity| {
                    for (bit, flag) in raised[named(identity)].iter().enumerate() {
                        if identity & 1 << bit != 0 {
                            flag.store(false, Ordering::SeqCst);
                        }
                    }
                },
                &mut || {},
            );
            served += 1;
        } else if done {
            break;
        } else {
            let sent = msis.sent.lock().unwrap();
            drop(msis.changed.wait_timeout_while(sent, Duration::from_millis(1), |sent| *sent == 0).unwrap());
        }
    }
    for thread in threads {
        thread.join().unwrap();
    }
    // The last raise and its MSI happen before `running` becomes 0, so checking the flags once is sufficient.
    for (source, flags) in raised.iter().enumerate() {
        assert!(flags.iter().all(|flag| !flag.load(Ordering::SeqCst)), "an event of source {source} was lost");
    }
    assert!(served > 0);
    assert_eq!(read(&tree, Reg::Master), MASTER_ENABLE);
}

/// Changes the tree in one of several ways, chosen by `act`.
fn act(tree: &Interrupts, (act, value, bits): (u8, u32, u16)) {
    let source = usize::from(bits) % XE_HPG_INTERRUPTS.sources.len();
    let Source { bank: of, bit, enable: enables, mask: masks, .. } = XE_HPG_INTERRUPTS.sources[source];
    let bank = bits & 1;
    match act % 8 {
        0 => enable(tree, enables.register, value),
        1 => mask(tree, masks.register, value),
        2 | 3 => raise(tree, source, value as u16),
        4 => drop(read(tree, Reg::Dw(bank))),
        5 => write(tree, Reg::Selector(of.into()), 1 << bit),
        6 => write(tree, Reg::Dw(bank), value),
        _ => write(tree, Reg::Master, value),
    }
}

proptest! {
    /// A tree in any state is saved, and restored in a tree in any other state without an MSI. It is then saved the
    /// same again, and behaves the same.
    #[test]
    fn any_state_is_saved_and_restored(
        before in vec(any::<(u8, u32, u16)>(), 0..60),
        others in vec(any::<(u8, u32, u16)>(), 0..60),
        after in vec(any::<(u8, u32, u16)>(), 0..60),
    ) {
        let [(tree, msis), (other, other_msis)] = [(); 2].map(|()| open_tree());
        before.into_iter().for_each(|change| act(&tree, change));
        others.into_iter().for_each(|change| act(&other, change));
        let saved = (&tree).save().unwrap();
        msis.take();
        other_msis.take();
        (&other).restore(&saved).unwrap();
        prop_assert_eq!((&other).save().unwrap(), saved);
        prop_assert_eq!(other_msis.take(), 0);
        for change in after {
            act(&tree, change);
            act(&other, change);
            prop_assert_eq!(msis.take(), other_msis.take());
        }
        prop_assert_eq!((&tree).save(), (&other).save());
    }
}
