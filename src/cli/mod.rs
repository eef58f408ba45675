//! The command line: what can be asked for, and how an error is told.

mod boot;
mod decode;
mod fidelity;
mod firmware;
mod igt;
mod logging;
mod serve;
mod status;
mod trace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A virtual Intel Data Center GPU Flex 170 for testing GPU drivers and VMMs without the hardware.
#[derive(Parser)]
#[command(version, propagate_version = true, max_term_width = 100)]
#[command(
    after_help = "Set RUST_LOG=info to be told more, RUST_LOG=arctic_gpu=trace to see every access; without it only warnings appear.\n\
    Exit status: 0 all was well, 1 something failed, 2 the command line makes no sense."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(after_help = "Examples:\n  \
        arctic boot\n  \
        arctic boot --run 'cat /sys/kernel/debug/dri/*/name'\n  \
        arctic boot --vfs 7\n  \
        arctic boot --vfs 63 --json > result.json\n  \
        arctic boot --vfs 3 --split\n  \
        arctic boot --vfs 2 --provision config\n  \
        arctic boot --shell --card small --kernel bzImage --modules out/lib/modules/7.2.0")]
    Boot(Box<boot::Args>),
    #[command(after_help = "Examples:\n  \
        arctic igt --list bat.txt\n  \
        arctic igt --list bat-vf.txt --function vf\n  \
        arctic igt --list sriov.txt --vfs 2 --card small\n  \
        arctic igt --list bat.txt --filter xe_query --filter xe_vm --timeout 60 --json > results.json")]
    Igt(Box<igt::Args>),
    Serve(serve::Arguments),
    Status(status::Arguments),
    Trace(trace::Arguments),
    Decode(decode::Arguments),
    Firmware(firmware::Arguments),
    Fidelity(fidelity::Arguments),
    /// The part of the program that runs inside a guest; `arctic boot` starts it there
    #[command(hide = true, disable_help_flag = true, after_help = "Example, in a guest: arctic guest info")]
    Guest {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

/// Runs the program: reads the command line, does what it says, tells an error in one sentence.
pub fn run() -> ExitCode {
    logging::start();
    let done = |()| ExitCode::SUCCESS;
    let result = match Arguments::parse().command {
        Command::Boot(arguments) => boot::run(*arguments),
        Command::Igt(arguments) => igt::run(*arguments),
        Command::Serve(arguments) => serve::run(&arguments).map(done),
        Command::Status(arguments) => status::run(&arguments).map(done),
        Command::Trace(arguments) => trace::run(&arguments).map(done),
        Command::Decode(arguments) => decode::run(&arguments).map(done),
        Command::Firmware(arguments) => firmware::run(&arguments).map(done),
        Command::Fidelity(arguments) => fidelity::run(&arguments).map(done),
        Command::Guest { arguments } => return arctic_guest_tests::guest::main(arguments),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("arctic: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound_and_each_command_has_an_example() {
        let mut command = Arguments::command();
        command.clone().debug_assert();
        for sub in command.get_subcommands_mut() {
            let help = sub.render_long_help().to_string();
            assert!(help.contains("Example"), "{}: {help}", sub.get_name());
        }
    }
}
