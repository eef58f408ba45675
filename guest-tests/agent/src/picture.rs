// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Draws the test card with the copy engine in local memory and reads it back through system memory.

use std::time::Duration;

use anyhow::Result;

use super::batch::{Batch, PostSync};
use super::blt::{Area, Depth, Surface, Tiling};
use super::device::{Device, Engine};
use super::vm::{Buffer, Place};
use crate::testcard::{self, Canvas, Op};

/// Maximum dwords of commands in one submission: about 60 KiB with the flush and MI_BATCH_BUFFER_END.
const BATCH_DWORDS: usize = 15_000;

/// Draws all operations on `engine`. Returns the screen's pixels (XRGB8888, from the top left) and the number of
/// operations and batches.
pub fn draw(device: &Device, engine: Engine, timeout: Duration) -> Result<(Vec<u8>, usize, usize)> {
    let vm = device.vm()?;
    let queue = vm.queue(engine)?;
    let allocate = |canvas: Canvas| vm.buffer(Place::Vram, (canvas.pitch() * canvas.height()).into());
    let buffers = Canvas::ALL.map(allocate);
    let [screen, scene, glyphs] = buffers;
    let buffers = [screen?, scene?, glyphs?];
    let surface = |canvas: Canvas| Surface {
        address: buffers[canvas as usize].address(),
        pitch: canvas.pitch(),
        height: canvas.height(),
        tiling: if canvas.tiled() { Tiling::Tile4 } else { Tiling::Linear },
        system: false,
    };
    let marker = vm.buffer(Place::System, 4096)?;
    let code = vm.buffer(Place::System, 64 << 10)?;
    let run = |batch: &mut Batch| -> Result<()> {
        batch.flush_dw(marker.address(), PostSync::Immediate(1)).batch_buffer_end();
        code.load(batch)?;
        let fence = queue.submit(code.address())?;
        queue.wait(&fence, timeout)?;
        *batch = Batch::at(code.address());
        Ok(())
    };

    let operations = testcard::operations();
    let mut batch = Batch::at(code.address());
    let (mut batches, mut filling) = (1, true);
    for operation in &operations {
        // Order fills before copies that read their result, and copies before fills that overwrite their source.
        let fills = matches!(operation, Op::Fill { .. });
        if std::mem::replace(&mut filling, fills) != fills {
            batch.flush_dw(marker.address(), PostSync::Immediate(0));
        }
        match *operation {
            Op::Fill { on, rect, colour } => {
                batch.fast_color(&surface(on), Depth::Bits32, rect.into(), [colour, 0, 0, 0])
            }
            Op::Copy { from, rect, to, x, y } => {
                batch.fast_copy(&surface(from), rect.into(), &surface(to), x, y, Depth::Bits32)
            }
        };
        if batch.dwords().len() > BATCH_DWORDS {
            run(&mut batch)?;
            batches += 1;
        }
    }
    run(&mut batch)?;

    let back = vm.buffer(Place::System, testcard::BYTES as u64)?;
    let from = surface(Canvas::Screen);
    let to = Surface { address: back.address(), system: true, ..from };
    let all = Area { x: 0, y: 0, width: testcard::WIDTH, height: testcard::HEIGHT };
    batch.fast_copy(&from, all, &to, 0, 0, Depth::Bits32);
    run(&mut batch)?;
    Ok((pixels(&back), operations.len(), batches + 1))
}

fn pixels(buffer: &Buffer<'_>) -> Vec<u8> {
    buffer.mapping().read(testcard::BYTES)
}
