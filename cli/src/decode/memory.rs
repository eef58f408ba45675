// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The memory ranges in a dump, by address, and the batches in them.

use std::collections::{BTreeMap, BTreeSet};

use arctic_device_model::command::Requester;
use arctic_device_model::decode::Line;

use super::engine::{Batch, Engine};

/// Maximum number of batches followed.
const MOST_BATCHES: usize = 4096;

/// Memory ranges of a process.
#[derive(Default)]
pub struct Memory {
    pieces: BTreeMap<u64, Vec<u32>>,
}

impl Memory {
    /// Adds a range.
    pub fn add(&mut self, address: u64, dwords: Vec<u32>) {
        self.pieces.insert(address, dwords);
    }

    /// The ranges: address and size in bytes.
    pub fn pieces(&self) -> impl Iterator<Item = (u64, usize)> {
        self.pieces.iter().map(|(address, dwords)| (*address, dwords.len() * 4))
    }

    /// The dwords from `address` to the end of its range.
    fn from(&self, address: u64) -> Option<&[u32]> {
        let (start, dwords) = self.pieces.range(..=address).next_back()?;
        dwords.get(((address - start) / 4) as usize..).filter(|rest| !rest.is_empty())
    }

    /// Decodes the batches at these addresses and the batches that they start, if they are in the dump. Returns the
    /// addresses of the batches.
    pub fn batches(
        &self,
        starts: &[u64],
        engine: Engine,
        marks: &[(u64, &'static str)],
        emit: &mut dyn FnMut(Line) -> std::io::Result<()>,
    ) -> std::io::Result<BTreeSet<u64>> {
        let mut next: Vec<_> = starts.iter().rev().copied().collect();
        let mut seen = BTreeSet::new();
        while let Some(start) = next.pop() {
            if !seen.insert(start) || seen.len() > MOST_BATCHES {
                continue;
            }
            let Some(words) = self.from(start) else {
                emit(Line::section(format!("Batch at {start:#x} on {}: not in the dump", engine.name())))?;
                continue;
            };
            emit(Line::section(format!("Batch at {start:#x} on {}", engine.name())))?;
            let batch =
                Batch { marks: marks.to_vec(), requester: Requester::PfUser, ..Batch::new(words, start, engine) };
            for command in batch.commands() {
                next.extend(command.target.filter(|target| target.ppgtt).map(|target| target.address));
                emit(Line::Command(command))?;
            }
        }
        Ok(seen)
    }
}
