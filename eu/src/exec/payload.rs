// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What the hardware writes into the registers of a thread at its start, from plain numbers (group C of the contract).

use super::thread::{CR, REG, SR, Thread};

/// Values of r0 that all threads of a dispatch have. EU-030.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// r0.0: start of the indirect data, a multiple of 64 from the general state base.
    pub indirect: u32,
    /// r0.3: sampler state pointer, and the size of a thread's scratch memory.
    pub sampler: u32,
    /// r0.4: binding table pointer.
    pub bindings: u32,
    /// r0.5, bits 31:10: surface state of the scratch memory.
    pub scratch: u32,
}

/// Local ids in the registers behind r0. EU-031, EU-033.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalIds {
    /// Work items of a group.
    pub local: [u32; 3],
    /// Dimensions in the order in which the lanes walk, the innermost first.
    pub order: [u32; 3],
    /// Dimensions of which the ids are written, one behind the other.
    pub emitted: [bool; 3],
    /// Registers that they take: those of the emitted dimensions are cut, or followed by zeros.
    pub registers: u32,
}

/// What the threads of the groups of a dispatch start with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// Lanes of a thread.
    pub simd: u32,
    /// Threads of a group.
    pub threads: u32,
    /// Channels of the last thread of a group; the others have all lanes. EU-034.
    pub last_mask: u32,
    /// Values of r0.
    pub header: Header,
    /// Local ids by hardware.
    pub ids: Option<LocalIds>,
    /// Inline data behind the local ids.
    pub inline: Option<[u8; REG]>,
    /// cr0.0 and cr0.1: modes of floats, and the exceptions that are enabled. EU-032.
    pub cr0: [u32; 2],
    /// See [`Thread::exceptions`].
    pub exceptions: bool,
}

/// The payload of a dispatch's threads. What does not depend on the group is made once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    dispatch: Dispatch,
    /// Bytes behind r0 of each thread, one thread behind the other.
    registers: Vec<u8>,
    /// Bytes of a thread among them.
    stride: usize,
}

/// Bits for this number of lanes.
fn lanes(count: u32) -> u32 {
    if count >= 32 { !0 } else { (1 << count) - 1 }
}

/// Channels of the last thread of a group with this number of work items. EU-034.
pub fn last_mask(items: u64, simd: u32) -> u32 {
    let simd = u64::from(simd.max(1));
    let before = items.saturating_sub(1) / simd * simd;
    lanes((items - before) as u32)
}

/// sr0.0 of a hardware thread: the inverse of [`super::thread_number`]. ISA-085, EU-032.
pub fn sr0(hardware: u32) -> u32 {
    hardware & 7 | (hardware & 0x18) << 1 | (hardware & 0xfe0) << 2
}

/// Bytes of the local ids of one dimension: words, padded to whole registers.
pub fn id_bytes(simd: u32) -> usize {
    (simd as usize * 2).next_multiple_of(REG)
}

/// Local ids of a thread, X then Y then Z, as words, each dimension padded to whole registers. EU-031, ISA-262.
pub fn local_ids(simd: u32, local: [u32; 3], order: [u32; 3], thread: u32) -> Vec<u8> {
    let row = id_bytes(simd);
    let mut bytes = vec![0; row * 3];
    let order = order.map(|dimension| dimension as usize % 3);
    for lane in 0..simd {
        let mut linear = u64::from(thread) * u64::from(simd) + u64::from(lane);
        let mut id = [0u64; 3];
        for dimension in order {
            let size = u64::from(local[dimension].max(1));
            id[dimension] = linear % size;
            linear /= size;
        }
        for (dimension, id) in id.iter().enumerate() {
            let at = dimension * row + lane as usize * 2;
            bytes[at..at + 2].copy_from_slice(&(*id as u16).to_le_bytes());
        }
    }
    bytes
}

impl Payload {
    /// Most registers of local ids: three dimensions of 32 lanes.
    pub const MOST_ID_REGISTERS: u32 = 6;

    /// Prepares the payload. Ids beyond [`Payload::MOST_ID_REGISTERS`] are dropped.
    pub fn new(dispatch: Dispatch) -> Payload {
        let ids = dispatch.ids.map_or(0, |ids| ids.registers.min(Payload::MOST_ID_REGISTERS) as usize * REG);
        let stride = ids + dispatch.inline.map_or(0, |inline| inline.len());
        let mut registers = Vec::with_capacity(stride * dispatch.threads as usize);
        for thread in 0..dispatch.threads {
            if let Some(LocalIds { local, order, emitted, .. }) = dispatch.ids {
                let all = local_ids(dispatch.simd, local, order, thread);
                let rows = all.chunks_exact(id_bytes(dispatch.simd).max(1)).zip(emitted);
                let mut bytes: Vec<u8> =
                    rows.filter(|(_, emitted)| *emitted).flat_map(|(row, _)| row).copied().collect();
                bytes.resize(ids, 0);
                registers.extend(bytes);
            }
            registers.extend(dispatch.inline.iter().flatten());
        }
        Payload { dispatch, registers, stride }
    }

    /// What it was made of.
    pub fn dispatch(&self) -> &Dispatch {
        &self.dispatch
    }

    /// Makes the state of a thread that of the thread `number` of a group, on the hardware thread with this number (EU-032:
    /// among the threads that run at the same time it is unique). Where it begins is left to the caller.
    pub fn write(&self, thread: &mut Thread, group: [u32; 3], number: u32, hardware: u32) {
        let Dispatch { simd, threads, last_mask, header, cr0, exceptions, .. } = &self.dispatch;
        let last = number.wrapping_add(1) == *threads;
        thread.reset(if last { *last_mask } else { lanes(*simd) });
        for (dword, value) in [
            header.indirect & !63,
            group[0],
            number & 0xff | threads << 24,
            header.sampler,
            header.bindings,
            header.scratch & !0x3ff | hardware & 0x3ff,
            group[1],
            group[2],
        ]
        .into_iter()
        .enumerate()
        {
            thread.set_grf(0, dword, value);
        }
        thread.set_u32(SR, sr0(hardware));
        thread.set_u32(CR, cr0[0]);
        thread.set_u32(CR + 4, cr0[1]);
        let start = (number as usize).saturating_mul(self.stride);
        if let Some(bytes) = self.registers.get(start..).and_then(|rest| rest.get(..self.stride)) {
            thread.file[REG..REG + bytes.len()].copy_from_slice(bytes);
        }
        thread.exceptions = *exceptions;
        thread.update_modes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// EU-033: the ids of each lane by the formula, for each order; EU-034: the mask of the last thread; EU-030, EU-031: r0
    /// and what follows it.
    #[test]
    fn threads_start_with_the_registers_of_the_contract() {
        let header = Header { indirect: 0x1240, sampler: 0x60, bindings: 0x80, scratch: 0x1_2345 << 10 };
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0]] {
            for (simd, emitted) in [(8, [true; 3]), (16, [true, false, true]), (32, [false, true, true])] {
                let local = [5, 4, 2];
                let count: u32 = emitted.iter().map(|emitted| u32::from(*emitted)).sum();
                let registers = count * simd.max(16) / 16;
                let dispatch = Dispatch {
                    simd,
                    threads: 40u32.div_ceil(simd),
                    last_mask: last_mask(40, simd),
                    header,
                    ids: Some(LocalIds { local, order, emitted, registers }),
                    inline: Some([0xab; REG]),
                    cr0: [0x4c0, 1 << 12],
                    exceptions: false,
                };
                let payload = Payload::new(dispatch);
                let mut thread = Thread::new(128, 0);
                for number in 0..40u32.div_ceil(simd) {
                    payload.write(&mut thread, [7, 8, 9], number, 0x3f5);
                    let rest = (40 - number * simd).min(simd);
                    assert_eq!(thread.mask, lanes(rest), "{simd} {number}");
                    let r0 = [0, 1, 2, 3, 4, 5, 6, 7].map(|dword| thread.grf(0, dword));
                    let threads = 40u32.div_ceil(simd) << 24;
                    assert_eq!(r0, [0x1240, 7, number | threads, 0x60, 0x80, 0x1_2345 << 10 | 0x3f5, 8, 9]);
                    assert_eq!(super::super::thread_number(thread.u32(SR)), 0x3f5);
                    assert_eq!((thread.u32(SR) & 0x48, thread.u32(CR + 4)), (0, 1 << 12));
                    assert!(thread.plain_floats);
                    for lane in 0..simd {
                        let linear = number * simd + lane;
                        let [inner, middle, outer] = order.map(|dimension| dimension as usize);
                        let mut id = [0; 3];
                        id[inner] = linear % local[inner];
                        id[middle] = linear / local[inner] % local[middle];
                        id[outer] = linear / local[inner] / local[middle] % local[outer];
                        let rows = (0..3).filter(|dimension| emitted[*dimension]);
                        for (row, dimension) in rows.enumerate() {
                            let at = REG + row * id_bytes(simd) + lane as usize * 2;
                            assert_eq!(u32::from(thread.u16(at)), id[dimension], "{order:?} {simd} {linear}");
                        }
                    }
                    assert_eq!(thread.grf(1 + registers as usize, 7), 0xabab_abab);
                    assert_eq!(thread.grf(2 + registers as usize, 0), 0);
                }
            }
        }
    }
}
