//! `arctic serve`: the card alone, for a VMM of the user's own.

mod connection;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use arctic_device_model::profile::CardProfile;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use self::connection::Connection;
use super::stdout::{self, Unwritten};
use crate::card::Arrangement;
use crate::card_file;
use crate::run_dir::{RunDir, refusal};
use crate::status_socket;
use crate::trace_socket::{self, Capture};
use crate::vfio_user::ecam::{Ecam, PciAddress};
use crate::vfio_user::{Served, ServedCard, Server, Settings};

/// Serve a card over vfio-user until Ctrl-C, for VMMs that you start yourself.
///
/// Each function has a socket in DIR: pf.sock, and with --vfs N also vf1.sock to vfN.sock. The first lines of the output
/// tell how to connect QEMU to them. `arctic status DIR` tells what the card is doing, `arctic trace DIR` follows it command
/// by command; their sockets are in DIR/operator, for this user alone. At the end, DIR/report.json tells how many accesses
/// were trapped and which registers were touched that the card lacks.
///
/// DIR is created for this user alone. A folder that exists must belong to this user, and others must not be able to write
/// to it. With --socket-group, VMMs of other users who are in that group connect to the functions' sockets.
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
    arctic serve --card flex170 --dir /run/card --socket-group kvm\n  \
    arctic serve --card flex170-63vf --dir /tmp/card --vfs 63 --provision config --json > card.json")]
pub struct Arguments {
    /// Card file, or the name of a built-in one: flex170 (16 GiB, 31 VFs), flex170-63vf, small (2 GiB)
    #[arg(long, value_name = "FILE|NAME")]
    card: String,
    /// Folder for sockets and the report; it is created if need be
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Group, by name or number, whose members may connect to the functions' sockets (not to status and trace)
    #[arg(long, value_name = "GROUP", value_parser = group)]
    socket_group: Option<u32>,
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
    /// Address of the PF in its guest; the VFs follow it. QEMU gives its own and other devices the slots from 1 on
    #[arg(long, value_name = "BUS:DEV.FN", default_value_t = connection::ADDRESS)]
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
    survive_long_files()?;
    let names = socket_names(arguments.vfs, arrangement);
    let dir = RunDir::open(&arguments.dir, arguments.socket_group, &names)?;
    raise_descriptor_limit();
    check_file_size(&profile)?;

    let served = Arc::new(ServedCard::new(profile, arguments.vfs, arrangement, arguments.ecam())?);
    let card = served.card();
    let capture = arguments.trace.as_ref().map(|path| {
        let started = Capture::start(path, &name, &card.model().gt().trace);
        started.with_context(|| format!("capture {} cannot be written", path.display()))
    });
    let capture = capture.transpose()?;
    let settings = Settings { spin: Duration::from_micros(arguments.spin), group: arguments.socket_group };
    let mut servers = Vec::new();
    for Served { name, function } in served.functions() {
        let socket = dir.path().join(format!("{name}.sock"));
        servers.push(Server::start(&socket, function, settings).map_err(|error| refusal(&socket, &error))?);
    }
    let socket = dir.operator(status_socket::NAME);
    let document = {
        let served = served.clone();
        move || serde_json::to_string(&served.card().status()).unwrap_or_default() + "\n"
    };
    let status = status_socket::start(&socket, document).map_err(|error| refusal(&socket, &error))?;

    let recorder = &card.model().gt().trace;
    let socket = dir.operator(trace_socket::NAME);
    let trace = trace_socket::start(&socket, &name, recorder.clone()).map_err(|error| refusal(&socket, &error))?;
    let links = dir.link()?;

    let connection = Connection::new(name, &dir, arguments.vfs, arrangement, arguments.ecam());
    let text = if arguments.json { format!("{}\n", serde_json::to_string(&connection)?) } else { connection.text() };
    // The program that started this one may not want to read on; that is no reason not to serve.
    if let Err(error @ Unwritten::Failed(_)) = stdout::print(&text) {
        log::warn!("{error}");
    }

    signals.forever().next();
    servers.iter().for_each(Server::stop);
    drop(links);
    drop(status);
    drop(trace);
    drop(servers);
    drop(capture);
    let report = card.report();
    let json = serde_json::to_string_pretty(&report)? + "\n";
    dir.write_report(json.as_bytes())?;
    stdout::complain(&report);
    Ok(())
}

/// Names of the functions' sockets.
fn socket_names(vfs: u8, arrangement: Arrangement) -> Vec<String> {
    let pf = (arrangement != Arrangement::Provisioned).then(|| "pf.sock".to_owned());
    let faces = if arrangement == Arrangement::Split { vfs } else { 0 };
    let vf = |vf| format!("vf{vf}.sock");
    let face = |vf| format!("vf{vf}-face.sock");
    pf.into_iter().chain((1..=vfs).map(vf)).chain((1..=faces).map(face)).collect()
}

/// A write beyond the limit of a file's size fails with EFBIG, also on a file of a client, instead of ending the process.
fn survive_long_files() -> Result<()> {
    // A handler, whose flag is not read, is as good as ignoring the signal, and is not handed on to other programs.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map(drop).context("SIGXFSZ cannot be caught")
}

/// Local memory is a sparse file.
fn check_file_size(profile: &CardProfile) -> Result<()> {
    let needed = profile.local_memory;
    match getrlimit(Resource::Fsize).current {
        Some(limit) if limit < needed => bail!(
            "the limit of file sizes is {limit} bytes, and the local memory of {} is a sparse file of {needed} bytes: raise \
             the limit (ulimit -f, LimitFSIZE=), or take a smaller card",
            profile.name
        ),
        _ => Ok(()),
    }
}

/// 63 VFs in one guest come with thousands of descriptors: each client sends one for each of its memory sections.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        log::warn!("the limit of open files cannot be raised: {error}");
    }
}

/// Reads a group's name or number.
fn group(text: &str) -> Result<u32, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    match nix::unistd::Group::from_name(text) {
        Ok(Some(group)) => Ok(group.gid.as_raw()),
        Ok(None) => Err("there is no such group".into()),
        Err(error) => Err(format!("the groups cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_read() {
        assert_eq!(group("0"), Ok(0));
        assert_eq!(group("65533"), Ok(65533));
        assert_eq!(group("root"), Ok(0));
        assert!(group("no such group").unwrap_err().contains("no such group"));
        assert!(group("-1").is_err() && group("").is_err());
    }

    #[test]
    fn each_function_has_its_socket() {
        assert_eq!(socket_names(0, Arrangement::Together), ["pf.sock"]);
        assert_eq!(socket_names(1, Arrangement::Provisioned), ["vf1.sock"]);
        assert_eq!(socket_names(1, Arrangement::Split), ["pf.sock", "vf1.sock", "vf1-face.sock"]);
    }
}
