// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Saved state that earlier versions have written: the files of `test-support/golden`, each of which every later version must
//! restore. The example `golden` adds a file of each kind with the state that this version writes; files are never replaced.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::null_machine::NullMachine;
use arctic_device_model::guc::functions::client::State;
use arctic_device_model::topology::EngineClass;
use arctic_gpu::vm_memory::{GuestAddress, GuestMemoryMmap};
use arctic_gpu::{GuestRam, PciDevice, Topology, VirtualCard, card_file};
use arctic_guc_driver::actions::*;

use crate::ct;
use crate::differential::moved::{MovableWork, SavedWork, Site};
use crate::document::Sections;
use crate::harness::walkers;
use crate::mi::{self, Compare};
use crate::vfs::bench::*;
use crate::vfs::world::Time;

/// A kind of file: the begin of the names of its files, what writes one, and what restores one and panics if it is another state.
pub struct Kind {
    /// The begin of the names of its files.
    pub name: &'static str,
    /// Saves state with this version.
    pub save: fn() -> Vec<u8>,
    /// Restores it, and checks the values that its driver depends on.
    pub check: fn(&[u8]),
}

/// The kinds.
pub const KINDS: [Kind; 4] = [
    Kind { name: "contexts", save: contexts, check: check_contexts },
    Kind { name: "kernel", save: kernel, check: check_kernel },
    Kind { name: "provisioned-vf", save: provisioned_vf, check: check_provisioned_vf },
    Kind { name: "gen7", save: gen7, check: check_gen7 },
];

/// The directory of the files.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

/// The files of a kind, in the order of their names.
pub fn files(kind: &Kind) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let is_of_kind = |path: &Path| path.file_stem().is_some_and(|stem| stem == kind.name);
    files.retain(|path| is_of_kind(path));
    files.sort();
    files
}

// A VF that its PF driver saves: contexts that wait, one that is not enabled, a parallel one, one with policies; a doorbell,
// the memory-based interrupt, registers.

const SAVE_RESTORE: u32 = 0x550b;
const RESTORE: u32 = 1 << 16;
/// Offset of the document in the memory of the PF's driver.
const BUFFER: u64 = at::DATA;
const INTERRUPTS: u64 = at::SCRATCH + 0x8000;
const DOORBELL: u32 = 0x40_0000;

fn pause(bench: &VfBench) {
    bench.card.function_state(ATTACKER).set_paused(true).unwrap();
    bench.until("the end of the pause", 5000, |bench| bench.card.function_state(ATTACKER).is_paused());
}

fn contexts() -> Vec<u8> {
    let mut bench = VfBench::with(true, None, Time::manual());
    bench.attacker_up();
    let vf = &mut bench.attacker;
    let interrupts = vf.base() + INTERRUPTS;
    for (key, at) in [(ct::self_cfg::INTERRUPT_SOURCE, 0x400 + 25), (ct::self_cfg::INTERRUPT_STATUS, 25 * 16)] {
        vf.must(&ct::configure(key, interrupts + at), ct::SUCCESS | 1);
    }
    for id in 0..3 {
        let wait = mi::semaphore_wait(vf.global(at::SCRATCH), Compare::Equal, 1);
        vf.submit(id, EngineClass::Copy, &wait);
    }
    vf.request(UPDATE_CONTEXT_POLICIES, &policies(1, 1, 5000, 30_000));
    vf.request(ALLOCATE_DOORBELL, &[1, 4, DOORBELL + 0x3000, 0, 0]);
    vf.write_context(7, 0, &[]);
    vf.register(7, EngineClass::Compute.guc().into(), 4);
    for member in 0..2 {
        vf.write_context(8, member, &[]);
    }
    let low = mi::low(vf.base() + at::QUEUES);
    let [first, second] = [0, 1].map(|member| vf.descriptor(8, member));
    let class = EngineClass::Compute.guc().into();
    vf.request(0x4601, &[1, 8, class, 1, low, 0, low + 0x1000, 0, 0x1000, 2, first, 0, second, 0]);
    vf.set(MAILBOX + 4, 0x1234);
    bench.work(40);
    pause(&bench);
    let saved = bench.card.function_state(ATTACKER).save().unwrap();
    arctic_device_model::card::function_state::SavedFunction { memory: None, ..saved }.to_bytes()
}

fn check_contexts(bytes: &[u8]) {
    let bench = VfBench::with(true, None, Time::manual());
    pause(&bench);
    {
        let mut pf = bench.pf.borrow_mut();
        let pf = pf.as_mut().unwrap();
        let dwords: Vec<u32> = bytes.as_chunks().0.iter().map(|dword| u32::from_le_bytes(*dword)).collect();
        pf.write_words(BUFFER, &dwords);
        let (vf, address) = (u32::from(ATTACKER.number()), pf.base() + BUFFER);
        pf.send(&ct::request(0x12, SAVE_RESTORE | RESTORE, &[vf, address as u32, 0, dwords.len() as u32]));
        let reply = (0..100).find_map(|_| {
            bench.card.step();
            pf.take()
        });
        assert_eq!(reply.unwrap()[1], ct::SUCCESS | dwords.len() as u32, "the reply to the PF driver");
    }
    let state = bench.card.function_state(ATTACKER);
    let base = base(ATTACKER);
    let guc = state.guc().unwrap();
    assert_eq!(guc.state, State::Paused { notified: true });
    let found: Vec<_> =
        guc.contexts.iter().map(|(id, it)| (*id, it.class, it.mask, it.members.len(), it.enabled)).collect();
    let expected = [
        (0, EngineClass::Copy, 1, 1, true),
        (1, EngineClass::Copy, 1, 1, true),
        (2, EngineClass::Copy, 1, 1, true),
        (7, EngineClass::Compute, 4, 1, false),
        (8, EngineClass::Compute, 1, 2, false),
    ];
    assert_eq!(found, expected);
    for (id, context) in &guc.contexts {
        let image = LAYOUT.image((*id).into(), 0);
        assert_eq!(context.members[0].descriptor & 0xffff_f000, base + image, "context {id}");
        let own = (context.policies.priority, context.policies.quantum, context.policies.preemption_timeout);
        let expected = if *id == 1 { (1, 5_000_000, 30_000_000) } else { (2, 1_000_000, 640_000_000) };
        assert_eq!(own, expected, "context {id}");
        let queue = context.work_queue.as_ref().map(|queue| queue.location());
        let queues = base + at::QUEUES;
        assert_eq!(queue, (*id == 8).then_some((queues, queues + 0x1000, 0x1000)));
    }
    let client = &guc.client;
    assert!(client.channel.is_some());
    let interrupts = base + INTERRUPTS;
    assert_eq!((client.interrupt.source, client.interrupt.status), (interrupts + 0x419, interrupts + 400));
    let doorbells: Vec<_> =
        state.doorbells().map(|(_, page, context)| (page.offset(), context.unwrap().local)).collect();
    assert_eq!(doorbells, [(u64::from(DOORBELL) + 0x3000, 1)]);
    drop(state);
    assert_eq!(bench.attacker.get(MAILBOX + 4), 0x1234);
}

// A VF with a kernel in flight, and its memory: the document, and behind it the parts of memory that are not 0.

/// Number of instructions after which a step ends.
const COST: u64 = 7;

fn counting() -> MovableWork {
    let (_, work) = walkers::works().into_iter().find(|(name, _)| name == "count").expect("it exists");
    MovableWork::of_walkers(work, COST)
}

fn kernel() -> Vec<u8> {
    SavedWork::in_flight(&counting()).to_bytes()
}

fn check_kernel(bytes: &[u8]) {
    let saved = SavedWork::from_bytes(bytes);
    let mut site = Site::new(crate::differential::layout::VF);
    let work = counting();
    let expected = site.run(&work);
    let found = site.run_saved(&work, &saved);
    assert!(found.batches() == expected.batches(), "the result of a kernel that was saved");
}

// Streams of the library.

const LIMIT: Duration = Duration::from_secs(60);
/// VF_SW_FLAG(1).
const SW_FLAG: u64 = 0x19_0244;
/// The window of the GGTT in the BAR of a VF, and of an integrated GPU.
const GGTT: u64 = 8 << 20;
const GEN7_GGTT: u64 = 2 << 20;
/// A stored register of an integrated GPU, GPR 2 of its render engine.
const GEN7_REGISTER: u64 = 0x2310;

/// A card with quotas that do not depend on the fair shares of a version.
const CARD: &str = "
family = 'xehpg'
name = 'golden'
local_memory = '2GiB'
revision = 8
total_vfs = 2
ggtt = 'mapped'
vf_local_memory = 'mapped'
unmodelled = 'skip'
[provision]
ggtt = '64MiB'
local_memory = '64MiB'
contexts = 100
doorbells = 10
exec_quantum_ms = 5
preempt_timeout_us = 5000
[fuses]
dss_mask = 0xffffffff
eu_mask = 0xff
mslice_mask = 0xf
vdbox_mask = 0x05
vebox_mask = 0x3
[frequency]
rp0 = 2050
rp1 = 1950
rpn = 300
";

fn flex() -> VirtualCard {
    card(card_file::parse("golden.toml", CARD).unwrap(), 2, Topology::Provisioned)
}

fn ivb() -> VirtualCard {
    card(card_file::load("ivb").unwrap(), 0, Topology::Native)
}

fn card(file: card_file::CardFile, vfs: u8, topology: Topology) -> VirtualCard {
    let ram = GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0), 1 << 20)]).unwrap();
    let card = VirtualCard::builder(file)
        .vfs(vfs)
        .topology(topology)
        .plug_into(Arc::new(NullMachine), GuestRam::new(Arc::new(ram)))
        .unwrap();
    // Memory space and bus master.
    card.functions().iter().for_each(|function| function.write_config(4, &[6, 0]));
    card
}

fn read(function: &dyn PciDevice, bar: u8, offset: u64) -> u32 {
    let mut data = [0; 4];
    function.read_bar(bar, offset, &mut data);
    u32::from_le_bytes(data)
}

fn write(function: &dyn PciDevice, bar: u8, offset: u64, value: u32) {
    function.write_bar(bar, offset, &value.to_le_bytes());
}

/// The function with this number of a card.
fn function(card: &VirtualCard, number: u8) -> &dyn PciDevice {
    &**card.functions().iter().find(|function| function.number().number() == number).expect("it exists")
}

fn save(function: &dyn PciDevice) -> Vec<u8> {
    let device = function.saved_device().expect("it can be saved");
    device.pause(LIMIT).unwrap();
    let mut bytes = Vec::new();
    device.save(&mut bytes).unwrap();
    bytes
}

fn restore(function: &dyn PciDevice, mut bytes: &[u8]) {
    let device = function.saved_device().expect("it can be saved");
    device.pause(LIMIT).unwrap();
    device.restore(&mut bytes).unwrap();
    device.resume().unwrap();
}

fn config(function: &dyn PciDevice, offset: u64) -> u8 {
    let mut byte = [0];
    function.read_config(offset, &mut byte);
    byte[0]
}

fn provisioned_vf() -> Vec<u8> {
    let card = flex();
    let vf = function(&card, 1);
    write(vf, 0, SW_FLAG, 0x55aa);
    write(vf, 0, GGTT + page_of(vf) * 8, 0x7003);
    write(vf, 2, 0x10_0000, 0x1234_5678);
    write(vf, 2, 0x10_0ffc, 0x8765_4321);
    vf.write_config(0x3c, &[9]);
    save(vf)
}

/// The page with which the GGTT range of a VF begins.
fn page_of(vf: &dyn PciDevice) -> u64 {
    let number = u64::from(vf.number().number());
    (arctic_device_model::generation::XE_HPG.sriov.ggtt.start + (number - 1) * (64 << 20)) >> 12
}

fn check_provisioned_vf(bytes: &[u8]) {
    let card = flex();
    for number in [1, 2] {
        let vf = function(&card, number);
        restore(vf, bytes);
        assert_eq!((read(vf, 0, SW_FLAG), config(vf, 0x3c)), (0x55aa, 9));
        assert_eq!(read(vf, 0, GGTT + page_of(vf) * 8), 0x7003, "the first GGTT entry of its range");
        assert_eq!([0x10_0000, 0x10_0ffc, 0x20_0000].map(|at| read(vf, 2, at)), [0x1234_5678, 0x8765_4321, 0]);
    }
}

fn gen7() -> Vec<u8> {
    let card = ivb();
    let gpu = function(&card, 0);
    write(gpu, 0, GEN7_GGTT + 40, 0x5001);
    write(gpu, 0, GEN7_REGISTER, 0x55);
    gpu.write_config(0x3c, &[11]);
    save(gpu)
}

fn check_gen7(bytes: &[u8]) {
    let card = ivb();
    let gpu = function(&card, 0);
    restore(gpu, bytes);
    assert_eq!((read(gpu, 0, GEN7_GGTT + 40), read(gpu, 0, GEN7_REGISTER)), (0x5001, 0x55));
    assert_eq!(config(gpu, 0x3c), 11);
}

/// Returns a file without a section of its state, so that a test can show that the check fails.
pub fn without_section(bytes: &[u8], tag: &[u8; 4]) -> Vec<u8> {
    let length = u64::from_le_bytes(bytes[16..24].try_into().unwrap()) as usize;
    let mut document = Sections::of(&bytes[..length]);
    document.remove(tag);
    [document.to_bytes(), bytes[length..].to_vec()].concat()
}
