// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Kernels of the walkers in a dump, and their code, disassembled.

use std::collections::BTreeSet;

use arctic_base::decode::family::Kernels;
use arctic_eu::text;

use super::{Line, Message};
use crate::command::gfx::{self, Gfx};
use crate::compute::{ComputeState, Walker};
use crate::generation::EngineRef;

/// Most bytes of a kernel that are disassembled.
const MOST_BYTES: usize = 64 << 10;

/// The kernels of the walkers among commands.
pub struct WalkerKernels {
    engine: EngineRef,
    /// State that the commands so far have set.
    state: ComputeState,
    starts: BTreeSet<u64>,
}

impl WalkerKernels {
    /// The kernels of no walker yet, of batches that `engine` executes.
    pub fn new(engine: EngineRef) -> Self {
        WalkerKernels { engine, state: ComputeState::default(), starts: BTreeSet::new() }
    }
}

impl Kernels<Message> for WalkerKernels {
    fn note(&mut self, dwords: &[u32]) {
        let Some(header) = dwords.first().filter(|header| **header >> 29 == 3) else { return };
        let class = self.engine.info().class;
        match gfx::lookup(self.engine.generation.commands.gfx, *header, class).map(|command| command.action) {
            Some(Gfx::State(state)) => self.state.execute(state, dwords),
            Some(Gfx::Walker) => {
                self.starts.extend(Walker::new(dwords, &self.state, [1; 3]).map(|walker| walker.kernel_address()));
            }
            _ => {}
        }
    }

    fn starts(&self) -> Vec<u64> {
        self.starts.iter().copied().collect()
    }

    fn code(&self, dwords: &[u32], address: u64) -> Vec<Line> {
        let bytes: Vec<u8> = dwords.iter().take(MOST_BYTES / 4).flat_map(|dword| dword.to_le_bytes()).collect();
        let mut lines = Vec::new();
        for line in text::lines(&bytes) {
            lines.push(Line::note(format!("{:#x}: {}", address.wrapping_add(line.address.into()), line.text.trim())));
            if line.text.contains("EOT") || line.instruction.is_none() {
                break;
            }
        }
        lines
    }
}
