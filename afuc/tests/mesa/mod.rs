// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Files of Debian's source package of Mesa (MIT), fetched once with apt and kept in the cache.
//!
//! The directory is `$ARCTIC_CACHE`, or `~/.cache/arctic`, with `afuc/` in it. apt verifies the archive's signature;
//! each file is verified again by its SHA-256 (AFC-077).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
const PACKAGE: &str = "mesa=25.0.7-2+deb13u1";
const ARCHIVE: &str = "mesa_25.0.7.orig.tar.xz";
const FOLDER: &str = "mesa-25.0.7/src/freedreno/.gitlab-ci";

/// File and SHA-256 (AFC-077).
const FILES: [(&str, &str); 10] = [
    ("reference/afuc_test.fw", "62d796ca1853c10346e1654e22fec5ffdf0b0574d329dbb84b4ca6dca2d6e44b"),
    ("reference/afuc_test.asm", "2b3b8a16f8306f8c491dac024ff26c133523d38d2f60a0363555a94ff7fd14fa"),
    ("reference/afuc_test_a7xx.fw", "495815aa3de7705d33f3b62cca3d6a4dde50530b3b90fb3f951b310bee825030"),
    ("reference/afuc_test_a7xx.asm", "b22e0792ce70032eb36f077928b806c13dfbfd4f1f3ad04bd6ba388fec6b2c5e"),
    ("traces/afuc_test.asm", "b73b4d272368d097bb01590b04466b44fd2fcb9b61265b9650a9a9e7e404ec07"),
    ("traces/afuc_test_a7xx.asm", "12ced4661b5733ebed147f0515ffae347b2d44f19634c3024a737a0cb50d8ca6"),
    ("traces/shadow.rd.gz", "c8c03036982b38e828b143f6b6534acf4f6030b3d6286882f2c55f6b8b01e53a"),
    ("traces/fd-clouds.rd.gz", "86071935fc8deb9deb4fe0eecfcd7819b2fd4b9eefd40e09b9704542878245a5"),
    (
        "traces/dEQP-VK.draw.indirect_draw.indexed.indirect_draw_count.triangle_list.rd.gz",
        "b18da24c8d9fd79a9f2ecda0691ab5c7070a97cb83087855734916f293c6121c",
    ),
    ("traces/compute-a540.rd.gz", "d5c668af3249267a4c84195d8f5c65af6da844d0e902436b9bee67842432854f"),
];

fn cache() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").expect("HOME")).join(".cache/arctic");
    std::env::var_os("ARCTIC_CACHE").map_or_else(home, PathBuf::from).join("afuc")
}

fn run(program: &str, directory: &Path, arguments: &[&str]) {
    let status = Command::new(program).current_dir(directory).args(arguments).status();
    assert!(status.expect(program).success(), "{program} {arguments:?}");
}

/// Debian's mirror: `$ARCTIC_DEBIAN_MIRROR`, or the first URI of the host's apt sources with a path `/debian`.
fn mirror() -> String {
    if let Ok(uri) = std::env::var("ARCTIC_DEBIAN_MIRROR") {
        return uri;
    }
    let parts = fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().map(|entry| entry.unwrap().path());
    let files = parts.chain([PathBuf::from("/etc/apt/sources.list")]);
    let texts: Vec<String> = files.filter_map(|path| fs::read_to_string(path).ok()).collect();
    let mut uris = texts.iter().flat_map(|text| text.split_whitespace());
    let uri = uris.find(|word| word.contains("://") && word.trim_end_matches('/').ends_with("/debian"));
    uri.expect("the apt sources have no Debian mirror: set ARCTIC_DEBIAN_MIRROR to the URI of one").to_owned()
}

/// Fetches the package and unpacks the files that the tests use.
fn fetch(target: &Path) {
    let work = target.with_extension(format!("fetch{}", std::process::id()));
    for directory in ["parts", "lists/partial", "archives/partial"] {
        fs::create_dir_all(work.join(directory)).unwrap();
    }
    let sources =
        format!("Types: deb-src\nURIs: {}\nSuites: trixie\nComponents: main\nSigned-By: {KEYRING}\n", mirror());
    fs::write(work.join("parts/mesa.sources"), sources).unwrap();
    let option = |name: &str, value: &str| format!("{name}={}", work.join(value).display());
    let options = [
        "Dir::Etc::SourceList=/dev/null".to_owned(),
        option("Dir::Etc::SourceParts", "parts"),
        option("Dir::State::Lists", "lists"),
        option("Dir::Cache", ""),
        "APT::Sandbox::User=root".to_owned(),
    ];
    let mut arguments: Vec<&str> = options.iter().flat_map(|option| ["-o", option]).collect();
    let common = arguments.len();
    eprintln!("fetching {PACKAGE} (47 MB)");
    arguments.push("update");
    run("apt-get", &work, &arguments);
    arguments.truncate(common);
    arguments.extend(["source", "--download-only", PACKAGE]);
    run("apt-get", &work, &arguments);
    run("tar", &work, &["-xf", ARCHIVE, FOLDER]);
    // The last step, so that the directory is complete if it exists.
    if let Err(error) = fs::rename(work.join(FOLDER), target) {
        assert!(target.exists(), "{error}");
    }
    fs::remove_dir_all(&work).unwrap();
}

/// Returns a file of [`FILES`].
pub fn file(name: &str) -> Vec<u8> {
    static LOCK: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _lock = LOCK.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let directory = cache().join("mesa-25.0.7");
    if !directory.exists() {
        fs::create_dir_all(cache()).unwrap();
        fetch(&directory);
    }
    let expected = FILES.iter().find(|(file, _)| *file == name).expect(name).1;
    let path = directory.join(name);
    let output = Command::new("sha256sum").arg(&path).output().unwrap();
    assert!(output.stdout.starts_with(expected.as_bytes()), "{name} is not the file of {PACKAGE}");
    fs::read(path).unwrap()
}

/// Returns a text file of [`FILES`].
#[allow(dead_code, reason = "each test target uses a part of the module")]
pub fn text(name: &str) -> String {
    String::from_utf8(file(name)).unwrap()
}
