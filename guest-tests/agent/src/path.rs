// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Paths in reports, in text, and in arguments of programs. A path is a string of bytes; text and JSON are not.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::Deref;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, Serializer};

/// A path that is printed, or serialised as a string: bytes that are not UTF-8 appear as U+FFFD. Serialising a
/// `PathBuf` with such bytes is an error, and `serde_json::json!` panics then, so structures that are serialised have
/// this type instead.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct PrintedPath(PathBuf);

impl From<PathBuf> for PrintedPath {
    fn from(path: PathBuf) -> Self {
        Self(path)
    }
}

impl Deref for PrintedPath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for PrintedPath {
    fn as_ref(&self) -> &Path {
        self
    }
}

impl fmt::Display for PrintedPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(out)
    }
}

impl Serialize for PrintedPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The path is not UTF-8, so that JSON cannot contain it.
#[derive(Debug, thiserror::Error)]
#[error("the path {} is not UTF-8, and QEMU takes it only in JSON: choose another directory", .0.display())]
pub struct NotUtf8(PathBuf);

/// The path as a string for an argument of QEMU in the JSON form, which must name the file exactly.
pub fn in_json(path: &Path) -> Result<&str, NotUtf8> {
    path.to_str().ok_or_else(|| NotUtf8(path.to_owned()))
}

/// `before`, `path` and `after` as one of QEMU's comma-separated arguments. A comma in the path is doubled.
pub fn in_option(before: &str, path: &Path, after: &str) -> OsString {
    let mut bytes = before.as_bytes().to_owned();
    for byte in path.as_os_str().as_bytes() {
        bytes.push(*byte);
        if *byte == b',' {
            bytes.push(b',');
        }
    }
    bytes.extend_from_slice(after.as_bytes());
    OsString::from_vec(bytes)
}

/// `name=path`, without escapes.
pub fn assigned(name: &str, path: &Path) -> OsString {
    [OsStr::new(name), "=".as_ref(), path.as_os_str()].into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bad() -> PathBuf {
        OsStr::from_bytes(b"/bad\xff,x").into()
    }

    #[test]
    fn a_path_that_is_not_utf8_is_printed_with_replacements() {
        let path = PrintedPath::from(bad());
        assert_eq!(path.to_string(), "/bad\u{fffd},x");
        assert_eq!(serde_json::json!({ "log": path }).to_string(), "{\"log\":\"/bad\u{fffd},x\"}");
        assert_eq!(*path, *bad());
    }

    #[test]
    fn json_arguments_are_exact_or_refused() {
        assert_eq!(in_json(Path::new("/a,b")).unwrap(), "/a,b");
        let error = in_json(&bad()).unwrap_err().to_string();
        assert!(error.contains("/bad\u{fffd},x is not UTF-8") && !error.contains('\n'), "{error}");
    }

    #[test]
    fn options_have_the_bytes_of_the_path_with_commas_doubled() {
        assert_eq!(in_option("file,path=", &bad(), ",id=x").as_bytes(), b"file,path=/bad\xff,,x,id=x");
        assert_eq!(assigned("Dir::Etc", &bad()).as_bytes(), b"Dir::Etc=/bad\xff,x");
    }
}
