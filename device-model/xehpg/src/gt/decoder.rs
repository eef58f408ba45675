// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What units need of the disassembler to show their state: it is above them.

use arctic_base::inspect::{Inspector, Node};

use super::Gt;
use crate::command::Requester;
use crate::topology::EngineId;

/// A disassembler of what is in memory.
pub trait Decoder {
    /// Shows the command at the start of `dwords`, which is at `address`.
    fn command(&self, gt: &Gt, engine: EngineId, from: Requester, dwords: (&[u32], u64), to: &mut Inspector<'_>);

    /// Shows a logical ring context in memory, with its status page before its image. Returns the address of the root of its page
    /// tables.
    fn context(&self, gt: &Gt, engine: EngineId, dwords: &[u32], to: &mut Inspector<'_>) -> u64;

    /// A message between host and GuC, by its HXG dwords.
    fn message(&self, hxg: &[u32], fence: u16) -> Node;
}
