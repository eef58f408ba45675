// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Programs of other packages that are commands of `arctic` too.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Error, Result, anyhow};

/// Replaces this process by the program `name` of the package `arctic-NAME`, so that exit status and signals are those of
/// the program. It is executed from the directory of `arctic`, or from PATH if that directory does not have it. Returns only
/// if that fails.
pub fn run(name: &str, arguments: &[OsString]) -> Result<Infallible> {
    let own = std::env::current_exe().with_context(|| format!("cannot run {name} from the directory of arctic"))?;
    Err(execute(name, own.parent().unwrap_or(Path::new("")), arguments))
}

/// Executes the program in this process; returns only the error.
fn execute(name: &str, directory: &Path, arguments: &[OsString]) -> Error {
    let beside = directory.join(name);
    let is_beside = beside.exists();
    let program = if is_beside { beside.as_path() } else { Path::new(name) };
    let error = Command::new(program).args(arguments).exec();
    match (error.kind(), is_beside) {
        (ErrorKind::NotFound, false) => anyhow!(
            "cannot find {name} in {} or in PATH: install the package arctic-{name}, in a clone by `cargo install --path \
             {name} --locked`",
            directory.display()
        ),
        // The kernel reports the same error for a program and for its interpreter.
        (ErrorKind::NotFound, true) => {
            anyhow!("cannot execute {}: its interpreter or loader does not exist", program.display())
        }
        _ => anyhow!("cannot execute {}: {error}", program.display()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const NAME: &str = "program-that-no-path-has";

    #[test]
    fn missing_program_error_names_directory_and_package() {
        let directory = tempfile::tempdir().unwrap();
        let text = execute(NAME, directory.path(), &[]).to_string();
        assert!(
            text.starts_with(&format!("cannot find {NAME} in {} or in PATH: ", directory.path().display())),
            "{text}"
        );
        assert!(text.contains(&format!("install the package arctic-{NAME}, ")), "{text}");
    }

    #[test]
    fn program_that_cannot_be_executed_is_reported_with_the_cause() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join(NAME);
        fs::write(&program, "#!/nonexistent\n").unwrap();
        let text = execute(NAME, directory.path(), &[]).to_string();
        assert_eq!(text, format!("cannot execute {}: Permission denied (os error 13)", program.display()));
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        let text = execute(NAME, directory.path(), &[]).to_string();
        assert_eq!(text, format!("cannot execute {}: its interpreter or loader does not exist", program.display()));
    }
}
