// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Saved state of a VF in the GuC: quotas, what its driver has set up, contexts and doorbells.
//!
//! GGTT addresses are saved as offsets in the function's range, so that they are valid in another range of the same
//! size.
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod function;
mod wire;

pub use function::{SavedFunction, SavedMemory};

use std::collections::BTreeMap;

use arctic_sriov::number::low;

use crate::compute::saved::Kernels;
use crate::doorbell::{Doorbells, Page};
use crate::generation::Version;
use crate::gt::Gt;
use crate::gt::saved::Registers;
use crate::guc::functions::GucFunction;
use crate::guc::functions::client::{Client, FixUp, MemoryInterrupt, State};
use crate::guc::functions::context::{Context, GucContextId, Home, Policies};
use crate::guc::functions::engine_map::{EngineMap, MAX_LOGICAL};
use crate::guc::functions::member::Member;
use crate::guc::functions::parallel::WorkQueue;
use crate::guc::functions::queue::PRIORITIES;
use crate::guc::messages::ctb::{Channel, Location, SavedChannel};
use crate::guc::state::GucState;
use crate::host::Function;
use crate::memory::ggtt;
use crate::memory::saved::{Frames, GgttState, Reach};
use crate::state::{FormatError, RestoreError, SaveError, SaveState, Tag};
use crate::topology::EngineClass;

pub use wire::{MOST_BYTES, room_for_groups};

/// Bits of a context descriptor with the GGTT address of the context image.
const IMAGE: u64 = 0xffff_f000;
/// Bytes of a context image that the GuC uses: the PPHWSP and the register page.
const IMAGE_BYTES: u64 = 0x2000;
/// Maximum number of pending TLB invalidations and of waiting messages that are restored. The GuC executes no requests
/// of a function that does not read its messages, so a driver cannot cause more.
const MOST_PENDING: usize = 1024;

/// The GuC's state of one VF, as a unit to save and restore.
pub struct Unit<'g> {
    /// The GuC.
    pub guc: &'g mut GucState,
    /// The doorbells of the card.
    pub doorbells: &'g Doorbells,
    /// The VF.
    pub function: Function,
}

impl Unit<'_> {
    fn of(&self) -> &GucFunction {
        &self.guc.scheduler.functions[self.function]
    }

    fn reach(&self) -> Reach {
        Reach(self.of().config.ggtt())
    }

    /// Returns whether the VF is paused or stopped, and none of its contexts is on an engine or queued.
    pub fn stopped(&self) -> bool {
        let stopped = matches!(self.of().state, State::Paused { notified: true } | State::Stopped);
        stopped && self.guc.scheduler.quiet(self.function)
    }

    /// Drops all that the function's driver has set up.
    pub fn forget(&mut self) {
        self.guc.of(self.function).fix_up = FixUp::Done;
        self.guc.scheduler.functions.drop_contexts(self.function);
        self.guc.doorbells.release_function(self.doorbells, self.function);
        self.guc.of(self.function).client = Client::default();
        self.guc.drop_pending(self.function);
    }
}

/// Which part of a VF is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveScope {
    /// All.
    WithMemory,
    /// All but GGTT entries and the description of local memory, which a PF driver transfers.
    WithoutMemory,
}

/// Lowest version of the interface in which drivers of VFs adapt to another GGTT range (xe: xe_sriov_vf.c).
const RECOVERY: Version = Version { major: 1, minor: 27, patch: 0 };

/// All units of a VF.
pub struct VfUnits<'g> {
    /// The GT.
    pub gt: &'g Gt,
    /// The GuC.
    pub guc: Unit<'g>,
}

impl VfUnits<'_> {
    fn function(&self) -> Function {
        self.guc.function
    }

    fn ggtt(&self) -> GgttState<'_> {
        let indices = ggtt::indices(&self.guc.of().config.ggtt());
        GgttState { memory: &self.gt.memory, function: self.function(), indices }
    }

    fn kernels(&self) -> Kernels<'_> {
        Kernels { parked: &self.gt.parked, function: self.function(), ggtt: self.guc.of().config.ggtt() }
    }

    /// Saves the VF, which must be paused or stopped. Its state stays as it is.
    pub fn save(&mut self, scope: SaveScope) -> Result<SavedFunction, SaveError> {
        let gt = self.gt;
        let function = self.function();
        let memory = match scope {
            SaveScope::WithoutMemory => None,
            SaveScope::WithMemory => {
                let frames = Frames { memory: &gt.memory, function }.save()?;
                Some(SavedMemory { ggtt: self.ggtt().save()?, frames })
            }
        };
        let (registers, kernels) = (Registers { gt, function }.save()?, self.kernels().save()?);
        let placement =
            SavedPlacement { ggtt_start: self.guc.reach().0.start, fix_up: self.guc.of().fix_up != FixUp::Done };
        let unit = &mut self.guc;
        Ok(SavedFunction {
            identity: gt.identity,
            quotas: Quotas(unit).save()?,
            placement,
            memory,
            registers,
            interrupts: gt.interrupts_of(function).save()?,
            client: ClientState(unit).save()?,
            contexts: Contexts(unit).save()?,
            kernels,
            doorbells: DoorbellState(unit).save()?,
        })
    }

    /// Restores the VF from what was read. With its memory, it is where it was if it can be; without, its PF driver transfers the
    /// memory, and its driver must adapt addresses.
    ///
    /// Nothing changes if the VF is not paused or stopped. After any other error, also one of reading, the VF is empty
    /// ([`VfUnits::empty`]), never restored in part (MIG-025).
    pub fn restore(
        &mut self,
        saved: Result<&SavedFunction, RestoreError>,
        scope: SaveScope,
    ) -> Result<(), RestoreError> {
        if !self.guc.stopped() {
            return Err(RestoreError::Running);
        }
        let restored = saved.and_then(|saved| self.restore_all(saved, scope));
        if restored.is_err() {
            self.empty(scope)?;
        }
        restored
    }

    /// Drops what the driver of the VF has set up, as VF_RESET, and resets its registers. Its quotas stay, and, without memory, the
    /// GGTT entries that the PF driver has written. Nothing changes if the VF is not paused or stopped.
    pub fn empty(&mut self, scope: SaveScope) -> Result<(), RestoreError> {
        let gt = self.gt;
        let function = self.function();
        if !self.guc.stopped() {
            return Err(RestoreError::Running);
        }
        self.forget();
        if let Some(vf) = gt.vf(function) {
            vf.reset();
        }
        match scope {
            SaveScope::WithMemory => gt.memory.ggtt().erase_vf(function, self.ggtt().indices),
            SaveScope::WithoutMemory => gt.memory.ggtt().empty_vf(function),
        }
        gt.memory.invalidate(function.bit());
        self.set_state_again();
        Ok(())
    }

    fn forget(&mut self) {
        self.guc.forget();
        self.gt.parked.drop_function(self.function());
    }

    /// What is sent to the VF depends on whether it was moved.
    fn set_state_again(&mut self) {
        let state = self.guc.of().state;
        self.guc.guc.set_state(self.guc.function, state);
    }

    fn restore_all(&mut self, saved: &SavedFunction, scope: SaveScope) -> Result<(), RestoreError> {
        let gt = self.gt;
        let function = self.function();
        if saved.identity != gt.identity {
            return Err(RestoreError::Device { saved: saved.identity, here: gt.identity });
        }
        Quotas(&mut self.guc).restore(&saved.quotas)?;
        let is_in_place = saved.placement.ggtt_start == self.guc.reach().0.start && !saved.placement.fix_up;
        let is_moved = scope == SaveScope::WithoutMemory || !is_in_place;
        self.forget();
        match (scope, &saved.memory) {
            (SaveScope::WithMemory, Some(SavedMemory { ggtt, frames })) => {
                self.ggtt().restore(ggtt)?;
                Frames { memory: &gt.memory, function }.restore(frames)?;
            }
            (SaveScope::WithMemory, None) => return Err(FormatError::Missing(Tag(*b"GGTT")).into()),
            // Entries that the VF has written before would be used instead of those that the PF driver restores.
            (SaveScope::WithoutMemory, _) => gt.memory.ggtt().empty_vf(function),
        }
        Registers { gt, function }.restore(&saved.registers)?;
        gt.interrupts_of(function).restore(&saved.interrupts)?;
        let unit = &mut self.guc;
        ClientState(unit).restore(&saved.client)?;
        Contexts(unit).restore(&saved.contexts)?;
        DoorbellState(unit).restore(&saved.doorbells)?;
        let client = &unit.of().client;
        let has_channel = client.channel.is_some();
        let version = client.version;
        if is_moved {
            if let Some(version) = version.filter(|version| has_channel && *version < RECOVERY) {
                return Err(RestoreError::NoRecovery { version: version.to_string() });
            }
            unit.guc.of(function).fix_up = FixUp::Due;
            unit.guc.drop_owed(function);
        } else if has_channel {
            // Messages may be in the ring whose interrupt the processors of the VF have not seen.
            unit.guc.unnotified |= function.bit();
        }
        self.kernels().restore(&saved.kernels)?;
        self.set_state_again();
        Ok(())
    }
}

/// An upper bound of the size in bytes of the saved state of a VF that runs, without memory.
pub fn most_bytes(of: &GucFunction) -> usize {
    let kernels =
        of.contexts.values().any(|context| matches!(context.class, EngineClass::Render | EngineClass::Compute));
    let groups = crate::compute::saved::BYTES_WITHOUT_GROUPS + crate::compute::MOST_SAVED_BYTES;
    let kernels = if kernels { groups } else { 0 };
    wire::most_bytes_of_contexts(of.contexts.values()).saturating_add(kernels).min(MOST_BYTES)
}

/// Where the VF was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedPlacement {
    /// Begin of its GGTT range.
    pub ggtt_start: u64,
    /// Its driver has been moved before and has not adapted its addresses.
    pub fix_up: bool,
}

/// What the saved function was provisioned with. The sizes are not restored: they must be equal where the function is
/// restored, because its driver does not accept a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedQuotas {
    ggtt_size: u64,
    local_memory: u64,
    contexts: u32,
    doorbells: u32,
}

/// The quotas of a VF.
pub struct Quotas<'a, 'g>(pub &'a mut Unit<'g>);

impl SaveState for Quotas<'_, '_> {
    type Saved = SavedQuotas;

    fn save(&self) -> Result<SavedQuotas, SaveError> {
        let config = &self.0.of().config;
        Ok(SavedQuotas {
            ggtt_size: config.ggtt_size,
            local_memory: config.local_memory,
            contexts: config.contexts.count,
            doorbells: config.doorbells.count,
        })
    }

    /// Compares the quotas with those of the VF.
    fn restore(&mut self, saved: &SavedQuotas) -> Result<(), RestoreError> {
        let config = &self.0.of().config;
        for (resource, saved, here) in [
            ("GGTT bytes", saved.ggtt_size, config.ggtt_size),
            ("local memory bytes", saved.local_memory, config.local_memory),
            ("contexts", saved.contexts.into(), config.contexts.count.into()),
            ("doorbells", saved.doorbells.into(), config.doorbells.count.into()),
        ] {
            if saved != here {
                return Err(RestoreError::Provisioning { resource, saved, here });
            }
        }
        Ok(())
    }
}

/// A ring's location; GGTT offsets, `None` if not configured.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SavedLocation {
    descriptor: Option<u64>,
    buffer: Option<u64>,
    bytes: u32,
}

impl SavedLocation {
    /// Bytes of a ring's descriptor that the GuC uses.
    const DESCRIPTOR_BYTES: u64 = 12;

    fn save(location: &Location, reach: &Reach) -> Result<Self, SaveError> {
        Ok(SavedLocation {
            descriptor: reach.offset_if_set::<SavedClient>(location.descriptor)?,
            buffer: reach.offset_if_set::<SavedClient>(location.buffer)?,
            bytes: location.bytes,
        })
    }

    fn restored(&self, reach: &Reach) -> Result<Location, RestoreError> {
        if !self.bytes.is_multiple_of(4096) {
            return Err(RestoreError::invalid::<SavedClient>("the size of a CT buffer"));
        }
        Ok(Location {
            descriptor: reach.address_if_set::<SavedClient>(self.descriptor, Self::DESCRIPTOR_BYTES, 4)?,
            buffer: reach.address_if_set::<SavedClient>(self.buffer, 4, 4)?,
            bytes: self.bytes,
        })
    }
}

/// Saved CT buffers in use.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SavedRings {
    h2g: SavedLocation,
    g2h: SavedLocation,
    channel: SavedChannel,
}

/// What the VF's driver has set up, apart from contexts and doorbells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedClient {
    h2g: SavedLocation,
    g2h: SavedLocation,
    in_use: Option<SavedRings>,
    interrupt_source: Option<u64>,
    interrupt_status: Option<u64>,
    invalidations: Vec<u32>,
    /// Major, minor and patch.
    version: Option<[u8; 3]>,
    cat_error_type: bool,
}

/// CT buffers, memory-based interrupt and opt-ins of a VF.
pub struct ClientState<'a, 'g>(pub &'a mut Unit<'g>);

impl SaveState for ClientState<'_, '_> {
    type Saved = SavedClient;

    fn save(&self) -> Result<SavedClient, SaveError> {
        if !self.0.stopped() {
            return Err(SaveError::Running);
        }
        let reach = self.0.reach();
        let client = &self.0.of().client;
        let in_use = client.channel.as_ref().map(|channel| {
            let (h2g, g2h) = channel.locations();
            Ok(SavedRings {
                h2g: SavedLocation::save(h2g, &reach)?,
                g2h: SavedLocation::save(g2h, &reach)?,
                channel: channel.save(),
            })
        });
        Ok(SavedClient {
            h2g: SavedLocation::save(&client.rings.0, &reach)?,
            g2h: SavedLocation::save(&client.rings.1, &reach)?,
            in_use: in_use.transpose()?,
            interrupt_source: reach.offset_if_set::<SavedClient>(client.interrupt.source)?,
            interrupt_status: reach.offset_if_set::<SavedClient>(client.interrupt.status)?,
            invalidations: client.invalidations.clone(),
            version: client.version.map(|version| [version.major, version.minor, version.patch]),
            cat_error_type: client.cat_error_type,
        })
    }

    fn restore(&mut self, saved: &SavedClient) -> Result<(), RestoreError> {
        if !self.0.stopped() {
            return Err(RestoreError::Running);
        }
        let reach = self.0.reach();
        let here = self.0.guc.firmware.submission;
        let version = saved.version.map(|[major, minor, patch]| Version { major, minor, patch });
        // The driver does not ask for the version again (MIG-052).
        if let Some(used) = version.filter(|used| used.major != here.major || *used > here) {
            return Err(RestoreError::Interface { saved: used.to_string(), here: here.to_string() });
        }
        if saved.invalidations.len() > MOST_PENDING {
            return Err(RestoreError::invalid::<SavedClient>("too many TLB invalidations"));
        }
        let channel = saved.in_use.as_ref().map(|rings| {
            let (h2g, g2h) = (rings.h2g.restored(&reach)?, rings.g2h.restored(&reach)?);
            for ring in [h2g, g2h] {
                let end = ring.buffer.checked_add(ring.bytes.into());
                if !ring.complete() || end.is_none_or(|end| end > reach.0.end) {
                    return Err(RestoreError::invalid::<SavedClient>("a CT buffer outside the GGTT range"));
                }
            }
            let restored = Channel::restored(h2g, g2h, &rings.channel, MOST_PENDING);
            restored.ok_or(RestoreError::invalid::<SavedClient>("CT buffer positions or messages"))
        });
        let client = Client {
            rings: (saved.h2g.restored(&reach)?, saved.g2h.restored(&reach)?),
            channel: channel.transpose()?,
            interrupt: MemoryInterrupt {
                source: reach.address_if_set::<SavedClient>(saved.interrupt_source, 1, 1)?,
                status: reach.address_if_set::<SavedClient>(saved.interrupt_status, 16, 16)?,
            },
            invalidations: saved.invalidations.clone(),
            version,
            cat_error_type: saved.cat_error_type,
        };
        self.0.guc.set_client(self.0.function, client);
        Ok(())
    }
}

/// A logical ring context of a saved context.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SavedMember {
    /// GGTT offset of the context image.
    image: u64,
    /// The descriptor without the address.
    flags: u64,
    ready: bool,
}

/// A saved context. It is on no engine and in no queue: a context with work is queued when the function resumes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SavedContext {
    id: u16,
    /// In the GuC's numbering.
    class: u8,
    mask: u8,
    members: Vec<SavedMember>,
    /// GGTT offsets of the descriptor and the ring, and the size of the ring in bytes.
    work_queue: Option<(u64, u64, u32)>,
    priority: u8,
    quantum: u64,
    preemption_timeout: u64,
    preempt_to_idle: bool,
    frequency: u32,
    enabled: bool,
}

/// The contexts of a VF with their queue state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedContexts {
    contexts: Vec<SavedContext>,
}

fn save_context(id: u16, context: &Context, reach: &Reach) -> Result<SavedContext, SaveError> {
    let member = |member: &Member| {
        let image = reach.offset::<SavedContexts>(member.descriptor & IMAGE)?;
        Ok(SavedMember { image, flags: member.descriptor & !IMAGE, ready: member.ready })
    };
    let work_queue = context.work_queue.map(|queue| {
        let (descriptor, ring, bytes) = queue.location();
        Ok((reach.offset::<SavedContexts>(descriptor)?, reach.offset::<SavedContexts>(ring)?, bytes))
    });
    let Policies { priority, quantum, preemption_timeout, preempt_to_idle, frequency } = context.policies;
    Ok(SavedContext {
        id,
        class: context.class.guc(),
        mask: context.mask,
        members: context.members.iter().map(member).collect::<Result<_, _>>()?,
        work_queue: work_queue.transpose()?,
        priority,
        quantum,
        preemption_timeout,
        preempt_to_idle,
        frequency,
        enabled: context.enabled,
    })
}

fn restored_context(
    saved: &SavedContext,
    number: u16,
    map: &EngineMap,
    reach: &Reach,
) -> Result<Context, RestoreError> {
    let error = RestoreError::invalid::<SavedContexts>;
    let invalid = |what| Err(error(what));
    let Some(class) = EngineClass::from_guc(saved.class.into()) else { return invalid("an engine class") };
    let width = saved.members.len();
    if width == 0 || width > MAX_LOGICAL || (width > 1) != saved.work_queue.is_some() {
        return invalid("the members of a context");
    }
    let exists = |base: usize| (base..base.saturating_add(width)).all(|at| map.engine(class, at).is_some());
    let usable = (0..MAX_LOGICAL).filter(|base| exists(*base)).fold(0u8, |mask, base| mask | 1 << base);
    if saved.mask == 0 || saved.mask & !usable != 0 {
        return invalid("the engines of a context");
    }
    if saved.priority >= PRIORITIES {
        return invalid("the priority of a context");
    }
    let member = |member: &SavedMember| {
        if member.flags & IMAGE != 0 {
            return Err(error("the descriptor of a context"));
        }
        let image = reach.address::<SavedContexts>(member.image, IMAGE_BYTES, 4096)?;
        Ok(Member { ready: member.ready, ..Member::new(image | member.flags) })
    };
    let members = saved.members.iter().map(member).collect::<Result<_, _>>()?;
    let work_queue = match saved.work_queue {
        None => None,
        Some((descriptor, ring, bytes)) => {
            let descriptor = reach.address::<SavedContexts>(descriptor, WorkQueue::DESCRIPTOR_BYTES, 1)?;
            let ring = reach.address::<SavedContexts>(ring, bytes.into(), 1)?;
            let Some(queue) = WorkQueue::restored((descriptor, ring, bytes)) else { return invalid("a work queue") };
            Some(queue)
        }
    };
    Ok(Context {
        number,
        class,
        mask: saved.mask,
        members,
        work_queue,
        policies: Policies {
            priority: saved.priority,
            quantum: saved.quantum,
            preemption_timeout: saved.preemption_timeout,
            preempt_to_idle: saved.preempt_to_idle,
            frequency: saved.frequency,
        },
        enabled: saved.enabled,
        disabling: false,
        deregistering: false,
        skipped: false,
        home: Home::Rest,
    })
}

/// The contexts of a VF.
pub struct Contexts<'a, 'g>(pub &'a mut Unit<'g>);

impl SaveState for Contexts<'_, '_> {
    type Saved = SavedContexts;

    fn save(&self) -> Result<SavedContexts, SaveError> {
        if !self.0.stopped() {
            return Err(SaveError::Running);
        }
        let reach = self.0.reach();
        let contexts = self.0.of().contexts.iter();
        let contexts = contexts.map(|(id, context)| save_context(*id, context, &reach)).collect::<Result<_, _>>()?;
        Ok(SavedContexts { contexts })
    }

    fn restore(&mut self, saved: &SavedContexts) -> Result<(), RestoreError> {
        if !self.0.stopped() {
            return Err(RestoreError::Running);
        }
        let reach = self.0.reach();
        let map = self.0.guc.scheduler.map();
        let mut contexts = BTreeMap::new();
        for saved in &saved.contexts {
            let number = self.0.guc.context_number(self.0.function, saved.id.into());
            let number = number.map_err(|_| RestoreError::invalid::<SavedContexts>("a context id"))?;
            if contexts.insert(saved.id, restored_context(saved, number, &map, &reach)?).is_some() {
                return Err(RestoreError::invalid::<SavedContexts>("a context id twice"));
            }
        }
        self.0.guc.doorbells.release_function(self.0.doorbells, self.0.function);
        self.0.guc.scheduler.functions.drop_contexts(self.0.function);
        // They stay off the engines until the VF is resumed, or reset if it is stopped.
        let of = self.0.guc.of(self.0.function);
        (of.contexts, of.paused) = (contexts, true);
        Ok(())
    }
}

/// An armed doorbell.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SavedDoorbell {
    /// The function's own id.
    id: u32,
    /// Offset of the page in GTTMMADR.
    page: u32,
    context: u16,
}

/// The armed doorbells of a VF. Rings that have not been served are not part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedDoorbells {
    doorbells: Vec<SavedDoorbell>,
}

/// The doorbells of a VF. They are restored after its contexts.
pub struct DoorbellState<'a, 'g>(pub &'a mut Unit<'g>);

impl SaveState for DoorbellState<'_, '_> {
    type Saved = SavedDoorbells;

    fn save(&self) -> Result<SavedDoorbells, SaveError> {
        if !self.0.stopped() {
            return Err(SaveError::Running);
        }
        let begin = self.0.of().config.doorbells.begin;
        let armed = (0..=u8::MAX).filter_map(|index| {
            let context = self.0.guc.doorbells.bound(index).filter(|context| context.function == self.0.function)?;
            let (_, page) = self.0.doorbells.watched(index)?;
            let id = u32::from(index).checked_sub(begin)?;
            Some(SavedDoorbell { id, page: low(page.offset()), context: context.local })
        });
        Ok(SavedDoorbells { doorbells: armed.collect() })
    }

    fn restore(&mut self, saved: &SavedDoorbells) -> Result<(), RestoreError> {
        if !self.0.stopped() {
            return Err(RestoreError::Running);
        }
        let invalid = || RestoreError::invalid::<SavedDoorbells>("a doorbell");
        let Unit { guc, doorbells, function } = &mut *self.0;
        guc.doorbells.release_function(doorbells, *function);
        for SavedDoorbell { id, page, context } in &saved.doorbells {
            let offset = u64::from(*page);
            let page = Page::at(offset).filter(|page| page.offset() == offset).ok_or_else(invalid)?;
            let context = GucContextId { function: *function, local: *context };
            let context = guc.scheduler.owned(context).map_err(|_| invalid())?;
            let functions = &guc.scheduler.functions;
            guc.doorbells.allocate(doorbells, functions, context, (*id, page)).map_err(|_| invalid())?;
        }
        Ok(())
    }
}
