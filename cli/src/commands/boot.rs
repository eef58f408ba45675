// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic boot`: boots a Linux guest with the card and runs the tests, a shell or one command in it.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use arctic_guest_runner::artifacts::{self, Own, Suite};
use arctic_guest_runner::boot::{self, Mode, Sink};
use arctic_guest_runner::card::Functions;
use arctic_guest_runner::clocks::{self, INCONCLUSIVE, WrongClock};
use arctic_guest_runner::devices::Place;
use arctic_guest_runner::driver::Driver;
use arctic_guest_runner::guest_process::{Apart, Options};
use arctic_guest_runner::interrupt::Interrupted;
use arctic_guest_runner::progress::StderrProgress;
use arctic_guest_runner::skipped;

use super::card_args::{CardArgs, VfArgs};
use super::quantity::quantity;
use super::stdout::{complain, print_if_read};
use super::{VERSION, usage};

/// Boot a Linux guest with the card, load an unmodified driver (xe, or i915 with --driver), run workloads on every
/// engine and check the results and the kernel log.
///
/// With --vfs N the card has N virtual functions (VFs). By default one guest has the physical function (PF) and all
/// VFs: its xe provisions and enables N VFs (`echo N > sriov_numvfs`), probes each, and runs stores, copies and signals
/// on every engine class of each; then the VFs are disabled, enabled again, and disabled. With --split one guest has
/// the PF and provisions the VFs, and each VF has a separate guest; all guests run workloads concurrently. With
/// --provision config no guest has the PF: the card provisions its VFs from its card file, and each VF has a guest. The
/// report has one line per VF.
///
/// With --passthrough the guest has a virtual IOMMU, and passes VF 1 and VF 2 on to inner guests (QEMU with nested KVM) by
/// vfio-pci: one after the other, both at once, one that is killed, one that loses its VF and gets it back. The report
/// has one line per step; the run takes about five minutes.
///
/// With --compute the guest has Intel's OpenCL and Level Zero drivers of Debian sid. It runs kernels on the PF and, with --vfs, on
/// all VFs at the same time, and compares each result with the CPU; the report has one line per kernel. With --run and --shell
/// the command or shell runs in a root with these drivers, where `arctic guest compute` runs the kernels; docs/compute.md
/// describes how to run programs of your own.
/// --packages adds packages of Debian sid to this root.
///
/// Without --kernel, --modules and --qemu these components are downloaded from Debian, verified by apt's signatures,
/// and cached (ARCTIC_CACHE, else XDG_CACHE_HOME/arctic, else ~/.cache/arctic). Their versions are pinned, unless the
/// mirror no longer has them, or with --newest; the report says which. The mirror is taken from the host's apt sources; ARCTIC_DEBIAN_MIRROR overrides it. A custom kernel needs
/// the options in docs/own-kernel.md; the oldest ones known to pass are 6.12 with xe and 6.1 with i915.
///
/// The exit status is 0 only if every check passed, 130 after Ctrl-C; with --run and --shell it is the exit status of
/// the command in the guest. It is 125 if the clocks of a guest and of the host differ by more than 5 %: such a run is
/// inconclusive.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    guest: GuestArgs,
    #[command(flatten)]
    vfs: VfArgs,
    /// Give each VF a separate guest, in addition to the PF's guest, which provisions them
    #[arg(long, requires = "vfs", conflicts_with_all = ["provision", "run", "shell"])]
    split: bool,
    /// The newest kernel of this Debian suite in the PF's guest alone, with --split
    #[arg(long, value_name = "SUITE", value_enum, requires = "split")]
    pf_debian: Option<Suite>,
    /// The newest kernel of this Debian suite in the VFs' guests alone, with --split
    #[arg(long, value_name = "SUITE", value_enum, requires = "split")]
    vf_debian: Option<Suite>,
    /// Provisioner of the VFs: `driver` (the PF driver in its guest), or `config` (the card file; no guest has the PF)
    #[arg(long, value_name = "BY", requires = "vfs", default_value = "driver", value_parser = ["driver", "config"])]
    provision: String,
    /// Pass VF 1 and VF 2 on to inner guests by vfio-pci, in one guest with the PF and a virtual IOMMU; needs at least two
    /// VFs and xe
    #[arg(long, requires = "vfs", conflicts_with_all = ["split", "provision", "run", "shell", "no_card"])]
    passthrough: bool,
    /// Migrate VF 1 this many times after the work of the VFs: the PF's xe saves it, gives it another range of the GGTT and
    /// restores it, while all engines of each VF are busy. In one guest with the PF and all VFs, or with --split; then the processors
    /// of VF 1's guest are stopped meanwhile, each tenth time is two (VF 1 is saved again before its driver has recovered), and with
    /// --compute kernels are part of the work
    #[arg(long, value_name = "N", requires = "vfs", value_parser = quantity::<u32>("migrations", 1..=100_000),
        conflicts_with_all = ["provision", "passthrough", "run", "shell", "no_card"])]
    migrate: Option<u32>,
    /// Run kernels through Intel's OpenCL and Level Zero drivers instead of the other workloads; needs xe
    #[arg(long, conflicts_with_all = ["passthrough", "no_card"])]
    compute: bool,
    /// Packages of Debian sid, separated by commas, that the root with OpenCL's and Level Zero's drivers has besides, with all
    /// their dependencies
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "compute", value_parser = package)]
    packages: Vec<String>,
    /// Open a shell in the guest on this terminal; with --vfs the VFs exist but are not enabled, with --provision
    /// config it is the guest of VF 1
    #[arg(long, conflicts_with_all = ["run", "json"])]
    shell: bool,
    /// Run one shell command in the guest, print its output and return its status; VFs as with --shell
    #[arg(long, value_name = "CMD")]
    run: Option<String>,
    /// Print only one JSON document on stdout
    #[arg(long)]
    json: bool,
    /// Time limit in seconds for each stage of the run (boot, driver load, workloads, shutdown)
    #[arg(long, value_name = "SECONDS", default_value_t = STAGE_SECONDS, value_parser = seconds())]
    timeout: u64,
}

/// Default time limit of a stage in seconds.
pub const STAGE_SECONDS: u64 = 120;
/// Maximum time limit: one week, which cannot overflow when it is added to a clock.
const MOST_SECONDS: u64 = 7 * 24 * 60 * 60;

/// Parser of a time limit in seconds.
pub fn seconds() -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    quantity("seconds", 1..=MOST_SECONDS)
}

/// Parser of a package's name.
pub fn package(name: &str) -> Result<String, String> {
    artifacts::check_package(name).map(|()| name.to_owned())
}

/// Arguments of all commands that boot a guest.
#[derive(clap::Args)]
pub struct GuestArgs {
    #[command(flatten)]
    pub card: CardArgs,
    /// The driver that the guest loads for the card; the default is xe, for an integrated GPU i915. i915 supports
    /// only the PF, without VFs
    #[arg(long, value_name = "NAME", value_enum)]
    driver: Option<Driver>,
    /// Boot without a card
    #[arg(long, hide = true)]
    no_card: bool,
    /// Custom kernel (bzImage); needs --modules, and the options in docs/own-kernel.md
    #[arg(long, value_name = "FILE", requires = "modules")]
    kernel: Option<PathBuf>,
    /// Modules of the custom kernel: lib/modules/RELEASE, or a directory that contains it; uncompressed, or compressed
    /// by xz, zstd or gzip
    #[arg(long, value_name = "DIR", requires = "kernel")]
    modules: Option<PathBuf>,
    /// A module of your own in place of the kernel's of the same name, or in addition; it must be built for this kernel.
    /// May be repeated
    #[arg(long, value_name = "FILE")]
    module: Vec<PathBuf>,
    /// The newest kernel of this Debian suite instead of the default one
    #[arg(long, value_name = "SUITE", value_enum, conflicts_with = "kernel")]
    debian: Option<Suite>,
    /// Boot with UEFI firmware (OVMF) instead of SeaBIOS
    #[arg(long)]
    uefi: bool,
    /// A directory with i915/dg2_guc_70.bin; by default a placeholder image is written
    #[arg(long, value_name = "DIR")]
    firmware: Option<PathBuf>,
    /// Additional arguments for the guest's kernel, appended to the program's own
    #[arg(long, value_name = "ARGS", default_value = "", allow_hyphen_values = true)]
    append: String,
    /// A directory of this host to mount on /share in the guest
    #[arg(long, value_name = "DIR")]
    share: Option<PathBuf>,
    /// Memory of each guest in MiB; default 2048 for a single guest, more with many VFs in it, 1024 for each of several
    /// guests; 1024 more with --compute
    #[arg(long, value_name = "MIB", value_parser = quantity::<u32>("MiB", 320..=u32::MAX.into()))]
    memory: Option<u32>,
    /// Directory for the guest's logs; default a new one in the cache
    #[arg(long, value_name = "DIR")]
    log: Option<PathBuf>,
    /// Additional arguments of QEMU, separated by white space, before those of the devices: a machine type, memory
    /// (-object ID... -machine memory-backend=ID)
    #[arg(long, value_name = "ARGS", default_value = "", allow_hyphen_values = true)]
    qemu_args: String,
}

impl GuestArgs {
    /// Returns the options of the test library for a card with these `functions`; `limit` is the time limit of each
    /// stage.
    pub fn options(&self, functions: Functions, limit: Duration) -> Result<Options> {
        self.consistent_options(functions, limit).map_err(usage)
    }

    fn consistent_options(&self, functions: Functions, limit: Duration) -> Result<Options> {
        if matches!(functions, Functions::Passthrough(0..2)) {
            bail!("--passthrough passes VF 1 and VF 2 on: use --vfs 2 or more");
        }
        if matches!(functions, Functions::Passthrough(_)) && self.card.viommu.is_some() {
            bail!("--passthrough has an IOMMU of its own: omit --viommu");
        }
        if matches!(functions, Functions::Passthrough(_)) && self.card.pci_port {
            bail!("--passthrough has the card on the root bus: omit --pci-port");
        }
        let (options, card) = self.card.options(functions, Place::FIRST)?;
        let driver = self.driver.unwrap_or(options.driver);
        match (options.integrated, driver, functions) {
            (true, Driver::Xe, _) => bail!("xe does not support the card {card}: use --driver i915"),
            (false, Driver::I915, Functions::Physical) | (true, Driver::I915, _) | (false, Driver::Xe, _) => {}
            (false, Driver::I915, _) => {
                bail!("i915 has no SR-IOV support on this card: use --driver i915 without virtual functions");
            }
        }
        Ok(Options {
            own: Own {
                kernel: self.kernel.clone(),
                modules: self.modules.clone(),
                own_modules: self.module.clone(),
                suite: self.debian,
                uefi: self.uefi,
                qemu: options.own.qemu.clone(),
                newest: options.own.newest,
            },
            card: (!self.no_card).then_some(card),
            driver,
            firmware: self.firmware.clone(),
            memory: self.memory,
            append: self.append.clone(),
            share: self.share.clone(),
            limit,
            log: self.log.clone(),
            qemu_arguments: self.qemu_args.clone(),
            ..options
        })
    }
}

impl Args {
    /// The options of the run.
    fn options(&self) -> Result<Options> {
        let options = self.guest.options(self.functions(), Duration::from_secs(self.timeout))?;
        if self.compute && options.integrated {
            let reason = "--compute needs a Flex card: omit --card, or name another one";
            return Err(usage(anyhow::anyhow!(reason)));
        }
        if self.compute && options.driver != Driver::Xe {
            return Err(usage(anyhow::anyhow!("--compute needs xe: omit --driver {}", options.driver)));
        }
        if self.compute && self.migrate.is_some() && !self.split {
            return Err(usage(anyhow::anyhow!(
                "--compute and --migrate need guests of their own for the VFs: add --split"
            )));
        }
        let apart = Apart { pf: self.pf_debian, vfs: self.vf_debian };
        Ok(Options { apart, compute: self.compute, packages: self.packages.clone(), ..options })
    }

    fn functions(&self) -> Functions {
        if let (Some(vfs), Some(rounds)) = (self.vfs.vfs, self.migrate) {
            return Functions::Migrating { vfs, rounds, split: self.split };
        }
        match (self.vfs.vfs, self.provision.as_str()) {
            (None, _) => Functions::Physical,
            (Some(vfs), _) if self.split => Functions::Split(vfs),
            (Some(vfs), _) if self.passthrough => Functions::Passthrough(vfs),
            (Some(vfs), "config") => Functions::Provisioned(vfs),
            (Some(vfs), _) => Functions::Together(vfs),
        }
    }
}

/// Prints a command's output as it arrives, or keeps it for the JSON document.
struct Printer {
    keep: bool,
    output: Vec<u8>,
    errors: Vec<u8>,
}

impl Sink for Printer {
    fn output(&mut self, bytes: &[u8]) {
        if self.keep {
            self.output.extend_from_slice(bytes);
        } else {
            // A closed output pipe (`| head`) does not stop the guest's command.
            drop(io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()));
        }
    }

    fn errors(&mut self, bytes: &[u8]) {
        if self.keep {
            self.errors.extend_from_slice(bytes);
        } else {
            drop(io::stderr().write_all(bytes));
        }
    }
}

/// Runs `arctic boot`.
pub fn run(args: Args) -> Result<ExitCode> {
    let options = args.options()?;
    let mode = match (args.shell, args.run) {
        (true, _) => Mode::Shell,
        (false, Some(command)) => Mode::Run(command),
        (false, None) => Mode::Work,
    };
    let mut printer = Printer { keep: args.json, output: Vec::new(), errors: Vec::new() };
    // The progress is dropped, and its open line erased, before an error is printed.
    let result = boot::run(&options, &mode, &mut printer, &StderrProgress::default());
    let mut report = match result {
        Ok(report) => report,
        Err(error) => return failure(error),
    };
    report.versions.insert("arctic".into(), VERSION.into());
    if args.json {
        let mut document = serde_json::to_value(&report)?;
        if let (Mode::Run(_), Some(document)) = (&mode, document.as_object_mut()) {
            document.insert("output".into(), String::from_utf8_lossy(&printer.output).into());
            document.insert("errors".into(), String::from_utf8_lossy(&printer.errors).into());
        }
        print_if_read(format_args!("{document:#}\n"))?;
    } else if mode == Mode::Work {
        print_if_read(&report)?;
    } else {
        if let Some(line) = skipped::line(&report.skipped_commands, report.integrated) {
            complain(format_args!("skipped     {line}"));
        }
        if let Some(line) = &report.compute_note {
            complain(line);
        }
        if let Some(line) = clocks::inconclusive(&report.clocks) {
            complain(&line);
        }
    }
    let status = match (&mode, report.status) {
        (Mode::Work, _) => u8::from(!report.ok),
        (_, Some(status)) => u8::try_from(status.max(0)).unwrap_or(u8::MAX),
        (_, None) => 1,
    };
    Ok(ExitCode::from(clocks::exit_status(&report.clocks, status)))
}

/// The exit status of a run that ended with an error: 130 after an interruption, 125 if a guest's clock was wrong; any
/// other error is returned to `main`.
pub fn failure(error: anyhow::Error) -> Result<ExitCode> {
    if error.is::<Interrupted>() {
        complain("arctic: interrupted");
        return Ok(ExitCode::from(130));
    }
    if error.is::<WrongClock>() {
        complain(format_args!("arctic: {error:#}"));
        return Ok(ExitCode::from(INCONCLUSIVE));
    }
    Err(error)
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

    fn parse(words: &str) -> Result<(Functions, Option<String>), clap::Error> {
        let args = Line::try_parse_from(["boot"].into_iter().chain(words.split_whitespace()))?.args;
        let functions = args.functions();
        Ok((functions, args.guest.options(functions, Duration::from_secs(1)).unwrap().card))
    }

    #[test]
    fn the_topology_follows_from_the_options() {
        let card = |name: &str| Some(name.to_owned());
        for (words, functions, name) in [
            ("", Functions::Physical, "flex170"),
            ("--vfs 7", Functions::Together(7), "flex170"),
            ("--vfs 31", Functions::Together(31), "flex170"),
            ("--vfs 63", Functions::Together(63), "flex170-63vf"),
            ("--vfs 31 --card small", Functions::Together(31), "small"),
            ("--vfs 3 --split", Functions::Split(3), "flex170"),
            ("--vfs 2 --provision config", Functions::Provisioned(2), "flex170"),
            ("--vfs 2 --passthrough --json", Functions::Passthrough(2), "flex170"),
            ("--vfs 2 --migrate 5", Functions::Migrating { vfs: 2, rounds: 5, split: false }, "flex170"),
            ("--vfs 2 --migrate 5 --split", Functions::Migrating { vfs: 2, rounds: 5, split: true }, "flex170"),
            ("--vfs 2 --provision driver --shell", Functions::Together(2), "flex170"),
            ("--vfs 1 --provision config --run ls", Functions::Provisioned(1), "flex170"),
        ] {
            assert_eq!(parse(words).unwrap(), (functions, card(name)), "{words}");
        }
    }

    #[test]
    fn passthrough_needs_two_vfs_and_xe() {
        for (words, reason) in [
            ("--vfs 1 --passthrough", "--passthrough passes VF 1 and VF 2 on: use --vfs 2 or more"),
            ("--vfs 2 --passthrough --pci-port", "--passthrough has the card on the root bus: omit --pci-port"),
            (
                "--vfs 2 --passthrough --driver i915",
                "i915 has no SR-IOV support on this card: use --driver i915 without virtual functions",
            ),
        ] {
            let args = Line::try_parse_from(["boot"].into_iter().chain(words.split_whitespace())).unwrap().args;
            let error = args.guest.options(args.functions(), Duration::from_secs(1)).unwrap_err().to_string();
            assert_eq!(error, reason, "{words}");
        }
    }

    /// An integrated GPU has its driver and its place by default, and no virtual functions.
    #[test]
    fn an_integrated_gpu_is_driven_by_i915() {
        let options = |words: &str| {
            let args = Line::try_parse_from(["boot"].into_iter().chain(words.split_whitespace())).unwrap().args;
            args.guest.options(args.functions(), Duration::from_secs(1)).map_err(|error| error.to_string())
        };
        let ivb = options("--card ivb").unwrap();
        assert_eq!((ivb.driver, ivb.integrated, ivb.device), (Driver::I915, true, 0x0162));
        assert_eq!(ivb.place, Place::INTEGRATED);
        for (card, device) in [("ivb-fused", 0x0162), ("snb", 0x0112)] {
            let options = options(&format!("--card {card}")).unwrap();
            assert_eq!((options.driver, options.integrated, options.device), (Driver::I915, true, device), "{card}");
            assert!(!options.posted_writes, "{card}");
        }
        let flex = options("").unwrap();
        assert_eq!((flex.driver, flex.integrated, flex.place), (Driver::Xe, false, Place::FIRST));
        assert!(flex.posted_writes);
        for (words, reason) in [
            ("--card ivb --vfs 2", "has no virtual functions"),
            ("--card ivb --driver xe", "use --driver i915"),
            ("--card ivb --pci-port", "the card ivb is on the root bus, as on hardware: omit --pci-port"),
            ("--card ivb --unmodelled fault", "omit --unmodelled"),
        ] {
            let error = options(words).unwrap_err();
            assert!(error.contains(reason), "{words}: {error}");
        }
    }

    /// Kernels run in every topology but that of inner guests, and with xe only.
    #[test]
    fn compute_needs_xe_and_a_flex_card() {
        let options = |words: &str| {
            let args = Line::try_parse_from(["boot"].into_iter().chain(words.split_whitespace())).unwrap().args;
            args.options().map_err(|error| error.to_string())
        };
        for words in [
            "--compute",
            "--compute --vfs 7",
            "--compute --vfs 3 --split",
            "--compute --split --vfs 2 --migrate 2",
            "--compute --run clinfo --json",
        ] {
            assert!(options(words).unwrap().compute, "{words}");
        }
        assert!(!options("").unwrap().compute);
        assert_eq!(options("--compute --packages clinfo,libze1").unwrap().packages, ["clinfo", "libze1"]);
        for (words, reason) in [
            ("--compute --driver i915", "--compute needs xe: omit --driver i915"),
            (
                "--compute --vfs 2 --migrate 2",
                "--compute and --migrate need guests of their own for the VFs: add --split",
            ),
            ("--compute --card ivb", "--compute needs a Flex card: omit --card, or name another one"),
        ] {
            assert_eq!(options(words).unwrap_err(), reason, "{words}");
        }
    }

    /// A limit that would overflow a clock is rejected when the command line is parsed.
    #[test]
    fn time_limits_are_bounded() {
        for (seconds, fine) in
            [("1", true), ("604800", true), ("0", false), ("604801", false), ("18446744073709551614", false)]
        {
            assert_eq!(parse(&format!("--timeout {seconds}")).is_ok(), fine, "{seconds}");
        }
    }

    /// A wrong clock determines the exit status, regardless of any other error of the run; other errors are returned to
    /// `main`.
    #[test]
    fn exit_status_depends_on_the_error() {
        let code =
            |error: anyhow::Error| failure(error).map(|code| format!("{code:?}")).map_err(|error| error.to_string());
        let wrong = anyhow::anyhow!("the guest crashed").context(WrongClock("inconclusive".into()));
        assert_eq!(code(wrong), Ok(format!("{:?}", ExitCode::from(125))));
        assert_eq!(code(Interrupted.into()), Ok(format!("{:?}", ExitCode::from(130))));
        assert_eq!(code(anyhow::anyhow!("the guest crashed")), Err("the guest crashed".into()));
    }

    #[test]
    fn contradictory_options_are_refused() {
        for words in [
            "--vfs 0",
            "--vfs 64",
            "--split",
            "--provision config",
            "--vfs 2 --split --provision config",
            "--vfs 2 --split --shell",
            "--vfs 2 --provision nonsense",
            "--passthrough",
            "--migrate 2",
            "--vfs 2 --migrate 0",
            "--vfs 2 --migrate 2 --provision config",
            "--vfs 2 --passthrough --split",
            "--vfs 2 --passthrough --provision config",
            "--vfs 2 --passthrough --shell",
            "--vfs 2 --passthrough --run ls",
            "--vfs 2 --passthrough --compute",
            "--compute --no-card",
            "--packages clinfo",
            "--compute --packages -y",
            "--compute --packages a=1",
        ] {
            let error = parse(words).unwrap_err().to_string();
            let first = error.lines().next().unwrap();
            assert!(first.starts_with("error: "), "{words}: {error}");
        }
    }
}
