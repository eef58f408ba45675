// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Accounting of the resources of this process that the clients of a card use: address space, mappings, entries of the
//! tables of sections, descriptors.
//! Limits per function prevent a client from exhausting the resources of the others.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use arctic_device_model::host::Function;
use arctic_device_model::profile::limits::Limits;

use super::Errno;

/// The amount in use of each limited resource.
#[derive(Debug, Default)]
struct Taken {
    mapped: AtomicU64,
    mappings: AtomicU64,
    sections: AtomicU64,
    descriptors: AtomicU64,
}

/// Returns whether functions other than the given one wait for the card now.
type Waits = Box<dyn Fn(Function) -> bool + Send + Sync>;

/// The accounting of all clients of a card.
pub struct Ledger {
    limits: Limits,
    taken: Taken,
    /// Number of functions with a client.
    sessions: AtomicUsize,
    /// All functions are in one machine, so a client can delay only itself.
    one_machine: bool,
    waits: OnceLock<Waits>,
}

impl Ledger {
    /// Creates an empty ledger. `limits` has the limits of each function ([`Limits::each`]) and of all functions
    /// together; `one_machine` is true if all functions belong to one client's machine.
    pub fn new(limits: Limits, one_machine: bool) -> Arc<Self> {
        let (taken, sessions) = (Taken::default(), AtomicUsize::new(0));
        Arc::new(Ledger { limits, taken, sessions, one_machine, waits: OnceLock::new() })
    }

    /// Returns whether another client waits while the card waits for the client of `function`. Without a callback
    /// ([`Ledger::set_waits`]) other clients are assumed to wait all the time.
    pub fn held_up(&self, function: Function) -> bool {
        let others = !self.one_machine && self.sessions.load(Ordering::Relaxed) > 1;
        others && self.waits.get().is_none_or(|waits| waits(function))
    }

    /// Sets the callback that returns whether functions other than the given one wait for the card now. Only the first
    /// call has an effect.
    pub fn set_waits(&self, waits: impl Fn(Function) -> bool + Send + Sync + 'static) {
        let _ = self.waits.set(Box::new(waits));
    }

    /// Counts a client until the result is dropped.
    pub fn session(self: &Arc<Self>) -> Counted {
        self.sessions.fetch_add(1, Ordering::Relaxed);
        Counted(self.clone())
    }
}

/// A client counted in [`Ledger::held_up`].
pub struct Counted(Arc<Ledger>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The account of one function.
pub struct Account {
    ledger: Arc<Ledger>,
    taken: Taken,
}

/// The resources charged for a client's sections, a mapping or a file, until this is dropped. Mappings and files stay
/// charged after DMA_UNMAP while a step still has a view of them.
pub struct Charge {
    account: Arc<Account>,
    mapped: u64,
    mappings: u64,
    sections: u64,
    descriptors: u64,
}

/// Adds `amount` if the sum does not exceed `limit`; fails with ENOSPC otherwise.
fn take(taken: &AtomicU64, amount: u64, limit: u64) -> Result<(), Errno> {
    let add = |taken: u64| taken.checked_add(amount).filter(|sum| *sum <= limit);
    taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).map(drop).map_err(|_| Errno::ENOSPC)
}

impl Account {
    /// The account of one function.
    pub fn new(ledger: Arc<Ledger>) -> Arc<Self> {
        Arc::new(Account { ledger, taken: Taken::default() })
    }

    /// The accounting of all clients.
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// Maximum number of sections of the function's client.
    pub fn sections(&self) -> u32 {
        self.ledger.limits.sections
    }

    /// What is charged now: bytes of address space, mappings, sections, descriptors.
    #[cfg(test)]
    pub fn in_use(&self) -> [u64; 4] {
        let Taken { mapped, mappings, sections, descriptors } = &self.taken;
        [mapped, mappings, sections, descriptors].map(|taken| taken.load(Ordering::Relaxed))
    }

    /// A charge of nothing.
    pub fn charge(self: &Arc<Self>) -> Charge {
        Charge { account: self.clone(), mapped: 0, mappings: 0, sections: 0, descriptors: 0 }
    }

    /// Charges a mapping of `bytes` of address space. Fails with ENOSPC if a limit would be exceeded.
    pub fn mapping(self: &Arc<Self>, bytes: u64) -> Result<Charge, Errno> {
        let limits = &self.ledger.limits;
        // If a later limit would be exceeded, dropping the charge releases the amounts taken before.
        let mut charge = self.charge();
        self.take(|taken| &taken.mappings, 1, limits.mappings.into(), limits.mappings_in_all.into())?;
        charge.mappings = 1;
        self.take(|taken| &taken.mapped, bytes, limits.mapped, limits.mapped_in_all)?;
        charge.mapped = bytes;
        Ok(charge)
    }

    /// Takes `amount` of a resource for the function and for all functions, or nothing.
    fn take(&self, of: fn(&Taken) -> &AtomicU64, amount: u64, limit: u64, limit_in_all: u64) -> Result<(), Errno> {
        take(of(&self.taken), amount, limit)?;
        take(of(&self.ledger.taken), amount, limit_in_all).inspect_err(|_| {
            of(&self.taken).fetch_sub(amount, Ordering::Relaxed);
        })
    }

    /// Charges a descriptor. Fails with ENOSPC if a limit would be exceeded.
    pub fn descriptor(self: &Arc<Self>) -> Result<Charge, Errno> {
        let limits = &self.ledger.limits;
        let mut charge = self.charge();
        self.take(|taken| &taken.descriptors, 1, limits.descriptors.into(), limits.descriptors_in_all.into())?;
        charge.descriptors = 1;
        Ok(charge)
    }
}

impl Charge {
    /// Charges `sections` sections instead of the number before. Fails with ENOSPC if a limit would be exceeded; the
    /// charge is then unchanged.
    pub fn set_sections(&mut self, sections: usize) -> Result<(), Errno> {
        let (sections, account) = (sections as u64, &self.account);
        let limits = &account.ledger.limits;
        match sections.checked_sub(self.sections) {
            Some(more) => {
                account.take(|taken| &taken.sections, more, limits.sections.into(), limits.sections_in_all.into())?;
            }
            None => {
                for taken in [&account.taken, &account.ledger.taken] {
                    taken.sections.fetch_sub(self.sections.saturating_sub(sections), Ordering::Relaxed);
                }
            }
        }
        self.sections = sections;
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        for taken in [&self.account.taken, &self.account.ledger.taken] {
            taken.mapped.fetch_sub(self.mapped, Ordering::Relaxed);
            taken.mappings.fetch_sub(self.mappings, Ordering::Relaxed);
            taken.sections.fetch_sub(self.sections, Ordering::Relaxed);
            taken.descriptors.fetch_sub(self.descriptors, Ordering::Relaxed);
        }
    }
}

/// Number of descriptors that may be kept for clients: the limit of this process minus the descriptors open now, the
/// descriptors of one message from each of `functions` clients, and a reserve for sockets, events and the card's own
/// files.
pub fn spare_descriptors(functions: usize) -> u32 {
    const RESERVE: u64 = 128;
    const OF_A_FUNCTION: u64 = super::wire::MAX_FDS as u64 + 4;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    // Without /proc: an estimate for a card with this many functions.
    let open =
        std::fs::read_dir("/proc/self/fd").map_or(functions.saturating_mul(8).saturating_add(64), Iterator::count);
    let needed = OF_A_FUNCTION.saturating_mul(functions as u64).saturating_add(RESERVE).saturating_add(open as u64);
    u32::try_from(limit.saturating_sub(needed)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an overflow fails the test")]
    #![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

    use super::*;

    fn account(limits: Limits) -> (Arc<Ledger>, [Arc<Account>; 2]) {
        let ledger = Ledger::new(limits, false);
        let accounts = [0; 2].map(|_| Account::new(ledger.clone()));
        (ledger, accounts)
    }

    fn nothing(taken: &Taken) -> bool {
        [&taken.mapped, &taken.mappings, &taken.sections, &taken.descriptors]
            .iter()
            .all(|taken| taken.load(Ordering::Relaxed) == 0)
    }

    /// Exceeding a limit fails with ENOSPC and does not affect other limits; amounts taken by a rejected request are
    /// released.
    #[test]
    fn limits_of_a_function_and_of_all() {
        let limits = Limits {
            mapped: 100,
            mapped_in_all: 150,
            mappings: 3,
            mappings_in_all: 5,
            sections: 3,
            sections_in_all: 5,
            descriptors: 2,
            descriptors_in_all: 3,
            threads: 1,
        };
        let (ledger, [one, other]) = account(limits);
        let held = [one.mapping(60).unwrap(), one.mapping(40).unwrap()];
        assert_eq!(one.mapping(1).err(), Some(Errno::ENOSPC), "bytes of a function");
        let empty = one.mapping(0).unwrap();
        assert_eq!(one.mapping(0).err(), Some(Errno::ENOSPC), "mappings of a function");
        assert_eq!(other.mapping(51).err(), Some(Errno::ENOSPC), "bytes of all");
        let others = [other.mapping(50).unwrap(), other.mapping(0).unwrap()];
        assert_eq!(other.mapping(0).err(), Some(Errno::ENOSPC), "mappings of all");
        let [mut sections, mut more] = [one.charge(), other.charge()];
        assert_eq!(sections.set_sections(4), Err(Errno::ENOSPC), "sections of a function");
        sections.set_sections(3).unwrap();
        assert_eq!(more.set_sections(3), Err(Errno::ENOSPC), "sections of all");
        more.set_sections(2).unwrap();
        sections.set_sections(2).unwrap();
        more.set_sections(3).unwrap();
        assert_eq!(sections.set_sections(3), Err(Errno::ENOSPC), "an increase of the same charge");
        let files = [one.descriptor().unwrap(), one.descriptor().unwrap(), other.descriptor().unwrap()];
        assert_eq!(one.descriptor().err(), Some(Errno::ENOSPC), "descriptors of a function");
        assert_eq!(other.descriptor().err(), Some(Errno::ENOSPC), "descriptors of all");
        drop((held, empty, others, files, sections, more));
        assert!(nothing(&ledger.taken) && nothing(&one.taken) && nothing(&other.taken));
        assert!(one.mapping(100).is_ok());
    }

    /// Clients may use the remaining descriptors of the process, minus those that each function needs.
    #[test]
    fn descriptors_are_kept_in_reserve() {
        // Other tests open and close descriptors concurrently.
        const OTHERS: u32 = 100;
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let Some(limit) = limit.and_then(|limit| u32::try_from(limit).ok()) else { return };
        let of_a_function = crate::vfio_user::wire::MAX_FDS as u32;
        let [one, all] = [1, 64].map(spare_descriptors);
        assert!(one <= limit.saturating_sub(128 + of_a_function), "{one} of {limit}");
        assert!(all <= limit.saturating_sub(128 + 64 * of_a_function), "{all} of {limit}");
        assert!(all == 0 || one + OTHERS >= all + 63 * of_a_function, "{one} {all}");
    }

    #[test]
    fn a_client_holds_up_others_only_where_there_are_some_that_wait() {
        let held_up = |ledger: &Ledger| ledger.held_up(Function::new(1).unwrap());
        let ledger = Ledger::new(Limits::default(), false);
        let first = ledger.session();
        assert!(!held_up(&ledger));
        let second = ledger.session();
        assert!(held_up(&ledger), "no callback is set");
        ledger.set_waits(|function| function != Function::new(1).unwrap());
        assert!(!held_up(&ledger) && ledger.held_up(Function::new(2).unwrap()));
        drop(first);
        assert!(!ledger.held_up(Function::new(2).unwrap()));
        drop(second);
        let ledger = Ledger::new(Limits::default(), true);
        let _sessions = [0; 3].map(|_| ledger.session());
        assert!(!held_up(&ledger), "all functions are in one machine");
    }
}
