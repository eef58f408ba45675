// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The memory ranges in a dump, by address, and the batches in them.

use std::collections::{BTreeMap, BTreeSet};

use arctic_device_model::command::Requester;
use arctic_device_model::decode::{Line, Message};
use arctic_device_model::disassembler::Kernels;

use super::engine::{Batch, Engine};

/// Maximum number of batches decoded, with those that are not in the dump.
pub(super) const MAX_BATCHES: usize = 4096;

/// Maximum number of kernels decoded.
const MAX_KERNELS: usize = 64;

/// Memory ranges of a process.
#[derive(Default)]
pub struct Memory {
    ranges: BTreeMap<u64, Vec<u32>>,
}

impl Memory {
    /// Adds a range; it replaces one at the same address. Ranges must not overlap otherwise.
    pub fn add(&mut self, address: u64, dwords: Vec<u32>) {
        self.ranges.insert(address, dwords);
    }

    /// The ranges: address and size in bytes.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, usize)> {
        self.ranges.iter().map(|(address, dwords)| (*address, dwords.len() * 4))
    }

    /// The dwords from `address`, rounded down to a dword, to the end of its range; `None` if no range has it.
    fn dwords_at(&self, address: u64) -> Option<&[u32]> {
        let (start, dwords) = self.ranges.range(..=address).next_back()?;
        dwords.get(((address - start) / 4) as usize..).filter(|rest| !rest.is_empty())
    }

    /// Decodes the batches at `starts` and the batches in the PPGTT that they start, each once. A batch that is not in
    /// the dump has only a heading. The kernels that they dispatch follow. `marks` are addresses with a remark. Returns the
    /// addresses of the decoded batches.
    pub fn decode_batches(
        &self,
        starts: &[u64],
        engine: Engine,
        marks: &[(u64, &'static str)],
        emit: &mut dyn FnMut(Line) -> std::io::Result<()>,
    ) -> std::io::Result<BTreeSet<u64>> {
        let mut next: Vec<_> = starts.iter().rev().copied().collect();
        let mut seen = BTreeSet::new();
        let mut decoded = BTreeSet::new();
        let mut kernels = engine.kernels();
        while let Some(start) = next.pop() {
            if seen.contains(&start) {
                continue;
            }
            if seen.len() == MAX_BATCHES {
                emit(Line::note(format!("only the first {MAX_BATCHES} batches are decoded")))?;
                break;
            }
            seen.insert(start);
            let Some(dwords) = self.dwords_at(start) else {
                emit(Line::section(format!("Batch at {start:#x} on {}: not in the dump", engine.name())))?;
                continue;
            };
            emit(Line::section(format!("Batch at {start:#x} on {}", engine.name())))?;
            decoded.insert(start);
            // Batches of a dump are those of a process of the PF.
            let requester = Requester::PfUser;
            let batch = Batch { marks: marks.to_vec(), requester, ..Batch::new(dwords, start, engine) };
            for command in batch.commands() {
                if let Some(kernels) = &mut kernels {
                    kernels.note(&command.dwords);
                }
                next.extend(command.target.filter(|target| target.ppgtt).map(|target| target.address));
                emit(Line::Command(command))?;
            }
        }
        kernels.map_or(Ok(()), |kernels| self.decode_kernels(&*kernels, emit))?;
        Ok(decoded)
    }

    /// Disassembles the kernels of the walkers in decoded batches.
    fn decode_kernels(
        &self,
        kernels: &dyn Kernels<Message>,
        emit: &mut dyn FnMut(Line) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let starts = kernels.starts();
        for start in starts.iter().copied().take(MAX_KERNELS) {
            match self.dwords_at(start) {
                None => emit(Line::section(format!("Kernel at {start:#x}: not in the dump")))?,
                Some(dwords) => {
                    emit(Line::section(format!("Kernel at {start:#x}")))?;
                    kernels.code(dwords, start).into_iter().try_for_each(&mut *emit)?;
                }
            }
        }
        if starts.len() > MAX_KERNELS {
            emit(Line::note(format!("only the first {MAX_KERNELS} kernels are decoded")))?;
        }
        Ok(())
    }
}
