// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the program outside its checkout: its version, and its commands without access to the source tree.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use arctic_test_support::process::skipped;
use arctic_test_support::served::Served;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_arctic");

/// The directory of this package in the checkout.
const PACKAGE: &str = "cli";

fn checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Returns the standard output of a command; `None` if it fails or does not exist.
fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

/// The version is `arctic 0.1.0 (5c5c552)` if built in a checkout, `arctic 0.1.0` if built from sources without git.
#[test]
fn the_version_names_the_commit() {
    let git = || output(Command::new("git").args(["rev-parse", "--short", "HEAD"]).current_dir(checkout()));
    let commit = checkout().join(".git").exists().then(git).flatten();
    let commit = commit.map(|commit| format!(" ({})", commit.trim())).unwrap_or_default();
    let expected = format!("arctic {}{commit}\n", env!("CARGO_PKG_VERSION"));
    for arguments in [&["--version"][..], &["serve", "--version"]] {
        let version = output(Command::new(PROGRAM).args(arguments)).unwrap();
        assert_eq!(version.replace("arctic-serve", "arctic"), expected);
    }
}

/// `cargo install` fails if a feature enables one of a dev-dependency.
#[test]
fn features_do_not_need_dev_dependencies() {
    let manifest: toml::Table =
        fs::read_to_string(checkout().join(PACKAGE).join("Cargo.toml")).unwrap().parse().unwrap();
    let dependencies = manifest["dependencies"].as_table().unwrap();
    let features = manifest["features"].as_table().unwrap();
    for enabled in features.values().flat_map(|enabled| enabled.as_array().unwrap()) {
        let enabled = enabled.as_str().unwrap();
        let name = enabled.strip_prefix("dep:").unwrap_or(enabled).split(['/', '?']).next().unwrap();
        assert!(features.contains_key(name) || dependencies.contains_key(name), "{enabled}");
    }
}

/// The package has the documents that help texts name, at the paths of the source tree, the libraries of a dynamic program as
/// dependencies, and a manual page only of programs that it has.
#[test]
fn the_debian_package_has_what_the_program_names() {
    let tools = ["dpkg-deb", "strip", "objdump"].map(|tool| output(Command::new(tool).arg("--version")));
    if tools.contains(&None) {
        skipped("this host has no dpkg-deb, strip or objdump");
        return;
    }
    let copy = Copy::new();
    let (beside, home) = (copy.home.path().join("eu"), copy.home.path());
    fs::copy("/bin/true", beside).unwrap();
    let mut script = Command::new(checkout().join("dist/deb.sh"));
    script.arg(home.join("arctic")).arg(home);
    // The default compression takes a minute on a busy host.
    let built = script.env("DPKG_DEB_COMPRESSOR_TYPE", "none").output().unwrap();
    let messages = String::from_utf8(built.stderr).unwrap();
    assert!(built.status.success(), "{messages}");
    assert!(messages.contains("linked dynamically") && messages.contains("the package has no afuc"), "{messages}");
    let package = home.join(format!("arctic_{}_amd64.deb", env!("CARGO_PKG_VERSION")));
    let contents = output(Command::new("dpkg-deb").arg("-c").arg(&package)).unwrap();
    let has = |path: &str| contents.lines().any(|line| line.ends_with(&format!(" ./usr/{path}")));
    for path in ["bin/arctic", "bin/eu", "share/man/man1/arctic-eu.1.gz", "share/doc/arctic/README.md"] {
        assert!(has(path), "{path}: {contents}");
    }
    assert!(!has("bin/afuc") && !has("share/man/man1/arctic-afuc.1.gz"), "{contents}");
    let help = ["boot", "qemu", "igt", "trace", "vf", "serve"]
        .map(|command| output(Command::new(PROGRAM).args(["help", command])).unwrap());
    let named = help.iter().flat_map(|text| text.split([' ', '\n', '(', ')', ',', ';', ':']));
    let named: Vec<&str> = named.filter(|word| word.starts_with("docs/") && word.ends_with(".md")).collect();
    assert!(named.len() > 3, "{named:?}");
    for path in named.into_iter().chain(["configs/flex170.toml", "dist/own-guest.sh"]) {
        assert!(has(&format!("share/doc/arctic/{path}")), "{path}: {contents}");
    }
    let depends = output(Command::new("dpkg-deb").arg("-f").arg(&package).arg("Depends")).unwrap();
    assert!(depends.starts_with("libc6 (>= 2."), "{depends}");
}

/// A copy of the program in an otherwise empty directory, which is its home and working directory.
struct Copy {
    home: TempDir,
    /// Command prefix that hides the checkout; empty if the host does not permit user namespaces.
    hiding: Vec<String>,
}

impl Copy {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        // Not with fs::copy: a concurrent fork in another test would inherit the descriptor that is open for writing,
        // and exec would fail with ETXTBSY.
        output(Command::new("cp").arg(PROGRAM).arg(home.path().join("arctic"))).unwrap();
        // Mounts an empty file system over the checkout, in a separate mount namespace.
        let hide = ["unshare", "--map-root-user", "--mount", "sh", "-c", "mount -t tmpfs none \"$0\" && exec \"$@\""];
        let hiding: Vec<String> =
            hide.iter().map(ToString::to_string).chain([checkout().display().to_string()]).collect();
        let seen = output(Command::new(&hiding[0]).args(&hiding[1..]).arg("ls").arg(checkout()));
        let hides = seen.is_some_and(|files| files.is_empty());
        if !hides {
            skipped("this host does not permit user namespaces: the test does not hide the checkout");
        }
        Copy { home, hiding: if hides { hiding } else { Vec::new() } }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let program = self.home.path().join("arctic").display().to_string();
        let words: Vec<&str> = self.hiding.iter().map(String::as_str).chain([program.as_str()]).collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(arguments).current_dir(self.home.path()).stdin(Stdio::null());
        command.env_clear().env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin").env("HOME", self.home.path());
        command
    }
}

/// Commands that need no guest produce the same output as in the checkout.
#[test]
fn commands_work_without_the_checkout() {
    let copy = Copy::new();
    let path = |name: &str| copy.home.path().join(name).display().to_string();
    let (batch, firmware, pages) = (path("batch"), path("firmware"), path("man1"));
    fs::write(&batch, [0, 0, 0, 5].repeat(4)).unwrap();
    for arguments in [
        &["--version"][..],
        &["help"],
        &["fidelity"],
        &["fidelity", "--json"],
        &["fidelity", "--status", "unassessed"],
        &["serve", "--print-capabilities"],
        &["serve", "--print-card", "ivb"],
        &["decode", &batch],
        &["firmware", "--out", &firmware],
        &["completions", "bash"],
        &["man"],
        &["man", &pages],
    ] {
        let outside = output(&mut copy.command(arguments)).unwrap_or_else(|| panic!("{arguments:?} failed"));
        assert_eq!(Some(outside), output(Command::new(PROGRAM).args(arguments)), "{arguments:?}");
    }
}

/// A built-in card is served, `arctic status` prints its state, and SIGTERM ends the server with its report.
#[test]
fn a_card_is_served_without_the_checkout() {
    let copy = Copy::new();
    let dir = copy.home.path().join("card").display().to_string();
    let mut command = copy.command(&["serve", "--card", "small", "--dir", &dir]);
    let server = Served::start(command.stderr(Stdio::null()), |_| true);
    assert!(server.first_line().contains("pf.sock"), "{}", server.first_line());
    assert!(output(&mut copy.command(&["status", &dir])).unwrap().contains("Flex 170, 2 GiB"));
    assert_eq!(server.end(libc::SIGTERM).0, Some(0));
    assert!(Path::new(&dir).join("report.json").is_file());
}

/// A program installed from a clone with `cargo install` boots a guest after the clone has been removed.
#[cfg(feature = "long-tests")]
#[test]
fn an_installed_program_boots_a_guest() {
    let folder = tempfile::tempdir().unwrap();
    let clone = folder.path().join("clone");
    let succeeds = |command: &mut Command| assert!(command.status().unwrap().success(), "{command:?}");
    succeeds(Command::new("git").args(["clone", "--quiet"]).arg(checkout()).arg(&clone));
    let cargo = &mut Command::new(env!("CARGO"));
    succeeds(cargo.args(["install", "--locked", "--path", PACKAGE, "--root"]).arg(folder.path()).current_dir(&clone));
    fs::remove_dir_all(&clone).unwrap();
    succeeds(Command::new(folder.path().join("bin/arctic")).arg("boot").current_dir(folder.path()));
}
