// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Groups of packages, which CI lints and tests apart from each other. A package joins the workspace by a line in its
//! group; its tests then count towards the limits of this group only.

use crate::jobs::{self, Job};

/// A command line of CI, and the minutes after which it is ended and has failed: about three times what it takes on two idle
/// cores.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub line: &'static str,
    pub minutes: u32,
}

/// Packages that are linted, tested and published together.
#[derive(Debug)]
pub struct Group {
    pub name: &'static str,
    /// Its packages. Each package of the workspace is in exactly one group.
    pub packages: &'static [&'static str],
    /// The packages for a registry. They depend on each other by their exact version.
    pub published: &'static [&'static str],
    /// Features that lints enable, so that they cover the long tests.
    pub features: &'static [&'static str],
    /// Manifest of the group's fuzz targets, a workspace of its own.
    pub fuzz: Option<&'static str>,
    /// Steps of [`Stage::Check`]. `{fuzz_seconds}` is the time for each fuzz target.
    pub checks: &'static [Step],
    /// Long tests.
    pub jobs: &'static [Job],
}

/// All groups, in the order in which CI runs them.
pub const GROUPS: &[Group] = &[CARD, AFUC, EU];

/// The virtual card: library, program, guests, `xtask`.
const CARD: Group = Group {
    name: "card",
    packages: &[
        "arctic-fidelity",
        "arctic-guc-driver",
        "arctic-libfuzzer",
        "arctic-mi",
        "arctic-source",
        "arctic-timeline",
        "arctic-number",
        "arctic-sriov",
        "arctic-base",
        "arctic-xehpg",
        "arctic-gen6",
        "arctic-device-model",
        "arctic-gpu",
        "arctic-guest-compute",
        "arctic-guest-agent",
        "arctic-guest-runner",
        "arctic-cli",
        "arctic-vmm",
        "arctic-test-support",
        "xtask",
    ],
    published: &[
        "arctic-fidelity",
        "arctic-mi",
        "arctic-number",
        "arctic-sriov",
        "arctic-base",
        // Linked by the family; its tests are those of its own group.
        "arctic-eu",
        "arctic-xehpg",
        "arctic-gen6",
        "arctic-device-model",
        "arctic-gpu",
        "arctic-guest-compute",
        "arctic-guest-agent",
        "arctic-guest-runner",
        "arctic-cli",
    ],
    features: &["arctic-gpu/long-tests", "arctic-cli/long-tests", "arctic-vmm/long-tests"],
    fuzz: Some("fuzz/Cargo.toml"),
    checks: &[Step {
        line: "ARCTIC_FUZZ_SECONDS={fuzz_seconds} cargo test --release {packages} --features arctic-gpu/long-tests --test fuzz",
        minutes: 20,
    }],
    jobs: jobs::CARD,
};

/// Tools for Adreno microcode, independent of the card.
const AFUC: Group = Group {
    name: "afuc",
    packages: &["arctic-afuc"],
    published: &["arctic-afuc"],
    features: &["arctic-afuc/long-tests"],
    fuzz: Some("afuc/fuzz/Cargo.toml"),
    checks: &[Step {
        line: "ARCTIC_FUZZ_SECONDS={fuzz_seconds} cargo test --release {packages} --features arctic-afuc/long-tests --test fuzz",
        minutes: 12,
    }],
    jobs: jobs::AFUC,
};

/// Tools for kernels of the execution units, independent of the card.
const EU: Group = Group {
    name: "eu",
    packages: &["arctic-eu"],
    published: &["arctic-eu"],
    features: &["arctic-eu/long-tests"],
    fuzz: Some("eu/fuzz/Cargo.toml"),
    checks: &[
        // The interpreter as a device model links it.
        Step { line: "cargo check --release {packages} --no-default-features --quiet", minutes: 3 },
        Step {
            line: "ARCTIC_FUZZ_SECONDS={fuzz_seconds} cargo test --release {packages} --features arctic-eu/long-tests --test fuzz",
            minutes: 12,
        },
    ],
    jobs: jobs::EU,
};

/// A part of CI. Command lines select the packages of one group by the placeholders of [`Group::expand`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Stage {
    /// Format, licences, spelling, clippy, documentation, packages
    Lint,
    /// The quick test tier; not part of a whole run, because `test` includes it
    Quick,
    /// The full test tier
    Test,
    /// The fuzz targets of groups whose files have changed, which share seven minutes; mutants of changed files
    Check,
    /// Long tests that cover recently changed files
    Long,
}

impl Stage {
    /// The stages of a whole run.
    pub const ALL: &[Stage] = &[Stage::Lint, Stage::Test, Stage::Check, Stage::Long];

    /// Steps for the whole repository, before those of the groups.
    pub fn steps(self) -> &'static [Step] {
        match self {
            // The first step includes the build of xtask.
            Stage::Lint => &[
                Step { line: "cargo xtask spdx", minutes: 5 },
                Step { line: "cargo xtask names", minutes: 1 },
                Step { line: "cargo xtask tools typos cargo-deny", minutes: 3 },
                Step { line: "target/tools/typos/bin/typos", minutes: 1 },
                Step { line: "cargo fmt --all --check", minutes: 1 },
                Step {
                    line: "target/tools/cargo-deny/bin/cargo-deny --locked --workspace check bans licenses sources",
                    minutes: 2,
                },
                Step {
                    line: "RUSTFLAGS='--cfg loom' cargo clippy --release -p arctic-xehpg --test loom --target-dir target/loom --quiet -- -D warnings",
                    minutes: 5,
                },
            ],
            _ => &[],
        }
    }
}

impl Group {
    /// Returns the steps of a stage. All of them build with one target directory, profile and selection of packages, so
    /// nothing is built twice.
    pub fn steps(&self, stage: Stage) -> Vec<(String, u32)> {
        let steps: &[Step] = match stage {
            Stage::Lint => &[
                Step { line: "cargo fmt --manifest-path {fuzz} --check", minutes: 1 },
                Step { line: "cargo xtask tools cargo-deny", minutes: 3 },
                Step {
                    line: "target/tools/cargo-deny/bin/cargo-deny --locked --manifest-path {fuzz} check bans licenses sources",
                    minutes: 2,
                },
                Step {
                    line: "cargo clippy --release {packages} --all-targets --features {features} --quiet -- -D warnings",
                    minutes: 10,
                },
                Step { line: "RUSTDOCFLAGS=-Dwarnings cargo doc --release {packages} --no-deps --quiet", minutes: 5 },
                Step { line: "cargo package --allow-dirty --no-verify --quiet {published}", minutes: 5 },
            ],
            Stage::Quick => &[Step { line: "cargo nextest run --release {packages}", minutes: 20 }],
            Stage::Test => &[
                Step { line: "cargo test --release {packages} --no-run --quiet", minutes: 25 },
                Step { line: "cargo test --release {packages} --no-fail-fast", minutes: 25 },
            ],
            Stage::Check => self.checks,
            Stage::Long => &[],
        };
        let applies = |step: &&Step| self.fuzz.is_some() || !step.line.contains("{fuzz}");
        steps.iter().filter(applies).map(|step| (self.expand(step.line), step.minutes)).collect()
    }

    /// Writes the group's name in place of the options that select all of its packages, for people who read the line.
    pub fn fold(&self, line: &str) -> String {
        let names = [("{packages}", ""), ("{published}", ", published")];
        names.iter().fold(line.to_owned(), |line, (list, which)| {
            line.replace(&self.expand(list), &format!("[{}{which}]", self.name))
        })
    }

    /// Replaces `{packages}` and `{published}` by the options with which cargo selects these packages, `{features}` by
    /// the features of lints, `{fuzz}` by the manifest of the group's fuzz targets.
    pub fn expand(&self, line: &str) -> String {
        let select = |packages: &[&str]| packages.iter().map(|name| format!("-p {name}")).collect::<Vec<_>>().join(" ");
        line.replace("{packages}", &select(self.packages))
            .replace("{published}", &select(self.published))
            .replace("{features}", &self.features.join(","))
            .replace("{fuzz}", self.fuzz.unwrap_or_default())
    }

    /// Returns whether one of these files is in the group's folder: the one above its fuzz targets. That of the card is the
    /// repository.
    pub fn is_changed(&self, files: &[String]) -> bool {
        let folder = self.fuzz.and_then(|manifest| manifest.strip_suffix("fuzz/Cargo.toml")).unwrap_or_default();
        files.iter().any(|file| file.starts_with(folder))
    }

    /// Returns the group with this name.
    pub fn find(name: &str) -> Option<&'static Group> {
        GROUPS.iter().find(|group| group.name == name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;
    use crate::workspace;

    #[test]
    fn groups_are_changed_by_files_of_their_folders() {
        let changed = |file: &str| -> Vec<&str> {
            GROUPS.iter().filter(|group| group.is_changed(&[file.to_owned()])).map(|group| group.name).collect()
        };
        assert_eq!(changed("afuc/src/lib.rs"), ["card", "afuc"]);
        assert_eq!(changed("eu/README.md"), ["card", "eu"]);
        assert_eq!(changed("xtask/src/main.rs"), ["card"]);
        assert!(GROUPS.iter().all(|group| !group.is_changed(&[])));
    }

    #[test]
    fn each_package_is_in_one_group() {
        let mut groups: BTreeMap<&str, usize> = BTreeMap::new();
        GROUPS.iter().flat_map(|group| group.packages).for_each(|name| *groups.entry(name).or_default() += 1);
        let packages = workspace::packages();
        let packages: BTreeMap<&str, usize> =
            packages.iter().map(|package| (package["name"].as_str().unwrap(), 1)).collect();
        assert_eq!(groups, packages);
    }

    #[test]
    fn published_packages_depend_on_each_other_by_exact_version() {
        let packages = workspace::packages();
        for group in GROUPS {
            for package in
                packages.iter().filter(|package| group.published.contains(&package["name"].as_str().unwrap()))
            {
                let exact = format!("={}", package["version"].as_str().unwrap());
                let own = |dependency: &&Value| {
                    dependency["kind"] != "dev" && group.packages.contains(&dependency["name"].as_str().unwrap())
                };
                for dependency in package["dependencies"].as_array().unwrap().iter().filter(own) {
                    assert_eq!(dependency["req"], exact, "{}: {}", package["name"], dependency["name"]);
                    assert!(group.published.contains(&dependency["name"].as_str().unwrap()), "{dependency}");
                }
            }
        }
    }

    /// Linking the library without features does not add the dependencies of the server, the program and the guest
    /// tests.
    #[test]
    fn the_library_without_features_has_no_dependencies_of_the_program() {
        let linked = workspace::linked("arctic-gpu");
        assert!(linked.contains("arctic-xehpg") && linked.contains("vm-memory"), "{linked:?}");
        for foreign in [
            "anyhow",
            "arctic-guest-compute",
            "arctic-guest-agent",
            "arctic-guest-runner",
            "clap",
            "event-manager",
            "signal-hook",
            "vfio-bindings",
            "vm-device",
        ] {
            assert!(!linked.contains(foreign), "{foreign} in {linked:?}");
        }
    }

    /// A device model links the interpreter of execution units without the launcher and the program.
    #[test]
    fn the_interpreter_without_features_has_no_dependencies_of_its_program() {
        let linked = workspace::linked("arctic-eu");
        assert!(linked.contains("thiserror"), "{linked:?}");
        for foreign in ["clap", "indicatif", "serde_json", "vm-memory"] {
            assert!(!linked.contains(foreign), "{foreign} in {linked:?}");
        }
    }

    #[test]
    fn placeholders_of_steps_are_replaced() {
        for group in GROUPS {
            for stage in [Stage::ALL, &[Stage::Quick]].concat() {
                let steps = group.steps(stage);
                let replaced = |(line, _): &(String, u32)| !line.replace("{fuzz_seconds}", "10").contains(['{', '}']);
                assert!(steps.iter().all(replaced), "{steps:?}");
            }
        }
        assert!(CARD.steps(Stage::Quick)[0].0.ends_with("-p arctic-test-support -p xtask"));
    }
}
