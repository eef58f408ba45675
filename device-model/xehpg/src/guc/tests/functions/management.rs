// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Management of virtual functions by the PF (resets, pauses, policies, thresholds), and a card that performs the
//! tasks of the PF driver itself.

use super::*;
use crate::generation::XE_HPG;
use arctic_fidelity::proves;

#[test]
fn function_level_reset() {
    proves!(
        [V13_117, V13_118, V13_119, V13_120, V13_121, V13_123, V13_125],
        "an FLR is reported to the PF once. The VF's contexts stop immediately; other VFs are not affected. \
        FLR_DONE is sent only in response to FLR_START. The VF is not served until FLR_FINISH (contract D.7)"
    );
    let mut rig = Rig::talking();
    rig.start(VF1, 0, EngineClass::Copy);
    rig.start(VF1, 1, EngineClass::VideoEnhance);
    rig.start(VF2, 0, EngineClass::VideoDecode);
    // One context of the VF runs, one waits for a semaphore, and one is queued behind another VF's.
    rig.start(VF1, 2, EngineClass::VideoDecode);
    rig.host.end("bcs0", Outcome::Waiting);
    rig.step();
    assert!(rig.host.slot("bcs0").waiting && rig.host.runs("vecs0").is_some());
    rig.reset_function(VF1);
    let running = ["bcs0", "vecs0", "vcs0"].map(|engine| rig.host.runs(engine));
    assert_eq!(running, [None, None, Some(100 + 2 * CONTEXTS)]);
    rig.poke(VF2, VF2.image(0) + 0x1000 + 5 * 4, 64);
    rig.host.end("vcs0", Outcome::Complete);
    rig.step();
    assert_eq!(rig.host.runs("vcs0"), None, "work that was not scheduled yet is discarded");
    rig.reset_function(VF1);
    rig.step();
    assert_eq!(rig.host.received(), [[3, 0x9000_5106, 1, 1]]);
    assert_eq!(rig.mail(VF1, &[0x5507])[0], 0x5507, "not served");
    assert_eq!(rig.control(VF1, 5), FAILURE | 0xa, "not started");
    rig.host.fast(0x5506, &[1, 4]);
    rig.step();
    assert_eq!(rig.host.received(), [[3, 0x9000_5106, 1, 2]]);
    rig.reset_function(VF1);
    rig.step();
    assert!(rig.host.received().is_empty(), "the PF is already handling it");
    assert_eq!(rig.mail(VF1, &[0x5507])[0], 0x5507, "not yet");
    assert_eq!(rig.control(VF1, 5), SUCCESS);
    assert_eq!(rig.host.gt.mailbox_dword(numbered(1), 0), SUCCESS, "requests made meanwhile are answered");
    rig.connect(VF1);
    rig.start(VF1, 0, EngineClass::Copy);
    assert_eq!(rig.control(VF1, 5), FAILURE | 0xa);
}

/// Contract D.7: the PF may reset a VF without an FLR (VFs disabled, debugfs), from any state, and repeatedly.
#[test]
fn reset_by_the_pf() {
    let mut rig = Rig::talking();
    rig.start(VF1, 0, EngineClass::Copy);
    for before in [None, Some(1), Some(3), Some(4)] {
        if let Some(command) = before {
            rig.control_and_collect(VF1, command);
        }
        let answers = rig.control_and_collect(VF1, 4);
        assert_eq!(answers.len(), 2, "{answers:x?}");
        assert!(answers.contains(&vec![0x0012_0001, SUCCESS]) && answers.contains(&vec![3, 0x9000_5106, 1, 2]));
        assert_eq!(rig.host.runs("bcs0"), None);
        assert_eq!(rig.control(VF1, 5), SUCCESS, "after {before:?}");
    }
    assert_eq!(rig.control(Vf(64), 4), FAILURE | 0xc);
    assert_eq!(rig.control(Vf(0), 4), FAILURE | 0xc);
    assert_eq!(rig.control(VF1, 6), FAILURE | 0x60);
}

impl Rig {
    pub(super) fn control_and_collect(&mut self, vf: Vf, command: u32) -> Vec<Vec<u32>> {
        self.host.put_padded(&[0x0012_0003, 0x5506, vf.0.into(), command]);
        self.step();
        self.host.received()
    }
}

/// Contract D.7: PAUSE_DONE is sent once no context of the VF is on an engine. The VF's requests stay pending until
/// RESUME. After STOP, a VF runs again only after FLR_START and FLR_FINISH.
#[test]
fn pause_resume_stop() {
    let mut rig = Rig::talking();
    rig.start(VF1, 0, EngineClass::Copy);
    rig.start(VF2, 0, EngineClass::VideoDecode);
    assert_eq!(rig.control_and_collect(VF1, 1), [[0x0012_0001, SUCCESS]], "it still runs");
    rig.host.end("bcs0", Outcome::Preempted);
    rig.step();
    assert_eq!(rig.host.received(), [[3, 0x9000_5106, 1, 3]]);
    assert_eq!(rig.control(VF1, 1), FAILURE | 0xa);
    rig.send_typed(VF1, 0, 0x0509, &[0x1001_0002, 80, 20]);
    rig.step();
    assert!(rig.received(VF1).is_empty() && rig.host.runs("bcs0").is_none());
    assert_eq!(rig.mail(VF1, &[0x5509, 4])[0], 0x5509);
    assert_eq!(rig.control(VF1, 2), SUCCESS);
    assert_eq!(rig.host.gt.mailbox_dword(numbered(1), 0), SUCCESS | 1);
    rig.step();
    assert_eq!(rig.received(VF1), [[0x0012_0001, SUCCESS | 1]]);
    assert_eq!(rig.host.runs("bcs0"), Some(100 + CONTEXTS));
    assert_eq!(rig.control(VF1, 3), SUCCESS);
    assert_eq!((rig.host.runs("bcs0"), rig.host.runs("vcs0")), (None, Some(100 + 2 * CONTEXTS)));
    assert_eq!(rig.control(VF1, 2), FAILURE | 0xa);
    rig.control_and_collect(VF1, 4);
    assert_eq!(rig.control(VF1, 5), SUCCESS);
    rig.connect(VF1);
}

/// Everything that a VF is owed for requests that were taken before a pause is in its ring before PAUSE_DONE: after a
/// migration, xe's VF driver does not expect a message for an earlier request any more (xe: guc_ct_change_state,
/// guc_exec_queue_revert_pending_state_change).
#[test]
fn messages_for_earlier_requests_precede_pause_done() {
    let mut rig = Rig::talking();
    rig.start(VF1, 0, EngineClass::Copy);
    rig.start(VF1, 1, EngineClass::VideoDecode);
    rig.send_typed(VF1, 2, 0x1001, &[0, 0]);
    rig.send_typed(VF1, 2, 0x4503, &[1]);
    rig.step();
    assert!(rig.received(VF1).is_empty(), "both contexts still run");
    assert_eq!(rig.control_and_collect(VF1, 1), [[0x0012_0001, SUCCESS]]);
    rig.host.end("bcs0", Outcome::Preempted);
    rig.host.end("vcs0", Outcome::Preempted);
    rig.step();
    assert_eq!(rig.host.received(), [[3, 0x9000_5106, 1, 3]]);
    assert_eq!(rig.messages, VF1.function().bit(), "the VF is notified");
    assert_eq!(rig.received(VF1), [vec![3, 0x9000_1002, 0, 0], vec![2, 0x9000_4600, 1]]);
    assert_eq!(rig.control(VF1, 2), SUCCESS);
    rig.step();
    assert!(rig.received(VF1).is_empty());
}

/// PAUSE_DONE waits for space in the VF's ring, but not for longer than the PF driver waits for PAUSE_DONE (0.5 s): the
/// VF's processors may have been stopped before. What found no space is sent when the VF is resumed.
#[test]
fn pause_done_waits_for_space_in_the_vfs_ring() {
    for reads in [true, false] {
        let mut rig = Rig::talking();
        rig.start(VF1, 0, EngineClass::Copy);
        rig.send_typed(VF1, 2, 0x1001, &[0, 0]);
        rig.step();
        // The ring is full: its head is just behind its tail.
        let (head, tail) = (VF1.base() + ct::G2H_DESCRIPTOR, VF1.base() + ct::G2H_DESCRIPTOR + 4);
        let empty = rig.peek(VF1, tail);
        rig.poke(VF1, head, empty + 1);
        rig.control_and_collect(VF1, 1);
        rig.host.end("bcs0", Outcome::Preempted);
        rig.step();
        assert!(rig.host.received().is_empty(), "the ring is full");
        assert_eq!(rig.wait(50, true), []);
        if reads {
            rig.poke(VF1, head, empty);
        }
        let done = rig.wait(400, true);
        assert_eq!(done.len(), 1, "{done:?}");
        assert_eq!(done[0].1, [3, 0x9000_5106, 1, 3]);
        if reads {
            assert!(done[0].0 <= 5, "{done:?}");
            assert_eq!(rig.received(VF1), [[3, 0x9000_1002, 0, 0]]);
        } else {
            assert_eq!(rig.peek(VF1, tail), empty, "the memory of a paused VF is not written");
            rig.poke(VF1, head, empty);
            rig.wait(5, true);
            assert_eq!(rig.peek(VF1, tail), empty, "the memory of a paused VF is not written");
        }
        assert_eq!(rig.control(VF1, 2), SUCCESS);
        rig.step();
        assert_eq!(rig.received(VF1).len(), usize::from(!reads));
    }
}

/// Contract D.6: the reply contains the number of KLVs; SCHED_IF_IDLE sets the priority of all functions.
#[test]
fn vgt_policies() {
    let mut rig = Rig::provisioned();
    for (n, value) in (0u64..).zip([0x8001_0001, 1, 0x8002_0001, 100, 0x8d00_0001, 1]) {
        rig.host.poke(SCRATCH + n * 4, value);
    }
    assert_eq!(rig.host.tracked(0x5502, &[SCRATCH as u32, 0, 6]), SUCCESS | 3);
    let share = |rig: &Rig| rig.host.guc.state.as_ref().unwrap().scheduler.share(numbered(1));
    assert_eq!(share(&rig).priority, crate::guc::functions::share::Priority::Normal);
    assert_eq!(rig.configure(1, &[0x8a01_0001, 16, 0x8a02_0001, 16_000]), SUCCESS | 2);
    assert_eq!((share(&rig).quantum, share(&rig).preemption_timeout), (16_000_000, 16_000_000));
}

/// Contract D.10: an exceeded threshold is reported to the PF.
#[test]
fn events_above_a_threshold_are_reported() {
    let mut rig = Rig::talking();
    rig.host.poke(SCRATCH, 0x8002_0001);
    rig.host.poke(SCRATCH + 4, 1000);
    assert_eq!(rig.host.tracked(0x5502, &[SCRATCH as u32, 0, 2]), SUCCESS | 1);
    assert_eq!(rig.configure(1, &[0x8a06_0001, 3]), SUCCESS | 1);
    for _ in 0..3 {
        rig.step();
    }
    assert!(rig.host.received().is_empty());
    rig.step();
    assert_eq!(rig.host.received(), [[3, 0x9000_5104, 1, 0x8a06]]);
}

/// Contract D.9: a GuC reset clears the VF configurations; the PF driver must configure the VFs again.
#[test]
fn guc_reset_clears_vf_configs() {
    let mut rig = Rig::talking();
    rig.host.guc.reset(&rig.host.gt);
    assert_eq!(rig.mail(VF1, &[0x5509, 4])[0], 0x5509, "the GuC is in reset");
    rig.host.upload();
    rig.host.enable_rings(CTB + ct::G2H);
    assert_eq!(rig.mail(VF1, &[0x5509, 4])[0], FAILURE | 0xd);
    assert_eq!(rig.give(VF1), SUCCESS | 6);
    rig.connect(VF1);
}

/// Contract D.5, D.9: local memory stays assigned to its VF across a GuC reset, regardless of what the PF driver
/// configures first, until a KLV list with LMEM_SIZE changes it or the VF configuration is cleared. Otherwise the VF's
/// data would be lost.
#[test]
fn local_memory_assignment_survives_guc_reset() {
    const QUOTA: u64 = 2 << 20;
    let mut rig = Rig::talking();
    let quota = |rig: &Rig| rig.host.gt.memory.quota(numbered(1));
    assert_eq!(rig.configure(1, &[0x0003_0002, QUOTA as u32, 0]), SUCCESS | 1);
    for end in [vec![], vec![0x0003_0002, 0, 0]] {
        rig.host.guc.reset(&rig.host.gt);
        rig.host.upload();
        rig.host.enable_rings(CTB + ct::G2H);
        assert_eq!(rig.configure(1, &[0x8a01_0001, 16]), SUCCESS | 1);
        assert_eq!(quota(&rig), QUOTA, "a KLV list without LMEM_SIZE keeps the quota");
        if end.is_empty() {
            assert_eq!(rig.host.tracked(0x5503, &[1, 0, 0, 0]), SUCCESS);
        } else {
            assert_eq!(rig.configure(1, &end), SUCCESS | 1);
        }
        assert_eq!(quota(&rig), 0);
        assert_eq!(rig.configure(1, &[0x0003_0002, QUOTA as u32, 0]), SUCCESS | 1);
    }
}

#[test]
fn reset_without_pf_driver() {
    proves!(V13_117, "without a PF driver, the card completes the FLR");
    let mut rig = Rig::talking();
    assert_eq!(rig.host.mail(&[0x4509, 0])[0], SUCCESS);
    rig.reset_function(VF1);
    rig.connect(VF1);
    // The VF's memory is cleared without the GuC's lock. Until this has completed, the VF is not served, but other
    // functions are. The VF's requests are executed afterwards.
    let Host { gt, engines, guc, .. } = &mut rig.host;
    assert_eq!(guc.function_reset(gt, engines, VF1.function()), FunctionReset::Unled);
    assert_eq!((rig.mail(VF2, &[0x5507])[0], rig.mail(VF1, &[0x5507])[0]), (SUCCESS, 0x5507));
    let Host { gt, engines, guc, .. } = &mut rig.host;
    // A second reset during the first one, as caused by clearing VF Enable, also requires the memory to be cleared.
    assert_eq!(guc.function_reset(gt, engines, VF1.function()), FunctionReset::Unled);
    guc.finish_reset(gt, engines, VF1.function());
    assert_eq!(gt.mailbox_dword(VF1.function(), 0), 0x5507, "the other thread still clears the memory");
    guc.finish_reset(gt, engines, VF1.function());
    assert_eq!(gt.mailbox_dword(VF1.function(), 0), SUCCESS);
    rig.connect(VF1);
}

/// Contract D.7: the PF is notified of an FLR after the VF's local memory has been released, unless the PF has already
/// started to handle the FLR. The VF is served only after both the release of the memory and FLR_FINISH.
#[test]
fn pf_is_notified_after_local_memory_is_released() {
    let mut rig = Rig::talking();
    let reset = |rig: &mut Rig| {
        let Host { gt, engines, guc, .. } = &mut rig.host;
        guc.function_reset(gt, engines, VF1.function())
    };
    let announce = |rig: &mut Rig| {
        let Host { gt, engines, guc, .. } = &mut rig.host;
        let released = guc.announce_reset(gt, engines, VF1.function());
        rig.step();
        (released, rig.host.received())
    };
    let again = (false, vec![]);
    assert_eq!((reset(&mut rig), reset(&mut rig)), (FunctionReset::Unannounced, FunctionReset::Led));
    assert_eq!(announce(&mut rig), again, "local memory must be released again for the second reset");
    assert!(rig.host.received().is_empty(), "local memory not released yet");
    assert_eq!(announce(&mut rig), (true, vec![vec![3, 0x9000_5106, 1, 1]]));
    rig.control_and_collect(VF1, 4);
    assert_eq!(rig.control(VF1, 5), SUCCESS);
    rig.connect(VF1);

    assert_eq!(reset(&mut rig), FunctionReset::Unannounced);
    let answers = rig.control_and_collect(VF1, 4);
    assert!(answers.contains(&vec![3, 0x9000_5106, 1, 2]), "the PF starts without a notification: {answers:x?}");
    assert_eq!((rig.control(VF1, 5), rig.mail(VF1, &[0x5507])[0]), (SUCCESS, 0x5507), "local memory not released yet");
    assert_eq!(reset(&mut rig), FunctionReset::Led, "another thread is already releasing the local memory");
    assert_eq!(announce(&mut rig), again);
    assert_eq!(announce(&mut rig), (true, vec![vec![3, 0x9000_5106, 1, 1]]));
    rig.control_and_collect(VF1, 4);
    assert_eq!((rig.control(VF1, 5), rig.host.gt.mailbox_dword(VF1.function(), 0)), (SUCCESS, SUCCESS));

    assert_eq!(reset(&mut rig), FunctionReset::Unannounced);
    rig.control_and_collect(VF1, 4);
    assert_eq!((rig.control(VF1, 5), rig.mail(VF1, &[0x5507])[0]), (SUCCESS, 0x5507));
    assert_eq!(announce(&mut rig), (true, vec![]));
    assert_eq!(rig.host.gt.mailbox_dword(VF1.function(), 0), SUCCESS);
    rig.connect(VF1);
}

impl Rig {
    /// Advances the clock by `ms` in steps of 1 ms, each with a GuC step if one is due. Returns the messages to the PF,
    /// each with the time in ms after which it was read; the PF reads them only if `reads`.
    pub(super) fn wait(&mut self, ms: u64, reads: bool) -> Vec<(u64, Vec<u32>)> {
        let mut got = Vec::new();
        for passed in 1..=ms {
            self.host.pass(1_000_000);
            if self.host.deadline.is_some_and(|at| at <= self.host.clock.now()) {
                self.step();
            }
            if reads {
                got.extend(self.host.received().into_iter().map(|message| (passed, message)));
            }
        }
        got
    }
}

/// Linux ignores a notification that it receives between its FLR_FINISH and its own record of it. The next one must come
/// while the VF's driver still waits: it gives up after 0.6 s, of which the PF driver needs a part for the FLR.
#[test]
fn a_lost_notification_of_an_flr_is_repeated_while_the_vf_driver_waits() {
    let mut rig = Rig::talking();
    rig.reset_function(VF1);
    rig.step();
    let notice = |vf: u32| vec![3, 0x9000_5106, vf, 1];
    assert_eq!(rig.host.received(), [notice(1)]);
    rig.control_and_collect(VF1, 4);
    assert_eq!(rig.control(VF1, 5), SUCCESS);
    rig.reset_function(VF1);
    rig.step();
    assert_eq!(rig.host.received(), [notice(1)], "ignored: the driver has not recorded the end of the first FLR");
    let again = rig.wait(100, true);
    assert!(again.first().is_some_and(|(ms, message)| *ms <= 50 && *message == notice(1)), "{again:?}");
    assert!(again.len() <= 5, "Linux logs each notification: {again:?}");
    rig.control_and_collect(VF1, 4);
    assert_eq!(rig.wait(100, true), [], "the PF driver handles the FLR");
    assert_eq!(rig.control(VF1, 5), SUCCESS);
    rig.connect(VF1);
}

/// While the PF driver has messages to read, it may find the notification among them, and further ones would only fill
/// its ring.
#[test]
fn no_notification_of_an_flr_is_repeated_before_it_is_read() {
    let mut rig = Rig::talking();
    rig.reset_function(VF1);
    // The step that writes the notification comes late.
    rig.host.pass(100_000_000);
    rig.step();
    rig.wait(3000, false);
    let tail = rig.host.peek(CTB + 0x804);
    assert_eq!(rig.host.received().len(), 1);
    assert_eq!(rig.host.peek(CTB + 0x804), tail);
    let again = rig.wait(50, true);
    assert!((1..=2).contains(&again.len()), "{again:?}");
}

/// After the reset of many VFs the PF driver handles one after the other. Notifications of the others do not keep it
/// from that: together they are as frequent as those of one VF, and each VF has its turn.
#[test]
fn repeated_notifications_of_several_vfs_are_paced() {
    let mut rig = Rig::talking();
    for vf in [VF1, VF2] {
        rig.reset_function(vf);
    }
    rig.step();
    assert_eq!(rig.host.received().len(), 2);
    let again = rig.wait(200, true);
    assert!((8..=10).contains(&again.len()), "{again:?}");
    assert!(again.windows(2).all(|pair| pair[0].1[2] != pair[1].1[2]), "{again:?}");
}

/// The PF driver is unloaded while it handles an FLR. The card completes the next FLR.
#[test]
fn pf_driver_unloaded_during_flr() {
    let mut rig = Rig::talking();
    rig.reset_function(VF1);
    rig.step();
    rig.control_and_collect(VF1, 4);
    assert_eq!(rig.host.mail(&[0x4509, 0])[0], SUCCESS);
    rig.reset_function(VF1);
    rig.connect(VF1);
}

/// Contract C.4, D.4: without a PF driver, the card performs its tasks for two VFs (quotas, bootstrap, CT buffers,
/// handshake, runtime registers). An FLR clears the VF's memory and GGTT entries.
#[test]
fn card_without_pf_driver() {
    let Host { clock, engines, ram, .. } = Host::new();
    let profile = crate::registers::tests::profile();
    let local = SharedRegion::anonymous(1 << 30).unwrap();
    let ggtt = Ggtt::new(SharedRegion::anonymous(GGTT_BYTES).unwrap());
    let usable = crate::memory::layout::MemoryLayout::of(1 << 30).usable;
    let memory = Memory::new(XE_HPG.page_tables, local, ggtt, ram.clone()).with_flat_ccs(usable);
    let gt = Gt::new(&profile, memory, Arc::new(Recorder::default()), clock.clone());
    let guc = guc_beside(&engines);
    let mut host = Host { gt, engines, guc, clock, ram, driver: DriverState::new(0, LAYOUT, 0), deadline: None };
    let quota = Quota {
        ggtt: 2 << 20,
        local_memory: 64 << 20,
        contexts: CONTEXTS,
        doorbells: 4,
        exec_quantum_ms: 16,
        preempt_timeout_us: 16_000,
    };
    host.guc.start_without_pf_driver(&host.gt, &host.engines, &[quota; 2]).unwrap();
    // Check the GGTT ranges that the card assigned.
    let owner = |rig: &Rig, at: u64| rig.host.gt.memory.ggtt().entry(at >> 12);
    let mut rig = Rig::new(host);
    assert_eq!(owner(&rig, XE_HPG.sriov.ggtt.start), GgttEntry::from(1 << 2 | 1));
    assert_eq!(owner(&rig, XE_HPG.sriov.ggtt.start + (4 << 20) - 1), GgttEntry::from(2 << 2 | 1));
    assert!(!owner(&rig, XE_HPG.sriov.ggtt.start + (4 << 20)).valid());
    assert_eq!(rig.mail(VF2, &[0x5509, 1])[..2], [SUCCESS | 2, (XE_HPG.sriov.ggtt.start + (2 << 20)) as u32]);
    assert_eq!(rig.mail(VF2, &[0x5509, 3])[..2], [SUCCESS | 2, 64 << 20]);
    assert_eq!(rig.mail(Vf(3), &[0x5509, 1])[0], FAILURE | 0xd);
    let mut data = [0; 4];
    for vf in [VF1, VF2] {
        rig.host.gt.memory.write_bar(vf.function(), 0x1000, &[vf.0; 4]);
    }
    rig.host.gt.memory.read_bar(numbered(2), 0x1000, &mut data);
    assert_eq!(data, [2; 4]);
    rig.host.gt.memory.local().slice((64 << 20) + 0x1000, 4).unwrap().read_slice(&mut data, 0).unwrap();
    assert_eq!(data, [2; 4], "VF 2's memory follows VF 1's");

    // Replace them by the ranges that the test drivers (`Rig`) use.
    let state = rig.host.guc.state.as_mut().unwrap();
    for vf in [VF1, VF2] {
        let config = &mut state.of(vf.function()).config;
        (config.ggtt_start, config.ggtt_size) = (vf.base(), RAM as u64);
    }
    for vf in [VF1, VF2] {
        rig.connect(vf);
        rig.send_typed(vf, 0, 0x5103, &[5, 0x0000_0001, 0x0001_0000]);
        rig.step();
        assert_eq!(rig.received(vf), [vec![4, 0x9000_5102, 5, 0x7000_0000, 0x0001_0000], vec![0x0012_0001, SUCCESS]]);
        rig.send_typed(vf, 0, 0x5103, &[6, 0x0101, 2]);
        rig.step();
        let [answer, _] = &rig.received(vf)[..] else { panic!("expected a relayed response and a reply") };
        assert_eq!(answer[..5], [16, 0x9000_5102, 6, 0x7000_0006, 0]);
        assert_eq!(answer[5..7], [0x911c, rig.host.gt.registers.value(0x911c)]);
        assert_eq!(answer[15], 0xc1dc);
        rig.send_typed(vf, 0, 0x5103, &[7, 0x0003_0101, 0]);
        rig.step();
        assert_eq!(rig.received(vf)[0][..5], [10, 0x9000_5102, 7, 0x7000_0003, 5], "three pairs; five remain");
        rig.send_typed(vf, 0, 0x5103, &[8, 0x0101, 9]);
        rig.send_typed(vf, 0, 0x5103, &[9, 0x0777, 0]);
        rig.step();
        let refused: Vec<_> = rig.received(vf).into_iter().filter(|m| m[1] == 0x9000_5102).map(|m| m[3]).collect();
        assert_eq!(refused, [0x6000_0016, 0x6000_0038]);
    }
    rig.start(VF1, 0, EngineClass::Copy);
    rig.reset_function(VF1);
    assert_eq!(rig.host.runs("bcs0"), None);
    rig.host.gt.memory.read_bar(numbered(1), 0x1000, &mut data);
    assert_eq!(data, [0; 4]);
    rig.host.gt.memory.read_bar(numbered(2), 0x1000, &mut data);
    assert_eq!(data, [2; 4]);
    assert_eq!(owner(&rig, VF1.base()), GgttEntry::from(1 << 2 | 1), "address 0, still assigned to VF 1");
    assert_eq!(rig.mail(VF1, &[0x5507])[0], SUCCESS, "and it can be used again");
    // After a GuC reset, the card restarts the built-in firmware and assigns the quotas again; local memory keeps its
    // contents.
    rig.host.guc.reset(&rig.host.gt);
    rig.host.guc.restart_builtin(&rig.host.gt, &rig.host.engines).unwrap();
    assert_eq!(rig.mail(VF2, &[0x5509, 3])[..2], [SUCCESS | 2, 64 << 20]);
    rig.host.gt.memory.read_bar(numbered(2), 0x1000, &mut data);
    assert_eq!(data, [2; 4]);
    assert!(
        rig.host.guc.start_without_pf_driver(&rig.host.gt, &rig.host.engines, &[quota; 63]).is_err(),
        "more than the card has"
    );
}
