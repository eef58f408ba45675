// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic serve --print-capabilities`: describes the supported device, cards and options to management software. As in
//! the conventions of vhost-user backends (QEMU: docs/interop/vhost-user.json), the document has the device's `type`
//! and its `features`.

use arctic_device_model::host::MAX_VFS;
use arctic_sriov::header::Identity;
use clap::Args;
use serde::Serialize;

use super::{CAPABILITIES, PRINT_CARD, ServeArgs};
use arctic_gpu::card_file::{self, BUILT_IN, CardFile, CardFileError};
use arctic_gpu::gpu::Model;
use arctic_gpu::vfio_user::PROTOCOL_VERSION;

/// The JSON document.
#[derive(Serialize)]
pub struct Capabilities {
    #[serde(rename = "type")]
    kind: &'static str,
    /// The options of `arctic serve`, without dashes.
    features: Vec<String>,
    /// Version of this program.
    version: &'static str,
    protocol: Protocol,
    device: Device,
    /// The built-in cards.
    cards: Vec<Card>,
}

/// The protocol of the sockets.
#[derive(Serialize)]
struct Protocol {
    name: &'static str,
    major: u16,
    minor: u16,
}

/// Properties common to all cards. PCI IDs are hexadecimal strings, as in libvirt's documents.
#[derive(Serialize)]
struct Device {
    vendor: String,
    /// PCI device ID of the default card.
    device: String,
    subsystem_vendor: String,
    subsystem: String,
    class: String,
    /// Maximum number of virtual functions of a card file.
    max_vfs: u8,
}

#[derive(Serialize)]
struct Card {
    /// Value for `--card`.
    name: &'static str,
    /// Name of the die, or of the generation of an integrated GPU.
    die: &'static str,
    /// PCI device ID.
    device: String,
    revision: u8,
    local_memory_bytes: u64,
    /// Maximum value of `--vfs`.
    max_vfs: u8,
}

impl Capabilities {
    /// Collects the values from the definitions that `arctic serve` uses.
    pub fn new() -> Result<Self, CardFileError> {
        let options = ServeArgs::augment_args(clap::Command::new("serve"));
        let features =
            options.get_arguments().filter(|option| option.get_id() != CAPABILITIES && option.get_id() != PRINT_CARD);
        let (major, minor) = PROTOCOL_VERSION;
        let default = card_file::parse(BUILT_IN[0].0, BUILT_IN[0].1)?;
        let Identity { vendor, device, subsystem_vendor, subsystem, class, .. } = default.identity();
        let [vendor, device, subsystem_vendor, subsystem] =
            [vendor, device, subsystem_vendor, subsystem].map(|id| format!("{id:#06x}"));
        let card = |(name, text)| {
            let model = card_file::parse(name, text)?;
            let (die, local_memory_bytes) = match &model {
                CardFile::Flex(profile) => (profile.die.name, profile.local_memory),
                CardFile::Integrated(profile) => (profile.generation.name, 0),
                _ => ("", 0),
            };
            let Identity { device, revision, .. } = model.identity();
            let device = format!("{device:#06x}");
            Ok(Card { name, die, device, revision, local_memory_bytes, max_vfs: model.total_vfs() })
        };
        Ok(Self {
            kind: "gpu",
            features: features.filter_map(|option| option.get_long()).map(str::to_owned).collect(),
            version: crate::commands::VERSION,
            protocol: Protocol { name: "vfio-user", major, minor },
            device: Device {
                vendor,
                device,
                subsystem_vendor,
                subsystem,
                class: format!("{class:#08x}"),
                max_vfs: MAX_VFS,
            },
            cards: BUILT_IN.into_iter().map(card).collect::<Result<_, _>>()?,
        })
    }
}
