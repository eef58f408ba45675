// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! QEMU's arguments for a machine in which the card works, and for the card's functions as its devices. `arctic boot`,
//! `arctic qemu` and the arguments that `arctic serve` prints have them in common.

use std::ffi::OsString;
use std::path::Path;

use crate::image::compute::SERIAL;
use crate::path;

/// Processor of a guest. With QEMU's default of 40 address bits the firmware leaves too little address space for the
/// card's BARs.
pub const PROCESSOR: &str = "max,phys-bits=46";

/// Kernel arguments of a guest with its console on the first serial port. `no_timer_check`: the kernel's timer test
/// expects 4 ticks in about 60 ms of host time and panics otherwise, which happens on a busy host; kernels on KVM,
/// Hyper-V and VMware skip the test for the same reason.
pub const KERNEL_ARGUMENTS: &str = "console=ttyS0,115200 tsc=reliable no_timer_check";

/// Property of vfio-user-pci: the guest's CPU waits until a write to a BAR is complete.
const NO_POSTED_WRITES: &str = "x-no-posted-writes";

/// Slot of the card in a guest with devices of the user: QEMU assigns slots from 1 on to disks, NICs and other devices
/// without an explicit address before the card's functions. With 63 VFs the last slot is 17 (hex).
const FREE_SLOT: u8 = 0x10;
/// Slot of a second card in such a guest: with 63 VFs the last slot is f (hex).
const SECOND_SLOT: u8 = 8;
/// Slot of an integrated GPU, as on hardware.
const INTEGRATED_SLOT: u8 = 2;
/// Slot of the card in the guests of `arctic boot`.
const FIRST_SLOT: u8 = 1;

/// Where a guest's firmware places the 64-bit BARs of the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarSpace {
    /// Above 4 GiB: BARs of many GiB.
    High,
    /// Below 4 GiB: those of an integrated GPU, as firmware of its time does. 32-bit systems and boot loaders have no
    /// access to addresses above.
    Low,
}

impl BarSpace {
    /// The space of a card that is an integrated GPU or not.
    pub fn of(integrated: bool) -> Self {
        if integrated { Self::Low } else { Self::High }
    }

    /// QEMU's arguments. High BARs need more space than QEMU's bridge has by default. With that space QEMU moves the memory
    /// above 4 GiB of a guest with an AMD processor to 1 TiB (the range of HyperTransport is in the way), where a Flex card
    /// reaches it, but no integrated GPU, which has 40 address bits. SeaBIOS (1.17 and later) uses the space above 4 GiB if
    /// the machine has memory there, unless `pci64` is off; OVMF, if the space has a size.
    fn arguments(self) -> &'static [[&'static str; 2]] {
        match self {
            Self::High => &[["-global", "q35-pcihost.pci-hole64-size=4T"]],
            Self::Low => &[
                ["-fw_cfg", "name=opt/org.seabios/pci64,string=off"],
                ["-fw_cfg", "name=opt/ovmf/X-PciMmio64Mb,string=0"],
            ],
        }
    }
}

/// Arguments for a machine with `memory` MiB and a `processor`, without the card, whose BARs are in `bars`. Memory must be
/// shared, otherwise the card reads zeros.
pub fn machine(memory: u32, processor: &str, bars: BarSpace) -> Vec<String> {
    let size = match memory {
        gib if gib.is_multiple_of(1024) => format!("{}G", gib / 1024),
        mib => format!("{mib}M"),
    };
    let object = format!("memory-backend-memfd,id=ram,size={size},share=on");
    [["-machine", "q35,memory-backend=ram"], ["-object", &object], ["-m", &size], ["-cpu", processor]]
        .as_flattened()
        .iter()
        .chain(bars.arguments().as_flattened())
        .map(ToString::to_string)
        .collect()
}

/// QEMU's ID of what has this `name` in the arguments of the first card of a guest, for card `number`: `pf`, `card2-pf`.
pub fn id(number: u8, name: &str) -> String {
    match number {
        0 | 1 => name.to_owned(),
        _ => format!("card{number}-{name}"),
    }
}

/// Chassis of the root port: not one of those that users and libvirt count from 1.
const CHASSIS: u8 = 239;

/// The root port that has the card behind it, on the root bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootPort {
    /// Device and function number of the port.
    devfn: u8,
    /// Number of the card among those of the guest, from 1: its slot in the chassis.
    card: u8,
    window: Window,
}

/// The address space that BARs need, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Of prefetchable BARs, above 4 GiB.
    pub prefetchable: u64,
    /// Of other memory BARs. Behind a bridge these are below 4 GiB.
    pub other: u64,
}

impl RootPort {
    fn id(self) -> String {
        match self.card {
            0 | 1 => "card-port".into(),
            number => id(number, "port"),
        }
    }

    /// QEMU's arguments for the port. Firmware sizes the windows of a bridge by the BARs that it finds, and VF BARs, which
    /// are in the SR-IOV capability, are not among them. All functions are on one bus, so no further bus numbers are
    /// reserved.
    fn arguments(self) -> [String; 2] {
        let (slot, function) = (self.devfn >> 3, self.devfn & 7);
        let (id, card) = (self.id(), self.card);
        let mut port =
            format!("pcie-root-port,id={id},bus=pcie.0,addr={slot:x}.{function},chassis={CHASSIS},slot={card}");
        for (name, bytes) in [("pref64-reserve", self.window.prefetchable), ("mem-reserve", self.window.other)] {
            // Firmware rounds a window up to its alignment, which is at most its largest BAR.
            let Some(bytes) = (bytes != 0).then(|| bytes.next_power_of_two()) else { continue };
            port += &format!(",{name}={}M", bytes.div_ceil(1 << 20));
        }
        ["-device".into(), port]
    }
}

/// Where the card's functions are in a guest. VFs follow the first function without a gap (First VF Offset 1, VF
/// Stride 1; contract A.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Bus number of the first function.
    pub bus: u8,
    /// Device and function number of the first function.
    pub devfn: u8,
    /// The root port, if the program adds one.
    pub port: Option<RootPort>,
}

impl Place {
    /// On the root bus, in the guests of `arctic boot`: at 00:01.0.
    pub const FIRST: Self = Self::on_root_bus(FIRST_SLOT);
    /// On the root bus, behind the slots that QEMU assigns to devices of the user: at 00:10.0.
    pub const FREE: Self = Self::on_root_bus(FREE_SLOT);
    /// Of a second card on the root bus: at 00:08.0, which leaves the slots up to 0f to its VFs.
    pub const SECOND: Self = Self::on_root_bus(SECOND_SLOT);
    /// An integrated GPU, at 00:02.0.
    pub const INTEGRATED: Self = Self::on_root_bus(INTEGRATED_SLOT);

    const fn on_root_bus(slot: u8) -> Self {
        Self { bus: 0, devfn: slot << 3, port: None }
    }

    /// Behind a root port at this place, which must be on the root bus. The bus has number 1 if no other bridge of the root
    /// bus is at a lower address.
    pub fn behind_port(self, window: Window) -> Self {
        Self { bus: 1, devfn: 0, port: Some(RootPort { devfn: self.devfn, card: 1, window }) }
    }

    /// Behind the root port of card `number` of a guest, from 1, each of which has a port at the slot after that of the one
    /// before. The buses have the numbers of the cards if no other bridge of the root bus is at a lower address.
    pub fn behind_port_of_card(number: u8, window: Window) -> Self {
        let slot = FREE_SLOT.saturating_add(number.saturating_sub(1));
        Self { bus: number, devfn: 0, port: Some(RootPort { devfn: slot << 3, card: number, window }) }
    }

    /// QEMU's arguments for the root port; none without one. They must precede those of the functions.
    pub fn arguments(self) -> Vec<String> {
        self.port.map_or_else(Vec::new, |port| port.arguments().into())
    }

    /// Bus number, and device and function number, of function `index`; 0 is the PF.
    fn of(self, index: u8) -> (u8, u8) {
        let [bus, devfn] = (u16::from_be_bytes([self.bus, self.devfn]).wrapping_add(index.into())).to_be_bytes();
        (bus, devfn)
    }

    /// PCI address of function `index` in the guest, like `0000:00:01.0`.
    pub fn address(self, index: u8) -> String {
        let (bus, devfn) = self.of(index);
        format!("0000:{bus:02x}:{:02x}.{}", devfn >> 3, devfn & 7)
    }

    /// QEMU's name of the bus, and the address on it, of function `index`.
    pub fn on_bus(self, index: u8) -> (String, String) {
        let (bus, devfn) = self.of(index);
        let bus = match (bus, self.port) {
            (_, Some(port)) => port.id(),
            (0, None) => "pcie.0".into(),
            // Behind a root port that the user adds: a placeholder for the port's ID.
            (_, None) => "PORT".into(),
        };
        (bus, format!("{:x}.{}", devfn >> 3, devfn & 7))
    }
}

/// A function of the card as a device of QEMU.
pub struct Device<'a> {
    /// QEMU's ID of the device.
    pub id: &'a str,
    /// QEMU's name of the bus, and the address on it.
    pub at: (&'a str, &'a str),
    /// Path of the function's socket.
    pub socket: &'a str,
    /// Whether other functions of the card may have the same slot.
    pub multifunction: bool,
    /// Whether QEMU may post writes to its BARs.
    pub posted_writes: bool,
}

impl Device<'_> {
    /// Returns `-device` and its value. A socket address can be specified only in the JSON form.
    pub fn arguments(&self) -> [String; 2] {
        let (bus, address) = self.at;
        let mut device = serde_json::json!({
            "driver": "vfio-user-pci", "id": self.id, "bus": bus, "addr": address,
            "socket": { "type": "unix", "path": self.socket },
        });
        if self.multifunction {
            device["multifunction"] = true.into();
        }
        if !self.posted_writes {
            device[NO_POSTED_WRITES] = true.into();
        }
        ["-device".into(), device.to_string()]
    }
}

/// QEMU's arguments for a read-only drive with the compute stack at slot `address`.
pub fn compute_drive(image: &Path, address: &str) -> [OsString; 4] {
    let device = format!("virtio-blk-pci,drive=compute,serial={SERIAL},addr={address}");
    let drive = path::in_option("file=", image, ",format=raw,if=none,id=compute,readonly=on");
    ["-drive".into(), drive, "-device".into(), device.into()]
}

/// An argument, quoted for a shell if necessary.
pub fn quoted(argument: &str) -> String {
    if !argument.is_empty() && argument.chars().all(|c| c.is_ascii_alphanumeric() || "-_=,.:/+".contains(c)) {
        return argument.into();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

/// Arguments for a shell: each option with its value on a line of its own.
pub fn lines(arguments: &[String]) -> String {
    let mut text = String::new();
    for argument in arguments {
        let is_option = argument.starts_with('-') && argument.len() > 1;
        match (text.is_empty(), is_option) {
            (true, _) => {}
            (false, true) => text.push_str(" \\\n  "),
            (false, false) => text.push(' '),
        }
        text.push_str(&quoted(argument));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_for_the_shell() {
        assert_eq!(quoted("q35,memory-backend=ram"), "q35,memory-backend=ram");
        assert_eq!(quoted(r#"{"a":"it's"}"#), r#"'{"a":"it'\''s"}'"#);
        assert_eq!((quoted("a b"), quoted("")), ("'a b'".into(), "''".into()));
        let arguments = ["-nodefaults", "-m", "4G", "-append", "a b", "disk"].map(String::from);
        assert_eq!(lines(&arguments), "-nodefaults \\\n  -m 4G \\\n  -append 'a b' disk");
    }

    #[test]
    fn memory_is_shared_and_of_the_size_of_the_machine() {
        for (memory, size) in [(4096, "4G"), (2048, "2G"), (1500, "1500M")] {
            let text = machine(memory, PROCESSOR, BarSpace::High).join(" ");
            assert!(text.contains(&format!("id=ram,size={size},share=on -m {size} -cpu max,phys-bits=46")), "{text}");
            assert!(text.ends_with("-global q35-pcihost.pci-hole64-size=4T"), "{text}");
        }
    }

    /// Firmware is asked not to use the space above 4 GiB, whatever the memory is.
    #[test]
    fn the_bars_of_an_integrated_gpu_are_below_4_gib() {
        let text = machine(8192, PROCESSOR, BarSpace::of(true)).join(" ");
        for option in ["opt/org.seabios/pci64,string=off", "opt/ovmf/X-PciMmio64Mb,string=0"] {
            assert!(text.contains(&format!("-fw_cfg name={option}")), "{text}");
        }
        assert!(!text.contains("hole64"), "{text}");
        assert_eq!(BarSpace::of(false), BarSpace::High);
    }

    /// First VF Offset and VF Stride are 1: VF 63 of a PF at 00:01.0 is at 00:08.7, of a PF at 00:10.0 at 00:17.7.
    #[test]
    fn functions_follow_the_first_one_without_a_gap() {
        let addresses = |place: Place| [0, 1, 7, 8, 63].map(|index| place.address(index));
        let wanted = |ends: [&str; 5]| ends.map(|end| format!("0000:{end}"));
        assert_eq!(addresses(Place::FIRST), wanted(["00:01.0", "00:01.1", "00:01.7", "00:02.0", "00:08.7"]));
        assert_eq!(addresses(Place::FREE), wanted(["00:10.0", "00:10.1", "00:10.7", "00:11.0", "00:17.7"]));
        assert_eq!(Place::FIRST.address(0), arctic_guest_agent::pci_address::CARD_ADDRESS);
        assert_eq!(Place::FREE.on_bus(9), ("pcie.0".into(), "11.1".into()));
        assert_eq!(Place::INTEGRATED.address(0), "0000:00:02.0");
        assert_eq!(Place { bus: 3, devfn: 0, port: None }.on_bus(0), ("PORT".into(), "0.0".into()));
    }

    /// VFs follow the PF on the port's bus, and the window has room for their BARs. BARs that are not prefetchable have a
    /// window of their own.
    #[test]
    fn a_root_port_has_all_functions_on_its_bus_and_windows_for_their_bars() {
        let window = Window { prefetchable: (24 << 30) + 1, other: 0 };
        let place = Place::FIRST.behind_port(window);
        let port = "pcie-root-port,id=card-port,bus=pcie.0,addr=1.0,chassis=239,slot=1,pref64-reserve=32768M";
        assert_eq!(place.arguments(), ["-device", port]);
        assert_eq!(
            [0, 8, 63].map(|index| place.address(index)),
            ["01:00.0", "01:01.0", "01:07.7"].map(|end| format!("0000:{end}"))
        );
        let on_port = |address: &str| ("card-port".to_owned(), address.to_owned());
        assert_eq!((place.on_bus(0), place.on_bus(63)), (on_port("0.0"), on_port("7.7")));
        assert_eq!(Place::behind_port_of_card(1, window), Place::FREE.behind_port(window));
        let window = Window { prefetchable: 1 << 30, other: 48 << 20 };
        let [_, port] = &Place::FREE.behind_port(window).arguments()[..] else { panic!("two arguments") };
        assert!(port.contains(",addr=10.0,") && port.ends_with(",pref64-reserve=1024M,mem-reserve=64M"), "{port}");
        assert!(Place::FREE.arguments().is_empty());
    }

    /// QEMU waits for writes to BARs only if the card does not permit posted ones.
    #[test]
    fn writes_are_posted_only_to_a_card_that_permits_it() {
        for posted_writes in [false, true] {
            let at = ("pcie.0", "2.0");
            let device = Device { id: "pf", at, socket: "/c/pf.sock", multifunction: false, posted_writes };
            let [option, value] = device.arguments();
            let value: serde_json::Value = serde_json::from_str(&value).unwrap();
            assert_eq!((option.as_str(), value.get("multifunction")), ("-device", None));
            assert_eq!(value.get(NO_POSTED_WRITES), (!posted_writes).then_some(&true.into()));
        }
    }
}
