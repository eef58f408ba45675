// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Arguments of the commands that start a card and QEMU: `arctic boot`, `arctic igt` and `arctic qemu`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use arctic_gpu::card_file::{self, CardFile};
use arctic_gpu::gpu::Model;
use arctic_guest_runner::artifacts::Own;
use arctic_guest_runner::card::Functions;
use arctic_guest_runner::devices::{Place, Window};
use arctic_guest_runner::driver::Driver;
use arctic_guest_runner::guest_process::Options;
use arctic_guest_runner::viommu::Viommu;
use arctic_sriov::bar::BarKind;
use arctic_sriov::function::PciFunction;

use super::offered::card;
use super::quantity::quantity;

/// The card, and how QEMU presents it.
#[derive(clap::Args)]
pub struct CardArgs {
    /// The card: a card file (docs/card-files.md; `arctic serve --print-card flex170` prints one), or the name of a built-in
    /// one (flex170, flex140, flex170-63vf, small, ivb, ivb-swizzled, ivb-fused, snb); the default is flex170, with more
    /// than 31 VFs flex170-63vf
    #[arg(long, value_name = "FILE|NAME", value_parser = card(), hide_possible_values = true)]
    card: Option<String>,
    /// What the card does with programs of user space that use commands which it does not execute (3D, compute, media):
    /// skip these commands, or stop the context with a fault that the driver reports; the default is the card file's
    #[arg(long, value_name = "HOW", value_parser = ["skip", "fault"])]
    unmodelled: Option<String>,
    /// Capture all events of the card in this file, for `arctic decode`; slows the card down
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Boot with an IOMMU that translates the card's functions
    #[arg(long, value_name = "intel|amd", value_enum, num_args = 0..=1, default_missing_value = "intel")]
    pub viommu: Option<Viommu>,
    /// Put the card behind a PCI Express root port, as in guests of libvirt, instead of on the root bus
    #[arg(long)]
    pub pci_port: bool,
    /// Custom QEMU binary, 11.1 or later
    #[arg(long, value_name = "FILE")]
    qemu: Option<PathBuf>,
    /// The newest versions that the Debian mirror has, instead of the pinned ones
    #[arg(long)]
    newest: bool,
}

/// Number of virtual functions; a separate struct, which lets each command choose its position in the help text.
#[derive(clap::Args)]
pub struct VfArgs {
    /// Virtual functions of the card
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = quantity::<u8>("VFs", 1..=63))]
    pub vfs: Option<u8>,
}

/// The default built-in card, and the default for more virtual functions than that card supports.
const CARD: &str = "flex170";
const CARD_63VF: &str = "flex170-63vf";
/// Maximum number of virtual functions of [`CARD`].
const VFS_OF_CARD: u8 = 31;

/// The built-in card for this number of virtual functions.
pub fn default_card(vfs: u8) -> &'static str {
    if vfs > VFS_OF_CARD { CARD_63VF } else { CARD }
}

/// Fails if the card has fewer than `vfs` VFs.
pub fn check_vfs(card: &str, model: &CardFile, vfs: u8) -> Result<()> {
    let total = model.total_vfs();
    match vfs {
        0 => Ok(()),
        _ if matches!(model, CardFile::Integrated(_)) => {
            bail!("the card {card} has no virtual functions: omit --vfs")
        }
        _ if vfs <= total => Ok(()),
        _ => bail!("the card {card} has {total} VFs, not {vfs}: request fewer, or raise total_vfs in the card file"),
    }
}

/// Why an integrated GPU cannot be behind a root port.
pub const ON_ROOT_BUS: &str = "is on the root bus, as on hardware: omit --pci-port";
/// Why an integrated GPU has no option for commands that it does not execute.
pub const ALWAYS_SKIPS: &str = "always skips commands that it does not execute: omit --unmodelled";

/// The address space that the BARs of a card with `vfs` VFs need.
pub fn window(model: &CardFile, vfs: u8) -> Result<Window> {
    let mut window = Window::default();
    let mut add = |function: &PciFunction, count: u64| {
        for bar in function.bars() {
            let bytes = bar.size().saturating_mul(count);
            match bar.kind() {
                BarKind::Memory64 { prefetchable: true } => window.prefetchable += bytes,
                _ => window.other += bytes,
            }
        }
    };
    add(&model.physical_function(vfs)?, 1);
    if vfs != 0 {
        add(&model.virtual_function()?, vfs.into());
    }
    Ok(window)
}

impl CardArgs {
    /// Returns the options of a run on a card with these `functions`, and the name of the card. `place` is that of a card
    /// that is not integrated. What is not an option of the card has its default.
    ///
    /// # Errors
    /// If there is no such card, or if it does not support an option.
    pub fn options(&self, functions: Functions, place: Place) -> Result<(Options, String)> {
        let program = std::env::current_exe().context("the path of this program cannot be found")?;
        let card = self.card.clone().unwrap_or_else(|| default_card(functions.vfs()).to_owned());
        let model = card_file::load(&card)?;
        let integrated = matches!(model, CardFile::Integrated(_));
        check_vfs(&card, &model, functions.vfs())?;
        let refused = [(self.pci_port, ON_ROOT_BUS), (self.unmodelled.is_some(), ALWAYS_SKIPS)];
        if let Some((_, reason)) = refused.iter().find(|(given, _)| integrated && *given) {
            bail!("the card {card} {reason}");
        }
        let place = if self.pci_port { place.behind_port(window(&model, functions.vfs())?) } else { place };
        let defaults = Options::new(program, &card, model.identity().device);
        let options = Options {
            own: Own { qemu: self.qemu.clone(), newest: self.newest, ..Own::default() },
            functions,
            integrated,
            place: if integrated { Place::INTEGRATED } else { place },
            posted_writes: model.posted_writes(),
            driver: if integrated { Driver::I915 } else { Driver::Xe },
            trace: self.trace.clone(),
            unmodelled: self.unmodelled.clone(),
            viommu: self.viommu,
            ..defaults
        };
        Ok((options, card))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;
    const MIB: u64 = 1 << 20;

    /// Registers of 16 MiB and local memory of each function: 16 GiB of the PF, 4 GiB of a VF.
    #[test]
    fn the_window_has_room_for_the_bars_of_all_functions() {
        let model = card_file::load("flex170").unwrap();
        for (vfs, gib) in [(0, 16), (2, 24), (31, 140)] {
            let Window { prefetchable, other } = window(&model, vfs).unwrap();
            assert_eq!(prefetchable + other, gib * GIB + (u64::from(vfs) + 1) * 16 * MIB, "{vfs}");
            assert!(prefetchable >= gib * GIB, "{vfs}: local memory is prefetchable");
        }
    }
}
