// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fuzz harness of the GuC's interface. A VF or the PF is the attacker. The input determines its messages in CT buffers
//! and mailbox, the data structures to which these refer, and its contexts.
//!
//! Byte 0 of the input selects the attacker, whether the VFs' GGTT windows are mapped, and whether the card or a PF
//! driver provisions the VFs; the other bytes determine the attacker's operations. A VF must not change the state of
//! the other VFs or of the PF. The PF may disturb all functions, but the card must work again after a reset.

use arctic_device_model::gpu::VirtualFunctions;
use std::sync::Arc;

use arctic_device_model::card::Card;
use arctic_device_model::guc::actions::{ACTIONS, Length};
use arctic_device_model::host::Function;
use arctic_device_model::topology::EngineClass;
use vm_memory::Bytes as _;

use super::tree::visit_part;
use crate::bytes::Bytes;
use crate::ct::{self, self_cfg};
use crate::mi::{self, Compare};
use crate::vfs::bench::*;
use crate::vfs::canary;
use crate::vfs::pf::Pf;
use crate::vfs::world::{Time, read};

/// Maximum number of input bytes that are used; further bytes are ignored.
const MAX_INPUT: usize = 2048;
/// Maximum number of operations per input.
const MAX_OPERATIONS: u32 = 96;
/// Number of bytes of each victim's memory that are filled with canaries.
const CANARY_BYTES: usize = 0x2000;
/// Offset of KLV lists and buffers in the attacker's memory.
const LISTS: u64 = at::SCRATCH;

const GDRST: u32 = 0x941c;
const GU_CNTL: u32 = 0x10_1010;

/// The attacking function. The PF's driver is stored here; the VF's driver is [`VfBench::attacker`].
enum Attacker {
    Virtual,
    Physical(Box<Pf>),
}

/// The state of one run.
struct Run {
    bench: VfBench,
    attacker: Attacker,
}

impl Run {
    /// Returns the attacker's driver.
    fn driver(&self) -> &dyn GucDriver {
        match &self.attacker {
            Attacker::Virtual => &self.bench.attacker,
            Attacker::Physical(pf) => pf.as_ref(),
        }
    }

    fn driver_mut(&mut self) -> &mut dyn GucDriver {
        match &mut self.attacker {
            Attacker::Virtual => &mut self.bench.attacker,
            Attacker::Physical(pf) => pf.as_mut(),
        }
    }

    fn poke(&self, at: u64, value: u32) {
        self.driver().poke(at, value);
    }

    /// Returns the GGTT address of offset `at` in the attacker's memory.
    fn global(&self, at: u64) -> u64 {
        self.driver().base() + at
    }

    fn set(&self, register: u32, value: u32) {
        self.driver().set(register, value);
    }

    fn send(&mut self, message: &[u32]) {
        self.driver_mut().send(message);
    }

    fn operand(&self, bytes: &mut Bytes<'_>) -> u32 {
        const IDS: [u32; 12] = [0, 1, 2, 3, 63, 64, 127, 191, 255, 256, 65534, 65535];
        let value = match bytes.below(9) {
            0 => bytes.dword(),
            1 | 2 => bytes.byte().into(),
            3 | 4 => self.global(LISTS + u64::from(bytes.byte()) * 0x40) as u32,
            5 => bytes.edge() as u32,
            6 => bytes.of(&IDS),
            7 => base(Function::new(1 + bytes.byte() % 4).unwrap()) as u32 + u32::from(bytes.word()) * 0x100,
            _ => 0,
        };
        // The attacker must not write canaries itself: one found in its memory later must come from another function.
        if canary::owner(value).is_some() { !value } else { value }
    }

    /// Returns a plausible payload of an action.
    fn payload(&self, code: u16, length: Length, bytes: &mut Bytes<'_>) -> Vec<u32> {
        let id = u32::from(bytes.byte() % 8);
        let list = self.global(LISTS + u64::from(id) * 0x100) as u32;
        let image = |member: u32| self.driver().descriptor(id, member);
        match code {
            0x1000 | 0x4503 | 0x0020 => vec![id],
            0x1001 => vec![id, u32::from(bytes.byte() & 1)],
            0x4502 => vec![1, id, u32::from(bytes.byte() % 6), 1, 0, 0, 0, 0, 0, image(0), 0],
            0x4601 => {
                let width = 1 + u32::from(bytes.byte() % 4);
                let queue = self.global(at::QUEUES) as u32;
                let mut payload = vec![1, id, 3, 3, queue, 0, queue + 0x1000, 0, 0x1000, width];
                (0..width).for_each(|member| payload.extend([image(member), 0]));
                payload
            }
            0x100b => vec![id, 0x2003_0001, u32::from(bytes.byte() % 5), 0x2001_0001, bytes.word().into()],
            0x0010 => vec![id, u32::from(bytes.byte()), 0x40_0000 + u32::from(bytes.word() % 1024) * 0x1000, 0, 0],
            0x5502 | 0x550e => vec![list, 0, u32::from(bytes.byte() % 64)],
            0x5503 => vec![1 + id % 3, list, 0, u32::from(bytes.byte() % 64)],
            0x5506 => vec![1 + id % 3, u32::from(bytes.byte() % 7)],
            0x5101 => vec![1 + id % 3, id, bytes.dword() & 0x7fff_ffff],
            0x5103 => vec![id, bytes.of(&[0x1, 0x101, 0x7fff]), bytes.dword()],
            0x7000 | 0x7002 => vec![id, 1 << 31 | u32::from(bytes.byte() % 4)],
            0x3003 => match bytes.byte() % 3 {
                0 => vec![2, list, 0],
                1 => vec![6 << 8 | 2, u32::from(bytes.byte() % 34), bytes.word().into()],
                _ => vec![5 << 8 | 2, list, 0],
            },
            0x550a => vec![list, 0],
            0x550c => vec![list, 0, list + 0x100, 0],
            0x550d => vec![u32::from(bytes.byte() % 70), list, 0, list + 0x100, 0],
            _ => {
                let (Length::Exact(n) | Length::AtLeast(n) | Length::Pairs(n) | Length::Either(n, _)) = length;
                (0..n).map(|_| self.operand(bytes)).collect()
            }
        }
    }

    /// Sends a message for an action, in some cases with modified payload dwords, length or HXG type.
    fn message(&mut self, bytes: &mut Bytes<'_>) {
        let action = &ACTIONS[bytes.below(ACTIONS.len() as u32) as usize];
        let mut payload = self.payload(action.code, action.length, bytes);
        let mode = bytes.byte();
        for _ in 0..mode & 3 {
            let at = usize::from(bytes.byte());
            let value = self.operand(bytes);
            let len = payload.len().max(1);
            match payload.get_mut(at % len) {
                Some(dword) => *dword = value,
                None => payload.push(value),
            }
        }
        match mode >> 2 & 7 {
            0 => payload.truncate(usize::from(bytes.byte()) % (payload.len() + 1)),
            1 => {
                let more = usize::from(bytes.byte());
                let len = (payload.len() + more).min(254);
                let fill = self.operand(bytes);
                payload.resize(len, fill);
            }
            _ => {}
        }
        let kind =
            [2, 0, 1, 2, 2, 2, 2, u32::from(bytes.0.first().copied().unwrap_or(2) & 0xf)][usize::from(mode >> 5)];
        let mut words = ct::fast_request(action.code.into(), &payload);
        words[1] = kind << 28 | u32::from(action.code);
        self.send(&words);
    }

    /// Registers and enables a context with one of five command sequences in its ring buffer.
    fn context(&mut self, bytes: &mut Bytes<'_>) {
        let id = u32::from(bytes.byte() % 8);
        let driver = self.driver();
        let (ring, scratch) = (driver.global(Vf::ring(id, 0)), driver.global(at::SCRATCH + 0x8000));
        let commands = match bytes.byte() % 5 {
            0 => mi::store_data_imm(scratch, 1).to_vec(),
            1 => mi::batch_buffer_start(ring).to_vec(),
            2 => mi::semaphore_wait(scratch, Compare::Equal, 1).to_vec(),
            // An invalid header: the client field has a reserved value.
            3 => vec![0x7f << 23],
            _ => Vec::new(),
        };
        let class = bytes.of(&EngineClass::BY_GUC);
        self.driver_mut().submit(id, class, &commands);
    }

    /// Writes a list of KLVs.
    fn list(&self, bytes: &mut Bytes<'_>) {
        const KEYS: [u32; 24] = [
            1, 2, 3, 4, 5, 6, 0x8a01, 0x8a02, 0x8a03, 0x8a04, 0x8a05, 0x8a06, 0x8a07, 0x8a08, 0x8a0a, 0x8a0b, 0x8a0c,
            0x8a0d, 0x8a0e, 0x8001, 0x8002, 0x8003, 0x4001, 0x1001,
        ];
        let mut at = LISTS + u64::from(bytes.byte() % 8) * 0x100;
        for _ in 0..bytes.byte() % 16 {
            let (key, len) = (bytes.of(&KEYS), bytes.of(&[1, 2, 0, 1, 2, 8, 200]));
            self.poke(at, key << 16 | len);
            for n in 0..u64::from(len.min(8)) {
                self.poke(at + 4 + n * 4, self.operand(bytes));
            }
            at += 4 + u64::from(len.min(8)) * 4;
        }
    }

    /// Sends a mailbox request, in some cases with a modified dword.
    fn mail(&mut self, bytes: &mut Bytes<'_>) {
        const CODES: [u32; 9] = [0x0508, 0x4509, 0x4100, 0x5507, 0x5500, 0x5509, 0x5508, 0x550f, 0];
        let mut message = [bytes.of(&CODES), 0, 0, 0];
        match message[0] {
            0x0508 => {
                // In the order of their codes, which the inputs of the corpus choose by index.
                let keys: [u32; 8] = std::array::from_fn(|n| self_cfg::INTERRUPT_STATUS + n as u32);
                message[1] = self_cfg::klv(bytes.of(&keys));
                message[2] = self.operand(bytes);
            }
            0x4509 => message[1] = u32::from(bytes.byte() % 3),
            _ => (1..4).for_each(|n| message[n] = self.operand(bytes)),
        }
        if bytes.byte() & 7 == 7 {
            message[usize::from(bytes.byte() & 3)] = self.operand(bytes);
        }
        self.driver_mut().mail(&message);
    }

    /// Performs the next operation of the attacker.
    fn operation(&mut self, bytes: &mut Bytes<'_>) {
        match bytes.below(18) {
            0..5 => self.message(bytes),
            5 => {
                let len = usize::from(bytes.byte() % 40);
                let words: Vec<u32> = (0..len).map(|_| self.operand(bytes)).collect();
                self.send(&words);
            }
            6 => {
                let field = bytes.of(&[0, 4, 8, 0x800, 0x804, 0x808]);
                self.poke(field, self.operand(bytes));
                self.set(GUC_HOST_INTERRUPT, 1);
            }
            7 | 8 => self.mail(bytes),
            9 => self.list(bytes),
            10 => self.context(bytes),
            11 => {
                let page = bytes.word() % 1024;
                self.set(0x40_0000 + u32::from(page) * 0x1000, 0);
            }
            12 => self.bench.pass(u64::from(bytes.word()) * 10_000),
            13 => {
                // Writes work items to a work queue, then the queue's tail.
                let n = u64::from(bytes.byte() % 16);
                for at in 0..n {
                    let word = if at % 4 == 0 { 5 | 3 << 16 } else { self.operand(bytes) };
                    self.poke(at::QUEUES + 0x1000 + at * 4, word);
                }
                self.poke(at::QUEUES + 4, n as u32 * 4);
            }
            14 => {
                // Writes a GGTT entry of the attacker or of another function.
                let page = (base(VICTIMS[0]) >> 12) + u64::from(bytes.word());
                let entry = u64::from(self.operand(bytes)) & !0xfff | u64::from(bytes.byte() & 0x1f);
                match &self.attacker {
                    Attacker::Virtual => self.bench.attacker.set_global(page, entry),
                    Attacker::Physical(pf) => pf.access.set_entry(page, entry),
                }
            }
            15 => match &self.attacker {
                Attacker::Virtual => self.bench.card.reset_function(ATTACKER),
                Attacker::Physical(_) => match bytes.byte() % 8 {
                    0 => self.bench.card.disable_vfs(),
                    n => self.bench.card.enable_vfs(n),
                },
            },
            16 => match &self.attacker {
                Attacker::Virtual => self.bench.attacker.consume(),
                Attacker::Physical(_) => self.set(bytes.of(&[0xcf58, 0xc340, 0xc314, 0xcee8]), bytes.dword()),
            },
            _ => drop(self.bench.work(bytes.byte().into())),
        }
    }
}

fn canaries(function: Function) -> Vec<u8> {
    canary::bytes(function.number(), CANARY_BYTES)
}

/// Fills parts of the other functions' memory, and the victims' mailboxes, with canaries.
fn fill(bench: &VfBench) {
    for victim in &bench.victims {
        let bytes = canaries(victim.function);
        victim.local.slice(at::DATA, CANARY_BYTES).unwrap().write_slice(&bytes, 0).unwrap();
        for n in 1..4 {
            victim.set(MAILBOX + n * 4, canary::word(victim.function.number(), n.into()));
        }
    }
    for function in [Function::PF, VICTIMS[0], VICTIMS[1]] {
        bench.guests.of(function).set_starts(&canaries(function));
    }
}

/// Checks that the canaries are unchanged and that none of them is in the attacker's memory.
fn check_isolation(bench: &VfBench) {
    for victim in &bench.victims {
        assert!(
            read(&victim.local, at::DATA, CANARY_BYTES) == canaries(victim.function),
            "a victim's local memory has changed"
        );
        for n in 1..4 {
            assert_eq!(
                victim.get(MAILBOX + n * 4),
                canary::word(victim.function.number(), n.into()),
                "a victim's mailbox has changed"
            );
        }
    }
    for function in [Function::PF, VICTIMS[0], VICTIMS[1]] {
        let parts = bench.guests.of(function).starts(CANARY_BYTES);
        assert!(parts.iter().all(|part| *part == canaries(function)), "{function:?}'s guest memory has changed");
    }
    // The attacker's guest memory, and the ranges of its local memory that contain data.
    let own = bench.guests.of(ATTACKER).starts(CANARY_BYTES);
    let local = bench.attacker.local.data(0..LOCAL);
    let local = local.map(|run| read(&bench.attacker.local, run.start, (run.end - run.start) as usize));
    for bytes in own.into_iter().chain(local) {
        assert_eq!(canary::find(&bytes), None, "the attacker has data of another function");
    }
}

/// Checks that a job of a victim completes.
fn check_job(bench: &mut VfBench, victim: usize) {
    let vf = &mut bench.victims[victim];
    vf.poke(at::SCRATCH, 0);
    let job = mi::store_data_imm(vf.global(at::SCRATCH), 0x600d);
    vf.submit(1, EngineClass::Copy, &job);
    bench.until("completion of a victim's job", 60_000, |bench| bench.victims[victim].peek(at::SCRATCH) == 0x600d);
}

/// Checks that new drivers can initialise the card after a reset and that a job completes.
fn check_recovery(card: &Arc<Card>, bench: &mut VfBench) {
    card.write_gttmmadr(Function::PF, GDRST.into(), &1u32.to_le_bytes());
    card.write_gttmmadr(Function::PF, GU_CNTL.into(), &(1u32 << 31).to_le_bytes());
    *bench.pf.borrow_mut() = Some(Pf::up(card));
    bench.work(200);
    bench.victims[0].up();
    check_job(bench, 0);
}

/// Runs one input; panics if an invariant is violated.
pub fn run(input: &[u8]) {
    let input = &input[..input.len().min(MAX_INPUT)];
    let Some((mode, rest)) = input.split_first() else { return };
    let mut bytes = Bytes(rest);
    let (physical, mapped, driver) = (mode & 1 != 0, mode & 2 != 0, mode & 4 != 0);
    let quota = (!physical && !driver).then_some(QUOTA);
    let mut bench = VfBench::with(mapped, quota, Time::manual());
    bench.victims.iter_mut().for_each(Vf::up);
    bench.attacker.up();
    let attacker = match physical {
        true => {
            Attacker::Physical(Box::new(bench.pf.borrow_mut().take().expect("without a quota there is a PF driver")))
        }
        false => Attacker::Virtual,
    };
    if !physical {
        fill(&bench);
    }
    let mut run = Run { bench, attacker };
    for _ in 0..MAX_OPERATIONS {
        if !bytes.more() {
            break;
        }
        run.operation(&mut bytes);
    }
    let Run { mut bench, attacker } = run;
    bench.work(100);
    visit_part(&*bench.card, input);
    match attacker {
        Attacker::Virtual => {
            check_isolation(&bench);
            check_job(&mut bench, 0);
        }
        Attacker::Physical(_) => {
            let card = bench.card.clone();
            check_recovery(&card, &mut bench);
        }
    }
    assert_eq!(bench.card.panics(), 0);
}
