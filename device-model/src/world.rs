//! The three small traits through which the card meets the world: guest memory, interrupts and time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use vm_memory::VolatileSlice;

/// Number of a PCI function of the card: 0 is the physical function, 1..=63 the virtual functions (V13-002).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Function(pub u8);

/// Most virtual functions that the card can have (V13-002).
pub const MAX_VFS: usize = 63;
/// Functions that structures are indexed by: the PF and all VFs (V13-002).
pub const FUNCTIONS: usize = MAX_VFS + 1;

impl Function {
    /// The physical function.
    pub const PF: Function = Function(0);

    /// Virtual function `number`, 1 to 63; `None` for a number that no function has.
    pub fn vf(number: u32) -> Option<Function> {
        u8::try_from(number).ok().filter(|n| (1..=MAX_VFS).contains(&usize::from(*n))).map(Function)
    }

    /// Whether it is a virtual function.
    pub fn is_vf(self) -> bool {
        self.0 != 0
    }

    /// Place in structures that have one for each of the [`FUNCTIONS`].
    pub fn index(self) -> usize {
        usize::from(self.0) % FUNCTIONS
    }

    /// The function's bit in a set of functions.
    pub fn bit(self) -> u64 {
        1 << self.index()
    }
}

/// The functions whose bits are set.
pub fn functions(set: u64) -> impl Iterator<Item = Function> {
    (0..FUNCTIONS as u8).map(Function).filter(move |function| set & function.bit() != 0)
}

/// A guest address that the function's VMM has not mapped for the device, or a transport that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaFault {
    /// First I/O virtual address that could not be reached.
    pub iova: u64,
}

/// One function's guest memory, as it is mapped for the length of a step.
///
/// Whoever holds the view keeps its mappings alive, so an unmap is complete when the last view of the old
/// mappings is gone; a step takes a view, uses it and drops it.
pub trait DmaView: Send + Sync {
    /// Bytes from `iova` on that can be reached directly: between 1 and `len` of them, or `None` where the address
    /// is not mapped into this process.
    fn slice(&self, iova: u64, len: usize) -> Option<VolatileSlice<'_>>;

    /// Copies from memory that cannot be reached directly (a mapping without file descriptor).
    fn read_remote(&self, iova: u64, data: &mut [u8]) -> Result<(), DmaFault>;

    /// Copies to memory that cannot be reached directly.
    fn write_remote(&self, iova: u64, data: &[u8]) -> Result<(), DmaFault>;

    /// Pieces that the guest's memory is mapped in, for reports.
    fn sections(&self) -> usize {
        0
    }

    /// Whether an access may ask the function's client and wait for its answer. Such an access must not be made on the
    /// thread that serves this client, which would have to receive the answer: it fails there.
    fn asks_client(&self) -> bool {
        false
    }
}

/// Guest memory by function: the only way from the card to a guest's RAM.
pub trait Dma: Send + Sync {
    /// The present mappings of `function`; empty where it has no client.
    fn view(&self, function: Function) -> Arc<dyn DmaView>;
}

/// A port that nothing is connected to: no guest memory, and interrupts go nowhere.
pub struct Unconnected;

impl DmaView for Unconnected {
    fn slice(&self, _: u64, _: usize) -> Option<VolatileSlice<'_>> {
        None
    }

    fn read_remote(&self, iova: u64, _: &mut [u8]) -> Result<(), DmaFault> {
        Err(DmaFault { iova })
    }

    fn write_remote(&self, iova: u64, _: &[u8]) -> Result<(), DmaFault> {
        Err(DmaFault { iova })
    }
}

impl Dma for Unconnected {
    fn view(&self, _: Function) -> Arc<dyn DmaView> {
        Arc::new(Unconnected)
    }
}

impl InterruptSink for Unconnected {
    fn raise(&self, _: Function, _: u16) {}
}

/// Where interrupts leave the card.
pub trait InterruptSink: Send + Sync {
    /// Sends MSI `vector` of `function`; never blocks.
    fn raise(&self, function: Function, vector: u16);
}

/// Time as the card sees it, in nanoseconds from an arbitrary start; never goes backwards.
pub trait Clock: Send + Sync {
    /// Nanoseconds since the clock's start.
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

/// A clock that moves only when told to: the whole card becomes deterministic.
#[derive(Default)]
pub struct HandWoundClock(AtomicU64);

impl HandWoundClock {
    /// Moves time forward by `nanoseconds`.
    pub fn advance(&self, nanoseconds: u64) {
        self.0.fetch_add(nanoseconds, Ordering::SeqCst);
    }
}

impl Clock for HandWoundClock {
    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Rate of the card's timestamp counters in Hz: crystal 19.2 MHz, CTC shift 0 (RPM_CONFIG0 = 0xe; xe: xe_gt_clock).
pub const TIMESTAMP_HZ: u64 = 19_200_000;

/// Ticks of the 19.2 MHz timestamp counter in `nanoseconds` (52.083 ns a tick: 12 ticks are 625 ns).
pub fn ticks(nanoseconds: u64) -> u64 {
    nanoseconds / 625 * 12 + nanoseconds % 625 * 12 / 625
}

/// Nanoseconds that `ticks` of the timestamp counter last, rounded up, saturating.
pub fn ticks_to_ns(ticks: u64) -> u64 {
    (ticks / 12).saturating_mul(625).saturating_add((ticks % 12 * 625).div_ceil(12))
}
