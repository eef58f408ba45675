// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The command line: commands and error reporting.

mod afuc;
mod beside;
mod boot;
mod card_args;
mod completions;
mod decode;
mod eu;
mod fidelity;
mod firmware;
mod igt;
mod inject;
mod inspect;
mod layout;
mod logging;
mod man;
mod offered;
mod qemu;
mod quantity;
mod registers;
mod serve;
mod status;
mod stdout;
mod top;
mod trace;
mod vf;
mod watch;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::{Parser, Subcommand};

use self::stdout::{Unwritten, complain};
use crate::operator::Failure;
use crate::run_dir::{self, NotFound};

/// The version of the package, with the commit if it was built in a checkout: `0.1.0 (5c5c552)`.
const VERSION: &str = env!("ARCTIC_VERSION");

/// The exit statuses, with the commands that have them, or none for all.
const EXIT_STATUS: [(u8, &[&str], &str); 5] = [
    (0, &[], "success"),
    (1, &[], "failure"),
    (2, &[], "usage error"),
    (125, &["boot", "igt"], "inconclusive: the clocks of guest and host differ by more than 5 %"),
    (130, &["boot", "igt"], "interrupted"),
];

fn after_help() -> String {
    let status: Vec<String> = EXIT_STATUS.iter().map(|(status, _, meaning)| format!("{status} {meaning}")).collect();
    format!(
        "Set RUST_LOG=info for verbose output, RUST_LOG=arctic_gpu=trace to log every access; by default only warnings \
         are logged.\nDocuments (docs/NAME.md) are in the source tree and, of a Debian package, in /usr/share/doc/arctic.\n\
         Exit status: {}.",
        status.join(", ")
    )
}

/// A virtual Intel Data Center GPU Flex 170 for testing GPU drivers and VMMs without the hardware.
#[derive(Parser)]
#[command(name = "arctic", version = VERSION, propagate_version = true, max_term_width = 100)]
#[command(
    after_help = after_help()
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// An error in the command line that is found after parsing, as a sentence; the exit status is 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct UsageError(String);

/// Makes an error one in the command line, with its causes.
fn usage(error: impl Into<anyhow::Error>) -> anyhow::Error {
    UsageError(stdout::sentence(&error.into())).into()
}

/// The path of the operator socket of the card in `dir` (or with this socket); without `dir`, of the only card that this
/// user serves.
fn operator_socket(dir: Option<&Path>) -> Result<PathBuf> {
    run_dir::find_operator_socket(dir).map_err(|error| match error {
        NotFound::None => error.into(),
        NotFound::Several(_) => usage(error),
    })
}

/// The number of the function with this name: pf, or vf1 to vf63.
fn function_number(name: &str) -> Option<u8> {
    match name {
        "pf" => Some(0),
        name => name.strip_prefix("vf")?.parse().ok().filter(|number| (1..=63).contains(number)),
    }
}

/// The error of a command whose request to the card that should listen at `path` failed.
fn failure(path: &Path, failure: &Failure) -> anyhow::Error {
    let path = path.display();
    match failure {
        Failure::Refused(reason) => anyhow!("{reason}"),
        Failure::Socket(_) if is_gone(failure) => anyhow!("no card is being served at {path}"),
        Failure::Socket(error) => anyhow!("{path} does not respond: {error}"),
    }
}

/// Whether no card listens on the socket.
fn is_gone(failure: &Failure) -> bool {
    matches!(failure, Failure::Socket(error)
        if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused))
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
        arctic boot --vfs 2 --passthrough\n  \
        arctic boot --compute --vfs 1\n  \
        arctic boot --compute --share DIR --run '/share/my-opencl-program'\n  \
        arctic boot --vfs 2 --pci-port\n  \
        arctic boot --shell --card small --kernel bzImage --modules out/lib/modules/7.2.0")]
    Boot(Box<boot::Args>),
    #[command(after_help = "Examples:\n  \
        arctic igt --list bat.txt\n  \
        arctic igt --list bat-vf.txt --function vf\n  \
        arctic igt --list sriov.txt --vfs 2 --card small\n  \
        arctic igt --list bat.txt --filter xe_query --filter xe_vm --timeout 60 --json > results.json")]
    Igt(Box<igt::Args>),
    Qemu(Box<qemu::Args>),
    Serve(serve::ServeArgs),
    Status(status::StatusArgs),
    Top(top::TopArgs),
    Inspect(inspect::InspectArgs),
    Trace(trace::TraceArgs),
    Inject(inject::InjectArgs),
    Vf(vf::VfArgs),
    Decode(decode::DecodeArgs),
    Registers(registers::RegistersArgs),
    Firmware(firmware::FirmwareArgs),
    Eu(eu::EuArgs),
    Fidelity(fidelity::FidelityArgs),
    Afuc(afuc::AfucArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    /// Run a program for guests, in a guest of `arctic boot`: workloads, hangs, resets, properties of the card
    ///
    /// All arguments are passed on; `arctic guest --help` lists the programs.
    #[command(
        disable_help_flag = true,
        after_help = "Examples, in a guest:\n  \
        arctic guest info\n  \
        arctic guest clock > /share/clock\n  \
        arctic guest hang --engine ccs0 --dump dump"
    )]
    Guest {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

impl Command {
    /// Whether the command runs a card, in this process or in one that it starts.
    fn runs_a_card(&self) -> bool {
        matches!(self, Command::Boot(_) | Command::Igt(_) | Command::Qemu(_) | Command::Serve(_))
    }
}

/// Runs the program: parses the command line, executes the command, and reports an error as one sentence. A closed
/// output pipe (`| head`) is not an error; the exit status is 0.
pub fn run() -> ExitCode {
    logging::start();
    if let Some(program) = help_of_guest_program(std::env::args_os().skip(1)) {
        return arctic_guest_agent::main(vec![program, "--help".into()]);
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(help_or_mistake) => return clap_text(&help_or_mistake),
    };
    if arguments.command.runs_a_card()
        && let Err(error) = arctic_gpu::scheduling::request_short_slice()
    {
        log::info!("the default time slice applies: {error}");
    }
    let done = |()| ExitCode::SUCCESS;
    let result = match arguments.command {
        Command::Boot(arguments) => boot::run(*arguments),
        Command::Igt(arguments) => igt::run(*arguments),
        Command::Qemu(arguments) => qemu::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments).map(done),
        Command::Status(arguments) => status::run(&arguments).map(done),
        Command::Top(arguments) => top::run(&arguments).map(done),
        Command::Inspect(arguments) => inspect::run(&arguments).map(done),
        Command::Trace(arguments) => trace::run(&arguments).map(done),
        Command::Inject(arguments) => inject::run(&arguments).map(done),
        Command::Vf(arguments) => vf::run(&arguments).map(done),
        Command::Decode(arguments) => decode::run(&arguments).map(done),
        Command::Registers(arguments) => registers::run(&arguments),
        Command::Firmware(arguments) => firmware::run(&arguments).map(done),
        Command::Eu(arguments) => eu::run(&arguments).map(|never| match never {}),
        Command::Fidelity(arguments) => fidelity::run(&arguments).map(done),
        Command::Completions(arguments) => completions::run(&arguments).map(done),
        Command::Man(arguments) => man::run(&arguments).map(done),
        Command::Afuc(arguments) => afuc::run(&arguments).map(|never| match never {}),
        Command::Guest { arguments } => return arctic_guest_agent::main(arguments),
    };
    match result {
        Ok(code) => code,
        Err(error) => match stdout::unwritten(&error) {
            Some(Unwritten::Closed) => ExitCode::SUCCESS,
            _ => {
                complain(format_args!("arctic: {}", stdout::sentence(&error)));
                if error.is::<UsageError>() { ExitCode::from(2) } else { ExitCode::FAILURE }
            }
        },
    }
}

/// The program of `arctic help guest PROGRAM`, of which the command line of `arctic` knows nothing.
fn help_of_guest_program(words: impl Iterator<Item = OsString>) -> Option<OsString> {
    let words: Vec<OsString> = words.collect();
    match &words[..] {
        [help, guest, program] if help == "help" && guest == "guest" => Some(program.clone()),
        _ => None,
    }
}

/// Prints help or version, or the error in the command line.
fn clap_text(text: &clap::Error) -> ExitCode {
    let printed = text.print().and_then(|()| std::io::Write::flush(&mut std::io::stdout())).map_err(Unwritten::from);
    match printed {
        Err(error @ Unwritten::Failed(_)) if !text.use_stderr() => {
            complain(format_args!("arctic: {error}"));
            ExitCode::FAILURE
        }
        _ => ExitCode::from(u8::try_from(text.exit_code()).unwrap_or(2)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use clap::CommandFactory;
    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn commands_that_run_a_card() {
        let runs = |line: &str| Arguments::try_parse_from(line.split(' ')).unwrap().command.runs_a_card();
        assert!(
            ["arctic boot", "arctic igt --list bat.txt", "arctic qemu --disk a", "arctic serve --card small --dir run"]
                .into_iter()
                .all(runs)
        );
        assert!(!["arctic status run", "arctic fidelity"].into_iter().any(runs));
    }

    #[test]
    fn help_of_a_program_for_guests_is_that_of_the_program() {
        let program = |line: &str| help_of_guest_program(line.split(' ').map(OsString::from));
        assert_eq!(program("help guest hang"), Some("hang".into()));
        for line in ["help", "help guest", "guest hang --help", "help boot hang"] {
            assert_eq!(program(line), None, "{line}");
        }
    }

    #[test]
    fn command_line_is_consistent_and_each_command_has_an_example() {
        let mut command = Arguments::command();
        command.clone().debug_assert();
        for sub in command.get_subcommands_mut() {
            let help = sub.render_long_help().to_string();
            assert!(help.contains("Example"), "{}: {help}", sub.get_name());
        }
    }

    /// The help of the commands that take a card names all built-in cards.
    #[test]
    fn the_help_lists_every_built_in_card() {
        let mut command = Arguments::command();
        for name in ["boot", "qemu", "serve"] {
            let help = command.find_subcommand_mut(name).unwrap().render_long_help().to_string();
            let words: Vec<_> = help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').collect();
            for (card, _) in arctic_gpu::card_file::BUILT_IN {
                assert!(words.contains(&card), "{name}: {card}");
            }
        }
    }

    /// Splits a command line of a document into words like a shell, up to a comment, pipe, redirection or `&`. `N` is
    /// replaced by a number, `kvm` by a group that exists; brackets of optional parts are removed.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quoted = false;
        for c in line.chars() {
            match c {
                '\'' => quoted = !quoted,
                '#' | '|' | '&' | '>' if !quoted && words.last().is_some_and(String::is_empty) => break,
                ' ' if !quoted => words.push(String::new()),
                '[' | ']' if !quoted => {}
                _ => words.last_mut().unwrap().push(c),
            }
        }
        words.retain(|word| !word.is_empty());
        let substitute = |word: String| match word.as_str() {
            "N" => "2".into(),
            "kvm" => "root".into(),
            _ => word,
        };
        words.into_iter().map(substitute).collect()
    }

    /// Returns the `arctic` command lines in a text, without the program name: command lines that are whole lines, and
    /// command lines between backticks.
    fn lines(text: &str) -> (Vec<String>, Vec<&str>) {
        fn named(line: &str) -> Option<&str> {
            line.strip_prefix("arctic ").or(line.strip_prefix("cargo run --release -- "))
        }
        let mut lines = text.lines();
        let mut full_lines = Vec::new();
        while let Some(line) = lines.next() {
            let Some(mut line) = named(line.trim()).map(str::to_owned) else { continue };
            // Arguments on further lines, and a quoted one of several lines.
            while (line.ends_with('\\') || line.matches('\'').count() % 2 == 1)
                && let Some(next) = lines.next()
            {
                line.truncate(line.trim_end_matches('\\').len());
                line.extend([" ", next.trim()]);
            }
            full_lines.push(line);
        }
        let marked =
            text.split('`').filter(|part| !part.contains('\n')).filter_map(|part| part.strip_prefix("arctic "));
        (full_lines, marked.collect())
    }

    /// Every `arctic` command line in a document or help text parses. Command lines within a sentence may omit
    /// arguments.
    #[test]
    fn command_lines_in_documents_parse() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
        let files = docs.chain(["README.md", "ARCHITECTURE.md"].map(|name| root.join(name)));
        let mut texts: Vec<String> = files
            .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
            .map(|path| fs::read_to_string(path).unwrap())
            .collect();
        let documents = texts.len();
        texts.extend(Arguments::command().get_subcommands_mut().map(|sub| sub.render_long_help().to_string()));
        let mut found = 0;
        for (n, text) in texts.iter().enumerate() {
            let (full_lines, marked) = lines(text);
            found += full_lines.len();
            let within = marked.iter().map(|line| (*line, true)).filter(|_| n < documents);
            for (line, within) in full_lines.iter().map(|line| (line.as_str(), false)).chain(within) {
                let words = words(line);
                let Err(error) = Arguments::try_parse_from(["arctic".into()].into_iter().chain(words)) else {
                    continue;
                };
                let fine = match error.kind() {
                    ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
                    ErrorKind::MissingRequiredArgument | ErrorKind::InvalidSubcommand => within,
                    _ => false,
                };
                assert!(fine, "{line}: {error}");
            }
        }
        assert!(found > 30, "{found} lines");
    }
}
