// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic qemu`: starts the card and a QEMU that is connected to it, with a guest of the user.

use std::ffi::OsString;
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use arctic_gpu::card::Topology;
use arctic_guest_runner::artifacts::{self, Qemu};
use arctic_guest_runner::cache::Cache;
use arctic_guest_runner::card;
use arctic_guest_runner::devices::{BarSpace, KERNEL_ARGUMENTS, Place, lines, quoted};
use arctic_guest_runner::guest_process::{Options, Server};
use arctic_guest_runner::process::{Child, POLL_INTERVAL};
use arctic_guest_runner::progress::{Progress, StderrProgress};
use arctic_guest_runner::viommu::Viommu;
use arctic_guest_runner::{devices, image, interrupt, path, skipped, terminal, tsc};

use super::boot::{failure, package};
use super::card_args::{CardArgs, VfArgs};
use super::quantity::quantity;
use super::serve::connection::{self, Connection, Functions};
use super::stdout::{complain, print};
use super::usage;
use crate::run_dir::OPERATOR;

/// Start a card and QEMU with any guest: a disk image, a kernel with an initrd, or what QEMU's own arguments describe.
///
/// The card is served as by `arctic serve`. QEMU is the one that `arctic boot` downloads and caches; --qemu replaces it.
/// The guest has the card at 00:10.0 (an integrated GPU at 00:02.0), with --pci-port at 01:00.0, its VFs behind it, and no
/// display and no network, which arguments after -- add: `-nic user,model=virtio`, `-vga std -display gtk`. It is emulated (TCG); `-accel kvm`
/// after -- uses KVM. The guest's kernel needs the options in docs/own-kernel.md, and its /lib/firmware the files that
/// `arctic firmware` writes; docs/own-guest.md makes a disk image with both.
///
/// The guest's first serial port is on this terminal, for a kernel with console=ttyS0. Ctrl-C goes to the guest; Ctrl-A X
/// ends QEMU, Ctrl-A C changes between the guest and QEMU's monitor. Without a terminal on stdin, and with --no-console,
/// Ctrl-C ends QEMU and the card.
///
/// QEMU refuses to migrate or save the machine, because it does not transfer the state of the card.
///
/// At the end the number of trapped accesses, the registers that the card does not model and the directory of the logs are printed; the
/// card's log there has each access if RUST_LOG=arctic_gpu=trace is set.
///
/// With --print nothing is started: the output is the command line of the card and that of QEMU, which is downloaded if the cache
/// does not have it.
///
/// The exit status is QEMU's, 130 after an interruption.
#[derive(clap::Args)]
#[command(
    group(clap::ArgGroup::new("guest").required(true).multiple(true).args(["disk", "kernel", "arguments"])),
    after_help = "Examples:\n  \
    arctic qemu --disk guest.qcow2\n  \
    arctic qemu --disk guest.img --vfs 2 --memory 8192 -- -accel kvm -nic user,model=virtio\n  \
    arctic qemu --kernel vmlinuz --initrd initrd.img --disk guest.img --append 'root=/dev/vda xe.force_probe=56c0'\n  \
    arctic qemu --card ivb --disk guest.img --firmware ovmf\n  \
    arctic qemu --no-console -- -cdrom debian.iso -vga std -display gtk\n  \
    arctic qemu --disk guest.img --print"
)]
pub struct Args {
    #[command(flatten)]
    card: CardArgs,
    #[command(flatten)]
    vfs: VfArgs,
    /// Disk image, the guest's /dev/vda: qcow2 if the name ends with .qcow2, else raw. The guest writes to it (`-- -snapshot`
    /// discards what it writes)
    #[arg(long, value_name = "IMAGE")]
    disk: Option<PathBuf>,
    /// Kernel (bzImage, vmlinuz), which QEMU loads instead of the disk's boot loader
    #[arg(long, value_name = "FILE")]
    kernel: Option<PathBuf>,
    /// Initial RAM disk of the kernel
    #[arg(long, value_name = "FILE", requires = "kernel")]
    initrd: Option<PathBuf>,
    /// Arguments of the kernel, after the program's own for the console, the clocks and --viommu
    #[arg(long, value_name = "ARGS", requires = "kernel", default_value = "", allow_hyphen_values = true)]
    append: String,
    /// The guest's firmware
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Firmware::Seabios)]
    firmware: Firmware,
    /// Memory of the guest in MiB
    #[arg(long, value_name = "MIB", default_value_t = connection::MEMORY,
        value_parser = quantity::<u32>("MiB", 64..=u32::MAX.into()))]
    memory: u32,
    /// Processors of the guest
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = quantity::<u8>("processors", 1..=255))]
    cpus: u8,
    /// Add a read-only drive with Intel's OpenCL and Level Zero drivers, serial number arctic-compute (docs/compute.md)
    #[arg(long)]
    compute: bool,
    /// Packages of Debian sid, separated by commas, that this drive has besides, with all their dependencies
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "compute", value_parser = package)]
    packages: Vec<String>,
    /// Leave this terminal alone: for a guest with a display, or with serial ports of its own
    #[arg(long)]
    no_console: bool,
    /// Print the command lines of the card and of QEMU, and exit
    #[arg(long)]
    print: bool,
    /// Further arguments of QEMU
    #[arg(last = true, value_name = "QEMU ARGS")]
    arguments: Vec<OsString>,
}

/// Firmware of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Firmware {
    /// BIOS, QEMU's default
    Seabios,
    /// UEFI
    Ovmf,
}

/// Slot of the disk: before those that QEMU gives to the devices of the user's arguments, so that it is /dev/vda.
const DISK_SLOT: &str = "1.0";
/// Slot of the drive with the compute stack.
const COMPUTE_SLOT: &str = "1b.0";
/// Printed if the guest's console is on a terminal.
const CONSOLE: &str = "console     Ctrl-A X ends QEMU, Ctrl-A C is its monitor, Ctrl-C goes to the guest";
/// Time for QEMU to end after SIGTERM.
const END_LIMIT: Duration = Duration::from_secs(10);
/// Returns the directory of the card in the output of --print: in the directory that the environment names for sockets.
fn printed_dir() -> PathBuf {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    let root = variable("XDG_RUNTIME_DIR").or_else(|| variable("TMPDIR")).unwrap_or_else(|| "/tmp".into());
    root.join("arctic-card")
}
/// Name of the drive for which QEMU refuses to migrate, as its error has it.
const REFUSES_MIGRATION: &str = "the-card-cannot-be-migrated";
/// First bytes of a qcow2 image.
const QCOW2: [u8; 4] = *b"QFI\xfb";

/// Runs `arctic qemu`.
pub fn run(args: &Args) -> Result<ExitCode> {
    match launch(args) {
        Ok(code) => Ok(code),
        Err(error) => failure(error),
    }
}

fn launch(args: &Args) -> Result<ExitCode> {
    let mut options = args.options()?;
    let progress = StderrProgress::default();
    for (what, option, file) in [("kernel", "kernel", &args.kernel), ("initial RAM disk", "initrd", &args.initrd)] {
        if let Some(file) = file.as_ref().filter(|file| !file.is_file()) {
            bail!("there is no {what} {}: give the path of an existing file with --{option}", file.display());
        }
    }
    let format = args.disk.as_deref().map(disk_format).transpose()?;
    interrupt::install();
    options.own.uefi = args.firmware == Firmware::Ovmf;
    let cache = Cache::open()?;
    let (qemu, bios) = artifacts::qemu(&options.own, &cache, &progress)?;
    let drive =
        args.compute.then(|| compute_image(&cache, options.own.newest, &args.packages, &progress)).transpose()?;
    let guest = args.guest(format, bios.as_deref(), drive.as_deref(), tsc::host_khz());
    let served = options.served().context("the options have no card")?;
    if args.print {
        let dir = &*printed_dir();
        let serve = std::iter::once(options.program.clone().into()).chain(served.arguments(dir));
        let serve: Vec<String> = serve.map(|word: OsString| quoted(&word.to_string_lossy())).collect();
        let arguments = args.card_arguments(&options, dir).into_iter().map(OsString::from).chain(guest);
        print(format_args!("{}\n\n{}\n", serve.join(" "), command_line(&qemu, arguments)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let logs = cache.new_run("qemu")?;
    let mut server = Server::start(Some(served), &logs.join("card.log"))?;
    let dir = server.folder().context("the server has no card")?.to_owned();
    progress.print_line(&card::line_of_a_card(&dir));
    let mut command = qemu.command();
    command.args(args.card_arguments(&options, &dir)).args(guest);
    let status = args.follow(command, &mut server, &progress);
    // Also after an error: the card ends in order.
    let report = server.stop();
    let status = status?;
    if let Some(report) = report? {
        for (heading, text) in card::access_lines(&report.trapped, &report.unmodelled) {
            complain(format_args!("{heading:<11} {text}"));
        }
        if let Some(line) = skipped::line(&report.skipped_commands, options.integrated) {
            complain(format_args!("skipped     {line}"));
        }
    }
    complain(format_args!("log         {}", logs.display()));
    Ok(exit_code(status))
}

impl Args {
    /// The options of the card and of the program's own QEMU.
    fn options(&self) -> Result<Options> {
        let functions = match self.vfs.vfs {
            Some(vfs) => card::Functions::Together(vfs),
            None => card::Functions::Physical,
        };
        let (options, _) = self.card.options(functions, Place::FREE).map_err(usage)?;
        Ok(options)
    }

    /// QEMU's arguments for the machine and the card, with the card's sockets in `dir`, and for a drive that makes QEMU refuse to
    /// migrate or save the machine. QEMU 11.1 would do so without the state of the card; it has no option that refuses it, but a drive
    /// of this format does, without a device in the guest.
    fn card_arguments(&self, options: &Options, dir: &Path) -> Vec<String> {
        let functions = Functions {
            vfs: options.functions.vfs(),
            topology: Topology::Together,
            place: options.place,
            place_alone: options.place,
            viommu: options.viommu,
            posted_writes: options.posted_writes,
            bars: BarSpace::of(options.integrated),
            memory: self.memory,
            number: 1,
        };
        let mut arguments = Connection::at(String::new(), dir, PathBuf::new().into(), functions).qemu;
        let folder = dir.join(OPERATOR).to_string_lossy().replace(',', ",,");
        let refusing = format!("driver=vvfat,node-name={REFUSES_MIGRATION},read-only=off,rw=on,dir={folder}");
        arguments.extend(["-blockdev".into(), refusing]);
        arguments
    }

    /// QEMU's arguments for the guest: processors, firmware, disk in its `format`, drive with the image `compute`, kernel and
    /// console, then the user's.
    fn guest(
        &self,
        format: Option<&str>,
        bios: Option<&Path>,
        compute: Option<&Path>,
        tsc_khz: Option<u32>,
    ) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = ["-smp".into(), self.cpus.to_string().into()].into();
        let mut add = |option: &str, value: OsString| arguments.extend([option.into(), value]);
        add("-display", "none".into());
        if self.no_console {
            add("-monitor", "none".into());
        } else {
            add("-serial", "mon:stdio".into());
            // The firmware and boot loaders write there, too: without a display adapter they have no other place.
            add("-machine", "graphics=off".into());
        }
        if let Some(bios) = bios {
            add("-bios", bios.into());
        }
        if let (Some(disk), Some(format)) = (&self.disk, format) {
            add("-drive", path::in_option("file=", disk, &format!(",format={format},if=none,id=disk")));
            add("-device", format!("virtio-blk-pci,drive=disk,addr={DISK_SLOT}").into());
        }
        if let Some(image) = compute {
            arguments.extend(devices::compute_drive(image, COMPUTE_SLOT));
        }
        let mut add = |option: &str, value: OsString| arguments.extend([option.into(), value]);
        if let Some(kernel) = &self.kernel {
            add("-kernel", kernel.into());
            if let Some(initrd) = &self.initrd {
                add("-initrd", initrd.into());
            }
            add("-append", self.command_line(tsc_khz).into());
        }
        arguments.extend(self.arguments.iter().cloned());
        arguments
    }

    /// The kernel's command line.
    fn command_line(&self, tsc_khz: Option<u32>) -> String {
        let iommu = self.card.viommu.map_or("", Viommu::kernel_argument);
        // The number of timer ticks per second is not known, as of any kernel without its configuration.
        let parts = [KERNEL_ARGUMENTS, &tsc::arguments(tsc_khz, None), iommu, self.append.trim()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// Starts QEMU and waits until it has exited.
    ///
    /// # Errors
    /// If the program was interrupted, or if the card's server exits before QEMU.
    fn follow(&self, mut command: Command, server: &mut Server, progress: &dyn Progress) -> Result<ExitStatus> {
        // QEMU restores the mode itself, unless it is killed.
        let _mode = terminal::Mode::save()?;
        let mut child = if self.no_console {
            Child::spawn(command.stdin(Stdio::null()), "QEMU")?
        } else {
            if std::io::stdin().is_terminal() {
                progress.print_line(CONSOLE);
            }
            Child::spawn_on_terminal(&mut command, "QEMU")?
        };
        loop {
            let ended = child.ended()?;
            if let Err(error) = interrupt::check() {
                child.stop(END_LIMIT)?;
                return Err(error.into());
            }
            if let Some(status) = ended {
                return Ok(status);
            }
            server.check()?;
            thread::sleep(POLL_INTERVAL);
        }
    }
}

/// The image with the compute stack.
fn compute_image(cache: &Cache, newest: bool, packages: &[String], progress: &dyn Progress) -> Result<PathBuf> {
    let stack = artifacts::compute(cache, newest, packages, progress)?;
    if let Some(note) = stack.note() {
        progress.print_line(&note);
    }
    image::compute::obtain(&stack, &artifacts::busybox(cache, newest, progress)?, cache, progress)
}

/// The format of a disk image, by its name. The contents do not decide: a guest can write the header of another format, in
/// which it names files of the host.
fn disk_format(disk: &Path) -> Result<&'static str> {
    let name = disk.display();
    if !disk.exists() {
        bail!(
            "there is no disk image {name}: give the path of an existing one with --disk (docs/own-guest.md makes one)"
        );
    }
    let mut file = File::open(disk).with_context(|| format!("the disk image {name} cannot be opened"))?;
    let mut start = Vec::new();
    file.by_ref()
        .take(QCOW2.len() as u64)
        .read_to_end(&mut start)
        .with_context(|| format!("the disk image {name} cannot be read"))?;
    match (disk.extension().is_some_and(|extension| extension == "qcow2"), start == QCOW2) {
        (true, _) => Ok("qcow2"),
        (false, false) => Ok("raw"),
        (false, true) => bail!("the disk image {name} has the format qcow2: give it a name that ends with .qcow2"),
    }
}

/// The command line of QEMU for a shell.
fn command_line(qemu: &Qemu, arguments: impl IntoIterator<Item = OsString>) -> String {
    let command = qemu.command();
    let text = |word: &std::ffi::OsStr| word.to_string_lossy().into_owned();
    let environment = command.get_envs().filter_map(|(name, value)| Some((text(name), text(value?))));
    let environment: String = environment.map(|(name, value)| format!("{name}={} ", quoted(&value))).collect();
    let program: Vec<String> =
        std::iter::once(command.get_program()).chain(command.get_args()).map(|word| quoted(&text(word))).collect();
    let arguments: Vec<String> = arguments.into_iter().map(|word| text(&word)).collect();
    format!("{environment}{} \\\n  {}", program.join(" "), lines(&arguments))
}

/// QEMU's exit status; 128 and the signal's number if a signal has ended it.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parse(words: &str) -> Result<Args, clap::Error> {
        Ok(Line::try_parse_from(["qemu"].into_iter().chain(words.split_whitespace()))?.args)
    }

    /// QEMU's arguments with the card's sockets in /c.
    fn arguments(words: &str) -> Vec<String> {
        let args = parse(words).unwrap();
        let options = args.options().unwrap();
        let format = args.disk.is_some().then_some("raw");
        let guest = args.guest(
            format,
            (args.firmware == Firmware::Ovmf).then_some(Path::new("/f")),
            args.compute.then_some(Path::new("/i")),
            Some(2_000_000),
        );
        let card = args.card_arguments(&options, Path::new("/c"));
        card.into_iter().chain(guest.into_iter().map(|word| word.into_string().unwrap())).collect()
    }

    #[test]
    fn a_disk_boots_on_a_machine_for_the_card() {
        let text = arguments("--disk a,b.img").join(" ");
        for part in [
            "-machine q35,memory-backend=ram -object memory-backend-memfd,id=ram,size=4G,share=on -m 4G",
            "-cpu max,phys-bits=46",
            r#"-device {"addr":"10.0","bus":"pcie.0","driver":"vfio-user-pci","id":"pf""#,
            "-blockdev driver=vvfat,node-name=the-card-cannot-be-migrated,read-only=off,rw=on,dir=/c/operator",
            "-smp 2 -display none -serial mon:stdio -machine graphics=off",
            "-drive file=a,,b.img,format=raw,if=none,id=disk -device virtio-blk-pci,drive=disk,addr=1.0",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("-kernel") && !text.contains("-accel") && !text.contains("-bios"), "{text}");
    }

    /// The user's arguments are last, so that they take precedence.
    #[test]
    fn kernel_firmware_memory_and_further_arguments_are_passed() {
        let words =
            "--kernel k --initrd i --append root=/dev/vda --firmware ovmf --memory 1500 --cpus 1 --viommu -- -m 1G";
        let text = arguments(words).join(" ");
        let command_line = "console=ttyS0,115200 tsc=reliable no_timer_check tsc_early_khz=2000000 intel_iommu=on iommu=nopt root=/dev/vda";
        assert!(text.contains("size=1500M,share=on -m 1500M") && text.contains("-smp 1"), "{text}");
        assert!(text.contains("-bios /f -kernel k -initrd i"), "{text}");
        assert!(text.contains("intel-iommu,") && text.ends_with(&format!("-append {command_line} -m 1G")), "{text}");
        let text = arguments("--disk a --compute").join(" ");
        let drive = "-drive file=/i,format=raw,if=none,id=compute,readonly=on -device virtio-blk-pci,drive=compute,serial=arctic-compute,addr=1b.0";
        assert!(text.contains(drive), "{text}");
        let text = arguments("--no-console --disk a").join(" ");
        assert!(text.contains("-monitor none") && !text.contains("stdio") && !text.contains("graphics"), "{text}");
    }

    #[test]
    fn functions_and_server_have_the_same_addresses() {
        let args = parse("--disk a --vfs 63").unwrap();
        let options = args.options().unwrap();
        assert_eq!(options.card.as_deref(), Some("flex170-63vf"));
        let serve = options.served().unwrap().arguments(Path::new("/c"));
        let serve: Vec<_> = serve.iter().filter_map(|word| word.to_str()).collect();
        assert_eq!(serve[5..], ["--vfs", "63", "--pf-address", "0000:00:10.0"]);
        let qemu = args.card_arguments(&options, Path::new("/c"));
        assert!(qemu.iter().any(|word| word.contains(r#""addr":"17.7""#) && word.contains("/c/vf63.sock")), "{qemu:?}");
        let ivb = arguments("--card ivb --disk a").join(" ");
        assert!(ivb.contains(r#""addr":"2.0""#) && ivb.contains(r#""x-no-posted-writes":true"#), "{ivb}");
        assert!(ivb.contains("pci64,string=off") && !qemu.iter().any(|word| word.contains("pci64")), "{ivb}");
    }

    #[test]
    fn the_printed_command_line_is_for_a_shell() {
        let arguments = ["-append", "a b", "-S"].map(OsString::from);
        assert_eq!(command_line(&Qemu::default(), arguments), "'' \\\n  -append 'a b' \\\n  -S");
    }

    #[test]
    fn mistakes_in_the_command_line_are_refused() {
        for words in
            ["", "--vfs 2", "--initrd i --disk a", "--append a --disk a", "--disk a --vfs 64", "--disk a -m 1G"]
        {
            let error = parse(words).map(drop).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{words}: {error}");
        }
        for (words, reason) in [
            ("--disk a --card ivb --vfs 2", "the card ivb has no virtual functions: omit --vfs"),
            ("--disk a --card ivb --pci-port", "the card ivb is on the root bus, as on hardware: omit --pci-port"),
            (
                "--disk a --card small --vfs 40",
                "the card small has 31 VFs, not 40: request fewer, or raise total_vfs in the card file",
            ),
        ] {
            let error = parse(words).unwrap().options().unwrap_err();
            assert_eq!(error.to_string(), reason, "{words}");
            assert!(error.is::<super::super::UsageError>(), "{words}");
        }
    }

    #[test]
    fn the_format_of_a_disk_is_that_of_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let image = |name: &str, start: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, start).unwrap();
            disk_format(&path).map_err(|error| error.to_string())
        };
        assert_eq!(image("a.img", &[]), Ok("raw"));
        assert_eq!(image("a.raw", b"QFI"), Ok("raw"));
        assert_eq!(image("a.qcow2", b"QFI\xfb\0"), Ok("qcow2"));
        let error = image("b.img", b"QFI\xfb\0").unwrap_err();
        assert!(error.ends_with("has the format qcow2: give it a name that ends with .qcow2"), "{error}");
        let error = disk_format(Path::new("/no/disk")).unwrap_err().to_string();
        assert!(error.starts_with("there is no disk image /no/disk: give the path of an existing one"), "{error}");
    }

    #[test]
    fn the_exit_status_is_that_of_qemu() {
        let code = |raw| format!("{:?}", exit_code(ExitStatus::from_raw(raw)));
        assert_eq!((code(0), code(3 << 8)), (format!("{:?}", ExitCode::from(0)), format!("{:?}", ExitCode::from(3))));
        assert_eq!(code(9), format!("{:?}", ExitCode::from(137)));
    }
}
