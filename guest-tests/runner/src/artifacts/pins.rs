// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The versions of Debian's packages that a run downloads by default, in `pinned.tsv`: component, package, version and
//! SHA-256 of each package, with all dependencies. `cargo run -p arctic-guest-runner --example pins` writes it.

use super::apt::Pin;

const PINNED: &str = include_str!("pinned.tsv");

/// Returns the packages of `component`; empty if it has no pinned ones.
pub fn of(component: &str) -> Vec<Pin> {
    rows(PINNED).filter(|(of, _)| *of == component).map(|(_, pin)| pin).collect()
}

/// The rows, without comments.
fn rows(text: &str) -> impl Iterator<Item = (&str, Pin)> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut fields = line.split('\t');
        let component = fields.next()?;
        let [name, version, sha256] = [fields.next()?, fields.next()?, fields.next()?].map(str::to_owned);
        Some((component, Pin { name, version, sha256 }))
    })
}

/// The rows of a component, with a newline each.
pub fn text(component: &str, pins: &[Pin]) -> String {
    pins.iter().map(|Pin { name, version, sha256 }| format!("{component}\t{name}\t{version}\t{sha256}\n")).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::artifacts::PINNED as COMPONENTS;

    /// Each line is a comment or a row; a component has a package once; hashes have 64 digits.
    #[test]
    fn the_file_has_the_packages_of_each_component() {
        let rows: Vec<_> = rows(PINNED).collect();
        assert_eq!(rows.len(), PINNED.lines().filter(|line| !line.starts_with('#')).count());
        for (component, pin) in &rows {
            assert!(COMPONENTS.iter().any(|of| of.name == *component), "{component}");
            assert!(pin.sha256.len() == 64 && pin.sha256.bytes().all(|byte| byte.is_ascii_hexdigit()), "{pin:?}");
        }
        let unique: BTreeSet<_> = rows.iter().map(|(component, pin)| (component, &pin.name)).collect();
        assert_eq!(unique.len(), rows.len());
        for component in COMPONENTS.map(|component| component.name) {
            let pins = of(component);
            assert!(!pins.is_empty(), "{component}");
            assert!(PINNED.contains(&text(component, &pins)), "the rows of {component} are together");
        }
    }
}
