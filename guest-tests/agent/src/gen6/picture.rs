// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Draws the test card with the blitter. The scene is an X-tiled surface.

use std::time::Duration;

use anyhow::Result;

use super::batch::Batch;
use super::blt::{Depth, Surface, rop};
use super::gem::{Context, Object, Program};
use super::tiling::Tiling;
use crate::batch::PostSync;
use crate::device::{Device, Engine};
use crate::testcard::{self, Canvas, Op};

/// Maximum dwords of commands in one submission.
const BATCH_DWORDS: usize = 15_000;

/// Draws all operations on `engine`. Returns the screen's pixels (XRGB8888, from the top left) and the number of
/// operations and batches.
pub fn draw(device: &Device, engine: Engine, timeout: Duration) -> Result<(Vec<u8>, usize, usize)> {
    let context = Context::new(device, engine)?;
    let object = |canvas: Canvas| Object::new(device, (canvas.pitch() * canvas.height()) as usize);
    let [screen, scene, glyphs] = Canvas::ALL.map(object);
    let objects = [screen?, scene?, glyphs?];
    let surface = |canvas: Canvas| Surface {
        object: &objects[canvas as usize],
        pitch: canvas.pitch(),
        tiling: if canvas.tiled() { Tiling::X } else { Tiling::Linear },
    };
    let marker = Object::new(device, 4096)?;
    let run = |operations: &[Op]| -> Result<()> {
        let program = Program::new(device, |batch| draw_some(batch, engine, operations, surface, &marker))?;
        Ok(context.run(&program, timeout)?)
    };

    let operations = testcard::operations();
    let mut batches = 0;
    let mut rest = operations.as_slice();
    while !rest.is_empty() {
        // A copy is the longest: 8 dwords, and at most a flush of 4 before it.
        let (now, later) = rest.split_at(rest.len().min(BATCH_DWORDS / 12));
        run(now)?;
        (rest, batches) = (later, batches + 1);
    }
    let screen = &objects[Canvas::Screen as usize];
    screen.prepare(false)?;
    Ok((screen.memory().read(testcard::BYTES), operations.len(), batches))
}

/// Appends the commands for `operations`.
fn draw_some<'o>(
    batch: &mut Batch<'o>,
    engine: Engine,
    operations: &[Op],
    surface: impl Fn(Canvas) -> Surface<'o>,
    marker: &'o Object<'o>,
) {
    let mut filling = true;
    for operation in operations {
        // Order fills before copies that read their result, and copies before fills that overwrite their source.
        let fills = matches!(operation, Op::Fill { .. });
        if std::mem::replace(&mut filling, fills) != fills {
            batch.flush(engine, marker, 0, PostSync::Immediate(0));
        }
        match *operation {
            Op::Fill { on, rect, colour } => batch.fill(surface(on), Depth::Bits32, rect.into(), rop::PATTERN, colour),
            Op::Copy { from, rect, to, x, y } => {
                batch.copy(surface(from), rect.into(), surface(to), x, y, Depth::Bits32, rop::SOURCE)
            }
        };
    }
    batch.flush(engine, marker, 0, PostSync::Immediate(1));
}
