// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The manifests of the workspace, for tests of the graph of packages. They are read without resolving dependencies, so
//! nothing is downloaded, and packages that this build does not need may be missing from the registry cache.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Returns the packages of the workspace, as `cargo metadata` describes their manifests.
pub fn packages() -> Vec<Value> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version=1", "--no-deps", "--locked"])
        .current_dir(crate::root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice::<Value>(&output.stdout).unwrap()["packages"].as_array().unwrap().clone()
}

/// Returns the names of a package's dependencies that `chosen` accepts.
fn dependencies(package: &Value, chosen: impl Fn(&Value) -> bool) -> impl Iterator<Item = &str> {
    let all = package["dependencies"].as_array().unwrap().iter();
    all.filter(move |dependency| chosen(dependency)).map(|dependency| dependency["name"].as_str().unwrap())
}

/// True for dependencies of programs and libraries, not for those of tests.
fn is_shipped(dependency: &Value) -> bool {
    dependency["kind"] != "dev"
}

/// Returns the packages of the workspace that depend on `name`, directly or through others; with `tests`, also those
/// whose tests depend on it directly.
pub fn dependents(name: &str, tests: bool) -> BTreeSet<String> {
    let packages = packages();
    let mut found = BTreeSet::from([name.to_owned()]);
    loop {
        let before = found.len();
        for package in &packages {
            let chosen = |dependency: &Value| is_shipped(dependency) || tests && dependency["name"] == name;
            if dependencies(package, chosen).any(|dependency| found.contains(dependency)) {
                found.insert(package["name"].as_str().unwrap().to_owned());
            }
        }
        if found.len() == before {
            found.remove(name);
            return found;
        }
    }
}

/// Returns the packages that a library without optional features links: those of the workspace by their manifests, those
/// of registries by the lock file, in which a package has the dependencies of all its uses in the workspace.
pub fn linked(name: &str) -> BTreeSet<String> {
    let packages = packages();
    let manifests: BTreeMap<&str, &Value> =
        packages.iter().map(|package| (package["name"].as_str().unwrap(), package)).collect();
    let lock = std::fs::read_to_string(crate::root().join("Cargo.lock")).unwrap();
    let lock: toml::Table = lock.parse().unwrap();
    let locked = |name: &str| -> Vec<String> {
        let same = |entry: &&toml::Value| entry["name"].as_str() == Some(name);
        let entries = lock["package"].as_array().unwrap().iter().filter(same);
        let names = entries.filter_map(|entry| entry.get("dependencies")?.as_array()).flatten();
        // An entry is a name, followed by the version if the lock file has several.
        names.filter_map(|entry| entry.as_str()?.split(' ').next().map(str::to_owned)).collect()
    };
    let mut found = BTreeSet::new();
    let mut open = vec![name.to_owned()];
    while let Some(name) = open.pop() {
        let needed = |dependency: &Value| is_shipped(dependency) && dependency["optional"] == false;
        match manifests.get(name.as_str()) {
            Some(package) => open.extend(dependencies(package, needed).map(str::to_owned)),
            None => open.extend(locked(&name)),
        }
        open.retain(|name| !found.contains(name));
        found.insert(name);
    }
    found
}
