// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Virtual functions from the perspective of the VF and PF drivers: quotas, mailbox, CT buffers, contexts, relay.

mod management;
mod migration;
mod reach;
mod resets;

use arctic_fidelity::proves;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use super::turns::{GLOBAL, RAM};
use super::*;
use crate::execlist::descriptor::Descriptor;
use crate::memory::Tlb;
use crate::profile::provision::Quota;

const VF1: Vf = Vf(1);
const VF2: Vf = Vf(2);
const SUCCESS: u32 = 0xf000_0000;
const FAILURE: u32 = 0xe000_0000;
/// Number of context ids of each VF in these tests.
const CONTEXTS: u32 = 16;
const VF_LAYOUT: Layout =
    Layout { ctb: 0, firmware: 0, ads: 0, images: 0x8_0000, rings: 0x4_0000, batches: 0x4_0000, members: 1 };

/// A VF, with the addresses in its GGTT range.
#[derive(Clone, Copy)]
struct Vf(u8);

impl Vf {
    fn function(self) -> Function {
        numbered(self.0)
    }

    fn base(self) -> u64 {
        GLOBAL + u64::from(self.0) * RAM as u64
    }

    /// Returns the addresses of the GuC's source byte and status bytes for the memory-based interrupt (contract C.3).
    fn memirq(self) -> (u64, u64) {
        (self.base() + 0x3000 + 0x400 + 25, self.base() + 0x3000 + 25 * 16)
    }

    fn image(self, context: u32) -> u64 {
        self.base() + VF_LAYOUT.image(context, 0)
    }
}

/// PF and VF drivers that share one GuC.
struct Rig {
    host: Host,
    /// The functions' drivers; the PF's is in the host.
    drivers: [DriverState; 3],
    messages: u64,
}

/// The driver of a VF. Offsets are relative to the VF's GGTT range.
struct VfDriver<'r> {
    rig: &'r mut Rig,
    vf: Vf,
}

impl arctic_guc_driver::Access for VfDriver<'_> {
    fn set(&self, register: u32, value: u32) {
        self.rig.host.gt.set_mailbox_dword(self.vf.function(), (register - ct::MAILBOX) as usize / 4, value);
    }

    fn get(&self, register: u32) -> u32 {
        self.rig.host.gt.mailbox_dword(self.vf.function(), (register - ct::MAILBOX) as usize / 4)
    }

    fn poke(&self, at: u64, value: u32) {
        self.rig.poke(self.vf, self.vf.base() + at, value);
    }

    fn peek(&self, at: u64) -> u32 {
        self.rig.peek(self.vf, self.vf.base() + at)
    }
}

impl GucDriver for VfDriver<'_> {
    fn access(&self) -> &dyn arctic_guc_driver::Access {
        self
    }

    fn state(&self) -> &DriverState {
        &self.rig.drivers[usize::from(self.vf.0)]
    }

    fn state_mut(&mut self) -> &mut DriverState {
        &mut self.rig.drivers[usize::from(self.vf.0)]
    }

    fn notify(&mut self) {
        let Host { gt, engines, guc, .. } = &mut self.rig.host;
        guc.mailbox(gt, engines, &gt.memory.views(), self.vf.function());
    }
}

impl Rig {
    fn new(mut host: Host) -> Self {
        host.deadline = None;
        let rig = Rig { host, drivers: [0, 1, 2].map(|n| DriverState::new(Vf(n).base(), VF_LAYOUT, 0)), messages: 0 };
        [VF1, VF2].iter().for_each(|vf| rig.map_guest_memory(*vf));
        rig
    }

    /// Maps the VF's guest memory to its GGTT range, as PF and VF do.
    fn map_guest_memory(&self, vf: Vf) {
        for at in (0..RAM as u64).step_by(4096) {
            let entry = GgttEntry::from(at | u64::from(vf.0) << 2 | 1);
            self.host.gt.memory.ggtt().set_entry((vf.base() + at) >> 12, entry);
        }
    }

    /// The PF driver is running; the VFs are not configured.
    fn up() -> Self {
        Rig::new(Host::up())
    }

    /// Both VFs have their quotas.
    fn provisioned() -> Self {
        let mut rig = Rig::up();
        for vf in [VF1, VF2] {
            assert_eq!(rig.give(vf), SUCCESS | 6);
        }
        rig
    }

    /// Both VFs have their CT buffers enabled.
    fn talking() -> Self {
        let mut rig = Rig::provisioned();
        for vf in [VF1, VF2] {
            rig.connect(vf);
        }
        rig
    }

    /// Sends PF2GUC_UPDATE_VF_CFG with this list.
    fn configure(&mut self, vfid: u32, list: &[u32]) -> u32 {
        for (n, value) in (0u64..).zip(list) {
            self.host.poke(SCRATCH + n * 4, *value);
        }
        self.host.tracked(0x5503, &[vfid, SCRATCH as u32, 0, list.len() as u32])
    }

    fn give(&mut self, vf: Vf) -> u32 {
        let (start, first) = (vf.base() as u32, 100 + u32::from(vf.0) * CONTEXTS);
        let list = [
            vec![0x0001_0002, start, 0],
            vec![0x0002_0002, RAM as u32, 0],
            vec![0x8a0b_0001, first, 0x0004_0001, CONTEXTS],
            vec![0x8a0a_0001, 8 * u32::from(vf.0), 0x0006_0001, 8],
        ];
        self.configure(vf.0.into(), &list.concat())
    }

    fn access<T>(&self, vf: Vf, act: impl FnOnce(&mut crate::memory::Gam<'_>) -> T) -> T {
        let views = self.host.gt.memory.views();
        act(&mut self.host.gt.memory.gam(vf.function(), &views, &mut Tlb::default()))
    }

    fn poke(&self, vf: Vf, at: u64, value: u32) {
        self.access(vf, |gam| gam.write_u32(Space::Ggtt, at, value)).unwrap();
    }

    fn peek(&self, vf: Vf, at: u64) -> u32 {
        self.access(vf, |gam| gam.read_u32(Space::Ggtt, at)).unwrap()
    }

    fn byte(&self, vf: Vf, at: u64) -> u8 {
        let mut byte = [0];
        self.access(vf, |gam| gam.read(Space::Ggtt, at, &mut byte)).unwrap();
        byte[0]
    }

    fn driver(&mut self, vf: Vf) -> VfDriver<'_> {
        VfDriver { rig: self, vf }
    }

    /// Sends a request through the VF's mailbox; returns the mailbox's contents.
    fn mail(&mut self, vf: Vf, message: &[u32]) -> [u32; 4] {
        self.driver(vf).mail(message)
    }

    /// Connects the VF as its driver does: contract C.1 steps 1 and 6b.
    fn connect(&mut self, vf: Vf) {
        // An FLR discards the entries.
        self.map_guest_memory(vf);
        let mut driver = self.driver(vf);
        assert_eq!(driver.mail(&[actions::VF_RESET])[0], SUCCESS);
        assert_eq!(driver.mail(&[actions::MATCH_VERSION, 0x0001_0100])[..2], [SUCCESS, 0x0001_1b00]);
        driver.write_words(0, &[0; 0x1000]);
        let (source, status) = vf.memirq();
        for (key, value) in [(ct::self_cfg::INTERRUPT_SOURCE, source), (ct::self_cfg::INTERRUPT_STATUS, status)] {
            driver.must(&ct::configure(key, value), SUCCESS | 1);
        }
        driver.enable_rings(vf.base() + ct::G2H);
    }

    /// Writes a message of an HXG type (0 a request, 1 an event, 2 a fast request) into the VF's ring.
    fn send_typed(&mut self, vf: Vf, kind: u32, code: u32, payload: &[u32]) {
        let mut message = if kind == 0 { ct::request(0x12, code, payload) } else { ct::fast_request(code, payload) };
        message[1] = kind << 28 | code;
        self.driver(vf).put(&message);
    }

    /// Runs a GuC step after notifications from all functions. Checks that VFs get no register-based interrupts.
    fn step(&mut self) {
        let step = self.host.guc.step(&self.host.gt, &self.host.engines, 0b111);
        assert_eq!(step.interrupts & !1, 0, "VFs have memory-based interrupts");
        self.host.deadline = step.next;
        self.messages = step.messages;
    }

    /// Reads the messages in the VF's G2H ring.
    fn received(&mut self, vf: Vf) -> Vec<Vec<u32>> {
        let mut driver = self.driver(vf);
        std::iter::from_fn(|| driver.take()).collect()
    }

    /// Sends a tracked request and returns its only reply.
    fn request(&mut self, vf: Vf, code: u32, payload: &[u32]) -> u32 {
        self.send_typed(vf, 0, code, payload);
        self.step();
        let replies = self.received(vf);
        assert_eq!(replies.len(), 1, "{replies:x?}");
        assert_eq!(replies[0][0], 0x0012_0001);
        replies[0][1]
    }

    fn control(&mut self, vf: Vf, command: u32) -> u32 {
        self.host.tracked(0x5506, &[vf.0.into(), command])
    }

    /// Registers a context by an HXG EVENT, as VF drivers do, gives it work and enables it.
    fn start(&mut self, vf: Vf, id: u32, class: EngineClass) {
        self.start_as(vf, id, class, 0);
    }

    /// As [`Rig::start`], with `high` as the upper dword of the descriptor.
    fn start_as(&mut self, vf: Vf, id: u32, class: EngineClass, high: u32) {
        let image = vf.image(id) as u32 | 0x119;
        self.send_typed(vf, 1, 0x4502, &[1, id, u32::from(class.guc()), 1, 0, 0, 0, 0, 0, image, high]);
        self.poke(vf, vf.image(id) + 0x1000 + 7 * 4, 64);
        self.send_typed(vf, 2, 0x1001, &[id, 1]);
        self.step();
        assert_eq!(self.received(vf), [[3, 0x9000_1002, id, 1]]);
    }

    /// Performs an FLR of the function as the card does.
    fn reset_function(&mut self, vf: Vf) {
        let Host { gt, engines, guc, .. } = &mut self.host;
        match guc.function_reset(gt, engines, vf.function()) {
            FunctionReset::Led => {}
            FunctionReset::Unannounced => {
                gt.memory.empty(vf.function(), || false);
                assert!(guc.announce_reset(gt, engines, vf.function()));
            }
            FunctionReset::Unled => {
                gt.memory.clear_vf(vf.function());
                guc.finish_reset(gt, engines, vf.function());
            }
        }
    }
}

#[test]
fn bootstrap() {
    proves!([GUC_024, GUC_031], "values of each key, and versions that match");
    proves!(
        V13_036,
        "version, then the VF's configuration as values with their number of dwords (contract C.1 steps 1 and 2)"
    );
    let mut rig = Rig::provisioned();
    rig.connect(VF1);
    let base = VF1.base() as u32;
    let answers = [
        (1, [SUCCESS | 2, base, 0, 0]),
        (2, [SUCCESS | 2, RAM as u32, 0, 0]),
        (3, [SUCCESS | 2, 0, 0, 0]),
        (4, [SUCCESS | 1, CONTEXTS, 0, 0]),
        (6, [SUCCESS | 1, 8, 0, 0]),
        (0x3001, [SUCCESS | 1, 0, 0, 0]),
        (0x7777, [FAILURE | 0x105, 0, 0, 0]),
    ];
    for (key, answer) in answers {
        assert_eq!(rig.mail(VF1, &[0x5509, key]), answer, "key {key:#x}");
    }
    for wanted in [0, 0x0001_0000, 0x0001_1b00] {
        assert_eq!(rig.mail(VF1, &[0x5500, wanted])[..2], [SUCCESS, 0x0001_1b00], "{wanted:#x}");
    }
    for wanted in [0x0001_1c00, 0x0002_0000, 0x0101_0100] {
        assert_eq!(rig.mail(VF1, &[0x5500, wanted])[..2], [FAILURE | 0xb, 0], "{wanted:#x}");
    }
    assert_ne!(rig.mail(VF1, &[0x4100])[0] & 0xfff_ffff, 0, "size of the hardware configuration");
    assert_eq!(rig.host.mail(&[0x5500, 0x0001_0100])[0], FAILURE | 0x302, "not permitted to the PF");
    assert_eq!(rig.host.mail(&[0x5509, 1])[0], FAILURE | 0x302);
}

#[test]
fn a_vf_has_the_hardware_configuration_of_the_card() {
    proves!(EU_094, "the size of the hardware configuration is the same for a VF as for the PF");
    let mut rig = Rig::provisioned();
    rig.connect(VF1);
    let size = rig.host.mail(&[0x4100, 0, 0, 0])[0];
    assert_eq!((rig.mail(VF1, &[0x4100])[0], size >> 28), (size, 0xf));
}

/// Contract D.4, K.5: a VF without a configuration cannot query it, and a VF's buffers must be in its own GGTT range.
#[test]
fn vf_queries_and_buffers_require_its_configuration() {
    let mut rig = Rig::up();
    assert_eq!(rig.mail(VF1, &[0x5509, 1])[0], FAILURE | 0xd);
    assert_eq!(rig.give(VF1), SUCCESS | 6);
    let elsewhere = [CTB, VF2.base(), VF1.base() + RAM as u64];
    for address in elsewhere {
        for key in [0x0900_0002, 0x0901_0002, 0x0902_0002, 0x0903_0002] {
            assert_eq!(rig.mail(VF1, &[0x0508, key, address as u32, 0])[0], FAILURE | 0x80, "{address:#x}");
        }
        assert_eq!(rig.mail(VF1, &[0x4100, address as u32, 0, 0x1000])[0], FAILURE | 0x80, "{address:#x}");
    }
    rig.connect(VF1);
    // The ring extends beyond the VF's GGTT range.
    let last = VF1.base() + RAM as u64 - 0x1000;
    assert_eq!(rig.mail(VF1, &[0x0508, 0x0902_0002, last as u32, 0])[0], SUCCESS | 1);
    assert_eq!(rig.mail(VF1, &[0x0508, 0x0904_0001, 0x2000, 0])[0], SUCCESS | 1);
    assert_eq!(rig.mail(VF1, &[0x4509, 1])[0], FAILURE | 0x303);
    // The configuration is cleared.
    assert_eq!(rig.host.tracked(0x5503, &[1, 0, 0, 0]), SUCCESS);
    assert_eq!(rig.mail(VF1, &[0x5509, 1])[0], FAILURE | 0xd);
}

/// Contract D.4: rejects unknown VFs, invalid lists, unknown keys, and resources assigned to another VF.
#[test]
fn configurations_are_checked() {
    proves!([GUC_004, GUC_021, GUC_022, GUC_023], "requests of the PF that fail");
    let mut rig = Rig::provisioned();
    assert_eq!(rig.configure(64, &[0x8a01_0001, 16]), FAILURE | 0xc);
    assert_eq!(rig.configure(0xffff_ffff, &[0x8a01_0001, 16]), FAILURE | 0xc);
    assert_eq!(rig.configure(1, &[0x8a01_0002, 16]), FAILURE | 0x103);
    assert_eq!(rig.configure(1, &[0x1234_0001, 16]), FAILURE | 0x105);
    assert_eq!(rig.configure(1, &[0x8a0b_0001, 100 + 2 * CONTEXTS]), FAILURE | 0x50, "VF 2 has these contexts");
    assert_eq!(rig.configure(1, &[0x0003_0002, 1 << 20, 0]), FAILURE | 0x50, "not a multiple of the frame size");
    assert_eq!(rig.configure(1, &[0x0003_0002, 0, 1]), FAILURE | 0x50, "more than the card has");
    assert_eq!(rig.host.tracked(0x5503, &[1, SCRATCH as u32, 0, 513]), FAILURE | 0x102);
    assert_eq!(rig.host.tracked(0x5503, &[1, SCRATCH as u32, 1, 2]), FAILURE | 0x80);
    assert_eq!(rig.configure(0, &[0x8a01_0001, 16, 0x8a02_0001, 16_000]), SUCCESS | 2, "the PF's own configuration");
    assert_eq!(rig.mail(VF1, &[0x5509, 4])[1], CONTEXTS, "a rejected list changes nothing");
}

#[test]
fn memory_interrupt_of_a_vf() {
    proves!(
        [V13_273, V13_274, V13_275, V13_276],
        "replies are sent to the VF's own ring. Then status byte 15 and the source byte are written, and the MSI is \
        sent (contract C.3)"
    );
    let mut rig = Rig::talking();
    let (source, status) = VF1.memirq();
    rig.send_typed(VF1, 0, 0x0509, &[0x1001_0002, 80, 20]);
    rig.step();
    assert_eq!(rig.messages, 0b10);
    assert_eq!((rig.byte(VF1, source), rig.byte(VF1, status + 15), rig.byte(VF1, status)), (0xff, 0xff, 0));
    assert_eq!(rig.received(VF1), [[0x0012_0001, SUCCESS | 1]]);
    assert!(rig.received(VF2).is_empty());
    assert_eq!(rig.byte(VF2, VF2.memirq().0), 0);
    rig.step();
    assert_eq!(rig.messages, 0, "no new message, no interrupt");
}

/// Contract B.6, D.4: PF-only actions of VFs, VF-only actions of the PF, and unknown actions are rejected.
#[test]
fn pf_actions_of_vfs_are_rejected() {
    proves!(GUC_030, "each action of the PF, one of VFs, an unknown one");
    let mut rig = Rig::talking();
    let physical: [(u32, usize); 9] = [
        (0x5503, 4),
        (0x5502, 3),
        (0x5506, 2),
        (0x5101, 3),
        (0x7002, 2),
        (0x3003, 1),
        (0x3004, 1),
        (0x550c, 4),
        (0x550d, 5),
    ];
    for (code, len) in physical {
        assert_eq!(rig.request(VF1, code, &vec![0; len]), FAILURE | 0x302, "{code:#x}");
    }
    assert_eq!(rig.request(VF1, 0x1234, &[]), FAILURE | 0x30);
    assert_eq!(rig.host.tracked(0x5103, &[1, 0x0000_0001]), FAILURE | 0x302);
    assert_eq!(rig.host.guc.function(numbered(1)).unwrap().counters.failed, 9);
    assert_eq!(rig.host.guc.function(numbered(2)).unwrap().counters.failed, 0);
}

#[test]
fn vf_context_ids_are_local() {
    proves!(GUC_025, "IDs from the number of contexts on");
    proves!(
        [V13_036, V13_037],
        "a VF's context ids start at 0, and it cannot address contexts of other functions. Messages to the VF \
        contain its own ids. The engine gets the VF number from the GuC (contract C.5, F.1)"
    );
    let mut rig = Rig::talking();
    rig.start(VF1, 0, EngineClass::Copy);
    rig.start(VF2, 0, EngineClass::VideoDecode);
    let load = |rig: &Rig, engine| {
        let load = rig.host.engines.lock(engine_named(engine)).loaded().unwrap();
        (load.function, load.context & 0xffff)
    };
    assert_eq!(load(&rig, "bcs0"), (numbered(1), 100 + CONTEXTS));
    assert_eq!(load(&rig, "vcs0"), (numbered(2), 100 + 2 * CONTEXTS));
    for (code, payload) in [(0x1000, [CONTEXTS].as_slice()), (0x1001, &[CONTEXTS, 0]), (0x4503, &[!0])] {
        assert_eq!(rig.request(VF1, code, payload), FAILURE | 0x61, "{code:#x}");
    }
    let image = VF1.image(0) as u32 | 0x119;
    let beyond = [1, CONTEXTS, 3, 1, 0, 0, 0, 0, 0, image, 0];
    assert_eq!(rig.request(VF1, 0x4502, &beyond), FAILURE | 0x61);
    assert_eq!(rig.request(VF1, 0x1000, &[1]), FAILURE | 0x100, "a valid id, but not registered");
    rig.send_typed(VF1, 2, 0x1001, &[0, 0]);
    rig.step();
    rig.host.end("bcs0", Outcome::Preempted);
    rig.step();
    assert_eq!(rig.received(VF1), [[3, 0x9000_1002, 0, 0]]);
    rig.send_typed(VF1, 2, 0x4503, &[0]);
    rig.step();
    assert_eq!(rig.received(VF1), [[2, 0x9000_4600, 0]]);
    assert!(rig.received(VF2).is_empty());
    assert!(rig.host.received().is_empty(), "the PF gets no messages about a VF's contexts");
}

/// Contract C.5: the response to a VF's TLB invalidation is sent to that VF.
#[test]
fn invalidations_are_answered_to_the_requester() {
    let mut rig = Rig::talking();
    rig.send_typed(VF1, 2, 0x7000, &[0x77, 0]);
    rig.send_typed(VF2, 2, 0x7000, &[0x88, 0]);
    rig.host.fast(0x7002, &[0x99, 0]);
    rig.step();
    assert_eq!(rig.received(VF1), [[2, 0x9000_7001, 0x77]]);
    assert_eq!(rig.received(VF2), [[2, 0x9000_7001, 0x88]]);
    assert_eq!(rig.host.received(), [[2, 0x9000_7001, 0x99]]);
}

/// Contract B.6, C.5: a response waits for a step that uses memory of the requester, but not for a step of another
/// function. The PF also waits for steps of VFs if it invalidates the GGTT. So it is with steps of every unit.
#[test]
fn invalidations_wait_for_steps_of_their_function() {
    proves!(EU_071, "an invalidation is acknowledged after the steps that may use the old translations have ended");
    const FULL: u32 = 0x8000_0000;
    const GGTT: u32 = 0x8000_0003;
    let mut rig = Rig::talking();
    let pf = |rig: &mut Rig, operation| rig.host.fast(0x7000, &[1, operation]);
    let vf = |rig: &mut Rig, operation| rig.send_typed(VF1, 2, 0x7000, &[1, operation]);
    type Send<'s> = &'s dyn Fn(&mut Rig, u32);
    let cases: [(Send<'_>, u32, Function, bool); 8] = [
        (&pf, FULL, Function::PF, true),
        (&pf, FULL, VF1.function(), false),
        (&pf, GGTT, Function::PF, true),
        (&pf, GGTT, VF1.function(), true),
        (&vf, FULL, VF1.function(), true),
        (&vf, FULL, VF2.function(), false),
        (&vf, GGTT, VF1.function(), true),
        (&vf, GGTT, Function::PF, false),
    ];
    let units = rig.host.guc.units().clone();
    let [engine, further] = [units.iter().next().unwrap(), units.iter().last().unwrap()];
    let cases = cases.into_iter().enumerate();
    for ((n, (send, operation, used, waits)), unit) in cases.flat_map(|case| [(case, engine), (case, further)]) {
        send(&mut rig, operation);
        let Host { gt, engines, guc, .. } = &mut rig.host;
        let (gt, engines) = (&*gt, &*engines);
        let ended = AtomicBool::new(false);
        let (begun, has_begun) = mpsc::channel();
        let (end, may_end) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let ended = &ended;
            scope.spawn(move || {
                let _step = unit.hold();
                let (views, mut tlb) = (gt.memory.step_views(unit.id()), Tlb::default());
                gt.memory.gam(used, &views, &mut tlb);
                begun.send(()).unwrap();
                let _ = may_end.recv_timeout(Duration::from_millis(if waits { 50 } else { 10_000 }));
                ended.store(true, Ordering::SeqCst);
            });
            has_begun.recv().unwrap();
            guc.step(gt, engines, 0b111);
            assert_eq!(ended.load(Ordering::SeqCst), waits, "case {n}, {:?}", unit.id());
            drop(end);
        });
    }
}

/// Contract C.4: messages between the drivers are relayed with their ids, up to the length that fits into the PF's
/// event.
#[test]
fn relay() {
    proves!(
        [GUC_010, GUC_011, GUC_012, GUC_013],
        "messages in both directions, the longest, and those without a receiver"
    );
    let mut rig = Rig::talking();
    let long: Vec<u32> = (0..252).collect();
    let mut payload = vec![7];
    payload.extend(&long);
    assert_eq!(rig.request(VF2, 0x5103, &payload), SUCCESS);
    let got = rig.host.received();
    assert_eq!(got[0][..4], [255, 0x9000_5100, 2, 7]);
    assert_eq!(got[0][4..], long);
    payload.push(0);
    assert_eq!(rig.request(VF2, 0x5103, &payload), FAILURE | 0x102);
    assert_eq!(rig.request(VF2, 0x5103, &[7]), FAILURE | 0x102, "no message");
    assert_eq!(rig.host.tracked(0x5101, &[1, 9, 0x7000_0000, 0x0001_0000]), SUCCESS);
    assert_eq!(rig.received(VF1), [[4, 0x9000_5102, 9, 0x7000_0000, 0x0001_0000]]);
    assert!(rig.received(VF2).is_empty());
    assert_eq!(rig.host.tracked(0x5101, &[3, 9, 0]), FAILURE | 0x304, "VF 3 has no rings");
    assert_eq!(rig.host.tracked(0x5101, &[64, 9, 0]), FAILURE | 0xc);
}

/// The number of messages queued for a VF that does not empty its ring is bounded, and its requests are not served
/// meanwhile.
#[test]
fn messages_for_a_vf_that_reads_none_are_bounded() {
    proves!(GUC_013, "messages fail when many wait");
    let mut rig = Rig::talking();
    let long = [0; 252];
    let mut refused = 0;
    for _ in 0..200 {
        let mut payload = vec![1, 9];
        payload.extend(long);
        refused += u32::from(rig.host.tracked(0x5101, &payload) == FAILURE | 0x301);
    }
    assert!(refused > 100, "{refused}");
    rig.send_typed(VF1, 0, 0x0509, &[0x1001_0002, 80, 20]);
    rig.step();
    assert_eq!(rig.host.guc.function(numbered(1)).unwrap().counters.done, 11, "the mailbox only");
    assert!(rig.host.deadline.is_some(), "the GuC retries");
}

/// Contract D.10, isolation of functions: a VF that sends many requests does not delay the others.
#[test]
fn request_storm_does_not_delay_other_functions() {
    let mut rig = Rig::talking();
    for _ in 0..300 {
        rig.send_typed(VF1, 1, 0x0030, &[0]);
    }
    assert_eq!(rig.request(VF2, 0x0509, &[0x1001_0002, 80, 20]), SUCCESS | 1, "in the first step");
    assert_eq!(rig.host.tracked(0x0509, &[0x1001_0002, 80, 20]), SUCCESS | 1);
    assert!(rig.host.guc.function(numbered(1)).unwrap().counters.done < 100);
    assert_eq!(rig.host.deadline, Some(rig.host.clock.now()), "the next step is due immediately");
    for _ in 0..20 {
        rig.step();
    }
    assert_eq!(rig.host.guc.function(numbered(1)).unwrap().counters.done, 311);
}

/// Contract C.1 step 1a: VF_RESET drops the state that the VF has set up, but keeps its configuration.
#[test]
fn vf_reset_keeps_the_quotas() {
    let mut rig = Rig::talking();
    rig.start(VF1, 3, EngineClass::Copy);
    rig.start(VF2, 0, EngineClass::VideoDecode);
    assert_eq!(rig.mail(VF1, &[0x5507])[0], SUCCESS);
    assert_eq!((rig.host.runs("bcs0"), rig.host.runs("vcs0")), (None, Some(100 + 2 * CONTEXTS)));
    rig.send_typed(VF1, 0, 0x0509, &[0x1001_0002, 80, 20]);
    rig.step();
    assert_eq!(rig.peek(VF1, VF1.base() + 0x804), rig.drivers[1].rings.head(), "its rings are disabled");
    assert_eq!(rig.mail(VF1, &[0x5509, 4])[1], CONTEXTS);
    rig.connect(VF1);
    rig.start(VF1, 3, EngineClass::Copy);
}

#[test]
fn descriptors_have_the_number_of_the_registering_function() {
    proves!(
        V13_037,
        "a VF's driver cannot choose the VF number of its contexts. The GuC takes the number from the function that \
        registers the context and ignores the upper dword of the descriptor, in which the driver may write any \
        number. The descriptor that the engine receives has the number in bits 37:32"
    );
    for claimed in [0, 2, 0x3f, !0] {
        let mut rig = Rig::talking();
        rig.start_as(VF1, 0, EngineClass::Copy, claimed);
        rig.start_as(VF2, 0, EngineClass::VideoDecode, 1);
        rig.start_as(VF1, 3, EngineClass::Compute, claimed);
        for (engine, vf, id) in [("bcs0", VF1, 0), ("vcs0", VF2, 0), ("ccs0", VF1, 3)] {
            let load = rig.host.engines.lock(engine_named(engine)).loaded().unwrap();
            let descriptor = Descriptor::from(load.descriptor);
            assert_eq!((load.function, descriptor.function()), (vf.function(), vf.0), "{engine} {claimed:#x}");
            assert_eq!((descriptor.software_id(), descriptor.lrca()), (id, vf.image(id.into()) as u32), "{engine}");
        }
    }
}
