// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic status`: the current state of a served card.

mod table;

use std::path::{Path, PathBuf};

use anyhow::Result;
use arctic_gpu::card::status::Status;
use serde_json::Value;

use self::table::Table;
use super::layout;
use super::quantity::quantity;
use super::watch::print;
use crate::operator::{Connection, Failure, Request};

/// Show the state of a card served by `arctic serve`, or of that of `arctic boot`: its functions, their resources and
/// their use of the host.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    arctic status\n  \
    arctic status /tmp/card\n  \
    arctic status /tmp/card --watch 5\n  \
    arctic status /tmp/card --json | jq '.functions[] | select(.connected)'")]
pub struct StatusArgs {
    /// The card's directory (`arctic serve --dir`), or its operator.sock; the default is the only card of this user
    #[arg(value_name = "DIR|SOCKET")]
    card: Option<PathBuf>,
    /// Show the state again every SECONDS (default 2), until Ctrl-C or the end of the card; on a terminal in place of the
    /// previous one
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2",
        value_parser = quantity::<u64>("seconds", 1..=86_400))]
    watch: Option<u64>,
    /// Print the JSON document, with --watch one per line
    #[arg(long)]
    json: bool,
}

/// Version of the JSON document: raised if a member changes its meaning or is removed.
const SCHEMA: u32 = 1;

/// Requests the status of the card and prints it, once or until a signal arrives.
pub fn run(arguments: &StatusArgs) -> Result<()> {
    let path = super::operator_socket(arguments.card.as_deref())?;
    print(&path, arguments.watch, arguments.json, || text(&path, arguments.json))
}

/// Returns the status as text that ends with a newline. Each request has a connection of its own: the card closes one
/// that is silent for some seconds.
fn text(path: &Path, json: bool) -> Result<String, Failure> {
    let mut connection = Connection::open(path)?;
    Ok(if json {
        format!("{}\n", document(connection.request::<Value>(&Request::Status {})?))
    } else {
        let status = connection.request::<Status>(&Request::Status {})?;
        Table { status: &status, terminal: layout::columns() }.to_string()
    })
}

/// Returns the document that is printed, from the card's answer. Members that this program does not know stay as they are.
/// A VF that is absent has no power state.
fn document(mut answer: Value) -> Value {
    for function in answer.get_mut("functions").and_then(Value::as_array_mut).into_iter().flatten() {
        if function["enabled"] == false {
            function["power_state"] = Value::Null;
        }
    }
    if let Some(members) = answer.as_object_mut() {
        members.insert("schema".into(), SCHEMA.into());
    }
    answer
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_absent_vf_has_no_power_state_in_the_document() {
        let answer = json!({ "functions": [
            { "function": 0, "enabled": true, "power_state": "D3hot" },
            { "function": 1, "enabled": false, "power_state": "D0" },
        ], "new": 5 });
        let document = document(answer);
        assert_eq!(document["functions"][0]["power_state"], "D3hot");
        assert_eq!(document["functions"][1]["power_state"], Value::Null);
        assert_eq!((&document["schema"], &document["new"]), (&json!(1), &json!(5)));
    }
}
