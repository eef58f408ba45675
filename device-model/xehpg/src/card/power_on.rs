// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The card that a card file describes: its PCI functions, and the files that back their BARs.

use std::sync::Arc;

use arctic_sriov::function::{FunctionError, PciFunction};
use arctic_sriov::header::Identity;

use super::bar_files::{self, BarFiles, FunctionFiles};
use super::{Card, register_map};
use crate::gpu::{Gpu, Host, Model, PowerOnError, RegisterMap};
use crate::memory::{Memories, VfMemory};
use crate::pci;
use crate::profile::CardProfile;
use crate::profile::limits::Limits;
use crate::profile::provision::{GgttAccess, VfLocalMemory};

impl Model for CardProfile {
    fn name(&self) -> &str {
        &self.name
    }

    fn identity(&self) -> Identity {
        pci::identity(self.device, self.revision)
    }

    fn total_vfs(&self) -> u8 {
        self.total_vfs
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    /// Memory that drivers also access through another mapping is in BARs that are mapped into the guest.
    fn posted_writes(&self) -> bool {
        true
    }

    fn physical_function(&self, vfs: u8) -> Result<PciFunction, FunctionError> {
        pci::physical(&self.identity(), self.local_memory_bar(), vfs, &[self.vf_local_memory_bar()])
    }

    fn virtual_function(&self) -> Result<PciFunction, FunctionError> {
        pci::virtual_function(&self.identity(), self.vf_local_memory_bar())
    }

    fn virtual_function_on_bus(&self) -> Result<PciFunction, FunctionError> {
        pci::virtual_function_on_bus(&self.identity())
    }

    fn register_map(&self) -> RegisterMap {
        register_map::register_map(self)
    }

    fn power_on(&self, vfs: u8, provisioned: bool, host: Host) -> Result<Arc<dyn Gpu>, PowerOnError> {
        // Checked before anything is allocated: the card file may request more than the card has.
        let quotas = if provisioned {
            self.quotas(vfs).map_err(|error| PowerOnError::Resources(error.to_string()))?
        } else {
            Vec::new()
        };
        let vf_bar = self.vf_local_memory_bar();
        let (local_file, local) = bar_files::local_memory(self.local_memory).map_err(PowerOnError::Memory)?;
        let (ggtt_file, ggtt) = bar_files::global_table().map_err(PowerOnError::Memory)?;
        let mut files = vec![FunctionFiles {
            gttmmadr: Some(ggtt_file),
            local: local_file,
            local_bytes: self.local_memory,
            maps_local: true,
        }];
        let maps_local = self.vf_local_memory == VfLocalMemory::Mapped;
        let mut vf_memories = Vec::new();
        for _ in 1..=vfs {
            let (file, local) = bar_files::local_memory(vf_bar).map_err(PowerOnError::Memory)?;
            let (gttmmadr, ggtt) = match self.ggtt {
                GgttAccess::Mapped => bar_files::global_table().map(|(file, region)| (Some(file), Some(region))),
                GgttAccess::Trapped => Ok((None, None)),
            }
            .map_err(PowerOnError::Memory)?;
            files.push(FunctionFiles { gttmmadr, local: file, local_bytes: vf_bar, maps_local });
            vf_memories.push(VfMemory { local, ggtt });
        }
        let memories = Memories { local, ggtt, vfs: vf_memories };
        let card = Card::with_files(self, memories, BarFiles(files), host);
        if provisioned {
            card.provision(&quotas).map_err(|error| {
                let text = "the GuC rejects the VF resources of [provision] in the card file";
                PowerOnError::Resources(format!("{text} ({error:?})"))
            })?;
        }
        Ok(card)
    }
}
