// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A store, a copy and a fence on one engine of each class, all in flight concurrently. The check takes a few
//! milliseconds, short enough to run it on each of many VFs.

use anyhow::{Context, Result, ensure};
use arctic_mi::gpr;

use super::{CheckEnvironment, Random};
use crate::batch::{Batch, PostSync};
use crate::blt::{Area, Depth, Surface, Tiling};
use crate::device::Engine;
use crate::number::size;
use crate::vm::{Buffer, Place};

/// Size in bytes of an engine's region of the code buffer; larger than its batch.
const CODE: u64 = 4096;
/// Size in bytes of an engine's region of each data buffer.
const PART: u64 = 4096;
/// Offsets in a region of the local memory buffer: the stored value, then the copied data.
const STORED: u64 = 0;
const COPIED: u64 = 1024;
/// Offsets in a region of the system memory buffer: the source of the copy, the post-sync write of the flush, the
/// fence.
const SOURCE: u64 = 0;
const FLUSHED: u64 = 2048;
const FENCE: u64 = 2056;
/// Number of quadwords to copy: eight rows of 64 bytes for a copy engine.
const COPIED_QUADWORDS: usize = 64;
/// Number of general purpose registers, through which the other engines copy.
const REGISTERS: u32 = 16;

/// Returns the first engine of each class.
pub fn one_of_each_class(engines: &[Engine]) -> Vec<Engine> {
    let mut chosen: Vec<Engine> = Vec::new();
    for engine in engines {
        if chosen.iter().all(|known| known.class != engine.class) {
            chosen.push(*engine);
        }
    }
    chosen
}

/// The work of one engine and its expected results.
struct EngineWork {
    engine: Engine,
    /// Offset of its regions in the data buffers.
    at: u64,
    stored: u64,
    flushed: u64,
    fence: u64,
    source: Vec<u64>,
}

/// Submits work to each of `engines`, waits for all submissions and checks each result. An error on one engine does not
/// affect the results of the others.
pub fn brief(env: &CheckEnvironment<'_>, engines: &[Engine], seed: u64) -> Result<Vec<(Engine, Result<()>)>> {
    let vm = env.device.vm().context("no address space")?;
    let room = |each: u64| each * engines.len() as u64 + (8 << 10);
    let card = vm.buffer(Place::Vram, room(PART))?;
    let system = vm.buffer(Place::System, room(PART))?;
    let code = vm.buffer(Place::Vram, room(CODE))?;
    let mut random = Random(seed);
    let mut queues = Vec::new();
    for (index, engine) in engines.iter().enumerate() {
        let quadwords = (0..COPIED_QUADWORDS).map(|_| random.quadword()).collect();
        let [stored, flushed, fence] = [0; 3].map(|_| random.quadword() | 1);
        let work = EngineWork { engine: *engine, at: PART * index as u64, stored, flushed, fence, source: quadwords };
        for (number, quadword) in work.source.iter().enumerate() {
            system.mapping().write_u64(size(work.at + SOURCE) + 8 * number, *quadword);
        }
        let start = code.address() + CODE * index as u64;
        let mut batch = Batch::at(start);
        write(&mut batch, &work, card.address(), system.address());
        ensure!(4 * batch.dwords().len() as u64 <= CODE, "the batch of {} exceeds its code buffer", engine.name());
        for (number, dword) in batch.dwords().iter().enumerate() {
            code.mapping().write_u32(size(CODE) * index + 4 * number, *dword);
        }
        let queue = vm.queue(*engine);
        let queue = queue.and_then(|queue| {
            queue.submit_user_fence(start, &system, work.at + FENCE, work.fence)?;
            Ok(queue)
        });
        queues.push((work, queue));
    }
    let mut outcomes = Vec::new();
    for (work, queue) in queues {
        let outcome = match queue {
            Ok(queue) => queue
                .wait_user_fence(&system, size(work.at + FENCE), work.fence, env.timeout)
                .map_err(anyhow::Error::from)
                .and_then(|()| work.check(&card, &system)),
            Err(error) => Err(error.into()),
        };
        outcomes.push((work.engine, outcome));
    }
    Ok(outcomes)
}

/// The batch: an immediate store to local memory, a copy from system to local memory (blit or register loads and
/// stores, depending on the engine), and a flush that writes to system memory.
fn write(batch: &mut Batch, work: &EngineWork, card: u64, system: u64) {
    let (card, system) = (card + work.at, system + work.at);
    batch.store_qwords(card + STORED, &[work.stored]);
    if work.engine.copies() {
        let surface = |address, system| Surface { address, pitch: 64, height: 8, tiling: Tiling::Linear, system };
        let all = Area { x: 0, y: 0, width: 16, height: 8 };
        batch.fast_copy(&surface(system + SOURCE, true), all, &surface(card + COPIED, false), 0, 0, Depth::Bits32);
    } else {
        for n in 0..REGISTERS {
            let from = system + SOURCE + 8 * u64::from(n);
            batch.load_register_mem(gpr(n), from).load_register_mem(gpr(n) + 4, from + 4);
        }
        for n in 0..REGISTERS {
            batch.store_gpr(n, card + COPIED + 8 * u64::from(n));
        }
    }
    let value = PostSync::Immediate(work.flushed);
    if work.engine.has_pipe_control() {
        batch.pipe_control(system + FLUSHED, value);
    } else {
        batch.flush_dw(system + FLUSHED, value);
    }
    batch.batch_buffer_end();
}

impl EngineWork {
    /// Compares the contents of the buffers with the expected results.
    fn check(&self, card: &Buffer<'_>, system: &Buffer<'_>) -> Result<()> {
        let same = |what: &str, buffer: &Buffer<'_>, offset: u64, want: u64| {
            let got = buffer.mapping().read_u64(size(self.at + offset));
            ensure!(got == want, "{what}: expected {want:#018x}, got {got:#018x}");
            Ok(())
        };
        same("store", card, STORED, self.stored)?;
        same("flush write", system, FLUSHED, self.flushed)?;
        let copied = if self.engine.copies() { COPIED_QUADWORDS } else { REGISTERS as usize };
        for (number, want) in self.source.iter().take(copied).enumerate() {
            same("copy", card, COPIED + 8 * number as u64, *want).with_context(|| format!("quadword {number}"))?;
        }
        same("the quadword after the copy", card, COPIED + 8 * copied as u64, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    fn engine(class: u16, instance: u16) -> Engine {
        Engine { class, instance, gt: 0 }
    }

    #[test]
    fn one_engine_of_each_class_is_selected() {
        let names: Vec<String> =
            one_of_each_class(&[engine(0, 0), engine(2, 0), engine(2, 1), engine(3, 0), engine(3, 1)])
                .iter()
                .map(Engine::name)
                .collect();
        assert_eq!(names, ["rcs0", "vcs0", "vecs0"]);
    }

    /// On every class the batch stores, copies and flushes, and batch and data fit into the engine's regions of the
    /// buffers.
    #[test]
    fn batch_and_data_fit_their_regions_on_every_class() {
        for class in 0..5 {
            let work =
                EngineWork { engine: engine(class, 0), at: PART, stored: 1, flushed: 2, fence: 3, source: Vec::new() };
            let mut batch = Batch::at(0x10_0000);
            write(&mut batch, &work, 0x100_0000, 0x200_0000);
            assert!(4 * batch.dwords().len() as u64 <= CODE);
            assert_eq!(batch.dwords()[..5], [0x1020_0003, 0x100_1000, 0, 1, 0]);
            let copies = batch.dwords().iter().any(|dword| dword >> 22 == 0x142);
            assert_eq!(copies, class == 1, "class {class}");
        }
        let copied = 8 * COPIED_QUADWORDS as u64;
        assert!(STORED + 8 <= COPIED && COPIED + copied + 8 <= PART);
        assert!(SOURCE + copied <= FLUSHED && FLUSHED + 8 <= FENCE && FENCE + 8 <= PART);
    }
}
