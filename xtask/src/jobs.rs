// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Long tests, which are not in the full test tier because of their duration.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::groups::{GROUPS, Group};
use crate::step_within;

/// A long test.
#[derive(Debug, Serialize)]
pub struct Job {
    pub name: &'static str,
    /// Approximate duration in minutes, on two idle cores, after the build.
    pub minutes: u32,
    /// Description of the test.
    pub tests: &'static str,
    /// CI runs the job if files with these prefixes changed. If empty, it runs only on request and at night.
    pub paths: &'static [&'static str],
    /// Command lines, with the placeholders of [`Group::expand`].
    #[serde(skip)]
    pub steps: &'static [&'static str],
}

/// Paths of the device model and its transports, on which all guests depend.
const DEVICE: &[&str] = &["device-model/", "sriov/src/", "src/card", "src/vfio_user/", "configs/"];

/// Jobs of the card, in the order in which CI runs them.
pub const CARD: &[Job] = &[
    Job {
        name: "vfs-63",
        minutes: 1,
        tests: "63 virtual functions in one guest",
        paths: DEVICE,
        steps: &[
            "cargo test --release {packages} --features arctic-cli/long-tests --test guest_long -- sixty_three_virtual_functions",
        ],
    },
    Job {
        name: "flex140",
        minutes: 2,
        tests: "one GPU of a Flex 140 with xe, i915 and two virtual functions",
        paths: &[
            "device-model/xehpg/src/generation",
            "device-model/xehpg/src/profile",
            "configs/",
            "sriov/src/header.rs",
        ],
        steps: &["cargo test --release {packages} --features arctic-cli/long-tests --test guest_long -- flex_140"],
    },
    Job {
        name: "igt-sriov",
        minutes: 1,
        tests: "IGT's SR-IOV subtests on a PF with VFs",
        paths: DEVICE,
        steps: &[
            "cargo test --release {packages} --features arctic-cli/long-tests --test guest_long -- igt_on_a_physical_function",
        ],
    },
    Job {
        name: "igt-xe",
        minutes: 1,
        tests: "62 IGT subtests on the PF with xe",
        paths: DEVICE,
        steps: &[
            "cargo test --release {packages} --features arctic-cli/long-tests --test guest_long -- igt_first_light",
        ],
    },
    Job {
        name: "igt-perf",
        minutes: 6,
        tests: "33 lines of IGT's perf on the PF with i915: streams and counters (an idle host)",
        paths: &["device-model/xehpg/src/oa/", "device-model/xehpg/src/gt/observation.rs"],
        steps: &["cargo test --release {packages} --features arctic-cli/long-tests --test guest_long -- igt_perf"],
    },
    Job {
        name: "busy-time",
        minutes: 1,
        tests: "busy time of engines and of VFs by the kernel's events, fdinfo, counter A0, timestamps, `arctic status` and `top` (an idle host)",
        paths: &["device-model/xehpg/src/oa/", "device-model/xehpg/src/gt/observation.rs"],
        steps: &["cargo test --release {packages} --features arctic-cli/long-tests --test guest_long -- busy_time"],
    },
    Job {
        name: "hang",
        minutes: 1,
        tests: "the script of docs/debugging.md finds which of three functions hangs which engine at which command",
        paths: &[
            "docs/debugging.md",
            "device-model/base/src/inspect/",
            "device-model/xehpg/src/engine/inspect.rs",
            "cli/src/commands/inspect.rs",
        ],
        steps: &[
            "cargo test --release {packages} --features arctic-cli/long-tests --test guest_long -- finds_the_function",
        ],
    },
    Job {
        name: "compute",
        minutes: 12,
        tests: "kernels of OpenCL and Level Zero on seven VFs and in four guests; shares of an engine; 80 killed processes and 20 \
                resets with an endless kernel",
        paths: &[],
        steps: &["cargo test --release {packages} --features arctic-cli/long-tests --test guest_long -- kernels"],
    },
    Job {
        name: "programs",
        minutes: 30,
        tests: "nine packaged programs of OpenCL and Vulkan on the PF and on a VF; writes the table of docs/compute.md",
        paths: &[],
        steps: &["cargo xtask programs"],
    },
    Job {
        name: "in-time",
        minutes: 2,
        tests: "time limits for a server with a hostile or killed client (an idle host)",
        paths: &["device-model/", "sriov/src/", "src/", "cli/tests/serve/", "tests/security/"],
        steps: &[
            "cargo test --release {packages} --features arctic-cli/long-tests --test serve -- --test-threads 1 neighbours:: faults::",
            "cargo test --release {packages} --features arctic-gpu/long-tests --test security -- --test-threads 1 own_bars",
            "cargo test --release {packages} --features arctic-gpu/long-tests --lib -- --test-threads 1 vfio_user::tests",
        ],
    },
    Job {
        name: "nested",
        minutes: 2,
        tests: "Debian's kernel and xe on PF and nine VFs of the reference VMM, under nested KVM in QEMU",
        paths: &["guest-tests/vmm/", "src/pci.rs", "src/card/io_events.rs", "src/ram.rs"],
        steps: &["cargo test --release {packages} --features arctic-vmm/long-tests --test linux"],
    },
    Job {
        name: "migrate",
        minutes: 12,
        tests: "a busy VF that is saved, moved and restored 100 times by xe, with three guests and with one, also with Linux 7.3",
        paths: &["device-model/xehpg/src/guc/migration.rs", "device-model/xehpg/src/guc/saved.rs"],
        steps: &[
            "cargo test --release {packages} --features arctic-cli/long-tests --test guest_long -- a_busy_vf_is_migrated",
        ],
    },
    Job {
        name: "passthrough",
        minutes: 6,
        tests: "two VFs passed on by vfio-pci to inner guests, behind a virtual IOMMU, under nested KVM in QEMU",
        // Nested virtualisation in an emulator: five minutes on an idle host, more on a loaded one.
        paths: &[],
        steps: &["cargo test --release {packages} --features arctic-cli/long-tests --test guest_long -- inner_guests"],
    },
    Job {
        name: "pci-port",
        minutes: 2,
        tests: "PF and nine virtual functions behind a root port with xe, and the PF with i915",
        paths: &["guest-tests/runner/src/devices.rs", "src/vfio_user/ecam/"],
        steps: &[
            "cargo test --release {packages} --features arctic-cli/long-tests --test guest_long -- behind_a_root_port",
        ],
    },
    Job {
        name: "own-guest",
        minutes: 6,
        tests: "a Debian guest with operators' tools, made of packages (mmdebstrap, genext2fs), boots by `arctic qemu`",
        paths: &[],
        steps: &["cargo test --release {packages} --features arctic-cli/long-tests --test guest_long -- own_guest"],
    },
    Job {
        name: "support",
        minutes: 12,
        tests: "guests with kernels of four Debian suites, OVMF, IOMMUs and memory backends; writes docs/support.md",
        paths: &[],
        steps: &["cargo xtask support"],
    },
    Job {
        name: "library",
        minutes: 2,
        tests: "the library without its features: example, documentation, subscribers of event-manager, devices of vm-device",
        paths: &["src/", "examples/", "Cargo.toml"],
        steps: &["cargo test --release {packages} --features arctic-gpu/long-tests --test library"],
    },
    Job {
        name: "igt-vf",
        minutes: 3,
        tests: "140 IGT subtests on a VF, and 11 that fill the memory of a small VF",
        paths: DEVICE,
        steps: &[
            "cargo test --release {packages} --features arctic-cli/long-tests --test guest_long -- igt_on_a_virtual_function",
        ],
    },
    Job {
        name: "install",
        minutes: 5,
        tests: "a program installed from a clone with `cargo install` boots a guest without the clone",
        paths: &["cli/build.rs", "cli/src/", "cli/tests/install.rs"],
        steps: &[
            "cargo test --release {packages} --features arctic-cli/long-tests --test install -- an_installed_program",
        ],
    },
    Job {
        name: "package",
        minutes: 4,
        tests: "the packages for a registry build without the checkout and without each other's sources",
        paths: &[
            "Cargo.toml",
            "cli/Cargo.toml",
            "cli/build.rs",
            "device-model/Cargo.toml",
            "device-model/base/Cargo.toml",
            "device-model/xehpg/Cargo.toml",
            "sriov/Cargo.toml",
            "test-support/mi/Cargo.toml",
        ],
        steps: &[
            // Packages of an earlier run with the same version would be used again: cargo regards the sources that it
            // has unpacked, and their builds, as unchanged.
            "sh -c 'rm -rf target/packages \"${CARGO_HOME:-$HOME/.cargo}\"/registry/src/-*/arctic-*'",
            "cargo package --allow-dirty --target-dir target/packages {published}",
        ],
    },
    Job {
        name: "rootfs",
        minutes: 8,
        tests: "the static program boots a guest in the container's root file system; its package (root, debootstrap, the musl target)",
        paths: &[],
        steps: &[
            "cargo build --release --locked --target x86_64-unknown-linux-musl -p arctic-cli -p arctic-eu -p arctic-afuc",
            "dist/rootfs.sh target/rootfs target/x86_64-unknown-linux-musl/release/arctic",
            "unshare --mount --pid --fork --root=target/rootfs --mount-proc arctic boot",
            "dist/deb.sh target/x86_64-unknown-linux-musl/release/arctic target",
        ],
    },
    Job {
        name: "vfs-guests",
        minutes: 3,
        tests: "seven VFs in the PF's guest; two and three guests that share a card",
        paths: &[],
        steps: &[
            "cargo test --release {packages} --features arctic-cli/long-tests --test guest_long -- seven_virtual_functions",
            "cargo test --release {packages} --features arctic-cli/long-tests --test guest_long -- guests_share_a_card",
        ],
    },
    Job {
        name: "igt-small",
        minutes: 4,
        tests: "37 IGT subtests on a card with less memory than the guest uses: eviction, compression",
        paths: &[],
        steps: &[
            "cargo test --release {packages} --features arctic-cli/long-tests --test guest_long -- igt_small_card",
        ],
    },
    Job {
        name: "igt-i915",
        minutes: 7,
        tests: "57 IGT subtests of i915's BAT list",
        paths: &[],
        steps: &["cargo test --release {packages} --features arctic-cli/long-tests --test guest_long -- igt_with_i915"],
    },
    Job {
        name: "libva",
        minutes: 2,
        tests: "ffmpeg scales a picture with libva: the card names what it skipped, or stops the context",
        paths: &[
            "guest-tests/runner/examples/libva.rs",
            "guest-tests/runner/src/skipped.rs",
            "device-model/xehpg/src/engine/skipped",
        ],
        steps: &[
            "cargo build --release",
            "cargo run --release -p arctic-guest-runner --example libva -- target/release/arctic",
        ],
    },
    Job {
        name: "igt-ivb",
        minutes: 30,
        tests: "81 IGT subtests of i915 on Ivy Bridge (an idle host)",
        paths: &[],
        steps: &[
            "cargo test --release {packages} --features arctic-cli/long-tests --test guest_long -- igt_on_ivy_bridge",
        ],
    },
    Job {
        name: "igt-snb",
        minutes: 30,
        tests: "76 IGT subtests of i915 on Sandy Bridge (an idle host)",
        paths: &[],
        steps: &[
            "cargo test --release {packages} --features arctic-cli/long-tests --test guest_long -- igt_on_sandy_bridge",
        ],
    },
    Job {
        name: "selftests",
        minutes: 25,
        tests: "i915's live self-tests on the small card, with the GuC; i915 is built first (an idle host)",
        paths: &[],
        steps: &[
            "cargo build --release",
            "cargo run --release -p arctic-guest-runner --example selftests -- --submission guc target/release/arctic",
        ],
    },
    Job {
        name: "fuzz",
        minutes: 55,
        tests: "each fuzz target, for ten minutes",
        paths: &[],
        steps: &[
            "ARCTIC_FUZZ_SECONDS=600 cargo test --release {packages} --features arctic-gpu/long-tests --test fuzz -- --nocapture",
        ],
    },
    Job {
        name: "differential",
        minutes: 10,
        tests: "ten million commands on the engine and on the reference model",
        paths: &[],
        steps: &[
            "ARCTIC_DIFFERENTIAL_COMMANDS=10000000 cargo test --release -p arctic-device-model --test differential",
        ],
    },
    Job {
        name: "moved",
        minutes: 10,
        tests: "3,000 random batches and 50 times the kernels of the fuzzer, saved at random steps and restored on another card",
        paths: &[
            "device-model/xehpg/src/guc/saved",
            "device-model/xehpg/src/compute/saved",
            "device-model/base/src/state",
        ],
        steps: &["ARCTIC_MOVED_CASES=3000 cargo test --release -p arctic-device-model --test differential -- moved::"],
    },
    Job {
        name: "flr",
        minutes: 35,
        tests: "200 FLRs of a VF with 1 GiB of written memory, with 10 busy threads per core",
        paths: &[],
        steps: &[
            "cargo build --release",
            "cargo run --release -p arctic-guest-runner --example loaded_host -- --threads 10 --runs 1 --timeout 7200 -- \
             target/release/arctic boot --vfs 14 --timeout 900 --run 'arctic guest flr'",
        ],
    },
    Job {
        name: "loaded-boot",
        minutes: 45,
        tests: "20 boots of two VFs in separate guests, with 6 busy threads per core",
        paths: &[],
        steps: &[
            "cargo build --release",
            "cargo run --release -p arctic-guest-runner --example loaded_host -- --threads 6 --runs 20 -- \
             target/release/arctic boot --vfs 2 --provision config --timeout 900",
        ],
    },
    Job {
        name: "profiles",
        minutes: 6,
        tests: "hostile guests, the fuzz corpora and the reference model without overflow checks, and with panic = \"abort\"",
        paths: &[],
        steps: &[
            "cargo test --profile embedded -p arctic-sriov -p arctic-base -p arctic-xehpg -p arctic-device-model --lib --test differential \
             --test hostile --test hostile_vf --test command_streamer --test context_images --test guc_messages \
             --test walkers",
            "cargo test --profile embedded -p arctic-gpu --lib --test fuzz_regressions --test security",
            "cargo run --release -p arctic-test-support --features vfio-user --example replay -- target/replay-release",
            "cargo run --profile embedded -p arctic-test-support --features vfio-user --example replay -- \
             target/replay-embedded",
            "cmp target/replay-release target/replay-embedded",
        ],
    },
    Job {
        name: "mutants",
        minutes: 10,
        tests: "each mutant of the code fails a test that claims its item, as docs/mutants.toml records",
        paths: &[],
        steps: &["cargo xtask mutants --check"],
    },
    Job {
        name: "fresh-clone",
        minutes: 45,
        tests: "all tests in a fresh clone with an empty CARGO_HOME and an empty cache of packages",
        paths: &[],
        steps: &[
            "rm -rf target/fresh",
            "git clone --quiet . target/fresh/tree",
            "sh -c 'cd target/fresh/tree && CARGO_HOME=$PWD/../cargo ARCTIC_CACHE=$PWD/../cache cargo test --release --workspace'",
        ],
    },
    Job {
        name: "recipes",
        minutes: 12,
        tests: "the worked examples of docs/recipes.md in a copy of the repository, and the commands of other documents, literally",
        paths: &[
            "docs/recipes.md",
            "docs/debugging.md",
            "docs/integrated.md",
            "docs/nested.md",
            "docs/sriov.md",
            "xtask/src/recipes.rs",
        ],
        steps: &["cargo xtask recipes"],
    },
    Job {
        name: "book",
        minutes: 5,
        tests: "the documents build as a book, with mdbook, which is built first",
        paths: &["book.toml", "docs/SUMMARY.md"],
        steps: &["cargo xtask tools mdbook", "target/tools/mdbook/bin/mdbook build"],
    },
    Job {
        name: "provision",
        minutes: 1,
        tests: "provisioning and clearing a VF of 8 GiB on a card with all memory written",
        paths: &[],
        steps: &["cargo run --release -p arctic-device-model --example provision -- 8"],
    },
    Job { name: "bench", minutes: 15, tests: "all benchmarks", paths: &[], steps: &["cargo bench"] },
];

/// Jobs of the tools for Adreno microcode.
pub const AFUC: &[Job] = &[Job {
    name: "afuc-peer",
    minutes: 4,
    tests: "Mesa's fixtures and command-stream traces, all 2^32 words through the decoder, fuzz targets",
    paths: &[],
    steps: &["cargo test --release {packages} --features long-tests --lib --test peer --test fuzz"],
}];

/// Jobs of the tools for kernels of the execution units.
pub const EU: &[Job] = &[
    Job {
        name: "eu-peer",
        minutes: 5,
        tests: "kernels compiled by ocloc in four ways against pocl and iga64; operations on 20,000 lanes a pair of types, \
                10 million instructions of random programs",
        paths: &["eu/src/", "eu/tests/"],
        steps: &[
            "cargo test --release {packages} --features long-tests --test peer --test extensions --test operations \
             --test control_flow --test math --test matrices --test programs --test fuzz",
        ],
    },
    Job {
        name: "eu-checked",
        minutes: 3,
        tests: "the interpreter with overflow checks and debug assertions, as embedders may build it",
        paths: &["eu/src/", "eu/tests/", "eu/fuzz/"],
        steps: &["cargo test {packages}"],
    },
];

/// Returns the jobs of all groups.
pub fn all() -> impl Iterator<Item = (&'static Group, &'static Job)> {
    GROUPS.iter().flat_map(|group| group.jobs.iter().map(move |job| (group, job)))
}

/// Prints the jobs.
pub fn print(json: bool) -> Result<()> {
    if json {
        println!("{}", serde_json::to_string_pretty(&all().map(|(_, job)| job).collect::<Vec<_>>())?);
        return Ok(());
    }
    for (_, Job { name, minutes, tests, .. }) in all() {
        println!("{name:<14} {minutes:>3} min  {tests}");
    }
    Ok(())
}

/// Runs jobs by name. All names are checked before the first job starts.
pub fn run(names: &[String]) -> Result<()> {
    let find = |name: &String| {
        all().find(|(_, job)| job.name == name).with_context(|| format!("no job {name}: see cargo xtask long --list"))
    };
    let every = names.iter().any(|name| name == "all");
    let jobs: Vec<_> = if every { all().collect() } else { names.iter().map(find).collect::<Result<_>>()? };
    let failed: Vec<&str> =
        jobs.into_iter().filter(|(group, job)| !passes(group, job, None)).map(|(_, job)| job.name).collect();
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// Runs the steps of a job of `group`, each within `limit`. Returns false after the first failed step; its error is printed
/// to stderr.
pub fn passes(group: &Group, job: &Job, limit: Option<Duration>) -> bool {
    eprintln!("{} (about {} min): {}", job.name, job.minutes, job.tests);
    let report = |error: &anyhow::Error| eprintln!("{}: {error:#}", job.name);
    job.steps.iter().all(|line| step_within(&group.expand(line), limit).inspect_err(report).is_ok())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique_and_every_job_does_something() {
        let names: HashSet<&str> = all().map(|(_, job)| job.name).collect();
        assert_eq!(names.len(), all().count());
        assert!(all().all(|(_, job)| !job.steps.is_empty() && job.minutes > 0));
    }

    #[test]
    fn paths_exist() {
        for path in all().flat_map(|(_, job)| job.paths) {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let name = path.rsplit('/').next().unwrap_or_default();
            let entries =
                std::fs::read_dir(crate::root().join(folder)).unwrap_or_else(|error| panic!("{path}: {error}"));
            let mut names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            assert!(names.any(|found| found.starts_with(name)), "{path}");
        }
    }

    #[test]
    fn an_unknown_job_is_named() {
        let error = run(&["vfs-64".into()]).unwrap_err().to_string();
        assert_eq!(error, "no job vfs-64: see cargo xtask long --list");
    }
}
