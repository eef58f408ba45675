//! Doorbells: an access of a page wakes the GuC without any message (V13-081..100).
//!
//! Every function has a window of 1,024 pages, each of which a driver can map into a user's process; 256 physical
//! doorbells, which the GuC arms, watch as many of those pages. What happens in a watched page is a ring, and goes
//! through three stages (V13-082):
//!
//! 1. address, cookie and Valid of a physical doorbell: one word here, `Armed`;
//! 2. status in the GTI: one register for each group of 32 doorbells, where rings collapse;
//! 3. interrupt status in the GuC: taking a group moves its status there and clears it.
//!
//! A group whose status goes from zero to anything sends a message, which sets the group's bit in DOORBELL_CTRL, and is
//! silent until it is taken. So the GuC has at most 256 things to look at, however often a guest rings.
//!
//! Doorbells in memory, which watch a cache line of a guest, need a snooping bus; a card on PCI Express has the windows
//! alone (V13-090). Their line has no memory either: the cookie is kept by the doorbell, it counts the rings, and 0
//! means cleared, as in the line that drivers of the memory kind share with it (i915: selftest_guc_doorbells.c).
//!
//! A ring takes no lock. Arming and disarming is the GuC's, under its lock.

#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::registers::DoorbellRegister;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::world::{FUNCTIONS, Function};

/// Physical doorbells of the card (V13-081).
pub const DOORBELLS: usize = 256;
/// Pages in a function's window, so doorbells that its driver can give out (V13-091).
pub const PAGES: u16 = 1024;
/// First byte of the window in GTTMMADR (V13-007).
pub const WINDOW: u64 = 4 << 20;
/// Bytes of a page of the window.
pub const PAGE_BYTES: u64 = 4096;
/// What a page reads where no doorbell is armed: nothing was rung (IGT: xe_mmap.c, test_pci_membarrier; i915:
/// selftest_guc_doorbells.c, NACK). xe gives the last page to user space, as a write barrier.
pub const NACK: u32 = 0xdead_beef;
/// What an armed page reads: the read has rung (i915: selftest_guc_doorbells.c, ACK).
pub const ACK: u32 = 0xaced_beef;

/// Doorbells in a group.
const GROUP: usize = 32;
/// Groups: one status register each (V13-097).
const GROUPS: usize = DOORBELLS / GROUP;

/// DOORBELL_CTRL bits 7:0: the group has rung and was not taken since. The document gives no positions.
const RUNG_GROUPS: u32 = 0xff;
/// DOORBELL_CTRL bit 31: rings go to the GuC's core, not to the host (V13-099). The document gives no position.
pub const SEND_TO_CORE: u32 = 1 << 31;
/// Valid of a doorbell's address register (xe, i915: DRB_VALID of the memory kind).
const VALID: u32 = 1 << 0;

/// A page of a function's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Page(u16);

impl Page {
    /// The page that holds byte `offset` of GTTMMADR; `None` outside of the window.
    pub fn at(offset: u64) -> Option<Page> {
        let page = offset.checked_sub(WINDOW)? / PAGE_BYTES;
        u16::try_from(page).ok().filter(|page| *page < PAGES).map(Page)
    }

    /// Its first byte in GTTMMADR: the MMIO offset that drivers name a doorbell by (V13-096).
    pub fn offset(self) -> u64 {
        WINDOW + u64::from(self.0) * PAGE_BYTES
    }
}

/// Why a doorbell cannot be armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is armed: Valid goes from 1 to 0 in one way only, and that is not this one (V13-086).
    IsArmed,
}

/// What a ring came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// No doorbell is armed for the page.
    Missed,
    /// A doorbell has its status bit, in a group that had rung before.
    Collapsed,
    /// The bits of these groups went up: whoever the message is for is to be told.
    Message {
        /// DOORBELL_CTRL bits 7:0 that the message set (V13-098).
        groups: u8,
        /// Who is to be told.
        to: Route,
    },
}

/// Who hears of rings (V13-099).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The physical function's driver, by the GuC's interrupt: the way after reset.
    Host,
    /// The GuC's core.
    Guc,
}

/// Rings of one function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rings {
    /// That found an armed doorbell.
    pub rung: u64,
    /// That found none.
    pub missed: u64,
}

/// Physical doorbells that have rung.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rung([u32; GROUPS]);

impl Rung {
    /// Their numbers, rising.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(move |index| self.0[group(*index)] & bit(*index) != 0)
    }
}

fn group(index: u8) -> usize {
    usize::from(index) / GROUP
}

fn bit(index: u8) -> u32 {
    1 << (usize::from(index) % GROUP)
}

/// The word of a physical doorbell: cookie in bits 63:32, Valid in bit 31, "has rung and was not served" in bit 30,
/// function in bits 21:16, page in bits 9:0. One word, so that a ring cannot find half of an arming.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Armed(u64);

impl Armed {
    const VALID: u64 = 1 << 31;
    const RUNG: u64 = 1 << 30;
    const COOKIE: u64 = 0xffff_ffff << 32;
    const WATCHED: u64 = Self::VALID | 0x3f << 16 | (PAGES - 1) as u64;
    const NOT: Armed = Armed(0);

    /// As the GuC arms it: the block captures the line's cookie, and a cookie that is not 0 is a live one.
    fn new(function: Function, page: Page) -> Self {
        Armed(1 << 32 | Self::watched(function, page))
    }

    fn valid(self) -> bool {
        self.0 & Self::VALID != 0
    }

    fn function(self) -> Function {
        Function((self.0 >> 16) as u8 & 0x3f)
    }

    fn page(self) -> Page {
        Page(self.0 as u16 & (PAGES - 1))
    }

    fn watches(self, function: Function, page: Page) -> bool {
        self.0 & Self::WATCHED == Self::watched(function, page)
    }

    fn watched(function: Function, page: Page) -> u64 {
        Self::VALID | (function.index() as u64) << 16 | u64::from(page.0)
    }

    fn cookie(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// After a ring: the cookie has changed, and is never 0 of itself.
    fn rung(self) -> Self {
        let cookie = self.cookie().checked_add(1).unwrap_or(1);
        Armed(self.0 & !Self::COOKIE | Self::RUNG | u64::from(cookie) << 32)
    }
}

/// The word of a group: status in the GTI in bits 31:0, interrupt status in the GuC in bits 63:32. One word, so that what
/// moves from one to the other is in either of them for whoever looks.
const INTERRUPT_STATUS: u64 = 0xffff_ffff << 32;

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
    /// No doorbell armed, as after power-on.
    pub fn new() -> Self {
        Self::of(DOORBELLS)
    }

    /// The same with `count` doorbells, at most [`DOORBELLS`].
    pub fn of(count: usize) -> Self {
        Doorbells {
            armed: (0..count).map(|_| AtomicU64::new(0)).collect(),
            groups: (0..count.div_ceil(GROUP)).map(|_| AtomicU64::new(0)).collect(),
            control: AtomicU32::new(0),
            rings: (0..FUNCTIONS).map(|_| Default::default()).collect(),
        }
    }

    fn indices(&self) -> impl Iterator<Item = u8> + use<> {
        (0..self.armed.len()).map(|index| index as u8)
    }

    fn word(&self, index: u8) -> Armed {
        Armed(self.armed[usize::from(index)].load(Ordering::Acquire))
    }

    /// Sets Valid of a doorbell, which watches `page` of `function` from now on (V13-084, V13-085, V13-096): the GuC's
    /// message, which no other client of the message channel can send.
    pub fn arm(&self, index: u8, function: Function, page: Page) -> Result<(), Refused> {
        let armed = Armed::new(function, page);
        match self.armed[usize::from(index)].compare_exchange(0, armed.0, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(()),
            Err(_) => Err(Refused::IsArmed),
        }
    }

    /// Clears the cookie of a doorbell; it stays valid until the block reads the cookie (V13-086).
    pub fn clear_cookie(&self, index: u8) {
        self.armed[usize::from(index)].fetch_and(!Armed::COOKIE, Ordering::AcqRel);
    }

    /// The block's own read of a doorbell's cookie: a cleared one takes Valid away, and nothing else does (V13-086). A
    /// ring that was not served goes with it: what is left of it in the status is nobody's.
    pub fn read_cookie(&self, index: u8) {
        let word = self.word(index);
        if word.valid() && word.cookie() == 0 {
            let cell = &self.armed[usize::from(index)];
            // Another reader may have been faster, and the doorbell be armed anew.
            let _ = cell.compare_exchange(word.0, Armed::NOT.0, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    /// Disarms a doorbell: clears its cookie and has the block read it.
    pub fn disarm(&self, index: u8) {
        self.clear_cookie(index);
        self.read_cookie(index);
    }

    /// Disarms every doorbell of a function that is in FLR (V13-119).
    pub fn reset_function(&self, function: Function) {
        for index in self.indices() {
            let word = self.word(index);
            if word.valid() && word.function() == function {
                self.disarm(index);
            }
        }
    }

    /// Disarms all, and sends what rings to the host again: the GuC whose table they were in is gone, or not yet there.
    pub fn reset(&self) {
        for index in self.indices() {
            self.disarm(index);
        }
        // In this order: a group with a status but without its bit here would never send its message again.
        self.control.swap(0, Ordering::AcqRel);
        for group in &self.groups {
            group.swap(0, Ordering::AcqRel);
        }
    }

    /// Something happened in `page` of the window of `function`: a write, anywhere in it and of whatever value, or a
    /// read (V13-091, V13-092, V13-094).
    pub fn ring(&self, function: Function, page: Page) -> Ring {
        let (mut found, mut groups) = (false, 0);
        for index in self.indices() {
            if !self.ring_one(index, function, page) {
                continue;
            }
            found = true;
            // All zeros to any one bit set is what the GTI tells the GuC (V13-097).
            if self.groups[group(index)].fetch_or(bit(index).into(), Ordering::AcqRel) as u32 == 0 {
                groups |= 1 << group(index);
            }
        }
        let [rung, missed] = &self.rings[function.index()];
        if found { rung } else { missed }.fetch_add(1, Ordering::Relaxed);
        match (found, groups) {
            (false, _) => Ring::Missed,
            (true, 0) => Ring::Collapsed,
            (true, groups) => {
                let control = self.control.fetch_or(u32::from(groups), Ordering::AcqRel);
                Ring::Message { groups, to: route(control) }
            }
        }
    }

    fn ring_one(&self, index: u8, function: Function, page: Page) -> bool {
        let cell = &self.armed[usize::from(index)];
        // Most watch something else: a ring is one look at each of them.
        if !Armed(cell.load(Ordering::Acquire)).watches(function, page) {
            return false;
        }
        let change = |word: u64| {
            let word = Armed(word);
            (word.watches(function, page) && word.cookie() != 0).then(|| word.rung().0)
        };
        let rung = cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, change).is_ok();
        if !rung && self.word(index).watches(function, page) {
            // The block looks at the line that was rung, and finds its cookie cleared.
            self.read_cookie(index);
        }
        rung
    }

    /// Moves a group's status to its interrupt status (V13-089). The bit in DOORBELL_CTRL falls first: a ring that comes
    /// meanwhile sets it again, at worst for a status that is found empty next time.
    fn take_group(&self, group: usize) {
        self.control.fetch_and(!(1 << group), Ordering::AcqRel);
        let moved = |word: u64| (word as u32 != 0).then_some((word | word << 32) & INTERRUPT_STATUS);
        // Nothing has rung where there is nothing to move.
        let _ = self.groups[group].fetch_update(Ordering::AcqRel, Ordering::Acquire, moved);
    }

    /// Moves a group's status on, and empties its interrupt status: what was there.
    fn serve_group(&self, group: usize) -> u32 {
        self.take_group(group);
        (self.groups[group].fetch_and(!INTERRUPT_STATUS, Ordering::AcqRel) >> 32) as u32
    }

    fn group(&self, ordinal: u16) -> u64 {
        self.groups.get(usize::from(ordinal)).map_or(0, |group| group.load(Ordering::Acquire))
    }

    /// What has rung for the GuC since it last asked; nothing while rings go to the host. A bit that a doorbell's former
    /// life has left behind is no ring of its present one.
    pub fn take_rung(&self) -> Rung {
        let mut taken = Rung::default();
        let control = self.control.load(Ordering::Acquire);
        if route(control) == Route::Host {
            return taken;
        }
        for (group, taken) in (0..self.groups.len()).zip(&mut taken.0) {
            // Whatever DOORBELL_CTRL says of the group: the host may be taking it at this moment, and its ring's message
            // has called for this look.
            if self.groups[group].load(Ordering::Acquire) != 0 {
                *taken = self.serve_group(group);
            }
        }
        for index in taken.iter() {
            let before = self.armed[usize::from(index)].fetch_and(!Armed::RUNG, Ordering::AcqRel);
            if !Armed(before).valid() || before & Armed::RUNG == 0 {
                taken.0[group(index)] &= !bit(index);
            }
        }
        taken
    }

    /// Whether a doorbell is armed for the page.
    pub fn is_armed(&self, function: Function, page: Page) -> bool {
        self.indices().any(|index| self.word(index).watches(function, page))
    }

    /// What a physical doorbell watches.
    pub fn watched(&self, index: u8) -> Option<(Function, Page)> {
        let word = self.word(index);
        word.valid().then(|| (word.function(), word.page()))
    }

    /// How often a function rang.
    pub fn rings(&self, function: Function) -> Rings {
        let [rung, missed] = &self.rings[function.index()];
        Rings { rung: rung.load(Ordering::Relaxed), missed: missed.load(Ordering::Relaxed) }
    }

    /// Reads element `ordinal` of a register, as the host does.
    pub fn read(&self, register: DoorbellRegister, ordinal: u16) -> u32 {
        match register {
            DoorbellRegister::Address => {
                let watched = u8::try_from(ordinal).ok().and_then(|index| self.watched(index));
                watched.map_or(0, |(_, page)| page.offset() as u32 | VALID)
            }
            DoorbellRegister::Function => {
                let watched = u8::try_from(ordinal).ok().and_then(|index| self.watched(index));
                watched.map_or(0, |(function, _)| u32::from(function.0))
            }
            DoorbellRegister::Status => self.group(ordinal) as u32,
            DoorbellRegister::InterruptStatus => {
                if usize::from(ordinal) < self.groups.len() {
                    self.take_group(ordinal.into());
                }
                (self.group(ordinal) >> 32) as u32
            }
            DoorbellRegister::Control => self.control.load(Ordering::Acquire),
        }
    }

    /// Writes element `ordinal` of a register, as the host does: addresses and Valid are the GuC's alone (V13-083,
    /// V13-085, V13-093), the status is the hardware's (V13-087). Tells whether the GuC now has something to look at.
    pub fn write(&self, register: DoorbellRegister, ordinal: u16, value: u32) -> bool {
        match register {
            DoorbellRegister::Address | DoorbellRegister::Function | DoorbellRegister::Status => false,
            DoorbellRegister::InterruptStatus => {
                if let Some(group) = self.groups.get(usize::from(ordinal)) {
                    group.fetch_and(!(u64::from(value) << 32), Ordering::AcqRel);
                }
                false
            }
            DoorbellRegister::Control if value & SEND_TO_CORE != 0 => {
                let before = self.control.fetch_or(SEND_TO_CORE, Ordering::AcqRel);
                before & RUNG_GROUPS != 0
            }
            DoorbellRegister::Control => {
                self.control.fetch_and(!SEND_TO_CORE, Ordering::AcqRel);
                false
            }
        }
    }
}

fn route(control: u32) -> Route {
    if control & SEND_TO_CORE != 0 { Route::Guc } else { Route::Host }
}
