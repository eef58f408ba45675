// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic inject`: raises hardware errors of a served card.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use arctic_device_model::hardware_error::HardwareError;
use arctic_gpu::card::status::Status;

use super::offered::Offered;
use super::stdout::{self, complain};
use super::{operator_socket, usage};
use crate::operator::{Connection, Errors, Raised, Registers, Request};

/// Raise hardware errors of a card served by `arctic serve`, or of that of `arctic boot`, to test how the PF's driver
/// handles them.
///
/// An error sets its bits in the error registers of its severity (ERR_STAT_GT, DEV_ERR_STAT) and in the primary interrupt
/// register. Correctable and non-fatal errors raise the PF's interrupt. A fatal error does not: it is reported by Fatal
/// Error Detected in PCI Express Device Status, and the driver finds its bits when it serves another interrupt or is
/// loaded. The card continues to work. The bits stay set until the driver clears them, or a reset of the PF.
///
/// The driver of a PF in D3hot receives no interrupt, and xe discards the errors when it resumes the PF; a warning is
/// printed then, and if no guest is connected to the PF. `echo on > /sys/bus/pci/devices/ADDRESS/power/control` in the guest
/// keeps the PF awake.
///
/// Without ERROR, print the error registers, which shows what the driver has not cleared. With --list, print the errors that the card
/// can report; an integrated GPU reports none.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    arctic inject --list\n  \
    arctic inject nonfatal-soc\n  \
    arctic inject /tmp/card nonfatal-soc\n  \
    arctic inject /tmp/card correctable-l3 fatal-guc\n  \
    arctic inject /tmp/card --json | jq '.registers[] | select(.device != 0)'")]
pub struct InjectArgs {
    /// The card's directory (`arctic serve --dir`), or its operator.sock; the default is the only card of this user
    #[arg(value_name = "DIR|SOCKET")]
    card: Option<PathBuf>,
    /// The errors to raise, in this order
    #[arg(value_name = "ERROR", value_parser = Offered::new(name, names), hide_possible_values = true)]
    errors: Vec<String>,
    /// Print the errors that the card can report
    #[arg(long, conflicts_with = "errors")]
    list: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

fn name(name: &str) -> Result<String, String> {
    Ok(name.to_owned())
}

/// The errors of a Flex card, for completions.
fn names() -> Vec<&'static str> {
    HardwareError::all().iter().map(|error| error.name).collect()
}

/// Returns the card and the errors: the first argument is an error if no file can have its name.
fn operands(arguments: &InjectArgs) -> (Option<&Path>, Vec<&str>) {
    let errors: Vec<&str> = arguments.errors.iter().map(String::as_str).collect();
    let first = arguments.card.as_deref();
    match first.and_then(Path::to_str) {
        Some(text) if !arguments.list && !text.contains('/') && !Path::new(text).exists() => {
            (None, [&[text], &errors[..]].concat())
        }
        _ => (first, errors),
    }
}

/// The warning for a card of which the PF cannot report an error now.
fn warning(card: &Status) -> Option<&'static str> {
    let pf = card.functions.iter().find(|function| function.number() == 0)?;
    if !pf.connected {
        return Some(
            "warning: no guest is connected to the PF, so no driver receives the error: its bits stay in the registers until a \
             driver finds and clears them",
        );
    }
    (pf.power_state == "D3hot").then_some(
        "warning: the PF is in D3hot, so its driver will not see the error until it resumes the PF, and xe then discards \
         it: keep the PF awake with `echo on > /sys/bus/pci/devices/ADDRESS/power/control` in its guest",
    )
}

/// Raises the errors, or prints the errors or the error registers.
pub fn run(arguments: &InjectArgs) -> Result<()> {
    let (card, wanted) = operands(arguments);
    let path = operator_socket(card)?;
    let failed = |failure| super::failure(&path, &failure);
    let mut connection = Connection::open(&path).map_err(|error| failed(error.into()))?;
    let known: Errors = connection.request(&Request::Errors {}).map_err(failed)?;
    if known.errors.is_empty() {
        bail!("the card reports no hardware errors: an integrated GPU has no registers for them");
    }
    if arguments.list {
        return if arguments.json {
            Ok(stdout::line(serde_json::to_string(&known.errors)?)?)
        } else {
            Ok(stdout::print(List(&known))?)
        };
    }
    if wanted.is_empty() {
        let answer: Registers = connection.request(&Request::ErrorRegisters {}).map_err(failed)?;
        return if arguments.json {
            Ok(stdout::line(serde_json::to_string(&answer)?)?)
        } else {
            Ok(stdout::print(Table(&answer))?)
        };
    }
    let errors = wanted.iter().map(|wanted| {
        let error = known.errors.iter().find(|error| error.name == *wanted);
        error.ok_or_else(|| {
            usage(anyhow!("the card has no error {wanted}: `arctic inject --list` prints those that it has"))
        })
    });
    let errors: Vec<_> = errors.collect::<Result<_>>()?;
    let status: Status = connection.request(&Request::Status {}).map_err(failed)?;
    if let Some(warning) = warning(&status) {
        complain(format_args!("arctic: {warning}"));
    }
    let mut raised = Vec::new();
    for error in errors {
        let request = Request::Inject { error: error.name.clone() };
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
struct List<'e>(&'e Errors);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.errors.iter().try_for_each(|error| writeln!(f, "{:<22} {}", error.name, error.description))
    }
}

/// The error registers, one severity per line.
struct Table<'r>(&'r Registers);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "severity     ERR_STAT_GT  DEV_ERR_STAT  interrupt  PCI Express message")?;
        self.0.registers.iter().try_for_each(|of| {
            let set = |bit| if bit { "set" } else { "-" };
            let interrupt = set(of.interrupt);
            let message = set(of.message);
            writeln!(f, "{:<12} {:#010x}   {:#010x}    {interrupt:<10} {message}", of.severity.name(), of.gt, of.device)
        })
    }
}
