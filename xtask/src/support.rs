// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `cargo xtask support`: boots guests with several kernels, drivers, firmwares, IOMMUs and memory backends, and writes
//! docs/support.md.

use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

const DOCUMENT: &str = "docs/support.md";
const PROGRAM: &str = "target/release/arctic";

/// One configuration: the arguments of `arctic boot`.
struct Row {
    name: &'static str,
    arguments: &'static [&'static str],
}

/// A table of the document.
struct Table {
    title: &'static str,
    text: &'static str,
    rows: &'static [Row],
}

const fn row(name: &'static str, arguments: &'static [&'static str]) -> Row {
    Row { name, arguments }
}

const TABLES: &[Table] = &[
    Table {
        title: "Kernels and drivers",
        text: "The newest kernel of each Debian suite (`--debian`); without it, the kernel that the program downloads.",
        rows: &[
            row("Debian 12, i915", &["--debian", "bookworm", "--driver", "i915"]),
            row("Debian 13, i915", &["--debian", "trixie", "--driver", "i915"]),
            row("Debian 13, xe", &["--debian", "trixie"]),
            row("default, i915", &["--driver", "i915"]),
            row("default, xe", &[]),
            row("default, xe, 2 VFs in the PF's guest", &["--vfs", "2"]),
            row("default, xe, 2 VFs in guests of their own", &["--vfs", "2", "--split"]),
            row("sid, i915", &["--debian", "sid", "--driver", "i915"]),
            row("sid, xe", &["--debian", "sid"]),
            row("sid, xe, 2 VFs in the PF's guest", &["--debian", "sid", "--vfs", "2"]),
        ],
    },
    Table {
        title: "Firmware and machine types",
        text: "QEMU's machine type is q35 and its firmware SeaBIOS unless a row says otherwise. The machine type `pc` has \
               no PCI Express, which the card requires.",
        rows: &[
            row("OVMF", &["--uefi"]),
            row("OVMF, 2 VFs in the PF's guest", &["--uefi", "--vfs", "2"]),
            row("q35 of QEMU 9.0, 2 VFs", &["--vfs", "2", "--qemu-args", "-machine pc-q35-9.0,memory-backend=ram"]),
        ],
    },
    Table {
        title: "IOMMUs",
        text: "The IOMMU translates all functions (`iommu=nopt`), with the function that programs VF BARs \
               ([SR-IOV](sriov.md)). For VFs that are passed on to inner guests see [nested guests](nested.md).",
        rows: &[
            row("VT-d", &["--viommu", "intel"]),
            row("VT-d, 2 VFs in the PF's guest", &["--viommu", "intel", "--vfs", "2"]),
            row("AMD-Vi", &["--viommu", "amd"]),
            row("AMD-Vi, 2 VFs in the PF's guest", &["--viommu", "amd", "--vfs", "2"]),
        ],
    },
    Table {
        title: "Memory backends",
        text: "The default is `memory-backend-memfd,share=on`. Without `share=on` the card reads guest memory by messages, \
               which is slower.",
        rows: &[
            row(
                "memory-backend-file on tmpfs, share=on",
                &[
                    "--qemu-args",
                    "-object memory-backend-file,id=tmpfs,size=2048M,mem-path=/dev/shm,share=on -machine memory-backend=tmpfs",
                ],
            ),
            row(
                "memory-backend-ram",
                &["--qemu-args", "-object memory-backend-ram,id=private,size=2048M -machine memory-backend=private"],
            ),
        ],
    },
];

const BEGINNING: &str = "\
<!-- Written by `cargo xtask support`; do not edit. -->
# Support

Guests that were booted with the card, and what worked on them. A check is one workload or property of the driver or the
kernel's log; `arctic boot` with the arguments of a row repeats its run. Older kernels and the options that a kernel needs
are in [Kernels for the guest](own-kernel.md).
";

const END: &str = "
## Not run

* Cloud Hypervisor: no binary is among the packages that the tests install. Its vfio-user client, the crate `vfio_user`, is
  tested: `cargo test -p arctic-gpu --test conformance cloud_hypervisor`.
* `memory-backend-file` on hugetlbfs as the memory of a guest with the PF: the host needs reserved huge pages. Inner guests
  on hugetlbfs are tested ([nested guests](nested.md)).
* KVM as the accelerator of these guests: the tests use TCG, so that they run on every host. The reference VMM runs on KVM
  (`cargo xtask long nested`).
";

/// Runs the configurations with one of the texts `only` in their names (all, if there is none), and writes the document.
/// The rows of the others are kept. Fails if a configuration has failed, after the document is written.
pub fn run(only: &[String]) -> Result<()> {
    let built = Command::new("cargo").args(["build", "--release", "--quiet", "-p", "arctic-cli"]).status()?;
    ensure!(built.success(), "the program does not build");
    let old = fs::read_to_string(DOCUMENT).unwrap_or_default();
    let mut document = BEGINNING.to_owned();
    let (mut failed, mut versions) = (Vec::new(), None);
    for table in TABLES {
        write!(document, "\n## {}\n\n{}\n\n", table.title, table.text)?;
        document.push_str("| guest | `arctic boot` | kernel | result |\n|---|---|---|---|\n");
        for row in table.rows {
            let kept = old.lines().find(|line| line.starts_with(&format!("| {} | ", row.name)));
            if let Some(line) = kept.filter(|_| !only.is_empty() && !only.iter().any(|text| row.name.contains(text))) {
                writeln!(document, "{line}")?;
                continue;
            }
            let start = Instant::now();
            let result = boot(row.arguments)?;
            println!("{}: {} ({:.0} s)", row.name, result.text, start.elapsed().as_secs_f64());
            let shown = shlex::try_join(row.arguments.iter().copied())?;
            let shown = if shown.is_empty() { String::new() } else { format!("`{shown}`") };
            writeln!(document, "| {} | {shown} | {} | {} |", row.name, result.kernel, result.text)?;
            if !result.ok {
                failed.push(row.name);
            }
            versions = versions.or(result.qemu);
        }
    }
    if let Some(qemu) = versions {
        write!(document, "\nQEMU {qemu}.\n")?;
    }
    document.push_str(END);
    fs::write(DOCUMENT, document).with_context(|| format!("{DOCUMENT} cannot be written"))?;
    if !failed.is_empty() {
        bail!("{} of the guests failed: {} (see {DOCUMENT})", failed.len(), failed.join("; "));
    }
    Ok(())
}

/// The result of a run.
struct Outcome {
    ok: bool,
    kernel: String,
    text: String,
    qemu: Option<String>,
}

fn boot(arguments: &[&str]) -> Result<Outcome> {
    let mut command = Command::new(PROGRAM);
    command.args(["boot", "--json"]).args(arguments).stdin(Stdio::null());
    let output = command.output().with_context(|| format!("{PROGRAM} cannot be started"))?;
    let Ok(report) = serde_json::from_slice::<Value>(&output.stdout) else {
        let messages = String::from_utf8_lossy(&output.stderr);
        let last = messages.lines().last().unwrap_or("no report").to_owned();
        return Ok(Outcome { ok: false, kernel: String::new(), text: last, qemu: None });
    };
    Ok(outcome(&report))
}

fn outcome(report: &Value) -> Outcome {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let ok = report["ok"] == true;
    let mut result = format!("{} passed", report["passed"]);
    for what in ["failed", "skipped"] {
        if report[what].as_u64() != Some(0) {
            let _ = write!(result, ", {} {what}", report[what]);
        }
    }
    if !ok {
        let results = report["results"].as_array().map(Vec::as_slice).unwrap_or_default();
        let names = results.iter().filter(|result| result["result"] == "fail").map(|result| text(&result["test"]));
        let _ = write!(result, ": {}", names.take(3).collect::<Vec<_>>().join(", "));
    }
    let qemu = report["versions"]["qemu"].as_str().map(str::to_owned);
    Outcome { ok, kernel: text(&report["kernel"]), text: result, qemu }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_names_what_has_failed() {
        let report = serde_json::json!({
            "ok": false, "passed": 84, "failed": 1, "skipped": 0, "kernel": "7.2.12", "versions": {"qemu": "11.1.3"},
            "results": [{"test": "rcs0: stores", "result": "fail"}, {"test": "bcs0: stores", "result": "pass"}],
        });
        let found = outcome(&report);
        assert_eq!((found.ok, found.kernel.as_str()), (false, "7.2.12"));
        assert_eq!(found.text, "84 passed, 1 failed: rcs0: stores");
    }

    #[test]
    fn rows_have_distinct_names_within_a_table() {
        for table in TABLES {
            let names: std::collections::BTreeSet<_> = table.rows.iter().map(|row| row.name).collect();
            assert_eq!(names.len(), table.rows.len(), "{}", table.title);
        }
    }
}
