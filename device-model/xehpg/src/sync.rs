// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The lock order of the card, and the synchronisation primitives of [`arctic_base::sync`].
//!
//! # Lock order
//! A thread that holds a lock takes only locks further down in this table. Locks with the same number are not held
//! together, except as stated. "Blocks on" is what a holder may wait for, besides locks further down. Paths that begin
//! with `src/` are in the crate `arctic-gpu`, the others in this crate or in `arctic-base`.
//!
//! | no. | lock | protects | taken by | a holder blocks on |
//! |---|---|---|---|---|
//! | 1 | `CardFunction::placed` (`src/card/function.rs`), the configuration lock; the PF's, then VFs', one at a time | a change of configuration space and its reports to `Machine`, in order | threads that write configuration space or reset a function | MSIs in flight (waits 1 and 2), the machine's callbacks |
//! | 1 | `CardFunction::processing` (`src/card/function.rs`) | from reading the event of a register to the card's processing of the write | vCPUs, event threads | |
//! | 2 | `Card::guc` ([`card`](crate::card)), a [`PriorityMutex`](arctic_base::priority_mutex) | the GuC and its records of every function | workers, after the threads that wait already; with priority: accesses that the GuC executes at once, resets | step boundaries, replies of a client (wait 4) |
//! | 3 | the units below the GuC ([`Units`]): one [`PriorityMutex`](arctic_base::priority_mutex) for each engine, and for each further unit; several only by `Units::hold`, which takes them in the order of the list, and by the step of an engine, which takes that of the observation unit for a context of the PF | the engine and the context that it runs; the state of the unit | workers by `try_lock`; control paths (GuC, resets) with priority | replies of a client (wait 4) |
//! | 4 | `Helper` of a walker (`compute/shared.rs`), one for each cluster | a slot and its group | the cluster's step by `try_lock`; the engine's step | |
//! | 5 | `SharedWalker::program` (`compute/shared.rs`), shared by slots that execute it, exclusive while the engine adds code; by clusters only with `try_read` | a translated kernel | steps of engines and clusters | |
//! | 6 | `Storage::moving` (`memory/storage.rs`), shared by trapped accesses and the scrubber, exclusive while frames move | the frame table | accesses to LMEM BARs, scrubber and FLR threads; exclusive: the GuC with all engines held | release of at most 2 MiB of a file to the host |
//! | 7 | `Storage::unused`, by the scrubber only with `try_lock` | ranges that store no frame | the scrubber; the thread that moved frames | as 6 |
//! | 7 | `Gt::forcewake` | a forcewake request or a permission of RC6, its acknowledgement and 8 `Residency::sleep` as one change | vCPUs, the GuC, resets | |
//! | 7 | `Recorder::mailboxes` ([`trace`](crate::trace)) | the list of subscribers | every thread that records an event while there is a subscriber | |
//! | 8 | leaves: see below | | | |
//!
//! Leaves are held for a few instructions or one system call; a holder takes no other lock:
//! * of the GT: `Interrupts::state` (released before the MSI is sent), `Residency::sleep`, `Gt::pcode`, `Gt::heci`,
//!   `CsbPort::entries`, `Offers::open`, `Observation::state` (whose holder may take `Residency::sleep`, and which a holder of
//!   7 `Gt::forcewake` may take), `SharedWalker::remaining`, `ParkedWalkers::state`, the counts of unmodelled accesses in `RegisterFile`;
//! * of the card: `Engines::reports`, `Deferred::queue`, `Card::threads`, `EventCount::sleep_lock`, a trace
//!   subscriber's queue, `Backing::search` (`memory/local.rs`: one `lseek`);
//! * in `src/`: `BusPort::config` and `MsiQuiesce::state` (`src/card`), `GuestMemory::change` (`src/vfio_user/memory`:
//!   maps a client's file), `Work` of the thread that programs VF BARs, `Stop::client`, `Outgoing::sending`,
//!   `Inbox::state` (one non-blocking read after the other of what a client has sent), `Notifier::armed`, and the command
//!   line's log limit. `Drained::lock` (`src/vfio_user/memory`) is below `GuestMemory::change`;
//! * `ClientDma::budget` also calls `VirtualFunctions::delays_others`, which only uses `try_lock` on engines and never waits;
//! * `Vectors::thread` is held while a notifier starts or stops (at most 1 s), by the connection's thread only, which
//!   then also takes `Notifier::armed`.
//!
//! # Waits
//! A wait for another thread is ordered like a lock: the thread waited for must not need a lock that the waiting thread
//! holds.
//!
//! | no. | wait | waits for | held by the waiting thread | why it ends |
//! |---|---|---|---|---|
//! | 1 | `MsiQuiesce::change` (`src/card/msi_quiesce.rs`) | interrupts of the function that are being sent | 1 | a sender holds at most 2 or 3 and calls `MsiSink::trigger`, which must not block; interrupts raised meanwhile are deferred, not blocked |
//! | 2 | `MsiSink::settle` over vfio-user (`src/vfio_user/irq.rs`) | eventfd writes of the notifier thread, which takes only leaves | 1 | at most 5 ms |
//! | 3 | `Interrupts::change` that disables the tree | MSIs of the tree in flight | none, 2 in an FLR, or 2 and all of 3 in a reset | as wait 1; engines that are held send nothing |
//! | 4 | `Inbox::wait` (`src/vfio_user/inbox.rs`) | a reply of the client that maps the guest's memory | 2 or 3 | budgets of step and client. The connection's thread may wait for 2 or 3: while it executes a request, the waiting thread receives the reply itself. A client may be unable to reply before that request has ended (QEMU): the wait then ends after 20 ms, once for each request of the client, and the access is tried again in a later step |
//! | 5 | `Card::end_steps`, `Units::end_steps_of` | each unit's current step, or each that uses memory of the functions concerned; one unit at a time | none, or 2 | a step is bounded (about 1 ms, and wait 4) |
//! | 6 | `GuestMemory::unmap` (`src/vfio_user/memory`) | views that began before the unmap | none | views end with their step; at most 1 s |
//! | 7 | `Deferred::push_within` | a worker that executes an earlier deferred request | 1 | the request ends by wait 4; at most 1 s |
//! | 8 | `EventCount::wait`, `Subscription::take`, the BAR programming thread | work | none | |
//!
//! Flags that look like locks never wait: a thread that finds `Deferred::taken`, [`Memory::begin_emptying`],
//! `Engines::try_lock_members` or an engine in use does something else.
//!
//! [`Memory::begin_emptying`]: crate::memory::Memory::begin_emptying
//! [`Units`]: crate::units::Units

pub use arctic_base::sync::*;
