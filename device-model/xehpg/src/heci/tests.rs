// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the link setup as performed by `mei_gsc`, and of hosts that violate the protocol.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

use proptest::prelude::*;

use super::*;
use crate::heci::controller::FirmwareVersions;

mod clients;

/// H_CSR and ME_CSR_HA (mei: hw-me-regs.h).
const INTERRUPT_ENABLE: u32 = 1 << 0;
const INTERRUPT_STATUS: u32 = 1 << 1;
const INTERRUPT_GENERATE: u32 = 1 << 2;
const READY: u32 = 1 << 3;
const RESET: u32 = 1 << 4;
const D0I3_INTERRUPT_ENABLE: u32 = 1 << 5;
/// Last packet of a message (mei: hw.h, mei_msg_hdr).
const COMPLETE: u32 = 1 << 31;

/// The parts of the Linux driver that access the HECI registers (hw-me.c), with the same order of accesses.
struct Driver {
    window: Heci,
    interrupts: usize,
}

impl Driver {
    fn new() -> Self {
        let controller =
            Controller { versions: FirmwareVersions::FLEX_170, sku: 1, step: 2, subsystem: (0x8086, 0x4905) };
        let [_, gscfi] = Heci::windows(controller);
        Driver { window: gscfi, interrupts: 0 }
    }

    fn csr(&mut self) -> u32 {
        self.window.read(H_CSR)
    }

    fn write_csr(&mut self, value: u32) {
        self.interrupts += usize::from(self.window.write(H_CSR, value).interrupt);
    }

    /// `mei_hcsr_set`: does not clear the interrupt status.
    fn set_csr(&mut self, value: u32) {
        self.write_csr(value & !INTERRUPT_STATUS);
    }

    /// `mei_me_hw_reset` with interrupts.
    fn reset(&mut self) {
        let csr = self.csr();
        self.set_csr(csr | INTERRUPT_ENABLE | D0I3_INTERRUPT_ENABLE);
        let csr = self.csr();
        assert_eq!(csr & RESET, 0, "H_RST is set");
        self.write_csr(csr | RESET | INTERRUPT_GENERATE | INTERRUPT_STATUS);
        let csr = self.csr();
        assert_eq!(csr & (RESET | READY), RESET, "H_RST is not set, or H_RDY is not cleared");
    }

    /// The hard and the threaded interrupt handler. Returns whether the device raised the interrupt.
    fn interrupt(&mut self) -> bool {
        let csr = self.csr();
        if csr & INTERRUPT_STATUS == 0 {
            return false;
        }
        self.set_csr(csr & !INTERRUPT_ENABLE);
        let csr = self.csr();
        self.write_csr(csr);
        assert_eq!(self.csr() & INTERRUPT_STATUS, 0);
        true
    }

    fn end_of_interrupt(&mut self) {
        let csr = self.csr();
        self.set_csr(csr | INTERRUPT_ENABLE | D0I3_INTERRUPT_ENABLE);
    }

    /// Reset, waiting for the firmware, `mei_me_hw_reset_release`, `mei_me_host_set_ready`.
    fn link(&mut self) {
        self.reset();
        assert_eq!(std::mem::take(&mut self.interrupts), 1);
        assert!(self.interrupt());
        assert_ne!(self.window.read(ME_CSR_HA) & READY, 0);
        self.end_of_interrupt();
        let csr = self.csr();
        self.set_csr((csr | INTERRUPT_GENERATE) & !RESET);
        let csr = self.csr();
        self.set_csr(csr | INTERRUPT_ENABLE | INTERRUPT_GENERATE | READY);
        assert_eq!(self.interrupts, 0);
    }

    /// Sends a complete bus message.
    fn send(&mut self, message: &[u8]) {
        self.write_packet(COMPLETE, message);
    }

    /// `mei_me_hbuf_write` of a packet with these flags and addresses in its header.
    fn write_packet(&mut self, header: u32, message: &[u8]) {
        let csr = self.csr();
        assert_eq!(csr >> 16 & 0xff, csr >> 8 & 0xff, "the host's buffer must be empty before each message");
        self.send_unchecked(header, message);
    }

    /// Writes a packet with these flags and addresses in its header to the host's buffer, full or not, and notifies the
    /// firmware.
    fn send_unchecked(&mut self, header: u32, packet: &[u8]) {
        self.window.write(H_CB_WW, header | (packet.len() as u32) << 16);
        for chunk in packet.chunks(4) {
            let mut dword = [0; 4];
            dword[..chunk.len()].copy_from_slice(chunk);
            self.window.write(H_CB_WW, u32::from_le_bytes(dword));
        }
        let csr = self.csr();
        self.set_csr(csr | INTERRUPT_GENERATE);
    }

    fn filled(&mut self) -> u8 {
        let csr = self.window.read(ME_CSR_HA);
        ((csr >> 16) as u8).wrapping_sub((csr >> 8) as u8)
    }

    /// Reads one message from the firmware's buffer, after its interrupt.
    fn receive(&mut self) -> Vec<u8> {
        assert_eq!(std::mem::take(&mut self.interrupts), 1);
        assert!(self.interrupt());
        let header = self.window.read(ME_CB_RW);
        assert_eq!(header & !(0x1ff << 16), COMPLETE);
        let message = self.payload(header);
        let csr = self.csr();
        self.set_csr(csr | INTERRUPT_GENERATE);
        self.end_of_interrupt();
        assert_eq!((self.filled(), self.interrupts), (0, 0));
        message
    }

    /// Reads the message after its `header`.
    fn payload(&mut self, header: u32) -> Vec<u8> {
        let length = (header >> 16 & 0x1ff) as usize;
        (0..length.div_ceil(4)).flat_map(|_| self.window.read(ME_CB_RW).to_le_bytes()).take(length).collect()
    }

    fn exchange(&mut self, message: &[u8]) -> Vec<u8> {
        self.send(message);
        self.receive()
    }
}

/// Contract G.9, B.5b: the driver's probe from `mei_start` to the enumeration.
#[test]
fn mei_gsc_probes() {
    let mut driver = Driver::new();
    assert_eq!(driver.csr() >> 24, 128);
    assert_eq!(driver.window.read(0xc40) >> 31, 0, "no D0i3");
    assert_eq!(driver.window.read(0xc48) & (1 << 3 | 1 << 7), 1 << 3);
    driver.link();
    assert_eq!(driver.exchange(&[0x01, 0, 2, 2]), [0x81, 1, 2, 2]);
    assert_eq!(driver.exchange(&[0x13, 7, 0, 0]), [0x93, 0, 0, 0]);
    assert_eq!(driver.exchange(&[0x04, 3, 0, 0]).len(), 36);
    assert_eq!(driver.window.refused(), Refused::default());
}

/// Contract G.9: a newer protocol version of the driver is rejected with the device's version in the response. After
/// unloading and reloading, the driver establishes a new link, and its older version is accepted.
#[test]
fn versions_and_a_second_link() {
    let mut driver = Driver::new();
    driver.link();
    assert_eq!(driver.exchange(&[0x01, 0, 0, 3]), [0x81, 0, 2, 2]);
    assert_eq!(driver.exchange(&[0x02, 0, 0, 0]), [0x82, 0, 0, 0]);
    let csr = driver.csr();
    driver.write_csr((csr | RESET | INTERRUPT_GENERATE | INTERRUPT_STATUS) & !INTERRUPT_ENABLE);
    assert_eq!(driver.interrupts, 0, "interrupts are disabled");
    let csr = driver.csr();
    driver.set_csr((csr | INTERRUPT_GENERATE) & !RESET);
    // mei_clear_interrupts at the next start.
    assert!(driver.interrupt());
    driver.link();
    assert_eq!(driver.exchange(&[0x01, 0, 1, 1]), [0x81, 1, 2, 2]);
}

/// Contract G.9: requests for a client or for DMA are rejected with an error status in the matching response.
#[test]
fn client_and_dma_requests_are_rejected() {
    let mut driver = Driver::new();
    driver.link();
    driver.exchange(&[0x01, 0, 2, 2]);
    let properties = driver.exchange(&[0x05, 7, 0, 0]);
    assert_eq!((properties.len(), &properties[..3]), (28, &[0x85, 7, 1][..]));
    assert_eq!(driver.exchange(&[0x06, 7, 9, 0]), [0x86, 7, 9, 1]);
    assert_eq!(driver.exchange(&[0x07, 7, 9, 0]), [0x87, 7, 9, 1]);
    assert_eq!(driver.exchange(&[0x10, 7, 9, 1]), [0x90, 7, 9, 1, 1, 0, 0, 0]);
    let dma_setup: [u8; 40] = std::array::from_fn(|n| if n == 0 { 0x12 } else { 0 });
    assert_eq!(driver.exchange(&dma_setup), [0x92, 5, 0, 0]);
    assert_eq!(driver.exchange(&[0x15, 0, 0, 0]), [0x95, 5]);
}

/// A protocol error clears ME_RDY and raises an interrupt. The host can establish the link again after a reset.
#[test]
fn protocol_errors_take_the_link_down() {
    let breaches: [&[u32]; 5] = [
        &[COMPLETE | 511 << 16],
        &[COMPLETE],
        &[COMPLETE | 4 << 16, 0x04],
        &[4 << 16, 0x01],
        &[COMPLETE | 2 << 16, 0x01],
    ];
    for (n, breach) in breaches.into_iter().enumerate() {
        let mut driver = Driver::new();
        driver.link();
        for dword in breach {
            driver.window.write(H_CB_WW, *dword);
        }
        let csr = driver.csr();
        driver.set_csr(csr | INTERRUPT_GENERATE);
        assert_eq!(driver.window.read(ME_CSR_HA) & READY, 0, "protocol error {n}");
        assert_eq!(driver.window.refused().malformed, 1);
        assert!(std::mem::take(&mut driver.interrupts) == 1 && driver.interrupt());
        driver.link();
        driver.exchange(&[0x01, 0, 2, 2]);
    }
}

/// An incomplete message is not processed until the host has written the rest of it. A message whose reply does not fit
/// is not processed until the host has read earlier replies.
#[test]
fn incomplete_messages_and_a_full_reply_buffer_stall_processing() {
    let mut driver = Driver::new();
    driver.link();
    driver.exchange(&[0x01, 0, 2, 2]);
    driver.window.write(H_CB_WW, COMPLETE | 4 << 16);
    let csr = driver.csr();
    driver.set_csr(csr | INTERRUPT_GENERATE);
    assert_eq!((driver.filled(), driver.interrupts), (0, 0));
    driver.window.write(H_CB_WW, 0x0304);
    for _ in 0..20 {
        driver.window.write(H_CB_WW, COMPLETE | 4 << 16);
        driver.window.write(H_CB_WW, 0x0304);
    }
    let csr = driver.csr();
    driver.set_csr(csr | INTERRUPT_GENERATE);
    assert_eq!(driver.filled(), 110, "eleven replies of ten slots each; less than the longest reply is free");
    let mut replies = 0;
    while driver.filled() > 0 {
        assert_eq!(driver.window.read(ME_CB_RW), COMPLETE | 36 << 16);
        for _ in 0..9 {
            driver.window.read(ME_CB_RW);
        }
        replies += 1;
        let csr = driver.csr();
        driver.set_csr(csr | INTERRUPT_GENERATE);
    }
    assert_eq!(replies, 21);
    assert_eq!(driver.window.refused(), Refused::default());
}

proptest! {
    /// Arbitrary accesses cause no panic and keep the pointers valid, and the link can be established afterwards.
    #[test]
    fn hostile_hosts(accesses in prop::collection::vec(
        (prop_oneof![3 => Just(H_CB_WW), 2 => Just(H_CSR), 1 => 0..WINDOW_BYTES], prop_oneof![
            any::<u32>(),
            (0..64_u32, prop_oneof![Just(0_u32), any::<u32>()]).prop_map(|(len, rest)| COMPLETE | len << 16 | rest & 0xff),
            (0..0x20_u32).prop_map(|command| 0x0202_0000 | command),
            Just(READY | INTERRUPT_ENABLE | INTERRUPT_GENERATE),
        ], any::<bool>()), 0..400))
    {
        let mut driver = Driver::new();
        driver.link();
        for (offset, value, read) in accesses {
            driver.window.write(offset, value);
            if read {
                driver.window.read(ME_CB_RW);
            }
            prop_assert!(driver.filled() <= DEPTH);
            let csr = driver.csr();
            prop_assert!(((csr >> 16) as u8).wrapping_sub((csr >> 8) as u8) <= DEPTH);
        }
        driver.window.write(H_CSR, INTERRUPT_STATUS);
        driver.interrupts = 0;
        driver.link();
        prop_assert_eq!(driver.exchange(&[0x01, 0, 2, 2]), [0x81, 1, 2, 2]);
    }
}
