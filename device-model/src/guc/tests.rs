//! The GuC as a driver meets it: upload, handshake, messages byte by byte, and the life of contexts.

use std::sync::{Arc, Mutex};

use vm_memory::Bytes;

use super::*;
use crate::engine::id::{ENGINES, EngineClass, EngineId};
use crate::engine::{Halt, Outcome};
use crate::memory::ggtt::{GGTT_BYTES, Ggtt, GgttEntry};
use crate::memory::local::SharedRegion;
use crate::memory::{Access, Fault, FaultReason, Memory, Space};
use crate::world::{Clock, Dma, DmaFault, DmaView, HandWoundClock, InterruptSink};

struct NoGuest;

impl DmaView for NoGuest {
    fn slice(&self, _: u64, _: usize) -> Option<vm_memory::VolatileSlice<'_>> {
        None
    }

    fn read_remote(&self, iova: u64, _: &mut [u8]) -> Result<(), DmaFault> {
        Err(DmaFault { iova })
    }

    fn write_remote(&self, iova: u64, _: &[u8]) -> Result<(), DmaFault> {
        Err(DmaFault { iova })
    }
}

impl Dma for NoGuest {
    fn view(&self, _: Function) -> Arc<dyn DmaView> {
        Arc::new(NoGuest)
    }
}

#[derive(Default)]
struct Recorder(Mutex<Vec<u16>>);

impl InterruptSink for Recorder {
    fn raise(&self, _: Function, vector: u16) {
        self.0.lock().unwrap().push(vector);
    }
}

/// Global addresses that are mapped, one to one, to local memory.
const MAPPED: std::ops::Range<u64> = 0x40_0000..0x140_0000;
const FIRMWARE: u64 = 0x40_0000;
const ADS: u64 = 0x60_0000;
const CTB: u64 = 0x70_0000;
const SCRATCH: u64 = 0x80_0000;
/// Context images, 64 KiB apart.
const IMAGES: u64 = 0x90_0000;

const KERNEL_DWORDS: u32 = 0x100;
const DMA_BYTES: u32 = 128 + KERNEL_DWORDS * 4;

/// Present engines as a Flex 170's fuses leave them (contract K.3).
fn present(id: EngineId) -> bool {
    !matches!(ENGINES[id.index()].name, "vcs1" | "vcs3" | "vcs4" | "vcs5" | "vcs6" | "vcs7" | "vecs2" | "vecs3")
}

/// A host with a card's GT, driven by hand.
struct Host {
    gt: Gt,
    engines: Engines,
    guc: Guc,
    clock: Arc<HandWoundClock>,
    h2g_tail: u32,
    g2h_head: u32,
    deadline: Option<u64>,
}

const H2G_DWORDS: u32 = 1024;
const G2H_DWORDS: u32 = 1024;

impl Host {
    fn new() -> Self {
        let local = SharedRegion::anonymous(0x140_0000).unwrap();
        let ggtt = Ggtt::new(SharedRegion::anonymous(GGTT_BYTES).unwrap());
        for page in (MAPPED.start..MAPPED.end).step_by(4096) {
            ggtt.set_entry(page >> 12, GgttEntry(page | 3));
        }
        let clock = Arc::new(HandWoundClock::default());
        clock.advance(1_000_000_000);
        let engines = Engines::new(present);
        let memory = Memory::new(local, ggtt, Arc::new(NoGuest));
        let profile = toml::from_str(include_str!("../../../configs/flex170.toml")).unwrap();
        let gt = Gt::new(&profile, memory, Arc::new(Recorder::default()), clock.clone());
        let host = Host { gt, engines, guc: Guc::new(), clock, h2g_tail: 0, g2h_head: 0, deadline: None };
        host.write_firmware();
        host.write_ads();
        host
    }

    fn cell(&self, at: u64) -> vm_memory::VolatileSlice<'_> {
        self.gt.memory.local().slice(at, 4).unwrap()
    }

    fn poke(&self, at: u64, value: u32) {
        self.cell(at).store(value, 0, std::sync::atomic::Ordering::SeqCst).unwrap();
    }

    fn peek(&self, at: u64) -> u32 {
        self.cell(at).load(0, std::sync::atomic::Ordering::SeqCst).unwrap()
    }

    fn write_firmware(&self) {
        let header = [6, 32 + 96 + 96 + 1, 0x1_0000, 0, 0x8086, 0x2024_0101, 32 + 193 + KERNEL_DWORDS, 96, 96, 1];
        for (n, value) in (0u64..).zip(header) {
            self.poke(FIRMWARE + n * 4, value);
        }
        self.poke(FIRMWARE + 0x44, 70 << 16 | 53 << 8);
        self.poke(FIRMWARE + 0x48, 1 << 16 | 26 << 8);
        self.poke(FIRMWARE + u64::from(DMA_BYTES), 0x1234_5678); // signature
    }

    fn write_ads(&self) {
        self.poke(ADS + 0x1004, (ADS + 0x11dc) as u32);
        self.poke(ADS + 0x1008, (ADS + 0x123c) as u32);
        self.poke(ADS + 0x1220, 1);
        for class in EngineClass::BY_GUC {
            let row = ADS + 0x123c + u64::from(class.guc()) * 32;
            let instances: Vec<u8> =
                self.engines.present().map(|e| e.info()).filter(|i| i.class == class).map(|i| i.instance).collect();
            let table: Vec<u8> = (0..32).map(|n| instances.get(n).copied().unwrap_or(32)).collect();
            for (n, quad) in (0u64..).zip(table.chunks_exact(4)) {
                self.poke(row + n * 4, u32::from_le_bytes([quad[0], quad[1], quad[2], quad[3]]));
            }
            let mask = instances.iter().fold(0, |mask, n| mask | 1 << n);
            self.poke(ADS + 0x143c + u64::from(class.guc()) * 4, mask);
        }
    }

    /// Contract B.4 steps 19 and 20; returns GUC_STATUS.
    fn upload(&mut self) -> u32 {
        let set = |offset, value| self.gt.registers.set(offset, value);
        set(0xc050, 0x3f_3001);
        set(0xc340, 0x4001);
        set(0xc180 + 5 * 4, (ADS >> 12 << 1) as u32);
        set(0xc180 + 3 * 4, 0x14); // features: SLPC, lite restore
        set(0xc180 + 2 * 4, 0x42_4800); // workarounds
        set(0xc200, (FIRMWARE + u64::from(DMA_BYTES)) as u32);
        set(0xc300, FIRMWARE as u32);
        set(0xc304, 0x8_0000);
        set(0xc308, 0x2000);
        set(0xc30c, 0x7_0000);
        set(0xc310, DMA_BYTES);
        set(0xc314, 0x11);
        self.start_dma()
    }

    fn start_dma(&mut self) -> u32 {
        self.guc.start_dma(&self.gt);
        assert_eq!(self.gt.registers.value(0xc314) & 1, 0, "DMA is over");
        self.gt.registers.value(0xc000)
    }

    fn mail(&mut self, message: &[u32]) -> [u32; 4] {
        for (n, value) in (0u32..).zip(message) {
            self.gt.registers.set(0x19_0240 + n * 4, *value);
        }
        assert!(Guc::mailbox_holds_request(&self.gt));
        self.guc.mailbox(&self.gt, &self.engines);
        std::array::from_fn(|n| self.gt.registers.value(0x19_0240 + n as u32 * 4))
    }

    /// Contract B.6: ring locations in the driver's order, then enable.
    fn enable_rings(&mut self) {
        let keys = [
            (0x0903, 2, CTB),
            (0x0902, 2, CTB + 0x1000),
            (0x0904, 1, u64::from(H2G_DWORDS) * 4),
            (0x0906, 2, CTB + 0x800),
            (0x0905, 2, CTB + 0x2000),
            (0x0907, 1, u64::from(G2H_DWORDS) * 4),
        ];
        for (key, len, value) in keys {
            assert_eq!(self.mail(&[0x0508, key << 16 | len, value as u32, 0])[0], 0xf000_0001);
        }
        for at in (CTB..CTB + 0x3000).step_by(4) {
            self.poke(at, 0);
        }
        (self.h2g_tail, self.g2h_head) = (0, 0);
        assert_eq!(self.mail(&[0x4509, 1])[0], 0xf000_0000);
    }

    fn up() -> Self {
        let mut host = Host::new();
        assert_eq!(host.upload(), 0x8001_f0ec);
        host.enable_rings();
        host
    }

    /// Writes a CT message as xe does: zeros up to the end where it does not fit.
    fn send_raw(&mut self, message: &[u32]) {
        if self.h2g_tail + message.len() as u32 > H2G_DWORDS {
            while self.h2g_tail < H2G_DWORDS {
                self.poke(CTB + 0x1000 + u64::from(self.h2g_tail) * 4, 0);
                self.h2g_tail += 1;
            }
            self.h2g_tail = 0;
        }
        for dword in message {
            self.poke(CTB + 0x1000 + u64::from(self.h2g_tail) * 4, *dword);
            self.h2g_tail += 1;
        }
        self.h2g_tail %= H2G_DWORDS;
        self.poke(CTB + 4, self.h2g_tail);
    }

    fn step(&mut self) {
        self.deadline = self.guc.step(&self.gt, &self.engines);
    }

    fn fast(&mut self, code: u32, payload: &[u32]) {
        let mut message = vec![0x8001 << 16 | (payload.len() as u32 + 1), 2 << 28 | code];
        message.extend(payload);
        self.send_raw(&message);
    }

    /// Sends a tracked request and returns its only reply.
    fn request(&mut self, code: u32, payload: &[u32]) -> u32 {
        let mut message = vec![0x0012 << 16 | (payload.len() as u32 + 1), code];
        message.extend(payload);
        self.send_raw(&message);
        self.step();
        let replies = self.received();
        assert_eq!(replies.len(), 1, "{replies:x?}");
        assert_eq!(replies[0][0], 0x0012_0001);
        replies[0][1]
    }

    /// Messages that came, CT header first; the space is given back.
    fn received(&mut self) -> Vec<Vec<u32>> {
        let tail = self.peek(CTB + 0x800 + 4);
        let mut messages = Vec::new();
        let at = |dword: u32| CTB + 0x2000 + u64::from(dword % G2H_DWORDS) * 4;
        while self.g2h_head != tail {
            let header = self.peek(at(self.g2h_head));
            let message: Vec<u32> = (0..=header & 0xff).map(|n| self.peek(at(self.g2h_head + n))).collect();
            self.g2h_head = (self.g2h_head + message.len() as u32) % G2H_DWORDS;
            messages.push(message);
        }
        self.poke(CTB + 0x800, self.g2h_head);
        messages
    }

    fn stepped(&mut self) -> Vec<Vec<u32>> {
        self.step();
        self.received()
    }

    fn image(id: u32, member: u32) -> u64 {
        IMAGES + u64::from(id * 4 + member) * 0x4000
    }

    fn set_tail(&self, id: u32, tail: u32) {
        self.poke(Self::image(id, 0) + 0x1000 + 7 * 4, tail);
    }

    fn register(&mut self, id: u32, class: EngineClass, mask: u32) {
        let lrca = Self::image(id, 0) as u32 | 0x119;
        self.fast(0x4502, &[1, id, u32::from(class.guc()), mask, 0, 0, 0, 0, 0, lrca, 0]);
    }

    fn policies(&mut self, id: u32, priority: u32, quantum: u32, timeout: u32) {
        self.fast(0x100b, &[id, 0x2003_0001, priority, 0x2001_0001, quantum, 0x2002_0001, timeout]);
    }

    /// Registers, gives work, enables; everything is answered.
    fn start(&mut self, id: u32, class: EngineClass, mask: u32, priority: u32) {
        self.register(id, class, mask);
        self.policies(id, priority, 1000, 640_000);
        self.poke(Self::image(id, 0) + 0x1000 + 5 * 4, 0);
        self.set_tail(id, 64);
        self.fast(0x1001, &[id, 1]);
        assert_eq!(self.stepped(), [[3, 0x9000_1002, id, 1]]);
    }

    fn runs(&self, engine: &str) -> Option<u32> {
        let id = engine_named(engine);
        self.engines.lock(id).loaded().map(|load| load.context & 0xffff)
    }

    /// The engine ends its context with `outcome`, as a worker would report it.
    fn end(&mut self, engine: &str, outcome: Outcome) {
        let id = engine_named(engine);
        let load = {
            let mut streamer = self.engines.lock(id);
            let load = streamer.loaded().expect("something is loaded");
            if matches!(outcome, Outcome::Complete | Outcome::Preempted) {
                streamer.reset(&self.gt);
            }
            load
        };
        if outcome == Outcome::Complete {
            let image = (load.descriptor & 0xffff_f000) + 0x1000;
            self.poke(image + 5 * 4, self.peek(image + 7 * 4));
        }
        if outcome == Outcome::Waiting {
            self.engines.put_off(id, self.clock.now());
        }
        self.engines.report(EngineReport { engine: id, load, outcome });
    }
}

fn engine_named(name: &str) -> EngineId {
    EngineId::all().find(|id| id.info().name == name).expect("an engine")
}

const FAULT: Fault = Fault {
    space: Space::Ppgtt(0),
    address: 0x1000,
    access: Access::Read,
    reason: FaultReason::NotPresent { level: 3 },
};

/// Contract B.4 step 20, V13-178, V13-180: a good image starts, versions and parameters are taken from it.
#[test]
fn upload_good_image() {
    let mut host = Host::new();
    assert_eq!(host.upload(), 0x8001_f0ec);
    let firmware = host.guc.firmware().unwrap();
    assert_eq!((firmware.release.major, firmware.release.minor, firmware.submission.minor), (70, 53, 26));
    assert_eq!((firmware.params[2], firmware.ads()), (0x14, ADS));
    // While it runs, the host's DMA orders are ignored.
    host.gt.registers.set(0xc310, 0);
    host.gt.registers.set(0xc314, 0x11);
    assert_eq!(host.start_dma(), 0x8001_f0ec);
    host.guc.reset(&host.gt);
    assert_eq!(host.gt.registers.value(0xc000), 1);
    assert!(host.guc.firmware().is_none());
}

/// Contract B.4 step 20g, V13-195: every bad image ends in a status that the driver takes for a failure.
#[test]
fn upload_bad_images() {
    type Spoil = fn(&Host);
    let cases: [(&str, u32, Spoil); 9] = [
        ("module type", 0x50, |h| h.poke(FIRMWARE, 4)),
        ("header length", 0x50, |h| h.poke(FIRMWARE + 4, 31)),
        ("image length", 0x50, |h| h.poke(FIRMWARE + 0x18, u32::MAX)),
        ("version", 0x50, |h| h.poke(FIRMWARE + 0x44, 0)),
        ("no signature", 0x13, |h| h.poke(FIRMWARE + u64::from(DMA_BYTES), 0)),
        ("WOPCM not locked", 0x74, |h| h.gt.registers.set(0xc050, 0x3f_3000)),
        ("WOPCM too small", 0x74, |h| h.gt.registers.set(0xc050, 0x1001)),
        ("source not mapped", 0x75, |h| h.gt.registers.set(0xc300, 0x100_0000 + MAPPED.end as u32)),
        ("wrong space", 0x75, |h| h.gt.registers.set(0xc304, 0x7_0000)),
    ];
    for (name, code, spoil) in cases {
        let mut host = Host::new();
        // Registers as the driver leaves them, but the order to start comes after the damage.
        host.upload();
        host.guc.reset(&host.gt);
        spoil(&host);
        host.gt.registers.set(0xc314, 0x11);
        let status = host.start_dma();
        assert_eq!((status >> 1 & 0x7f, status >> 30), (code, 1), "{name}");
        assert_ne!(status >> 8 & 0xff, 0xf0, "{name}");
        assert!(host.guc.firmware().is_none(), "{name}");
    }
    let mut host = Host::new();
    host.upload();
    host.guc.reset(&host.gt);
    host.gt.registers.set(0xc180 + 5 * 4, 0);
    host.gt.registers.set(0xc314, 0x11);
    assert_eq!(host.start_dma() >> 8 & 0xff, 0x71, "no ADS");
}

/// Contract B.4 step 21, K.11: the mailbox's wire examples.
#[test]
fn mailbox_examples() {
    let mut host = Host::new();
    host.upload();
    let [reply, ..] = host.mail(&[0x4100, 0, 0, 0]);
    let bytes = reply & 0xfff_ffff;
    assert_eq!(reply >> 28, 0xf);
    assert_eq!(bytes as usize, hwconfig::table().len() * 4);
    assert_eq!(host.mail(&[0x4100, SCRATCH as u32, 0, bytes])[0], reply);
    for (n, value) in (0u64..).zip(hwconfig::table()) {
        assert_eq!(host.peek(SCRATCH + n * 4), *value);
    }
    assert_eq!(host.mail(&[0x4100, 0x1000, 0, bytes])[0], 0xe000_0080, "not mapped");
    assert_eq!(host.mail(&[0x4100, SCRATCH as u32, 0, bytes - 4])[0], 0xe000_0102, "too small");
    assert_eq!(host.mail(&[0x4509, 1])[0], 0xe000_0304, "rings not configured");
    assert_eq!(host.mail(&[0x0508, 0x0902_0002, CTB as u32, 0]), [0xf000_0001, 0, 0, 0]);
    assert_eq!(host.mail(&[0x0508, 0x0902_0001, CTB as u32, 0])[0], 0xe000_0103, "wrong length");
    assert_eq!(host.mail(&[0x0508, 0x0902_0002, 0x1000, 0])[0], 0xe000_0080, "inside WOPCM");
    assert_eq!(host.mail(&[0x0508, 0x0904_0001, 100, 0])[0], 0xe000_0060, "not a multiple of 4 KiB");
    assert_eq!(host.mail(&[0x0508, 0x0999_0001, 1, 0])[0], 0xf000_0000, "unknown key: none applied");
    assert_eq!(host.mail(&[0x1234])[0], 0xe000_0030);
    assert_eq!(host.mail(&[0x1000_4100])[0], 0xe000_0004, "an event is no request");
    assert_eq!(host.mail(&[0x5500, 0x0001_0100])[0], 0xe000_0020, "no virtual functions");
}

/// A GuC in reset answers nothing.
#[test]
fn silent_in_reset() {
    let mut host = Host::new();
    assert_eq!(host.mail(&[0x4100, 0, 0, 0])[0], 0x4100);
    assert_eq!(host.guc.step(&host.gt, &host.engines), None);
}

/// Contract F.2, K.11: register, enable, submit, disable, deregister, with exact lengths and one answer each.
#[test]
fn context_life() {
    let mut host = Host::up();
    host.start(5, EngineClass::Render, 1, 2);
    assert_eq!(host.runs("rcs0"), Some(5));
    assert!(host.engines.runnable(engine_named("rcs0")));
    host.end("rcs0", Outcome::Complete);
    assert!(host.stepped().is_empty());
    assert_eq!(host.runs("rcs0"), None);
    // Tail equals head: nothing to do.
    host.fast(0x1000, &[5]);
    assert!(host.stepped().is_empty());
    assert_eq!(host.runs("rcs0"), None);
    host.set_tail(5, 128);
    host.fast(0x1000, &[5]);
    assert!(host.stepped().is_empty());
    assert_eq!(host.runs("rcs0"), Some(5));
    // Disable while it runs: answered when it is off, not before.
    host.fast(0x1001, &[5, 0]);
    assert!(host.stepped().is_empty());
    host.end("rcs0", Outcome::Preempted);
    assert_eq!(host.stepped(), [[3, 0x9000_1002, 5, 0]]);
    assert_eq!(host.runs("rcs0"), None);
    // Enabled again it goes on where it was.
    host.fast(0x1001, &[5, 1]);
    assert_eq!(host.stepped(), [[3, 0x9000_1002, 5, 1]]);
    assert_eq!(host.runs("rcs0"), Some(5));
    host.end("rcs0", Outcome::Complete);
    host.fast(0x1001, &[5, 0]);
    assert_eq!(host.stepped(), [[3, 0x9000_1002, 5, 0]]);
    host.fast(0x4503, &[5]);
    assert_eq!(host.stepped(), [[2, 0x9000_4600, 5]]);
    host.fast(0x1000, &[5]);
    assert_eq!(host.stepped(), [[0x8001_0001, 0xe000_0100]], "it is forgotten");
    assert_eq!(host.guc.counters().failed, 1);
}

/// A submission that crosses the end of the context's last run is not lost.
#[test]
fn submission_while_the_report_is_on_the_way() {
    let mut host = Host::up();
    host.start(1, EngineClass::Copy, 1, 2);
    host.end("bcs0", Outcome::Complete);
    host.set_tail(1, 128);
    host.fast(0x1000, &[1]);
    host.step();
    host.step();
    assert_eq!(host.runs("bcs0"), Some(1));
}

/// Contract B.6: requests get exactly one reply, fast requests none unless they fail; lengths are exact.
#[test]
fn replies() {
    let mut host = Host::up();
    host.poke(SCRATCH, 0x4001_0000);
    assert_eq!(host.request(0x550e, &[SCRATCH as u32, 0, 1]), 0xf000_0001);
    assert_eq!(host.request(0x0509, &[0x1001_0002, 80, 20]), 0xf000_0001);
    assert_eq!(host.request(0x0509, &[0x1001_0001, 80]), 0xe000_0103);
    assert_eq!(host.request(0x550e, &[SCRATCH as u32, 0]), 0xe000_0102);
    assert_eq!(host.request(0x5503, &[0, SCRATCH as u32, 0, 2]), 0xe000_0020, "no SR-IOV");
    assert_eq!(host.request(0x9999, &[]), 0xe000_0030);
    assert_eq!(host.request(0x1001, &[70000, 1]), 0xe000_0061);
    assert_eq!(host.request(0x550a, &[SCRATCH as u32, 0]), 0xf000_0000);
    host.fast(0x9999, &[1, 2, 3]);
    assert!(host.stepped().is_empty());
    assert_eq!(host.guc.counters().unknown, 2);
}

/// Contract B.6: TLB invalidations are answered with their sequence numbers, after a step boundary.
#[test]
fn tlb_invalidations() {
    let mut host = Host::up();
    host.fast(0x7000, &[7, 0x8000_0000]);
    host.fast(0x7000, &[8, 0x8000_0001, 0, 0x1000, 0, 3]);
    host.fast(0x7002, &[9, 0x8000_0000]);
    assert_eq!(host.stepped(), [[2, 0x9000_7001, 7], [2, 0x9000_7001, 8], [2, 0x9000_7001, 9]]);
}

/// Contract B.6: the host's padding at the end of its ring is skipped, messages to the host go round the end.
#[test]
fn rings_wrap() {
    let mut host = Host::up();
    for seqno in 1..3000 {
        host.fast(0x7000, &[seqno, 0x8000_0003]);
        assert_eq!(host.stepped(), [[2, 0x9000_7001, seqno]]);
        assert_eq!(host.peek(CTB), host.h2g_tail, "head follows");
    }
    assert_eq!((host.peek(CTB + 8), host.peek(CTB + 0x808)), (0, 0));
}

/// Contract B.6: the ring to the host is never overrun; what finds no room waits, and so do further requests.
#[test]
fn full_ring() {
    let mut host = Host::up();
    let mut sent = 0;
    for _ in 0..60 {
        for _ in 0..8 {
            sent += 1;
            host.fast(0x7000, &[sent, 0x8000_0000]);
        }
        host.step();
    }
    assert!(host.deadline.is_some(), "it comes back by itself");
    let mut seen = Vec::new();
    for _ in 0..40 {
        seen.extend(host.received().into_iter().map(|message| message[2]));
        host.step();
    }
    assert_eq!(seen, (1..=sent).collect::<Vec<_>>());
}

/// Contract B.6: descriptors and lengths that cannot be are flagged, and the ring is left alone.
#[test]
fn broken_rings() {
    for (spoil, status) in [
        ((|h: &mut Host| h.poke(CTB + 4, H2G_DWORDS)) as fn(&mut Host), 1),
        (|h| h.send_raw(&[0x8001_00ff, 0x2000_1000]), 2),
        (
            |h| {
                h.poke(CTB, 5);
                h.fast(0x7000, &[1, 0]);
            },
            4,
        ),
    ] {
        let mut host = Host::up();
        spoil(&mut host);
        host.step();
        assert_eq!(host.peek(CTB + 8), status);
        host.received();
        host.fast(0x7000, &[9, 0]);
        assert!(host.stepped().is_empty());
    }
    let mut host = Host::up();
    host.poke(CTB + 0x800, u32::MAX);
    host.fast(0x7000, &[1, 0]);
    host.step();
    assert_eq!(host.peek(CTB + 0x808), 1);
}

/// Contract F.2: a more important context pushes a less important one out; that one comes back later.
#[test]
fn priorities() {
    let mut host = Host::up();
    host.start(1, EngineClass::Copy, 1, 2);
    host.start(2, EngineClass::Copy, 1, 3);
    host.start(3, EngineClass::Copy, 1, 0);
    assert_eq!(host.runs("bcs0"), Some(1));
    host.end("bcs0", Outcome::Preempted);
    host.step();
    assert_eq!(host.runs("bcs0"), Some(3));
    host.end("bcs0", Outcome::Complete);
    host.step();
    assert_eq!(host.runs("bcs0"), Some(1));
    host.end("bcs0", Outcome::Complete);
    host.step();
    assert_eq!(host.runs("bcs0"), Some(2));
}

/// Contract F.2: equals take turns of one quantum; who is alone keeps the engine.
#[test]
fn time_slices() {
    let mut host = Host::up();
    host.start(1, EngineClass::Copy, 1, 2);
    host.clock.advance(700_000);
    assert_eq!(host.deadline, None);
    host.start(2, EngineClass::Copy, 1, 2);
    let due = host.deadline.expect("the slice ends");
    assert_eq!(due - host.clock.now(), 300_000);
    host.clock.advance(300_000);
    host.step();
    host.end("bcs0", Outcome::Preempted);
    host.step();
    assert_eq!(host.runs("bcs0"), Some(2));
}

/// Contract F.2, F.6: who does not leave in time is reset, the host hears of it, and hears that it is off.
#[test]
fn preemption_timeout() {
    let mut host = Host::up();
    host.start(1, EngineClass::Render, 1, 2);
    host.fast(0x1001, &[1, 0]);
    assert!(host.stepped().is_empty());
    assert_eq!(host.deadline, Some(host.clock.now() + 640_000_000));
    host.clock.advance(640_000_000);
    assert_eq!(host.stepped(), [vec![2, 0x9000_1008, 1], vec![3, 0x9000_1002, 1, 0]]);
    assert_eq!(host.runs("rcs0"), None);
    host.fast(0x4503, &[1]);
    assert_eq!(host.stepped(), [[2, 0x9000_4600, 1]]);
}

/// Contract F.6: with engine resets disabled by policy nobody is reset.
#[test]
fn engine_reset_disabled() {
    let mut host = Host::up();
    host.poke(ADS + 0x1228, 1);
    host.fast(0x0506, &[(ADS + 0x11dc) as u32]);
    host.start(1, EngineClass::Render, 1, 2);
    host.fast(0x1001, &[1, 0]);
    host.step();
    host.clock.advance(10_000_000_000);
    assert!(host.stepped().is_empty());
    assert_eq!(host.runs("rcs0"), Some(1));
}

/// Contract F.6: a fault resets the engine; one dword before the opt-in, two after; a banned context is still answered.
#[test]
fn faults() {
    let mut host = Host::up();
    host.start(1, EngineClass::Compute, 1, 2);
    host.end("ccs0", Outcome::Halted(Halt::Fault(FAULT)));
    assert_eq!(host.stepped(), [[2, 0x9000_6000, 1], [2, 0x9000_1008, 1]]);
    assert_eq!(host.runs("ccs0"), None);
    host.fast(0x1001, &[1, 0]);
    assert_eq!(host.stepped(), [[3, 0x9000_1002, 1, 0]]);
    host.fast(0x4503, &[1]);
    assert_eq!(host.stepped(), [[2, 0x9000_4600, 1]]);
    host.poke(SCRATCH, 0x4001_0000);
    host.request(0x550e, &[SCRATCH as u32, 0, 1]);
    host.start(2, EngineClass::Compute, 1, 2);
    host.end("ccs0", Outcome::Halted(Halt::Fault(FAULT)));
    assert_eq!(host.stepped(), [vec![3, 0x9000_6000, 2, 0xdead_beef], vec![2, 0x9000_1008, 2]]);
    host.start(3, EngineClass::Compute, 1, 2);
    host.end("ccs0", Outcome::Halted(Halt::IllegalCommand { header: u32::MAX, address: 0 }));
    assert_eq!(host.stepped(), [[2, 0x9000_1008, 3]]);
}

/// Issue item 6: instances take from their class's queue by the context's mask, and classes do not hinder each other.
#[test]
fn instances_by_mask() {
    let mut host = Host::up();
    host.start(1, EngineClass::VideoDecode, 0b11, 2);
    host.start(2, EngineClass::VideoDecode, 0b11, 2);
    host.start(3, EngineClass::Render, 1, 2);
    host.start(4, EngineClass::Compute, 0b1000, 2);
    let runs: Vec<_> = ["vcs0", "vcs2", "rcs0", "ccs3", "ccs0"].map(|name| host.runs(name)).to_vec();
    assert_eq!(runs, [Some(1), Some(2), Some(3), Some(4), None]);
}

/// A context that waits for a semaphore yields to another, and gets its engine back.
#[test]
fn waiting_context_yields() {
    let mut host = Host::up();
    host.start(1, EngineClass::Copy, 1, 0);
    host.end("bcs0", Outcome::Waiting);
    assert!(host.stepped().is_empty());
    assert_eq!(host.runs("bcs0"), Some(1), "nobody else wants it");
    // It went on by itself: who is less important has no claim.
    host.engines.set_runnable(engine_named("bcs0"), true);
    host.start(3, EngineClass::Copy, 1, 3);
    host.fast(0x1001, &[3, 0]);
    assert_eq!(host.stepped(), [[3, 0x9000_1002, 3, 0]]);
    host.end("bcs0", Outcome::Waiting);
    assert!(host.stepped().is_empty());
    host.start(2, EngineClass::Copy, 1, 3);
    host.end("bcs0", Outcome::Preempted);
    host.step();
    assert_eq!(host.runs("bcs0"), Some(2));
    assert!(host.deadline.is_some());
    host.end("bcs0", Outcome::Complete);
    host.step();
    assert_eq!(host.runs("bcs0"), Some(1));
}

/// Contract G.5: the semaphore at the end of i915's compute contexts is cleared by the GuC.
#[test]
fn compute_switch_out() {
    let mut host = Host::up();
    host.start(1, EngineClass::Compute, 1, 2);
    host.poke(Host::image(1, 0) + 0x540, 1);
    host.end("ccs0", Outcome::Waiting);
    host.step();
    assert_eq!(host.peek(Host::image(1, 0) + 0x540), 0);
}

fn wide(host: &mut Host, id: u32) -> u64 {
    let scratch = Host::image(id, 0) + 0x800;
    let lrca: Vec<u32> = (0..2).flat_map(|n| [Host::image(id, n) as u32 | 0x119, 0]).collect();
    let mut message = vec![1, id, 1, 0b01, scratch as u32, 0, scratch as u32 + 0x400, 0, 0x400, 2];
    message.extend(lrca);
    host.poke(scratch + 12, 1);
    host.fast(0x4601, &message);
    host.policies(id, 2, 1000, 640_000);
    scratch
}

fn append_item(host: &mut Host, scratch: u64, id: u32, tails: [u32; 2]) {
    let at = host.peek(scratch + 4);
    let item = [5 | 4 << 16, Host::image(id, 0) as u32, id | (tails[0] / 8) << 18, 0, tails[1] / 8];
    for (n, value) in (0u64..).zip(item) {
        host.poke(scratch + 0x400 + u64::from(at) + n * 4, value);
    }
    host.poke(scratch + 4, at + 20);
}

/// Contract F.5: the members of a parallel context start together on neighbours, their tails come from the work queue.
#[test]
fn parallel_contexts() {
    let mut host = Host::up();
    host.start(1, EngineClass::VideoDecode, 0b10, 2);
    let scratch = wide(&mut host, 2);
    append_item(&mut host, scratch, 2, [0x40, 0x80]);
    host.fast(0x1001, &[2, 1]);
    host.fast(0x1000, &[2]);
    assert_eq!(host.stepped(), [[3, 0x9000_1002, 2, 1]]);
    assert_eq!(host.peek(scratch), 20, "the item is consumed");
    assert_eq!(host.peek(Host::image(2, 0) + 0x101c), 0x40);
    assert_eq!(host.peek(Host::image(2, 1) + 0x101c), 0x80);
    assert_eq!((host.runs("vcs0"), host.runs("vcs2")), (None, Some(1)), "not one without the other");
    host.end("vcs2", Outcome::Complete);
    host.step();
    assert_eq!((host.runs("vcs0"), host.runs("vcs2")), (Some(2), Some(2)));
    // One member is done, new work comes for both.
    host.end("vcs0", Outcome::Complete);
    host.step();
    append_item(&mut host, scratch, 2, [0x100, 0x100]);
    host.fast(0x1000, &[2]);
    assert!(host.stepped().is_empty());
    assert_eq!((host.runs("vcs0"), host.runs("vcs2")), (Some(2), Some(2)));
    host.fast(0x1001, &[2, 0]);
    host.end("vcs0", Outcome::Complete);
    assert!(host.stepped().is_empty());
    host.end("vcs2", Outcome::Preempted);
    assert_eq!(host.stepped(), [[3, 0x9000_1002, 2, 0]]);
}

/// Contract F.5: an item for another context stops the queue and is flagged.
#[test]
fn parallel_work_queue_with_a_bad_item() {
    let mut host = Host::up();
    let scratch = wide(&mut host, 2);
    append_item(&mut host, scratch, 3, [0x40, 0x80]);
    host.fast(0x1001, &[2, 1]);
    host.step();
    assert_eq!((host.peek(scratch), host.peek(scratch + 8), host.peek(scratch + 12)), (0, 0, 3));
    assert_eq!(host.runs("vcs0"), None);
}

/// Registrations that make no sense are refused (contract F.8, V13-036).
#[test]
fn bad_registrations() {
    let mut host = Host::up();
    let good = [1, 5, 0, 1, 0, 0, 0, 0, 0, Host::image(5, 0) as u32, 0];
    let with = |at: usize, value: u32| {
        let mut message = good;
        message[at] = value;
        message
    };
    for (message, error) in [
        (with(1, 65535), 0x61),
        (with(1, u32::MAX), 0x61),
        (with(2, 5), 0x64),
        (with(3, 0b10), 0x64),
        (with(9, 0x1000), 0x80),
    ] {
        assert_eq!(host.request(0x4502, &message), 0xe000_0000 | error, "{message:x?}");
    }
    assert_eq!(host.request(0x4502, &good), 0xf000_0000);
    assert_eq!(host.request(0x4502, &good), 0xe000_0101);
    assert_eq!(host.request(0x4502, &good[..10]), 0xe000_0102);
}

/// Contract B.11, K.6: running at once; limits in 16.67 MHz; wishes are kept within RPn and RP0.
#[test]
fn slpc() {
    let mut host = Host::up();
    let task = |host: &Host| host.peek(SCRATCH + 0x84);
    host.fast(0x3003, &[2, SCRATCH as u32, 0]);
    assert!(host.stepped().is_empty());
    assert_eq!(host.peek(SCRATCH + 4), 3);
    assert_eq!(host.request(0x3003, &[0x502, SCRATCH as u32, 0]), 0xf000_0000);
    assert_eq!(task(&host), 123 | 18 << 8 | 123 << 16 | 18 << 24);
    assert_eq!(host.request(0x3003, &[0x602, 7, 1000]), 0xf000_0000);
    assert_eq!(host.request(0x3003, &[0x602, 6, 9000]), 0xf000_0000);
    host.request(0x3003, &[0x502, SCRATCH as u32, 0]);
    assert_eq!(task(&host), 60 | 60 << 8 | 60 << 16 | 60 << 24, "a minimum above the maximum is a fixed request");
    assert_eq!(host.request(0x3003, &[0x701, 6]), 0xf000_0000);
    assert_eq!(host.gt.registers.value(0xa008) >> 23, 18);
    assert_eq!(host.request(0x3004, &[1]), 0xf000_0000);
    assert_eq!(host.gt.read(0x13_8060), 3, "in C6");
    assert_eq!(host.gt.read(0x13_81b4), 0, "nothing is clocked");
    host.start(1, EngineClass::Copy, 1, 2);
    assert_eq!(host.gt.read(0x13_8060), 0, "awake");
    assert_eq!(host.gt.read(0x13_81b4) >> 11 & 0x1ff, 60);
    assert_eq!(host.gt.registers.value(0xa008) >> 23, 60);
    assert_eq!(host.request(0x3003, &[0x602, 99, 1]), 0xe000_0060);
    assert_eq!(host.request(0x3003, &[0x603, 6, 1]), 0xe000_0102);
}

/// Contract K.6: busy ticks accumulate, the change numbers move, an idle engine has stamp 0.
#[test]
fn engine_activity() {
    let mut host = Host::up();
    let (metadata, records) = (SCRATCH, SCRATCH + 0x1000);
    assert_eq!(host.request(0x550c, &[metadata as u32, 0, records as u32, 0]), 0xf000_0000);
    assert_eq!(host.peek(metadata), 19_200_000);
    let bcs = records + 3 * 32 * 16;
    let first = host.peek(bcs);
    assert_eq!((first >> 16, host.peek(bcs + 4)), (0x8000, 0));
    let changes = host.peek(metadata + 8);
    host.start(1, EngineClass::Copy, 1, 2);
    assert_ne!(host.peek(metadata + 8), changes);
    assert_eq!(u64::from(host.peek(bcs + 4)), host.gt.timestamp());
    assert_ne!(host.peek(bcs), first);
    host.clock.advance(1_000_000);
    host.end("bcs0", Outcome::Complete);
    host.step();
    assert_eq!((host.peek(bcs + 4), host.peek(bcs + 8)), (0, 19_200));
}

/// Contract F.7: after a reset and a new upload everything is registered anew; what the old boot loaded is not mistaken.
#[test]
fn reset_and_reload() {
    let mut host = Host::up();
    host.start(5, EngineClass::Copy, 1, 2);
    host.end("bcs0", Outcome::Complete);
    host.guc.reset(&host.gt);
    assert_eq!(host.upload(), 0x8001_f0ec);
    host.enable_rings();
    host.start(5, EngineClass::Copy, 1, 2);
    assert_eq!(host.runs("bcs0"), Some(5), "the report of the old boot is of the past");
    assert_eq!(host.mail(&[0x5507])[0], 0xf000_0000);
    assert_eq!(host.runs("bcs0"), None);
    host.enable_rings();
    host.fast(0x1000, &[5]);
    assert_eq!(host.stepped(), [[0x8001_0001, 0xe000_0100]]);
}

/// Design rule 6: whatever stands in the rings and in what they point to, the GuC goes on.
#[test]
fn random_messages() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as u32
    };
    let mut host = Host::up();
    for round in 0..4000 {
        let known = &action::ACTIONS[random() as usize % action::ACTIONS.len()];
        let kind = [0, 1, 2, random() & 7][random() as usize % 4];
        let mut message = vec![0, kind << 28 | u32::from(known.code)];
        let len = match known.length {
            action::Length::Exact(n) | action::Length::AtLeast(n) | action::Length::Either(n, _) => n,
            action::Length::Pairs(n) => n,
        } as u32;
        for _ in 0..if random() % 4 == 0 { random() % 20 } else { len } {
            message.push(match random() % 6 {
                0 => random(),
                1 => random() % 8,
                2 => SCRATCH as u32 + random() % 0x1000,
                3 => Host::image(random() % 8, 0) as u32,
                4 => 0x2001_0001 + ((random() % 5) << 16),
                _ => random() % 3,
            });
        }
        message[0] = random() << 16 | (message.len() as u32 - 1);
        host.send_raw(&message);
        if random() % 3 == 0 {
            for id in EngineId::all() {
                let loaded = host.engines.lock(id).loaded().is_some();
                if loaded && random() % 2 == 0 {
                    let outcomes =
                        [Outcome::Complete, Outcome::Preempted, Outcome::Waiting, Outcome::Halted(Halt::Fault(FAULT))];
                    host.end(id.info().name, outcomes[random() as usize % 4]);
                }
            }
        }
        if round % 97 == 0 {
            host.clock.advance(u64::from(random()));
        }
        host.step();
        host.received();
        if host.peek(CTB + 8) != 0 || host.peek(CTB + 0x808) != 0 {
            host.enable_rings();
        }
        for at in 0..16 {
            host.poke(SCRATCH + at * 4, random());
            host.poke(Host::image(random() % 8, 0) + 0x1000 + 7 * 4, random() & 0x3ff8);
        }
    }
    assert!(host.guc.counters().done > 100, "{:?}", host.guc.counters());
    host.gt.registers.set(0xc000, 0);
    host.guc.reset(&host.gt);
    assert_eq!(host.upload(), 0x8001_f0ec);
}
