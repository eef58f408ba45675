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
    with_paths(shell, &String::from_utf8_lossy(&script))
}

/// Adds the completion of the paths of `arctic inspect`, for which the running card is asked.
fn with_paths(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => format!("{script}{BASH_PATHS}"),
        Shell::Fish => format!("{script}{FISH_PATHS}"),
        // The operand of the generated script gets a function instead of file names.
        Shell::Zsh => format!("{ZSH_PATHS}{}", script.replace(ZSH_OPERAND.0, ZSH_OPERAND.1)),
        _ => script.to_owned(),
    }
}

const BASH_PATHS: &str = r#"
_arctic_with_paths() {
    if [[ ${COMP_WORDS[1]} == inspect && $COMP_CWORD -gt 1 && $2 != -* ]]; then
        local card=()
        [[ $COMP_CWORD -gt 2 && -e ${COMP_WORDS[2]} ]] && card=("${COMP_WORDS[2]}")
        COMPREPLY=($(arctic inspect "${card[@]}" --complete "$2" 2>/dev/null))
        if [[ ${#COMPREPLY[@]} -gt 0 ]]; then
            compopt -o nospace
            return
        fi
    fi
    _arctic "$@"
}
complete -F _arctic_with_paths -o bashdefault -o default arctic
"#;

const FISH_PATHS: &str = r#"
complete -c arctic -n "__fish_seen_subcommand_from inspect" -a "(arctic inspect --complete (commandline -ct) 2>/dev/null)"
"#;

const ZSH_PATHS: &str = r#"#compdef arctic

_arctic_paths() {
    local -a paths
    paths=(${(f)"$(arctic inspect --complete "$PREFIX" 2>/dev/null)"})
    compadd -S '' -a paths || _files
}

"#;

const ZSH_OPERAND: (&str, &str) = (
    "'::path -- Names that lead to a part of the state, separated by /:_default'",
    "'::path -- Names that lead to a part of the state, separated by /:_arctic_paths'",
);

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

    /// Scripts complete the paths of `inspect` by the running card.
    #[test]
    fn scripts_complete_paths_by_the_running_card() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell);
            assert!(
                script.contains("inspect --complete") || script.contains("inspect \"${card[@]}\" --complete"),
                "{shell}"
            );
        }
        assert!(script(Shell::Zsh).contains(ZSH_OPERAND.1));
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
