// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Selects a Debian mirror from the host's apt sources, to avoid a hard-coded mirror.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

/// Debian's suites. An apt source with one of these suites and the component `main` refers to a full mirror.
const SUITES: &[&str] = &["oldstable", "stable", "testing", "unstable", "sid", "bookworm", "trixie", "forky", "duke"];
const KEYRINGS: &[&str] =
    &["/usr/share/keyrings/debian-archive-keyring.gpg", "/usr/share/keyrings/debian-archive-keyring.pgp"];

/// A Debian mirror and the keyring that verifies its packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// Base URI without a trailing slash.
    pub uri: String,
    /// The Debian archive keyring.
    pub keyring: PathBuf,
    /// Whether to take the newest packages of lists that are not valid at this time.
    pub accepts_outdated: bool,
}

/// The variable that names the mirror.
pub const MIRROR: &str = "ARCTIC_DEBIAN_MIRROR";
/// The variable that permits a mirror whose lists are not valid at this time.
pub const OUTDATED: &str = "ARCTIC_DEBIAN_OUTDATED";
/// Its value.
pub const ACCEPT: &str = "accept";

impl Mirror {
    /// Returns `$ARCTIC_DEBIAN_MIRROR`, else the first Debian mirror in the host's apt sources.
    pub fn of_host() -> Result<Self> {
        let variable = |name| std::env::var_os(name).unwrap_or_default().to_string_lossy().into_owned();
        let uri = match &*variable(MIRROR) {
            uri if !uri.is_empty() => checked(uri)?.to_owned(),
            _ => match source_files(Path::new("/etc/apt")).iter().find_map(|(path, text)| first_mirror(path, text)) {
                Some(uri) => uri,
                None => bail!(
                    "this host's apt sources contain no Debian mirror: set {MIRROR} to a mirror's URI, \
                     or supply QEMU and a kernel with --qemu, --kernel and --modules"
                ),
            },
        };
        let keyring = match std::env::var_os("ARCTIC_DEBIAN_KEYRING") {
            Some(path) => PathBuf::from(path),
            None => KEYRINGS.iter().map(PathBuf::from).find(|path| path.is_file()).unwrap_or_default(),
        };
        if !keyring.is_file() {
            bail!(
                "Debian's archive keyring is missing, so downloads cannot be verified: install the package \
                 debian-archive-keyring, or set ARCTIC_DEBIAN_KEYRING to the keyring's file"
            );
        }
        let accepts_outdated = accepts(&variable(OUTDATED))? || is_snapshot(&uri);
        Ok(Self { uri, keyring, accepts_outdated })
    }
}

/// Returns a URI of [`MIRROR`] without slashes at its end, if it is one that apt's sources can have.
fn checked(uri: &str) -> Result<&str> {
    let scheme = uri.split_once(':').map_or("", |(scheme, _)| scheme);
    let is_scheme = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    if !is_scheme(scheme) || uri.contains(|c: char| c.is_whitespace() || c.is_control()) {
        bail!("{MIRROR} is {uri:?}: set it to the URL of a Debian mirror, like https://HOST/debian, or unset it");
    }
    Ok(uri.trim_end_matches('/'))
}

/// Whether a value of [`OUTDATED`] accepts lists that are not valid at this time.
fn accepts(value: &str) -> Result<bool> {
    match value {
        "" => Ok(false),
        ACCEPT => Ok(true),
        _ => bail!("{OUTDATED} is {value:?}: set it to {ACCEPT}, or unset it"),
    }
}

/// Whether the URI is that of a mirror's state at a time, such as `…/archive/debian/20261120T000000Z`: its lists expire,
/// although nothing newer belongs there.
fn is_snapshot(uri: &str) -> bool {
    let digits = |text: &str, count| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    uri.split('/').any(|segment| {
        let time = segment.strip_suffix('Z').and_then(|time| time.split_once('T'));
        time.is_some_and(|(day, time)| digits(day, 8) && digits(time, 6))
    })
}

fn source_files(etc: &Path) -> Vec<(PathBuf, String)> {
    let mut paths: Vec<PathBuf> = fs::read_dir(etc.join("sources.list.d"))
        .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
        .unwrap_or_default();
    paths.sort();
    paths.insert(0, etc.join("sources.list"));
    paths.into_iter().filter_map(|path| fs::read_to_string(&path).ok().map(|text| (path, text))).collect()
}

fn first_mirror(path: &Path, text: &str) -> Option<String> {
    let entries = match path.extension().is_some_and(|extension| extension == "sources") {
        true => deb822_entries(text),
        false => one_line_entries(text),
    };
    // Other archives also use Debian's suite names. The path segment "debian", which nearly all mirrors have,
    // distinguishes them.
    entries
        .into_iter()
        .filter(|entry| entry.suites.iter().any(|suite| SUITES.contains(&suite.as_str())))
        .filter(|entry| entry.components.iter().any(|component| component == "main"))
        .map(|entry| entry.uri.trim_end_matches('/').to_owned())
        .find(|uri| uri.split('/').any(|segment| segment == "debian") && !uri.starts_with("cdrom:"))
}

struct Entry {
    uri: String,
    suites: Vec<String>,
    components: Vec<String>,
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn deb822_entries(text: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    for paragraph in text.split("\n\n") {
        let field = |name: &str| {
            paragraph.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
                let (key, value) = line.split_once(':')?;
                key.trim().eq_ignore_ascii_case(name).then(|| words(value))
            })
        };
        let disabled = field("Enabled").is_some_and(|value| value.iter().any(|word| word == "no" || word == "false"));
        if disabled || !field("Types").unwrap_or_default().iter().any(|kind| kind == "deb") {
            continue;
        }
        for uri in field("URIs").unwrap_or_default() {
            let suites = field("Suites").unwrap_or_default();
            entries.push(Entry { uri, suites, components: field("Components").unwrap_or_default() });
        }
    }
    entries
}

fn one_line_entries(text: &str) -> Vec<Entry> {
    let entry = |line: &str| {
        let rest = line.trim().strip_prefix("deb ")?.trim_start();
        let rest = match rest.strip_prefix('[') {
            Some(options) => options.split_once(']')?.1,
            None => rest,
        };
        let mut fields = rest.split('#').next()?.split_whitespace().map(str::to_owned);
        let (uri, suite) = (fields.next()?, fields.next()?);
        Some(Entry { uri, suites: vec![suite], components: fields.collect() })
    };
    text.lines().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_with_other_values_are_refused_by_name() {
        assert_eq!(checked("http://mirror.example/debian//").unwrap(), "http://mirror.example/debian");
        assert_eq!(checked("file:/srv/debian").unwrap(), "file:/srv/debian");
        for uri in ["nonsense", "mirror.example/debian", "http://a b", "http://a\nhttp://b", "://x"] {
            let error = checked(uri).unwrap_err().to_string();
            assert!(error.starts_with(&format!("ARCTIC_DEBIAN_MIRROR is {uri:?}: ")), "{error}");
        }
        assert_eq!((accepts("").unwrap(), accepts("accept").unwrap()), (false, true));
        let error = accepts("yes").unwrap_err().to_string();
        assert_eq!(error, "ARCTIC_DEBIAN_OUTDATED is \"yes\": set it to accept, or unset it");
    }

    #[test]
    fn deb822_sources_are_read() {
        let text = "Types: deb\n# a comment: x\nURIs: http://mirror.example/debian/\nSuites: bookworm bookworm-updates\nComponents: main\n";
        assert_eq!(first_mirror(Path::new("debian.sources"), text).unwrap(), "http://mirror.example/debian");
        let off = format!("Enabled: no\n{text}");
        assert_eq!(first_mirror(Path::new("debian.sources"), &off), None);
    }

    #[test]
    fn one_line_sources_are_read() {
        let text = "# deb http://no.example/debian trixie main\n\
                    deb-src http://no.example/debian trixie main\n\
                    deb [arch=amd64 signed-by=/k.gpg] https://yes.example/debian trixie main contrib # c\n";
        assert_eq!(first_mirror(Path::new("sources.list"), text).unwrap(), "https://yes.example/debian");
    }

    #[test]
    fn a_snapshot_is_recognised_by_its_time() {
        for (uri, snapshot) in [
            ("https://snapshot.example/archive/debian/20261120T030211Z", true),
            ("https://snapshot.example/archive/debian/20261120T030211Z/", true),
            ("https://mirror.example/debian", false),
            ("https://mirror.example/20261120/debian", false),
            ("https://mirror.example/2026112oT030211Z", false),
        ] {
            assert_eq!(is_snapshot(uri), snapshot, "{uri}");
        }
    }

    #[test]
    fn third_party_archives_are_not_mirrors() {
        let text = "deb http://dl.example/linux/chrome/deb stable main\n\
                    deb https://docker.example/linux/debian bookworm stable\n\
                    deb http://security.example/debian-security bookworm-security main\n";
        assert_eq!(first_mirror(Path::new("x.list"), text), None);
    }
}
