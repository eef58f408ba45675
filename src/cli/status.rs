//! `arctic status`: what a served card is doing.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};

use super::stdout;
use crate::card::status::Status;
use crate::run_dir::find_socket;
use crate::status_socket;

/// Tell what a card is doing that `arctic serve` serves: its functions, their shares, what they cost.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    arctic status /tmp/card\n  \
    arctic status /tmp/card --json | jq '.functions[] | select(.connected)'")]
pub struct Arguments {
    /// The card's folder (`arctic serve --dir`), or its status.sock
    #[arg(value_name = "DIR|SOCKET")]
    card: PathBuf,
    /// Print the JSON document
    #[arg(long)]
    json: bool,
}

/// Asks the card and prints what it says.
pub fn run(arguments: &Arguments) -> Result<()> {
    let path = find_socket(&arguments.card, status_socket::NAME);
    let document = status_socket::ask(&path).map_err(|error| refusal(&path, &error))?;
    if arguments.json {
        return Ok(stdout::print(document)?);
    }
    let status: Status = serde_json::from_str(&document)
        .with_context(|| format!("{} answers with no status of a card", path.display()))?;
    Ok(stdout::print(status)?)
}

fn refusal(path: &Path, error: &std::io::Error) -> anyhow::Error {
    let path = path.display();
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => anyhow!("no card is being served at {path}"),
        _ => anyhow!("{path} does not answer: {error}"),
    }
}
