// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A group of threads as bytes, to go on in another process: what a virtual function that is moved has in flight.
//!
//! Micro-operations, which are numbered in the order of their decoding, are saved as addresses of their instructions. The code
//! is not saved: it must be at the same addresses where the group goes on.
//!
//! Bytes that are restored come from outside: all of them are checked ([`SavedGroup::from_bytes`]).

use super::environment::{Exchange, Group};
use super::program::Program;
use super::thread::{GRF_BYTES, NULL, Thread, bits};
use super::workgroup::Workgroup;

/// Version of the format, its first dword.
const VERSION: u32 = 2;
/// Address of a place at which no instruction is.
const NOWHERE: u32 = !0;
/// Largest number of instructions, products or cost that is restored, so that sums do not overflow.
const MOST: u64 = 1 << 48;
/// Most threads of a group that is restored.
const MOST_THREADS: usize = 1024;
/// Bytes of a group without its threads, and of a thread without its registers, at most.
const GROUP_BYTES: usize = 128;
const THREAD_BYTES: usize = 256;
/// Bytes of what two threads exchange.
const EXCHANGE_BYTES: usize = 16 + 2 * 128;

/// Flags of a thread.
const ENDED: u32 = 1;
const EXCEPTIONS: u32 = 2;
const IN_SYSTEM_ROUTINE: u32 = 4;

/// A group of threads apart from its program.
#[derive(Clone)]
pub struct SavedGroup {
    /// `next` and `waiting` of its threads are not used.
    group: Workgroup,
    registers: u32,
    places: Vec<Places>,
}

/// Where a thread is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Places {
    /// Address at which it goes on, relative to the instruction base.
    next: u32,
    /// Channels that wait, and the address of each.
    waits: u32,
    waiting: [u32; 32],
}

impl Workgroup {
    /// Saves the group, which executes `program`.
    pub fn save(&self, program: &Program) -> SavedGroup {
        let address = |uop| program.address_of(uop).unwrap_or(NOWHERE);
        let places = self.threads().iter().map(|thread| Places {
            next: thread.redirect.unwrap_or_else(|| address(thread.next)),
            waits: thread.waits(),
            waiting: std::array::from_fn(|channel| match thread.waits() >> channel & 1 {
                0 => NOWHERE,
                _ => address(thread.waiting[channel]),
            }),
        });
        SavedGroup { places: places.collect(), registers: program.registers, group: self.clone() }
    }
}

impl SavedGroup {
    /// Number of threads, registers of a thread, bytes of shared local memory.
    pub fn shape(&self) -> (usize, u32, usize) {
        (self.places.len(), self.registers, self.group.shared.slm.len())
    }

    /// Most bytes of a saved group of this shape.
    pub fn most_bytes(threads: usize, registers: u32, slm: usize) -> usize {
        let thread = THREAD_BYTES + EXCHANGE_BYTES + register_bytes(registers) + (NULL - GRF_BYTES);
        GROUP_BYTES + slm + threads.saturating_mul(thread)
    }

    /// Bytes of the host's memory that it has, about.
    pub fn host_bytes(&self) -> usize {
        self.group.host_bytes()
    }

    /// The group, which goes on by `program`.
    pub fn into_group(self, program: &mut Program) -> Workgroup {
        let SavedGroup { mut group, places, .. } = self;
        for (thread, places) in group.threads_mut().iter_mut().zip(places) {
            for channel in bits(places.waits) {
                let place = program.place(places.waiting[channel]);
                thread.wait(1 << channel, place);
            }
            thread.redirect = Some(places.next);
        }
        group
    }

    /// The bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let group = &self.group;
        let (threads, registers, slm) = self.shape();
        let mut out = Writer(Vec::with_capacity(SavedGroup::most_bytes(threads, registers, slm)));
        let Group { arrived, completed, exchanges, .. } = &group.shared;
        for dword in [VERSION, threads as u32, registers, slm as u32, exchanges.len() as u32] {
            out.u32(dword);
        }
        for dword in [*arrived, *completed, group.current as u32, u32::from(group.progress)] {
            out.u32(dword);
        }
        for quad in [group.turn, group.before, group.cost, group.outside] {
            out.u64(quad);
        }
        out.0.extend_from_slice(&group.shared.slm);
        for exchange in exchanges {
            out.u64(exchange.given);
            out.u64(exchange.taken);
            exchange.rows.as_flattened().iter().for_each(|dword| out.u32(*dword));
        }
        for ((thread, places), ended) in group.threads().iter().zip(&self.places).zip(&group.ended) {
            let flag = |set, flag| if set { flag } else { 0 };
            let running = flag(thread.exceptions, EXCEPTIONS) | flag(thread.in_system_routine, IN_SYSTEM_ROUTINE);
            out.u32(if *ended { ENDED } else { running });
            out.u64(thread.executed);
            if *ended {
                continue;
            }
            for dword in [thread.mask, thread.dispatch, thread.call_mask, thread.notifications, thread.base] {
                out.u32(dword);
            }
            out.u32(places.next);
            out.u32(places.waits);
            for channel in bits(places.waits) {
                out.u32(places.waiting[channel]);
            }
            out.0.extend_from_slice(&thread.file[..register_bytes(registers)]);
            out.0.extend_from_slice(&thread.file[GRF_BYTES..NULL]);
        }
        out.0
    }

    /// A saved group from its bytes; `None` if they are not those of one.
    pub fn from_bytes(bytes: &[u8]) -> Option<SavedGroup> {
        let mut from = Reader(bytes);
        let [version, threads, registers, slm, exchanges] = from.dwords()?;
        let [arrived, completed, current, progress] = from.dwords()?;
        let quads = [from.count()?, from.count()?, from.count()?, from.count()?];
        let [turn, before, cost, outside] = quads;
        let [threads, current, slm, exchanges] = [threads, current, slm, exchanges].map(|value| value as usize);
        let is_valid = version == VERSION
            && (registers == 128 || registers == 256)
            && progress <= 1
            && (1..=MOST_THREADS).contains(&threads)
            && current <= threads
            && exchanges <= threads.next_multiple_of(2);
        if !is_valid {
            return None;
        }
        let slm = from.bytes(slm)?.to_vec();
        let exchanges = (0..exchanges).map(|_| from.exchange()).collect::<Option<_>>()?;
        let mut group = Workgroup::new(threads, registers, 0);
        group.current = current;
        group.progress = progress != 0;
        group.turn = turn;
        group.before = before;
        group.cost = cost;
        group.outside = outside;
        group.shared = Group { slm, arrived, completed, current: 0, exchanges };
        let mut places = Vec::with_capacity(threads);
        for (thread, ended) in group.threads.iter_mut().zip(&mut group.ended) {
            let [flags] = from.dwords()?;
            (*ended, thread.executed) = (flags & ENDED != 0, from.count()?);
            let none = Places { next: NOWHERE, waits: 0, waiting: [NOWHERE; 32] };
            places.push(if *ended { none } else { from.thread(thread, flags, registers)? });
        }
        from.0.is_empty().then_some(SavedGroup { group, registers, places })
    }
}

fn register_bytes(registers: u32) -> usize {
    if registers > 128 { GRF_BYTES } else { GRF_BYTES / 2 }
}

struct Writer(Vec<u8>);

impl Writer {
    fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }
}

struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn bytes(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn dwords<const COUNT: usize>(&mut self) -> Option<[u32; COUNT]> {
        let bytes = self.bytes(4 * COUNT)?.as_chunks::<4>().0;
        bytes.first_chunk::<COUNT>().map(|raw| raw.map(u32::from_le_bytes))
    }

    fn count(&mut self) -> Option<u64> {
        let value = u64::from_le_bytes(*self.bytes(8)?.first_chunk()?);
        (value <= MOST).then_some(value)
    }

    fn exchange(&mut self) -> Option<Exchange> {
        Some(Exchange { given: self.count()?, taken: self.count()?, rows: [self.dwords()?, self.dwords()?] })
    }

    fn thread(&mut self, thread: &mut Thread, flags: u32, registers: u32) -> Option<Places> {
        thread.exceptions = flags & EXCEPTIONS != 0;
        thread.in_system_routine = flags & IN_SYSTEM_ROUTINE != 0;
        let [mask, dispatch, call_mask, notifications, base, next, waits] = self.dwords()?;
        let mut places = Places { next, waits, waiting: [NOWHERE; 32] };
        for channel in bits(waits) {
            [places.waiting[channel]] = self.dwords()?;
        }
        thread.file[..register_bytes(registers)].copy_from_slice(self.bytes(register_bytes(registers))?);
        thread.file[GRF_BYTES..NULL].copy_from_slice(self.bytes(NULL - GRF_BYTES)?);
        thread.update_modes();
        thread.dispatch = dispatch;
        thread.call_mask = call_mask;
        thread.notifications = notifications;
        thread.base = base;
        // A channel that waits is not enabled.
        thread.mask = mask & !waits;
        Some(places)
    }
}
