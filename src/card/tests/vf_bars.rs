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
const VF_BAR2: u64 = 0x18;
/// Configuration registers of a VF that the VMM has: up to the end of BAR 5.
const VF_REGISTER_BYTES: usize = 0x28;
const MEMORY_SPACE: [u8; 2] = [2, 0];
const BUS_MASTER: [u8; 2] = [4, 0];
/// Two assignments of VF BARs 0 and 2. They differ in BAR 0 alone, as if the guest had moved only one.
const INITIAL_BARS: [u64; 2] = [0x10_0000_0000, 0x20_0000_0000];
const MOVED_BARS: [u64; 2] = [0x30_0000_0000, 0x20_0000_0000];
/// What software writes to a BAR to size it.
const ALL_ONES: u64 = 0xffff_ffff_ffff_ffff;
/// Bytes of each VF in VF BARs 0 and 2.
const VF_BAR_BYTES: [u64; 2] = [16 << 20, 512 << 20];
const SEABIOS_ECAM: u64 = 0xb000_0000;
const OVMF_ECAM: u64 = 0xe000_0000;
/// Offset of the PF, 00:01.0, in the configuration space window; VF 1 is the next function.
const PF_ECAM_OFFSET: u64 = 0x8000;
const VF1_ECAM_OFFSET: u64 = 0x9000;
/// Device and vendor ID of the PF.
const PF_IDS: u32 = 0x56c0_8086;

/// Time without messages after which a test assumes that there are none; a slow card thread can hide a message.
const IDLE_TIMEOUT: Duration = Duration::from_millis(30);

/// A VF's function in the VMM, and the connection to which the VMM passes its register writes on.
struct VfFunction {
    client: Option<Raw>,
    registers: [u8; VF_REGISTER_BYTES],
}

impl VfFunction {
    fn new(client: Option<Raw>) -> Self {
        VfFunction { client, registers: [0; VF_REGISTER_BYTES] }
    }

    /// The addresses at which the function decodes its BARs.
    fn decoded(&self) -> Option<[u64; 2]> {
        let bar = |at: u64| u64::from_le_bytes(self.registers[at as usize..][..8].try_into().unwrap()) & !0xf;
        let is_decoding = self.registers[COMMAND as usize] & MEMORY_SPACE[0] != 0;
        is_decoding.then(|| [VF_BAR0, VF_BAR2].map(bar))
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
    /// DMA messages that arrived at the PF while it waited for a reply.
    requests: VecDeque<Reply>,
    /// Guest address of the configuration space window.
    ecam_base: u64,
    /// Pages of the guest's RAM, with their addresses.
    ram: Vec<(u64, [u8; 4096])>,
    /// The guest's IOMMU refuses the accesses of the PF.
    iommu_blocks_pf: bool,
    /// Reads are executed, but writes are refused.
    refuses_writes: bool,
    /// Number of executed and refused DMA messages.
    dma_messages: usize,
    /// Number of those that are writes.
    dma_writes: usize,
}

impl Vmm {
    /// A VMM with two VFs that are enabled, and have their BARs at [`INITIAL_BARS`].
    fn with_enabled_vfs(sockets: &Sockets, attached: bool) -> Self {
        let mut vmm = Vmm::new(sockets, 2, attached);
        vmm.assign(INITIAL_BARS);
        vmm.write(COMMAND, &MEMORY_AND_BUS_MASTER);
        vmm.enable(2);
        vmm.settle(&bars(2, 2, INITIAL_BARS));
        vmm
    }

    /// A VMM whose PF guest has `vfs` VFs; if `attached`, the VFs have a connection each.
    fn new(sockets: &Sockets, vfs: u8, attached: bool) -> Self {
        let client = |number: u8| attached.then(|| sockets.connect(&format!("vf{number}")).versed());
        let vf = |number: u8| VfFunction::new(client(number));
        Vmm {
            vfs: (1..=vfs).map(vf).collect(),
            pf: sockets.connect("pf").versed(),
            requester: None,
            requests: VecDeque::new(),
            ecam_base: SEABIOS_ECAM,
            ram: Vec::new(),
            iommu_blocks_pf: false,
            refuses_writes: false,
            dma_messages: 0,
            dma_writes: 0,
        }
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
            assert!(self.requester.is_none(), "the card sends DMA messages to the requester only");
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

    fn size_bars(&mut self) {
        self.assign([ALL_ONES; 2]);
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
        if requests.is_empty() {
            let usual = sender.stream.read_timeout().unwrap();
            sender.stream.set_read_timeout(Some(time)).unwrap();
            let peeked = rustix::net::recv(&sender.stream, &mut [0_u8; 1][..], rustix::net::RecvFlags::PEEK);
            sender.stream.set_read_timeout(usual).unwrap();
            match peeked {
                Ok((1.., _)) => requests.push_back(sender.receive()),
                Ok(_) => panic!("the card has closed the connection"),
                Err(error) => assert_eq!(std::io::Error::from(error).kind(), ErrorKind::WouldBlock),
            }
        }
        self.requests.pop_front()
    }

    /// Executes a DMA message and replies.
    fn execute(&mut self, request: &Reply) {
        self.dma_messages += 1;
        let (address, count) = (request.u64(0), request.u64(8) as usize);
        let result = match request.header.command {
            command::DMA_READ => self.dma_read(address, count),
            command::DMA_WRITE => self.dma_write(address, &request.body[16..]).map(|()| Vec::new()),
            other => panic!("the card sends command {other}"),
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

    /// Function number (0 is the PF) and offset in its configuration space of a guest address.
    fn decode_ecam(&self, address: u64) -> Option<(usize, u64)> {
        let at = address.checked_sub(self.ecam_base + PF_ECAM_OFFSET)?;
        usize::try_from(at >> 12).ok().filter(|function| *function <= self.vfs.len()).map(|n| (n, at & 0xfff))
    }

    fn dma_read(&mut self, address: u64, count: usize) -> Option<Vec<u8>> {
        if self.iommu_blocks_pf && self.requester.is_none() {
            return None;
        }
        if let Some((page, ram)) = self.ram.iter().find(|(page, _)| *page == address & !0xfff) {
            return Some(ram[(address - page) as usize..][..count].to_vec());
        }
        let (function, offset) = self.decode_ecam(address)?;
        assert_eq!(function, 0, "the card reads the PF only");
        let dwords = (0..count as u64).step_by(4).flat_map(|at| {
            let reply = self.request(command::REGION_READ, &access(offset + at, CONFIG_REGION, 4, &[]));
            reply.body[16..20].to_vec()
        });
        Some(dwords.collect())
    }

    fn dma_write(&mut self, address: u64, data: &[u8]) -> Option<()> {
        self.dma_writes += 1;
        if self.iommu_blocks_pf && self.requester.is_none() {
            return None;
        }
        if self.refuses_writes {
            return None;
        }
        assert!(!self.ram.iter().any(|(page, _)| *page == address & !0xfff), "a write to RAM at {address:#x}");
        let (function, offset) = self.decode_ecam(address)?;
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
        self.run_until_quiet();
        assert_eq!(self.decoded(), expected);
    }

    /// Executes messages until the card sends no more for a short time. Returns their number.
    fn run_until_quiet(&mut self) -> usize {
        let before = self.dma_messages;
        while let Some(request) = self.receive(IDLE_TIMEOUT) {
            self.execute(&request);
        }
        self.dma_messages - before
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
    let bars = |vf| (vf < enabled).then(|| [0, 1].map(|bar| first[bar] + vf * VF_BAR_BYTES[bar]));
    (0..vfs).map(bars).collect()
}

/// VFs decode their BARs while VF Enable and VF MSE are set, as on hardware. While no VF is enabled, also while
/// software sizes the BARs, the guest's window is not accessed.
#[test]
fn vf_bars_follow_vf_enable_and_vf_mse() {
    for attached in [false, true] {
        let sockets = Sockets::new(together(2));
        let mut vmm = Vmm::new(&sockets, 2, attached);
        vmm.write(COMMAND, &MEMORY_AND_BUS_MASTER);
        vmm.size_bars();
        vmm.assign(INITIAL_BARS);
        assert_eq!(vmm.run_until_quiet(), 0, "no VF is enabled");
        vmm.enable(2);
        vmm.settle(&bars(2, 2, INITIAL_BARS));
        vmm.write(CONTROL, &VF_ENABLE.to_le_bytes());
        vmm.settle(&[None; 2]);
        vmm.write(CONTROL, &(VF_ENABLE | VF_MEMORY_SPACE_ENABLE).to_le_bytes());
        vmm.settle(&bars(2, 2, INITIAL_BARS));
        vmm.disable();
        vmm.settle(&[None; 2]);
        vmm.size_bars();
        vmm.assign(MOVED_BARS);
        assert_eq!((vmm.run_until_quiet(), vmm.decoded()), (0, vec![None; 2]), "sized and moved while disabled");
        vmm.enable(1);
        vmm.settle(&bars(2, 1, MOVED_BARS));
    }
}

/// The addresses of programmed VFs are sized and restored while an update is in flight, at each of its messages.
#[test]
fn vf_bars_restored_during_update_are_programmed() {
    for attached in [false, true] {
        let mut restored_in_flight = 0;
        for executed_before_restore in 0..8 {
            let sockets = Sockets::new(together(2));
            let mut vmm = Vmm::with_enabled_vfs(&sockets, attached);
            vmm.size_bars();
            for _ in 0..executed_before_restore {
                if let Some(request) = vmm.receive(IDLE_TIMEOUT) {
                    vmm.execute(&request);
                }
            }
            let in_flight = vmm.receive(IDLE_TIMEOUT);
            vmm.assign(INITIAL_BARS);
            if let Some(request) = in_flight {
                restored_in_flight += 1;
                vmm.execute(&request);
            }
            vmm.settle(&bars(2, 2, INITIAL_BARS));
        }
        assert_ne!(restored_in_flight, 0, "no update was in flight");
    }
}

/// A VF whose BARs cannot be programmed, because the VMM refuses reads of the window or writes to it, reads all ones in
/// configuration space, so that Linux refuses it, until the VMM executes the writes.
#[test]
fn vf_without_placed_bars_reads_all_ones() {
    for refuses_reads in [false, true] {
        let sockets = Sockets::new(together(2));
        let mut vmm = Vmm::new(&sockets, 2, true);
        vmm.assign(INITIAL_BARS);
        vmm.write(COMMAND, &MEMORY_AND_BUS_MASTER);
        (vmm.iommu_blocks_pf, vmm.refuses_writes) = (refuses_reads, !refuses_reads);
        vmm.enable(2);
        assert_eq!(vmm.header_type(1), 0, "nothing is refused yet");
        if refuses_reads {
            // An attempt reads the PF's IDs in two windows, so these are three attempts.
            vmm.run_until("three attempts", |vmm| vmm.dma_messages >= 6);
            assert_eq!(vmm.dma_writes, 0, "nothing is written before the PF was recognised");
        } else {
            vmm.run_until("three attempts", |vmm| vmm.dma_writes >= 3);
        }
        // The card records the last refusal after it was sent.
        eventually("the VFs read all ones", || vmm.header_type(1) == 0xff && vmm.header_type(2) == 0xff);
        vmm.disable();
        vmm.run_until_quiet();
        if refuses_reads {
            assert_eq!(vmm.dma_writes, 0, "nothing was placed, so nothing is undone");
        }
        vmm.enable(2);
        (vmm.iommu_blocks_pf, vmm.refuses_writes) = (false, false);
        vmm.run_until("placed", |vmm| vmm.decoded() == bars(2, 2, INITIAL_BARS));
        eventually("VF configuration space is readable", || vmm.header_type(1) == 0 && vmm.header_type(2) == 0);
    }
}

/// The reply to a write is missing. The write is sent again after the time for replies.
#[test]
fn vf_bar_write_without_reply_is_repeated() {
    for attached in [false, true] {
        let sockets = Sockets::new(together(2));
        let mut vmm = Vmm::new(&sockets, 2, attached);
        vmm.assign(INITIAL_BARS);
        vmm.write(COMMAND, &MEMORY_AND_BUS_MASTER);
        vmm.enable(2);
        let lost = loop {
            let request = vmm.receive(Duration::from_secs(5)).expect("a write is due");
            if request.header.command == command::DMA_WRITE {
                break request;
            }
            vmm.execute(&request);
        };
        assert_eq!(vmm.decode_ecam(lost.u64(0)).map(|(function, _)| function), Some(1));
        vmm.settle(&bars(2, 2, INITIAL_BARS));
    }
}

/// An IOMMU refuses the PF's accesses. With the requester on a bus that it does not translate, the BARs are placed, also
/// while bus mastering of the PF is off.
#[test]
fn requester_programs_vf_bars_when_iommu_blocks_pf() {
    for pf_command in [MEMORY_AND_BUS_MASTER, MEMORY_SPACE] {
        let sockets = Sockets::new(together(2));
        let mut vmm = Vmm::new(&sockets, 2, true);
        vmm.iommu_blocks_pf = true;
        vmm.requester = Some(sockets.connect("ecam").versed());
        vmm.assign(INITIAL_BARS);
        vmm.write(COMMAND, &pf_command);
        assert_eq!(vmm.run_until_quiet(), 0, "no VF is enabled");
        vmm.enable(2);
        vmm.settle(&bars(2, 2, INITIAL_BARS));
        vmm.disable();
        vmm.settle(&[None; 2]);
    }
}

/// The card searches the known ECAM addresses of firmware. RAM with other contents, or with a copy of the PF's IDs, is not written.
#[test]
fn ecam_is_found_at_each_firmware_address() {
    for (ecam_base, other_base) in [(OVMF_ECAM, SEABIOS_ECAM), (SEABIOS_ECAM, OVMF_ECAM)] {
        for contents in [0xff, 0] {
            let sockets = Sockets::new(together(2));
            let mut vmm = Vmm::new(&sockets, 2, true);
            vmm.ecam_base = ecam_base;
            let mut page = [contents; 4096];
            page[..4].copy_from_slice(&PF_IDS.to_le_bytes());
            vmm.ram.push((other_base + PF_ECAM_OFFSET, page));
            vmm.ram.push((other_base + VF1_ECAM_OFFSET, [contents; 4096]));
            vmm.assign(INITIAL_BARS);
            vmm.write(COMMAND, &MEMORY_AND_BUS_MASTER);
            vmm.enable(2);
            vmm.settle(&bars(2, 2, INITIAL_BARS));
            // Other firmware after a reset of the machine.
            vmm.request(command::DEVICE_RESET, &[]);
            for vf in &mut vmm.vfs {
                vf.client.as_mut().unwrap().request(command::DEVICE_RESET, &[]);
                vf.registers = [0; VF_REGISTER_BYTES];
            }
            (vmm.ecam_base, vmm.ram) = (other_base, Vec::new());
            vmm.assign(MOVED_BARS);
            vmm.write(COMMAND, &MEMORY_AND_BUS_MASTER);
            assert_eq!(vmm.run_until_quiet(), 0);
            vmm.enable(2);
            vmm.settle(&bars(2, 2, MOVED_BARS));
        }
    }
}

/// The card tracks VF registers by observing the writes that the VMM forwards. Writes of the guest to the VF's registers, and a VF
/// that is plugged again, are noticed.
#[test]
fn vf_bars_are_placed_again_after_register_changes() {
    let sockets = Sockets::new(together(2));
    let mut vmm = Vmm::with_enabled_vfs(&sockets, true);
    vmm.vfs[0].write(COMMAND, &BUS_MASTER);
    vmm.settle(&bars(2, 2, INITIAL_BARS));
    vmm.vfs[1].write(VF_BAR0, &[0; 4]);
    vmm.settle(&bars(2, 2, INITIAL_BARS));
    vmm.vfs[1] = VfFunction::new(None);
    eventually("the session has ended", || !sockets.card.vf(2).connected());
    vmm.run_until_quiet();
    vmm.vfs[1] = VfFunction::new(Some(sockets.connect("vf2").versed()));
    vmm.settle(&bars(2, 2, INITIAL_BARS));
}

/// A client that disconnects while the card waits for its reply to a message about VF BARs ends its session. The VFs of
/// its successor are programmed.
#[test]
fn client_disconnect_during_bar_update_ends_session() {
    let sockets = Sockets::new(together(2));
    for writes in 0..4 {
        let mut vmm = Vmm::new(&sockets, 2, writes % 2 == 0);
        vmm.assign(INITIAL_BARS);
        vmm.write(COMMAND, &MEMORY_AND_BUS_MASTER);
        vmm.enable(2);
        vmm.run_until("an update is in flight", |vmm| vmm.dma_writes >= writes);
        assert!(vmm.receive(Duration::from_secs(5)).is_some(), "the card waits for a reply after {writes} writes");
        drop(vmm);
        let functions = sockets.card.served.card().functions();
        eventually("all sessions have ended", || functions.iter().all(|function| !function.connected()));
    }
    let mut vmm = Vmm::new(&sockets, 2, true);
    vmm.assign(MOVED_BARS);
    vmm.write(COMMAND, &MEMORY_AND_BUS_MASTER);
    assert_eq!(vmm.run_until_quiet(), 0);
    vmm.enable(2);
    vmm.settle(&bars(2, 2, MOVED_BARS));
}
