//! `arctic serve`: the card alone, for a VMM of the user's own.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::card::VirtualCard;
use crate::card_file;
use crate::vfio_user::{Server, Settings};

/// Longest path of a UNIX socket (`sockaddr_un`).
const SOCKET_PATH: usize = 107;

/// Serve a card over vfio-user until Ctrl-C, for a VMM that you start yourself.
///
/// The physical function's socket is DIR/pf.sock. The first lines of the output tell how to connect QEMU to it. At the
/// end, DIR/report.json tells how many accesses were trapped and which registers were touched that the card lacks.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    arctic serve --card flex170 --dir /tmp/card\n  \
    arctic serve --card my-card.toml --dir /tmp/card --json > card.json")]
pub struct Arguments {
    /// Card file, or the name of a built-in one: flex170 (16 GiB) or small (2 GiB)
    #[arg(long, value_name = "FILE|NAME")]
    card: String,
    /// Folder for sockets and the report; it is made if need be
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Print one JSON document instead of text: card, sockets and QEMU's arguments
    #[arg(long)]
    json: bool,
    /// Microseconds that a function's thread polls for the next access before it sleeps; 0 spares the host's cores
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 50, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    spin: u64,
}

/// How a VMM gets at the card.
#[derive(Serialize)]
struct Connection {
    card: String,
    sockets: Sockets,
    qemu: Vec<String>,
}

#[derive(Serialize)]
struct Sockets {
    pf: PathBuf,
}

/// QEMU's arguments, all that differ from a machine without the card. Memory has to be shared, or the card reads zeros;
/// the BARs need more room above 4 GiB than QEMU's CPU and bridge have without being told.
fn qemu_arguments(socket: &Path) -> Vec<String> {
    let socket = serde_json::json!({ "type": "unix", "path": socket });
    let device =
        serde_json::json!({ "driver": "vfio-user-pci", "bus": "pcie.0", "addr": "1.0", "socket": socket }).to_string();
    [
        ["-machine", "q35,memory-backend=ram"],
        ["-object", "memory-backend-memfd,id=ram,size=4G,share=on"],
        ["-m", "4G"],
        ["-cpu", "max,phys-bits=46"],
        ["-global", "q35-pcihost.pci-hole64-size=4T"],
        ["-device", &device],
    ]
    .as_flattened()
    .iter()
    .map(ToString::to_string)
    .collect()
}

/// An argument as a shell needs it.
fn quoted(argument: &str) -> String {
    if argument.chars().all(|c| c.is_ascii_alphanumeric() || "-_=,.:/+".contains(c)) {
        return argument.into();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

impl Connection {
    fn text(&self) -> String {
        let lines: Vec<_> =
            self.qemu.chunks(2).map(|pair| pair.iter().map(|a| quoted(a)).collect::<Vec<_>>().join(" ")).collect();
        format!(
            "{} listens on {}.\nArguments for qemu-system-x86_64 (11.1 or later; the memory size is free):\n  {}\n",
            self.card,
            self.sockets.pf.display(),
            lines.join(" \\\n  ")
        )
    }
}

/// Serves until a signal comes, then writes the report.
pub fn run(arguments: &Arguments) -> Result<()> {
    let profile = card_file::load(&arguments.card)?;
    let name = profile.name.clone();
    // From here on a signal ends the program in order, whenever it comes.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("signals cannot be caught")?;
    let dir = &arguments.dir;
    fs::create_dir_all(dir).with_context(|| format!("folder {} cannot be made", dir.display()))?;
    let dir = dir.canonicalize().with_context(|| format!("folder {} cannot be used", dir.display()))?;

    let card = VirtualCard::new(profile)?;
    let socket = dir.join("pf.sock");
    let settings = Settings { spin: Duration::from_micros(arguments.spin) };
    let server = Server::start(&socket, card.physical_function(), settings).map_err(|error| refusal(&socket, error))?;

    let connection = Connection { card: name, qemu: qemu_arguments(&socket), sockets: Sockets { pf: socket } };
    let text = if arguments.json { format!("{}\n", serde_json::to_string(&connection)?) } else { connection.text() };
    let mut stdout = std::io::stdout().lock();
    // Whoever started the program may not want to read on; that is no reason not to serve.
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    drop(stdout);

    signals.forever().next();
    drop(server);
    let report = card.report();
    let path = dir.join("report.json");
    let json = serde_json::to_string_pretty(&report)? + "\n";
    fs::write(&path, json).with_context(|| format!("{} cannot be written", path.display()))?;
    eprint!("{report}");
    Ok(())
}

fn refusal(socket: &Path, error: std::io::Error) -> anyhow::Error {
    let path = socket.display();
    match error.kind() {
        ErrorKind::AddrInUse => anyhow!("{path} is in use: another card is being served there"),
        ErrorKind::InvalidInput if socket.as_os_str().len() > SOCKET_PATH => {
            anyhow!(
                "{path} is longer than the {SOCKET_PATH} bytes that a socket's path may have: choose a shorter --dir"
            )
        }
        _ => anyhow!("{path} cannot be made: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_survive_the_shell() {
        assert_eq!(quoted("q35,memory-backend=ram"), "q35,memory-backend=ram");
        assert_eq!(quoted(r#"{"a":"it's"}"#), r#"'{"a":"it'\''s"}'"#);
        assert_eq!(quoted("a b"), "'a b'");
    }

    #[test]
    fn qemu_is_told_the_socket_as_json() {
        let arguments = qemu_arguments(Path::new("/tmp/a \"b\"/pf.sock"));
        let device: serde_json::Value = serde_json::from_str(arguments.last().unwrap()).unwrap();
        assert_eq!(device["driver"], "vfio-user-pci");
        assert_eq!(device["socket"]["path"], "/tmp/a \"b\"/pf.sock");
    }
}
