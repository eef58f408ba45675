// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The lock order of the card, and the synchronisation primitives of [`arctic_base::sync`].
//!
//! A thread that holds a lock takes only locks further down in this table.
//!
//! | no. | lock | protects | taken by | a holder blocks on |
//! |---|---|---|---|---|
//! | 1 | the engines (`EngineSlot::engine`), each a [`PriorityMutex`](arctic_base::priority_mutex), by index if several are held | the engine's position | workers by `try_lock`; with priority: resets, `quiesce`, `save` and `restore`, and register writes that invalidate translations, which wait for a step | replies of a client, within its budget and that of the step; what such a thread executes for this client does not prevent the reply |
//! | 2 | `Card::accesses`, shared by accesses to the aperture, writes of registers and polls of watchdogs, exclusive in `quiesce`, `save` and `restore` and after a change of a fence | views of guest memory | threads that access BARs, workers | replies of a client |
//! | 3 | leaves: `Delivery` of the interrupts (released before the MSI is sent), `Residency::sleep`, `Gt::pcode`, `Aperture::replacing`, the counts of unmodelled accesses | | every thread | |

pub use arctic_base::sync::*;
