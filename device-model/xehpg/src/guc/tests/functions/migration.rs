// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A VF is saved, restored and moved by its PF driver, and its driver adapts its addresses (MIG-020..052).

use super::*;
use crate::guc::functions::client::{FixUp, State};
use crate::guc::saved::MOST_BYTES;

/// Where the PF driver has the buffer for saved state.
const BUFFER: u64 = 0xc0_0000;
/// Begin of a range to which a VF is moved.
const ELSEWHERE: u64 = GLOBAL + 0x40_0000;
/// The reply to a request that an earlier place of the VF refers to.
const MIGRATED: u32 = FAILURE | 0x107;
const SAVE: u32 = 0x550b;
const RESTORE: u32 = 0x550b | 1 << 16;
const PAUSE: u32 = 1;
const RESUME: u32 = 2;
const RESFIX_DONE: u32 = 0x5508;
const RESFIX_START: u32 = 0x550f;

impl Rig {
    fn pause(&mut self, vf: Vf) {
        assert_eq!(self.control_and_collect(vf, PAUSE).last().unwrap()[..2], [3, 0x9000_5106]);
    }

    /// Pauses a VF whose context on `engine` is preempted.
    fn pause_working(&mut self, vf: Vf, engine: &str) {
        self.control_and_collect(vf, PAUSE);
        self.host.end(engine, Outcome::Preempted);
        self.step();
        assert_eq!(self.host.received(), [[3, 0x9000_5106, vf.0.into(), 3]]);
    }

    /// Sends SAVE_RESTORE_VF with the operation in `code`.
    fn transfer(&mut self, code: u32, vf: Vf, address: u64, dwords: u32) -> u32 {
        self.host.tracked(code, &[vf.0.into(), address as u32, 0, dwords])
    }

    fn size(&mut self, vf: Vf) -> u32 {
        let reply = self.transfer(SAVE, vf, 0, 0);
        assert_eq!(reply & !0xfff_ffff, SUCCESS, "{reply:#x}");
        reply & 0xfff_ffff
    }

    /// Saves a VF as its PF driver does; returns the dwords.
    fn save(&mut self, vf: Vf) -> Vec<u32> {
        let dwords = self.size(vf);
        (0..u64::from(dwords)).for_each(|n| self.host.poke(BUFFER + n * 4, 0));
        assert_eq!(self.transfer(SAVE, vf, BUFFER, dwords), SUCCESS | dwords);
        (0..u64::from(dwords)).map(|n| self.host.peek(BUFFER + n * 4)).collect()
    }

    fn restore(&mut self, vf: Vf, saved: &[u32]) -> u32 {
        (0_u64..).zip(saved).for_each(|(n, dword)| self.host.poke(BUFFER + n * 4, *dword));
        self.transfer(RESTORE, vf, BUFFER, saved.len() as u32)
    }

    /// Gives a VF another GGTT range, which maps the same memory. The old one stays mapped for the test.
    fn reprovision(&mut self, vf: Vf, start: u64) {
        assert_eq!(self.configure(vf.0.into(), &[0x0001_0002, start as u32, 0]), SUCCESS | 1);
        for at in (0..RAM as u64).step_by(4096) {
            let entry = GgttEntry::from(at | u64::from(vf.0) << 2 | 1);
            self.host.gt.memory.ggtt().set_entry((start + at) >> 12, entry);
        }
    }

    /// Saves a paused VF and restores it in another range.
    fn move_to(&mut self, vf: Vf, start: u64) {
        let saved = self.save(vf);
        self.reprovision(vf, start);
        assert_eq!(self.restore(vf, &saved), SUCCESS | saved.len() as u32);
    }

    /// Returns whether a paused VF, or one that runs, has nothing of a driver.
    fn is_empty(&self, vf: Vf) -> bool {
        let of = self.host.guc.function(vf.function()).unwrap();
        let client = &of.client;
        let has_nothing = of.contexts.is_empty() && client.channel.is_none() && !client.rings.0.complete();
        has_nothing && !client.interrupt.configured() && of.fix_up == FixUp::Done
    }

    fn state(&self, vf: Vf) -> (State, FixUp) {
        let of = self.host.guc.function(vf.function()).unwrap();
        (of.state, of.fix_up)
    }

    /// The bytes of SW_INT_0: status and source.
    fn migrated(&self, vf: Vf) -> (u8, u8) {
        let (source, status) = vf.memirq();
        (self.byte(vf, status), self.byte(vf, source))
    }

    fn clear_interrupts(&self, vf: Vf) {
        let (source, status) = vf.memirq();
        (0..4).for_each(|n| self.poke(vf, status + n * 4, 0));
        self.poke(vf, source & !3, 0);
    }

    /// Sends RESFIX_START or RESFIX_DONE.
    fn resfix(&mut self, vf: Vf, code: u32, marker: u32) -> u32 {
        self.mail(vf, &[code | marker << 16])[0]
    }
}

/// MIG-020..023, MIG-025: the size is asked for at any time, exact while the VF is paused; the reply has the dwords in use.
#[test]
fn a_paused_vf_is_saved_into_a_buffer() {
    let mut rig = Rig::talking();
    rig.start(VF1, 0, EngineClass::Copy);
    let running = rig.size(VF1);
    assert_eq!(rig.transfer(SAVE, VF1, BUFFER, running), FAILURE | 0xa);
    assert_eq!(rig.transfer(RESTORE, VF1, BUFFER, running), FAILURE | 0xa);
    rig.pause_working(VF1, "bcs0");
    let exact = rig.size(VF1);
    assert!(0 < exact && exact <= running && running as usize * 4 <= MOST_BYTES, "{exact} {running}");
    assert!(exact * 4 <= 1024 + 64, "{exact} dwords");
    let saved = rig.save(VF1);
    assert_eq!(saved[..2], [u32::from_le_bytes(*b"ARCT"), u32::from_le_bytes(*b"ICST")]);
    assert_eq!(rig.save(VF1), saved, "saving changes nothing");
    assert_eq!(rig.transfer(SAVE, VF1, BUFFER, exact + 100), SUCCESS | exact);
    assert_eq!(rig.transfer(SAVE, VF1, BUFFER, exact - 1), FAILURE | 0x102);
    assert_eq!(rig.transfer(SAVE, VF1, 0x3000_0000, exact), FAILURE | 0x80);
    assert_eq!(rig.transfer(SAVE, VF1, BUFFER, exact | 1 << 28), FAILURE | 0x60);
    assert_eq!(rig.transfer(SAVE | 2 << 16, VF1, BUFFER, exact), FAILURE | 0x60);
    assert_eq!(rig.host.tracked(SAVE, &[0, 0, 0, 0]), FAILURE | 0xc);
    assert_eq!(rig.host.tracked(SAVE, &[64, 0, 0, 0]), FAILURE | 0xc);
    assert_eq!(rig.host.tracked(SAVE, &[1, 0, 1, 0]), FAILURE | 0x80);
    assert_eq!(rig.host.tracked(0x5503, &[2, 0, 0, 0]), SUCCESS);
    assert_eq!(rig.transfer(SAVE, VF2, 0, 0), FAILURE | 0xd);
    assert_eq!(rig.save(VF1), saved, "refusals to save change nothing");
    assert_eq!(rig.request(VF2, 0x550b, &[1, 0, 0, 0]), FAILURE | 0x302);
    assert_eq!(rig.control(VF1, RESUME), SUCCESS);
}

/// The PF's driver may send other requests with one to save: each has a reply.
#[test]
fn requests_beside_a_save_have_replies() {
    let mut rig = Rig::talking();
    rig.pause(VF1);
    let size = SUCCESS | rig.size(VF1);
    for fence in 0x21..0x24 {
        rig.host.put_padded(&ct::request(fence, SAVE, &[VF1.0.into(), 0, 0, 0]));
    }
    assert_eq!(rig.host.stepped(), [0x21, 0x22, 0x23].map(|fence| [fence << 16 | 1, size]));
}

/// MIG-024, MIG-025, MIG-044: each restore that is refused leaves the paused VF empty; it can be restored afterwards.
#[test]
fn a_refused_vf_is_empty() {
    let mut rig = Rig::talking();
    rig.start(VF1, 0, EngineClass::Copy);
    rig.pause_working(VF1, "bcs0");
    let saved = rig.save(VF1);
    let with = |change: fn(&mut [u8])| {
        let mut bytes: Vec<u8> = saved.iter().flat_map(|dword| dword.to_le_bytes()).collect();
        change(&mut bytes);
        bytes.as_chunks().0.iter().map(|dword| u32::from_le_bytes(*dword)).collect::<Vec<u32>>()
    };
    // The identity is that of the first section.
    let device = crate::state::format::HEADER_BYTES + crate::state::format::SECTION_BYTES;
    assert_eq!(saved[device / 4] & 0xffff, 0x56c0);
    let documents = [
        ("magic", with(|bytes| bytes[0] ^= 1)),
        ("version", with(|bytes| bytes[8] ^= 1)),
        ("kind", with(|bytes| bytes[12] ^= 1)),
        ("longer than the buffer", with(|bytes| bytes[16] += 4)),
        ("shorter than its sections", with(|bytes| bytes[16] -= 4)),
        ("sum", with(|bytes| bytes[80] ^= 1)),
        (
            "identity",
            with(|bytes| {
                bytes[36] ^= 1;
                crate::state::format::reseal(bytes);
            }),
        ),
        ("a part of it", saved[..saved.len() - 1].to_vec()),
        ("zeros", vec![0; 30]),
    ];
    for (what, document) in documents {
        assert_eq!(rig.restore(VF1, &saved), SUCCESS | saved.len() as u32);
        assert!(!rig.is_empty(VF1));
        assert_eq!(rig.restore(VF1, &document), FAILURE | 0x60, "{what}");
        assert!(rig.is_empty(VF1), "{what}");
    }
    let exact = saved.len() as u32;
    for (address, dwords, error) in [
        (0x3000_0000, exact, 0x80),
        (BUFFER, 0, 0x102),
        (BUFFER, (MOST_BYTES / 4) as u32 + 1, 0x102),
        (BUFFER, exact | 1 << 28, 0x60),
    ] {
        assert_eq!(rig.restore(VF1, &saved), SUCCESS | exact);
        assert_eq!(rig.transfer(RESTORE, VF1, address, dwords), FAILURE | error);
        assert!(rig.is_empty(VF1), "{address:#x} {dwords:#x}");
    }
    // Quotas.
    assert_eq!(rig.restore(VF1, &saved), SUCCESS | exact);
    assert_eq!(rig.configure(1, &[0x0004_0001, CONTEXTS - 1]), SUCCESS | 1);
    assert_eq!(rig.restore(VF1, &saved), FAILURE | 0x60);
    assert!(rig.is_empty(VF1));
    assert_eq!(rig.control(VF1, RESUME), SUCCESS);
    assert_eq!(rig.state(VF1), (State::Running, FixUp::Done));
    // One that runs does not change.
    rig.reprovision(VF1, VF1.base());
    rig.connect(VF1);
    assert_eq!(rig.restore(VF1, &[0; 30]), FAILURE | 0xa);
    assert!(!rig.is_empty(VF1));
    rig.pause(VF1);
    assert_eq!(rig.configure(1, &[0x0004_0001, CONTEXTS]), SUCCESS | 1);
    // A buffer may be longer than the state.
    let longer = [&saved[..], &[7; 9]].concat();
    assert_eq!(rig.restore(VF1, &longer), SUCCESS | exact);
}

/// MIG-040..045, MIG-049, MIG-051: the VF moves in the GGTT; its driver adapts its addresses; its context goes on.
#[test]
fn a_moved_vf_continues_after_its_fix_up() {
    let mut rig = Rig::talking();
    rig.start(VF1, 0, EngineClass::Copy);
    rig.start(VF2, 0, EngineClass::VideoDecode);
    rig.pause_working(VF1, "bcs0");
    rig.move_to(VF1, ELSEWHERE);
    rig.clear_interrupts(VF1);
    rig.step();
    assert_eq!(rig.migrated(VF1), (0, 0), "the memory of the VF is not there yet");
    // A request that the driver has sent before it knows.
    rig.send_typed(VF1, 0, 0x0509, &[0x1001_0002, 80, 20]);
    assert_eq!(rig.control_and_collect(VF1, RESUME), [[0x0012_0001, SUCCESS]]);
    assert_eq!(rig.migrated(VF1), (0xff, 0xff), "SW_INT_0, status before source");
    assert_eq!(rig.messages, VF1.function().bit(), "and the MSI");
    assert_eq!(rig.state(VF1), (State::FixUp, FixUp::Due));
    rig.clear_interrupts(VF1);
    rig.step();
    assert_eq!(rig.migrated(VF1), (0, 0), "told once");
    assert!(rig.received(VF1).is_empty() && rig.host.runs("bcs0").is_none(), "no CT buffer, no context");
    assert_eq!(rig.mail(VF1, &ct::configure(ct::self_cfg::INTERRUPT_SOURCE, ELSEWHERE))[0], MIGRATED);
    assert_eq!(rig.mail(VF1, &[0x4509, 1])[0], MIGRATED);
    assert_eq!(rig.resfix(VF1, RESFIX_DONE, 1), MIGRATED, "not begun");
    assert_eq!(rig.resfix(VF1, RESFIX_START, 0), FAILURE | 0x60, "no marker");
    assert_eq!(rig.resfix(VF1, RESFIX_START, 7), SUCCESS);
    assert_eq!(rig.mail(VF1, &[0x5509, 1])[..2], [SUCCESS | 2, ELSEWHERE as u32]);
    assert_eq!(rig.mail(VF1, &[0x5500, 0x0001_0100])[0], SUCCESS);
    assert_eq!(rig.resfix(VF1, RESFIX_DONE, 6), MIGRATED, "another marker");
    assert!(rig.host.runs("bcs0").is_none());
    assert_eq!(rig.resfix(VF1, RESFIX_DONE, 7), SUCCESS);
    rig.step();
    assert_eq!(rig.host.received(), [[3, 0x9000_5106, 1, 4]]);
    assert_eq!(rig.received(VF1), [[0x0012_0001, SUCCESS | 1]], "the request that waited");
    assert_eq!(rig.host.runs("bcs0"), Some(100 + CONTEXTS));
    let descriptor = rig.host.engines.lock(engine_named("bcs0")).loaded().unwrap().descriptor;
    assert_eq!(descriptor & 0xffff_f000, ELSEWHERE + VF_LAYOUT.image(0, 0), "its descriptor has moved");
    assert_eq!(rig.host.runs("vcs0"), Some(100 + 2 * CONTEXTS), "the other VF works all the time");
    assert_eq!(rig.resfix(VF1, RESFIX_DONE, 7), MIGRATED, "it was done");
    assert_eq!(rig.control(VF1, RESUME), FAILURE | 0xa);
}

/// MIG-046: the driver fills the ring with zeros, between head and tail, too.
#[test]
fn a_ring_of_zeros_is_passed_over() {
    let mut rig = Rig::talking();
    for lead in [1_u32, 300, 700] {
        // Messages before, so that the zeros go over the end of the ring.
        for _ in 0..lead {
            rig.send_typed(VF1, 1, 0x0509, &[0x1001_0002, 80, 20]);
            rig.step();
        }
        rig.pause(VF1);
        let ring: u64 = ct::RING_DWORDS.into();
        let at = |offset: u64| VF1.base() + offset;
        let head = rig.peek(VF1, at(ct::H2G_DESCRIPTOR));
        (0..ring).for_each(|dword| rig.poke(VF1, at(ct::H2G) + dword * 4, 0));
        // All of the ring is between head and tail.
        let tail = (head + ct::RING_DWORDS - 1) % ct::RING_DWORDS;
        rig.poke(VF1, at(ct::H2G_DESCRIPTOR) + 4, tail);
        assert_eq!(rig.control(VF1, RESUME), SUCCESS);
        rig.step();
        assert_eq!(rig.peek(VF1, at(ct::H2G_DESCRIPTOR)), tail, "{lead}");
        assert_eq!(rig.peek(VF1, at(ct::H2G_DESCRIPTOR) + 8), 0, "no error");
        // The last dword, so that the driver's position is that of the ring again.
        rig.poke(VF1, at(ct::H2G_DESCRIPTOR) + 4, head);
        rig.step();
        assert_eq!(rig.request(VF1, 0x0509, &[0x1001_0002, 80, 20]), SUCCESS | 1);
    }
}

/// MIG-040, MIG-043, MIG-050: a VF that is moved again within its fix-up: the marker is forgotten, a request that waits in the
/// mailbox is answered by the rules of the new place.
#[test]
fn a_vf_is_moved_twice() {
    for steps in 0..3 {
        let mut rig = Rig::talking();
        rig.start(VF1, 0, EngineClass::Copy);
        rig.pause_working(VF1, "bcs0");
        rig.move_to(VF1, ELSEWHERE);
        if steps > 0 {
            assert_eq!(rig.control(VF1, RESUME), SUCCESS);
        }
        if steps > 1 {
            assert_eq!(rig.resfix(VF1, RESFIX_START, 5), SUCCESS);
        }
        if steps > 0 {
            rig.pause(VF1);
            // It waits while the VF is paused.
            assert_eq!(rig.resfix(VF1, RESFIX_DONE, 5), RESFIX_DONE | 5 << 16);
        }
        rig.move_to(VF1, VF1.base());
        assert_eq!(rig.state(VF1), (State::Paused { notified: true }, FixUp::Due));
        rig.clear_interrupts(VF1);
        assert_eq!(rig.control(VF1, RESUME), SUCCESS);
        assert_eq!(rig.migrated(VF1), (0xff, 0xff));
        if steps > 0 {
            assert_eq!(rig.host.gt.mailbox_dword(VF1.function(), 0), MIGRATED);
        }
        assert_eq!(rig.resfix(VF1, RESFIX_START, 6), SUCCESS);
        assert_eq!(rig.resfix(VF1, RESFIX_DONE, 6), SUCCESS);
        rig.step();
        assert_eq!(rig.host.received(), [[3, 0x9000_5106, 1, 4]]);
        assert_eq!(rig.host.runs("bcs0"), Some(100 + CONTEXTS));
    }
}

/// A pause within the fix-up without a move: the marker stays, and the driver goes on.
#[test]
fn a_pause_within_the_fix_up_ends_nothing() {
    let mut rig = Rig::talking();
    rig.pause(VF1);
    rig.move_to(VF1, ELSEWHERE);
    assert_eq!(rig.control(VF1, RESUME), SUCCESS);
    assert_eq!(rig.resfix(VF1, RESFIX_START, 9), SUCCESS);
    rig.pause(VF1);
    rig.clear_interrupts(VF1);
    assert_eq!(rig.control(VF1, RESUME), SUCCESS);
    assert_eq!(rig.migrated(VF1), (0, 0), "it knows");
    assert_eq!(rig.resfix(VF1, RESFIX_DONE, 9), SUCCESS);
}

/// MIG-049: a reset of the VF, by itself or by its PF, leads out of the fix-up, from each of its states, and so does STOP.
#[test]
fn resets_lead_out_of_the_fix_up() {
    let at = |steps: u32| {
        let mut rig = Rig::talking();
        rig.start(VF1, 0, EngineClass::Copy);
        rig.pause_working(VF1, "bcs0");
        rig.move_to(VF1, ELSEWHERE);
        for step in 0..steps {
            match step {
                0 => assert_eq!(rig.control(VF1, RESUME), SUCCESS),
                1 => assert_eq!(rig.resfix(VF1, RESFIX_START, 3), SUCCESS),
                _ => rig.pause(VF1),
            }
        }
        rig
    };
    for steps in [1, 2] {
        let mut rig = at(steps);
        assert_eq!(rig.mail(VF1, &[actions::VF_RESET])[0], SUCCESS);
        assert_eq!(rig.state(VF1), (State::Running, FixUp::Done));
        assert!(rig.host.guc.function(VF1.function()).unwrap().contexts.is_empty());
        assert_eq!(rig.resfix(VF1, RESFIX_DONE, 3), MIGRATED);
        rig.reprovision(VF1, VF1.base());
        rig.connect(VF1);
        rig.start(VF1, 0, EngineClass::Copy);
    }
    for steps in 0..4 {
        let mut rig = at(steps);
        rig.reset_function(VF1);
        assert_eq!(rig.state(VF1), (State::ResetPending, FixUp::Done), "{steps}");
        let mut rig = at(steps);
        assert_eq!(rig.control(VF1, 3), SUCCESS);
        assert_eq!(rig.state(VF1), (State::Stopped, FixUp::Done), "{steps}");
        rig.control_and_collect(VF1, 4);
        assert_eq!(rig.control(VF1, 5), SUCCESS);
        rig.reprovision(VF1, VF1.base());
        rig.connect(VF1);
    }
}

/// MIG-049: a VF without CT buffers, or without a memory-based interrupt, has nothing to adapt.
#[test]
fn a_vf_without_a_driver_runs_at_once() {
    let mut rig = Rig::talking();
    assert_eq!(rig.mail(VF1, &[actions::VF_RESET])[0], SUCCESS);
    rig.pause(VF1);
    rig.move_to(VF1, ELSEWHERE);
    rig.clear_interrupts(VF1);
    assert_eq!(rig.control(VF1, RESUME), SUCCESS);
    assert_eq!((rig.state(VF1), rig.migrated(VF1)), ((State::Running, FixUp::Done), (0, 0)));
}

/// MIG-047: what a moved VF was owed for earlier requests is never sent; a message of the PF is.
#[test]
fn a_moved_vf_gets_no_late_messages() {
    let mut rig = Rig::talking();
    rig.start(VF1, 0, EngineClass::Copy);
    rig.send_typed(VF1, 2, 0x1001, &[0, 0]);
    rig.step();
    let (head, tail) = (VF1.base() + ct::G2H_DESCRIPTOR, VF1.base() + ct::G2H_DESCRIPTOR + 4);
    let empty = rig.peek(VF1, tail);
    // The ring is full, so MODE_DONE and a relayed message wait.
    rig.poke(VF1, head, empty + 1);
    assert_eq!(rig.host.tracked(0x5101, &[1, 0x77, 0x1234]), SUCCESS);
    rig.control_and_collect(VF1, PAUSE);
    rig.host.end("bcs0", Outcome::Preempted);
    rig.step();
    assert_eq!(rig.wait(400, true).len(), 1, "PAUSE_DONE");
    rig.move_to(VF1, ELSEWHERE);
    rig.poke(VF1, head, empty);
    assert_eq!(rig.control(VF1, RESUME), SUCCESS);
    rig.step();
    assert_eq!(rig.resfix(VF1, RESFIX_START, 1), SUCCESS);
    rig.step();
    assert!(rig.received(VF1).is_empty(), "nothing before RESFIX_DONE");
    assert_eq!(rig.resfix(VF1, RESFIX_DONE, 1), SUCCESS);
    rig.step();
    assert_eq!(rig.received(VF1), [[3, 0x9000_5102, 0x77, 0x1234]]);
    // MIG-048: the driver sends its disable again.
    rig.send_typed(VF1, 2, 0x1001, &[0, 0]);
    rig.step();
    assert_eq!(rig.received(VF1), [[3, 0x9000_1002, 0, 0]]);
}

/// MIG-043: a second SW_INT_0 that the driver handles late: RESFIX_START comes while the VF runs. The reply follows when its
/// contexts have left the engines.
#[test]
fn a_running_vf_can_begin_a_fix_up() {
    let mut rig = Rig::talking();
    rig.start(VF1, 0, EngineClass::Copy);
    assert_eq!(rig.resfix(VF1, RESFIX_START, 4), 0xb000_0000, "busy");
    rig.step();
    assert_eq!(rig.host.gt.mailbox_dword(VF1.function(), 0), 0xb000_0000);
    rig.host.end("bcs0", Outcome::Preempted);
    rig.step();
    assert_eq!(rig.host.gt.mailbox_dword(VF1.function(), 0), SUCCESS);
    assert_eq!(rig.state(VF1), (State::FixUp, FixUp::Begun(4)));
    rig.step();
    assert_eq!(rig.host.runs("bcs0"), None);
    assert_eq!(rig.resfix(VF1, RESFIX_DONE, 4), SUCCESS);
    rig.step();
    assert_eq!(rig.host.runs("bcs0"), Some(100 + CONTEXTS));
    // A pause waits for the reply.
    assert_eq!(rig.resfix(VF1, RESFIX_START, 5), 0xb000_0000);
    rig.host.received();
    rig.control_and_collect(VF1, PAUSE);
    rig.host.end("bcs0", Outcome::Preempted);
    rig.step();
    assert_eq!(rig.host.gt.mailbox_dword(VF1.function(), 0), SUCCESS);
    assert_eq!(rig.host.received(), [[3, 0x9000_5106, 1, 3]]);
}

/// MIG-052: a driver that uses a newer interface than this firmware has is refused, also one that cannot recover.
#[test]
fn the_interface_of_the_target_is_not_older() {
    let mut rig = Rig::talking();
    rig.pause(VF1);
    let saved = rig.save(VF1);
    for version in [[1, 26, 0], [1, 35, 0], [1, 27, 0]] {
        let [major, minor, patch] = version;
        let state = rig.host.guc.state.as_mut().unwrap();
        let here = state.firmware.submission;
        state.of(VF1.function()).client.version = Some(crate::generation::Version { major, minor, patch });
        let other = rig.save(VF1);
        let fits = version == [here.major, here.minor, here.patch];
        let expected = if fits { SUCCESS | other.len() as u32 } else { FAILURE | 0x60 };
        assert_eq!(rig.restore(VF1, &other), expected, "{version:?}");
        // After an error, the VF is empty.
        let of = rig.host.guc.function(VF1.function()).unwrap();
        assert_eq!(of.client.channel.is_some(), fits);
        assert_eq!(rig.restore(VF1, &saved), SUCCESS | saved.len() as u32);
    }
}
