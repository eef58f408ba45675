// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests with constructed dumps in the formats of the drivers.

use std::io::Write;

use arctic_device_model::decode::Line;
use arctic_test_support::kernels::{ENDLESS, kernel};
use arctic_test_support::mi::compute::{Bases, Walker, state_base_address};
use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::ascii85::{bytes, encode};
use super::engine::{FLEX, named};
use super::source::{Gpu, Source, Understood};
use super::*;

fn decoded(decode: impl FnOnce(&mut dyn FnMut(Line) -> std::io::Result<()>) -> std::io::Result<()>) -> Vec<String> {
    let mut lines = Vec::new();
    decode(&mut |line| {
        lines.push(line.to_string().split_whitespace().collect::<Vec<_>>().join(" "));
        Ok(())
    })
    .unwrap();
    lines
}

/// Asserts that lines with these beginnings occur in this order.
fn assert_in_order(lines: &[String], wanted: &[&str]) {
    let mut rest = lines.iter();
    for wanted in wanted {
        assert!(rest.any(|line| line.starts_with(wanted)), "{wanted} is not in {lines:#?}");
    }
}

/// A user batch that calls a second batch and then waits on a semaphore.
const BATCH: [u32; 10] = [0x18c0_0101, 0x20_0000, 0, 0x0e00_c003, 1, 0x30_0000, 0, 0, 0x0500_0000, 0];
const SECOND: [u32; 5] = [0x1000_0002, 0x30_0004, 0, 7, 0x0500_0000];

fn xe_dump() -> String {
    let mut ct = vec![0u32; (0x2000 + 0x1000 + 0x800) / 4];
    ct[0x400..0x403].copy_from_slice(&[0x0012_0002, 0x2000_1000, 5]);
    ct[0xc00..0xc04].copy_from_slice(&[3, 0x9000_1002, 5, 1]);
    let mut image = vec![0u32; 0x100];
    image[1] = 0x1108_1019;
    image[2..8].copy_from_slice(&[0x244, 0x0009_0009, 0x34, 0x40, 0x30, 0x80]);
    let (ct, page, image) = (encode(&ct), encode(&[0; 1024]), encode(&image));
    let (batch, second) = (encode(&BATCH), encode(&SECOND));
    format!(
        "**** Xe Device Coredump ****\nReason: Timedout job\nkernel: 7.2\nProcess: guilty [42]\n\n\
         **** GuC CT ****\nH2G CTB (all sizes in DW):\n\tsize: 1024\n\thead (memory): 0\n\ttail (memory): 3\n\
         G2H CTB (all sizes in DW):\n\tsize: 512\n\thead (memory): 4\n\ttail (memory): 4\n\
         [CTB].length: 0x3800\n[CTB].data: {ct}\n\n\
         **** Contexts ****\nGuC ID: 5\n\tName: bcs5\n\tClass: 3\n\tLogical mask: 0x1\n\t[HWSP].length: 0x1000\n\
         \t[HWSP].data: {page}\n\t[HWCTX].length: 0x400\n\t[HWCTX].data: {image}\n\n\
         **** Job ****\nbatch_addr[0]: 0x0000000000100000\n\n\
         **** HW Engines ****\nbcs0 (physical), logical instance=0\n\tCapture_source: GuC\n\
         \tACTHD: 0x000000000010000c\n\tIPEHR: 0x0e00c003\n\n\
         **** VM state ****\nVM.uapi_flags: 0x1\n[100000].length: 0x28\n[100000].data: {batch}\n\
         [200000].length: 0x14\n[200000].data: {second}\n"
    )
}

#[test]
fn a_devcoredump_shows_the_position_of_the_engine() {
    let File::Xe(text) = File::of(xe_dump().into_bytes()).unwrap() else { panic!("not recognised") };
    let lines =
        decoded(|emit| xe::decode(&mut limits::Budget::default(), &text, &[], &mut Understood::default(), emit));
    assert_in_order(
        &lines,
        &[
            "# Reason: Timedout job",
            "GuC CT buffer, host to GuC",
            "[0x0000] host > GuC fast request SCHED_CONTEXT (fence 0x12): context 0x5 <== not read yet",
            "GuC CT buffer, GuC to host",
            "[0x0000] GuC > host event SCHED_CONTEXT_MODE_DONE (fence 0x0): context 0x5, enabled 0x1",
            "Context image, bcs0",
            "[0x005] bcs0.RING_HEAD 0x00000040 offset 0x40, wrapped 0 times",
            "# IPEHR: 0x0e00c003 (MI_SEMAPHORE_WAIT)",
            "Batch at 0x100000 on bcs0",
            "0x000000100000: 18c00101 MI_BATCH_BUFFER_START",
            "0x00000010000c: 0e00c003 MI_SEMAPHORE_WAIT: Compare Operation SAD == SDD, Wait Mode poll, \
             Semaphore Data Dword 0x1, Semaphore Address 0x300000 <== ACTHD",
            "0x000000100020: 05000000 MI_BATCH_BUFFER_END",
            "Batch at 0x200000 on bcs0",
            "0x000000200000: 10000002 MI_STORE_DATA_IMM: Address 0x300004, Data 0x7",
            "# 0x100000: 0x28 bytes, with batches shown above",
        ],
    );
}

/// Kernels that a batch dispatches are disassembled up to their end, or said to be not in the dump.
#[test]
fn kernels_of_a_hung_context_are_disassembled() {
    let bases = Bases { instruction: 0x40_0000, ..Bases::default() };
    let walkers = [Walker::of(0x40).words(), Walker::of(0x10_0000).words()].concat();
    let batch = [&state_base_address(&bases)[..], &walkers, &[0x0500_0000]].concat();
    let mut code = vec![0; 0x10];
    code.extend(kernel(ENDLESS));
    code.extend([0; 16]);
    let mut memory = memory::Memory::default();
    memory.add(0x1000, batch);
    memory.add(0x40_0000, code);
    let engine = FLEX.engine("ccs0").unwrap();
    let lines = decoded(|emit| memory.decode_batches(&[0x1000], engine, &[], emit).map(drop));
    assert_in_order(
        &lines,
        &[
            "Batch at 0x1000 on ccs0",
            "Kernel at 0x400040",
            "# 0x400040: (W) jmpi",
            "# 0x400050: (W) send.gtwy",
            "Kernel at 0x500000: not in the dump",
        ],
    );
    assert_eq!(lines.iter().filter(|line| line.starts_with("# 0x4000")).count(), 2, "{lines:#?}");
    // No walkers, no kernels.
    let engine = FLEX.engine("bcs0").unwrap();
    let lines = decoded(|emit| memory.decode_batches(&[0x1000], engine, &[], emit).map(drop));
    assert!(!lines.iter().any(|line| line.starts_with("Kernel")), "{lines:#?}");
}

#[test]
fn a_broken_devcoredump_is_reported_and_decoded_further() {
    let text = xe_dump().replace("[100000].data: ", "[100000].data: ~~~");
    let lines =
        decoded(|emit| xe::decode(&mut limits::Budget::default(), &text, &[], &mut Understood::default(), emit));
    assert_in_order(
        &lines,
        &["# [100000]: no ascii85 at character 0 of its data", "Batch at 0x100000 on bcs0: not in the dump"],
    );
}

#[test]
fn batches_over_the_limit_or_outside_the_dump_are_not_among_the_decoded_ones() {
    let engine = FLEX.engine("bcs0").unwrap();
    let mut memory = memory::Memory::default();
    memory.add(0x1000, vec![0x0500_0000; memory::MAX_BATCHES + 10]);
    let decode = |starts: &[u64]| {
        let mut addresses = Default::default();
        let lines = decoded(|emit| {
            addresses = memory.decode_batches(starts, engine, &[], emit)?;
            Ok(())
        });
        (addresses.into_iter().collect::<Vec<u64>>(), lines)
    };
    let note = format!("# only the first {} batches are decoded", memory::MAX_BATCHES);
    let (addresses, lines) = decode(&[0x1000, 0x800_0000, 0x1004, 0x1000]);
    assert_eq!(addresses, [0x1000, 0x1004]);
    assert_in_order(&lines, &["Batch at 0x1000", "Batch at 0x8000000 on bcs0: not in the dump", "Batch at 0x1004"]);
    assert!(!lines.contains(&note), "{lines:#?}");
    let starts: Vec<u64> = (0..memory::MAX_BATCHES as u64 + 10).map(|index| 0x1000 + 4 * index).collect();
    let (addresses, lines) = decode(&starts);
    assert_eq!(addresses, starts[..memory::MAX_BATCHES]);
    assert_eq!(lines.iter().filter(|line| **line == note).count(), 1);
    let again = [&starts[..memory::MAX_BATCHES], &starts[..1]].concat();
    assert!(!decode(&again).1.contains(&note));
}

fn packed(dwords: &[u32]) -> String {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&bytes(dwords)).unwrap();
    let mut packed = encoder.finish().unwrap();
    packed.resize(packed.len().next_multiple_of(4), 0);
    format!(":{}", encode(&ascii85::dwords(&packed)))
}

#[test]
fn an_error_state_reads() {
    let ring = [0x0200_0000, 0, 0x1880_0101, 0x10_0000, 0, 0x0100_0000, 0, 0];
    let text = format!(
        "GPU HANG: ecode 12:1:85dffffb\nKernel: 7.2 x86_64\n\
         rcs0 command stream:\n  START: 0x00fe0000\n  HEAD:  0x00000014 [0x00000000]\n  TAIL:  0x00000018 [0x0, 0x0]\n\
         \x20 ACTHD: 0x00000000 0010000c\n  IPEHR: 0x0e00c003\n\
         rcs0 --- batch = 0x00000000 00100000\n{}\nrcs0 --- ring = 0x00000000 00fe0000\n{}\n",
        packed(&BATCH),
        packed(&ring)
    );
    let File::I915(text) = File::of(text.into_bytes()).unwrap() else { panic!("not recognised") };
    let lines = decoded(|emit| {
        i915::decode(&mut limits::Budget::default(), &text, (FLEX, &[]), &mut Understood::default(), emit)
    });
    assert_in_order(
        &lines,
        &[
            "# IPEHR: 0x0e00c003 (MI_SEMAPHORE_WAIT)",
            "Batch at 0x100000 on rcs0",
            "0x00000010000c: 0e00c003 MI_SEMAPHORE_WAIT",
            "ring at 0xfe0000 rcs0",
            "0x000000fe0008: 18800101 MI_BATCH_BUFFER_START",
            "0x000000fe0014: 01000000 MI_USER_INTERRUPT <== HEAD",
            "0x000000fe0018: 00000000 MI_NOOP x2 <== TAIL",
        ],
    );
    let none = decoded(|emit| {
        i915::decode(
            &mut limits::Budget::default(),
            &text,
            (FLEX, &FLEX.select("bcs0")),
            &mut Understood::default(),
            emit,
        )
    });
    assert!(!none.iter().any(|line| line.contains("MI_BATCH")), "{none:#?}");
}

/// Each object has a size limit, and so does the whole file; omissions are reported, and the rest is decoded.
#[test]
fn decoded_objects_are_bounded() {
    let noops = |n: usize| packed(&vec![0; n]);
    let object = |at: u64, data: &str| format!("rcs0 --- ring = 0x00000000 {at:08x}\n{data}\n");
    let text = [object(0x1000, &noops(600)), object(0x2000, &noops(256)), object(0x3000, &noops(600))].concat();
    let mut budget = limits::Budget::new(1024, 2560);
    let lines = decoded(|emit| {
        i915::decode(&mut budget, &text, (FLEX, &FLEX.select("rcs0")), &mut Understood::default(), emit)
    });
    let wanted = ["# the rest is omitted: at most 256 MiB of an object and 1024 MiB of a file are decoded"];
    assert_eq!(lines.iter().filter(|line| **line == wanted[0]).count(), 2, "{lines:#?}");
    assert_in_order(
        &lines,
        &[
            "ring at 0x1000 rcs0",
            "0x000000001000: 00000000 MI_NOOP x256",
            wanted[0],
            "ring at 0x2000 rcs0",
            "0x000000002000: 00000000 MI_NOOP x256",
            "ring at 0x3000 rcs0",
            "0x000000003000: 00000000 MI_NOOP x128",
            wanted[0],
        ],
    );
    let xe = xe_dump();
    let lines = decoded(|emit| {
        xe::decode(&mut limits::Budget::new(1 << 20, 0x3800), &xe, &[], &mut Understood::default(), emit)
    });
    assert_in_order(&lines, &["GuC CT buffer, host to GuC", wanted[0], "Batch at 0x100000 on bcs0: not in the dump"]);
}

#[test]
fn an_image_without_end_is_listed_in_part() {
    let text = format!("rcs0 --- HW context = 0x00000000 00001000\n{}\n", packed(&vec![1; 2 << 20]));
    let lines = decoded(|emit| {
        i915::decode(&mut limits::Budget::default(), &text, (FLEX, &[]), &mut Understood::default(), emit)
    });
    assert!(lines.iter().any(|line| line.contains("trailing dwords are omitted: 262144 are listed")), "{lines:?}");
}

#[test]
fn dwords_read_as_text_and_as_bytes() {
    let dwords = |bytes: &[u8]| match File::of(bytes.to_vec()) {
        Ok(File::Dwords(dwords, rest)) => Ok((dwords, rest)),
        Ok(other) => panic!("{other:?}"),
        Err(why) => Err(why),
    };
    assert_eq!(dwords(b"0010: 0x05000000, 11000001 # end\n2358\n"), Ok((vec![0x0500_0000, 0x1100_0001, 0x2358], 0)));
    assert_eq!(dwords(&[0, 0, 0, 5, 1, 0, 0, 0x11, 9]), Ok((vec![0x0500_0000, 0x1100_0001], 1)));
    assert!(dwords(b"no hex\n").unwrap_err().starts_with("line 1: `no` is not a hexadecimal number"));
    assert_eq!(dwords(b""), Err("it is empty".into()));
}

proptest::proptest! {
    /// Decoding a damaged dump does not panic.
    #[test]
    fn damaged_dumps_are_read(at in 0usize..20_000, byte: u8) {
        let mut bytes = xe_dump().into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let _ = decoded(|emit| xe::decode(&mut limits::Budget::default(), &text, &[], &mut Understood::default(), emit));
        let _ = decoded(|emit| i915::decode(&mut limits::Budget::default(), &text, (FLEX, &[]), &mut Understood::default(), emit));
        let _ = File::of(bytes);
    }
}

/// An error state of an Ivy Bridge. The render engine executes a batch that jumps to its start, and its access to
/// memory has faulted.
fn ivy_bridge_dump() -> String {
    let ring = [0x1880_0100, 0x10_0000, 0x1300_4001, 0x8004, 0x7, 0x0100_0000, 0, 0];
    let batch = [0x1000_0002, 0, 0x30_0000, 0xc0de, 0x1880_0100, 0x10_0000, 0x0500_0000, 0];
    let image = [0, 0x1100_0003, 0x20c0, 0xffff_0000, 0x2110, 0x20, 0x0500_0000, 0];
    let mut page = [0; 0x48];
    page[0x40] = 5;
    format!(
        "GPU HANG: ecode 7:1:85dffffb\nPlatform: IVYBRIDGE\nPCI ID: 0x0162\nEIR: 0x00000001\n\
         \x20 fence[0] = 101ff00301000003\n  fence[1] = 00000000\n  fence[2] = 01fff07f01000001\nERROR: 0x00000004\n\
         rcs0 command stream:\n  CCID:  0x00040101\n  START: 0x00fe0000\n  HEAD:  0x00000008 [0x00000000]\n\
         \x20 TAIL:  0x00000018 [0x0, 0x0]\n  CTL:   0x00003001\n  ACTHD: 0x00000000 00100000\n  IPEHR: 0x10000002\n\
         \x20 ESR:   0x00000000\n  INSTDONE: 0xfffffffe\n  BBADDR: 0x00000000_00100001\n  FAULT_REG: 0x00300043\n\
         \x20 PP_DIR_BASE: 0x7fde0000\n\
         rcs0 --- ring = 0x00000000 00fe0000\n{}\nrcs0 --- batch = 0x00000000 00100000\n{}\n\
         rcs0 --- HW context = 0x00000000 00040000\n{}\nrcs0 --- HW Status = 0x00000000 00050000\n{}\n",
        packed(&ring),
        packed(&batch),
        packed(&image),
        packed(&page),
    )
}

#[test]
fn an_error_state_of_ivy_bridge_reads_with_its_own_tables() {
    let text = ivy_bridge_dump();
    let File::I915(text) = File::of(text.into_bytes()).unwrap() else { panic!("not recognised") };
    let family = Gpu::of(&text).family().unwrap();
    assert_eq!(family.name(), Some("ivy-bridge"));
    let lines = decoded(|emit| {
        i915::decode(&mut limits::Budget::default(), &text, (family, &[]), &mut Understood::default(), emit)
    });
    assert_in_order(
        &lines,
        &[
            "# EIR: 0x00000001 (Instruction Error)",
            "# fence[0] = 101ff00301000003 (0x1000000 to 0x101fffff, Y tiles, pitch 512)",
            "# fence[1] = 00000000",
            "# fence[2] = 01fff07f01000001 (0x1000000 to 0x1ffffff, X tiles, pitch 16384)",
            "# ERROR: 0x00000004 (Invalid Directory Entry)",
            "rcs0 command stream:",
            "# CCID: 0x00040101 (Valid, Logical Context Address 0x40000)",
            "# HEAD: 0x00000008 [0x00000000] (Head Offset 0x8)",
            "# CTL: 0x00003001 (Ring Buffer Enable, Pages Less One 3)",
            "# IPEHR: 0x10000002 (MI_STORE_DATA_IMM)",
            "# ESR: 0x00000000",
            "# INSTDONE: 0xfffffffe (busy: 0x1)",
            "# BBADDR: 0x00000000_00100001 (Valid, Batch Buffer Address 0x100000)",
            "# FAULT_REG: 0x00300043 (Valid, Fault Type invalid directory entry, Source command streamer, writing, \
             Address Space PPGTT, Page 0x300000)",
            "ring at 0xfe0000 rcs0",
            "0x000000fe0000: 18800100 MI_BATCH_BUFFER_START: Address Space Indicator PPGTT",
            "0x000000fe0008: 13004001 unknown <== HEAD # rcs0 has no such command",
            "0x000000fe0014: 01000000 MI_USER_INTERRUPT",
            "0x000000fe0018: 00000000 MI_NOOP x2 <== TAIL",
            "Batch at 0x100000 on rcs0",
            "0x000000100000: 10000002 MI_STORE_DATA_IMM: Address 0x300000, Data 0xc0de <== ACTHD, fault in FAULT_REG",
            "0x000000100010: 18800100 MI_BATCH_BUFFER_START: Address Space Indicator PPGTT, Batch Buffer Start Address \
             0x100000 # chained: execution continues there",
            "HW context at 0x40000 rcs0",
            "[0x003] rcs0.INSTPM",
            "[0x005] rcs0.BB_STATE 0x00000020 Address Space Indicator PPGTT",
            "HW Status at 0x50000 rcs0",
            "[0x040] seqno (i915) 0x00000005",
        ],
    );
    assert!(!lines.iter().any(|line| line.starts_with("# fence[1]") && line.contains('(')), "{lines:#?}");
}

/// The ID or the platform names the family; all parts of a generation have its tables, and others have none.
#[test]
fn the_family_is_that_of_the_dump() {
    let family = |text: &str| Gpu::of(text).family().map(|family| family.title());
    assert_eq!(family("PCI ID: 0x0162\n"), Some("ivy-bridge"));
    assert_eq!(family("Platform: IVYBRIDGE\nPCI ID: 0x0166\n"), Some("ivy-bridge"), "a mobile part");
    assert_eq!(family("Platform: DG2\nPCI ID: 0x56c0\n"), Some("the Flex series"));
    assert_eq!(family("  PCI ID: 0x0126\n"), Some("sandy-bridge"));
    assert_eq!(family("Platform: SANDYBRIDGE\n"), Some("sandy-bridge"));
    for unknown in [0x0046, 0x0412, 0x4908, 0x8a52, 0xffff] {
        assert_eq!(family(&format!("PCI ID: {unknown:#06x}\n")), None);
    }
    assert_eq!(family("rcs0 command stream:\n"), None);
}

#[test]
fn tables_are_of_the_dump_or_of_the_option() {
    let source = |text: &str, card: Option<&str>| {
        let card = card.map(|name| named(Some(name).filter(|name| *name != "flex")).unwrap());
        Source::of_dump("an error state", &Gpu::of(text), card).map(|source| (source.to_string(), source.assumed))
    };
    let (text, assumed) = source("PCI ID: 0x0166\n", None).unwrap();
    assert_eq!(text, "an error state of GPU 8086:0166, decoded with the tables of ivy-bridge");
    assert!(!assumed);
    let error = source("Platform: IRONLAKE\nPCI ID: 0x0046\n", None).unwrap_err();
    assert!(
        error.starts_with("it is an error state of GPU 8086:0046 (IRONLAKE), which is unknown: there are tables for"),
        "{error}"
    );
    let (text, assumed) = source("PCI ID: 0x0046\n", Some("flex")).unwrap();
    assert!(
        assumed && text.contains("of GPU 8086:0046, decoded with the tables of the Flex series, which are assumed")
    );
    assert!(source("PCI ID: 0x0166\n", Some("sandy-bridge")).unwrap().1, "of another family");
    assert!(source("nothing\n", None).unwrap().1);
}

/// Before Linux 4.11, objects were rows of dwords after all registers, and engines and objects had other names.
#[test]
fn an_error_state_of_an_old_kernel_reads() {
    let rows = |dwords: &[u32]| {
        let rows = dwords.iter().enumerate().map(|(n, dword)| format!("{:08x} :  {dword:08x}\n", 4 * n));
        rows.collect::<String>()
    };
    let registers = |engine: &str, start: u32, acthd: u32| {
        format!(
            "{engine} command stream:\n  START: {start:#010x}\n  HEAD: 0x00000008\n  TAIL: 0x00000018\n  ACTHD: {acthd:#010x}\n"
        )
    };
    let text = format!(
        "Time: 1389779556 s 615838 us\nKernel: 3.16.0\nPCI ID: 0x0166\n{}{}\
         render ring (submitted by X [1234]) --- gtt_offset = 0x00100000\n{}\
         render ring --- 2 requests\n  seqno 0x00000005, emitted 12, tail 0x00000018\n\
         render ring --- ringbuffer = 0x00fe0000\n{}\
         render ring --- HW Status = 0x00050000\n[0000] 00000000 00000000 00000000 00000000\n\
         blitter ring --- gtt_offset = 0x00000000_00200000\n{}\
         render ring --- semaphore = 0x00060000\n{}no object --- gtt_offset = 0x1000\n00000000 :  zzzzzzzz\n",
        registers("render", 0x00fe_0000, 0x0010_0000),
        registers("blt", 0x00fd_0000, 0x0020_0000),
        rows(&[0x1000_0002, 0, 0x30_0000, 0xc0de, 0x0500_0000]),
        rows(&[0x1880_0100, 0x10_0000, 0x0100_0000, 0, 0, 0, 0, 0]),
        rows(&[0x1000_0002, 0, 0x30_0000, 0xbeef, 0x0500_0000]),
        rows(&[1, 2]),
    );
    let File::I915(text) = File::of(text.into_bytes()).unwrap() else { panic!("not recognised") };
    let family = Gpu::of(&text).family().unwrap();
    let mut understood = Understood::default();
    let lines =
        decoded(|emit| i915::decode(&mut limits::Budget::default(), &text, (family, &[]), &mut understood, emit));
    assert_in_order(
        &lines,
        &[
            "Batch at 0x100000 on rcs0",
            "0x000000100000: 10000002 MI_STORE_DATA_IMM: Address 0x300000, Data 0xc0de <== ACTHD",
            "# render ring --- 2 requests",
            "ring at 0xfe0000 rcs0",
            "0x000000fe0000: 18800100 MI_BATCH_BUFFER_START",
            "0x000000fe0008: 01000000 MI_USER_INTERRUPT <== HEAD",
            "HW Status at 0x50000 rcs0",
            "Batch at 0x200000 on bcs0",
            "0x000000200000: 10000002 MI_STORE_DATA_IMM: Address 0x300000, Data 0xbeef <== ACTHD",
            "semaphore at 0x60000 rcs0",
            "# batch of no object at 0x1000: no data follows",
        ],
    );
    assert!(!lines.iter().any(|line| line.starts_with("# 00000000 : 1")), "no row is left: {lines:#?}");
    let unknown: Vec<_> = understood.not_understood.iter().map(|(what, count)| (what.as_str(), *count)).collect();
    assert_eq!(unknown, [("batch without data", 1), ("semaphore, which is not decoded", 1)]);
    assert!(understood.check().is_ok() && understood.decoded > 4);
}

/// The messages of each GT are those of its own rings.
#[test]
fn rings_of_two_gts_are_separate() {
    let gt = |message: u32| {
        let mut ct = vec![0; 0x800];
        ct[0x400..0x403].copy_from_slice(&[0x0012_0002, message, 5]);
        let ct = packed(&ct);
        format!(
            "GuC Send CTB: raw: 0x00000000, 0x00000000/0x00000003, cached: 0/3, desc = 0x0, buf = 0x00001000 x 0x00000400\n\
             global --- GuC CT buffer = 0x00000000 00010000\n{ct}\n"
        )
    };
    let text = format!("rcs0 command stream:\n{}{}", gt(0x2000_1000), gt(0x2000_1001));
    let mut understood = Understood::default();
    let lines = decoded(|emit| i915::decode(&mut limits::Budget::default(), &text, (FLEX, &[]), &mut understood, emit));
    let of = |text: &str| lines.iter().filter(|line| line.starts_with(text)).count();
    assert_eq!((of("GuC CT buffer, host to GuC"), of("[0x0000] host > GuC")), (2, 2), "{lines:#?}");
    assert!(understood.not_understood.is_empty(), "{understood:?}");
}

#[test]
fn compressed_files_are_named() {
    for (bytes, name) in
        [(&[0x1f, 0x8b, 8, 0, 0][..], "gzip"), (b"\xfd7zXZ\0\0", "xz"), (&[0x28, 0xb5, 0x2f, 0xfd, 4], "zstd")]
    {
        assert_eq!(File::of(bytes.to_vec()).unwrap_err(), format!("it is compressed by {name}: decompress it first"));
    }
    assert!(File::of(b"No error state collected\n".to_vec()).unwrap_err().contains("no error was recorded"));
}

/// Addresses at the end of 64 bits do not overflow.
#[test]
fn an_address_of_64_bits_is_read() {
    let all = "0xffffffffffffffff";
    let text = ivy_bridge_dump().replace("START: 0x00fe0000", &format!("START: {all}"));
    let text = text.replace("ring = 0x00000000 00fe0000", "ring = ffffffff ffffffff");
    let family = Gpu::of(&text).family().unwrap();
    let lines = decoded(|emit| {
        i915::decode(&mut limits::Budget::default(), &text, (family, &[]), &mut Understood::default(), emit)
    });
    assert!(lines.iter().any(|line| line.starts_with("ring at 0xffffffffffffffff")), "{lines:#?}");
    let text = xe_dump().replace("[200000]", "[fffffffffffffff0]");
    let lines =
        decoded(|emit| xe::decode(&mut limits::Budget::default(), &text, &[], &mut Understood::default(), emit));
    assert!(lines.contains(&"# 0xfffffffffffffff0: 0x14 bytes".to_owned()), "{lines:#?}");
}

#[test]
fn damaged_error_states_of_ivy_bridge_are_read() {
    let dump = ivy_bridge_dump();
    let family = named(Some("ivy-bridge")).unwrap();
    for at in 0..dump.len() {
        let mut bytes = dump.clone().into_bytes();
        bytes[at] = if at % 2 == 0 { b'z' } else { b'f' };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let _ = decoded(|emit| {
            i915::decode(&mut limits::Budget::default(), &text, (family, &[]), &mut Understood::default(), emit)
        });
    }
}
