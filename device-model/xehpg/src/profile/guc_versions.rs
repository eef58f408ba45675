// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The interface of the GuC that a card claims: drivers enable features by it.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error};

use crate::generation::{Version, XE_HPG};

/// Release of the GuC's firmware and version of the interface of VFs ("submission", "compatibility" or ABI version). The file of
/// `arctic firmware` has them; a card without a PF driver reports the second one to VFs.
///
/// Linux's xe migrates VFs from release 70.54.0 (PF) and interface 1.27.0 (VF) on. Newer versions enable further features, so
/// only versions below those that the model does not honour can be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GucVersions {
    /// Release.
    pub release: Version,
    /// Version of the interface.
    pub abi: Version,
}

/// Versions from which on xe migrates VFs (xe: xe_gt_sriov_pf_migration.c, xe_sriov_vf.c).
const MIGRATION: GucVersions =
    GucVersions { release: Version { major: 70, minor: 54, patch: 0 }, abi: Version { major: 1, minor: 27, patch: 0 } };

impl Default for GucVersions {
    fn default() -> Self {
        GucVersions { release: XE_HPG.firmware.release, abi: XE_HPG.firmware.submission }
    }
}

impl GucVersions {
    /// Returns an error if the model does not honour the versions. The text is a sentence without its end.
    pub fn check(self) -> Result<Self, String> {
        let interface = XE_HPG.firmware;
        for (what, version, least, below) in [
            ("release", self.release, interface.releases.start, interface.releases.end),
            ("ABI", self.abi, interface.submissions.start, interface.submissions.end),
        ] {
            if version < least || version >= below {
                return Err(format!(
                    "the card's GuC does not honour {what} {version}: expected {least} or newer, below {below}"
                ));
            }
        }
        Ok(self)
    }

    /// Whether Linux's xe migrates VFs.
    pub fn has_migration(self) -> bool {
        self.release >= MIGRATION.release && self.abi >= MIGRATION.abi
    }
}

impl fmt::Display for GucVersions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "release {}, ABI {}", self.release, self.abi)
    }
}

impl FromStr for Version {
    type Err = String;

    /// Parses a version such as `70.55.0`.
    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Option<Vec<u8>> = text.split('.').map(|number| number.parse().ok()).collect();
        match numbers.as_deref() {
            Some([major, minor, patch]) => Ok(Version { major: *major, minor: *minor, patch: *patch }),
            _ => Err(format!("expected a version such as \"70.55.0\", found {text:?}")),
        }
    }
}

impl<'de> Deserialize<'de> for GucVersions {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            release: Option<String>,
            abi: Option<String>,
        }
        let File { release, abi } = File::deserialize(from)?;
        let version = |text: Option<String>, default| text.map_or(Ok(default), |text| text.parse());
        let GucVersions { release: newest, abi: newest_abi } = GucVersions::default();
        let release = version(release, newest).map_err(D::Error::custom)?;
        let abi = version(abi, newest_abi).map_err(D::Error::custom)?;
        GucVersions { release, abi }.check().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<GucVersions, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    /// MIG-005, MIG-006: what is claimed enables migration and nothing that the model does not honour.
    #[test]
    fn versions_are_honoured_or_refused() {
        let version = |text: &str| text.parse::<Version>().unwrap();
        let default = GucVersions::default();
        assert_eq!(default.to_string(), "release 70.55.0, ABI 1.27.0");
        assert!(default.has_migration());
        assert_eq!(read(""), Ok(default));
        let old = read("release = \"70.53.0\"\nabi = \"1.26.0\"").unwrap();
        assert_eq!(old, GucVersions { release: version("70.53.0"), abi: version("1.26.0") });
        assert!(!old.has_migration() && !GucVersions { abi: old.abi, ..default }.has_migration());
        assert_eq!(
            read("release = \"70.62.0\""),
            Err("the card's GuC does not honour release 70.62.0: expected 70.29.2 or newer, below 70.62.0".into())
        );
        assert_eq!(
            read("abi = \"1.36.0\""),
            Err("the card's GuC does not honour ABI 1.36.0: expected 1.1.0 or newer, below 1.36.0".into())
        );
        assert!(read("release = \"70.61.9\"\nabi = \"1.35.255\"").is_ok());
        for text in ["release = \"71.0.0\"", "release = \"70.55\"", "abi = \"1.300.0\"", "abi = \"2.0.0\"", "api = 1"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
