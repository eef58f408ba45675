//! What the clients of a card have taken of this process: address space, sections, descriptors. Each function has a limit
//! that leaves the others theirs.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use arctic_device_model::profile::limits::Limits;
use arctic_device_model::world::Function;

use crate::vfio_user::Errno;

/// One kind of thing that is limited: how much is taken.
#[derive(Debug, Default)]
struct Taken {
    mapped: AtomicU64,
    sections: AtomicU64,
    descriptors: AtomicU64,
}

/// Tells whether others than a function wait for the card at this moment.
type Waits = Box<dyn Fn(Function) -> bool + Send + Sync>;

/// The account of all clients of a card.
pub struct Ledger {
    limits: Limits,
    taken: Taken,
    /// Functions that have a client.
    sessions: AtomicUsize,
    /// All functions are in one machine, so that a client holds up none but itself.
    one_machine: bool,
    waits: OnceLock<Waits>,
}

impl Ledger {
    /// An empty account. `limits` are those of each function ([`Limits::each`]) and of all; `one_machine` says that all
    /// functions belong to one client's machine.
    pub fn new(limits: Limits, one_machine: bool) -> Arc<Self> {
        let (taken, sessions) = (Taken::default(), AtomicUsize::new(0));
        Arc::new(Ledger { limits, taken, sessions, one_machine, waits: OnceLock::new() })
    }

    /// Whether another client has to wait while the card waits for that of `function`. Where nothing tells, the others are
    /// taken to wait all the time.
    pub fn held_up(&self, function: Function) -> bool {
        let others = !self.one_machine && self.sessions.load(Ordering::Relaxed) > 1;
        others && self.waits.get().is_none_or(|waits| waits(function))
    }

    /// Who can tell: whether others than this function wait for the card at this moment. Set once.
    pub fn set_waits(&self, waits: impl Fn(Function) -> bool + Send + Sync + 'static) {
        let _ = self.waits.set(Box::new(waits));
    }

    /// Counts a client until the result is dropped.
    pub fn session(self: &Arc<Self>) -> Counted {
        self.sessions.fetch_add(1, Ordering::Relaxed);
        Counted(self.clone())
    }
}

/// A client that is counted in [`Ledger::held_up`].
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

/// What a section or a file takes, until it is dropped: also after its DMA_UNMAP, while a step still has a view of it.
pub struct Charge {
    account: Arc<Account>,
    mapped: u64,
    sections: u64,
    descriptors: u64,
}

/// Adds `amount` where the sum stays within `limit`.
fn take(taken: &AtomicU64, amount: u64, limit: u64) -> Result<(), Errno> {
    let add = |taken: u64| taken.checked_add(amount).filter(|sum| *sum <= limit);
    taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).map(drop).map_err(|_| Errno::ENOSPC)
}

impl Account {
    /// The account of one function.
    pub fn new(ledger: Arc<Ledger>) -> Arc<Self> {
        Arc::new(Account { ledger, taken: Taken::default() })
    }

    /// The account of all.
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// Sections that the function's client may have.
    pub fn sections(&self) -> u32 {
        self.ledger.limits.sections
    }

    fn charge(self: &Arc<Self>) -> Charge {
        Charge { account: self.clone(), mapped: 0, sections: 0, descriptors: 0 }
    }

    /// Takes a section of `mapped` bytes of address space (0 for one that is not mapped). ENOSPC beyond a limit.
    pub fn section(self: &Arc<Self>, mapped: u64) -> Result<Charge, Errno> {
        let limits = &self.ledger.limits;
        // What has been taken when a later limit refuses goes back with the charge.
        let mut charge = self.charge();
        take(&self.taken.sections, 1, limits.sections.into())?;
        charge.sections = 1;
        if let Err(refused) = take(&self.ledger.taken.sections, 1, limits.sections_in_all.into()) {
            self.taken.sections.fetch_sub(1, Ordering::Relaxed);
            charge.sections = 0;
            return Err(refused);
        }
        take(&self.taken.mapped, mapped, limits.mapped)?;
        if let Err(refused) = take(&self.ledger.taken.mapped, mapped, limits.mapped_in_all) {
            self.taken.mapped.fetch_sub(mapped, Ordering::Relaxed);
            return Err(refused);
        }
        charge.mapped = mapped;
        Ok(charge)
    }

    /// Takes a descriptor. ENOSPC beyond a limit.
    pub fn descriptor(self: &Arc<Self>) -> Result<Charge, Errno> {
        let limits = &self.ledger.limits;
        let mut charge = self.charge();
        take(&self.taken.descriptors, 1, limits.descriptors.into())?;
        if let Err(refused) = take(&self.ledger.taken.descriptors, 1, limits.descriptors_in_all.into()) {
            self.taken.descriptors.fetch_sub(1, Ordering::Relaxed);
            return Err(refused);
        }
        charge.descriptors = 1;
        Ok(charge)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        for taken in [&self.account.taken, &self.account.ledger.taken] {
            taken.mapped.fetch_sub(self.mapped, Ordering::Relaxed);
            taken.sections.fetch_sub(self.sections, Ordering::Relaxed);
            taken.descriptors.fetch_sub(self.descriptors, Ordering::Relaxed);
        }
    }
}

/// Descriptors that clients may have kept, of those that this process may have open: without those that are open now, what
/// comes with one message of each of `functions` clients, and a reserve for sockets, events and the card's own files.
pub fn spare_descriptors(functions: usize) -> u32 {
    const RESERVE: u64 = 128;
    const OF_A_FUNCTION: u64 = crate::vfio_user::wire::MAX_FDS as u64 + 4;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    // Without /proc: what a card of so many functions has open.
    let open = std::fs::read_dir("/proc/self/fd").map_or(64 + 8 * functions as u64, |files| files.count() as u64);
    let needed = open + RESERVE + OF_A_FUNCTION * functions as u64;
    u32::try_from(limit.saturating_sub(needed)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(limits: Limits) -> (Arc<Ledger>, [Arc<Account>; 2]) {
        let ledger = Ledger::new(limits, false);
        let accounts = [0; 2].map(|_| Account::new(ledger.clone()));
        (ledger, accounts)
    }

    fn nothing(taken: &Taken) -> bool {
        [&taken.mapped, &taken.sections, &taken.descriptors].iter().all(|taken| taken.load(Ordering::Relaxed) == 0)
    }

    /// Each limit refuses with ENOSPC, refuses nothing else, and what a refused request had taken is given back.
    #[test]
    fn limits_of_a_function_and_of_all() {
        let limits = Limits {
            mapped: 100,
            mapped_in_all: 150,
            sections: 3,
            sections_in_all: 5,
            descriptors: 2,
            descriptors_in_all: 3,
        };
        let (ledger, [one, other]) = account(limits);
        let held = [one.section(60).unwrap(), one.section(40).unwrap()];
        assert_eq!(one.section(1).err(), Some(Errno::ENOSPC), "bytes of a function");
        let unmapped = one.section(0).unwrap();
        assert_eq!(one.section(0).err(), Some(Errno::ENOSPC), "sections of a function");
        assert_eq!(other.section(51).err(), Some(Errno::ENOSPC), "bytes of all");
        let others = [other.section(50).unwrap(), other.section(0).unwrap()];
        assert_eq!(other.section(0).err(), Some(Errno::ENOSPC), "sections of all");
        let files = [one.descriptor().unwrap(), one.descriptor().unwrap(), other.descriptor().unwrap()];
        assert_eq!(one.descriptor().err(), Some(Errno::ENOSPC), "descriptors of a function");
        assert_eq!(other.descriptor().err(), Some(Errno::ENOSPC), "descriptors of all");
        drop((held, unmapped, others, files));
        assert!(nothing(&ledger.taken) && nothing(&one.taken) && nothing(&other.taken));
        assert!(one.section(100).is_ok());
    }

    /// Clients may keep what is left of the process's descriptors, less what each function needs.
    #[test]
    fn descriptors_are_kept_in_reserve() {
        // Other tests open and close some meanwhile.
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
        let held_up = |ledger: &Ledger| ledger.held_up(Function(1));
        let ledger = Ledger::new(Limits::default(), false);
        let first = ledger.session();
        assert!(!held_up(&ledger));
        let second = ledger.session();
        assert!(held_up(&ledger), "nothing tells");
        ledger.set_waits(|function| function != Function(1));
        assert!(!held_up(&ledger) && ledger.held_up(Function(2)));
        drop(first);
        assert!(!ledger.held_up(Function(2)));
        drop(second);
        let ledger = Ledger::new(Limits::default(), true);
        let _sessions = [0; 3].map(|_| ledger.session());
        assert!(!held_up(&ledger), "all of them are one machine's");
    }
}
