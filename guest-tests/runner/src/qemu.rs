// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A VM with the card: QEMU's command line, and the running process with its ports.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::artifacts::{Kernel, Qemu};
use crate::devices::{self, BarSpace, Device, KERNEL_ARGUMENTS, Place};
use crate::driver::Driver;
use crate::monitor::Monitor;
use crate::path;
use crate::process::Child;
use crate::tsc;
use crate::viommu::{self, Viommu};

/// Slots outside 1.0 to 8.7, which are reserved for the card and its VFs.
const SERIAL_SLOT: &str = "1c.0";
const RESULTS_SLOT: &str = "1d.0";
const SHARE_SLOT: &str = "1e.0";
const COMPUTE_SLOT: &str = "1a.0";

/// Kernel arguments of every guest: all messages are printed on the console, so that the log is complete even after a
/// crash.
const LOG_ARGUMENTS: &str = "ignore_loglevel panic=1";

/// The processors of a guest.
struct Processor {
    model: &'static str,
    count: &'static str,
}

/// The processors of a guest without inner guests.
const PLAIN: Processor = Processor { model: devices::PROCESSOR, count: "2" };
/// A model for which QEMU emulates virtualisation (AMD SVM with nested paging), and one processor: with two, one nested
/// run in three ends in a triple fault without a message (see [`crate::nested`]).
const NESTING: Processor = Processor { model: "EPYC,+svm,+npt,phys-bits=46", count: "1" };

/// The virtual IOMMU of a guest that passes VFs on. vfio requires interrupt remapping. `caching-mode` makes the kernel
/// announce each mapping, which QEMU forwards to the card.
const IOMMU: &str = "intel-iommu,intremap=on,caching-mode=on";
/// With `iommu=pt` the PF is not translated. The card programs the VF BARs through the PF's address space, in which the
/// kernel maps no ECAM.
const IOMMU_ARGUMENTS: &str = "intel_iommu=on iommu=pt";

/// Configuration of a VM.
#[derive(Debug)]
pub struct Machine<'a> {
    /// The QEMU to use.
    pub qemu: &'a Qemu,
    /// The firmware; if `None`, QEMU's default.
    pub bios: Option<&'a Path>,
    /// The kernel to boot.
    pub kernel: &'a Kernel,
    /// The initramfs; may be an unnamed file.
    pub image: &'a File,
    /// Guest memory in MiB.
    pub memory: u32,
    /// The vfio-user sockets of the card's functions, at consecutive addresses; empty for a VM without a card.
    pub functions: &'a [PathBuf],
    /// Where the functions are in the guest.
    pub place: Place,
    /// Host directory mounted on /mnt.
    pub results: &'a Path,
    /// Host directory mounted on /share.
    pub share: Option<&'a Path>,
    /// Image of a read-only drive with the compute stack.
    pub compute: Option<&'a Path>,
    /// The guest's driver for the card.
    pub driver: Driver,
    /// PCI device ID of the card.
    pub device: u16,
    /// Whether the card is an integrated GPU.
    pub integrated: bool,
    /// Whether QEMU may post writes to the card's BARs.
    pub posted_writes: bool,
    /// Whether the guest passes VFs on to inner guests.
    pub passthrough: bool,
    /// An IOMMU that translates the functions.
    pub viommu: Option<Viommu>,
    /// The socket of the function that programs the VF BARs, if the card has it.
    pub requester: Option<&'a Path>,
    /// Additional arguments of QEMU, separated by white space. They follow those for processor and memory, and precede
    /// the devices.
    pub further: &'a str,
    /// TSC frequency of the guest in kHz, if known ([`tsc::host_khz`]).
    pub tsc_khz: Option<u32>,
    /// Whether the VM has a monitor.
    pub monitored: bool,
    /// Additional kernel arguments, placed last so that they take precedence.
    pub append: &'a str,
    /// File for the complete kernel log.
    pub console: &'a Path,
    /// File for QEMU's own messages.
    pub messages: &'a Path,
}

/// A port of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Port {
    /// Lines from init and the job script.
    Control,
    /// The job's stdout.
    Output,
    /// The job's stderr.
    Errors,
    /// Lines from the test agent.
    Agent,
    /// The interactive console, hvc0; the only port to which the host writes.
    Terminal,
}

impl Port {
    const ALL: [Self; 5] = [Self::Control, Self::Output, Self::Errors, Self::Agent, Self::Terminal];

    /// The port's name in the guest's /dev/virtio-ports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Output => "output",
            Self::Errors => "errors",
            Self::Agent => "agent",
            Self::Terminal => "terminal",
        }
    }

    fn in_lines(self) -> bool {
        matches!(self, Self::Control | Self::Agent)
    }
}

/// Output of the VM: a line without its terminator, or a chunk of a byte stream.
#[derive(Debug)]
pub struct Event {
    /// The port that sent it.
    pub port: Port,
    /// The data.
    pub bytes: Vec<u8>,
    /// Time of reception.
    pub at: Instant,
}

/// A running VM. Dropping it terminates the VM.
pub struct Running {
    /// The QEMU process.
    pub process: Child,
    /// The output of the VM; disconnected once QEMU has exited.
    pub events: Receiver<Event>,
    /// The host's end of the interactive console.
    pub terminal: UnixStream,
    /// Its monitor, if it has one.
    pub monitor: Option<Monitor>,
}

impl Machine<'_> {
    fn arguments(&self, ports: &[(Port, RawFd)], monitor: Option<RawFd>) -> Result<Vec<OsString>> {
        let processor = if self.passthrough { &NESTING } else { &PLAIN };
        let machine = devices::machine(self.memory, processor.model, BarSpace::of(self.integrated));
        let mut arguments: Vec<OsString> = machine.into_iter().map(OsString::from).collect();
        arguments.extend(["-accel", "tcg", "-smp", processor.count].map(OsString::from));
        for flag in ["-nodefaults", "-no-user-config", "-no-reboot"] {
            arguments.push(flag.into());
        }
        let mut add = |option: &str, value: OsString| {
            arguments.push(option.into());
            arguments.push(value);
        };
        add("-display", "none".into());
        add("-kernel", self.kernel.image.clone().into());
        add("-initrd", format!("/proc/self/fd/{}", self.image.as_raw_fd()).into());
        add("-append", self.command_line().into());
        if self.passthrough {
            // Before the functions: QEMU assigns the address space of an IOMMU to devices that are created after it.
            add("-device", IOMMU.into());
        }
        for [option, value] in self.viommu.map_or_else(Default::default, Viommu::arguments) {
            add(option, (*value).into());
        }
        if let Some(bios) = self.bios {
            add("-bios", bios.into());
        }
        arguments.extend(self.further.split_whitespace().map(OsString::from));
        let mut add = |option: &str, value: OsString| {
            arguments.push(option.into());
            arguments.push(value);
        };
        add("-chardev", path::in_option("file,id=console,path=", self.console, ""));
        add("-serial", "chardev:console".into());
        add("-device", format!("virtio-serial-pci,id=ports,addr={SERIAL_SLOT}").into());
        for (port, fd) in ports {
            let name = port.name();
            add("-chardev", format!("socket,id={name},fd={fd}").into());
            let kind = if *port == Port::Terminal { "virtconsole" } else { "virtserialport" };
            add("-device", format!("{kind},bus=ports.0,chardev={name},name={name}").into());
        }
        if let Some(fd) = monitor {
            add("-chardev", format!("socket,id=monitor,fd={fd}").into());
            add("-mon", "chardev=monitor,mode=control".into());
        }
        let shares = [("results", Some(self.results), RESULTS_SLOT), ("share", self.share, SHARE_SLOT)];
        for (tag, folder, slot) in shares {
            let Some(folder) = folder else { continue };
            let options = ",security_model=none,multidevs=remap";
            add("-fsdev", path::in_option(&format!("local,id={tag},path="), folder, options));
            add("-device", format!("virtio-9p-pci,fsdev={tag},mount_tag={tag},addr={slot}").into());
        }
        if let Some(image) = self.compute {
            arguments.extend(devices::compute_drive(image, COMPUTE_SLOT));
        }
        if !self.functions.is_empty() {
            arguments.extend(self.place.arguments().into_iter().map(OsString::from));
        }
        for (index, socket) in (0..).zip(self.functions) {
            let (bus, address) = self.place.on_bus(index);
            let device = Device {
                id: &format!("function{index}"),
                at: (&bus, &address),
                socket: path::in_json(socket)?,
                multifunction: true,
                posted_writes: self.posted_writes,
            };
            arguments.extend(device.arguments().map(OsString::from));
        }
        if let Some(socket) = self.requester {
            arguments.extend(viommu::requester(path::in_json(socket)?).into_iter().map(OsString::from));
        }
        Ok(arguments)
    }

    /// Returns the kernel's command line.
    fn command_line(&self) -> String {
        let clock = tsc::arguments(self.tsc_khz, self.kernel.hz);
        // No other driver knows an integrated GPU.
        let blocked = if self.integrated { String::new() } else { self.driver.blocked_others(self.device) };
        let iommu = match self.viommu {
            Some(viommu) => viommu.kernel_argument(),
            None if self.passthrough => IOMMU_ARGUMENTS,
            None => "",
        };
        let parts = [KERNEL_ARGUMENTS, LOG_ARGUMENTS, &clock, &blocked, iommu, self.append.trim()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// Starts the VM.
    pub fn start(&self) -> Result<Running> {
        let (sender, events) = channel();
        let mut theirs = Vec::new();
        let mut terminal = None;
        for port in Port::ALL {
            let (ours, qemus) = UnixStream::pair().context("no socket pair for the guest's ports")?;
            if port == Port::Terminal {
                terminal = Some(ours.try_clone()?);
            }
            let sender = sender.clone();
            thread::spawn(move || read_port(port, ours, &sender));
            theirs.push((port, qemus));
        }
        let fds: Vec<(Port, RawFd)> = theirs.iter().map(|(port, socket)| (*port, socket.as_raw_fd())).collect();
        let (monitor, qemus_monitor) = match self.monitored {
            true => {
                let (ours, qemus) = UnixStream::pair().context("no socket pair for QEMU's monitor")?;
                (Some(Monitor::new(ours)?), Some(qemus))
            }
            false => (None, None),
        };
        let monitor_fd = qemus_monitor.as_ref().map(AsRawFd::as_raw_fd);
        let messages =
            File::create(self.messages).with_context(|| format!("{} cannot be created", self.messages.display()))?;
        let mut command = self.qemu.command();
        command.args(self.arguments(&fds, monitor_fd)?);
        command.stdin(Stdio::null()).stdout(messages.try_clone()?).stderr(messages);
        let ports = fds.iter().map(|(_, fd)| *fd);
        inherit(&mut command, ports.chain([self.image.as_raw_fd()]).chain(monitor_fd).collect());
        let process = Child::spawn(&mut command, "QEMU")?;
        let terminal = terminal.context("the VM has no terminal port")?;
        Ok(Running { process, events, terminal, monitor })
    }
}

/// Makes the child inherit `fds` across exec.
fn inherit(command: &mut Command, fds: Vec<RawFd>) {
    // SAFETY: the closure runs between fork and exec and calls only fcntl, which is async-signal-safe. The fds are open
    // in the parent until after the spawn.
    unsafe {
        command.pre_exec(move || match fds.iter().all(|fd| libc::fcntl(*fd, libc::F_SETFD, 0) == 0) {
            true => Ok(()),
            false => Err(io::Error::last_os_error()),
        });
    }
}

fn read_port(port: Port, mut socket: UnixStream, sender: &Sender<Event>) {
    if port.in_lines() {
        for line in BufReader::new(socket).split(b'\n').map_while(Result::ok) {
            if sender.send(Event { port, bytes: line, at: Instant::now() }).is_err() {
                return;
            }
        }
        return;
    }
    let mut buffer = [0; 16384];
    while let Ok(length @ 1..) = socket.read(&mut buffer) {
        if sender.send(Event { port, bytes: buffer[..length].to_vec(), at: Instant::now() }).is_err() {
            return;
        }
    }
}

/// Returns the path of a guest's log file in the directory of a run; `number` counts boots from 1.
pub fn log_file(folder: &Path, what: &str, number: u32) -> PathBuf {
    match number {
        1 => folder.join(format!("{what}.log")),
        _ => folder.join(format!("{what}.{number}.log")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn kernel(image: impl Into<PathBuf>) -> Kernel {
        let own_modules = BTreeMap::new();
        Kernel { image: image.into(), modules: "/m".into(), release: "7.2".into(), hz: Some(250), own_modules }
    }

    fn machine<'a>(qemu: &'a Qemu, kernel: &'a Kernel, image: &'a File, functions: &'a [PathBuf]) -> Machine<'a> {
        Machine {
            qemu,
            bios: None,
            kernel,
            image,
            memory: 1024,
            functions,
            place: Place::FIRST,
            results: Path::new("/r"),
            share: None,
            compute: None,
            tsc_khz: None,
            append: "",
            driver: Driver::Xe,
            device: 0x56c0,
            integrated: false,
            posted_writes: true,
            passthrough: false,
            viommu: None,
            requester: None,
            further: "",
            monitored: false,
            console: Path::new("/c"),
            messages: Path::new("/q"),
        }
    }

    /// QEMU gives an IOMMU's address space to devices that are created after it. Options of the user follow the
    /// program's own for processor and memory, and replace them.
    #[test]
    fn the_iommu_and_the_users_options_precede_the_devices() {
        let qemu = Qemu::default();
        let kernel = kernel("/k");
        let image = File::open("/dev/null").unwrap();
        let functions = [PathBuf::from("/s/pf.sock")];
        let mut machine = machine(&qemu, &kernel, &image, &functions);
        machine.further = "-bios  /ovmf -m 3G";
        machine.compute = Some(Path::new("/a,b.ext4"));
        for (viommu, name) in [(Viommu::Intel, "intel-iommu,"), (Viommu::Amd, "amd-iommu,")] {
            machine.viommu = Some(viommu);
            machine.requester = Some(Path::new("/s/ecam.sock"));
            let arguments: Vec<String> =
                machine.arguments(&[], None).unwrap().into_iter().map(|word| word.into_string().unwrap()).collect();
            let position = |text: &str| arguments.iter().position(|word| word.contains(text)).expect(text);
            let order = [
                "memory-backend-memfd",
                name,
                "/ovmf",
                "virtio-serial-pci",
                "file=/a,,b.ext4,format=raw",
                "pf.sock",
                "pxb-pcie,",
                "ecam.sock",
            ];
            assert!(order.iter().map(|text| position(text)).is_sorted(), "{arguments:?}");
            assert!(arguments.join(" ").contains("-bios /ovmf -m 3G"), "{arguments:?}");
        }
    }

    /// G67-003: an integrated GPU is at 2.0. Its driver gets no options.
    #[test]
    fn an_integrated_gpu_is_where_hardware_has_it() {
        let qemu = Qemu::default();
        let kernel = kernel("/k");
        let image = File::open("/dev/null").unwrap();
        let functions = [PathBuf::from("/s/pf.sock")];
        let machine =
            Machine { integrated: true, place: Place::INTEGRATED, ..machine(&qemu, &kernel, &image, &functions) };
        let arguments = machine.arguments(&[], None).unwrap();
        let all: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
        assert!(all.iter().any(|word| word.contains("\"addr\":\"2.0\"")), "{all:?}");
        assert!(!all.iter().any(|word| word.contains("force_probe")), "{all:?}");
        assert!(all.iter().any(|word| word.contains("pci64,string=off")), "{all:?}");
    }

    #[test]
    fn log_files_of_later_boots_have_numbers() {
        assert_eq!(log_file(Path::new("/r"), "console", 1), Path::new("/r/console.log"));
        assert_eq!(log_file(Path::new("/r"), "console", 2), Path::new("/r/console.2.log"));
    }

    /// The PF is at 1.0, VF n at the n-th function after it, VF 63 at 8.7. Every device is multifunction, on the root
    /// bus and in the JSON form.
    #[test]
    fn functions_follow_the_physical_one_without_a_gap() {
        let image = tempfile::tempfile().unwrap();
        let qemu = Qemu::default();
        let kernel = kernel("/k");
        let functions: Vec<PathBuf> = (0..64).map(|index| format!("/tmp/{index}.sock").into()).collect();
        let machine = Machine {
            tsc_khz: Some(2_445_422),
            append: " tsc_early_khz=1000000 ",
            ..machine(&qemu, &kernel, &image, &functions)
        };
        let arguments = machine.arguments(&[], None).unwrap();
        // The guest's clock uses the host's TSC frequency. User-supplied arguments are last.
        let command_line = "console=ttyS0,115200 tsc=reliable no_timer_check ignore_loglevel panic=1 \
            tsc_early_khz=2445422 lpj=9781688 i915.force_probe=!56c0 tsc_early_khz=1000000";
        let at = arguments.iter().position(|argument| argument == "-append").unwrap();
        assert_eq!(arguments[at + 1], command_line);
        let devices: Vec<serde_json::Value> = arguments
            .iter()
            .filter_map(|argument| argument.to_str().filter(|text| text.starts_with('{')))
            .map(|text| serde_json::from_str(text).unwrap())
            .collect();
        assert_eq!(devices.len(), 64);
        let text = |argument: &OsString| argument.to_string_lossy().into_owned();
        assert!(!arguments.iter().any(|argument| text(argument).contains("iommu")));
        // The IOMMU precedes the functions.
        let nested = Machine { passthrough: true, append: "iommu.strict=1", ..machine }.arguments(&[], None).unwrap();
        let nested: Vec<String> = nested.iter().map(text).collect();
        let position = |start: &str| nested.iter().position(|argument| argument.starts_with(start)).unwrap();
        assert!(position("intel-iommu") < position("{"));
        assert_eq!(nested[position("-smp") + 1], "1");
        let command_line = &nested[position("-append") + 1];
        assert!(command_line.ends_with("intel_iommu=on iommu=pt iommu.strict=1"), "{command_line}");
        for (device, (index, addr)) in
            [0, 1, 8, 63].map(|n| &devices[n]).iter().zip([(0, "1.0"), (1, "1.1"), (8, "2.0"), (63, "8.7")])
        {
            assert_eq!((&device["addr"], &device["bus"]), (&addr.into(), &"pcie.0".into()));
            assert_eq!((&device["driver"], &device["multifunction"]), (&"vfio-user-pci".into(), &true.into()));
            assert_eq!(device["socket"]["path"], format!("/tmp/{index}.sock"));
        }
    }

    /// QEMU receives each path byte by byte; a socket path that JSON cannot contain is an error.
    #[test]
    fn paths_reach_qemu_unchanged_or_are_refused() {
        let bad = Path::new(OsStr::from_bytes(b"/bad\xff,x"));
        let (qemu, image) = (Qemu::default(), tempfile::tempfile().unwrap());
        let kernel = kernel(bad);
        let machine =
            |functions| Machine { share: Some(bad), console: bad, ..machine(&qemu, &kernel, &image, functions) };
        let arguments = machine(&[]).arguments(&[], None).unwrap();
        let has = |wanted: &[u8]| arguments.iter().any(|argument| argument.as_bytes() == wanted);
        assert!(has(b"/bad\xff,x") && has(b"file,id=console,path=/bad\xff,,x"), "{arguments:?}");
        assert!(has(b"local,id=share,path=/bad\xff,,x,security_model=none,multidevs=remap"), "{arguments:?}");
        let error = machine(&[bad.join("pf.sock")]).arguments(&[], None).unwrap_err().to_string();
        assert!(error.contains("is not UTF-8"), "{error}");
    }
}
