// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic status`: the current state of a served card.

use std::path::PathBuf;

use anyhow::Result;
use arctic_gpu::card::status::Status;
use serde_json::value::RawValue;

use super::stdout;
use crate::operator::{Connection, Request};
use crate::run_dir::find_operator_socket;

/// Show the state of a card served by `arctic serve`: its functions, their resources and their use of the host.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    arctic status /tmp/card\n  \
    arctic status /tmp/card --json | jq '.functions[] | select(.connected)'")]
pub struct StatusArgs {
    /// The card's directory (`arctic serve --dir`), or its operator.sock
    #[arg(value_name = "DIR|SOCKET")]
    card: PathBuf,
    /// Print the JSON document
    #[arg(long)]
    json: bool,
}

/// Requests the status of the card and prints it.
pub fn run(arguments: &StatusArgs) -> Result<()> {
    let path = find_operator_socket(&arguments.card);
    let failed = |failure| super::failure(&path, &failure);
    let mut connection = Connection::open(&path).map_err(|error| failed(error.into()))?;
    if arguments.json {
        let document: Box<RawValue> = connection.request(&Request::Status {}).map_err(failed)?;
        return Ok(stdout::line(document)?);
    }
    let status: Status = connection.request(&Request::Status {}).map_err(failed)?;
    Ok(stdout::print(status)?)
}
