//! The version of the program.

use std::path::Path;
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_arctic");

fn checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Standard output of a command that succeeds; `None` if it fails or does not exist.
fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

/// `arctic 0.1.0 (5c5c552)` in a checkout, `arctic 0.1.0` from sources without git.
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
