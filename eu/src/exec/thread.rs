// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! State of a hardware thread: plain data that can be copied, saved and shown.

use std::ops::{Deref, DerefMut};

use crate::float::Round;

/// Bytes of the general registers of a thread with 256 of them.
pub const GRF_BYTES: usize = 8192;
/// Bytes of a register.
pub const REG: usize = 32;
/// Bytes of the register file with the architecture registers behind the general ones. The end is never used, so that a
/// packed access of 32 lanes to any register stays inside.
pub const FILE_BYTES: usize = GRF_BYTES + 1280;

// Offsets of architecture registers in the file.
pub const A0: usize = GRF_BYTES;
pub const ACC: usize = A0 + 32;
pub const MME: usize = ACC + 256;
pub const FLAGS: usize = MME + 256;
pub const CE: usize = FLAGS + 8;
pub const IP: usize = CE + 4;
pub const SR: usize = IP + 4;
pub const CR: usize = SR + 16;
pub const N: usize = CR + 16;
pub const TDR: usize = N + 16;
pub const TM: usize = TDR + 16;
pub const MSG: usize = TM + 32;
pub const FC: usize = MSG + 32;
pub const DBG: usize = FC + 144;
/// Bits 63:32 of the dwords in accumulators, at the same distances. No instruction names them.
pub const ACC_HIGH: usize = DBG + 16;
/// Bytes of all accumulators.
pub const ACCUMULATORS: usize = 256;
/// Where writes to null go.
pub const NULL: usize = ACC_HIGH + ACCUMULATORS;

/// Offset of an architecture register by its number field (ISA-080).
pub fn arf_offset(number: u8) -> Option<usize> {
    let index = usize::from(number & 15);
    Some(match number {
        0x00 => NULL,
        0x10 => A0,
        0x20..=0x27 => ACC + index * 32,
        0x28..=0x2f => MME + (index - 8) * 32,
        0x30 | 0x31 => FLAGS + index * 4,
        0x40 => CE,
        0x50..=0x57 => MSG + index * 4,
        0x70 => SR,
        0x80 => CR,
        0x90 => N,
        0xa0 => IP,
        0xb0 => TDR,
        0xc0 => TM,
        0xd0 => FC,
        0xd1..=0xd3 => FC + 124 + index * 4,
        0xf0 => DBG,
        _ => return None,
    })
}

/// Index of the uop at which a channel waits that never runs again.
pub const NEVER: u32 = u32::MAX;

/// Bytes of the register file, aligned to the host's cache lines, so that no access to a register crosses one.
#[derive(Clone, PartialEq, Eq)]
#[repr(align(64))]
pub struct File([u8; FILE_BYTES]);

impl Deref for File {
    type Target = [u8; FILE_BYTES];

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for File {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

/// A hardware thread.
#[derive(Clone)]
pub struct Thread {
    /// General registers, then architecture registers.
    pub file: Box<File>,
    /// Mask of a byte offset in the general registers of this thread.
    pub grf_mask: u32,
    /// Channels that are enabled.
    pub mask: u32,
    /// Channels that the dispatch enabled.
    pub dispatch: u32,
    /// Channels of the subroutine that runs; all in the main program. No other is enabled, wherever it waits. ISA-176.
    pub call_mask: u32,
    /// Index of the next uop.
    pub next: u32,
    /// For each channel that is not enabled, the uop at which it waits. ISA-170.
    pub waiting: [u32; 32],
    /// Channels that wait at a uop.
    waits: u32,
    /// Completions of the group's barrier that this thread has waited for.
    pub notifications: u32,
    /// Executed instructions.
    pub executed: u64,
    /// Address of the first instruction, relative to the instruction base.
    pub base: u32,
    /// True while cr0 has the mode of OpenCL: nearest even, denormals kept.
    pub plain_floats: bool,
    /// True while cr0 has the mode of OpenCL but for rounding, which is toward zero: that of the compiler's integer divisions.
    pub truncates_floats: bool,
    /// Address relative to the instruction base at which the thread goes on, instead of `next`.
    pub redirect: Option<u32>,
    /// Exceptions that cr0.1 enables are raised, and instructions with an illegal opcode are passed over without its enable, as
    /// in hardware. Without this they are faults, and there are no exceptions. EU-060.
    pub exceptions: bool,
    /// The thread is in the system routine.
    pub in_system_routine: bool,
}

/// cr0.0: the thread is in the system routine.
const SYSTEM_ROUTINE: u32 = 1 << 31;
/// cr0.1: the exception of illegal opcodes is enabled (IGT: `xe_exec_sip`).
pub const ILLEGAL_ENABLE: u32 = 1 << 12;
/// cr0.1: the thread has met an illegal opcode. Software clears it (IGT: `xe_exec_sip`).
pub const ILLEGAL_STATUS: u32 = 1 << 28;
/// cr0.1: software exceptions are enabled (EU-032).
pub const SOFTWARE_ENABLE: u32 = 1 << 13;
/// cr0.1: a software exception is pending. Software sets it, which is how IGC compiles `__builtin_IB_software_exception`, and
/// clears it (GDB: `INTELGT_CR0_1_SOFTWARE_EXCEPTION_CONTROL`).
pub const SOFTWARE_CONTROL: u32 = 1 << 29;

impl Thread {
    /// A thread with all registers 0 (ISA-264) and these channels enabled.
    pub fn new(registers: u32, dispatch: u32) -> Thread {
        let mut thread = Thread {
            file: Box::new(File([0; FILE_BYTES])),
            grf_mask: if registers > 128 { GRF_BYTES as u32 - 1 } else { GRF_BYTES as u32 / 2 - 1 },
            mask: 0,
            dispatch: 0,
            call_mask: !0,
            next: 0,
            waiting: [NEVER; 32],
            waits: 0,
            notifications: 0,
            executed: 0,
            base: 0,
            plain_floats: false,
            truncates_floats: false,
            redirect: None,
            exceptions: false,
            in_system_routine: false,
        };
        thread.reset(dispatch);
        thread
    }

    /// Makes the state that of a new thread.
    pub fn reset(&mut self, dispatch: u32) {
        let used = self.grf_mask as usize + 1;
        self.file[..used].fill(0);
        self.file[GRF_BYTES..].fill(0);
        self.mask = dispatch;
        self.dispatch = dispatch;
        self.call_mask = !0;
        self.next = 0;
        self.waiting = [NEVER; 32];
        self.waits = 0;
        self.notifications = 0;
        self.executed = 0;
        self.redirect = None;
        self.exceptions = false;
        self.in_system_routine = false;
        // ISA-085: dispatch mask and vector mask.
        self.set_u32(SR + 8, dispatch);
        self.set_u32(SR + 12, dispatch);
        self.update_modes();
    }

    /// A dword of the file.
    #[inline(always)]
    pub fn u32(&self, at: usize) -> u32 {
        match self.file.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
            Some(bytes) => u32::from_le_bytes(*bytes),
            None => 0,
        }
    }

    /// Writes a dword of the file.
    #[inline(always)]
    pub fn set_u32(&mut self, at: usize, value: u32) {
        if let Some(bytes) = self.file.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<4>()) {
            *bytes = value.to_le_bytes();
        }
    }

    /// Bytes of the thread's registers from a byte offset on, which wraps; `None` if they wrap within.
    #[inline(always)]
    pub(super) fn registers(&self, at: u32, count: usize) -> Option<&[u8]> {
        let at = (at & self.grf_mask) as usize;
        if at + count > self.grf_mask as usize + 1 { None } else { self.file.get(at..at + count) }
    }

    /// As [`Thread::registers`].
    #[inline(always)]
    pub(super) fn registers_mut(&mut self, at: u32, count: usize) -> Option<&mut [u8]> {
        let at = (at & self.grf_mask) as usize;
        if at + count > self.grf_mask as usize + 1 { None } else { self.file.get_mut(at..at + count) }
    }

    /// Bytes of the thread's registers from a byte offset on, all of which it has: the offset does not wrap. At most those behind the
    /// general registers in the file.
    #[inline(always)]
    pub(super) fn bytes_within(&self, at: u32, count: usize) -> &[u8] {
        // The mask shows the compiler that the file has the bytes, if it knows their number.
        let at = at as usize & (GRF_BYTES - 1);
        &self.file[at..at + count]
    }

    /// As [`Thread::bytes_within`].
    #[inline(always)]
    pub(super) fn bytes_within_mut(&mut self, at: u32, count: usize) -> &mut [u8] {
        let at = at as usize & (GRF_BYTES - 1);
        &mut self.file[at..at + count]
    }

    /// Consecutive dwords, as [`Thread::bytes_within`].
    #[inline(always)]
    pub(super) fn dwords_within<const COUNT: usize>(&self, at: u32) -> [u32; COUNT] {
        const { assert!(COUNT * 4 <= FILE_BYTES - GRF_BYTES) };
        let at = at as usize & (GRF_BYTES - 1);
        let mut values = [0; COUNT];
        for (value, bytes) in values.iter_mut().zip(self.file[at..at + COUNT * 4].as_chunks::<4>().0) {
            *value = u32::from_le_bytes(*bytes);
        }
        values
    }

    /// Consecutive qwords, as [`Thread::bytes_within`].
    #[inline(always)]
    pub(super) fn qwords_within<const COUNT: usize>(&self, at: u32) -> [u64; COUNT] {
        const { assert!(COUNT * 8 <= FILE_BYTES - GRF_BYTES) };
        let at = at as usize & (GRF_BYTES - 1);
        let mut values = [0; COUNT];
        for (value, bytes) in values.iter_mut().zip(self.file[at..at + COUNT * 8].as_chunks::<8>().0) {
            *value = u64::from_le_bytes(*bytes);
        }
        values
    }

    /// Consecutive dwords of the thread's registers from a byte offset on, which wraps.
    #[inline(always)]
    pub(super) fn dwords<const COUNT: usize>(&self, at: u32) -> [u32; COUNT] {
        let Some(bytes) = self.registers(at, COUNT * 4) else { return self.wrapped_dwords(at) };
        let mut values = [0; COUNT];
        for (value, bytes) in values.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *value = u32::from_le_bytes(*bytes);
        }
        values
    }

    /// Dwords that begin in the last registers and end in the first.
    #[cold]
    #[inline(never)]
    fn wrapped_dwords<const COUNT: usize>(&self, at: u32) -> [u32; COUNT] {
        let mut raw = [[0; 4]; COUNT];
        self.copy_registers(at, raw.as_flattened_mut());
        raw.map(u32::from_le_bytes)
    }

    /// Writes consecutive dwords, those of which the bit is set in `enabled`.
    #[inline(always)]
    pub(super) fn set_dwords<const COUNT: usize>(&mut self, at: u32, values: &[u32; COUNT], enabled: u32) {
        let all = u32::MAX >> (32 - COUNT);
        if enabled & all == all
            && let Some(bytes) = self.registers_mut(at, COUNT * 4)
        {
            // Copied whole, so that the stores are as wide as the loads after them.
            bytes.as_chunks_mut::<4>().0.copy_from_slice(&values.map(u32::to_le_bytes));
            return;
        }
        self.set_each_dword::<COUNT>(at, enabled, |index| values[index]);
    }

    /// As [`Thread::set_dwords`], of dwords that are not consecutive where they are.
    #[inline(always)]
    pub(super) fn set_each_dword<const COUNT: usize>(&mut self, at: u32, enabled: u32, value: impl Fn(usize) -> u32) {
        let all = u32::MAX >> (32 - COUNT);
        let Some(bytes) = self.registers_mut(at, COUNT * 4) else {
            return self.set_wrapped_dwords::<COUNT>(at, enabled, value);
        };
        let places = bytes.as_chunks_mut::<4>().0.iter_mut().enumerate();
        if enabled & all == all {
            for (index, place) in places {
                *place = value(index).to_le_bytes();
            }
        } else {
            // Without a branch for each lane: the others are written as they are.
            for (index, place) in places {
                let kept = u32::from_le_bytes(*place);
                let chosen = if enabled & 1 << index != 0 { value(index) } else { kept };
                *place = chosen.to_le_bytes();
            }
        }
    }

    /// Writes dwords that begin in the last registers and end in the first.
    #[cold]
    #[inline(never)]
    fn set_wrapped_dwords<const COUNT: usize>(&mut self, at: u32, enabled: u32, value: impl Fn(usize) -> u32) {
        for index in 0..COUNT {
            if enabled >> index & 1 != 0 {
                self.write_registers(at + index as u32 * 4, &value(index).to_le_bytes());
            }
        }
    }

    /// Copies bytes of the thread's registers from a byte offset on, which wraps.
    #[inline]
    pub(super) fn copy_registers(&self, at: u32, bytes: &mut [u8]) {
        if let Some(from) = self.registers(at, bytes.len()) {
            bytes.copy_from_slice(from);
            return;
        }
        for (index, byte) in (at..).zip(bytes) {
            *byte = self.file[(index & self.grf_mask) as usize];
        }
    }

    /// Writes bytes of the thread's registers from a byte offset on, which wraps.
    #[inline]
    pub(super) fn write_registers(&mut self, at: u32, bytes: &[u8]) {
        if let Some(into) = self.registers_mut(at, bytes.len()) {
            into.copy_from_slice(bytes);
            return;
        }
        for (index, byte) in (at..).zip(bytes) {
            let at = (index & self.grf_mask) as usize;
            self.file[at] = *byte;
        }
    }

    /// Writes a word of the file.
    #[inline]
    pub fn set_u16(&mut self, at: usize, value: u16) {
        if let Some(bytes) = self.file.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<2>()) {
            *bytes = value.to_le_bytes();
        }
    }

    /// A word of the file.
    #[inline]
    pub fn u16(&self, at: usize) -> u16 {
        match self.file.get(at..).and_then(|rest| rest.first_chunk::<2>()) {
            Some(bytes) => u16::from_le_bytes(*bytes),
            None => 0,
        }
    }

    /// Word `sub` of a0.
    #[inline]
    pub fn address(&self, sub: usize) -> u16 {
        self.u16(A0 + (sub & 15) * 2)
    }

    /// Dword of a general register.
    pub fn grf(&self, reg: usize, dword: usize) -> u32 {
        self.u32((reg * REG + dword * 4) & self.grf_mask as usize)
    }

    /// Writes a dword of a general register.
    pub fn set_grf(&mut self, reg: usize, dword: usize, value: u32) {
        self.set_u32((reg * REG + dword * 4) & self.grf_mask as usize, value);
    }

    /// Flag register 0 or 1.
    #[inline(always)]
    pub fn flag(&self, register: u8) -> u32 {
        self.u32(FLAGS + usize::from(register & 1) * 4)
    }

    /// Rounding mode. ISA-087.
    pub fn round(&self) -> Round {
        Round::from_code(self.u32(CR) >> 4)
    }

    /// True if denormals of F are kept. ISA-131.
    pub fn keeps_f(&self) -> bool {
        self.u32(CR) & 0x80 != 0
    }

    /// True if denormals of HF are kept.
    pub fn keeps_hf(&self) -> bool {
        self.u32(CR) & 0x400 != 0
    }

    /// To be called after writes to cr0.
    pub fn update_modes(&mut self) {
        let mode = self.u32(CR) & 0x4b0;
        self.plain_floats = mode == 0x480;
        self.truncates_floats = mode == 0x4b0;
    }

    /// To be called after writes to sr0: the dispatch mask is what it says. Channels that it adds are enabled, those that it
    /// takes away are not enabled any more, wherever they wait. ISA-085.
    pub fn update_dispatch(&mut self) {
        let dispatch = self.u32(SR + 8);
        let changed = dispatch ^ self.dispatch;
        self.waits &= !changed;
        for channel in bits(changed) {
            self.waiting[channel] = NEVER;
        }
        self.mask = self.mask & !changed | changed & dispatch;
        self.dispatch = dispatch;
    }

    /// Lets the thread begin, or go on, at an address relative to the instruction base.
    pub fn start_at(&mut self, address: u32) {
        self.redirect = Some(address);
    }

    /// Meets an illegal opcode at this address relative to the instruction base. Returns true if that is an exception: then cr0.1
    /// and cr0.2 say which and where. EU-060.
    pub(super) fn meet_illegal(&mut self, address: u32) -> bool {
        let status = self.u32(CR + 4);
        let raised = status & ILLEGAL_ENABLE != 0 && !self.in_system_routine;
        if raised {
            self.set_u32(CR + 4, status | ILLEGAL_STATUS);
            self.set_u32(CR + 8, address);
        }
        raised
    }

    /// Enters the system routine at this address relative to the instruction base, after an exception. Other exceptions are
    /// masked in it. EU-061.
    pub fn enter_system_routine(&mut self, address: u32) {
        self.set_u32(CR, self.u32(CR) | SYSTEM_ROUTINE);
        self.in_system_routine = true;
        self.start_at(address);
    }

    /// To be called after writes to cr0, with the address of the next instruction: a write that clears the bit of the system
    /// routine leaves it, for the address in cr0.2. Returns the address at which the thread goes on after a software exception
    /// that is pending now; it is in cr0.2 then. One that the system routine has not cleared is raised again when it is left. EU-061,
    /// EU-062.
    pub(super) fn control_written(&mut self, next: u32) -> Option<u32> {
        if self.in_system_routine {
            if self.u32(CR) & SYSTEM_ROUTINE != 0 {
                return None;
            }
            self.in_system_routine = false;
            self.start_at(self.u32(CR + 8));
        }
        let pending = SOFTWARE_ENABLE | SOFTWARE_CONTROL;
        if self.u32(CR + 4) & pending != pending {
            return None;
        }
        let address = self.redirect.unwrap_or(next);
        self.set_u32(CR + 8, address);
        Some(address)
    }

    /// Channels that wait at a uop.
    pub(super) fn waits(&self) -> u32 {
        self.waits
    }

    /// Enables the channels of the subroutine that wait at the uop `index`.
    #[inline]
    pub fn rejoin(&mut self, index: u32) {
        let candidates = self.waits & self.call_mask;
        if candidates == 0 {
            return;
        }
        // All channels at once, without a branch for each.
        let mut here = 0;
        for (channel, waiting) in self.waiting.iter().enumerate() {
            here |= if *waiting == index { 1 << channel } else { 0 };
        }
        here &= candidates;
        if here != 0 {
            self.set_waiting(here, NEVER);
            self.waits &= !here;
            self.mask |= here;
        }
    }

    /// Disables channels until the thread is at the uop `index`.
    #[inline]
    pub fn wait(&mut self, channels: u32, index: u32) {
        if channels != 0 {
            self.mask &= !channels;
            self.waits |= channels;
            self.set_waiting(channels, index);
        }
    }

    /// Sets the uop at which these channels wait.
    #[inline]
    fn set_waiting(&mut self, channels: u32, index: u32) {
        for (channel, waiting) in self.waiting.iter_mut().enumerate() {
            *waiting = if channels & 1 << channel != 0 { index } else { *waiting };
        }
    }
}

/// Numbers of the bits that are set.
#[inline(always)]
pub(super) fn bits(mut set: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = set.trailing_zeros() as usize;
        set &= set.wrapping_sub(1);
        (bit < 32).then_some(bit)
    })
}
