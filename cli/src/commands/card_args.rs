// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Arguments of the commands that start a card and QEMU: `arctic boot`, `arctic igt` and `arctic qemu`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use arctic_gpu::card_file::{self, CardFile};
use arctic_gpu::gpu::Model;
use arctic_guest_runner::artifacts::Own;
use arctic_guest_runner::card::Functions;
use arctic_guest_runner::devices::Place;
use arctic_guest_runner::driver::Driver;
use arctic_guest_runner::guest_process::Options;
use arctic_guest_runner::viommu::Viommu;

use super::UsageError;

/// The card, and how QEMU presents it.
#[derive(clap::Args)]
pub struct CardArgs {
    /// The card: a file, or the name of a built-in one
    /// (flex170, flex140, flex170-63vf, small, ivb, ivb-swizzled, ivb-fused, snb); the default is flex170,
    /// with more than 31 VFs flex170-63vf
    #[arg(long, value_name = "FILE|NAME")]
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
    /// Custom QEMU binary, 11.1 or later
    #[arg(long, value_name = "FILE")]
    qemu: Option<PathBuf>,
}

/// Number of virtual functions; a separate struct, which lets each command choose its position in the help text.
#[derive(clap::Args)]
pub struct VfArgs {
    /// Virtual functions of the card
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=63))]
    pub vfs: Option<u8>,
}

/// The default built-in card, and the default for more virtual functions than that card supports.
const CARD: &str = "flex170";
const CARD_63VF: &str = "flex170-63vf";
/// Maximum number of virtual functions of [`CARD`].
const VFS_OF_CARD: u8 = 31;

impl CardArgs {
    /// Returns the options of a run on a card with these `functions`, and the name of the card. `place` is that of a card
    /// that is not integrated. What is not an option of the card has its default.
    ///
    /// # Errors
    /// [`UsageError`] if the card does not support an option.
    pub fn options(&self, functions: Functions, place: Place) -> Result<(Options, String)> {
        let program = std::env::current_exe().context("the path of this program cannot be found")?;
        let built_in = if functions.vfs() > VFS_OF_CARD { CARD_63VF } else { CARD };
        let card = self.card.clone().unwrap_or_else(|| built_in.to_owned());
        let model = card_file::load_any(&card)?;
        let integrated = matches!(model, CardFile::Integrated(_));
        let refused = [
            (functions != Functions::Physical, "has no virtual functions: omit --vfs"),
            (self.unmodelled.is_some(), "always skips commands that it does not execute: omit --unmodelled"),
        ];
        if let Some((_, reason)) = refused.iter().find(|(given, _)| integrated && *given) {
            return Err(UsageError(format!("the card {card} {reason}")).into());
        }
        let defaults = Options::new(program, &card, model.identity().device);
        let options = Options {
            own: Own { qemu: self.qemu.clone(), ..Own::default() },
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
