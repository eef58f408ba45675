// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the VF BARs in a VMM without SR-IOV support, like QEMU: the card programs them through the configuration
//! space window of the PF's guest.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use super::functions::{BAR0, BAR2, CONTROL, NUM, Sockets, together, write};
use super::*;
use crate::vfio_user::tests::{Raw, Reply, access, eventually};
use crate::vfio_user::wire::{FLAG_ERROR, HEADER_LEN, Header, TYPE_REPLY, command};

const ENODEV: u32 = libc::ENODEV as u32;
const VF_BAR0: u64 = 0x10;
/// Two assignments of VF BARs 0 and 2, and what software reads while it sizes them.
const A: [u64; 2] = [0x10_0000_0000, 0x20_0000_0000];
const B: [u64; 2] = [0x30_0000_0000, 0x20_0000_0000];
const SIZING: u64 = 0xffff_ffff_ffff_ffff;
const SEABIOS: u64 = 0xb000_0000;
const OVMF: u64 = 0xe000_0000;

/// How long the card sends nothing when it has nothing to write.
const QUIET: Duration = Duration::from_millis(30);

/// A VF's function in the VMM, and the connection to which the VMM passes its register writes on.
struct VfFunction {
    client: Option<Raw>,
    registers: [u8; 0x28],
}

impl VfFunction {
    fn new(client: Option<Raw>) -> Self {
        VfFunction { client, registers: [0; 0x28] }
    }

    /// The addresses at which the function decodes its BARs.
    fn decoded(&self) -> Option<[u64; 2]> {
        let bar = |at: usize| u64::from_le_bytes(self.registers[at..at + 8].try_into().unwrap()) & !0xf;
        (self.registers[4] & 2 != 0).then(|| [bar(0x10), bar(0x18)])
    }

    /// Writes a register, at most four bytes, as QEMU does: first to the client socket, then to the VMM's own copy.
    fn write(&mut self, offset: u64, data: &[u8]) {
        if let Some(client) = &mut self.client {
            write(client, CONFIG_REGION, offset, data);
        }
        self.registers[offset as usize..][..data.len()].copy_from_slice(data);
    }
}

/// The VMM of the PF's guest. It executes the DMA messages of the card only within [`Vmm::run_until`] and
/// [`Vmm::execute`].
struct Vmm {
    pf: Raw,
    /// The function that the guest's IOMMU does not translate, if the VMM has it.
    requester: Option<Raw>,
    vfs: Vec<VfFunction>,
    requests: VecDeque<Reply>,
    /// Guest address of the configuration space window, and the guest's RAM.
    window: u64,
    ram: Vec<(u64, [u8; 4096])>,
    /// The guest's IOMMU refuses the accesses of the PF.
    refuses: bool,
    /// Number of DMA messages.
    messages: usize,
    writes: usize,
}

impl Vmm {
    fn new(sockets: &Sockets, vfs: u8, attached: bool) -> Self {
        let client = |number: u8| attached.then(|| sockets.connect(&format!("vf{number}")).versed());
        let vf = |number: u8| VfFunction::new(client(number));
        let (vfs, pf) = ((1..=vfs).map(vf).collect(), sockets.connect("pf").versed());
        let (requests, ram) = (VecDeque::new(), Vec::new());
        Vmm { pf, requester: None, vfs, requests, window: SEABIOS, ram, refuses: false, messages: 0, writes: 0 }
    }

    /// Sends a command to the PF and returns its reply. Requests of the card that arrive meanwhile are queued.
    fn request(&mut self, command: u16, body: &[u8]) -> Reply {
        let header = self.pf.header(command, body, 0);
        self.pf.send(header, body, &[]);
        loop {
            let message = self.pf.receive();
            if message.header.is_reply() {
                assert_eq!((message.header.id, message.header.error), (header.id, 0));
                return message;
            }
            self.requests.push_back(message);
        }
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        self.request(command::REGION_WRITE, &access(offset, CONFIG_REGION, data.len() as u32, data));
    }

    /// Writes the VF BARs one dword at a time, like software.
    fn assign(&mut self, bars: [u64; 2]) {
        for (at, bar) in [(BAR0, bars[0]), (BAR2, bars[1])] {
            for (n, dword) in bar.to_le_bytes().chunks(4).enumerate() {
                self.write(at + 4 * n as u64, dword);
            }
        }
    }

    fn size(&mut self) {
        self.assign([SIZING; 2]);
    }

    fn enable(&mut self, vfs: u8) {
        self.write(NUM, &[vfs, 0]);
        self.write(CONTROL, &(VF_ENABLE | VF_MEMORY_SPACE_ENABLE).to_le_bytes());
    }

    fn disable(&mut self) {
        self.write(CONTROL, &[0, 0]);
    }

    /// Returns the next DMA message of the card, if one arrives within `time`.
    fn receive(&mut self, time: Duration) -> Option<Reply> {
        let (sender, requests) = (self.requester.as_mut().unwrap_or(&mut self.pf), &mut self.requests);
        let begun = Instant::now();
        sender.stream.set_nonblocking(true).unwrap();
        while requests.is_empty() && begun.elapsed() < time {
            match rustix::net::recv(&sender.stream, &mut [0_u8; 1][..], rustix::net::RecvFlags::PEEK) {
                Ok((1.., _)) => {
                    sender.stream.set_nonblocking(false).unwrap();
                    let message = sender.receive();
                    requests.push_back(message);
                    sender.stream.set_nonblocking(true).unwrap();
                }
                Ok(_) => panic!("the card has closed the connection"),
                Err(error) => assert_eq!(std::io::Error::from(error).kind(), ErrorKind::WouldBlock),
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        sender.stream.set_nonblocking(false).unwrap();
        self.requests.pop_front()
    }

    /// Executes a DMA message and replies.
    fn execute(&mut self, request: &Reply) {
        self.messages += 1;
        let (address, count) = (request.u64(0), request.u64(8) as usize);
        let result = match request.header.command {
            command::DMA_READ => self.dma_read(address, count),
            _ => self.dma_write(address, &request.body[16..]).map(|()| Vec::new()),
        };
        let (flags, error, data) = match result {
            Some(data) => (TYPE_REPLY, 0, data),
            None => (TYPE_REPLY | FLAG_ERROR, ENODEV, Vec::new()),
        };
        let body = if error == 0 { [&request.body[..16], &data].concat() } else { Vec::new() };
        let size = (HEADER_LEN + body.len()) as u32;
        let sender = self.requester.as_mut().unwrap_or(&mut self.pf);
        sender.send(Header { size, flags, error, ..request.header }, &body, &[]);
    }

    /// Offset in the window of a function: 0 is the PF.
    fn function(&self, address: u64) -> Option<(usize, u64)> {
        let at = address.checked_sub(self.window + 0x8000)?;
        usize::try_from(at >> 12).ok().filter(|function| *function <= self.vfs.len()).map(|n| (n, at & 0xfff))
    }

    fn dma_read(&mut self, address: u64, count: usize) -> Option<Vec<u8>> {
        if self.refuses && self.requester.is_none() {
            return None;
        }
        if let Some((page, ram)) = self.ram.iter().find(|(page, _)| *page == address & !0xfff) {
            return Some(ram[(address - page) as usize..][..count].to_vec());
        }
        let (function, offset) = self.function(address)?;
        assert_eq!(function, 0, "the card reads the PF only");
        let dwords = (0..count as u64).step_by(4).flat_map(|at| {
            let reply = self.request(command::REGION_READ, &access(offset + at, CONFIG_REGION, 4, &[]));
            reply.body[16..20].to_vec()
        });
        Some(dwords.collect())
    }

    fn dma_write(&mut self, address: u64, data: &[u8]) -> Option<()> {
        self.writes += 1;
        if self.refuses && self.requester.is_none() {
            return None;
        }
        assert!(!self.ram.iter().any(|(page, _)| *page == address & !0xfff), "a write to RAM at {address:#x}");
        let (function, offset) = self.function(address)?;
        assert_ne!(function, 0, "the card writes VFs only");
        for (n, part) in data.chunks(4).enumerate() {
            self.vfs[function - 1].write(offset + 4 * n as u64, part);
        }
        Some(())
    }

    /// Executes messages until `condition` holds.
    fn run_until(&mut self, what: &str, condition: impl Fn(&Vmm) -> bool) {
        let begun = Instant::now();
        while !condition(self) {
            assert!(begun.elapsed() < Duration::from_secs(5), "condition not reached within 5 s: {what}");
            if let Some(request) = self.receive(Duration::from_millis(10)) {
                self.execute(&request);
            }
        }
    }

    /// Executes messages until the VFs decode `expected`, and as long as the card sends more.
    fn settle(&mut self, expected: &[Option<[u64; 2]>]) {
        self.run_until(&format!("{expected:x?}"), |vmm| vmm.decoded() == expected);
        self.run();
        assert_eq!(self.decoded(), expected);
    }

    /// Executes messages until the card sends no more for a short time. Returns their number.
    fn run(&mut self) -> usize {
        let before = self.messages;
        while let Some(request) = self.receive(QUIET) {
            self.execute(&request);
        }
        self.messages - before
    }

    /// Where the functions decode their BARs.
    fn decoded(&self) -> Vec<Option<[u64; 2]>> {
        self.vfs.iter().map(VfFunction::decoded).collect()
    }

    /// The header type of a VF as its guest reads it.
    fn header_type(&mut self, vf: usize) -> u8 {
        let client = self.vfs[vf - 1].client.as_mut().unwrap();
        client.request(command::REGION_READ, &access(0xe, CONFIG_REGION, 1, &[])).body[16]
    }
}

/// The BARs of `vfs` VFs, of which `enabled` decode them, if VF 1's are at `first`.
fn bars(vfs: u64, enabled: u64, first: [u64; 2]) -> Vec<Option<[u64; 2]>> {
    let bars = |vf| (vf < enabled).then(|| [first[0] + vf * (16 << 20), first[1] + vf * (512 << 20)]);
    (0..vfs).map(bars).collect()
}

/// VFs decode their BARs while VF Enable and VF MSE are set, as on hardware. Before that, and while software sizes the
/// BARs, the guest's window is not accessed.
#[test]
fn vf_bars_follow_vf_enable_and_vf_mse() {
    for attached in [false, true] {
        let sockets = Sockets::new(together(2));
        let mut vmm = Vmm::new(&sockets, 2, attached);
        vmm.write(COMMAND, &MEMORY_AND_BUS_MASTER);
        vmm.size();
        vmm.assign(A);
        assert_eq!(vmm.run(), 0, "no VF is enabled");
        vmm.enable(2);
        vmm.settle(&bars(2, 2, A));
        vmm.write(CONTROL, &VF_ENABLE.to_le_bytes());
        vmm.settle(&[None; 2]);
        vmm.write(CONTROL, &(VF_ENABLE | VF_MEMORY_SPACE_ENABLE).to_le_bytes());
        vmm.settle(&bars(2, 2, A));
        vmm.disable();
        vmm.settle(&[None; 2]);
        vmm.size();
        vmm.assign(B);
        assert_eq!((vmm.run(), vmm.decoded()), (0, vec![None; 2]), "sized and moved while disabled");
        vmm.enable(1);
        vmm.settle(&bars(2, 1, B));
    }
}

/// The addresses of placed VFs are sized and restored while an update is in flight, at each of its writes.
#[test]
fn addresses_that_return_during_an_update_are_placed() {
    for attached in [false, true] {
        for sized_at in 0..8 {
            let sockets = Sockets::new(together(2));
            let mut vmm = Vmm::new(&sockets, 2, attached);
            vmm.assign(A);
            vmm.write(COMMAND, &MEMORY_AND_BUS_MASTER);
            vmm.enable(2);
            vmm.settle(&bars(2, 2, A));
            vmm.size();
            for _ in 0..sized_at {
                if let Some(request) = vmm.receive(QUIET) {
                    vmm.execute(&request);
                }
            }
            let in_flight = vmm.receive(QUIET);
            vmm.assign(A);
            in_flight.inspect(|request| vmm.execute(request));
            vmm.settle(&bars(2, 2, A));
        }
    }
}

/// A refused or lost write is known as such. The VF that cannot be used reads all ones in configuration space, so that
/// Linux refuses it, until the VMM executes the writes.
#[test]
fn vf_without_placed_bars_reads_all_ones() {
    let sockets = Sockets::new(together(2));
    let mut vmm = Vmm::new(&sockets, 2, true);
    vmm.assign(A);
    vmm.write(COMMAND, &MEMORY_AND_BUS_MASTER);
    vmm.refuses = true;
    vmm.enable(2);
    assert_eq!(vmm.header_type(1), 0, "nothing is refused yet");
    vmm.run_until("three attempts", |vmm| vmm.messages >= 6);
    assert_eq!((vmm.header_type(1), vmm.header_type(2), vmm.writes), (0xff, 0xff, 0));
    vmm.disable();
    vmm.run();
    assert_eq!(vmm.run(), 0, "nothing was placed, so nothing is undone");
    vmm.enable(2);
    vmm.refuses = false;
    vmm.run_until("placed", |vmm| vmm.decoded() == bars(2, 2, A));
    eventually("the VFs are there", || vmm.header_type(1) == 0 && vmm.header_type(2) == 0);
}

/// An IOMMU refuses the PF's accesses. With the requester on a bus that it does not translate, the BARs are placed, also
/// while bus mastering of the PF is off.
#[test]
fn the_requester_places_the_bars_where_an_iommu_refuses_the_pf() {
    for master in [MEMORY_AND_BUS_MASTER, [2, 0]] {
        let sockets = Sockets::new(together(2));
        let mut vmm = Vmm::new(&sockets, 2, true);
        vmm.refuses = true;
        vmm.requester = Some(sockets.connect("ecam").versed());
        vmm.assign(A);
        vmm.write(COMMAND, &master);
        assert_eq!(vmm.run(), 0, "no VF is enabled");
        vmm.enable(2);
        vmm.settle(&bars(2, 2, A));
        vmm.disable();
        vmm.settle(&[None; 2]);
    }
}

/// The window is where the firmware has put it. RAM with other contents, or with a copy of the PF's IDs, is not written.
#[test]
fn the_window_is_found_where_the_firmware_has_put_it() {
    for (window, wrong) in [(OVMF, SEABIOS), (SEABIOS, OVMF)] {
        for contents in [0xff, 0] {
            let sockets = Sockets::new(together(2));
            let mut vmm = Vmm::new(&sockets, 2, true);
            vmm.window = window;
            let mut page = [contents; 4096];
            page[..4].copy_from_slice(&0x56c0_8086_u32.to_le_bytes());
            vmm.ram.push((wrong + 0x8000, page));
            vmm.ram.push((wrong + 0x9000, [contents; 4096]));
            vmm.assign(A);
            vmm.write(COMMAND, &MEMORY_AND_BUS_MASTER);
            vmm.enable(2);
            vmm.settle(&bars(2, 2, A));
            // Other firmware after a reset of the machine.
            vmm.request(command::DEVICE_RESET, &[]);
            for vf in &mut vmm.vfs {
                vf.client.as_mut().unwrap().request(command::DEVICE_RESET, &[]);
                vf.registers = [0; 0x28];
            }
            (vmm.window, vmm.ram) = (wrong, Vec::new());
            vmm.assign(B);
            vmm.write(COMMAND, &MEMORY_AND_BUS_MASTER);
            assert_eq!(vmm.run(), 0);
            vmm.enable(2);
            vmm.settle(&bars(2, 2, B));
        }
    }
}

/// What the VMM has is known from the writes that it passes on: writes of the guest to the VF's registers, and a VF
/// that is plugged again, are noticed.
#[test]
fn vf_bars_are_placed_again_after_register_changes() {
    let sockets = Sockets::new(together(2));
    let mut vmm = Vmm::new(&sockets, 2, true);
    vmm.assign(A);
    vmm.write(COMMAND, &MEMORY_AND_BUS_MASTER);
    vmm.enable(2);
    vmm.settle(&bars(2, 2, A));
    vmm.vfs[0].write(COMMAND, &[4, 0]);
    vmm.settle(&bars(2, 2, A));
    vmm.vfs[1].write(VF_BAR0, &[0; 4]);
    vmm.settle(&bars(2, 2, A));
    vmm.vfs[1] = VfFunction::new(None);
    eventually("the session has ended", || !sockets.card.vf(2).connected());
    vmm.run();
    vmm.vfs[1] = VfFunction::new(Some(sockets.connect("vf2").versed()));
    vmm.settle(&bars(2, 2, A));
}

/// A client that disconnects while its VFs' BARs are being programmed does not delay the end of its session. Its
/// successor's VFs are placed.
#[test]
fn a_client_that_disconnects_during_an_update_leaves_nothing_behind() {
    let sockets = Sockets::new(together(2));
    for writes in 0..4 {
        let mut vmm = Vmm::new(&sockets, 2, writes % 2 == 0);
        vmm.assign(A);
        vmm.write(COMMAND, &MEMORY_AND_BUS_MASTER);
        vmm.enable(2);
        vmm.run_until("an update is in flight", |vmm| vmm.writes >= writes);
        drop(vmm);
        eventually("the session has ended", || !sockets.card.pf().connected() && !sockets.card.vf(1).connected());
    }
    let mut vmm = Vmm::new(&sockets, 2, true);
    vmm.assign(B);
    vmm.write(COMMAND, &MEMORY_AND_BUS_MASTER);
    assert_eq!(vmm.run(), 0);
    vmm.enable(2);
    vmm.settle(&bars(2, 2, B));
}
