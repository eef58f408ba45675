// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Saved state of a virtual function: the sections of all units.

use zerocopy::little_endian::U16;

use crate::compute::saved::SavedKernels;
use crate::gt::saved::SavedRegisters;
use crate::guc::saved::{SavedClient, SavedContexts, SavedDoorbells, SavedPlacement, SavedQuotas};
use crate::interrupts::SavedTree;
use crate::memory::saved::{SavedFrames, SavedGgtt};
use crate::state::format::Kind;
use crate::state::{DeviceIdentity, Document, Record, RestoreError, SavedState, Tag, Writer};

/// Saved state of a VF. Not part of it are the contents of local memory ([`SavedFrames::data`]) and its compression control
/// data, guest memory, configuration space, counters for monitoring, and what the PF assigns: quotas, share of the engines and
/// thresholds, which must exist where it is restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedFunction {
    /// The card on which it was saved.
    pub identity: DeviceIdentity,
    /// What the VF was provisioned with.
    pub quotas: SavedQuotas,
    /// Where its GGTT range was, and whether its driver adapts addresses.
    pub placement: SavedPlacement,
    /// What a PF driver transfers itself.
    pub memory: Option<SavedMemory>,
    /// Registers.
    pub registers: SavedRegisters,
    /// Interrupt tree.
    pub interrupts: SavedTree,
    /// CT buffers, memory-based interrupt, opt-ins.
    pub client: SavedClient,
    /// Contexts.
    pub contexts: SavedContexts,
    /// Groups of kernels in flight.
    pub kernels: SavedKernels,
    /// Armed doorbells.
    pub doorbells: SavedDoorbells,
}

/// The part of a VF's saved state that a PF driver transfers itself, with the contents of local memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedMemory {
    /// GGTT entries.
    pub ggtt: SavedGgtt,
    /// Description of local memory.
    pub frames: SavedFrames,
}

arctic_base::record! {
    /// The card.
    struct IdentityRecord[b"IDEN", 4] {
        device: U16,
        revision: u8,
        reserved: u8,
    }
}

/// Bytes of the record of the card.
pub(super) const IDENTITY_BYTES: usize = size_of::<IdentityRecord>();

/// Sections of a saved VF.
const TAGS: [&[Tag]; 11] = [
    &[IdentityRecord::TAG],
    SavedQuotas::TAGS,
    SavedPlacement::TAGS,
    SavedGgtt::TAGS,
    SavedFrames::TAGS,
    SavedRegisters::TAGS,
    SavedTree::TAGS,
    SavedClient::TAGS,
    SavedContexts::TAGS,
    SavedKernels::TAGS,
    SavedDoorbells::TAGS,
];

impl SavedFunction {
    /// Adds the sections to a document.
    pub fn write(&self, to: &mut Writer) {
        let SavedFunction {
            identity,
            quotas,
            placement,
            memory,
            registers,
            interrupts,
            client,
            contexts,
            kernels,
            doorbells,
        } = self;
        to.record(IdentityRecord { device: identity.device.into(), revision: identity.revision, reserved: 0 });
        quotas.write(to);
        placement.write(to);
        if let Some(SavedMemory { ggtt, frames }) = memory {
            ggtt.write(to);
            frames.write(to);
        }
        registers.write(to);
        interrupts.write(to);
        client.write(to);
        contexts.write(to);
        kernels.write(to);
        doorbells.write(to);
    }

    /// Reads the state of a document, which may also have the sections `further` of the caller.
    pub fn read(from: &Document<'_>, further: &[Tag]) -> Result<SavedFunction, RestoreError> {
        from.check_known(TAGS.into_iter().flatten().chain(further))?;
        let IdentityRecord { device, revision, reserved: _ } = from.record()?;
        let memory = if SavedGgtt::TAGS.iter().chain(SavedFrames::TAGS).any(|tag| from.has(*tag)) {
            Some(SavedMemory { ggtt: SavedGgtt::read(from)?, frames: SavedFrames::read(from)? })
        } else {
            None
        };
        Ok(SavedFunction {
            identity: DeviceIdentity { device: device.get(), revision },
            quotas: SavedQuotas::read(from)?,
            placement: SavedPlacement::read(from)?,
            memory,
            registers: SavedRegisters::read(from)?,
            interrupts: SavedTree::read(from)?,
            client: SavedClient::read(from)?,
            contexts: SavedContexts::read(from)?,
            kernels: SavedKernels::read(from)?,
            doorbells: SavedDoorbells::read(from)?,
        })
    }

    /// The state as a document of its own.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut document = Writer::new(Kind::XeHpgFunction);
        self.write(&mut document);
        document.finish()
    }

    /// The state of a document of its own.
    pub fn from_bytes(bytes: &[u8]) -> Result<SavedFunction, RestoreError> {
        SavedFunction::read(&Document::read(bytes, Kind::XeHpgFunction)?, &[])
    }
}
