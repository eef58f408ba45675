// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Transfers of the DMA engine that the host starts before a kernel is loaded, and those that the engine rejects.

use super::*;
use crate::guc::load::dma::Rejection;
use arctic_fidelity::proves;

/// Spaces of an address, in bits 20:16 of its high dword.
const GGTT: u32 = 0x8_0000;
const PPGTT: u32 = 0x9_0000;
const WOPCM: u32 = 0x7_0000;
const SRAM: u32 = 0x6_0000;

/// A place: space and address.
type At = (u32, u64);

/// Local memory of the page tables, four pages, and of the pages that they map.
const TABLES: u64 = 0xa0_0000;
const PAGES: u64 = 0xb0_0000;
/// Address of the mapped pages in the PPGTT, beyond 4 GiB.
const PROCESS: u64 = 0x7654_3210_0000;

/// A host that has set up WOPCM, the GuC's interrupt, and page tables for the DMA engine.
fn ready() -> Host {
    let host = Host::new();
    for (offset, value) in
        [(0xc050, 0x3f_3000), (0xc340, 0x4000), (0x19_0008, 1 << 31), (0x19_0010, 1 << 31), (0x19_0038, 0xffff_0000)]
    {
        host.gt.write(offset, value);
    }
    host.gt.write(0x19_00e8, 0);
    let mut table = TABLES;
    for shift in [39, 30, 21] {
        let entry = table + (PROCESS >> shift & 0x1ff) * 8;
        table += 0x1000;
        host.poke(entry, table as u32 | 3);
    }
    for page in 0..16 {
        host.poke(table + ((PROCESS >> 12 & 0x1ff) + page) * 8, (PAGES + page * 4096) as u32 | 3 | 1 << 11);
    }
    host.gt.write(0xc3c0, TABLES as u32);
    host.gt.write(0xc3f0, 1);
    host
}

/// Returns the GuC's events since the last call.
fn events(host: &Host) -> u16 {
    if host.gt.read(0x19_0018) >> 25 & 1 == 0 {
        return 0;
    }
    host.gt.write(0x19_0070, 1 << 25);
    let events = host.gt.read(0x19_0060);
    host.gt.write(0x19_0060, 1 << 31);
    host.gt.write(0x19_0018, 1 << 25);
    events as u16
}

/// Copies `size` bytes and returns whether the transfer was carried out.
fn copy(host: &mut Host, from: At, to: At, size: u32) -> bool {
    for (offset, (space, address)) in [(0xc300, from), (0xc308, to)] {
        host.gt.write(offset, address as u32);
        host.gt.write(offset + 4, (address >> 32) as u32 | space);
    }
    host.gt.write(0xc310, size);
    host.gt.write(0xc314, 0xffff_0001);
    host.start_dma();
    let events = events(host);
    assert_eq!(events & !DMA_DONE, 0);
    events == DMA_DONE
}

/// Carries out the transfer that is programmed, without the start by the host.
fn carry_out(host: &mut Host) -> Result<(), Rejection> {
    let Host { gt, guc, .. } = host;
    let views = gt.memory.views();
    let mut gam = gt.memory.gam(Function::PF, &views, &mut guc.tlb);
    guc.dma.run(gt, &mut gam, Transfer::programmed(gt, gt.registers.fields())?)
}

/// The address of a few kilobytes of each segment.
fn place(space: u32) -> At {
    match space {
        GGTT => (GGTT, SCRATCH),
        PPGTT => (PPGTT, PROCESS),
        WOPCM => (WOPCM, 0x10_0000),
        _ => (SRAM, 0x4_0000),
    }
}

fn beside((space, address): At) -> At {
    (space, address + 0x4000)
}

/// Fills 8 KiB of a segment with a pattern.
fn fill(host: &mut Host, to: At, seed: u32) {
    for n in 0..0x800 {
        host.poke(SCRATCH + 0x1_0000 + n * 4, seed + n as u32);
    }
    assert!(copy(host, (GGTT, SCRATCH + 0x1_0000), to, 0x2000));
}

/// Reads 8 KiB of a segment.
fn contents(host: &mut Host, from: At) -> Vec<u32> {
    assert!(copy(host, from, (GGTT, SCRATCH + 0x2_0000), 0x2000), "{from:x?}");
    (0..0x800).map(|n| host.peek(SCRATCH + 0x2_0000 + n * 4)).collect()
}

#[test]
fn each_segment_is_copied_to_each() {
    proves!(
        [V13_186, V13_187],
        "by the registers of addresses, size and control, the engine copies between each pair of GGTT memory, \
        PPGTT memory, WOPCM and SRAM; its addresses have 48 bits"
    );
    proves!(V13_205, "a completed transfer interrupts");
    let mut host = ready();
    let segments = [GGTT, PPGTT, WOPCM, SRAM];
    let pairs = segments.iter().flat_map(|from| segments.iter().map(move |to| (*from, *to)));
    for (seed, (from, to)) in (1..).map(|n| n << 16).zip(pairs) {
        let (source, target) = (place(from), beside(place(to)));
        fill(&mut host, source, seed);
        fill(&mut host, target, 0x5000_0000);
        assert!(copy(&mut host, source, target, 0x1ffc), "{from:#x} to {to:#x}");
        let copied = contents(&mut host, target);
        assert!((seed..).zip(&copied[..0x7ff]).all(|(expected, found)| expected == *found), "{from:#x} to {to:#x}");
        assert_eq!(copied[0x7ff], 0x5000_07ff, "{from:#x} to {to:#x}: the last dword is not part of the transfer");
    }
    // The pages of the PPGTT are where the tables say.
    fill(&mut host, (PPGTT, PROCESS), 0x1234_0000);
    assert_eq!((host.peek(PAGES), host.peek(PAGES + 0x1ffc)), (0x1234_0000, 0x1234_07ff));
}

#[test]
fn source_and_destination_agree_in_six_bits() {
    proves!(
        V13_190,
        "source and destination must agree in the low six bits of their addresses, and a kernel starts on a \
        boundary of 64 bytes"
    );
    let mut host = ready();
    for bit in 0..6 {
        let offset = 1 << bit;
        for (from, to) in [(place(GGTT), place(WOPCM)), (place(SRAM), place(PPGTT))] {
            fill(&mut host, to, 1);
            let before = contents(&mut host, to);
            assert!(!copy(&mut host, from, (to.0, to.1 + offset), 64), "{to:x?} + {offset}");
            assert!(!copy(&mut host, (from.0, from.1 + offset), to, 64), "{from:x?} + {offset}");
            assert_eq!(contents(&mut host, to), before, "nothing was copied");
            assert!(copy(&mut host, (from.0, from.1 + offset), (to.0, to.1 + offset), 64));
        }
    }
    assert!(copy(&mut host, place(GGTT), (WOPCM, 0x10_0040), 64), "bit 6 is free");
    // A kernel at an equal offset in a block of 64 bytes is not at its start.
    assert_eq!(host.upload(), 0x8001_f0ec);
    host.guc.reset(&host.gt);
    for n in (0..u64::from(DMA_BYTES) / 4 + 1).rev() {
        host.poke(FIRMWARE + 32 + n * 4, host.peek(FIRMWARE + n * 4));
    }
    for (source, target, status) in [(32, 32, 0x4001_00ea), (32, 64, 0x4001_00ea)] {
        host.gt.write(0xc200, FIRMWARE as u32 + 32 + DMA_BYTES);
        host.gt.write(0xc300, FIRMWARE as u32 + source);
        host.gt.write(0xc308, 0x2000 + target);
        host.gt.write(0xc314, 0xffff_0011);
        assert_eq!(host.start_dma(), status, "{source}, {target}");
    }
}

#[test]
fn illegal_transfers_change_nothing() {
    proves!(
        V13_195,
        "the engine rejects, without a transfer, a copy of WOPCM whose base or size is not programmed, one \
        into WOPCM that does not fit, one into SRAM past its end, and one of no bytes. No interrupt reports \
        it as done, and DMA_CTRL shows that it is over"
    );
    const WOPCM_END: u64 = 0x3f_3000;
    const SRAM_END: u64 = 512 << 10;
    let cases: [(&str, At, At, u32, [u32; 2]); 12] = [
        ("no size", place(GGTT), place(WOPCM), 64, [0, 0x4001]),
        ("no base", place(GGTT), place(WOPCM), 64, [0x3f_3001, 0]),
        ("no base, from WOPCM", place(WOPCM), place(GGTT), 64, [0x3f_3001, 0]),
        ("past the end of WOPCM", place(GGTT), (WOPCM, WOPCM_END - 64), 68, [0x3f_3001, 0x4001]),
        ("beyond WOPCM", place(GGTT), (WOPCM, WOPCM_END), 4, [0x3f_3001, 0x4001]),
        ("far beyond WOPCM", place(GGTT), (WOPCM, 1 << 32), 4, [0x3f_3001, 0x4001]),
        ("past the memory of WOPCM", place(GGTT), (WOPCM, 0x40_0000 - 64), 68, [0xffff_f001, 0x4001]),
        ("past the end of SRAM", place(GGTT), (SRAM, SRAM_END - 64), 68, [0x3f_3001, 0x4001]),
        ("beyond SRAM", place(GGTT), (SRAM, SRAM_END), 4, [0x3f_3001, 0x4001]),
        ("no bytes", place(GGTT), place(SRAM), 0, [0x3f_3001, 0x4001]),
        ("no bytes", place(SRAM), place(GGTT), 0, [0x3f_3001, 0x4001]),
        ("not mapped", place(SRAM), (GGTT, MAPPED.end - 64), 128, [0x3f_3001, 0x4001]),
    ];
    for (name, from, to, size, [wopcm, base]) in cases {
        let mut host = ready();
        let last = [(WOPCM, WOPCM_END - 0x2000), (SRAM, SRAM_END - 0x2000), (GGTT, MAPPED.end - 0x2000)];
        let watched: Vec<At> = [WOPCM, SRAM, GGTT].map(place).into_iter().chain(last).collect();
        watched.iter().for_each(|at| fill(&mut host, *at, 0x1000_0000));
        let before: Vec<Vec<u32>> = watched.iter().map(|at| contents(&mut host, *at)).collect();
        fill(&mut host, (GGTT, SCRATCH + 0x1_0000), 0x7777_0000);
        let source = if from == place(GGTT) { (GGTT, SCRATCH + 0x1_0000) } else { from };
        host.gt.registers.set(0xc050, wopcm);
        host.gt.registers.set(0xc340, base);
        assert!(!copy(&mut host, source, to, size), "{name}");
        assert_eq!((host.gt.read(0xc314) & 1, host.gt.read(0xc000)), (0, 1), "{name}");
        host.gt.registers.set(0xc050, 0x3f_3001);
        host.gt.registers.set(0xc340, 0x4001);
        let after: Vec<Vec<u32>> = watched.iter().map(|at| contents(&mut host, *at)).collect();
        assert!(before == after, "{name}");
    }
    let mut host = ready();
    assert!(copy(&mut host, place(GGTT), (WOPCM, WOPCM_END - 64), 64), "fits exactly");
    assert!(copy(&mut host, place(GGTT), (SRAM, SRAM_END - 64), 64), "fits exactly");
    host.gt.write(0xc30c, 0x1f_0000);
    host.gt.write(0xc314, 0xffff_0001);
    host.start_dma();
    assert_eq!(events(&host), 0, "a space that does not exist");
}

#[test]
fn a_running_kernel_is_not_overwritten() {
    proves!(
        V13_192,
        "nothing overwrites a kernel in WOPCM while it runs; the next kernel may after a reset of the GuC"
    );
    let mut host = ready();
    assert_eq!(host.upload(), 0x8001_f0ec);
    assert_eq!(events(&host), DMA_DONE);
    // The host's requests are ignored. Those that the engine carries out for the GuC are rejected.
    let kernel = |host: &Host| host.guc.dma.wopcm_bytes(0x2000..0x2000 + u64::from(DMA_BYTES)).to_vec();
    let loaded = kernel(&host);
    assert_eq!(loaded[..4], 6_u32.to_le_bytes());
    for (to, size, rejected) in [
        (0x2000, 64, true),
        (0x1fc0, 128, true),
        (0x2000 + u64::from(DMA_BYTES) - 64, 128, true),
        (0x1000, 0x4000, true),
        (0x1fc0, 64, false),
        (0x2000 + u64::from(DMA_BYTES), 64, false),
    ] {
        assert!(!copy(&mut host, place(GGTT), (WOPCM, to), size), "the host's");
        let result = carry_out(&mut host);
        assert_eq!(result, if rejected { Err(Rejection::Wopcm) } else { Ok(()) }, "{to:#x}, {size}");
        assert_eq!(kernel(&host), loaded, "{to:#x}, {size}");
    }
    host.guc.reset(&host.gt);
    assert!(copy(&mut host, place(GGTT), (WOPCM, 0x2000), 64));
    assert_ne!(kernel(&host), loaded);
    assert_eq!(host.upload(), 0x8001_f0ec);
}

#[test]
fn a_fuse_disables_the_engine() {
    proves!(
        V13_189,
        "the fuse that disables the GuC makes its DMA engine inoperable: no transfer starts or completes, and \
        no kernel is loaded"
    );
    let mut host = Host::new();
    let mut profile: crate::profile::CardProfile =
        toml::from_str(include_str!("../../../configs/flex170.toml")).unwrap();
    assert!(!profile.fuses.guc_disabled);
    profile.fuses.guc_disabled = true;
    let memory = Memory::new(
        XE_HPG.page_tables,
        SharedRegion::anonymous(0x140_0000).unwrap(),
        Ggtt::new(SharedRegion::anonymous(GGTT_BYTES).unwrap()),
        host.ram.clone(),
    );
    for page in (MAPPED.start..MAPPED.end).step_by(4096) {
        memory.ggtt().set_entry(page >> 12, GgttEntry::from(page | 3));
    }
    host.gt = Gt::new(&profile, memory, Arc::new(Recorder::default()), host.clock.clone());
    host.write_firmware(&host.instances());
    for (offset, value) in [
        (0xc050, 0x3f_3001),
        (0xc340, 0x4001),
        (0xc200, FIRMWARE as u32 + DMA_BYTES),
        (0xc194, (ADS >> 12 << 1) as u32),
        (0xc300, FIRMWARE as u32),
        (0xc304, GGTT),
        (0xc308, 0x2000),
        (0xc30c, WOPCM),
        (0xc310, DMA_BYTES),
        (0xc314, 0x11),
    ] {
        host.gt.registers.set(offset, value);
    }
    host.guc.start_dma(&host.gt, &host.engines, &host.gt.memory.views());
    assert_eq!((host.gt.read(0xc314) & 1, host.gt.read(0xc000)), (1, 1));
    assert!(host.guc.firmware().is_none());
    host.guc.quotas = vec![Quota {
        ggtt: 2 << 20,
        local_memory: 2 << 20,
        contexts: 16,
        doorbells: 4,
        exec_quantum_ms: 0,
        preempt_timeout_us: 0,
    }];
    assert!(host.guc.restart_builtin(&host.gt, &host.engines).is_err());
    assert!(host.guc.firmware().is_none());
    assert!(host.guc.dma.wopcm_bytes(0..64).is_empty());
}

#[test]
fn ppgtt_transfers_need_its_registers() {
    proves!(
        V13_193,
        "before a transfer in PPGTT memory, PPGTT_ENABLE and the page directory pointers must be programmed"
    );
    let mut host = ready();
    fill(&mut host, place(SRAM), 0x100);
    let to = (PPGTT, PROCESS);
    host.gt.write(0xc3f0, 0);
    assert!(!copy(&mut host, place(SRAM), to, 64), "not enabled");
    assert!(!copy(&mut host, to, place(SRAM), 64), "not enabled");
    host.gt.write(0xc3f0, 1);
    host.gt.write(0xc3c0, 0xc0_0000);
    assert!(!copy(&mut host, place(SRAM), to, 64), "the tables map nothing");
    assert_eq!(host.peek(PAGES), 0);
    host.gt.write(0xc3c0, TABLES as u32);
    host.gt.write(0xc3c4, 1);
    assert!(!copy(&mut host, place(SRAM), to, 64), "tables outside of local memory");
    host.gt.write(0xc3c4, 0);
    assert!(copy(&mut host, place(SRAM), to, 64));
    assert_eq!(host.peek(PAGES), 0x100);
    host.gt.write(0xc304, 0x5_0000);
    assert_eq!(carry_out(&mut host), Err(Rejection::Location), "no such space");
    host.gt.write(0xc304, SRAM);
    assert_eq!(carry_out(&mut host), Ok(()));
}
