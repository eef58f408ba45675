// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic guest info`: prints the card's properties as the driver exposes them to user space.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;

use super::device::{Config, Device, Gt, MemRegion};
use super::report::{self, CardInfo};
use super::sysfs::{Quota, Sysfs};
use crate::path::PrintedPath;

/// The render node to query.
#[derive(Debug, clap::Args)]
pub struct Info {
    /// Use this render node instead of the first that belongs to the card's driver
    #[arg(long, value_name = "NODE")]
    device: Option<PathBuf>,
}

#[derive(Serialize)]
struct EngineInfo {
    name: String,
    class: u16,
    instance: u16,
    gt: u16,
    /// RING_TIMESTAMP as read by the driver; absent if the driver does not permit the query (on a VF).
    timestamp: Option<u64>,
}

#[derive(Serialize)]
struct DeviceInfo {
    kernel: String,
    node: PrintedPath,
    config: Config,
    guc_submission: Option<String>,
    guc_firmware: Option<String>,
    gts: Vec<Gt>,
    memory: Vec<MemRegion>,
    engines: Vec<EngineInfo>,
}

/// Prints all properties as one JSON document.
pub fn run(info: &Info) -> Result<()> {
    let device = Device::open(info.device.as_deref())?;
    let engines = device
        .engines()?
        .into_iter()
        .map(|engine| EngineInfo {
            name: engine.name(),
            class: engine.class,
            instance: engine.instance,
            gt: engine.gt,
            timestamp: device.engine_cycles(engine).ok().map(|read| read.cycles),
        })
        .collect();
    let device_info = DeviceInfo {
        kernel: report::kernel_release(),
        node: device.path.clone().into(),
        config: device.config()?,
        guc_submission: device.guc_submission_version().ok(),
        guc_firmware: guc_firmware_version(&device.path),
        gts: device.gts()?,
        memory: device.mem_regions()?,
        engines,
    };
    println!("{}", serde_json::to_string_pretty(&device_info)?);
    Ok(())
}

/// Returns the card's description for the report of `arctic guest work`.
pub fn card(device: &Device) -> Result<CardInfo> {
    let config = device.config()?;
    let vram =
        device.mem_regions()?.iter().filter(|region| region.class == "vram").map(|region| region.total_size).sum();
    Ok(CardInfo {
        pci_id: format!("8086:{:04x}", config.device_id),
        revision: config.revision,
        vram_bytes: vram,
        guc_submission: device.guc_submission_version().ok(),
        guc_firmware: guc_firmware_version(&device.path),
        engines: device.engines()?.iter().map(|engine| engine.name()).collect(),
        ggtt_bytes: quota(device).ggtt_bytes,
    })
}

/// Returns the resources provisioned to a VF.
fn quota(device: &Device) -> Quota {
    let sysfs = Sysfs::default();
    sysfs.address_of(&device.path).map(|address| sysfs.quota(&address)).unwrap_or_default()
}

/// Returns the GuC firmware's version from debugfs (`…/dri/128/gt0/uc/guc_info`), if it is mounted and readable.
fn guc_firmware_version(node: &Path) -> Option<String> {
    let minor = node.file_name()?.to_str()?.strip_prefix("renderD")?;
    let root = Path::new("/sys/kernel/debug/dri").join(minor);
    let text = ["gt0/uc/guc_info", "tile0/gt0/uc/guc_info"]
        .iter()
        .find_map(|path| fs::read_to_string(root.join(path)).ok())?;
    found_version(&text)
}

/// Parses the version from `guc_info`: `found release version 70.58.0` (xe) or `version: found 70.58.0` (i915).
fn found_version(text: &str) -> Option<String> {
    let of_i915 = |line: &str| line.strip_prefix("version: ")?.rsplit_once("found ").map(|(_, found)| found.to_owned());
    let of_xe = |line: &str| line.strip_prefix("found release version ").map(str::to_owned);
    text.lines().map(str::trim).find_map(|line| of_xe(line).or_else(|| of_i915(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `xe: xe_uc_fw_print`, `i915: intel_uc_fw_dump`.
    #[test]
    fn the_firmware_s_version_is_found_in_guc_info() {
        let text = "GuC firmware: xe/dg2_guc_70.bin\n\tstatus: RUNNING\n\twanted release version 70.54.0\n\
                    \tfound release version 70.55.3\n\tfound compatibility version 1.26.0\n";
        assert_eq!(found_version(text).as_deref(), Some("70.55.3"));
        assert_eq!(found_version("\tversion: found 70.53.0\n").as_deref(), Some("70.53.0"));
        assert_eq!(found_version("\tversion: wanted 70.53.0, found 70.44.1\n").as_deref(), Some("70.44.1"));
        assert_eq!(found_version("GuC firmware: disabled"), None);
    }
}
