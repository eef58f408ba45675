// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic status`: the current state of a served card.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::stdout;
use crate::run_dir::find_socket;
use crate::status_socket;
use arctic_gpu::card::status::Status;

/// Show the state of a card served by `arctic serve`: its functions, their resources and their use of the host.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    arctic status /tmp/card\n  \
    arctic status /tmp/card --json | jq '.functions[] | select(.connected)'")]
pub struct Arguments {
    /// The card's directory (`arctic serve --dir`), or its status.sock
    #[arg(value_name = "DIR|SOCKET")]
    card: PathBuf,
    /// Print the JSON document
    #[arg(long)]
    json: bool,
}

/// Requests the status of the card and prints it.
pub fn run(arguments: &Arguments) -> Result<()> {
    let path = find_socket(&arguments.card, status_socket::NAME);
    let document = status_socket::ask(&path).map_err(|error| super::no_answer(&path, &error))?;
    if arguments.json {
        return Ok(stdout::print(document)?);
    }
    let status: Status =
        serde_json::from_str(&document).with_context(|| format!("invalid status document from {}", path.display()))?;
    Ok(stdout::print(status)?)
}
