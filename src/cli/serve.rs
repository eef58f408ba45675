//! `arctic serve`: the card alone, for a VMM of the user's own.

mod connection;

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use arctic_device_model::profile::CardProfile;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use self::connection::Connection;
use crate::card::Arrangement;
use crate::card_file;
use crate::status_socket;
use crate::trace_socket::{self, Capture};
use crate::vfio_user::ecam::{Ecam, PciAddress};
use crate::vfio_user::{Served, ServedCard, Server, Settings};

/// Longest path of a UNIX socket (`sockaddr_un`).
const SOCKET_PATH: usize = 107;

/// Serve a card over vfio-user until Ctrl-C, for VMMs that you start yourself.
///
/// Each function has a socket in DIR: pf.sock, and with --vfs N also vf1.sock to vfN.sock. The first lines of the output
/// tell how to connect QEMU to them. `arctic status DIR` tells what the card is doing, `arctic trace DIR` follows it command
/// by command. At the end, DIR/report.json tells
/// how many accesses were trapped and which registers were touched that the card lacks.
///
/// Virtual functions can be arranged in three ways. As it is, they are functions beside the PF in one guest: there, write
/// their number to the PF's sriov_numvfs. With --split, the PF's guest does the same, has only bare faces of the VFs
/// (vf1-face.sock ...), and each VF works in a guest of its own, which is started after that. With --provision config, no
/// guest has the PF: the card file shares out the card, and the VFs are there from the start.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    arctic serve --card flex170 --dir /tmp/card\n  \
    arctic serve --card flex170 --dir /tmp/card --vfs 7\n  \
    arctic serve --card flex170 --dir /tmp/card --vfs 2 --split\n  \
    arctic serve --card flex170-63vf --dir /tmp/card --vfs 63 --provision config --json > card.json")]
pub struct Arguments {
    /// Card file, or the name of a built-in one: flex170 (16 GiB, 31 VFs), flex170-63vf, small (2 GiB)
    #[arg(long, value_name = "FILE|NAME")]
    card: String,
    /// Folder for sockets and the report; it is made if need be
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Virtual functions to serve; with 0 the card has no SR-IOV
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=63))]
    vfs: u8,
    /// Virtual functions work in guests of their own, the PF's guest enables and provisions them
    #[arg(long)]
    split: bool,
    /// Who shares out the card: the PF's driver in its guest, or the card file
    #[arg(long, value_name = "WHO", value_enum, default_value_t = Provisioner::Driver, conflicts_with = "split")]
    provision: Provisioner,
    /// Guest address of the window onto configuration space (ECAM) in the PF's guest, where VFs are in that guest: q35
    /// with SeaBIOS has it at 0xb0000000, with OVMF at 0xe0000000
    #[arg(long, value_name = "ADDR", default_value = "0xb0000000", value_parser = guest_address)]
    ecam: u64,
    /// Address of the PF in its guest; the VFs follow it
    #[arg(long, value_name = "BUS:DEV.FN", default_value = "00:01.0")]
    pf_address: PciAddress,
    /// Print one JSON document instead of text: card, sockets and QEMU's arguments
    #[arg(long)]
    json: bool,
    /// Microseconds that a function's thread polls for the next access before it sleeps; 0 spares the host's cores
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 50, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    spin: u64,
    /// Write everything that the card does, from its start on, to a capture for `arctic decode`; that makes it slower
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// Who shares out the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Provisioner {
    /// The PF's driver
    Driver,
    /// The card file's [provision] section
    Config,
}

/// Reads a guest address of whole MiB: an ECAM window is aligned to its size.
fn guest_address(text: &str) -> Result<u64, String> {
    let number = text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| u64::from_str_radix(hex, 16));
    match number {
        Ok(address) if address.is_multiple_of(1 << 20) && address < 1 << 46 => Ok(address),
        _ => Err("expected an address of whole MiB, like 0xb0000000".into()),
    }
}

impl Arguments {
    fn ecam(&self) -> Ecam {
        Ecam { base: self.ecam, pf: self.pf_address }
    }

    fn arrangement(&self, profile: &CardProfile) -> Result<Arrangement> {
        let total = profile.total_vfs;
        if self.vfs > total {
            let remedy = "ask for fewer, or raise total_vfs in the card file";
            bail!("the card {} has {total} VFs, not {}: {remedy}", self.card, self.vfs);
        }
        if self.vfs == 0 && (self.split || self.provision == Provisioner::Config) {
            bail!("--split and --provision config are about VFs: say with --vfs how many");
        }
        Ok(match (self.split, self.provision) {
            (_, Provisioner::Config) => Arrangement::Provisioned,
            (true, _) => Arrangement::Split,
            (false, _) => {
                let ecam = self.ecam();
                if self.vfs > ecam.most_vfs() {
                    let pf = self.pf_address;
                    bail!("behind a PF at {pf} there is room for {} VFs on its bus, not {}", ecam.most_vfs(), self.vfs);
                }
                Arrangement::Together
            }
        })
    }
}

/// Serves until a signal comes, then writes the report.
pub fn run(arguments: &Arguments) -> Result<()> {
    let profile = card_file::load(&arguments.card)?;
    let arrangement = arguments.arrangement(&profile)?;
    let name = profile.name.clone();
    // From here on a signal ends the program in order, whenever it comes.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("signals cannot be caught")?;
    let dir = &arguments.dir;
    fs::create_dir_all(dir).with_context(|| format!("folder {} cannot be made", dir.display()))?;
    let dir = dir.canonicalize().with_context(|| format!("folder {} cannot be used", dir.display()))?;
    raise_descriptor_limit();

    let served = Arc::new(ServedCard::new(profile, arguments.vfs, arrangement, arguments.ecam())?);
    let card = served.card();
    let capture = arguments.trace.as_ref().map(|path| {
        let started = Capture::start(path, &name, &card.model().gt().trace);
        started.with_context(|| format!("capture {} cannot be written", path.display()))
    });
    let capture = capture.transpose()?;
    let settings = Settings { spin: Duration::from_micros(arguments.spin) };
    let mut servers = Vec::new();
    for Served { name, function } in served.functions() {
        let socket = dir.join(format!("{name}.sock"));
        servers.push(Server::start(&socket, function, settings).map_err(|error| refusal(&socket, error))?);
    }
    let socket = dir.join(status_socket::NAME);
    let document = {
        let served = served.clone();
        move || serde_json::to_string(&served.card().status()).unwrap_or_default() + "\n"
    };
    let status = status_socket::start(&socket, document).map_err(|error| refusal(&socket, error))?;

    let recorder = &card.model().gt().trace;
    let socket = dir.join(trace_socket::NAME);
    let trace = trace_socket::start(&socket, &name, recorder.clone()).map_err(|error| refusal(&socket, error))?;

    let connection = Connection::new(name, &dir, arguments.vfs, arrangement, arguments.ecam());
    let text = if arguments.json { format!("{}\n", serde_json::to_string(&connection)?) } else { connection.text() };
    let mut stdout = std::io::stdout().lock();
    // Whoever started the program may not want to read on; that is no reason not to serve.
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    drop(stdout);

    signals.forever().next();
    servers.iter().for_each(Server::stop);
    drop(status);
    drop(trace);
    drop(servers);
    drop(capture);
    let report = card.report();
    let path = dir.join("report.json");
    let json = serde_json::to_string_pretty(&report)? + "\n";
    fs::write(&path, json).with_context(|| format!("{} cannot be written", path.display()))?;
    eprint!("{report}");
    Ok(())
}

/// 63 VFs in one guest come with thousands of descriptors: each client sends one for each of its memory sections.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        log::warn!("the limit of open files cannot be raised: {error}");
    }
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
