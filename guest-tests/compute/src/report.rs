// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The report of `arctic guest compute`: one function of the card, and the result of each kernel.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The result of one kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It computed what the CPU computed.
    Right,
    /// It ended with other results.
    Wrong,
    /// It could not be built or run, or the driver crashed.
    Failed,
    /// It did not end within its time.
    TimedOut,
    /// It was not run, because an earlier one did not end.
    #[default]
    NotRun,
}

/// One kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelReport {
    /// Name of the kernel.
    pub name: String,
    /// What it exercises.
    pub what: String,
    /// The interface by which it was run.
    pub api: String,
    /// Number of items.
    pub items: u64,
    /// Time between the card's timestamps before and after it, in seconds.
    pub device_seconds: Option<f64>,
    /// Time of the whole case by the guest's clock in seconds: build, copies, execution, comparison.
    pub seconds: f64,
    /// The result.
    pub verdict: Verdict,
    /// What is wrong; empty if nothing is.
    pub detail: String,
}

impl fmt::Display for KernelReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::Right => "right",
            Verdict::Wrong => "WRONG",
            Verdict::Failed => "FAILED",
            Verdict::TimedOut => "HUNG",
            Verdict::NotRun => "not run",
        };
        write!(out, "{:<19} {verdict:<7} {:>7} items", self.name, self.items)?;
        match self.device_seconds {
            Some(seconds) => write!(out, " {:>9.3} ms", seconds * 1e3)?,
            None => write!(out, " {:>12}", "")?,
        }
        let text = if self.detail.is_empty() { &self.what } else { &self.detail };
        write!(out, "  {text}")
    }
}

/// The device as the OpenCL driver describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// Its name.
    pub name: String,
    /// Version of the driver.
    pub driver: String,
    /// PCI address.
    pub address: String,
    /// Number of execution units.
    pub units: u64,
    /// Local memory in bytes.
    pub memory_bytes: u64,
}

/// A part of the run before the first kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// Its duration in seconds by the guest's clock.
    pub seconds: f64,
}

/// The kernels of one function of the card.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComputeReport {
    /// `pf`, `vf1`…
    pub function: String,
    /// Whether each kernel was right, and there was at least one.
    pub ok: bool,
    /// The device, if it was opened.
    pub device: Option<DeviceInfo>,
    /// Parts of the run before the first kernel.
    pub stages: Vec<Stage>,
    /// Time since the start of the guest's kernel at the first right result, in seconds.
    pub first_right: Option<f64>,
    /// Duration of the run in seconds by the guest's clock.
    pub seconds: f64,
    /// Why no kernel ran, or why the rest did not.
    pub problem: Option<String>,
    /// All kernels, in order.
    pub kernels: Vec<KernelReport>,
}

impl ComputeReport {
    /// Number of kernels with this result.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.kernels.iter().filter(|kernel| kernel.verdict == verdict).count()
    }

    /// The sum of the times on the device in seconds.
    pub fn device_seconds(&self) -> f64 {
        self.kernels.iter().filter_map(|kernel| kernel.device_seconds).fold(0.0, |sum, seconds| sum + seconds)
    }
}

impl fmt::Display for ComputeReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (right, all) = (self.count(Verdict::Right), self.kernels.len());
        write!(
            out,
            "{right} of {all} kernels right, {:.3} s on the device, {:.1} s",
            self.device_seconds(),
            self.seconds
        )?;
        self.problem.as_ref().map_or(Ok(()), |problem| write!(out, "; {problem}"))
    }
}

/// The address of a PCI function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PciAddress {
    /// Domain.
    pub domain: u32,
    /// Bus number.
    pub bus: u32,
    /// Device number.
    pub device: u32,
    /// Function number.
    pub function: u32,
}

impl fmt::Display for PciAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:04x}:{:02x}:{:02x}.{:x}", self.domain, self.bus, self.device, self.function)
    }
}

impl FromStr for PciAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (domain, rest) = text.split_once(':')?;
            let (bus, rest) = rest.split_once(':')?;
            let (device, function) = rest.split_once('.')?;
            let number = |digits: &str| u32::from_str_radix(digits, 16).ok();
            Some(Self {
                domain: number(domain)?,
                bus: number(bus)?,
                device: number(device)?,
                function: number(function)?,
            })
        };
        parse().ok_or_else(|| format!("{text} is no PCI address like 0000:00:01.0"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        let address: PciAddress = "0000:3a:01.7".parse().unwrap();
        assert_eq!(address, PciAddress { domain: 0, bus: 0x3a, device: 1, function: 7 });
        assert_eq!(address.to_string(), "0000:3a:01.7");
        assert_eq!("1:2".parse::<PciAddress>().unwrap_err(), "1:2 is no PCI address like 0000:00:01.0");
    }

    #[test]
    fn a_kernel_has_one_line() {
        let right = KernelReport {
            name: "vadd".into(),
            what: "local ids by hardware".into(),
            items: 1024,
            device_seconds: Some(0.000_312),
            verdict: Verdict::Right,
            ..KernelReport::default()
        };
        assert_eq!(right.to_string(), "vadd                right      1024 items     0.312 ms  local ids by hardware");
        let hung = KernelReport {
            device_seconds: None,
            verdict: Verdict::TimedOut,
            detail: "no end within 60 s".into(),
            ..right
        };
        assert_eq!(hung.to_string(), "vadd                HUNG       1024 items               no end within 60 s");
        let report = ComputeReport { kernels: vec![hung], seconds: 61.25, ..ComputeReport::default() };
        assert_eq!(report.to_string(), "0 of 1 kernels right, 0.000 s on the device, 61.2 s");
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["kernels"][0]["verdict"], "timed_out");
    }
}
