// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic serve`: serves the card to VMMs that the user starts.

mod capabilities;
pub mod connection;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use arctic_device_model::gpu::Model;
use arctic_device_model::profile::{CardProfile, Unmodelled};
use clap::builder::PossibleValuesParser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use self::capabilities::Capabilities;
use self::connection::{Connection, Functions};
use super::card_args::{ALWAYS_SKIPS, ON_ROOT_BUS, check_vfs, default_card, window};
use super::offered::{built_in, card};
use super::quantity::quantity;
use super::stdout::{self, Unwritten};
use super::usage;
use crate::capture::{Capture, Heading};
use crate::decode::engine::of_card;
use crate::operator::{self, CardBackend};
use crate::run_dir::{RunDir, socket_error};
use crate::{metrics, remedy};
use arctic_gpu::card::Topology;
use arctic_gpu::card_file::{self, CardFile};
use arctic_gpu::vfio_user::ecam::{Ecam, PciAddress};
use arctic_gpu::vfio_user::{Served, ServedCard, Server, Settings};
use arctic_guest_runner::devices::{BarSpace, Place};
use arctic_guest_runner::viommu::{REQUESTER, Viommu};

/// Serve a card over vfio-user until Ctrl-C, for VMMs that you start yourself.
///
/// Each function has a socket in DIR: pf.sock, and with --vfs N also vf1.sock to vfN.sock. The output begins with the
/// QEMU arguments that connect to them. `arctic status DIR` shows the state of the card, `arctic trace DIR` its
/// execution, command by command, `arctic inject DIR` raises hardware errors; without DIR they find the only card of
/// this user. Their socket is in DIR/operator, accessible to this user only. On exit, DIR/report.json is written with the number of trapped accesses and the unimplemented registers that were accessed.
///
/// DIR is created with access for this user only. An existing directory must belong to this user and must not be
/// writable by others. With --socket-group, VMMs of other users in that group can connect to the functions' sockets.
///
/// There are three topologies for virtual functions. By default they are in one guest together with the PF; enable them
/// there by writing their number to the PF's sriov_numvfs. With --split, the PF's guest enables them in the same way
/// but sees only their configuration space (vf1-config-only.sock ...); each VF is used by a separate guest, which is started
/// after that. With --provision config, no guest has the PF; the card file partitions the resources, and the VFs exist
/// from the start.
///
/// With --print-capabilities no card is served; the output is one JSON document for management software, with the type
/// of the device (`gpu`), its PCI identity, the version of vfio-user, the built-in cards and the options of this
/// command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    arctic serve --card flex170 --dir /tmp/card\n  \
    arctic serve --card flex170 --dir /tmp/card --vfs 7\n  \
    arctic serve --card flex170 --dir /tmp/card --vfs 2 --split\n  \
    arctic serve --card flex170 --dir /tmp/card --vfs 2 --viommu intel\n  \
    arctic serve --card flex170 --dir /tmp/card --vfs 2 --pci-port\n  \
    arctic serve --card flex170 --dir /run/card --socket-group kvm\n  \
    arctic serve --print-capabilities\n  \
    arctic serve --print-card flex170 > lab.toml\n  \
    arctic serve --card flex170-63vf --dir /tmp/card --vfs 63 --provision config --json > card.json")]
pub struct ServeArgs {
    /// Card file (docs/card-files.md), or the name of a built-in one: flex170 (16 GiB, 31 VFs), flex140 (6 GiB),
    /// flex170-63vf, small (2 GiB), and the integrated GPUs ivb, ivb-swizzled, ivb-fused (without display) and snb; the
    /// default is flex170, with more than 31 VFs flex170-63vf
    #[arg(long, value_name = "FILE|NAME", value_parser = card(), hide_possible_values = true)]
    card: Option<String>,
    /// Directory for sockets and the report; created if it does not exist
    #[arg(long, value_name = "DIR", required_unless_present_any = [CAPABILITIES, PRINT_CARD])]
    dir: Option<PathBuf>,
    /// Group, by name or number: its members may connect to the functions' sockets (not to the operator's)
    #[arg(long, value_name = "GROUP", value_parser = group)]
    socket_group: Option<u32>,
    /// Number of virtual functions to serve; with 0 the card has no SR-IOV
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true,
        value_parser = quantity::<u8>("VFs", 0..=63))]
    vfs: u8,
    /// Each virtual function is used by a separate guest; the PF's guest enables and provisions them
    #[arg(long)]
    split: bool,
    /// Provisioner of the VFs: the PF driver in its guest, or the card file
    #[arg(long, value_name = "BY", value_enum, default_value_t = Provisioner::Driver, conflicts_with = "split")]
    provision: Provisioner,
    /// Guest address of the configuration space window (ECAM) in the PF's guest, used if VFs are in that guest. The
    /// windows of SeaBIOS (0xb0000000) and OVMF (0xe0000000) are also tried
    #[arg(long, value_name = "ADDR", default_value = "0xb0000000", value_parser = guest_address)]
    ecam: u64,
    /// PCI address of the PF in its guest; the VFs follow it. QEMU assigns slots from 1 on to its own and other devices.
    /// The default is 00:10.0, with --pci-port 01:00.0, for an integrated GPU 00:02.0
    #[arg(long, value_name = "BUS:DEV.FN")]
    pf_address: Option<PciAddress>,
    /// Number of this card among several of one guest. From 2 on, the printed QEMU arguments are to be added to those of card 1:
    /// only the card's devices, with IDs and addresses of their own. Card 2 is at 00:08.0, with --pci-port card N behind the
    /// port at 00:(0f + N).0
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    card_number: u8,
    /// Print QEMU arguments with the card behind a PCI Express root port, as in guests of libvirt
    #[arg(long)]
    pci_port: bool,
    /// Print QEMU arguments with an IOMMU. If VFs are in the PF's guest, a function on a bus that the IOMMU does not
    /// translate (ecam.sock) programs their BARs
    #[arg(long, value_name = "intel|amd", value_enum, num_args = 0..=1, default_missing_value = "intel")]
    viommu: Option<Viommu>,
    /// Print one JSON document instead of text: card, sockets and QEMU arguments
    #[arg(long)]
    json: bool,
    /// Microseconds for which a function's thread polls for the next access before it sleeps; 0 saves host CPU time
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 50, value_parser = quantity::<u64>("microseconds", 0..=10_000))]
    spin: u64,
    /// Write all events of the card, from its start, to a capture for `arctic decode`; slows the card down
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// What the card does with programs of user space that use commands which it does not execute (3D, compute, media):
    /// skip these commands, or stop the context with a fault that the driver reports; the default is the card file's
    #[arg(long, value_name = "HOW", value_enum)]
    unmodelled: Option<UnmodelledOption>,
    /// Serve the card's state at http://ADDRESS/metrics in the format of OpenMetrics, and a health check at
    /// http://ADDRESS/healthz, which answers 200 while the card serves; ADDRESS is one of the loopback interface, like
    /// 127.0.0.1:9617, so each user of this host can read it. With port 0 a free port is chosen
    #[arg(long, value_name = "ADDRESS", value_parser = loopback)]
    metrics: Option<SocketAddr>,
    /// Print the supported device, cards and options as one JSON document, and exit; all other options are ignored
    #[arg(long)]
    print_capabilities: bool,
    /// Print the card file of a built-in card, to make one of your own from it (docs/card-files.md), and exit; all other options
    /// are ignored
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(built_in()), hide_possible_values = true)]
    print_card: Option<String>,
}

/// Devices of bus 0 that QEMU's machine q35 has itself: the host bridge, and LPC, SATA and SMBus.
const Q35_DEVICES: [u8; 2] = [0, 0x1f];

/// IDs of the arguments that make --dir optional.
const CAPABILITIES: &str = "print_capabilities";
const PRINT_CARD: &str = "print_card";

/// The provisioner of the VFs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Provisioner {
    /// The PF driver
    Driver,
    /// The card file's [provision] section
    Config,
}

/// Overrides the card file's `unmodelled`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum UnmodelledOption {
    /// Skip and count the commands
    Skip,
    /// Stop the context at the first of them
    Fault,
}

/// Parses a guest address that is a multiple of 1 MiB: an ECAM window is aligned to its size.
fn guest_address(text: &str) -> Result<u64, String> {
    let number = text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| u64::from_str_radix(hex, 16));
    match number {
        Ok(address) if address.is_multiple_of(1 << 20) && address < 1 << 46 => Ok(address),
        _ => Err("expected an address that is a multiple of 1 MiB, like 0xb0000000".into()),
    }
}

impl ServeArgs {
    /// Where the card is by default in a guest with the PF and `vfs` VFs, or with one function.
    fn place(&self, card: &str, model: &CardFile, vfs: u8) -> Result<Place> {
        let integrated = matches!(model, CardFile::Integrated(_));
        if integrated && self.pci_port {
            bail!("the card {card} {ON_ROOT_BUS}");
        }
        match self.card_number {
            0 | 1 => {}
            _ if integrated => bail!("an integrated GPU is the only one of its guest, at 00:02.0: omit --card-number"),
            _ if self.viommu.is_some() && self.vfs != 0 && !self.split => {
                bail!(
                    "with --viommu, VFs can be in the guest of the PF of card 1 only: omit --card-number, --viommu or --vfs"
                )
            }
            3.. if !self.pci_port && self.pf_address.is_none() => {
                bail!(
                    "card {} of a guest has no place of its own on the root bus: add --pci-port or --pf-address",
                    self.card_number
                )
            }
            _ => {}
        }
        Ok(if integrated {
            Place::INTEGRATED
        } else if self.pci_port {
            Place::behind_port_of_card(self.card_number, window(model, vfs)?)
        } else if self.card_number > 1 {
            Place::SECOND
        } else {
            Place::FREE
        })
    }

    /// Where PF and VFs are in the PF's guest: as `default`, unless an option says otherwise.
    fn place_of_pf(&self, default: Place) -> Result<Place> {
        let Some(PciAddress { bus, device, function }) = self.pf_address else { return Ok(default) };
        if self.pci_port && bus == 0 {
            bail!("behind the port of --pci-port the PF is not on bus 0: omit --pf-address, or give the port's bus");
        }
        if bus == 0 && Q35_DEVICES.contains(&device) {
            bail!("the devices 00:00 and 00:1f are q35's own: give --pf-address another one, like 00:10.0");
        }
        Ok(Place { bus, devfn: device << 3 | function, ..default })
    }

    fn ecam(&self, Place { bus, devfn, .. }: Place) -> Ecam {
        Ecam { base: self.ecam, pf: PciAddress::from_routing_id(u16::from_be_bytes([bus, devfn])) }
    }

    fn topology(&self, card: &str, model: &CardFile, ecam: Ecam) -> Result<Topology> {
        check_vfs(card, model, self.vfs)?;
        if self.vfs == 0 && (self.split || self.provision == Provisioner::Config) {
            bail!("--split and --provision config need VFs: say with --vfs how many");
        }
        if self.provision == Provisioner::Config {
            return Ok(Topology::Provisioned);
        }
        if self.split {
            return Ok(Topology::Split);
        }
        if self.vfs > ecam.most_vfs() {
            let pf = ecam.pf;
            bail!("behind a PF at {pf} the bus has addresses for {} VFs, not {}", ecam.most_vfs(), self.vfs);
        }
        Ok(Topology::Together)
    }
}

/// Serves until a signal arrives, then writes the report; or prints the capabilities.
pub fn run(arguments: &ServeArgs) -> Result<()> {
    if let Some(wanted) = &arguments.print_card {
        let file = card_file::BUILT_IN.iter().find(|(name, _)| name == wanted);
        let (_, text) = file.with_context(|| format!("there is no built-in card {wanted}"))?;
        return Ok(stdout::print(text)?);
    }
    let (Some(dir), false) = (&arguments.dir, arguments.print_capabilities) else {
        return Ok(stdout::line(serde_json::to_string_pretty(&Capabilities::new()?)?)?);
    };
    let card = arguments.card.as_deref().unwrap_or_else(|| default_card(arguments.vfs));
    let mut model = card_file::load(card).map_err(usage)?;
    match (arguments.unmodelled, &mut model) {
        (Some(UnmodelledOption::Skip), CardFile::Flex(profile)) => profile.unmodelled = Unmodelled::Skip,
        (Some(UnmodelledOption::Fault), CardFile::Flex(profile)) => profile.unmodelled = Unmodelled::Fault,
        (Some(_), _) => return Err(usage(anyhow!("the card {card} {ALWAYS_SKIPS}"))),
        (None, _) => {}
    }
    let place = arguments.place(card, &model, arguments.vfs).and_then(|place| arguments.place_of_pf(place));
    let place = place.map_err(usage)?;
    let place_alone = arguments.place(card, &model, 0).map_err(usage)?;
    let name = model.name().to_owned();
    let ecam = arguments.ecam(place);
    let topology = arguments.topology(card, &model, ecam).map_err(usage)?;
    let posted_writes = model.posted_writes();
    let bars = BarSpace::of(matches!(model, CardFile::Integrated(_)));
    // From here on, signals cause an orderly shutdown.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot install signal handlers")?;
    survive_long_files()?;
    let mut names = socket_names(arguments.vfs, topology);
    let programs_bars = topology == Topology::Together && arguments.vfs != 0;
    names.extend(arguments.viommu.filter(|_| programs_bars).map(|_| format!("{REQUESTER}.sock")));
    let dir = RunDir::open(dir, arguments.socket_group, &names)?;
    raise_descriptor_limit();
    if let CardFile::Flex(profile) = &model {
        check_file_size(profile)?;
    }

    let heading = Heading::new(&name, of_card(&model).and_then(|family| family.name()));
    let served = ServedCard::new(model, arguments.vfs, topology, ecam);
    let served = Arc::new(served.map_err(|error| anyhow!(remedy::with_resource(&error)))?);
    let card = served.card();
    let capture = arguments.trace.as_ref().map(|path| {
        let started = Capture::start(path, &heading, card.trace());
        started.map_err(|error| {
            let remedy = remedy::of_path(&error, "--trace");
            anyhow!("capture {} cannot be written: {error}; {remedy}", path.display())
        })
    });
    let capture = capture.transpose()?;
    let settings = Settings { spin: Duration::from_micros(arguments.spin), group: arguments.socket_group };
    let mut servers = Vec::new();
    let requester = arguments.viommu.and_then(|_| served.ecam_requester());
    for Served { name, function, .. } in served.functions().into_iter().chain(requester) {
        let socket = dir.path().join(format!("{name}.sock"));
        servers.push(Server::start(&socket, function, settings).map_err(|error| socket_error(&socket, &error))?);
    }
    let socket = dir.operator_socket();
    let operator = operator::Server::start(&socket, CardBackend { served: served.clone(), heading });
    let operator = operator.map_err(|error| socket_error(&socket, &error))?;

    let status = served.clone();
    let metrics = arguments.metrics.map(|address| {
        let started = metrics::server::Server::start(address, move || status.card().status());
        started.map_err(|error| {
            let remedy = remedy::of_resource(&error).filter(|_| error.get_ref().is_some());
            let remedy = remedy.unwrap_or("choose another address or port");
            anyhow!("the metrics cannot be served at {address}: {error}; {remedy}")
        })
    });
    let metrics = metrics.transpose()?;

    let functions = Functions {
        vfs: arguments.vfs,
        topology,
        place,
        place_alone,
        viommu: arguments.viommu,
        posted_writes,
        bars,
        memory: connection::MEMORY,
        number: arguments.card_number,
    };
    let metrics_url = metrics.as_ref().map(|server| format!("http://{}/metrics", server.address()));
    let connection = Connection::new(name, &dir, functions, metrics_url);
    let text = if arguments.json { format!("{}\n", serde_json::to_string(&connection)?) } else { connection.text() };
    // A parent program may close the pipe; the card is served nevertheless.
    if let Err(error @ Unwritten::Failed(_)) = stdout::print(&text) {
        log::warn!("{error}");
    }

    signals.forever().next();
    servers.iter().for_each(Server::stop);
    drop(metrics);
    drop(operator);
    drop(servers);
    drop(capture);
    let report = card.report();
    let json = serde_json::to_string_pretty(&report)? + "\n";
    dir.write_report(json.as_bytes())?;
    stdout::complain(&report);
    Ok(())
}

/// Names of the functions' sockets.
fn socket_names(vfs: u8, topology: Topology) -> Vec<String> {
    let pf = (topology != Topology::Provisioned).then(|| "pf.sock".to_owned());
    let config_only = if topology == Topology::Split { vfs } else { 0 };
    let vf = |vf| format!("vf{vf}.sock");
    let config_only_socket = |vf| format!("vf{vf}-config-only.sock");
    pf.into_iter().chain((1..=vfs).map(vf)).chain((1..=config_only).map(config_only_socket)).collect()
}

/// Makes a write beyond the file size limit, also to a client's file, fail with EFBIG instead of terminating the
/// process.
fn survive_long_files() -> Result<()> {
    // A handler that sets an unused flag has the effect of ignoring the signal, but unlike SIG_IGN it is not inherited
    // through execve(2).
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map(drop).context("cannot install a handler for SIGXFSZ")
}

/// Checks that the file size limit permits a sparse file of the size of local memory.
fn check_file_size(profile: &CardProfile) -> Result<()> {
    let needed = profile.local_memory;
    match getrlimit(Resource::Fsize).current {
        Some(limit) if limit < needed => bail!(
            "the limit of file sizes is {limit} bytes, and the local memory of {} is a sparse file of {needed} bytes: raise \
             the limit (ulimit -f, LimitFSIZE=), or use a smaller card",
            profile.name
        ),
        _ => Ok(()),
    }
}

/// Raises the limit of open files: 63 VFs in one guest need thousands, because each client sends a descriptor for each
/// of its memory sections.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        log::warn!("cannot raise the limit of open files: {error}");
    }
}

/// Parses an address of the loopback interface.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    match text.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_loopback() => Ok(address),
        Ok(_) => Err("not an address of the loopback interface: other hosts could read the metrics".into()),
        Err(_) => Err("expected an address and a port, like 127.0.0.1:9617".into()),
    }
}

/// Parses a group's name or number.
fn group(text: &str) -> Result<u32, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    match nix::unistd::Group::from_name(text) {
        Ok(Some(group)) => Ok(group.gid.as_raw()),
        Ok(None) => Err("there is no such group".into()),
        Err(error) => Err(format!("cannot read the group database: {error}")),
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
    fn metrics_are_served_on_the_loopback_interface_only() {
        for (text, accepted) in [
            ("127.0.0.1:9617", true),
            ("127.1.2.3:0", true),
            ("[::1]:9617", true),
            ("0.0.0.0:9617", false),
            ("[::]:9617", false),
            ("192.0.2.1:9617", false),
            ("localhost:9617", false),
            ("127.0.0.1", false),
            ("9617", false),
        ] {
            assert_eq!(loopback(text).is_ok(), accepted, "{text}");
        }
    }

    #[test]
    fn each_function_has_its_socket() {
        assert_eq!(socket_names(0, Topology::Together), ["pf.sock"]);
        assert_eq!(socket_names(1, Topology::Provisioned), ["vf1.sock"]);
        assert_eq!(socket_names(1, Topology::Split), ["pf.sock", "vf1.sock", "vf1-config-only.sock"]);
    }
}
