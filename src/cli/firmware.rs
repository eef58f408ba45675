//! `arctic firmware`: writes the stand-in firmware where a guest's kernel looks for it.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::stdout;
use crate::firmware;

/// Write stand-in firmware, without which a driver refuses the card.
///
/// The files have the headers that drivers check and no code: the card's GuC and HuC are part of the device model. Intel's
/// own files from linux-firmware work as well.
#[derive(clap::Args)]
#[command(after_help = "Example, for a guest image that is unpacked in ./rootfs:\n  \
    arctic firmware --out rootfs/lib/firmware")]
pub struct Arguments {
    /// Folder that stands for /lib/firmware; i915/dg2_guc_70.bin and i915/dg2_huc_gsc.bin are made in it
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Writes the files and tells their paths.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut printed = Ok(());
    for file in firmware::files() {
        let path = arguments.out.join(file.path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("folder {} cannot be made", folder.display()))?;
        }
        fs::write(&path, file.bytes).with_context(|| format!("{} cannot be written", path.display()))?;
        // All files are written, also if their names cannot be.
        printed = printed.and(stdout::line(path.display()));
    }
    Ok(printed?)
}
