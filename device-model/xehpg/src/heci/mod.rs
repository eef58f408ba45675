// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! HECI: the register windows for communication with the graphics system controller (GSC), and the behaviour of its
//! firmware.
//!
//! The Linux driver is `mei_gsc`: it resets the link, waits until the firmware is ready, and exchanges host bus
//! messages through two circular buffers (contract G.9).
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod buffer;
mod client;
pub mod controller;
mod hbm;
mod message;
mod mkhi;
mod protocol;
mod update;

use std::sync::Arc;

use bitfield_struct::bitfield;
use buffer::{CircularBuffer, DEPTH};
use client::{Clients, GSC_CLIENTS, GSCFI_CLIENTS, Violation};
use controller::Controller;
use hbm::{COMMANDS, FLOW_CONTROL_SLOTS, HOST_START};
use message::{HEAD, Head, MESSAGE_SLOTS, Message, MessageHeader};

/// Size of a window in bytes: GSC at GTTMMADR + 0x373000, GSCFI at + 0x374000 (xe: regs/xe_gsc_regs.h).
pub const WINDOW_BYTES: u32 = 0x1000;

/// H_CB_WW: host buffer, write window.
const H_CB_WW: u32 = 0x00;
/// H_CSR: control and status of the host.
const H_CSR: u32 = 0x04;
/// ME_CB_RW: firmware buffer, read window.
const ME_CB_RW: u32 = 0x08;

/// Returns whether a read at `offset` of a window takes a dword from the firmware's buffer.
pub fn takes_message(offset: u32) -> bool {
    offset == ME_CB_RW
}
/// ME_CSR_HA: control and status of the firmware, host access.
const ME_CSR_HA: u32 = 0x0c;
/// Registers for extended operation memory, which the host provides to the firmware: base, upper base, limit.
const EXT_OP_MEM: [u32; 3] = [0x100, 0x104, 0x108];

/// Firmware status registers 1 to 6, by offset. 1: normal operation, initialised, no D0i3 (bit 31 would indicate
/// support); 2: flash access not overridden by jumper (contract B.5b), D3 not blocked.
const FIRMWARE_STATUS: [(u32, u32); 6] =
    [(0xc40, 0x0245), (0xc48, 1 << 3), (0xc60, 0), (0xc64, 0), (0xc68, 0), (0xc6c, 0)];

/// H_CSR and ME_CSR_HA (mei: hw-me-regs.h).
#[bitfield(u32)]
struct ControlStatus {
    /// H_IE.
    interrupt_enable: bool,
    /// H_IS, cleared by writing 1.
    interrupt_status: bool,
    /// H_IG: the host has written a message; reads 0.
    interrupt_generate: bool,
    /// H_RDY, ME_RDY.
    ready: bool,
    /// H_RST.
    reset: bool,
    /// H_D0I3C_IE.
    d0i3_interrupt_enable: bool,
    #[bits(2)]
    __: u8,
    /// Read pointer of the buffer.
    read: u8,
    /// Write pointer of the buffer.
    write: u8,
    /// Number of slots of the buffer.
    depth: u8,
}

impl ControlStatus {
    /// The bits of H_CSR that the host writes, except those with an effect.
    const fn kept(self) -> Self {
        ControlStatus::new()
            .with_interrupt_enable(self.interrupt_enable())
            .with_ready(self.ready())
            .with_reset(self.reset())
            .with_d0i3_interrupt_enable(self.d0i3_interrupt_enable())
    }

    /// The register with the depth and the pointers of `buffer`.
    fn with_buffer(self, buffer: &CircularBuffer) -> Self {
        self.with_depth(DEPTH).with_write(buffer.write).with_read(buffer.read)
    }
}

/// Maximum number of slots of the messages that one message of the host causes.
const REPLY_SLOTS: u8 = MESSAGE_SLOTS + FLOW_CONTROL_SLOTS;

/// Side effect of a register access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// The window's interrupt must be raised (GT interrupt bank 0 bit 31, identity bit 15 for GSC, 14 for GSCFI).
    pub interrupt: bool,
}

/// Counters of invalid input from hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Protocol violations. Each takes the link down until the host resets the link.
    pub malformed: u64,
    /// Bus messages with an unknown command; ignored.
    pub unknown: u64,
    /// Messages to clients that do not exist or are not connected; ignored.
    pub unconnected: u64,
    /// Dwords dropped because the buffer was full or the link was down.
    pub lost: u64,
}

/// One HECI window with its firmware.
pub struct Heci {
    controller: Arc<Controller>,
    clients: Clients,
    host: CircularBuffer,
    firmware: CircularBuffer,
    /// Bits [`ControlStatus::kept`] and `interrupt_status` of H_CSR.
    control: ControlStatus,
    /// The firmware is ready (ME_RDY): set by a reset by the host, cleared by a protocol violation.
    ready: bool,
    /// HOST_START has been received.
    started: bool,
    ext_op_mem: [u32; EXT_OP_MEM.len()],
    refused: Refused,
}

impl Heci {
    /// HECI1 (GSC) and HECI2 (GSCFI) of `controller` after power-on.
    pub fn windows(controller: Controller) -> [Self; 2] {
        let controller = Arc::new(controller);
        [GSC_CLIENTS, GSCFI_CLIENTS].map(|clients| Self::new(controller.clone(), Clients::new(clients)))
    }

    /// A window after power-on: the firmware runs, and the link waits for a reset by the host.
    fn new(controller: Arc<Controller>, clients: Clients) -> Self {
        Heci {
            controller,
            clients,
            host: CircularBuffer::default(),
            firmware: CircularBuffer::default(),
            control: ControlStatus::new(),
            ready: true,
            started: false,
            ext_op_mem: Default::default(),
            refused: Refused::default(),
        }
    }

    /// Returns the window to its state after power-on.
    pub fn reset(&mut self) {
        *self = Self::new(self.controller.clone(), Clients::new(self.clients.all()));
    }

    /// Returns whether the interrupt is asserted: status set and enabled.
    pub fn pending_interrupt(&self) -> bool {
        self.control.interrupt_status() && self.control.interrupt_enable()
    }

    /// Counters of invalid input since power-on.
    #[cfg(test)]
    pub fn refused(&self) -> Refused {
        self.refused
    }

    /// Reads the dword at `offset` of the window; a read of ME_CB_RW removes a dword from the firmware's buffer.
    pub fn read(&mut self, offset: u32) -> u32 {
        match offset {
            H_CSR => self.control.with_buffer(&self.host).into(),
            ME_CB_RW => self.firmware.pop().unwrap_or(0),
            ME_CSR_HA => ControlStatus::new().with_ready(self.ready).with_buffer(&self.firmware).into(),
            _ => {
                let lent =
                    EXT_OP_MEM.iter().zip(&self.ext_op_mem).find(|(at, _)| **at == offset).map(|(_, value)| *value);
                let status = FIRMWARE_STATUS.iter().find(|(at, _)| *at == offset).map(|(_, value)| *value);
                lent.or(status).unwrap_or(0)
            }
        }
    }

    /// Writes the dword at `offset` of the window; its side effects are complete when this returns.
    pub fn write(&mut self, offset: u32, value: u32) -> Effect {
        match offset {
            H_CB_WW => {
                let accepted = self.link_up() && self.host.push(value);
                self.refused.lost = self.refused.lost.saturating_add(u64::from(!accepted));
                Effect { interrupt: false }
            }
            H_CSR => self.write_control(value.into()),
            _ => {
                if let Some((_, lent)) = EXT_OP_MEM.iter().zip(&mut self.ext_op_mem).find(|(at, _)| **at == offset) {
                    *lent = value;
                }
                Effect { interrupt: false }
            }
        }
    }

    fn link_up(&self) -> bool {
        self.ready && self.control.ready() && !self.control.reset()
    }

    fn write_control(&mut self, value: ControlStatus) -> Effect {
        let asserted = self.pending_interrupt();
        let was_in_reset = self.control.reset();
        let status = self.control.interrupt_status() && !value.interrupt_status();
        self.control = value.kept().with_interrupt_status(status);
        let mut raised = false;
        if self.control.reset() {
            self.control.set_ready(false);
            // Setting the bit while it is already set has no effect.
            if !was_in_reset {
                self.reset_by_host();
                raised = true;
            }
        } else if value.interrupt_generate() && self.link_up() {
            raised = self.serve();
        }
        if raised {
            self.control.set_interrupt_status(true);
        }
        Effect { interrupt: self.pending_interrupt() && (raised || !asserted) }
    }

    fn reset_by_host(&mut self) {
        self.host.clear();
        self.firmware.clear();
        self.clients.disconnect_all();
        self.started = false;
        self.ready = true;
    }

    /// Takes the link down after a protocol violation; the host must reset it.
    fn link_down(&mut self) {
        self.refused.malformed = self.refused.malformed.saturating_add(1);
        self.host.clear();
        self.firmware.clear();
        self.clients.disconnect_all();
        self.ready = false;
    }

    /// Processes the complete messages in the host's buffer while the firmware's buffer has space for a reply. Returns
    /// whether a message was processed or the link was taken down.
    fn serve(&mut self) -> bool {
        let mut served = false;
        while let Some(header) = self.host.first().map(MessageHeader::from) {
            let length = usize::from(header.length());
            let payload = length.div_ceil(4);
            let slots = payload.saturating_add(1);
            if slots > usize::from(DEPTH) {
                self.link_down();
                return true;
            }
            if usize::from(self.host.filled()) < slots || self.firmware.free() < REPLY_SLOTS {
                break;
            }
            self.host.pop();
            // Only the start of a packet is used; the rest is removed from the buffer.
            let mut head = [0; HEAD];
            let mut parts = head.chunks_exact_mut(4);
            for _ in 0..payload {
                let dword = self.host.pop().unwrap_or(0).to_le_bytes();
                if let Some(bytes) = parts.next() {
                    bytes.copy_from_slice(&dword);
                }
            }
            served = true;
            if self.packet(header, &head).is_err() {
                self.link_down();
                return true;
            }
            while let Some((header, message)) = self.clients.next_message() {
                self.send(header, &message);
            }
        }
        served
    }

    /// Processes one packet that starts with `head`.
    fn packet(&mut self, header: MessageHeader, head: &Head) -> Result<(), Violation> {
        // Addresses 0 of firmware and host: a bus message.
        if (header.client(), header.host()) == (0, 0) {
            return self.bus_message(header, head);
        }
        if !self.clients.receive(&self.controller, header, head)? {
            self.refused.unconnected = self.refused.unconnected.saturating_add(1);
        }
        Ok(())
    }

    /// Processes one bus message.
    fn bus_message(&mut self, header: MessageHeader, head: &Head) -> Result<(), Violation> {
        let complete = header.complete() && header.unoffered() == 0 && !header.internal();
        let length = usize::from(header.length());
        if !complete || length == 0 || !(self.started || head[0] == HOST_START) {
            return Err(Violation);
        }
        let Some(command) = COMMANDS.iter().find(|command| command.code == head[0]) else {
            self.refused.unknown = self.refused.unknown.saturating_add(1);
            return Ok(());
        };
        if length < command.bytes {
            return Err(Violation);
        }
        self.started = true;
        if let Some(reply) = (command.reply)(&mut self.clients, head) {
            self.send(MessageHeader::new(), &reply);
        }
        Ok(())
    }

    /// Appends a message with the addresses of `header` to the firmware's buffer; [`Self::serve`] has checked that it
    /// fits.
    fn send(&mut self, header: MessageHeader, message: &Message) {
        self.firmware.push(header.with_length(message.length()).with_complete(true).into());
        for chunk in message.bytes().chunks(4) {
            let mut dword = [0; 4];
            dword.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            self.firmware.push(u32::from_le_bytes(dword));
        }
    }
}

#[cfg(test)]
mod tests;
