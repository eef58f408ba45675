// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Records of the walkers in flight.

use zerocopy::little_endian::{U32, U64};

use super::{SavedFlight, SavedKernels, SavedWalker};
use crate::compute::parked::MOST_OF_FUNCTION;
use crate::compute::replay::{self, MOST_ACCESSES, MOST_ATOMICS, SavedReplay};
use crate::state::{Document, Record, RestoreError, SavedState, Tag, Writer, format};
use crate::topology::CLUSTERS;

arctic_base::record! {
    /// A walker; its groups follow those of the walker before in their section.
    struct WalkerRecord[b"KWLK", 60] {
        /// PPHWSP of the context, as offset in the GGTT range.
        page: U64,
        ticket: U64,
        /// CTX_TIMESTAMP and TIMESTAMP at its begin.
        started: [U32; 2],
        longest: U64,
        instructions: U64,
        /// The next group to begin, if `has_next` is 1.
        next: [U32; 3],
        has_next: U32,
        groups: U32,
    }

    /// A group in flight. Its bytes, first those of its threads and then those of its loads, follow those of the group before in
    /// [`BYTES`]; likewise what its message has done.
    struct GroupRecord[b"KGRP", 60] {
        slot: U32,
        group: [U32; 3],
        number: U64,
        /// Bytes of the threads (`arctic_eu::exec::SavedGroup`).
        threads: U32,
        /// Numbers of atomic operations, loads and stores of the message.
        atomics: U32,
        loads: U32,
        stores: U32,
        /// An atomic operation whose access was not answered, if `has_begun` is 1.
        has_begun: U32,
        begun: [U64; 2],
    }

    /// An atomic operation that was applied.
    struct AtomicRecord[b"KATM", 40] {
        address: U64,
        size: U32,
        opcode: U32,
        operands: [U64; 2],
        /// The value before.
        old: U64,
    }

    /// A load that was answered.
    struct LoadRecord[b"KLDS", 12] {
        address: U64,
        bytes: U32,
    }

    /// A store that was answered.
    struct StoreRecord[b"KSTS", 12] {
        address: U64,
        bytes: U32,
    }
}

const BYTES: Tag = Tag(*b"KBYT");

/// Largest number of groups of a function.
const MOST_GROUPS: usize = MOST_OF_FUNCTION * (CLUSTERS + 1);

/// Bytes of the sections but those of the groups, at most.
pub const BYTES_WITHOUT_GROUPS: usize =
    format::section_bytes::<WalkerRecord>(MOST_OF_FUNCTION) + 5 * (format::SECTION_BYTES + format::ALIGNMENT);
// What a group has in each of the sections, but the bytes of its threads.
const _: () = assert!(
    size_of::<GroupRecord>()
        + MOST_ATOMICS * size_of::<AtomicRecord>()
        + MOST_ACCESSES * (size_of::<LoadRecord>() + size_of::<StoreRecord>())
        + replay::MOST_BYTES
        <= SavedReplay::MOST_BYTES
);

fn dword(value: usize) -> U32 {
    u32::try_from(value).unwrap_or(u32::MAX).into()
}

fn size(field: U32) -> usize {
    field.get() as usize
}

impl SavedState for SavedKernels {
    const UNIT: &'static str = "kernels";
    const TAGS: &'static [Tag] =
        &[WalkerRecord::TAG, GroupRecord::TAG, AtomicRecord::TAG, LoadRecord::TAG, StoreRecord::TAG, BYTES];

    fn write(&self, to: &mut Writer) {
        let SavedKernels { walkers } = self;
        to.records(walkers.iter().map(|walker| WalkerRecord {
            page: walker.page.into(),
            ticket: walker.ticket.into(),
            started: walker.started.map(U32::new),
            longest: walker.longest.into(),
            instructions: walker.instructions.into(),
            next: walker.next.unwrap_or_default().map(U32::new),
            has_next: u32::from(walker.next.is_some()).into(),
            groups: dword(walker.groups.len()),
        }));
        let groups: Vec<&SavedFlight> = walkers.iter().flat_map(|walker| &walker.groups).collect();
        to.records(groups.iter().map(|flight| GroupRecord {
            slot: flight.slot.into(),
            group: flight.group.map(U32::new),
            number: flight.number.into(),
            threads: dword(flight.threads.len()),
            atomics: dword(flight.message.atomics.len()),
            loads: dword(flight.message.loads.len()),
            stores: dword(flight.message.stores.len()),
            has_begun: u32::from(flight.message.begun.is_some()).into(),
            begun: flight.message.begun.map_or([U64::ZERO; 2], |(address, value)| [address.into(), value.into()]),
        }));
        let messages = || groups.iter().map(|flight| &flight.message);
        to.records(messages().flat_map(|it| &it.atomics).map(|(address, size, opcode, operands, old)| AtomicRecord {
            address: (*address).into(),
            size: (*size).into(),
            opcode: (*opcode).into(),
            operands: operands.map(U64::new),
            old: (*old).into(),
        }));
        to.records(
            messages()
                .flat_map(|it| &it.loads)
                .map(|(address, bytes)| LoadRecord { address: (*address).into(), bytes: dword(bytes.len()) }),
        );
        to.records(
            messages()
                .flat_map(|it| &it.stores)
                .map(|(address, len)| StoreRecord { address: (*address).into(), bytes: dword(*len) }),
        );
        let mut bytes = Vec::new();
        for SavedFlight { threads, message, .. } in groups {
            bytes.extend_from_slice(threads);
            message.loads.iter().for_each(|(_, loaded)| bytes.extend_from_slice(loaded));
        }
        to.bytes(BYTES, &bytes);
    }

    fn read(from: &Document<'_>) -> Result<Self, RestoreError> {
        let invalid = RestoreError::invalid::<SavedKernels>;
        let mut bytes = from.bytes(BYTES)?;
        let mut take = |count: usize| {
            let (taken, rest) = bytes.split_at_checked(count).ok_or(invalid("a group without its bytes"))?;
            bytes = rest;
            Ok::<_, RestoreError>(taken.to_vec())
        };
        let mut groups = from.records::<GroupRecord>(MOST_GROUPS)?.into_iter();
        let mut atomics = from.records::<AtomicRecord>(MOST_GROUPS * MOST_ATOMICS)?.into_iter();
        let mut loads = from.records::<LoadRecord>(MOST_GROUPS * MOST_ACCESSES)?.into_iter();
        let mut stores = from.records::<StoreRecord>(MOST_GROUPS * MOST_ACCESSES)?.into_iter();
        let mut walkers = Vec::new();
        for walker in from.records::<WalkerRecord>(MOST_OF_FUNCTION)? {
            let mut own = Vec::new();
            for group in groups.by_ref().take(size(walker.groups)) {
                let threads = take(size(group.threads))?;
                let atomics: Vec<_> = atomics.by_ref().take(size(group.atomics)).collect();
                let mut loaded = Vec::new();
                for LoadRecord { address, bytes } in loads.by_ref().take(size(group.loads)) {
                    loaded.push((address.get(), take(size(bytes))?));
                }
                let stores: Vec<_> = stores.by_ref().take(size(group.stores)).collect();
                let counts =
                    [(atomics.len(), group.atomics), (loaded.len(), group.loads), (stores.len(), group.stores)];
                if counts.iter().any(|(found, expected)| *found != size(*expected)) {
                    return Err(invalid("a message without its accesses"));
                }
                let begun = group.begun.map(U64::get);
                own.push(SavedFlight {
                    slot: group.slot.get(),
                    number: group.number.get(),
                    group: group.group.map(U32::get),
                    message: SavedReplay {
                        begun: choice(group.has_begun, (begun[0], begun[1])).ok_or(invalid("a message"))?,
                        atomics: atomics.iter().map(atomic).collect(),
                        loads: loaded,
                        stores: stores.iter().map(|store| (store.address.get(), size(store.bytes))).collect(),
                    },
                    threads,
                });
            }
            if own.len() != size(walker.groups) {
                return Err(invalid("a walker without its groups"));
            }
            walkers.push(SavedWalker {
                page: walker.page.get(),
                ticket: walker.ticket.get(),
                started: walker.started.map(U32::get),
                longest: walker.longest.get(),
                instructions: walker.instructions.get(),
                next: choice(walker.has_next, walker.next.map(U32::get)).ok_or(invalid("a walker"))?,
                groups: own,
            });
        }
        let none_left =
            groups.next().is_none() && atomics.next().is_none() && loads.next().is_none() && stores.next().is_none();
        if none_left && bytes.is_empty() {
            Ok(SavedKernels { walkers })
        } else {
            Err(invalid("what belongs to no walker"))
        }
    }
}

/// The value if the field says that there is one; `None` if the field is neither 0 nor 1.
fn choice<T>(field: U32, value: T) -> Option<Option<T>> {
    match field.get() {
        0 => Some(None),
        1 => Some(Some(value)),
        _ => None,
    }
}

fn atomic(record: &AtomicRecord) -> (u64, u32, u32, [u64; 2], u64) {
    let AtomicRecord { address, size, opcode, operands, old } = *record;
    (address.get(), size.get(), opcode.get(), operands.map(U64::get), old.get())
}
