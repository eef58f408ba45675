// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Interfaces of the card to its VMM: guest memory, interrupts and time.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde::{Serialize, Serializer};
use vm_memory::VolatileSlice;

/// PCI function of the card by number: 0 is the physical function, 1 to [`MAX_VFS`] are the virtual functions (V13-002).
/// No other number is a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Function(u8);

/// Maximum number of virtual functions of a card of any family. That of a Flex card: its LMTT directory has 64 entries, of
/// which the first is the PF's (V13-002, contract D.1).
pub const MAX_VFS: u8 = 63;
/// Number of functions, for arrays indexed by function: the PF and all VFs (V13-002).
pub const FUNCTIONS: usize = MAX_VFS as usize + 1;

/// Its name as a device of a machine: "pf", "vf1".
impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("pf"),
            vf => write!(f, "vf{vf}"),
        }
    }
}

impl Serialize for Function {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Function {
    /// The physical function.
    pub const PF: Function = Function(0);

    /// The function with this number; `None` above [`MAX_VFS`].
    #[inline]
    pub const fn new(number: u8) -> Option<Function> {
        if number <= MAX_VFS { Some(Function(number)) } else { None }
    }

    /// Virtual function `number`, 1 to 63; `None` for any other number.
    #[inline]
    pub fn vf(number: u32) -> Option<Function> {
        u8::try_from(number).ok().and_then(Function::new).filter(|function| function.is_vf())
    }

    /// The physical function, then all virtual functions.
    pub fn all() -> impl Iterator<Item = Function> {
        (0..=MAX_VFS).map(Function)
    }

    /// All virtual functions.
    pub fn vfs() -> impl Iterator<Item = Function> {
        (1..=MAX_VFS).map(Function)
    }

    /// The first `count` virtual functions; all of them if there are not as many.
    pub fn first_vfs(count: u8) -> impl Iterator<Item = Function> {
        (1..=count.min(MAX_VFS)).map(Function)
    }

    /// The function's number; 0 is the physical function.
    #[inline]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The function with the next number; behind the last one, the physical function.
    #[inline]
    pub fn next(self) -> Function {
        Function::new(self.0.saturating_add(1)).unwrap_or(Function::PF)
    }

    /// Returns whether the function is a VF.
    #[inline]
    pub fn is_vf(self) -> bool {
        self.0 != 0
    }

    /// Index in arrays with [`FUNCTIONS`] elements.
    #[inline]
    pub fn index(self) -> usize {
        // The remainder is the number. With it, the compiler sees that the index is in bounds.
        usize::from(self.0) % FUNCTIONS
    }

    /// The function's bit in a set of functions.
    #[inline]
    pub fn bit(self) -> u64 {
        1 << self.index()
    }
}

/// The set of all functions, one bit each.
pub const ALL_FUNCTIONS: u64 = u64::MAX;

/// Iterates over the functions with a set bit in `set`.
#[inline]
pub fn functions(set: u64) -> impl Iterator<Item = Function> {
    Function::all().filter(move |function| set & function.bit() != 0)
}

/// A failed access: the function's VMM does not map the address for the device, or the transport failed, or the VMM has
/// not answered ([`DmaView::unanswered`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaFault {
    /// First I/O virtual address that could not be accessed.
    pub iova: u64,
}

/// Type of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Data or instruction read.
    Read,
    /// Data write, also one that reads the old value.
    Write,
}

/// Guest memory of one function, as mapped for the duration of one step.
///
/// A view keeps its mappings alive, so an unmap is complete when the last view of the old mappings has been dropped. A
/// view must not be held beyond the end of the step.
///
/// A view of memory whose writes are logged marks all bytes that `slice` returns for [`Access::Write`] when it returns
/// them, and those that `write_remote` changes. So a mark may precede its write by the rest of a step: a VMM reads and
/// resets its log, waits until no step uses memory that was taken before, and then copies the pages.
pub trait DmaView: Send + Sync {
    /// Returns a slice of directly mapped memory that starts at `iova`, 1 to `len` bytes long, or `None` if the address
    /// is not mapped into this process. The caller must not write to a slice for [`Access::Read`].
    fn slice(&self, iova: u64, len: usize, access: Access) -> Option<VolatileSlice<'_>>;

    /// Copies from memory that is not directly mapped (a mapping without a file descriptor). By default there is none.
    fn read_remote(&self, iova: u64, _data: &mut [u8]) -> Result<(), DmaFault> {
        Err(DmaFault { iova })
    }

    /// Copies to memory that is not directly mapped. By default there is none.
    fn write_remote(&self, iova: u64, _data: &[u8]) -> Result<(), DmaFault> {
        Err(DmaFault { iova })
    }

    /// Number of sections of guest memory, for reports.
    fn sections(&self) -> usize {
        0
    }

    /// Returns whether an access may send a request to the function's client and wait for the response. Such an access
    /// fails on the thread that serves this client, because that thread would have to receive the response.
    fn may_wait_for_client(&self) -> bool {
        false
    }

    /// Returns whether an access through this view has failed because the function's client has not answered in time.
    /// Nothing is known about the address then: the access is to be tried again in a later step, for a limited time. It may
    /// have been performed, or may yet be.
    fn unanswered(&self) -> bool {
        false
    }
}

/// The time for which accesses that a client does not answer ([`DmaView::unanswered`]) are tried again. It begins with the
/// first of them, and ends when all accesses of an attempt are answered, or their work is given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryTime {
    /// Time of the first attempt, in nanoseconds.
    since: Option<u64>,
}

impl RetryTime {
    /// Returns whether an attempt that fails at `now` may be repeated: until `limit` has passed since the first. Both in
    /// nanoseconds, of one clock in all calls.
    pub fn may_repeat(&mut self, now: u64, limit: u64) -> bool {
        let since = *self.since.get_or_insert(now);
        now.saturating_sub(since) < limit
    }

    /// Ends the repetition. The next failed attempt is the first.
    pub fn end(&mut self) {
        self.since = None;
    }
}

/// Guest memory by function: the card accesses guest RAM only through this trait.
pub trait Dma: Send + Sync {
    /// The current mappings of `function`; empty if it has no client.
    fn view(&self, function: Function) -> Arc<dyn DmaView>;
}

/// A host without guest memory that drops all interrupts.
pub struct NullHost;

impl DmaView for NullHost {
    fn slice(&self, _: u64, _: usize, _: Access) -> Option<VolatileSlice<'_>> {
        None
    }
}

impl Dma for NullHost {
    fn view(&self, _: Function) -> Arc<dyn DmaView> {
        Arc::new(NullHost)
    }
}

impl InterruptSink for NullHost {
    fn raise(&self, _: Function, _: u16) {}

    fn set_line(&self, _: Function, _: bool) {}
}

/// Receiver of the card's interrupts, and of what else the card reports to its machine.
pub trait InterruptSink: Send + Sync {
    /// Sends MSI `vector` of `function`; never blocks.
    fn raise(&self, function: Function, vector: u16);

    /// Whether `function` requests an interrupt has changed: the level of its interrupt pin, for a function that has one.
    /// Calls for one function are in the order of the changes. Never blocks, and must not access the card.
    fn set_line(&self, function: Function, requested: bool);

    /// Sends the PCI Express message ERR_FATAL of `function`; never blocks. Called without locks held.
    fn fatal_error(&self, function: Function) {
        let _ = function;
    }

    /// The ranges of BAR `bar` of `function` that may be mapped have changed
    /// ([`OwnMemory::mappings`](crate::gpu::OwnMemory::mappings)). Called without locks held.
    fn mappings_changed(&self, function: Function, bar: u8) {
        let _ = (function, bar);
    }
}

/// The card's monotonic clock, in nanoseconds since an arbitrary epoch.
pub trait Clock: Send + Sync {
    /// Nanoseconds since the clock's epoch.
    fn now(&self) -> u64;
}

/// The host's monotonic clock.
pub struct HostClock(Instant);

impl Default for HostClock {
    fn default() -> Self {
        HostClock(Instant::now())
    }
}

impl Clock for HostClock {
    fn now(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// A manually advanced clock, which makes the card deterministic.
#[derive(Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// Advances the time by `nanoseconds`.
    pub fn advance(&self, nanoseconds: u64) {
        self.0.fetch_add(nanoseconds, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Rate of a generation's timestamp counters, which count from the start of the card's clock.
#[derive(Clone, Copy, Debug)]
pub struct Timebase {
    hz: u64,
    /// The rate as a reduced fraction: this number of ticks in `nanoseconds`.
    ticks: u64,
    nanoseconds: u64,
}

impl Timebase {
    /// Creates the rate of a counter of `hz` ticks per second, at most 10^9.
    #[allow(clippy::arithmetic_side_effects, reason = "hz and every divisor are not 0")]
    pub const fn new(hz: u64) -> Self {
        let (mut divisor, mut rest) = (hz, 1_000_000_000 % hz);
        while rest != 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        Timebase { hz, ticks: hz / divisor, nanoseconds: 1_000_000_000 / divisor }
    }

    /// Returns the number of ticks per second.
    #[inline]
    pub const fn hz(self) -> u64 {
        self.hz
    }

    /// Converts nanoseconds to ticks, rounded down.
    #[inline]
    #[allow(clippy::arithmetic_side_effects, reason = "the rate is at most 10^9, so no product exceeds the time")]
    pub const fn ticks(self, nanoseconds: u64) -> u64 {
        nanoseconds / self.nanoseconds * self.ticks + nanoseconds % self.nanoseconds * self.ticks / self.nanoseconds
    }

    /// Converts ticks to nanoseconds, rounded up, saturating.
    #[inline]
    #[allow(clippy::arithmetic_side_effects, reason = "the remainder is below 10^9")]
    pub const fn nanoseconds(self, ticks: u64) -> u64 {
        let seconds = (ticks / self.ticks).saturating_mul(self.nanoseconds);
        seconds.saturating_add((ticks % self.ticks * self.nanoseconds).div_ceil(self.ticks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_above_the_last_vf_is_no_function() {
        let numbers = || 0..=u8::MAX;
        assert!(numbers().filter_map(Function::new).eq(Function::all()));
        assert_eq!((Function::new(0), Function::new(64), Function::new(255)), (Some(Function::PF), None, None));
        assert_eq!((Function::vf(0), Function::vf(64), Function::vf(257)), (None, None, None));
        assert!(Function::all().map(Function::index).eq(0..FUNCTIONS));
        assert!(Function::first_vfs(u8::MAX).eq(Function::vfs()));
        assert_eq!(Function::all().last().map(Function::next), Some(Function::PF));
    }
}
