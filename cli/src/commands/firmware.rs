// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic firmware`: writes placeholder firmware images to the directory that a guest's kernel loads firmware from.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::stdout;
use arctic_gpu::firmware::{self, GucVersions, Version};

/// Write placeholder firmware images, without which drivers do not load.
///
/// The files have the headers that drivers check and no code: the card's GuC and HuC are part of the device model.
/// Intel's own files from linux-firmware work as well; with their 70.53.0, Linux does not migrate virtual functions.
#[derive(clap::Args)]
#[command(after_help = "Example, for a guest image that is unpacked in ./rootfs:\n  \
    arctic firmware --out rootfs/lib/firmware")]
pub struct FirmwareArgs {
    /// Directory to use as /lib/firmware; i915/dg2_guc_70.bin and i915/dg2_huc_gsc.bin are created in it
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Release that the GuC's file claims
    #[arg(long, value_name = "VERSION", default_value_t = GucVersions::default().release)]
    release: Version,
    /// Version of the interface of virtual functions that the GuC's file claims
    #[arg(long, value_name = "VERSION", default_value_t = GucVersions::default().abi)]
    abi: Version,
}

/// Writes the files and prints their paths.
pub fn run(arguments: &FirmwareArgs) -> Result<()> {
    let versions = GucVersions { release: arguments.release, abi: arguments.abi };
    let versions = versions.check().map_err(anyhow::Error::msg)?;
    if !versions.has_migration() {
        eprintln!("Linux does not migrate virtual functions with {versions}: it needs release 70.54.0 and ABI 1.27.0.");
    }
    let mut printed = Ok(());
    for file in firmware::files_claiming(versions) {
        let path = arguments.out.join(file.path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("directory {} cannot be created", folder.display()))?;
        }
        fs::write(&path, file.bytes).with_context(|| format!("{} cannot be written", path.display()))?;
        // All files are written even if their names cannot be printed.
        printed = printed.and(stdout::line(path.display()));
    }
    Ok(printed?)
}
