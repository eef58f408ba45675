// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic man`: generates manual pages from the definition of the command line.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Arg, Command, CommandFactory};
use clap_mangen::Man;
use roff::{Inline, Roff, bold, italic, line_break, roman};

use super::{EXIT_STATUS, stdout};

/// Write the manual pages: arctic(1), and one page for each command, like arctic-boot(1).
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    arctic man ~/.local/share/man/man1\n  \
    arctic man | man -l -")]
pub struct ManArgs {
    /// Directory for the pages, created if it does not exist; without it, arctic(1) is printed
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Environment variables, with the commands that read them; all commands if there are none.
const ENVIRONMENT: [(&str, &[&str], &str); 6] = [
    (
        "ARCTIC_CACHE",
        GUESTS,
        "Directory for downloaded packages, images and logs; the default is $XDG_CACHE_HOME/arctic, else ~/.cache/arctic.",
    ),
    (
        "ARCTIC_DEBIAN_MIRROR",
        GUESTS,
        "URL of the Debian mirror or snapshot; the default is that of the host's apt sources.",
    ),
    (
        "ARCTIC_DEBIAN_OUTDATED",
        GUESTS,
        "If accept, the newest packages of a mirror are taken although its lists have expired.",
    ),
    (
        "ARCTIC_DEBIAN_KEYRING",
        GUESTS,
        "The keyring that verifies the mirror's signatures; the default is Debian's archive keyring.",
    ),
    ("XDG_CACHE_HOME", GUESTS, "See ARCTIC_CACHE."),
    (
        "RUST_LOG",
        &[],
        "What is logged on stderr: warn (the default), info, or arctic_gpu=trace for every access to a card.",
    ),
];
/// The files, with the commands that use them.
const FILES: [(&str, &[&str], &str); 6] = [
    (
        "/usr/share/doc/arctic",
        &[],
        "In a Debian package: the documents that texts name as docs/NAME.md, card files (configs/) and own-guest.sh \
         (dist/), as in the source tree.",
    ),
    ("~/.cache/arctic/parts", GUESTS, "Downloaded components, a directory each."),
    ("~/.cache/arctic/runs", GUESTS, "Logs of the last runs, a directory each."),
    ("DIR/pf.sock, DIR/vf1.sock ...", &["serve"], "The sockets of the functions, for VMMs."),
    (
        "DIR/operator/operator.sock",
        &["serve", "status", "top", "inspect", "trace", "inject", "vf"],
        "The socket of the operator.",
    ),
    (
        "DIR/report.json",
        &["serve"],
        "Written at the end: trapped accesses, registers that are not modelled, skipped commands.",
    ),
];
/// The commands that boot guests.
const GUESTS: &[&str] = &["boot", "igt"];

/// Writes all pages into the directory, or prints arctic(1).
pub fn run(arguments: &ManArgs) -> Result<()> {
    match &arguments.dir {
        Some(dir) => write(dir).with_context(|| format!("manual pages cannot be written to {}", dir.display())),
        None => Ok(stdout::print(String::from_utf8_lossy(&page(program())?))?),
    }
}

/// The command line without `help`, which has no page.
fn program() -> Command {
    let mut program = super::Arguments::command().disable_help_subcommand(true);
    program.build();
    program
}

fn write(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir)?;
    let program = program();
    for command in program.get_subcommands().filter(|command| !command.is_hide_set()).chain([&program]) {
        let name = Man::new(command.clone()).get_filename();
        fs::write(dir.join(name), page(command.clone())?)?;
    }
    Ok(())
}

/// Returns the page of the program or of a command.
fn page(command: Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    // Examples have a section of their own.
    let man = Man::new(command.clone()).source(format!("arctic {}", super::VERSION));
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    synopsis(&command).to_writer(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    further(&command).to_writer(&mut page)?;
    man.render_version_section(&mut page)?;
    Ok(page)
}

/// SYNOPSIS, with the values of options.
fn synopsis(command: &Command) -> Roff {
    let mut line = vec![bold(command.get_bin_name().unwrap_or_else(|| command.get_name()))];
    let shown = |argument: &&Arg| !argument.is_hide_set();
    let options = command.get_opts().chain(command.get_arguments().filter(|argument| is_flag(argument)));
    for argument in options.filter(shown) {
        debug_assert!(argument.get_long().is_some(), "options have long names");
        let mut words = vec![bold(format!("--{}", argument.get_long().unwrap_or_default()))];
        if argument.get_action().takes_values() {
            let optional = argument.get_num_args().is_some_and(|count| count.min_values() == 0);
            words.extend([roman(if optional { " [" } else { " " }), value(argument)]);
            words.extend(optional.then(|| roman("]")));
        }
        push(&mut line, argument.is_required_set(), words);
    }
    for argument in command.get_positionals().filter(shown) {
        let several = argument.get_num_args().is_some_and(|count| count.max_values() > 1);
        push(&mut line, argument.is_required_set(), vec![value(argument), roman(if several { " ..." } else { "" })]);
    }
    if command.has_subcommands() {
        line.extend([roman(" "), italic("COMMAND"), roman(" ...")]);
    }
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]).text(line);
    roff
}

/// Whether the argument is an option without a value, other than `--help` and `--version`.
fn is_flag(argument: &Arg) -> bool {
    let named = argument.get_long().is_some_and(|long| !["help", "version"].contains(&long));
    named && !argument.get_action().takes_values()
}

fn value(argument: &Arg) -> Inline {
    debug_assert!(argument.get_value_names().is_some(), "values have names");
    let names = argument.get_value_names().unwrap_or_default();
    italic(names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" "))
}

/// Appends an argument, in brackets unless it is required.
fn push(line: &mut Vec<Inline>, required: bool, words: Vec<Inline>) {
    line.push(roman(if required { " " } else { " [" }));
    line.extend(words);
    line.extend((!required).then(|| roman("]")));
}

/// The sections after the options: EXIT STATUS, ENVIRONMENT, FILES, EXAMPLES, SEE ALSO.
fn further(command: &Command) -> Roff {
    let name = command.get_name();
    let all = command.has_subcommands();
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    for (status, commands, meaning) in EXIT_STATUS {
        if all || commands.is_empty() || commands.contains(&name) {
            item(&mut roff, &status.to_string(), meaning);
        }
    }
    for (heading, table) in [("ENVIRONMENT", &ENVIRONMENT[..]), ("FILES", &FILES[..])] {
        let mut rows =
            table.iter().filter(|(_, commands, _)| all || commands.is_empty() || commands.contains(&name)).peekable();
        if rows.peek().is_some() {
            roff.control("SH", [heading]);
        }
        rows.for_each(|(what, _, meaning)| item(&mut roff, what, meaning));
    }
    // Of arctic(1), the text has the exit statuses.
    let text = command.get_after_long_help().or(command.get_after_help()).filter(|_| !all);
    let text = text.map(ToString::to_string).unwrap_or_default();
    let (notes, examples) = text.split_at(text.find("Example").unwrap_or(text.len()));
    let examples = examples.split_once(':').map_or("", |(_, examples)| examples);
    for (heading, text) in [("NOTES", notes), ("EXAMPLES", examples)] {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
        if lines.peek().is_some() {
            roff.control("SH", [heading]);
        }
        for line in lines {
            roff.text([roman(line), line_break()]);
        }
    }
    roff.control("SH", ["SEE ALSO"]);
    let pages = super::Arguments::command();
    let pages = pages.get_subcommands().filter(|page| !page.is_hide_set() && page.get_name() != name);
    let pages: Vec<String> = pages.map(|page| format!("arctic-{}(1)", page.get_name())).collect();
    let program = (!all).then(|| "arctic(1)".to_owned());
    roff.text([roman(program.into_iter().chain(pages).collect::<Vec<_>>().join(", "))]);
    roff
}

/// A paragraph with a tag.
fn item(roff: &mut Roff, tag: &str, text: &str) {
    roff.control("TP", []).text([bold(tag)]).text([roman(text)]);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn manual_pages_are_one_per_command() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("man1");
        write(&dir).unwrap();
        let program = program();
        let commands = program.get_subcommands().filter(|command| !command.is_hide_set());
        let expected = commands.map(|command| format!("arctic-{}.1", command.get_name()));
        let expected: BTreeSet<String> = expected.chain(["arctic.1".into()]).collect();
        let pages = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert_eq!(pages.collect::<BTreeSet<_>>(), expected);
        assert_eq!(fs::read(dir.join("arctic.1")).unwrap(), page(program).unwrap());
        let page = fs::read_to_string(dir.join("arctic-serve.1")).unwrap();
        assert!(page.contains("socket\\-group"), "{page}");
    }

    /// Each page has the usual sections; rows of a command are on its page and on arctic(1) only.
    #[test]
    fn pages_have_the_usual_sections() {
        let program = program();
        let text = |name: &str| {
            let command = program.find_subcommand(name).unwrap_or(&program);
            String::from_utf8(page(command.clone()).unwrap()).unwrap()
        };
        for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
            let page = text(command.get_name());
            for section in [
                "NAME",
                "SYNOPSIS",
                "DESCRIPTION",
                "\"EXIT STATUS\"",
                "ENVIRONMENT",
                "EXAMPLES",
                "\"SEE ALSO\"",
                "VERSION",
            ] {
                assert!(page.contains(&format!(".SH {section}\n")), "{section}: {page}");
            }
            assert!(page.contains("arctic(1)"), "{page}");
            let title = page.lines().find(|line| line.starts_with(".TH ")).unwrap();
            assert!(title.contains(&format!("\"arctic {}\"", super::super::VERSION)), "{title}");
        }
        let (boot, status, arctic) = (text("boot"), text("status"), text("arctic"));
        for (row, on_boot, on_status) in [
            ("ARCTIC_CACHE", true, false),
            ("125", true, false),
            ("operator.sock", false, true),
            ("RUST_LOG", true, true),
        ] {
            assert_eq!((boot.contains(row), status.contains(row)), (on_boot, on_status), "{row}");
            assert!(arctic.contains(row), "{row}");
        }
        assert!(boot.contains("\\-\\-card\\fR \\fIFILE|NAME\\fR]"), "{boot}");
    }
}
