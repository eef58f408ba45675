//! The program inside the guest: `arctic guest work` runs batches of its own on every engine, `arctic guest vfs` enables
//! virtual functions and lets each of them work, `arctic guest rounds` repeats a little work while others do theirs,
//! `arctic guest info` shows the card, `arctic guest submit` repeats one empty submission, `arctic guest hang` hangs an engine,
//! `arctic guest flr` resets a virtual function many times.

pub mod batch;
pub mod blt;
pub mod checks;
pub mod device;
mod flr;
mod hang;
mod i915;
mod info;
mod mapping;
pub mod mi_math;
mod picture;
pub mod report;
mod rounds;
mod submit;
mod sysfs;
mod uapi;
mod vfs;
pub mod vm;
mod work;
mod xe;

use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
#[command(name = "arctic guest", about = "Works on the card from inside a guest")]
enum Command {
    /// Run checked batches on every engine; exit 0 only if all of them are right
    Work(work::Work),
    /// Print the engines, memory and firmware version as JSON
    Info(info::Info),
    /// Submit empty batches to one engine, each waited for before the next
    Submit(submit::Submit),
    /// Hang an engine, and copy the dump that the driver makes of it
    Hang(hang::Hang),
    /// Reset a virtual function many times; each time it must answer again and its local memory must read zeros
    Flr(flr::Flr),
    /// Enable virtual functions, wait for their drivers and let each of them store, copy and signal on every engine class
    Vfs(vfs::Vfs),
    /// Store, copy and signal on every engine class over and over until a file appears
    Rounds(rounds::Rounds),
}

/// Runs the command in `args`, which begin behind `arctic guest` (`["work", "--out", "results.json"]`). Exit code 0 if
/// all is well, 1 if a check or the driver failed, 2 for a wrong command line.
pub fn main(args: Vec<String>) -> ExitCode {
    let command = match Command::try_parse_from(std::iter::once("arctic guest".to_owned()).chain(args)) {
        Ok(command) => command,
        Err(error) => {
            // A failing print leaves nothing better to do.
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    let result = match &command {
        Command::Work(work) => work::run(work),
        Command::Info(info) => info::run(info).map(|()| true),
        Command::Submit(submit) => submit::run(submit).map(|()| true),
        Command::Hang(hang) => hang::run(hang).map(|()| true),
        Command::Flr(flr) => flr::run(flr).map(|()| true),
        Command::Vfs(vfs) => vfs::run(vfs),
        Command::Rounds(rounds) => rounds::run(rounds),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("arctic guest: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_read() {
        use clap::CommandFactory;
        Command::command().debug_assert();
        assert_eq!(main(vec!["nothing".into()]), ExitCode::from(2));
        assert_eq!(main(vec!["--help".into()]), ExitCode::SUCCESS);
    }
}
