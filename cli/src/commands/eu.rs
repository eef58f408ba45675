// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic eu`: runs the program `eu` of the package `arctic-eu`, which is installed on its own.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

/// Name of the program.
const PROGRAM: &str = "eu";

/// Assemble, disassemble, run and trace kernels of the execution units, by the program `eu` beside this one
///
/// `eu` is in the package arctic-eu: cargo install --path eu
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    arctic eu disasm k.bin --kernel saxpy\n  \
    arctic eu run k.bin --kernel saxpy --global 4096 --local 64 --arg y=zeros:16384 --save y=y.f32")]
pub struct EuArgs {
    /// Command and options of `eu`; `arctic eu --help` prints them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Executes the command; its exit status is that of `eu`.
pub fn run(arguments: &EuArgs) -> Result<ExitCode> {
    let this = std::env::current_exe().context("cannot find this program's directory")?;
    run_beside(&this, &arguments.arguments)
}

/// Runs `eu` in the directory of the program `this`.
fn run_beside(this: &Path, arguments: &[OsString]) -> Result<ExitCode> {
    let program = this.with_file_name(format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX));
    let status = match Command::new(&program).args(arguments).status() {
        Ok(status) => status,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("{} does not exist: install it by `cargo install --path eu`", program.display())
        }
        Err(error) => return Err(error).with_context(|| format!("cannot run {}", program.display())),
    };
    // A signal has no status.
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn program_beside_this_one_gets_the_arguments_and_gives_the_status() {
        let directory = std::env::temp_dir().join(format!("arctic-eu-beside-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let this = directory.join("arctic");
        let error = run_beside(&this, &[]).unwrap_err().to_string();
        assert!(error.ends_with("does not exist: install it by `cargo install --path eu`"), "{error}");
        let program = directory.join("eu");
        fs::write(&program, "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"$(dirname \"$0\")/got\"\nexit 4\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let status = run_beside(&this, &["run".into(), "--help".into()]).unwrap();
        assert_eq!(format!("{status:?}"), format!("{:?}", ExitCode::from(4)));
        assert_eq!(fs::read_to_string(directory.join("got")).unwrap(), "run\n--help\n");
        fs::remove_dir_all(&directory).unwrap();
    }
}
