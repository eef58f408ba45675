// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic inject`: raises hardware errors of a served card.

use std::fmt;
use std::path::PathBuf;

use anyhow::Result;
use arctic_gpu::hardware_error::HardwareError;

use super::stdout;
use crate::operator::{Connection, Raised, Registers, Request};
use crate::run_dir::find_operator_socket;

/// Raise hardware errors of a card served by `arctic serve`, to test how the PF's driver handles them.
///
/// An error sets its bits in the error registers of its severity (ERR_STAT_GT, DEV_ERR_STAT) and in the primary interrupt
/// register. Correctable and non-fatal errors raise the PF's interrupt. A fatal error does not: it is reported by Fatal
/// Error Detected in PCI Express Device Status, and the driver finds its bits when it serves another interrupt or is
/// loaded. The card continues to work. The bits stay set until the driver clears them, or a reset of the PF.
///
/// Without ERROR, print the error registers, which shows what the driver has not cleared. With --list, print the
/// errors.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    arctic inject --list\n  \
    arctic inject /tmp/card nonfatal-soc\n  \
    arctic inject /tmp/card correctable-l3 fatal-guc\n  \
    arctic inject /tmp/card --json | jq '.registers[] | select(.device != 0)'")]
pub struct InjectArgs {
    /// The card's directory (`arctic serve --dir`), or its operator.sock
    #[arg(value_name = "DIR|SOCKET", required_unless_present = "list")]
    card: Option<PathBuf>,
    /// The errors to raise, in this order
    #[arg(value_name = "ERROR", value_parser = error)]
    errors: Vec<HardwareError>,
    /// Print the errors that the card can report
    #[arg(long, conflicts_with = "card")]
    list: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

fn error(name: &str) -> Result<HardwareError, String> {
    HardwareError::named(name).ok_or_else(|| "no such error: `arctic inject --list` prints the names".into())
}

/// Raises the errors, or prints the errors or the error registers.
pub fn run(arguments: &InjectArgs) -> Result<()> {
    let Some(card) = arguments.card.as_ref().filter(|_| !arguments.list) else {
        return if arguments.json {
            Ok(stdout::line(serde_json::to_string(HardwareError::all())?)?)
        } else {
            Ok(stdout::print(List)?)
        };
    };
    let path = find_operator_socket(card);
    let failed = |failure| super::failure(&path, &failure);
    let mut connection = Connection::open(&path).map_err(|error| failed(error.into()))?;
    if arguments.errors.is_empty() {
        let answer: Registers = connection.request(&Request::ErrorRegisters {}).map_err(failed)?;
        return if arguments.json {
            Ok(stdout::line(serde_json::to_string(&answer)?)?)
        } else {
            Ok(stdout::print(Table(&answer))?)
        };
    }
    let mut raised = Vec::new();
    for error in &arguments.errors {
        let request = Request::Inject { error: error.name.into() };
        let answer: Raised = connection.request(&request).map_err(failed)?;
        if !arguments.json {
            stdout::line(format_args!("raised {}: {}", answer.raised, error.description))?;
        }
        raised.push(answer.raised);
    }
    if arguments.json {
        stdout::line(serde_json::json!({ "raised": raised }))?;
    }
    Ok(())
}

/// The errors, one per line.
struct List;

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        HardwareError::all().iter().try_for_each(|error| writeln!(f, "{:<22} {}", error.name, error.description))
    }
}

/// The error registers, one severity per line.
struct Table<'r>(&'r Registers);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "severity     ERR_STAT_GT  DEV_ERR_STAT  interrupt  PCI Express message")?;
        self.0.registers.iter().try_for_each(|of| {
            let set = |bit| if bit { "set" } else { "-" };
            let (severity, interrupt, message) = (of.severity.name(), set(of.interrupt), set(of.message));
            writeln!(f, "{severity:<12} {:#010x}   {:#010x}    {interrupt:<10} {message}", of.gt, of.device)
        })
    }
}
