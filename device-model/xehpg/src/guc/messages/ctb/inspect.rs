// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! CT buffers as a part of the card's state: positions, descriptors, and the messages that are not read yet.

use arctic_base::inspect::{Inspector, Node};

use super::{Channel, CtBuffer, HEAD, STATUS, TAIL};
use crate::gt::decoder::Decoder;
use crate::guc::messages::hxg::{CtHeader, MAX_DWORDS};
use crate::memory::{Fault, Gam, Space};

/// Maximum number of messages that are listed.
const MOST_LISTED: usize = 64;

impl CtBuffer {
    /// Shows the ring. The descriptor and the messages are read from the function's memory.
    fn inspect(&self, gam: &mut Gam<'_>, decoder: &dyn Decoder, to: &mut Inspector<'_>) {
        let CtBuffer { at, ring, own, published, failed, out_of_reach_since: _, broken } = self;
        to.address("descriptor", at.descriptor);
        to.address("buffer", at.buffer);
        to.value("dwords", ring.0);
        to.value("own_position", *own);
        to.value("published_position", *published);
        to.value("out_of_reach", *failed);
        to.value("broken", *broken);
        let fields = [("head", HEAD), ("tail", TAIL), ("status", STATUS)];
        for (name, field) in fields {
            let value = self.field(gam, field);
            to.value(name, value.map_or_else(|_| Node::from("cannot be read"), Node::from));
        }
        to.part("unread", |to| {
            let ends = [HEAD, TAIL].map(|field| self.field(gam, field));
            if let [Ok(head), Ok(tail)] = ends {
                // What cannot be read or is no message ends the list.
                let _ = self.list(gam, decoder, to, (head, tail));
            }
        });
    }

    fn list(
        &self,
        gam: &mut Gam<'_>,
        decoder: &dyn Decoder,
        to: &mut Inspector<'_>,
        (mut head, tail): (u32, u32),
    ) -> Result<(), Fault> {
        if !self.ring.contains(head) || !self.ring.contains(tail) {
            return Ok(());
        }
        for number in 0..MOST_LISTED {
            if head == tail {
                break;
            }
            let header = CtHeader::from(gam.read_u32(Space::Ggtt, self.address(head))?);
            let len = u32::from(header.dwords());
            if len == 0 || len >= self.ring.used(head, tail) {
                break;
            }
            let mut room = [0; MAX_DWORDS];
            let Some(hxg) = room.get_mut(..len as usize) else { break };
            self.copy_out(gam, self.ring.advance(head, 1), hxg)?;
            to.value(&number.to_string(), decoder.message(hxg, header.fence()));
            head = self.ring.advance(head, len.saturating_add(1));
        }
        Ok(())
    }
}

impl Channel {
    /// Shows both rings, and the messages for which the ring of the host has no room.
    pub fn inspect(&self, gam: &mut Gam<'_>, decoder: &dyn Decoder, to: &mut Inspector<'_>) {
        to.part("h2g", |to| self.h2g.inspect(gam, decoder, to));
        to.part("g2h", |to| self.g2h.inspect(gam, decoder, to));
        to.part("waiting", |to| {
            for (number, message) in self.waiting.iter().enumerate().take(MOST_LISTED) {
                to.value(&number.to_string(), decoder.message(message.hxg(), message.fence));
            }
        });
    }
}
