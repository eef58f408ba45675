// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Records of the GuC's state of a VF.

use arctic_sriov::number::low;
use zerocopy::little_endian::{U16, U32, U64};

use super::{
    IMAGE, MOST_PENDING, SavedClient, SavedContext, SavedContexts, SavedDoorbell, SavedDoorbells, SavedLocation,
    SavedMember, SavedPlacement, SavedQuotas, SavedRings,
};
use crate::guc::functions::client::MOST_WAITING;
use crate::guc::functions::context::{Context, MAX_ID, Policies};
use crate::guc::functions::engine_map::MAX_LOGICAL;
use crate::guc::messages::ctb::{SavedChannel, SavedPosition};
use crate::guc::messages::hxg::MAX_DWORDS;
use crate::state::{Document, Record, RestoreError, SavedState, Tag, Writer, format};

/// Largest number of contexts of a function: a context id has 16 bits.
const MOST_CONTEXTS: usize = MAX_ID as usize + 1;
/// Members of a context, on average over the contexts of a function: those of a parallel context on all engines of the class
/// with the most engines, of which an Xe-HPG card has four (CCS).
const MEMBERS: usize = 4;
/// Bytes that xe reserves for what the GuC saves of a VF (xe: XE_GT_SRIOV_PF_MIGRATION_GUC_DATA_MAX_SIZE).
pub const MOST_BYTES: usize = 8 << 20;
/// Bytes of a context with so many members, policies of its own and a work queue.
const CONTEXT_BYTES: usize = size_of::<ContextRecord>()
    + MEMBERS * size_of::<MemberRecord>()
    + size_of::<PolicyRecord>()
    + size_of::<WorkQueueRecord>();
const _: () = assert!(CONTEXT_BYTES <= 64);
/// Most dwords of the messages that wait: those of the PF are limited ([`MOST_WAITING`]), and events are short.
const MOST_DWORDS: usize = MOST_WAITING * MAX_DWORDS + MOST_PENDING * 4;
/// Largest number of doorbells.
const MOST_DOORBELLS: usize = 256;
/// Bytes of all that a document has but contexts and groups of kernels in flight, at most: messages and TLB invalidations that the
/// VF is owed, doorbells, registers, interrupts, and what has a fixed size.
const OTHERS: usize = format::HEADER_BYTES
    + format::SECTION_BYTES
    + super::function::IDENTITY_BYTES
    + format::section_bytes::<QuotaRecord>(1)
    + format::section_bytes::<PlacementRecord>(1)
    + format::section_bytes::<ClientRecord>(1)
    + format::section_bytes::<MessageRecord>(MOST_PENDING)
    + format::section_bytes::<DwordRecord>(MOST_DWORDS)
    + format::section_bytes::<InvalidationRecord>(MOST_PENDING)
    + format::section_bytes::<DoorbellRecord>(MOST_DOORBELLS)
    + crate::gt::saved::MOST_BYTES
    + crate::interrupts::MOST_SAVED_BYTES
    + format::END_BYTES;
/// Bytes of the sections of so many contexts, at most [`MOST_CONTEXTS`], each of them with [`CONTEXT_BYTES`].
#[allow(clippy::arithmetic_side_effects, reason = "at most a few MiB")]
const fn bytes_of_contexts(count: usize) -> usize {
    format::section_bytes::<ContextRecord>(count)
        + format::section_bytes::<MemberRecord>(count * MEMBERS)
        + format::section_bytes::<PolicyRecord>(count)
        + format::section_bytes::<WorkQueueRecord>(count)
}

/// Bytes that the groups of kernels in flight may have of a function with so many contexts: then all that it can have fits in the
/// buffer of xe at once (MIG-023). The GGTT entries and the description of local memory are not in it: a PF driver transfers them.
pub const fn room_for_groups(contexts: u32) -> usize {
    let contexts = if (contexts as usize) < MOST_CONTEXTS { contexts as usize } else { MOST_CONTEXTS };
    const WITHOUT_CONTEXTS: usize = MOST_BYTES - OTHERS - crate::compute::saved::BYTES_WITHOUT_GROUPS;
    let room = WITHOUT_CONTEXTS.saturating_sub(bytes_of_contexts(contexts));
    if room < crate::compute::MOST_SAVED_BYTES { room } else { crate::compute::MOST_SAVED_BYTES }
}
// A function with the most contexts has room for large groups, and one with the quota of each of seven VFs for all of them.
const _: () =
    assert!(room_for_groups(u32::MAX) >= 3 << 20 && room_for_groups(1 << 13) == crate::compute::MOST_SAVED_BYTES);

arctic_base::record! {
    /// What the VF was provisioned with.
    struct QuotaRecord[b"QUOT", 24] {
        ggtt_size: U64,
        local_memory: U64,
        contexts: U32,
        doorbells: U32,
    }

    /// Where the VF was.
    struct PlacementRecord[b"PLAC", 12] {
        ggtt_start: U64,
        /// 0 or 1.
        fix_up: U32,
    }

    /// What the driver has set up.
    struct ClientRecord[b"CLNT", 120] {
        /// [`VERSION`] and the following.
        flags: U32,
        /// Interface version of the driver: major, minor, patch.
        version: [u8; 3],
        reserved: u8,
        /// Configured locations: host to GuC, GuC to host. Then those in use.
        rings: [LocationFields; 4],
        interrupt_source: U64,
        interrupt_status: U64,
        /// Own and published position of the rings in use.
        positions: [[U32; 2]; 2],
    }

    /// A message that waits for space; its dwords follow those of the message before in their section.
    struct MessageRecord[b"WAIT", 4] {
        fence: U16,
        dwords: U16,
    }

    /// A dword of the messages that wait.
    struct DwordRecord[b"WAID", 4] {
        value: U32,
    }

    /// Sequence number of a TLB invalidation without a response.
    struct InvalidationRecord[b"TLBI", 4] {
        sequence: U32,
    }

    /// A context. Its members, and its policies and its work queue if it has them, follow those of the context before in their
    /// sections.
    struct ContextRecord[b"CTXS", 8] {
        id: U16,
        /// In the GuC's numbering.
        class: u8,
        mask: u8,
        members: u8,
        /// [`ENABLED`] and the following.
        flags: u8,
        /// If it has [`POLICIES`].
        priority: u8,
        /// Members that are ready, one bit each.
        ready: u8,
    }

    /// A logical ring context of a context.
    struct MemberRecord[b"CTXM", 8] {
        /// The descriptor, with the address as offset in the GGTT range.
        descriptor: U64,
    }

    /// Policies of a context that are not the default ones; times in microseconds, as the driver sets them.
    struct PolicyRecord[b"CTXP", 12] {
        quantum: U32,
        preemption_timeout: U32,
        frequency: U32,
    }

    /// Work queue of a parallel context, at offsets in the GGTT range.
    struct WorkQueueRecord[b"CTXQ", 12] {
        descriptor: U32,
        ring: U32,
        bytes: U32,
    }

    /// A doorbell.
    struct DoorbellRecord[b"DBEL", 8] {
        id: U16,
        context: U16,
        page: U32,
    }

    /// Location of a ring. Not a section of its own.
    struct LocationFields[b"LOCA", 20] {
        /// GGTT offset of the descriptor plus 1; 0: not configured.
        descriptor: U64,
        /// Likewise of the buffer.
        buffer: U64,
        bytes: U32,
    }
}

/// Flags of a client: a version was agreed upon, CAT errors are reported with their type, rings are in use, and one is broken.
const VERSION: u32 = 1;
const CAT_ERROR_TYPE: u32 = 2;
const IN_USE: u32 = 4;
const H2G_BROKEN: u32 = 8;
const G2H_BROKEN: u32 = 16;
const CLIENT_FLAGS: u32 = VERSION | CAT_ERROR_TYPE | IN_USE | H2G_BROKEN | G2H_BROKEN;

/// Flags of a context: it is enabled, has policies of its own, has a work queue, and is preempted to idle, which is a policy.
const ENABLED: u8 = 1;
const POLICIES: u8 = 2;
const WORK_QUEUE: u8 = 4;
const PREEMPT_TO_IDLE: u8 = 8;
const CONTEXT_FLAGS: u8 = ENABLED | POLICIES | WORK_QUEUE | PREEMPT_TO_IDLE;

fn flag<T: Default>(set: bool, flag: T) -> T {
    if set { flag } else { T::default() }
}

/// The field for an offset that may not be configured. An offset has 32 bits.
fn offset_field(offset: Option<u64>) -> U64 {
    offset.map_or(0, |offset| offset.saturating_add(1)).into()
}

fn offset_of(field: U64) -> Option<u64> {
    field.get().checked_sub(1)
}

impl SavedState for SavedQuotas {
    const UNIT: &'static str = "quotas";
    const TAGS: &'static [Tag] = &[QuotaRecord::TAG];

    fn write(&self, to: &mut Writer) {
        let SavedQuotas { ggtt_size, local_memory, contexts, doorbells } = *self;
        to.record(QuotaRecord {
            ggtt_size: ggtt_size.into(),
            local_memory: local_memory.into(),
            contexts: contexts.into(),
            doorbells: doorbells.into(),
        });
    }

    fn read(from: &Document<'_>) -> Result<Self, RestoreError> {
        let QuotaRecord { ggtt_size, local_memory, contexts, doorbells } = from.record()?;
        Ok(SavedQuotas {
            ggtt_size: ggtt_size.get(),
            local_memory: local_memory.get(),
            contexts: contexts.get(),
            doorbells: doorbells.get(),
        })
    }
}

impl SavedState for SavedPlacement {
    const UNIT: &'static str = "placement";
    const TAGS: &'static [Tag] = &[PlacementRecord::TAG];

    fn write(&self, to: &mut Writer) {
        let SavedPlacement { ggtt_start, fix_up } = *self;
        to.record(PlacementRecord { ggtt_start: ggtt_start.into(), fix_up: u32::from(fix_up).into() });
    }

    fn read(from: &Document<'_>) -> Result<Self, RestoreError> {
        let PlacementRecord { ggtt_start, fix_up } = from.record()?;
        let fix_up = switch(fix_up.get()).ok_or(RestoreError::invalid::<SavedPlacement>("a flag"))?;
        Ok(SavedPlacement { ggtt_start: ggtt_start.get(), fix_up })
    }
}

/// Bytes that a saved VF with these contexts has at most, without memory and without groups of kernels in flight.
pub(super) fn most_bytes_of_contexts<'c>(contexts: impl Iterator<Item = &'c Context>) -> usize {
    const ALONE: usize = CONTEXT_BYTES - MEMBERS * size_of::<MemberRecord>();
    let members = |context: &Context| context.members.len().saturating_mul(size_of::<MemberRecord>());
    let sections = OTHERS.saturating_add(4 * format::SECTION_BYTES);
    contexts.fold(sections, |sum, context| sum.saturating_add(ALONE).saturating_add(members(context)))
}

fn location_fields(location: &SavedLocation) -> LocationFields {
    let SavedLocation { descriptor, buffer, bytes } = *location;
    LocationFields { descriptor: offset_field(descriptor), buffer: offset_field(buffer), bytes: bytes.into() }
}

fn location_of(fields: LocationFields) -> SavedLocation {
    let LocationFields { descriptor, buffer, bytes } = fields;
    SavedLocation { descriptor: offset_of(descriptor), buffer: offset_of(buffer), bytes: bytes.get() }
}

impl SavedState for SavedClient {
    const UNIT: &'static str = "GuC channel";
    const TAGS: &'static [Tag] = &[ClientRecord::TAG, MessageRecord::TAG, DwordRecord::TAG, InvalidationRecord::TAG];

    fn write(&self, to: &mut Writer) {
        let SavedClient {
            h2g,
            g2h,
            in_use,
            interrupt_source,
            interrupt_status,
            invalidations,
            version,
            cat_error_type,
        } = self;
        let nowhere = SavedLocation { descriptor: None, buffer: None, bytes: 0 };
        let in_use_at = in_use.as_ref().map_or([&nowhere; 2], |rings| [&rings.h2g, &rings.g2h]);
        let channel = in_use.as_ref().map(|rings| &rings.channel);
        let positions = channel.map(|channel| [channel.h2g, channel.g2h]);
        let broken = |ring: usize| positions.and_then(|both| both.get(ring).copied()).is_some_and(|ring| ring.broken);
        to.record(ClientRecord {
            flags: (flag(version.is_some(), VERSION)
                | flag(*cat_error_type, CAT_ERROR_TYPE)
                | flag(in_use.is_some(), IN_USE)
                | flag(broken(0), H2G_BROKEN)
                | flag(broken(1), G2H_BROKEN))
            .into(),
            version: version.unwrap_or_default(),
            reserved: 0,
            rings: [h2g, g2h, in_use_at[0], in_use_at[1]].map(location_fields),
            interrupt_source: offset_field(*interrupt_source),
            interrupt_status: offset_field(*interrupt_status),
            positions: positions.map_or([[U32::ZERO; 2]; 2], |both| {
                both.map(|SavedPosition { own, published, broken: _ }| [own.into(), published.into()])
            }),
        });
        let waiting = channel.map_or(&[][..], |channel| &channel.waiting);
        to.records(waiting.iter().map(|(fence, dwords)| MessageRecord {
            fence: (*fence).into(),
            dwords: u16::try_from(dwords.len()).unwrap_or(u16::MAX).into(),
        }));
        to.records(waiting.iter().flat_map(|(_, dwords)| dwords).map(|value| DwordRecord { value: (*value).into() }));
        to.records(invalidations.iter().map(|sequence| InvalidationRecord { sequence: (*sequence).into() }));
    }

    fn read(from: &Document<'_>) -> Result<Self, RestoreError> {
        let invalid = RestoreError::invalid::<SavedClient>;
        let ClientRecord { flags, version, reserved: _, rings, interrupt_source, interrupt_status, positions } =
            from.record()?;
        let flags = flags.get();
        if flags & !CLIENT_FLAGS != 0 {
            return Err(invalid("a flag"));
        }
        let mut dwords = from.records::<DwordRecord>(MOST_DWORDS)?.into_iter();
        let mut waiting = Vec::new();
        for MessageRecord { fence, dwords: len } in from.records(MOST_PENDING)? {
            let message: Vec<u32> = dwords.by_ref().take(len.get().into()).map(|dword| dword.value.get()).collect();
            if message.len() != usize::from(len.get()) {
                return Err(invalid("a message without its dwords"));
            }
            waiting.push((fence.get(), message));
        }
        if dwords.next().is_some() || flags & IN_USE == 0 && !waiting.is_empty() {
            return Err(invalid("dwords of no message"));
        }
        let [h2g, g2h, h2g_in_use, g2h_in_use] = rings.map(location_of);
        let position = |[own, published]: [U32; 2], broken| SavedPosition {
            own: own.get(),
            published: published.get(),
            broken: flags & broken != 0,
        };
        let [of_h2g, of_g2h] = positions;
        let channel = SavedChannel { h2g: position(of_h2g, H2G_BROKEN), g2h: position(of_g2h, G2H_BROKEN), waiting };
        let rings = SavedRings { h2g: h2g_in_use, g2h: g2h_in_use, channel };
        Ok(SavedClient {
            h2g,
            g2h,
            in_use: (flags & IN_USE != 0).then_some(rings),
            interrupt_source: offset_of(interrupt_source),
            interrupt_status: offset_of(interrupt_status),
            invalidations: from
                .records(MOST_PENDING)?
                .iter()
                .map(|it: &InvalidationRecord| it.sequence.get())
                .collect(),
            version: (flags & VERSION != 0).then_some(version),
            cat_error_type: flags & CAT_ERROR_TYPE != 0,
        })
    }
}

impl SavedContext {
    fn policies(&self) -> Policies {
        let SavedContext { priority, quantum, preemption_timeout, preempt_to_idle, frequency, .. } = *self;
        Policies { priority, quantum, preemption_timeout, preempt_to_idle, frequency }
    }
}

impl SavedState for SavedContexts {
    const UNIT: &'static str = "contexts";
    const TAGS: &'static [Tag] = &[ContextRecord::TAG, MemberRecord::TAG, PolicyRecord::TAG, WorkQueueRecord::TAG];

    fn write(&self, to: &mut Writer) {
        let SavedContexts { contexts } = self;
        let special = |context: &SavedContext| context.policies() != Policies::default();
        to.records(contexts.iter().map(|context| {
            ContextRecord {
                id: context.id.into(),
                class: context.class,
                mask: context.mask,
                members: u8::try_from(context.members.len()).unwrap_or(u8::MAX),
                flags: flag(context.enabled, ENABLED)
                    | flag(special(context), POLICIES)
                    | flag(context.work_queue.is_some(), WORK_QUEUE)
                    | flag(context.preempt_to_idle, PREEMPT_TO_IDLE),
                priority: flag(special(context), context.priority),
                ready: (0..)
                    .zip(&context.members)
                    .fold(0, |ready, (at, member)| ready | u8::from(member.ready).checked_shl(at).unwrap_or(0)),
            }
        }));
        to.records(
            contexts
                .iter()
                .flat_map(|context| &context.members)
                .map(|SavedMember { image, flags, ready: _ }| MemberRecord { descriptor: (image | flags).into() }),
        );
        to.records(contexts.iter().filter(|context| special(context)).map(|context| PolicyRecord {
            quantum: microseconds(context.quantum),
            preemption_timeout: microseconds(context.preemption_timeout),
            frequency: context.frequency.into(),
        }));
        to.records(contexts.iter().filter_map(|context| context.work_queue).map(|(descriptor, ring, bytes)| {
            WorkQueueRecord { descriptor: low(descriptor).into(), ring: low(ring).into(), bytes: bytes.into() }
        }));
    }

    fn read(from: &Document<'_>) -> Result<Self, RestoreError> {
        let invalid = RestoreError::invalid::<SavedContexts>;
        let mut members = from.records::<MemberRecord>(MOST_CONTEXTS.saturating_mul(MAX_LOGICAL))?.into_iter();
        let mut policies = from.records::<PolicyRecord>(MOST_CONTEXTS)?.into_iter();
        let mut queues = from.records::<WorkQueueRecord>(MOST_CONTEXTS)?.into_iter();
        let mut contexts = Vec::new();
        for record in from.records(MOST_CONTEXTS)? {
            let ContextRecord { id, class, mask, members: width, flags, priority, ready } = record;
            let has = |flag: u8| flags & flag != 0;
            if flags & !CONTEXT_FLAGS != 0 || !has(POLICIES) && (has(PREEMPT_TO_IDLE) || priority != 0) {
                return Err(invalid("a flag"));
            }
            let mut own = Vec::new();
            for (at, MemberRecord { descriptor }) in (0..u8::BITS).zip(members.by_ref().take(width.into())) {
                let (image, flags) = (descriptor.get() & IMAGE, descriptor.get() & !IMAGE);
                let ready = ready.checked_shr(at).is_some_and(|ready| ready & 1 != 0);
                own.push(SavedMember { image, flags, ready });
            }
            if own.len() != usize::from(width) || ready.checked_shr(width.into()).is_some_and(|ready| ready != 0) {
                return Err(invalid("a context without its members"));
            }
            let missing = || invalid("a context without its policies or its work queue");
            let own_policies = has(POLICIES).then(|| policies.next().ok_or_else(missing)).transpose()?;
            let own_policies = own_policies.map(|record| Policies {
                priority,
                quantum: nanoseconds(record.quantum),
                preemption_timeout: nanoseconds(record.preemption_timeout),
                preempt_to_idle: has(PREEMPT_TO_IDLE),
                frequency: record.frequency.get(),
            });
            let work_queue = has(WORK_QUEUE).then(|| queues.next().ok_or_else(missing)).transpose()?;
            let Policies { priority, quantum, preemption_timeout, preempt_to_idle, frequency } =
                own_policies.unwrap_or_default();
            contexts.push(SavedContext {
                id: id.get(),
                class,
                mask,
                members: own,
                work_queue: work_queue.map(|it| (it.descriptor.get().into(), it.ring.get().into(), it.bytes.get())),
                priority,
                quantum,
                preemption_timeout,
                preempt_to_idle,
                frequency,
                enabled: has(ENABLED),
            });
        }
        if members.next().is_some() || policies.next().is_some() || queues.next().is_some() {
            return Err(invalid("what belongs to no context"));
        }
        Ok(SavedContexts { contexts })
    }
}

/// Drivers set times in microseconds, of 32 bits.
fn microseconds(nanoseconds: u64) -> U32 {
    u32::try_from(nanoseconds / 1000).unwrap_or(u32::MAX).into()
}

fn nanoseconds(microseconds: U32) -> u64 {
    u64::from(microseconds.get()).saturating_mul(1000)
}

/// The value of a field that is 0 or 1.
fn switch(field: u32) -> Option<bool> {
    match field {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

impl SavedState for SavedDoorbells {
    const UNIT: &'static str = "doorbells";
    const TAGS: &'static [Tag] = &[DoorbellRecord::TAG];

    fn write(&self, to: &mut Writer) {
        let SavedDoorbells { doorbells } = self;
        to.records(doorbells.iter().map(|SavedDoorbell { id, page, context }| DoorbellRecord {
            // A physical doorbell has an index of 8 bits.
            id: u16::try_from(*id).unwrap_or(u16::MAX).into(),
            context: (*context).into(),
            page: (*page).into(),
        }));
    }

    fn read(from: &Document<'_>) -> Result<Self, RestoreError> {
        let doorbell = |record: &DoorbellRecord| SavedDoorbell {
            id: record.id.get().into(),
            page: record.page.get(),
            context: record.context.get(),
        };
        Ok(SavedDoorbells { doorbells: from.records(MOST_DOORBELLS)?.iter().map(doorbell).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A context of the largest kind.
    fn largest(id: usize) -> SavedContext {
        let member = SavedMember { image: 0x1000, flags: 0x1234_5678_0000_0009, ready: id.is_multiple_of(2) };
        SavedContext {
            id: u16::try_from(id).unwrap(),
            class: 4,
            mask: 1,
            members: vec![member; MEMBERS],
            work_queue: Some((0x2000, 0x3000, 1024)),
            priority: 1,
            quantum: u64::from(u32::MAX) * 1000,
            preemption_timeout: 7000,
            preempt_to_idle: id.is_multiple_of(3),
            frequency: 300,
            enabled: id.is_multiple_of(5),
        }
    }

    /// MIG-023: the most contexts that a function can have take the bytes that are proved to fit, and are read as they were.
    #[test]
    fn the_most_contexts_take_the_bytes_of_their_bound() {
        let saved = SavedContexts { contexts: (0..MOST_CONTEXTS).map(largest).collect() };
        let mut document = Writer::new(format::Kind::XeHpgFunction);
        saved.write(&mut document);
        let bytes = document.finish();
        assert_eq!(bytes.len(), format::HEADER_BYTES + bytes_of_contexts(MOST_CONTEXTS) + format::END_BYTES);
        let document = Document::read(&bytes, format::Kind::XeHpgFunction).unwrap();
        assert!(SavedContexts::read(&document).unwrap() == saved);
    }
}
