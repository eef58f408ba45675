// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Large clears: cleared memory reads as zeros, and memory without data stays unallocated.

use super::drivers::emit_clear;
use super::*;
use crate::generation::XE_HPG;
use crate::memory::VfMemory;
use crate::memory::tests::sparse;

const GIB: u64 = 1 << 30;
/// Chunk size with which xe clears a VF's memory in its identity map (here at address 0): 8 MiB.
const CHUNK: u64 = 8 * MIB;

/// A card with 1 GiB of local memory, of which VF 1 has 512 MiB at 256 MiB. The PF maps all of it in one page.
fn card() -> Memory {
    let vf = VfMemory { local: sparse(GIB as usize / 2), ggtt: None };
    let ggtt = Ggtt::new(SharedRegion::anonymous(GGTT_BYTES).unwrap());
    let memory =
        Memory::new(XE_HPG.page_tables, sparse(GIB as usize), ggtt, Arc::new(crate::host::NullHost)).with_vfs(vec![vf]);
    let put = |at: u64, value: u32| memory.local().slice(at, 4).unwrap().store(value, 0, Ordering::Release).unwrap();
    put(ROOT, 0x2003);
    put(0x2000, 0x883);
    put(0x1_0004, 2 << 4 | 1);
    (0..256).for_each(|page| put(0x2_0000 + 4 * page, (128 + page as u32) << 5 | 1));
    memory.set_lmem_cfg(1 << 31 | 1);
    memory.set_quota(Function::new(1).unwrap(), GIB / 2);
    memory.adopt_lmtt();
    memory
}

fn clear(memory: &Memory, addresses: std::ops::Range<u64>) -> usize {
    let mut tlb = Tlb::default();
    let mut steps = 0;
    for address in addresses.step_by(CHUNK as usize) {
        let mut blit = Blit::decode(&emit_clear(address, CHUNK as u32, 0)).unwrap();
        loop {
            let views = memory.views();
            steps += 1;
            if blit.step(&mut memory.gam(Function::PF, &views, &mut tlb), SPACE, 2 << 20).unwrap() == Progress::Done {
                break;
            }
        }
    }
    steps
}

/// Contract H.3.4, D.7: the PF clears all of a VF's memory, as after an FLR. The guest has written one byte per MiB.
/// Afterwards the VF's memory uses no host memory, adjacent memory of the PF is unchanged, and a second clear takes one
/// step per chunk.
#[test]
fn memory_of_a_virtual_function() {
    let memory = card();
    let (first, last) = (GIB / 4, 3 * GIB / 4);
    for at in (0..GIB / 2).step_by(MIB as usize) {
        memory.write_bar(Function::new(1).unwrap(), at, &[0x5a]);
    }
    for at in [first - 1, last] {
        memory.write_bar(Function::PF, at, &[0x77]);
    }
    let steps = clear(&memory, first..last);
    assert!(steps <= 64 * 4, "{steps} steps of about 2 MiB");
    assert_eq!(memory.stored_by(Function::new(1).unwrap()), 0);
    assert_eq!(clear(&memory, first..last), 64);
    let byte = |function, at| {
        let mut data = [0];
        memory.read_bar(function, at, &mut data);
        data[0]
    };
    assert_eq!((byte(Function::PF, first - 1), byte(Function::PF, last)), (0x77, 0x77));
    assert!((0..512).all(|mebibyte| byte(Function::new(1).unwrap(), mebibyte * MIB) == 0));
}

/// Contract B.9: a clear of memory without data allocates nothing, and a clear with any start and end is exact.
#[test]
fn memory_of_the_card_itself() {
    let memory = card();
    clear(&memory, 0x100_0000..0x300_0000);
    assert_eq!(memory.local().first_data(&(0x100_0000..0x300_0000)), None);
    let all = memory.local().slice(0x100_0000, 2 * CHUNK as usize).unwrap();
    all.write_slice(&vec![0xee; 2 * CHUNK as usize], 0).unwrap();
    let (first, len) = (0x12_3400, 0x40_3000);
    let mut blit = Blit::decode(&emit_clear(0x100_0000 + first, len as u32, 0)).unwrap();
    let (views, mut tlb) = (memory.views(), Tlb::default());
    while blit.step(&mut memory.gam(Function::PF, &views, &mut tlb), SPACE, 1 << 20).unwrap() == Progress::More {}
    let mut data = vec![0; 2 * CHUNK as usize];
    all.read_slice(&mut data, 0).unwrap();
    let (first, end) = (first as usize, (first + len) as usize);
    assert!(data[first..end].iter().all(|byte| *byte == 0));
    assert!(data[..first].iter().chain(&data[end..]).all(|byte| *byte == 0xee));
}
