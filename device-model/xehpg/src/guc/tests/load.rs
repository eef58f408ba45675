// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Firmware upload, mailbox, and restart after a reset.

use super::*;
use crate::memory::Memories;
use arctic_fidelity::proves;

#[test]
fn upload_good_image() {
    proves!(
        [V13_178, V13_180],
        "a valid image is started. Versions are read from the image, parameters from the scratch registers \
        (contract B.4 step 20)"
    );
    let mut host = Host::new();
    assert_eq!(host.upload(), 0x8001_f0ec);
    let firmware = host.guc.firmware().unwrap();
    assert_eq!((firmware.release.major, firmware.release.minor, firmware.submission.minor), (70, 55, 27));
    assert_eq!((firmware.params[2], firmware.ads()), (0x14, ADS));
    // While it runs, DMA requests of the host are ignored.
    host.gt.registers.set(0xc310, 0);
    host.gt.registers.set(0xc314, 0x11);
    assert_eq!(host.start_dma(), 0x8001_f0ec);
    host.guc.reset(&host.gt);
    assert_eq!(host.gt.registers.value(0xc000), 1);
    assert!(host.guc.firmware().is_none());
}

/// Copies the firmware's image from local memory to memory of the PF's guest that is accessed by messages.
fn image_by_messages(host: &mut Host) -> Arc<turns::Ram> {
    host.move_to_guest(FIRMWARE, (DMA_BYTES as usize + 4 * 1024).next_multiple_of(4096))
}

/// The boot ROM checks what is in WOPCM: a guest that changes the image or its signature after they were read has no
/// effect on the checks.
#[test]
fn image_in_guest_memory_is_read_once() {
    let mut host = Host::new();
    let ram = image_by_messages(&mut host);
    ram.cleared_by_reads.store(true, Ordering::SeqCst);
    assert_eq!(host.upload(), 0x8001_f0ec);
    host.guc.reset(&host.gt);
    host.gt.registers.set(0xc314, 0x11);
    assert_eq!(host.start_dma() >> 30, 1, "the image is cleared");
}

/// A transfer whose client does not answer is repeated, for a limited time.
#[test]
fn a_transfer_is_repeated_while_the_client_does_not_answer() {
    for answers in [true, false] {
        let mut host = Host::new();
        host.start_firmware();
        let ram = image_by_messages(&mut host);
        ram.set_silent(true, 0x1000);
        for _ in 0..2 {
            assert!(host.guc.start_dma(&host.gt, &host.engines, &host.gt.memory.views()));
            assert_eq!(host.gt.registers.value(0xc314) & 1, 1, "the transfer is not complete");
            host.clock.advance(900_000_000);
        }
        ram.set_silent(!answers, 0x1000);
        assert_eq!(host.start_dma() == 0x8001_f0ec, answers, "the transfer is complete, or was rejected");
    }
}

/// Contract G.4: i915 does not set the address space of the source; the default is the GGTT.
#[test]
fn upload_from_the_default_address_space() {
    let mut host = Host::new();
    host.upload();
    host.guc.reset(&host.gt);
    host.gt.registers.set(0xc304, 0);
    host.gt.registers.set(0xc314, 0x11);
    assert_eq!(host.start_dma(), 0x8001_f0ec);
}

#[test]
fn upload_bad_images() {
    proves!(
        [V13_178, V13_195],
        "every invalid image leads to a status that the driver interprets as a failure (contract B.4 step 20g)"
    );
    type Corruption = fn(&Host);
    let cases: [(&str, u32, Corruption); 10] = [
        ("module type", 0x50, |h| h.poke(FIRMWARE, 4)),
        ("header length", 0x50, |h| h.poke(FIRMWARE + 4, 31)),
        ("image length", 0x50, |h| h.poke(FIRMWARE + 0x18, u32::MAX)),
        ("version", 0x50, |h| h.poke(FIRMWARE + 0x40, 0)),
        ("no signature", 0x13, |h| h.poke(FIRMWARE + u64::from(DMA_BYTES), 0)),
        ("WOPCM not locked", 0x74, |h| h.gt.registers.set(0xc050, 0x3f_3000)),
        ("WOPCM too small", 0x74, |h| h.gt.registers.set(0xc050, 0x1001)),
        ("WOPCM size exceeds the hardware's", 0x74, |h| {
            h.gt.registers.set(0xc050, 0xffff_f001);
            h.gt.registers.set(0xc310, 0x50_0000);
        }),
        ("source not mapped", 0x75, |h| h.gt.registers.set(0xc300, 0x100_0000 + MAPPED.end as u32)),
        ("invalid source address space", 0x75, |h| h.gt.registers.set(0xc304, 0x7_0000)),
    ];
    for (name, code, corrupt) in cases {
        let mut host = Host::new();
        // Programs the registers as the driver does. The transfer is started after an image field or a register is
        // corrupted.
        host.upload();
        host.guc.reset(&host.gt);
        corrupt(&host);
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

/// Mapping table and masks of the system info in the driver's ADS, by class of the GuC.
const MAPPING: u64 = ADS + 0x123c;
const MASKS: u64 = MAPPING + 16 * 32;

/// Loads the firmware with an ADS that `change` has changed. Returns the error code in GUC_STATUS, 0 if it runs.
fn load_with(change: impl Fn(&Host)) -> (Host, u32) {
    let mut host = Host::new();
    host.start_firmware();
    change(&host);
    let status = host.start_dma();
    let code = if status == READY { 0 } else { status >> 8 & 0xff };
    (host, code)
}

/// An engine map that the scheduler cannot use is refused, as is an ADS without its parts (contract B.7).
#[test]
fn unusable_ads() {
    let row = u64::from(EngineClass::VideoDecode.guc());
    let (map, mask) = (MAPPING + row * 32, MASKS + row * 4);
    for (name, words) in [
        ("two logical instances with one engine", &[(map, 0x2020_0000)][..]),
        ("a fused-off engine", &[(map, 0x2020_0100), (mask, 3)]),
        ("a logical instance that no class has", &[(map, 0x2020_2020), (map + 8, 0x2020_2000)]),
        ("no policies", &[(ADS + 0x1004, 0)]),
        ("no system info", &[(ADS + 0x1008, 0)]),
    ] {
        let (_, code) = load_with(|host| words.iter().for_each(|(at, word)| host.poke(*at, *word)));
        assert_eq!(code, 0x71, "{name}");
    }
}

/// The order of the logical instances is the driver's. Instances that are not enabled, and those from 32 on, are ignored
/// (contract B.7, K.2).
#[test]
fn engine_map_is_the_drivers() {
    let video = EngineClass::VideoDecode;
    let row = u64::from(video.guc());
    let [first, third] = [0, 2].map(|instance| XE_HPG.engines.find(video, instance));
    for (name, entries, mask, expected) in [
        ("as found", 0x2020_0200, 5, [first, third, None, None]),
        ("exchanged", 0x2020_0002, 5, [third, first, None, None]),
        ("with a hole", 0x0200_2020, 5, [None, None, first, third]),
        ("one is not enabled", 0x2020_0200, 1, [first, None, None, None]),
        ("invalid values", 0xff80_0221, 5, [None, third, None, None]),
    ] {
        let (host, code) = load_with(|host| {
            host.poke(MAPPING + row * 32, entries);
            host.poke(MASKS + row * 4, mask);
        });
        assert_eq!(code, 0, "{name}");
        let map = host.guc.scheduler().unwrap().map();
        assert_eq!([0, 1, 2, 3].map(|logical| map.engine(video, logical)), expected, "{name}");
    }
}

/// Contract B.4 step 21, K.11: the mailbox message examples of the contract.
#[test]
fn mailbox_examples() {
    let mut host = Host::new();
    host.upload();
    let [reply, ..] = host.mail(&[0x4100, 0, 0, 0]);
    let bytes = reply & 0xfff_ffff;
    assert_eq!(reply >> 28, 0xf);
    assert_eq!(bytes as usize, (host.gt.generation.hwconfig)(host.gt.die).len() * 4);
    assert_eq!(host.mail(&[0x4100, SCRATCH as u32, 0, bytes])[0], reply);
    for (n, value) in (0u64..).zip((host.gt.generation.hwconfig)(host.gt.die)) {
        assert_eq!(host.peek(SCRATCH + n * 4), value);
    }
    assert_eq!(host.mail(&[0x4100, 0x1000, 0, bytes])[0], 0xe000_0080, "not mapped");
    assert_eq!(host.mail(&[0x4100, SCRATCH as u32, 0, bytes - 4])[0], 0xe000_0102, "too small");
    assert_eq!(host.mail(&[0x4509, 1])[0], 0xe000_0304, "CT buffers not registered");
    assert_eq!(host.mail(&[0x0508, 0x0902_0002, CTB as u32, 0]), [0xf000_0001, 0, 0, 0]);
    assert_eq!(host.mail(&[0x0508, 0x0902_0001, CTB as u32, 0])[0], 0xe000_0103, "wrong length");
    assert_eq!(host.mail(&[0x0508, 0x0902_0002, 0x1000, 0])[0], 0xe000_0080, "inside WOPCM");
    assert_eq!(host.mail(&[0x0508, 0x0904_0001, 100, 0])[0], 0xe000_0060, "not a multiple of 4 KiB");
    assert_eq!(host.mail(&[0x0508, 0x0999_0001, 1, 0])[0], 0xf000_0000, "unknown key: no KLV is applied");
    assert_eq!(host.mail(&[0x1234])[0], 0xe000_0030);
    assert_eq!(host.mail(&[0x1000_4100])[0], 0xe000_0004, "an event is not a request");
    assert_eq!(host.mail(&[0x5500, 0x0001_0100])[0], 0xe000_0302, "a request for VFs only");
}

#[test]
fn no_response_in_reset() {
    proves!(
        V13_126,
        "a GuC in reset does not respond; the driver detects this by polling and loads the firmware again"
    );
    let mut host = Host::new();
    assert_eq!(host.mail(&[0x4100, 0, 0, 0])[0], 0x4100);
    assert_eq!(host.guc.step(&host.gt, &host.engines, 0), Step::default());
    assert_eq!(host.upload(), 0x8001_f0ec);
    assert_eq!(host.mail(&[0x4100, 0, 0, 0])[0] >> 28, 0xf);
}

/// Contract F.7: after a reset and a new upload, all contexts must be registered again. Completions of contexts that
/// were loaded before the reset are ignored.
#[test]
fn reset_and_reload() {
    let mut host = Host::up();
    host.start(5, EngineClass::Copy, 1, 2);
    host.end("bcs0", Outcome::Complete);
    host.guc.reset(&host.gt);
    assert_eq!(host.upload(), 0x8001_f0ec);
    host.enable_rings(CTB + ct::G2H);
    host.start(5, EngineClass::Copy, 1, 2);
    assert_eq!(host.runs("bcs0"), Some(5), "a completion from before the reset is ignored");
    assert_eq!(host.mail(&[0x5507])[0], 0xf000_0000);
    assert_eq!(host.runs("bcs0"), None);
    host.enable_rings(CTB + ct::G2H);
    host.fast(0x1000, &[5]);
    assert_eq!(host.stepped(), [[0x8001_0001, 0xe000_0100]]);
}

#[test]
fn the_guc_is_loaded_through_the_mmio_bar() {
    use crate::card::Card;

    proves!(
        V13_126,
        "a driver polls the GuC. If it does not answer, a reset of the GuC and all engines, or of the whole card, and \
        another load of the firmware bring it back"
    );

    let host = Host::new();
    let (local, ggtt) = (SharedRegion::anonymous(16 << 30).unwrap(), SharedRegion::anonymous(GGTT_BYTES).unwrap());
    for page in (MAPPED.start..MAPPED.end).step_by(4096) {
        let entry = (page | 3).to_le_bytes();
        ggtt.slice(page >> 12 << 3, 8).unwrap().write_slice(&entry, 0).unwrap();
    }
    for (from, len) in [(FIRMWARE, 0x1000), (ADS, 0x2000)] {
        let bytes = host.gt.memory.local().slice(from, len).unwrap();
        bytes.copy_to_volatile_slice(local.slice(from, len).unwrap());
    }
    let profile = crate::registers::tests::profile();
    let card = Card::power_on(
        &profile,
        Memories { local, ggtt, vfs: Vec::new() },
        Arc::new(NullHost),
        Arc::new(Recorder::default()),
        host.clock.clone(),
    );
    let write = |offset: u64, value: u32| card.write_gttmmadr(Function::PF, offset, &value.to_le_bytes());
    let read = |offset: u64| {
        let mut data = [0; 4];
        card.read_gttmmadr(Function::PF, offset, &mut data);
        u32::from_le_bytes(data)
    };
    write(0x941c, 1 << 3);
    assert_eq!((read(0x941c), read(0xc000) & 1), (0, 1));
    let load = || {
        write(0xc050, 0x3f_3000);
        write(0xc340, 0x4000);
        assert_eq!((read(0xc050), read(0xc340)), (0x3f_3001, 0x4001));
        write(0xc180 + 5 * 4, (ADS >> 12 << 1) as u32);
        write(0xc200, (FIRMWARE + u64::from(DMA_BYTES)) as u32);
        for (offset, value) in [(0xc300, FIRMWARE as u32), (0xc304, 0x8_0000), (0xc308, 0x2000), (0xc30c, 0x7_0000)] {
            write(offset, value);
        }
        write(0xc310, DMA_BYTES);
        write(0xc314, 0x11_0011);
        assert_eq!(read(0xc314) & 1, 0);
        write(0xc314, 0x10_0000);
    };
    load();
    assert_eq!(read(0xc000), 0x8001_f0ec);
    for (n, value) in [(0, 0x4100), (1, 0), (2, 0), (3, 0)] {
        write(0x19_0240 + n * 4, value);
    }
    write(0x19_01f0, 0);
    assert_eq!(read(0x19_0240), 0xf000_0000 + (host.gt.generation.hwconfig)(host.gt.die).len() as u32 * 4);
    // The driver polls. A GuC that does not answer is reset with all engines, or with the whole card, and loaded again.
    let polled = || {
        (0..4).for_each(|n| write(0x19_0240 + n * 4, if n == 0 { 0x4100 } else { 0 }));
        write(0x19_01f0, 0);
        read(0x19_0240)
    };
    let answer = polled();
    assert_eq!(answer >> 28, 0xf);
    let resets: [&dyn Fn(); 2] = [&|| write(0x941c, 1), &|| card.reset_card()];
    for reset in resets {
        write(0x2080, 0x40_0000);
        reset();
        assert_eq!((read(0x941c), read(0xc000) & 1, read(0x2080)), (0, 1, 0), "the GuC and the engines");
        assert_eq!(polled(), 0x4100, "no reply in reset");
        load();
        assert_eq!((read(0xc000), polled()), (0x8001_f0ec, answer));
    }
}

#[test]
fn the_direction_bit_swaps_source_and_destination() {
    proves!(V13_188, "with bit 1 of DMA_CTRL, address register 1 is the source and register 0 the destination");
    for (swapped, control, status) in
        [(false, 0x11, 0x8001_f0ec), (true, 0x13, 0x8001_f0ec), (true, 0x11, 0x4001_00ea), (false, 0x13, 0x4001_00ea)]
    {
        let mut host = Host::new();
        host.upload();
        host.guc.reset(&host.gt);
        let addresses = [[FIRMWARE as u32, 0x8_0000], [0x2000, 0x7_0000]];
        let [first, second] = if swapped { [addresses[1], addresses[0]] } else { addresses };
        for (offset, value) in (0xc300..).step_by(4).zip([first, second].concat()) {
            host.gt.registers.set(offset, value);
        }
        host.gt.registers.set(0xc314, control);
        assert_eq!(host.start_dma(), status, "swapped: {swapped}, control {control:#x}");
    }
}

#[test]
fn the_huc_is_loaded() {
    proves!(
        V13_184,
        "the HuC counts as loaded only if a load was attempted (0xC010 bit 8) and succeeded (0xD3B0 bit 7). \
        Both are set from power-on, before and after a reset of the GuC, and software cannot clear them"
    );
    let mut host = Host::new();
    let loaded = |host: &Host| (host.gt.read(0xc010) >> 8 & 1, host.gt.read(0xd3b0) >> 7 & 1, host.gt.read(0xc1dc) & 1);
    assert_eq!(loaded(&host), (1, 1, 1));
    host.gt.write(0xc010, 0);
    host.gt.write(0xd3b0, 0);
    host.upload();
    host.guc.reset(&host.gt);
    assert_eq!(loaded(&host), (1, 1, 1));
}
