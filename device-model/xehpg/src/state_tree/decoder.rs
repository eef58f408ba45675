// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Commands, contexts and messages in memory, decoded for the tree.

use arctic_base::inspect::{Inspector, Node};

use crate::command::Requester;
use crate::decode::{Batch, Line, Message, context as image};
use crate::generation::EngineRef;
use crate::gt::Gt;
use crate::gt::decoder::Decoder;
use crate::topology::EngineId;

/// The disassembler.
pub struct Disassembler;

impl Decoder for Disassembler {
    fn command(
        &self,
        gt: &Gt,
        id: EngineId,
        requester: Requester,
        (dwords, address): (&[u32], u64),
        to: &mut Inspector<'_>,
    ) {
        let engine = EngineRef { generation: gt.generation, id };
        let batch = Batch { requester, ..Batch::new(dwords, address, engine) };
        match batch.commands().next() {
            Some(command) => {
                to.value("name", command.name.unwrap_or("not a command of the engine"));
                to.value("text", command.text());
                let dwords = command.dwords.iter().map(|dword| format!("{dword:#010x}")).collect::<Vec<_>>();
                to.value("dwords", dwords.join(" "));
            }
            None if dwords.is_empty() => to.value("name", "cannot be read"),
            None => to.value("name", "none"),
        }
    }

    fn context(&self, gt: &Gt, id: EngineId, dwords: &[u32], to: &mut Inspector<'_>) -> u64 {
        let engine = EngineRef { generation: gt.generation, id };
        let (page, registers) = dwords.split_at_checked(image::PAGE_DWORDS).unwrap_or((dwords, &[]));
        let image::Position { start, size, head, tail, batch, root } = image::position(registers, engine);
        to.part("position", |to| {
            to.address("ring", start);
            to.value("ring_bytes", size);
            to.address("head", head);
            to.address("tail", tail);
            to.value("batch", batch.map_or_else(|| "none".into(), |batch| format!("{batch:#x}")));
            to.address("ppgtt_root", root);
        });
        to.table("status_page", |to| lines(&image::page(page), to));
        to.table("image", |to| lines(&image::image(registers, engine), to));
        root
    }

    fn message(&self, hxg: &[u32], fence: u16) -> Node {
        Node::of(&Message::new(hxg, Some(fence)))
    }
}

/// Shows dwords by name, and remarks by number.
fn lines(lines: &[Line], to: &mut Inspector<'_>) {
    for (number, line) in lines.iter().enumerate() {
        match line {
            Line::Dword(dword) if dword.meaning.is_empty() => to.value(&dword.name, Node::hex(dword.value, 8)),
            Line::Dword(dword) => to.value_with_parts(&dword.name, Node::hex(dword.value, 8), |to| {
                to.value("meaning", dword.meaning.as_str());
            }),
            Line::Note { text } => to.value(&format!("note_{number}"), text.as_str()),
            _ => {}
        }
    }
}
