// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fuzz harness of saved state of a VF, as it comes from a file or from the PF's guest.
//!
//! A VF with contexts, doorbells, a work queue, messages and a kernel in flight is saved; the input changes the document, or is
//! taken as it is. A document that is refused leaves the VF empty; one that is restored saves to the same bytes. Then the VF
//! runs. Neither may change the state of the other functions.

use std::sync::OnceLock;

use arctic_device_model::card::function_state::SavedFunction;
use arctic_device_model::topology::EngineClass;

use crate::bytes::Bytes;
use crate::ct;
use crate::document::{Section, Sections};
use crate::kernels::{COUNT, kernel};
use crate::mi::compute::{Bases, Walker, cfe_state, state_base_address, state_compute_mode};
use crate::mi::{self, Compare};
use crate::vfs::bench::*;
use crate::vfs::others::{fill, nothing_leaked, snapshot, unharmed};
use crate::vfs::world::Time;

/// Maximum number of changes of a document.
const MAX_CHANGES: u32 = 24;

/// A paused VF without a driver. Its accesses to the GGTT are trapped, so that its entries in the PF's table are not compared.
fn paused() -> VfBench {
    let bench = VfBench::with(false, Some(QUOTA), Time::manual());
    pause(&bench);
    bench
}

/// A paused VF with something of everything that is saved.
fn busy() -> VfBench {
    const CODE: u64 = at::SCRATCH + 0x1000;
    let mut bench = paused();
    bench.card.function_state(ATTACKER).set_paused(false).expect("it is paused");
    bench.attacker_up();
    let vf = &mut bench.attacker;
    for id in 0..3 {
        let wait = mi::semaphore_wait(vf.global(at::SCRATCH), Compare::Equal, 1);
        vf.submit(id, EngineClass::Copy, &wait);
        vf.request(0x100b, &[id, 0x2001_0001, 77 * id]);
        vf.request(0x0010, &[id, id, 0x40_0000 + id * 0x1000, 0, 0]);
    }
    vf.write_words(CODE, &kernel(COUNT));
    let counter = vf.base() + at::SCRATCH + 0x200;
    let inline = Some([counter as u32, (counter >> 32) as u32, 100_000, 0, 0, 0, 0, 0]);
    let walker = Walker { threads: 4, groups: [2, 1, 1], inline, ..Walker::of(0) };
    let bases = Bases { instruction: vf.base() + CODE, ..Bases::default() };
    let state = [&state_base_address(&bases)[..], &state_compute_mode(false), &cfe_state(0)].concat();
    vf.write_words(Vf::batch(4), &[&state[..], &walker.words(), &[mi::BATCH_BUFFER_END]].concat());
    let jump = vf.jump(4);
    vf.submit(4, EngineClass::Compute, &jump);
    bench.work(12);
    pause(&bench);
    bench
}

fn pause(bench: &VfBench) {
    // A VF that was restored runs: its pause is refused only if it is paused.
    let _ = bench.card.function_state(ATTACKER).set_paused(true);
    bench.until("the end of the pause", 5000, |bench| bench.card.function_state(ATTACKER).is_paused());
}

/// The state of a VF without a driver, but its memory.
fn empty() -> Vec<u8> {
    static EMPTY: OnceLock<Vec<u8>> = OnceLock::new();
    EMPTY.get_or_init(|| without_memory(&paused())).clone()
}

fn without_memory(bench: &VfBench) -> Vec<u8> {
    let saved = bench.card.function_state(ATTACKER).save().expect("a paused VF can be saved");
    let mut document = Sections::of(&SavedFunction { memory: None, ..saved }.to_bytes());
    // Where it is.
    document.remove(b"PLAC");
    document.to_bytes()
}

fn save(bench: &VfBench) -> Vec<u8> {
    let saved = bench.card.function_state(ATTACKER).save().expect("a paused VF can be saved");
    saved.to_bytes()
}

/// Changes a part of a document.
fn change(document: &mut Sections, bytes: &mut Bytes<'_>) {
    let count = document.sections.len() as u32;
    if count == 0 {
        return;
    }
    let index = bytes.below(count) as usize;
    let section = &mut document.sections[index];
    let len = section.body.len().max(1) as u32;
    let (width, at) = (usize::from(section.record.max(1)), bytes.below(len.min(65536)) as usize);
    match bytes.byte() % 12 {
        0 => document.sections.swap(index, bytes.below(count) as usize),
        1 => drop(document.sections.remove(index)),
        2 => section.tag = *bytes.edge().to_le_bytes().first_chunk().unwrap_or(&[0; 4]),
        3 => section.flags ^= u16::from(bytes.byte()),
        4 => section.record = section.record.wrapping_add_signed(i16::from(bytes.byte() as i8) / 16),
        5 => section.body.truncate(at / width * width),
        6 => {
            let record = section.body.iter().skip(at / width * width).take(width).copied().collect::<Vec<_>>();
            section.body.extend(record.repeat(1 + usize::from(bytes.byte() % 40)));
        }
        7 => {
            let body = bytes.take(16).to_vec();
            document.sections.push(Section { tag: *b"MORE", flags: 0, record: 0, body });
        }
        8 => section.body.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= bytes.byte()),
        kind => {
            // A value in a field of 4 or 8 bytes.
            let value = bytes.edge().to_le_bytes();
            let field = if kind == 9 { &value[..4] } else { &value };
            section.body.iter_mut().skip(at & !3).zip(field).for_each(|(byte, value)| *byte = *value);
        }
    }
}

/// Runs one input.
///
/// # Panics
/// If the card panics, if the document has an effect on another function, or if a refusal leaves a part of it.
pub fn run(input: &[u8]) {
    let mut bytes = Bytes(input);
    let options = bytes.byte();
    let bench = &mut busy();
    let good = save(bench);
    let document = if options & 6 == 6 {
        bytes.0.to_vec()
    } else {
        let mut document = Sections::of(&good);
        for _ in 0..MAX_CHANGES {
            if !bytes.more() {
                break;
            }
            change(&mut document, &mut bytes);
        }
        document.to_bytes()
    };
    fill(bench);
    let before = snapshot(bench, true);
    let Ok(saved) = SavedFunction::from_bytes(&document) else { return };
    let canonical = saved.to_bytes();
    assert_eq!(SavedFunction::from_bytes(&canonical), Ok(saved.clone()), "it is written as other state");
    let restored = bench.card.function_state(ATTACKER).restore(&saved);
    match restored {
        Ok(()) => {
            if saved.memory.is_some() {
                compare(&canonical, &save(bench));
            }
            for id in 0..3 {
                bench.attacker.set(ct::GUC_HOST_INTERRUPT, 1);
                bench.card.write_gttmmadr(ATTACKER, 0x40_0000 + id * 0x1000, &[1, 0, 0, 0]);
            }
            let _ = bench.card.function_state(ATTACKER).set_paused(false);
            bench.work(12);
            pause(bench);
            save(bench);
        }
        Err(error) => {
            assert_eq!(without_memory(bench), empty(), "what is left of a state that was refused: {error}");
        }
    }
    assert_eq!(bench.card.panics(), 0);
    unharmed(&before, &snapshot(bench, true));
    // Reading all registers takes a thousand times as long as the rest.
    nothing_leaked(bench, options >> 3 == 0);
}

/// Compares two documents by section, so that a difference is named. Sections that are empty, and orders of records that have no
/// meaning, are not in a document that a card has written.
fn compare(restored: &[u8], saved: &[u8]) {
    let (mut one, mut other) = (Sections::of(restored), Sections::of(saved));
    for document in [&mut one, &mut other] {
        // The parts of local memory with data are those of the memory, and interrupts that are due are raised by a restore.
        for tag in [b"LMRN", b"ITRS", b"ITRE", b"REGS", b"REGE", b"CTXS", b"CTXM", b"CTXP", b"CTXQ", b"DBEL"] {
            if let Some(section) = document.find(tag) {
                let width = usize::from(section.record);
                let mut records: Vec<_> = section.body.chunks(width).map(<[u8]>::to_vec).collect();
                records.sort();
                section.body = records.concat();
            }
        }
        // A VF that is elsewhere has to adapt its addresses, and is owed nothing for earlier requests.
        for tag in [b"LMRN", b"ITRS", b"ITRE", b"REGS", b"REGE", b"PLAC", b"WAIT", b"WAID", b"TLBI"] {
            document.remove(tag);
        }
    }
    assert_eq!(one, other, "the restored state is another one");
}
