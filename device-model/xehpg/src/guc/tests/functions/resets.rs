// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! All orders of FLRs, accesses by the VF, the card's release of memory, and the PF driver's messages up to a depth,
//! against rules that do not depend on the card's state machine:
//! * a VF is served only if its memory has been released since its last FLR, and if the PF driver has then completed an
//!   FLR;
//! * while it is served, nothing is readable that was written before its last FLR;
//! * whatever happened, the VF is served again once all parties have done their part;
//! * another VF is always served and keeps its memory.

use std::collections::HashSet;

use crate::gate::lmtt;

use super::*;
use crate::generation::XE_HPG;
use crate::guc::functions::client::State;
use crate::memory::storage::FRAME;
use crate::memory::tests::sparse;
use crate::memory::{Memory, VfMemory};

/// Bytes of the card's local memory.
const LOCAL: usize = 64 << 20;
/// Start of the compression control data.
const CONTROL: u64 = 60 << 20;
/// Address of the LMTT's directory; the tables of the VFs follow.
const DIRECTORY: u64 = 26 << 20;
/// First frame of VF 1; those of VF 2 follow.
const FIRST: u64 = 16;
/// Frames of each VF.
const FRAMES: u64 = 2;
/// Entry of VF 1's GGTT range to which it writes.
const ENTRY: u64 = (GLOBAL + RAM as u64 + 0x8_0000) >> 12;
const STATUS_SERVED: u32 = SUCCESS | 2;

/// What one party does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Event {
    /// The VF's FLR.
    Flr,
    /// The VF writes local memory, GGTT entry, a register and what it sets up in the GuC.
    Write,
    /// The card's thread releases the VF's memory and announces the reset.
    Release,
    /// The same; the VF writes after the release of each frame.
    ReleaseDuringWrites,
    /// The same; the VF writes after the release of a frame, and an FLR follows before the next.
    ReleaseDuringFlr,
    /// The PF driver reads its messages.
    PfReads,
    /// The PF driver sends the next command of an FLR.
    PfSends,
    /// The PF driver records that the FLR has ended.
    PfRecords,
    /// Requests of the PF driver: pause, resume, stop.
    Pause,
    Resume,
    Stop,
    /// The PF driver begins an FLR on its own.
    PfFlr,
    /// TLB_INVALIDATION_ALL.
    Invalidate,
    /// The VF's local memory is taken away and assigned again.
    Provision,
    /// The PF driver disables its CT buffers and enables them again.
    Reconnect,
    /// The PF driver is unloaded, an FLR follows, and the PF driver is loaded again.
    FlrWithoutDriver,
    /// The GuC is reset and loaded again.
    Reload,
    /// Two seconds pass.
    Time,
}

use Event::*;

const EVENTS: [Event; 18] = [
    Flr,
    Write,
    Release,
    ReleaseDuringWrites,
    ReleaseDuringFlr,
    PfReads,
    PfSends,
    PfRecords,
    Pause,
    Resume,
    Stop,
    PfFlr,
    Invalidate,
    Provision,
    Reconnect,
    FlrWithoutDriver,
    Reload,
    Time,
];

/// The FLR state of Linux's PF driver (xe: xe_gt_sriov_pf_control.c). It clears nothing here, so that nothing but the
/// card's own release of memory is tested.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
struct Driver {
    /// An FLR is in progress; notifications are ignored.
    busy: bool,
    /// Command to send.
    next: Option<u32>,
    /// FLR_START was sent, FLR_DONE has not arrived.
    waits: bool,
    /// FLR_FINISH was executed, which the driver has not recorded.
    finished: bool,
}

struct World {
    rig: Rig,
    driver: Driver,
    /// The card's thread has memory to release.
    releasing: bool,
    /// Number of FLRs so far; the VF writes this number.
    resets: u32,
    /// The VF's memory was released since its last FLR.
    released: bool,
    /// An FLR has begun and the PF driver has not completed one since.
    unfinished: bool,
    /// The VF was served after the last event.
    served: bool,
    /// The VF has exchanged its version with the GuC since its last FLR.
    handshake_done: bool,
    trapped: bool,
}

impl World {
    fn new(trapped: bool) -> World {
        let (clock, ram) = (Arc::new(ManualClock::default()), Arc::new(turns::GuestRam::default()));
        clock.advance(1_000_000_000);
        let profile = crate::registers::tests::profile();
        let ggtt = Ggtt::new(SharedRegion::anonymous(GGTT_BYTES).unwrap());
        for page in (MAPPED.start..MAPPED.end).step_by(4096) {
            ggtt.set_entry(page >> 12, GgttEntry::from(page | 3));
        }
        let vfs = (0..2).map(|_| VfMemory {
            local: sparse((FRAMES * FRAME) as usize),
            ggtt: (!trapped).then(|| sparse(GGTT_BYTES)),
        });
        let memory = Memory::new(XE_HPG.page_tables, sparse(LOCAL), ggtt, ram.clone())
            .with_flat_ccs(CONTROL)
            .with_vfs(vfs.collect());
        let gt = Gt::new(&profile, memory, Arc::new(Recorder::default()), clock.clone());
        let engines = Engines::new(&XE_HPG, present);
        let guc = guc_beside(&engines);
        let mut host = Host { gt, engines, guc, clock, ram, driver: DriverState::new(0, LAYOUT, 0), deadline: None };
        host.write_firmware(&host.instances());
        host.upload();
        host.enable_rings(CTB + ct::G2H);
        host.gt.memory.set_lmem_cfg(lmtt::register(DIRECTORY));
        for vf in [VF1, VF2] {
            let table = DIRECTORY + lmtt::TABLE_ENTRIES * 4 * u64::from(vf.0);
            host.poke(DIRECTORY + u64::from(vf.0) * 4, lmtt::directory_entry(table));
            for page in 0..FRAMES {
                host.poke(table + page * 4, lmtt::table_entry(World::frame(vf, page)));
            }
        }
        let rig = Rig::new(host);
        // The VF's, without an address.
        rig.host.gt.memory.ggtt().set_entry(ENTRY, GgttEntry::from(1 << 2 | 1));
        rig.host.gt.memory.set_quota(VF1.function(), 0);
        let mut world = World {
            rig,
            driver: Driver::default(),
            releasing: false,
            resets: 0,
            released: true,
            unfinished: false,
            served: true,
            handshake_done: false,
            trapped,
        };
        world.provision();
        world.rig.host.gt.memory.write_bar(VF2.function(), 8, &[2; 4]);
        world
    }

    fn frame(vf: Vf, page: u64) -> u64 {
        (FIRST + u64::from(vf.0 - 1) * FRAMES + page) * FRAME
    }

    fn provision(&mut self) {
        for vf in [VF1, VF2] {
            assert_eq!(self.rig.give(vf), SUCCESS | 6);
            let list = [0x0003_0002, (FRAMES * FRAME) as u32, 0];
            assert_eq!(self.rig.configure(vf.0.into(), &list), SUCCESS | 1);
        }
    }

    /// Sends a request of the PF driver; its other messages stay unread.
    fn request(&mut self, code: u32, payload: &[u32]) -> u32 {
        self.rig.host.put_padded(&ct::request(0x12, code, payload));
        self.rig.step();
        let mut answer = None;
        for message in self.rig.host.received() {
            match message[..] {
                [0x0012_0001, reply] => answer = Some(reply),
                _ => self.handle(&message),
            }
        }
        answer.expect("an answer")
    }

    fn handle(&mut self, message: &[u32]) {
        match message[1..] {
            [0x9000_5106, 1, 1] if !self.driver.busy => {
                self.driver = Driver { busy: true, next: Some(4), ..Driver::default() }
            }
            [0x9000_5106, 1, 2] if self.driver.waits => {
                self.driver = Driver { waits: false, next: Some(5), ..self.driver }
            }
            _ => {}
        }
    }

    fn apply_read(&mut self) {
        self.rig.step();
        self.rig.host.received().iter().for_each(|message| self.handle(message));
    }

    fn control(&mut self, command: u32) -> u32 {
        self.request(0x5506, &[1, command])
    }

    fn flr(&mut self) {
        let Host { gt, engines, guc, .. } = &mut self.rig.host;
        let reset = guc.function_reset(gt, engines, VF1.function());
        assert_ne!(reset, FunctionReset::Unled);
        self.releasing |= reset == FunctionReset::Unannounced;
        gt.vf(VF1.function()).unwrap().reset();
        self.reset_begun();
    }

    fn reset_begun(&mut self) {
        self.handshake_done = false;
        self.resets += 1;
        self.released = false;
        self.unfinished = true;
    }

    /// All places in which the VF leaves data, apart from the GuC's.
    fn write_all(gt: &Gt, trapped: bool, value: u32) {
        let region = gt.memory.storage().region(VF1.function()).unwrap();
        for page in 0..FRAMES {
            region.slice(page * FRAME + 8, 4).unwrap().write_slice(&value.to_le_bytes(), 0).unwrap();
            let control = CONTROL + World::frame(VF1, page) / 256;
            gt.memory.local().slice(control, 4).unwrap().write_slice(&value.to_le_bytes(), 0).unwrap();
        }
        let entry = u64::from(value) << 12;
        match gt.memory.ggtt().table_of(VF1.function()) {
            Some(table) => table.slice(ENTRY * 8, 8).unwrap().store(entry, 0, Ordering::SeqCst).unwrap(),
            None => {
                assert!(trapped);
                gt.memory.ggtt().write(VF1.function(), ENTRY * 8, &entry.to_le_bytes());
            }
        }
        gt.set_mailbox_dword(VF1.function(), 3, value);
    }

    fn write(&mut self) {
        let value = self.resets + 1;
        World::write_all(&self.rig.host.gt, self.trapped, value);
        if self.served {
            assert_eq!(self.rig.mail(VF1, &[0x5500, 0x0001_0100])[0], SUCCESS);
            self.handshake_done = true;
            self.rig.host.gt.set_mailbox_dword(VF1.function(), 0, 0);
            self.rig.host.gt.set_mailbox_dword(VF1.function(), 3, value);
        }
    }

    /// The values that can be read where [`World::write_all`] wrote them.
    fn read_all(&self) -> Vec<u32> {
        let gt = &self.rig.host.gt;
        let mut values = Vec::new();
        let mut read = |bytes: &dyn Fn(&mut [u8])| {
            let mut value = [0; 4];
            bytes(&mut value);
            values.push(u32::from_le_bytes(value));
        };
        let region = gt.memory.storage().region(VF1.function()).unwrap();
        for page in 0..FRAMES {
            let control = CONTROL + World::frame(VF1, page) / 256;
            read(&|value| region.slice(page * FRAME + 8, 4).unwrap().read_slice(value, 0).unwrap());
            read(&|value| gt.memory.local().slice(control, 4).unwrap().read_slice(value, 0).unwrap());
            read(&|value| gt.memory.read_bar(VF1.function(), page * FRAME + 8, value));
        }
        values.push((gt.memory.ggtt().effective(ENTRY).address() >> 12) as u32);
        values.push(gt.mailbox_dword(VF1.function(), 3));
        // Where no memory is assigned.
        values.retain(|value| *value != u32::MAX);
        values
    }

    /// Performs one pass of the card's thread ([`crate::card::Card`]'s `empty_and_announce_one`).
    fn release(&mut self, writes: bool, flr: bool) {
        if !std::mem::take(&mut self.releasing) {
            return;
        }
        let (value, trapped) = (self.resets + 1, self.trapped);
        let Host { gt, engines, guc, .. } = &mut self.rig.host;
        let (gt, guc) = (&*gt, std::cell::RefCell::new(guc));
        let frames = std::cell::Cell::new(0);
        gt.memory.empty(VF1.function(), || {
            // The first call is before the first frame.
            if frames.replace(frames.get() + 1) == 1 && writes {
                World::write_all(gt, trapped, value);
                if flr {
                    let reset = guc.borrow_mut().function_reset(gt, engines, VF1.function());
                    assert_eq!(reset, FunctionReset::Led);
                    gt.vf(VF1.function()).unwrap().reset();
                }
            }
            false
        });
        let flr = flr && frames.get() > 1;
        let released = guc.borrow_mut().announce_reset(gt, engines, VF1.function());
        self.releasing = !released;
        if flr {
            assert!(!released, "an FLR during the release requires another one");
            self.reset_begun();
        } else {
            self.released |= released;
        }
    }

    fn apply(&mut self, event: Event) {
        match event {
            Flr => self.flr(),
            Write => self.write(),
            Release => self.release(false, false),
            ReleaseDuringWrites => self.release(true, false),
            ReleaseDuringFlr => self.release(true, true),
            PfReads => self.apply_read(),
            PfSends => match self.driver.next.take() {
                Some(4) => {
                    // FLR_DONE may arrive before the response.
                    self.driver.waits = true;
                    assert_eq!(self.control(4), SUCCESS);
                }
                Some(5) => {
                    assert_eq!(self.control(5), SUCCESS, "the PF driver gives up the FLR");
                    self.driver.finished = true;
                    self.unfinished = false;
                }
                _ => {}
            },
            PfRecords if self.driver.finished => self.driver = Driver::default(),
            PfRecords => {}
            Pause => drop(self.control(1)),
            Resume => drop(self.control(2)),
            Stop => drop(self.control(3)),
            PfFlr if !self.driver.busy => self.driver = Driver { busy: true, next: Some(4), ..Driver::default() },
            PfFlr => {}
            Invalidate => drop(self.request(0x7002, &[1, 1 << 31])),
            Provision => {
                for bytes in [0, FRAMES * FRAME] {
                    let list = [0x0003_0002, bytes as u32, 0];
                    for (n, value) in (0u64..).zip(list) {
                        self.rig.host.poke(SCRATCH + n * 4, value);
                    }
                    assert_eq!(self.request(0x5503, &[1, SCRATCH as u32, 0, 3]), SUCCESS | 1);
                }
            }
            Reconnect => {
                self.apply_read();
                assert_eq!(self.rig.host.mail(&[0x4509, 0])[0], SUCCESS);
                self.rig.host.enable_rings(CTB + ct::G2H);
            }
            FlrWithoutDriver => {
                assert_eq!(self.rig.host.mail(&[0x4509, 0])[0], SUCCESS);
                let Host { gt, engines, guc, .. } = &mut self.rig.host;
                assert_eq!(guc.function_reset(gt, engines, VF1.function()), FunctionReset::Unled);
                gt.memory.clear_vf(VF1.function());
                gt.vf(VF1.function()).unwrap().reset();
                guc.finish_reset(gt, engines, VF1.function());
                self.reset_begun();
                (self.released, self.unfinished) = (true, false);
                self.rig.host.enable_rings(CTB + ct::G2H);
                self.driver = Driver::default();
            }
            Reload => {
                self.rig.host.guc.reset(&self.rig.host.gt);
                self.rig.host.upload();
                self.rig.host.enable_rings(CTB + ct::G2H);
                self.provision();
                // The PF driver considers all VFs ready (xe: xe_gt_sriov_pf_control_restart).
                self.driver = Driver::default();
                self.unfinished = false;
            }
            Time => {
                self.rig.host.pass(2_000_000_000);
                self.apply_read();
            }
        }
        self.check(event);
    }

    /// Returns whether the VF's requests are answered.
    fn is_served(&mut self, vf: Vf) -> bool {
        let gt = &self.rig.host.gt;
        let kept = [1, 2, 3].map(|n| gt.mailbox_dword(vf.function(), n));
        gt.set_mailbox_dword(vf.function(), 0, 0x5509);
        gt.set_mailbox_dword(vf.function(), 1, 1);
        let host = &mut self.rig.host;
        host.guc.mailbox(&host.gt, &host.engines, &host.gt.memory.views(), vf.function());
        let gt = &self.rig.host.gt;
        let answer = gt.mailbox_dword(vf.function(), 0);
        gt.set_mailbox_dword(vf.function(), 0, 0);
        for (n, value) in (1..).zip(kept) {
            gt.set_mailbox_dword(vf.function(), n, value);
        }
        assert!([0x5509, STATUS_SERVED].contains(&answer), "{answer:#x}");
        answer == STATUS_SERVED
    }

    fn check(&mut self, event: Event) {
        self.served = self.is_served(VF1);
        if self.served {
            assert!(self.released, "{event:?}: served before the memory was released");
            assert!(!self.unfinished, "{event:?}: served before the PF driver has completed the FLR");
            let values = self.read_all();
            assert!(values.iter().all(|value| *value == 0 || *value == self.resets + 1), "{event:?}: {values:?}");
        }
        let client = &self.rig.host.guc.function(VF1.function()).unwrap().client;
        assert!(
            client.version.is_none() || self.handshake_done,
            "{event:?}: the GuC keeps the version of before the reset"
        );
        assert!(self.is_served(VF2), "{event:?}: VF 2 is not served");
        let mut bytes = [0; 4];
        self.rig.host.gt.memory.read_bar(VF2.function(), 8, &mut bytes);
        assert_eq!(bytes, [2; 4], "{event:?}: VF 2's memory");
    }

    /// Lets all parties do their part, and then requires that the VF is served.
    fn settle(&mut self) {
        for round in 0..12 {
            for event in [Release, PfReads, PfSends, PfReads, PfSends, PfRecords, Release] {
                self.apply(event);
            }
            if self.served {
                return;
            }
            match self.rig.host.guc.function(VF1.function()).unwrap().state {
                State::Paused { .. } => self.apply(Resume),
                State::Stopped => self.apply(PfFlr),
                _ if round % 2 == 1 => self.apply(Time),
                _ => {}
            }
        }
        panic!("the VF is not served: {:?}, {:?}", self.state(), self.driver);
    }

    fn state(&self) -> State {
        self.rig.host.guc.function(VF1.function()).unwrap().state
    }

    /// What distinguishes this situation from others, as far as known to the test. Values are reduced to whether they
    /// are older than the last FLR.
    fn situation(&self) -> impl Eq + std::hash::Hash + use<> {
        let old = |value: &u32| (*value != 0).then_some(*value <= self.resets);
        let values: Vec<_> = self.read_all().iter().map(old).collect();
        let emptying = self.rig.host.gt.memory.is_emptying(VF1.function());
        let has_messages = self.rig.host.peek(CTB + 0x804) != self.rig.host.driver.rings.head();
        let facts = [emptying, self.releasing, self.released, self.unfinished, has_messages];
        (format!("{:?}", self.state()), self.driver, facts, values)
    }
}

/// The events that lead to a situation that was not seen before, in all orders up to a length.
fn explore(trapped: bool, depth: usize, most: usize) -> (usize, usize) {
    let mut seen = HashSet::new();
    let mut frontier: Vec<Vec<Event>> = vec![Vec::new()];
    let (mut sequences, mut reached) = (0, 0);
    for _ in 0..depth {
        let mut next = Vec::new();
        for path in &frontier {
            for event in EVENTS {
                if sequences == most {
                    return (sequences, reached);
                }
                let path: Vec<Event> = path.iter().copied().chain([event]).collect();
                let run = std::panic::AssertUnwindSafe(|| {
                    let mut world = World::new(trapped);
                    path.iter().for_each(|event| world.apply(*event));
                    let fresh = world.situation();
                    world.settle();
                    fresh
                });
                sequences += 1;
                let Ok(situation) = std::panic::catch_unwind(run) else { panic!("in the order {path:?}") };
                if seen.insert(situation) {
                    reached += 1;
                    next.push(path);
                }
            }
        }
        frontier = next;
    }
    (sequences, reached)
}

/// A VF with a mapped GGTT window.
#[test]
fn no_event_order_leaves_data_after_a_reset() {
    let (sequences, reached) = explore(false, 4, 700);
    println!("{sequences} sequences, {reached} situations");
    assert!(reached > 40);
}

/// A VF with a trapped GGTT window.
#[test]
fn no_event_order_leaves_data_after_a_reset_with_a_trapped_window() {
    let (sequences, reached) = explore(true, 4, 700);
    println!("{sequences} sequences, {reached} situations");
    assert!(reached > 40);
}
