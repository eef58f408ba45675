// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic completions`: generates a shell completion script from the definition of the command line.

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

use super::stdout;

/// Print a script that completes the commands and options of this program in a shell.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    arctic completions bash > ~/.local/share/bash-completion/completions/arctic\n  \
    arctic completions fish > ~/.config/fish/completions/arctic.fish\n  \
    arctic completions zsh > ~/.zfunc/_arctic")]
pub struct CompletionsArgs {
    /// The shell that reads the script
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

/// Prints the script.
pub fn run(arguments: &CompletionsArgs) -> Result<()> {
    Ok(stdout::print(script(arguments.shell))?)
}

fn script(shell: Shell) -> String {
    // The generators do not omit hidden commands.
    let program = super::Arguments::command();
    let shown = program.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let mut program = clap::Command::new("arctic").version(super::VERSION).propagate_version(true).subcommands(shown);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, "arctic", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn each_script_names_each_command() {
        let program = super::super::Arguments::command();
        for shell in Shell::value_variants() {
            let script = script(*shell);
            for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
                assert!(script.contains(command.get_name()), "{shell}: {}", command.get_name());
            }
            assert!(script.contains("socket-group"), "{shell}: options of a command");
        }
    }

    /// The values that a user may mean are offered: built-in cards, names of errors and engines. Scripts of fish have
    /// values of options only.
    #[test]
    fn each_script_has_the_values_of_arguments() {
        let options = ["flex170-63vf", "ivb-swizzled", "vecs0", "bookworm"];
        let operands = ["nonfatal-soc", "correctable-l3"];
        for (shell, values) in [
            (Shell::Bash, &[&options[..], &operands].concat()),
            (Shell::Zsh, &[&options[..], &operands].concat()),
            (Shell::Fish, &options.to_vec()),
        ] {
            let script = script(shell);
            for value in values {
                assert!(script.contains(value), "{shell}: {value}");
            }
        }
    }
}
