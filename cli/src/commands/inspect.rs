// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic inspect`: the state of a served card as a tree.

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

use anyhow::Result;
use arctic_device_model::inspect::{Node, VALUE};

use super::quantity::quantity;
use super::stdout;
use super::watch::print;
use crate::operator::{Connection, Failure, Request};

/// Show the state of a card served by `arctic serve`, or of that of `arctic boot`, as a tree: registers with their fields, GGTT
/// and page tables of a function, images of contexts, queues, CT buffers, doorbells, interrupt trees, what the engines execute.
///
/// Without PATH, the names of the parts are shown. PATH is a list of names, separated by /; names are in any case. A part that is
/// shown as ... has parts: name it, or raise the depth. Long tables (ggtt, ppgtt, local_memory, image, config) are shown only if
/// they are named. In ggtt and ppgtt, an address is a name too: engines/rcs0/ppgtt/0x10000 is the walk for this address.
///
/// Reading has no effect on the card. A register of which a read changes something is not shown. The memory of a guest is read as
/// far as the card has it mapped.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    arctic inspect\n  \
    arctic inspect engines\n  \
    arctic inspect /tmp/card engines/rcs0/command\n  \
    arctic inspect registers/rcs0/RING_CTL\n  \
    arctic inspect functions/vf1/guc --depth 3 --watch 1\n  \
    arctic inspect functions/pf/ggtt/0xfee00000\n  \
    arctic inspect --json engines/ccs0 | jq -r .command.text")]
pub struct InspectArgs {
    /// The card's directory (`arctic serve --dir`), or its operator.sock; the default is the only card of this user
    #[arg(value_name = "DIR|SOCKET")]
    card: Option<PathBuf>,
    /// Names that lead to a part of the state, separated by /
    #[arg(value_name = "PATH")]
    path: Option<String>,
    /// Levels of parts that are shown below the part; the default is 0 without PATH, and 1 with it
    #[arg(long, value_name = "LEVELS", value_parser = quantity::<u8>("levels", 0..=32))]
    depth: Option<u8>,
    /// Show it again every SECONDS (default 2), until Ctrl-C or the end of the card; on a terminal in place of the previous one
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2",
        value_parser = quantity::<u64>("seconds", 1..=86_400))]
    watch: Option<u64>,
    /// Print a JSON document, with --watch one per line: numbers with their unit in the name (_ns, _bytes), addresses and registers
    /// as hexadecimal texts, null for parts that are not shown
    #[arg(long)]
    json: bool,
    /// Print the paths that complete this one, one per line: shells use it
    #[arg(long, value_name = "PREFIX", conflicts_with_all = ["path", "watch", "json", "depth"])]
    complete: Option<String>,
}

impl InspectArgs {
    /// The card and the path. A single operand that is no file is a path.
    fn operands(&self) -> (Option<&Path>, &str) {
        match (&self.card, &self.path) {
            (Some(only), None) if self.complete.is_none() && !only.exists() => {
                (None, only.to_str().unwrap_or_default())
            }
            (card, path) => (card.as_deref(), path.as_deref().unwrap_or_default()),
        }
    }
}

/// Requests the part and prints it, once or until a signal arrives.
pub fn run(arguments: &InspectArgs) -> Result<()> {
    let (card, path) = arguments.operands();
    let socket = super::operator_socket(card)?;
    if let Some(prefix) = &arguments.complete {
        let paths = completions(&socket, prefix).map_err(|failure| super::failure(&socket, &failure))?;
        return Ok(stdout::print(paths)?);
    }
    let depth = arguments.depth.unwrap_or(u8::from(!path.is_empty()));
    let request = || request(&socket, path, depth).map(|node| text(path, &node, arguments.json));
    print(&socket, arguments.watch, arguments.json, request)
}

/// Each request has a connection of its own: the card closes one that is silent for some seconds.
fn request(socket: &Path, path: &str, depth: u8) -> Result<Node, Failure> {
    Connection::open(socket)?.request(&Request::Inspect { path: path.to_owned(), depth })
}

/// The part as text that ends with a newline.
fn text(path: &str, node: &Node, json: bool) -> String {
    if json {
        format!("{}\n", serde_json::to_string(node).unwrap_or_default())
    } else {
        Tree { path, node }.to_string()
    }
}

/// The paths that complete `prefix`, a line each. One with parts ends with `/`.
fn completions(socket: &Path, prefix: &str) -> Result<String, Failure> {
    let within = prefix.rfind('/').map_or("", |end| prefix.get(..=end).unwrap_or_default());
    let node = match request(socket, within, 0) {
        // There is no such part, so nothing completes its name.
        Err(Failure::Refused(_)) => return Ok(String::new()),
        answer => answer?,
    };
    let name = prefix.get(within.len()..).unwrap_or_default().to_ascii_lowercase();
    let fits = |part: &&(String, Node)| part.0.to_ascii_lowercase().starts_with(&name) && part.0 != VALUE;
    let line = |(name, node): &(String, Node)| {
        format!("{within}{name}{}\n", if matches!(node, Node::Folded | Node::Parts(_)) { "/" } else { "" })
    };
    Ok(node.parts().iter().filter(fits).map(line).collect())
}

/// A part of the state, as indented lines.
struct Tree<'n> {
    path: &'n str,
    node: &'n Node,
}

/// Indentation of a level.
const INDENT: usize = 2;
/// Least width of the column of names.
const NAMES: usize = 24;

impl Tree<'_> {
    fn lines(f: &mut Formatter<'_>, node: &Node, level: usize) -> fmt::Result {
        let indent = level.saturating_mul(INDENT);
        let names = node.parts().iter().map(|(name, _)| name.len()).filter(|len| *len < 40).max().unwrap_or(0);
        let width = names.max(NAMES.saturating_sub(indent));
        for (name, part) in node.parts().iter().filter(|(name, _)| name != VALUE) {
            let value = part.value().map(|value| shown(name, value));
            match (value, part) {
                (Some(value), _) => writeln!(f, "{:indent$}{name:<width$}  {value}", "")?,
                (None, Node::Folded) => writeln!(f, "{:indent$}{name:<width$}  ...", "")?,
                (None, part) if part.parts().is_empty() => writeln!(f, "{:indent$}{name:<width$}  none", "")?,
                (None, _) => writeln!(f, "{:indent$}{name}", "")?,
            }
            Self::lines(f, part, level.saturating_add(1))?;
        }
        Ok(())
    }
}

impl Display for Tree<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = self.path.rsplit('/').find(|name| !name.is_empty()).unwrap_or_default();
        match self.node.value() {
            Some(value) => writeln!(f, "{}  {}", self.path, shown(name, value))?,
            None if self.path.is_empty() => return Self::lines(f, self.node, 0),
            None => writeln!(f, "{}", self.path)?,
        }
        Self::lines(f, self.node, 1)
    }
}

/// A value, with the unit that its name has.
#[allow(clippy::cast_precision_loss, reason = "a rounded number for display")]
fn shown(name: &str, value: &Node) -> String {
    let scaled = |value: u64, units: &[&str], step: f64| {
        let mut scaled = value as f64;
        let mut units = units.iter();
        let mut unit = units.next().copied().unwrap_or_default();
        while scaled >= step
            && let Some(larger) = units.next()
        {
            scaled /= step;
            unit = larger;
        }
        format!("{value} ({scaled:.4} {unit})").replace(".0000 ", " ")
    };
    match value {
        Node::Folded => "...".into(),
        Node::Flag(flag) => if *flag { "yes" } else { "no" }.into(),
        Node::Number(number) if name.ends_with("_ns") => scaled(*number, &["ns", "us", "ms", "s"], 1000.0),
        Node::Number(number) if name.ends_with("bytes") => {
            scaled(*number, &["bytes", "KiB", "MiB", "GiB", "TiB"], 1024.0)
        }
        Node::Number(number) => number.to_string(),
        Node::Real(number) => number.to_string(),
        Node::Text(text) => text.clone(),
        Node::Parts(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(json: &str) -> Node {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_tree_is_shown_by_indented_lines() {
        let engine = node(
            r#"{"class":"render","command":{"address":"0x1000","name":"MI_NOOP"},"queue":null,
                "CTL":{"value":"0x00001001","enabled":true},"slept_ns":1500000,"local_bytes":1024}"#,
        );
        let expected = "\
engines/rcs0
  class                   render
  command
    address               0x1000
    name                  MI_NOOP
  queue                   ...
  CTL                     0x00001001
    enabled               yes
  slept_ns                1500000 (1.5000 ms)
  local_bytes             1024 (1 KiB)
";
        assert_eq!(Tree { path: "engines/rcs0", node: &engine }.to_string(), expected);
        assert_eq!(Tree { path: "a/slept_ns", node: &Node::Number(5) }.to_string(), "a/slept_ns  5 (5 ns)\n");
        assert_eq!(
            Tree { path: "", node: &node(r#"{"engines":null}"#) }.to_string(),
            format!("{:<24}  ...\n", "engines")
        );
    }

    #[test]
    fn one_operand_is_a_card_or_a_path() {
        let parse = |words: &[&str]| {
            #[derive(clap::Parser)]
            struct Line {
                #[command(flatten)]
                arguments: InspectArgs,
            }
            let words = ["inspect"].iter().chain(words).copied();
            <Line as clap::Parser>::parse_from(words).arguments
        };
        assert_eq!(parse(&["engines/rcs0"]).operands(), (None, "engines/rcs0"));
        assert_eq!(parse(&["/"]).operands(), (Some(Path::new("/")), ""));
        assert_eq!(parse(&["/no/such", "engines"]).operands(), (Some(Path::new("/no/such")), "engines"));
        assert_eq!(parse(&[]).operands(), (None, ""));
    }
}
