// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `afuc debug`

use std::collections::VecDeque;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use arctic_afuc::debug::{Debugger, Request};
use arctic_afuc::machine::{Machine, Stop};
use arctic_afuc::replay::{Replay, ReplayError};

use super::run::{Input, explain};
use super::{Result, print};

/// Execute a command-stream trace under a debugger.
///
/// The machine is stopped before the first packet. Commands come from a script or from standard input; `help` lists them.
/// After a fault, and at the end of the trace, the machine can still be looked at. Exit code 3: there was a fault.
#[derive(clap::Args)]
#[command(after_help = "Example: printf 'break packet CP_MEM_WRITE\\ncontinue\\ndump gpr\\n' | \\
         afuc debug --firmware open --rd trace.rd.gz")]
pub struct DebugArgs {
    #[command(flatten)]
    input: Input,
    /// A file with a command on each line; `#` begins a comment. Each command is printed before its output.
    #[arg(long)]
    script: Option<PathBuf>,
}

/// Where commands come from.
struct Commands {
    script: Option<VecDeque<String>>,
    is_terminal: bool,
}

impl Commands {
    /// The next line; `None` at the end.
    fn next(&mut self) -> Result<Option<String>> {
        if let Some(script) = &mut self.script {
            let line = script.pop_front();
            line.iter().try_for_each(|line| print(&format!("> {line}\n")))?;
            return Ok(line);
        }
        if self.is_terminal {
            print("> ")?;
            io::stdout().flush()?;
        }
        let mut line = String::new();
        Ok((io::stdin().lock().read_line(&mut line)? != 0).then_some(line))
    }
}

/// Executes commands until one lets the machine run. False at the end of the commands, or after `quit`.
fn run_commands(debugger: &mut Debugger, commands: &mut Commands, machine: &mut Machine) -> Result<bool> {
    loop {
        print(&std::mem::take(&mut debugger.output))?;
        let Some(line) = commands.next()? else { return Ok(false) };
        match debugger.command(machine, &line) {
            Request::Command => {}
            Request::Run => return Ok(true),
            Request::Quit => return Ok(false),
        }
    }
}

pub fn run(arguments: &DebugArgs) -> Result<ExitCode> {
    let Some((firmware, records)) = arguments.input.open()? else { return Ok(ExitCode::FAILURE) };
    let script = arguments.script.as_ref().map(|path| super::read(path)).transpose()?;
    let script = script.map(|bytes| String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect());
    let mut commands = Commands { script, is_terminal: io::stdin().is_terminal() };
    let mut replay = Replay::new(&firmware.image, &arguments.input.options(false, true))?;
    let mut debugger = Debugger::new(firmware.symbols.clone());
    let mut error = None;
    let result = records.iter().try_for_each(|record| {
        replay.record(record, &mut |machine| {
            loop {
                if debugger.is_stopped() {
                    match run_commands(&mut debugger, &mut commands, machine) {
                        Ok(true) => {}
                        Ok(false) => return Stop::Budget,
                        Err(cause) => {
                            error = Some(cause);
                            return Stop::Budget;
                        }
                    }
                }
                if let Some(stop) = debugger.run(machine) {
                    return stop;
                }
            }
        })
    });
    if let Some(error) = error {
        return Err(error);
    }
    print(&std::mem::take(&mut debugger.output))?;
    let code = match result {
        Err(ReplayError::Stopped) => return Ok(ExitCode::SUCCESS),
        Err(ReplayError::Fault(fault)) => {
            print(&format!("{}\n", explain(&firmware, &replay.machine, &fault)))?;
            ExitCode::from(super::run::FAULT)
        }
        Err(other) => return Err(other.into()),
        Ok(()) => {
            print("idle, at the end of the trace\n")?;
            ExitCode::SUCCESS
        }
    };
    debugger.interrupt();
    while run_commands(&mut debugger, &mut commands, &mut replay.machine)? {
        print("error: there is nothing left to execute\n")?;
        debugger.interrupt();
    }
    Ok(code)
}
