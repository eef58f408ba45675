// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Connection data of a served card for VMMs: its sockets, and QEMU's arguments for each guest.

use std::path::Path;

use serde::Serialize;

use crate::run_dir::RunDir;
use arctic_gpu::card::Topology;
use arctic_guest_runner::devices::{self, BarSpace, Device, Place, lines};
use arctic_guest_runner::path::PrintedPath;
use arctic_guest_runner::viommu::{self, REQUESTER, Viommu};

/// QEMU's default display adapter and NIC would occupy PCI slots 1 and 2, which `--pf-address` may assign to the card;
/// options appended to these add them again.
const NO_DEFAULTS: [&str; 4] = ["-vga", "none", "-nic", "none"];

/// Memory of a guest in MiB in the printed arguments.
pub const MEMORY: u32 = 4096;

/// The sockets of the card and the QEMU arguments.
#[derive(Serialize)]
pub struct Connection {
    card: String,
    topology: &'static str,
    sockets: Sockets,
    /// URL of the metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<String>,
    /// QEMU's arguments for the guest of the PF.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub qemu: Vec<String>,
    /// QEMU's arguments for the guest of each VF, if VFs have separate guests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    qemu_vfs: Vec<Vec<String>>,
    /// [`Functions::number`].
    card_number: u8,
}

/// How the card's functions are presented to guests.
#[derive(Clone, Copy)]
pub struct Functions {
    /// Number of VFs.
    pub vfs: u8,
    /// The guests of the VFs.
    pub topology: Topology,
    /// Where PF and VFs are in the PF's guest.
    pub place: Place,
    /// Where a VF is that is the only function in its guest.
    pub place_alone: Place,
    /// The IOMMU of the guests.
    pub viommu: Option<Viommu>,
    /// Whether the card permits posted writes to its BARs.
    pub posted_writes: bool,
    /// Where the BARs of the card are.
    pub bars: BarSpace,
    /// Memory of each guest in MiB.
    pub memory: u32,
    /// Number of the card among those of the guest, from 1. The arguments of a second and further card are added to those of
    /// the first: they have IDs of their own, and no machine.
    pub number: u8,
}

#[derive(Serialize)]
struct Sockets {
    #[serde(skip_serializing_if = "Option::is_none")]
    pf: Option<PrintedPath>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    vfs: Vec<PrintedPath>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    config_only: Vec<PrintedPath>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ecam: Option<PrintedPath>,
    operator: PrintedPath,
}

impl Functions {
    /// QEMU's arguments for function `index` at `place`. `alone`: no other function has the same slot.
    fn device(&self, (place, index): (Place, u8), id: &str, socket: &PrintedPath, alone: bool) -> [String; 2] {
        let (bus, address) = place.on_bus(index);
        Device {
            id: &devices::id(self.number, id),
            at: (&bus, &address),
            socket: &socket.to_string_lossy(),
            multifunction: !alone,
            posted_writes: self.posted_writes,
        }
        .arguments()
    }

    /// QEMU's arguments for a guest with these functions `at` a place.
    fn machine(&self, at: Place, functions: impl IntoIterator<Item = [String; 2]>) -> Vec<String> {
        let functions = at.arguments().into_iter().chain(functions.into_iter().flatten());
        if self.number > 1 {
            return functions.collect();
        }
        let iommu = self.viommu.map_or_else(Default::default, Viommu::arguments);
        let further = NO_DEFAULTS.iter().chain(iommu.as_flattened()).map(ToString::to_string);
        let machine = devices::machine(self.memory, devices::PROCESSOR, self.bars).into_iter().chain(further);
        machine.chain(functions).collect()
    }
}

impl Connection {
    /// The connection data of the card `name` with its sockets in `dir`, and its metrics at this URL.
    pub fn new(name: String, dir: &RunDir, functions: Functions, metrics: Option<String>) -> Self {
        Connection { metrics, ..Self::at(name, dir.path(), dir.operator_socket().into(), functions) }
    }

    /// The same with the sockets in `dir`, and the operator's socket `operator`.
    pub fn at(name: String, dir: &Path, operator: PrintedPath, functions: Functions) -> Self {
        let Functions { vfs, topology, place, place_alone, viommu, .. } = functions;
        let socket = |name: &str| PrintedPath::from(dir.join(format!("{name}.sock")));
        let sockets =
            |ending: &str| -> Vec<PrintedPath> { (1..=vfs).map(|vf| socket(&format!("vf{vf}{ending}"))).collect() };
        let pf = socket("pf");
        let full = sockets("");
        let config_only = sockets("-config-only");
        let beside = |beside: &[PrintedPath]| {
            let vf =
                |(vf, socket): (u8, &PrintedPath)| functions.device((place, vf), &format!("vf{vf}"), socket, false);
            let pf = functions.device((place, 0), "pf", &pf, beside.is_empty());
            functions.machine(place, std::iter::once(pf).chain((1..).zip(beside).map(vf)))
        };
        let alone = |socket: &PrintedPath| {
            functions.machine(place_alone, [functions.device((place_alone, 0), "vf", socket, true)])
        };
        let requester = viommu.filter(|_| vfs != 0 && topology == Topology::Together).map(|_| socket(REQUESTER));
        let (qemu, qemu_vfs) = match topology {
            Topology::Split => (beside(&config_only), full.iter().map(alone).collect()),
            Topology::Provisioned => (Vec::new(), full.iter().map(alone).collect()),
            // Native, Together: one machine has all functions.
            _ => {
                let mut arguments = beside(&full);
                if let Some(socket) = &requester {
                    arguments.extend(viommu::requester(&socket.to_string_lossy()));
                }
                (arguments, Vec::new())
            }
        };
        Connection {
            card: name,
            topology: topology.name(),
            sockets: Sockets {
                pf: (topology != Topology::Provisioned).then_some(pf),
                vfs: full,
                config_only: if topology == Topology::Split { config_only } else { Vec::new() },
                ecam: requester,
                operator,
            },
            metrics: None,
            qemu,
            qemu_vfs,
            card_number: functions.number,
        }
    }

    /// Formats the sockets and arguments as text, in the order in which guests are started.
    pub fn text(&self) -> String {
        let sockets = match (&self.sockets.pf, self.sockets.vfs.as_slice()) {
            (Some(pf), []) => pf.to_string(),
            (Some(pf), [only]) => format!("{pf} and {}", file_name(only)),
            (Some(pf), [first, .., last]) => {
                format!("{pf} and {} to {}", file_name(first), file_name(last))
            }
            (None, [first, .., last]) => format!("{first} to {}", file_name(last)),
            (None, vfs) => vfs.iter().map(|socket| socket.to_string()).collect(),
        };
        let mut text = format!("{} listens on {sockets}.\n", self.card);
        if let Some(metrics) = &self.metrics {
            text += &format!("Metrics: {metrics}\n");
        }
        let qemu = match self.card_number {
            0 | 1 => "Arguments for qemu-system-x86_64 (11.1 or later; the memory size is free)",
            _ => "Arguments for qemu-system-x86_64 after those of the first card",
        };
        if !self.qemu.is_empty() {
            let guest = if self.qemu_vfs.is_empty() { "" } else { ", the PF's guest" };
            text += &format!("{qemu}{guest}:\n  {}\n", lines(&self.qemu));
        }
        if let Some(alone) = self.qemu_vfs.first() {
            let when = if self.qemu.is_empty() { "" } else { " once the PF's guest has enabled it" };
            text +=
                &format!("{qemu}, the guest of VF 1{when}; other VFs differ only in the socket:\n  {}\n", lines(alone));
        }
        text
    }
}

fn file_name(path: &Path) -> String {
    debug_assert!(path.file_name().is_some(), "the path of a socket has a name: {}", path.display());
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use arctic_guest_runner::devices::{Window, quoted};

    use super::*;

    /// The functions of a card that permits posted writes, without an IOMMU.
    fn functions(vfs: u8, topology: Topology) -> Functions {
        Functions {
            vfs,
            topology,
            place: Place::FREE,
            place_alone: Place::FREE,
            viommu: None,
            posted_writes: true,
            bars: BarSpace::High,
            memory: MEMORY,
            number: 1,
        }
    }

    fn connected(dir: &str, functions: Functions) -> Connection {
        Connection::at("x".into(), Path::new(dir), Default::default(), functions)
    }

    fn connection(dir: &str, vfs: u8, topology: Topology) -> Connection {
        connected(dir, functions(vfs, topology))
    }

    fn devices(arguments: &[String]) -> Vec<serde_json::Value> {
        let values = arguments.iter().filter(|argument| argument.starts_with('{'));
        values.map(|argument| serde_json::from_str(argument).unwrap()).collect()
    }

    #[test]
    fn the_socket_is_passed_to_qemu_as_json() {
        let connection = connection("/tmp/a \"b\"", 0, Topology::Together);
        let [pf] = &devices(&connection.qemu)[..] else { panic!("{:?}", connection.qemu) };
        assert_eq!((&pf["driver"], &pf["addr"]), (&"vfio-user-pci".into(), &"10.0".into()));
        assert_eq!(pf["socket"]["path"], "/tmp/a \"b\"/pf.sock");
        assert!(connection.qemu_vfs.is_empty());
    }

    /// The text has the same arguments as the document, and QEMU's default devices do not use the slots.
    #[test]
    fn the_text_has_the_documents_arguments() {
        for topology in [Topology::Together, Topology::Split, Topology::Provisioned] {
            let connection = connection("/c", 2, topology);
            let text = connection.text();
            for arguments in connection.qemu_vfs.first().into_iter().chain([&connection.qemu]) {
                for argument in arguments {
                    assert!(text.contains(&quoted(argument)), "{argument}: {text}");
                }
                for pair in [["-vga", "none"], ["-nic", "none"]] {
                    assert!(arguments.is_empty() || arguments.chunks(2).any(|found| found == pair), "{arguments:?}");
                }
            }
        }
    }

    /// First VF Offset and VF Stride are 1; unmodified QEMU presents the VFs as separate functions at 10.1 to 17.7.
    #[test]
    fn vfs_of_the_same_guest_follow_the_pf() {
        let connection = connection("/c", 63, Topology::Together);
        let devices = devices(&connection.qemu);
        assert_eq!(devices.len(), 64);
        for (n, device) in devices.iter().enumerate() {
            assert_eq!(device["addr"], format!("{:x}.{}", 0x10 + n / 8, n % 8));
            assert_eq!(device["multifunction"], true);
        }
        assert_eq!((&devices[63]["addr"], &devices[63]["socket"]["path"]), (&"17.7".into(), &"/c/vf63.sock".into()));
    }

    /// PF and VFs are behind one port, a VF of another guest behind a port of its own. The port precedes its functions.
    #[test]
    fn a_root_port_precedes_its_functions() {
        let window = Window { prefetchable: 1 << 35, other: 0 };
        let place = Place::FREE.behind_port(window);
        let connection = connected("/c", Functions { place, place_alone: place, ..functions(2, Topology::Split) });
        for (arguments, places) in [(&connection.qemu, &["0.0", "0.1", "0.2"][..]), (&connection.qemu_vfs[0], &["0.0"])]
        {
            let position = |start: &str| arguments.iter().position(|argument| argument.starts_with(start)).unwrap();
            assert!(position("pcie-root-port,id=card-port,bus=pcie.0,addr=10.0,") < position("{"), "{arguments:?}");
            let devices = devices(arguments);
            assert!(devices.iter().all(|device| device["bus"] == "card-port"), "{devices:?}");
            assert_eq!(devices.iter().map(|device| &device["addr"]).collect::<Vec<_>>(), places);
        }
    }

    /// QEMU creates the IOMMU before the functions that it translates. Of the VFs' functions only the requester is on the
    /// bus that is not translated, and it exists only if VFs are in the PF's guest.
    #[test]
    fn with_an_iommu_the_requester_is_on_a_bus_that_bypasses_it() {
        for (viommu, model) in [(Viommu::Intel, "intel-iommu,"), (Viommu::Amd, "amd-iommu,")] {
            for (vfs, topology) in [(2, Topology::Together), (0, Topology::Together), (2, Topology::Split)] {
                let connection = connected("/c", Functions { viommu: Some(viommu), ..functions(vfs, topology) });
                for arguments in connection.qemu_vfs.iter().chain([&connection.qemu]) {
                    let position = |start: &str| arguments.iter().position(|argument| argument.starts_with(start));
                    assert!(position(model).unwrap() < position("{").unwrap(), "{arguments:?}");
                }
                let devices = devices(&connection.qemu);
                let bypassing: Vec<_> = devices.iter().filter(|device| device["bus"] == "ecam-port").collect();
                if (vfs, topology) == (2, Topology::Together) {
                    assert_eq!(bypassing.len(), 1);
                    assert_eq!((&bypassing[0]["socket"]["path"], devices.len()), (&"/c/ecam.sock".into(), 4));
                    assert!(connection.qemu.iter().any(|argument| argument.contains("bypass_iommu=on")));
                } else {
                    assert!(bypassing.is_empty() && connection.sockets.ecam.is_none());
                }
            }
        }
    }

    /// QEMU accepts the arguments of several cards together: one machine, one memory, and no ID, address or slot of a chassis
    /// twice.
    #[test]
    fn several_cards_have_their_own_ids_and_addresses() {
        let window = Window { prefetchable: 1 << 35, other: 0 };
        let behind = |number| Functions {
            place: Place::behind_port_of_card(number, window),
            number,
            ..functions(7, Topology::Together)
        };
        let beside = |number, place| Functions { place, number, ..functions(63, Topology::Together) };
        let ports = [1, 2, 3].map(behind);
        let on_root_bus = [beside(1, Place::FREE), beside(2, Place::SECOND)];
        for cards in [&ports[..], &on_root_bus] {
            let sets = cards.iter().map(|card| connected(&format!("/c{}", card.number), *card).qemu);
            let all: Vec<String> = sets.flatten().collect();
            let count = |start: &str| all.iter().filter(|argument| argument.starts_with(start)).count();
            assert_eq!((count("q35,"), count("memory-backend-memfd"), count("-nic")), (1, 1, 1), "{all:?}");
            let devices = devices(&all);
            let places: Vec<_> = devices.iter().map(|device| (device["bus"].clone(), device["addr"].clone())).collect();
            let ports: Vec<Vec<&str>> = all
                .iter()
                .filter(|argument| argument.starts_with("pcie-root-port"))
                .map(|port| port.split(',').collect())
                .collect();
            let field =
                |port: &[&str], name: &str| port.iter().find(|field| field.starts_with(name)).map(|f| f.to_string());
            let ids = devices.iter().map(|device| device["id"].as_str().unwrap().to_owned());
            let ids: Vec<_> = ids.chain(ports.iter().filter_map(|port| field(port, "id="))).collect();
            let slots: Vec<_> = ports.iter().map(|port| (field(port, "chassis="), field(port, "slot="))).collect();
            for n in 0..devices.len() {
                assert!(!places[..n].contains(&places[n]), "{:?}", places[n]);
            }
            for n in 0..ids.len() {
                assert!(!ids[..n].contains(&ids[n]), "{}", ids[n]);
            }
            for n in 0..slots.len() {
                assert!(!slots[..n].contains(&slots[n]), "{:?}", slots[n]);
            }
        }
        let second = connected("/c2", behind(2));
        assert_eq!(devices(&second.qemu)[1]["id"], "card2-vf1");
        assert!(second.text().contains("after those of the first card:\n  -device pcie-root-port,id=card2-port,"));
    }

    /// QEMU waits for writes of a card whose drivers expect it, and of no other.
    #[test]
    fn writes_of_a_card_that_does_not_permit_posting_are_not_posted() {
        for posted_writes in [false, true] {
            let connection = connected("/c", Functions { posted_writes, ..functions(0, Topology::Together) });
            let [pf] = &devices(&connection.qemu)[..] else { panic!("{:?}", connection.qemu) };
            assert_eq!(pf.get("x-no-posted-writes"), (!posted_writes).then_some(&true.into()));
        }
    }

    #[test]
    fn vf_guests_have_only_their_vf() {
        let split = connection("/c", 2, Topology::Split);
        let paths = |arguments: &[String]| -> Vec<String> {
            devices(arguments).iter().map(|device| device["socket"]["path"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(paths(&split.qemu), ["/c/pf.sock", "/c/vf1-config-only.sock", "/c/vf2-config-only.sock"]);
        assert_eq!(split.qemu_vfs.iter().map(|vf| paths(vf)).collect::<Vec<_>>(), [["/c/vf1.sock"], ["/c/vf2.sock"]]);
        assert!(split.text().contains("once the PF's guest has enabled it"));
        let provisioned = connection("/c", 2, Topology::Provisioned);
        assert!(provisioned.qemu.is_empty() && provisioned.sockets.pf.is_none());
        assert_eq!((provisioned.qemu_vfs.len(), provisioned.text().contains("/c/vf1.sock")), (2, true));
    }
}
