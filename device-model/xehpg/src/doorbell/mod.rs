// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Doorbells: an access to a page notifies the GuC without a message (V13-081..100).
//!
//! Every function has a window of 1,024 pages, each of which a driver can map into a user process. The GuC arms up to
//! 256 physical doorbells, each of which watches one of these pages. An access to a watched page is a ring, which
//! passes three stages (V13-082):
//!
//! 1. address, cookie and Valid of a physical doorbell, in one word (`Armed`);
//! 2. status in the GTI, one register for each group of 32 doorbells, in which rings are coalesced;
//! 3. interrupt status in the GuC: taking a group moves its status there and clears it.
//!
//! When the status of a group becomes nonzero, the group sends a message, which sets its bit in DOORBELL_CTRL. It sends
//! no further message until it is taken. Therefore the GuC has at most 256 doorbells to serve, however often a guest
//! rings.
//!
//! Doorbells in memory, which watch a cache line of a guest, require a snooping bus; a card on PCI Express has only the
//! windows (V13-090). A window page has no memory for a cookie, so the physical doorbell stores it. The cookie counts
//! the rings, and 0 means cleared, as in the cache line that drivers share with doorbells in memory (i915:
//! selftest_guc_doorbells.c).
//!
//! A ring takes no lock. The GuC arms and disarms doorbells under its lock.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod registers;
#[cfg(test)]
mod tests;

use arctic_sriov::number::low;
use bitfield_struct::bitfield;
use serde::Serialize;

use crate::host::{FUNCTIONS, Function};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
pub use registers::{DoorbellAddress, DoorbellControl, DoorbellRegister};

/// Number of physical doorbells of the card (V13-081).
pub const DOORBELLS: usize = 256;
/// Number of pages in a function's window, and thus of doorbells that its driver can assign (V13-091).
pub const PAGES: u16 = 1024;
/// Offset of the window in GTTMMADR (V13-007).
pub const WINDOW: u64 = 4 << 20;
/// Size of a page of the window in bytes.
pub const PAGE_BYTES: u64 = 4096;
/// Value read from a page without an armed doorbell: the read was not a ring (IGT: xe_mmap.c, test_pci_membarrier;
/// i915: selftest_guc_doorbells.c, NACK). xe maps the last page to user space as a write barrier.
pub const NACK: u32 = 0xdead_beef;
/// Value read from an armed page: the read was a ring (i915: selftest_guc_doorbells.c, ACK).
pub const ACK: u32 = 0xaced_beef;

/// Number of doorbells in a group.
const GROUP: usize = 32;
/// Number of groups, each with one status register (V13-097).
const GROUPS: usize = DOORBELLS / GROUP;

/// [`DoorbellControl::send_to_core`].
pub const SEND_TO_CORE: u32 = DoorbellControl::new().with_send_to_core(true).into_bits();

/// A page of a function's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Page(u16);

impl Page {
    /// The page that contains byte `offset` of GTTMMADR; `None` outside the window.
    pub fn at(offset: u64) -> Option<Page> {
        let page = offset.checked_sub(WINDOW)? / PAGE_BYTES;
        u16::try_from(page).ok().filter(|page| *page < PAGES).map(Page)
    }

    /// Its offset in GTTMMADR: the MMIO offset by which drivers identify a doorbell (V13-096).
    #[allow(clippy::arithmetic_side_effects, reason = "a page is below PAGES")]
    pub fn offset(self) -> u64 {
        WINDOW + u64::from(self.0) * PAGE_BYTES
    }
}

/// Reason why a doorbell cannot be armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is already armed, and arming must not clear Valid. Only a read of a cleared cookie clears it (V13-086).
    IsArmed,
}

/// Result of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// No doorbell is armed for the page.
    Missed,
    /// The doorbell's status bit is set, in a group that had already rung.
    Collapsed,
    /// The status of these groups became nonzero: the target must be notified.
    Message {
        /// Bits of [`DoorbellControl::groups`] that the message set (V13-098).
        groups: u8,
        /// Target of the notification.
        to: Route,
    },
}

/// Target of ring notifications (V13-099).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The physical function's driver, by the GuC's interrupt. The default after reset.
    Host,
    /// The GuC's core.
    Guc,
}

/// Ring counters of one function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rings {
    /// Rings of an armed doorbell.
    pub rung: u64,
    /// Accesses to pages without an armed doorbell.
    pub missed: u64,
}

/// Set of physical doorbells that have rung.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rung([u32; GROUPS]);

impl Rung {
    /// The doorbell numbers, ascending.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).step_by(GROUP).zip(self.0).flat_map(|(first, mut rung)| {
            std::iter::from_fn(move || {
                let [next, ..] = rung.trailing_zeros().to_le_bytes();
                let found = (rung != 0).then_some(first | next);
                rung &= rung.wrapping_sub(1);
                found
            })
        })
    }
}

fn group(index: u8) -> usize {
    usize::from(index) / GROUP
}

fn bit(index: u8) -> u32 {
    1 << (usize::from(index) % GROUP)
}

/// State of a physical doorbell, 0 if it is not armed. One word, so a concurrent ring never observes a partially armed
/// doorbell.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
struct Armed {
    /// Number of the watched page.
    #[bits(10)]
    page_number: u16,
    #[bits(6)]
    __: u8,
    /// Number of the function that owns the page.
    #[bits(6)]
    function_number: u8,
    __: u8,
    /// The doorbell has rung and was not served.
    pending: bool,
    /// Valid (V13-084).
    valid: bool,
    /// The cookie; 0 is cleared.
    cookie: u32,
}

impl Armed {
    const PENDING: u64 = Armed::new().with_pending(true).into_bits();
    const COOKIE: u64 = Armed::new().with_cookie(u32::MAX).into_bits();

    /// State after arming by the GuC. The cookie that the block captures is nonzero, that is, not cleared.
    fn of(function: Function, page: Page) -> Self {
        Self::watched(function, page).with_cookie(1)
    }

    fn function(self) -> Function {
        // The field has six bits, so each of its values is a function.
        Function::new(self.function_number()).unwrap_or(Function::PF)
    }

    fn page(self) -> Page {
        Page(self.page_number())
    }

    fn watches(self, function: Function, page: Page) -> bool {
        self.with_pending(false).with_cookie(0) == Self::watched(function, page)
    }

    fn watched(function: Function, page: Page) -> Self {
        Armed::new().with_valid(true).with_function_number(function.number()).with_page_number(page.0 & (PAGES - 1))
    }

    /// State after a ring: the cookie is incremented and skips 0.
    fn rung(self) -> Self {
        self.with_pending(true).with_cookie(self.cookie().checked_add(1).unwrap_or(1))
    }
}

/// State of a group. One word, so status bits move atomically from one to the other.
#[bitfield(u64)]
struct GroupStatus {
    /// Status in the GTI.
    status: u32,
    /// Interrupt status in the GuC.
    interrupt_status: u32,
}

impl GroupStatus {
    const INTERRUPT_STATUS: u64 = GroupStatus::new().with_interrupt_status(u32::MAX).into_bits();
}

/// The doorbell block of the card.
pub struct Doorbells {
    armed: Box<[AtomicU64]>,
    groups: Box<[AtomicU64]>,
    control: AtomicU32,
    rings: Box<[[AtomicU64; 2]]>,
}

impl Default for Doorbells {
    fn default() -> Self {
        Self::new()
    }
}

impl Doorbells {
    /// A block without armed doorbells, as after power-on.
    pub fn new() -> Self {
        Self::of(DOORBELLS)
    }

    /// Like [`Doorbells::new`], with `count` doorbells, at most [`DOORBELLS`].
    pub fn of(count: usize) -> Self {
        Doorbells {
            armed: (0..count).map(|_| AtomicU64::new(0)).collect(),
            groups: (0..count.div_ceil(GROUP)).map(|_| AtomicU64::new(0)).collect(),
            control: AtomicU32::new(0),
            rings: (0..FUNCTIONS).map(|_| Default::default()).collect(),
        }
    }

    fn indices(&self) -> impl Iterator<Item = u8> + use<> {
        (0..=u8::MAX).take(self.armed.len())
    }

    #[allow(clippy::indexing_slicing, reason = "indices come from `indices`, or the block has all 256 doorbells")]
    fn doorbell(&self, index: u8) -> &AtomicU64 {
        &self.armed[usize::from(index)]
    }

    #[allow(clippy::indexing_slicing, reason = "there is a group for each doorbell")]
    fn group_of(&self, group: usize) -> &AtomicU64 {
        &self.groups[group]
    }

    #[allow(clippy::indexing_slicing, reason = "Function::index is below FUNCTIONS")]
    fn rings_of(&self, function: Function) -> &[AtomicU64; 2] {
        &self.rings[function.index()]
    }

    fn word(&self, index: u8) -> Armed {
        Armed::from(self.doorbell(index).load(Ordering::Acquire))
    }

    /// Sets Valid of a doorbell, which then watches `page` of `function` (V13-084, V13-085, V13-096). Corresponds to
    /// the GuC's message, which no other client of the message channel can send.
    pub fn arm(&self, index: u8, function: Function, page: Page) -> Result<(), Refused> {
        let armed = Armed::of(function, page);
        match self.doorbell(index).compare_exchange(0, armed.into(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(()),
            Err(_) => Err(Refused::IsArmed),
        }
    }

    /// Clears the cookie of a doorbell; it stays valid until the block reads the cookie (V13-086).
    pub fn clear_cookie(&self, index: u8) {
        self.doorbell(index).fetch_and(!Armed::COOKIE, Ordering::AcqRel);
    }

    /// Reads a doorbell's cookie as the block does. Only the read of a cleared cookie clears Valid (V13-086). A ring
    /// that was not served is then dropped: its remaining status bit is ignored.
    pub fn read_cookie(&self, index: u8) {
        let word = self.word(index);
        if word.valid() && word.cookie() == 0 {
            let cell = self.doorbell(index);
            // Fails if a concurrent reader has already cleared Valid. The doorbell may have been armed again since.
            let _ = cell.compare_exchange(word.into(), Armed::new().into(), Ordering::AcqRel, Ordering::Acquire);
        }
    }

    /// Disarms a doorbell: clears its cookie and makes the block read it.
    pub fn disarm(&self, index: u8) {
        self.clear_cookie(index);
        self.read_cookie(index);
    }

    /// Disarms all doorbells of a function in FLR (V13-119).
    pub fn reset_function(&self, function: Function) {
        for index in self.indices() {
            let word = self.word(index);
            if word.valid() && word.function() == function {
                self.disarm(index);
            }
        }
    }

    /// Disarms all doorbells and routes rings to the host, for a GuC that was reset or is not loaded yet.
    pub fn reset(&self) {
        for index in self.indices() {
            self.disarm(index);
        }
        // Control first: a group whose status is set and whose control bit is clear would never send a message again.
        self.control.swap(0, Ordering::AcqRel);
        for group in &self.groups {
            group.swap(0, Ordering::AcqRel);
        }
    }

    /// Handles an access to `page` of the window of `function`: a write to any byte with any value, or a read (V13-091,
    /// V13-092, V13-094).
    pub fn ring(&self, function: Function, page: Page) -> Ring {
        let (mut found, mut groups) = (false, 0);
        for index in self.indices() {
            if !self.ring_one(index, function, page) {
                continue;
            }
            found = true;
            // The GTI notifies the GuC when a group's status changes from zero to nonzero (V13-097).
            let rung = GroupStatus::new().with_status(bit(index));
            let before = GroupStatus::from(self.group_of(group(index)).fetch_or(rung.into(), Ordering::AcqRel));
            if before.status() == 0 {
                groups |= 1 << group(index);
            }
        }
        let [rung, missed] = self.rings_of(function);
        if found { rung } else { missed }.fetch_add(1, Ordering::Relaxed);
        match (found, groups) {
            (false, _) => Ring::Missed,
            (true, 0) => Ring::Collapsed,
            (true, groups) => {
                let message = DoorbellControl::new().with_groups(groups);
                let control = self.control.fetch_or(message.into(), Ordering::AcqRel);
                Ring::Message { groups, to: route(control) }
            }
        }
    }

    fn ring_one(&self, index: u8, function: Function, page: Page) -> bool {
        let cell = self.doorbell(index);
        // Fast path: most doorbells watch another page, so the cost is one load each.
        if !Armed::from(cell.load(Ordering::Acquire)).watches(function, page) {
            return false;
        }
        let change = |word: u64| {
            let word = Armed::from(word);
            (word.watches(function, page) && word.cookie() != 0).then(|| word.rung().into())
        };
        let rung = cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, change).is_ok();
        if !rung && self.word(index).watches(function, page) {
            // The block reads the cookie of the doorbell that was rung, which is cleared.
            self.read_cookie(index);
        }
        rung
    }

    /// Moves a group's status to its interrupt status (V13-089). Ordering: clears the bit in DOORBELL_CTRL first. A
    /// concurrent ring sets it again, possibly for a status that was already moved and is empty when next taken.
    fn take_group(&self, group: usize) {
        let taken = DoorbellControl::new().with_groups(1 << group);
        self.control.fetch_and(!u32::from(taken), Ordering::AcqRel);
        let moved = |word: u64| {
            let group = GroupStatus::from(word);
            let moved = GroupStatus::new().with_interrupt_status(group.interrupt_status() | group.status());
            (group.status() != 0).then_some(moved.into())
        };
        // Fails if no doorbell of the group has rung.
        let _ = self.group_of(group).fetch_update(Ordering::AcqRel, Ordering::Acquire, moved);
    }

    /// Moves a group's status to its interrupt status, then clears and returns the interrupt status.
    fn serve_group(&self, group: usize) -> u32 {
        self.take_group(group);
        let before = self.group_of(group).fetch_and(!GroupStatus::INTERRUPT_STATUS, Ordering::AcqRel);
        GroupStatus::from(before).interrupt_status()
    }

    fn group(&self, ordinal: u16) -> GroupStatus {
        self.groups.get(usize::from(ordinal)).map_or(0, |group| group.load(Ordering::Acquire)).into()
    }

    /// Returns the doorbells that have rung for the GuC since the last call; none while rings are routed to the host. A
    /// status bit that was set before the doorbell was last armed is ignored.
    pub fn take_rung(&self) -> Rung {
        let mut taken = Rung::default();
        let control = self.control.load(Ordering::Acquire);
        if route(control) == Route::Host {
            return taken;
        }
        for (group, taken) in (0..self.groups.len()).zip(&mut taken.0) {
            // Independent of DOORBELL_CTRL, where the host may have cleared the group's bit: it may be taking the
            // group concurrently, after the message of its ring has triggered this call.
            if self.group_of(group).load(Ordering::Acquire) != 0 {
                *taken = self.serve_group(group);
            }
        }
        for index in taken.iter() {
            let before = Armed::from(self.doorbell(index).fetch_and(!Armed::PENDING, Ordering::AcqRel));
            if !before.valid() || !before.pending() {
                taken.0.iter_mut().skip(group(index)).take(1).for_each(|rung| *rung &= !bit(index));
            }
        }
        taken
    }

    /// Function and page that a physical doorbell watches.
    pub fn watched(&self, index: u8) -> Option<(Function, Page)> {
        let word = self.word(index);
        word.valid().then(|| (word.function(), word.page()))
    }

    /// The first physical doorbell that watches `page` of `function`.
    pub fn watching(&self, function: Function, page: Page) -> Option<u8> {
        self.indices().find(|index| self.word(*index).watches(function, page))
    }

    /// Ring counters of `function`.
    pub fn rings(&self, function: Function) -> Rings {
        let [rung, missed] = self.rings_of(function);
        Rings { rung: rung.load(Ordering::Relaxed), missed: missed.load(Ordering::Relaxed) }
    }

    /// Reads element `ordinal` of a register on behalf of the host.
    pub fn read(&self, register: DoorbellRegister, ordinal: u16) -> u32 {
        match register {
            DoorbellRegister::Address => {
                let watched = u8::try_from(ordinal).ok().and_then(|index| self.watched(index));
                watched.map_or(0, |(_, page)| DoorbellAddress::from(low(page.offset())).with_valid(true).into())
            }
            DoorbellRegister::Function => {
                let watched = u8::try_from(ordinal).ok().and_then(|index| self.watched(index));
                watched.map_or(0, |(function, _)| u32::from(function.number()))
            }
            DoorbellRegister::Status => self.group(ordinal).status(),
            DoorbellRegister::InterruptStatus => {
                if usize::from(ordinal) < self.groups.len() {
                    self.take_group(ordinal.into());
                }
                self.group(ordinal).interrupt_status()
            }
            DoorbellRegister::Control => self.control.load(Ordering::Acquire),
        }
    }

    /// Writes element `ordinal` of a register on behalf of the host. Only the GuC can write addresses and Valid
    /// (V13-083, V13-085, V13-093), and only the hardware can write the status (V13-087). Returns whether the GuC must
    /// now serve doorbells.
    pub fn write(&self, register: DoorbellRegister, ordinal: u16, value: u32) -> bool {
        match register {
            DoorbellRegister::Address | DoorbellRegister::Function | DoorbellRegister::Status => false,
            DoorbellRegister::InterruptStatus => {
                if let Some(group) = self.groups.get(usize::from(ordinal)) {
                    let cleared = GroupStatus::new().with_interrupt_status(value);
                    group.fetch_and(!u64::from(cleared), Ordering::AcqRel);
                }
                false
            }
            DoorbellRegister::Control if DoorbellControl::from(value).send_to_core() => {
                let before = self.control.fetch_or(SEND_TO_CORE, Ordering::AcqRel);
                DoorbellControl::from(before).groups() != 0
            }
            DoorbellRegister::Control => {
                self.control.fetch_and(!SEND_TO_CORE, Ordering::AcqRel);
                false
            }
        }
    }
}

fn route(control: u32) -> Route {
    if DoorbellControl::from(control).send_to_core() { Route::Guc } else { Route::Host }
}
