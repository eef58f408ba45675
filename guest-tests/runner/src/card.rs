// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The card under test as a separate process (`arctic serve`): start, supervision, stop, and its report.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::devices::Place;
use crate::interrupt;
use crate::process::Child;
use crate::skipped::Skipped;
use crate::viommu::Viommu;

const START_LIMIT: Duration = Duration::from_secs(30);
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// The contents of `report.json`, which `arctic serve` writes on exit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CardReport {
    /// Trapped accesses by region.
    #[serde(default)]
    pub trapped: BTreeMap<String, u64>,
    /// Accessed registers that are not modelled.
    #[serde(default)]
    pub unmodelled: Vec<Unmodelled>,
    /// Commands that engines skipped or executed partially, by engine and name.
    #[serde(default)]
    pub undone: BTreeMap<String, u64>,
    /// Commands that engines skipped, by function, origin, engine and name.
    #[serde(default)]
    pub skipped_commands: Vec<Skipped>,
    /// What each function's kernels did on the execution units.
    #[serde(default)]
    pub walkers: Vec<Walkers>,
}

/// What the kernels of one function did on the execution units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Walkers {
    /// Number of the function; 0 is the PF.
    pub function: u8,
    /// Number of walkers that were begun.
    pub walkers: u64,
    /// Number of groups that ended.
    pub groups: u64,
    /// Number of instructions.
    pub instructions: u64,
    /// Number of faults.
    pub faults: u64,
}

/// A register that a driver accessed and the card does not model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Unmodelled {
    /// Offset in the register BAR.
    pub offset: u64,
    /// Its name, if known.
    #[serde(default)]
    pub name: Option<String>,
    /// Number of reads.
    #[serde(default)]
    pub reads: u64,
    /// Number of writes.
    #[serde(default)]
    pub writes: u64,
    /// Reason for not modelling it. A missing reason fails the run.
    #[serde(default)]
    pub reason: Option<String>,
}

impl fmt::Display for Unmodelled {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref().unwrap_or("unnamed");
        let reason = self.reason.as_deref().unwrap_or("no reason given");
        write!(out, "{:#08x} {name}: {} reads, {} writes, {reason}", self.offset, self.reads, self.writes)
    }
}

/// The lines of a run's summary about the accesses to the card: heading and text. A line without a heading belongs to the one above.
pub fn access_lines(trapped: &BTreeMap<String, u64>, unmodelled: &[Unmodelled]) -> Vec<(&'static str, String)> {
    let total: u64 = trapped.values().sum();
    let regions: Vec<String> = trapped.iter().map(|(region, count)| format!("{region} {count}")).collect();
    let mut lines = vec![
        ("trapped", format!("{total} accesses ({})", regions.join(", "))),
        ("unmodelled", format!("{} registers touched", unmodelled.len())),
    ];
    lines.extend(unmodelled.iter().map(|register| ("", register.to_string())));
    lines
}

impl CardReport {
    /// The unmodelled registers without a reason.
    pub fn unexplained(&self) -> impl Iterator<Item = &Unmodelled> {
        self.unmodelled.iter().filter(|register| register.reason.as_ref().is_none_or(|reason| reason.is_empty()))
    }
}

/// The functions of the card and their assignment to guests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Functions {
    /// Only the PF.
    #[default]
    Physical,
    /// One guest has the PF and this number of VFs.
    Together(u8),
    /// One guest has the PF and this number of VFs behind a virtual IOMMU, and passes VF 1 and VF 2 on to inner guests.
    Passthrough(u8),
    /// The first VF is migrated. The card has one more VF than these, which is not enabled.
    Migrating {
        /// Number of VFs that are enabled.
        vfs: u8,
        /// Number of migrations.
        rounds: u32,
        /// Whether each VF has a guest of its own, beside that of the PF; otherwise one guest has all.
        split: bool,
    },
    /// One guest has the PF and, for each VF, a function with configuration space only (`vfN-config-only`). Each VF is assigned to
    /// a separate guest.
    Split(u8),
    /// The card's server process provisions this number of VFs; each VF has a separate guest.
    Provisioned(u8),
}

impl Functions {
    /// Number of VFs that the card has.
    pub fn vfs(self) -> u8 {
        match self {
            Self::Physical => 0,
            Self::Together(vfs) | Self::Passthrough(vfs) | Self::Split(vfs) | Self::Provisioned(vfs) => vfs,
            Self::Migrating { vfs, .. } => vfs.saturating_add(1),
        }
    }

    /// The arguments of `arctic serve` for this assignment, with the functions at `place`.
    fn arguments(self, place: Place) -> Vec<String> {
        let further = match self {
            Self::Physical => return Vec::new(),
            Self::Together(_) | Self::Passthrough(_) | Self::Migrating { split: false, .. } => {
                vec!["--pf-address".to_owned(), place.address(0)]
            }
            Self::Split(_) | Self::Migrating { split: true, .. } => vec!["--split".to_owned()],
            Self::Provisioned(_) => ["--provision", "config"].map(str::to_owned).into(),
        };
        ["--vfs".to_owned(), self.vfs().to_string()].into_iter().chain(further).collect()
    }

    /// The sockets to which the PF guest connects, in function order. Empty if the card's server process provisions the
    /// VFs.
    pub fn physical_sockets(self) -> Vec<String> {
        let behind = |suffix: &str| {
            let vfs = (1..=self.vfs()).map(|vf| format!("vf{vf}{suffix}.sock"));
            std::iter::once("pf.sock".to_owned()).chain(vfs).collect()
        };
        match self {
            Self::Physical | Self::Together(_) | Self::Passthrough(_) | Self::Migrating { split: false, .. } => {
                behind("")
            }
            Self::Split(_) | Self::Migrating { split: true, .. } => behind("-config-only"),
            Self::Provisioned(_) => Vec::new(),
        }
    }

    /// The VFs that have separate guests.
    pub fn apart(self) -> std::ops::RangeInclusive<u8> {
        let last = match self {
            Self::Physical | Self::Together(_) | Self::Passthrough(_) | Self::Migrating { split: false, .. } => 0,
            Self::Split(vfs) | Self::Provisioned(vfs) | Self::Migrating { vfs, split: true, .. } => vfs,
        };
        1..=last
    }

    /// Whether the PF has a guest and each VF another one.
    pub fn split(self) -> bool {
        matches!(self, Self::Split(_) | Self::Migrating { split: true, .. })
    }

    /// The socket of VF `vf` for a separate guest.
    pub fn virtual_socket(vf: u8) -> String {
        format!("vf{vf}.sock")
    }

    /// All sockets on which the card listens.
    fn sockets(self) -> Vec<String> {
        self.physical_sockets().into_iter().chain(self.apart().map(Self::virtual_socket)).collect()
    }
}

/// Host memory of a process in bytes, from `/proc/PID/status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Private memory: heap and stacks (RssAnon).
    pub own: u64,
    /// Shared memory: local memory, tables, and the accessed part of the guests' memory (RssShmem).
    pub shared: u64,
}

impl Memory {
    fn parse(status: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.trim_start_matches(':').trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
        };
        Some(Self { own: field("RssAnon")?, shared: field("RssShmem")? })
    }
}

/// The card of a run: the options of `arctic serve`, except for the directory.
#[derive(Clone, Copy, Debug)]
pub struct Served<'a> {
    /// The program `arctic`.
    pub program: &'a Path,
    /// The card's file or name.
    pub card: &'a str,
    /// The functions and their assignment to guests.
    pub functions: Functions,
    /// Where the functions are in the PF's guest.
    pub place: Place,
    /// File to which the card captures all its events.
    pub trace: Option<&'a Path>,
    /// What the card does with user contexts that have commands it does not execute, `skip` or `fault`; if `None`, its
    /// card file determines it.
    pub unmodelled: Option<&'a str>,
    /// The IOMMU of the guests.
    pub viommu: Option<Viommu>,
}

impl Served<'_> {
    /// The arguments of the program with `folder` as the card's directory.
    pub fn arguments(&self, folder: &Path) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = ["serve", "--card", self.card, "--dir"].map(OsString::from).into();
        arguments.push(folder.into());
        arguments.extend(self.functions.arguments(self.place).into_iter().map(OsString::from));
        if let Some(trace) = self.trace {
            arguments.extend(["--trace".into(), trace.into()]);
        }
        let unmodelled = self.unmodelled.iter().flat_map(|how| ["--unmodelled", how]);
        let viommu = self.viommu.iter().flat_map(|viommu| ["--viommu", viommu.name()]);
        arguments.extend(unmodelled.chain(viommu).map(OsString::from));
        arguments
    }
}

/// Longest path in bytes in which a directory for sockets is created: a socket's path is limited to 107 bytes, of which
/// `/arctic-XXXXXX/operator/operator.sock` has 37.
const LONGEST_ROOT: usize = 70;

/// Creates a directory for the sockets of a card, which is removed when the value is dropped. It is private, because the
/// sockets give access to guest memory. It is in the first directory that permits it of `$XDG_RUNTIME_DIR`, `$TMPDIR` and
/// /tmp; a longer path than `LONGEST_ROOT` is not used.
pub fn sockets() -> Result<TempDir> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let roots = [variable("XDG_RUNTIME_DIR"), variable("TMPDIR"), Some("/tmp".into())];
    sockets_in(roots.into_iter().flatten())
}

/// Creates the directory in the first of `roots` that permits it.
fn sockets_in(roots: impl Iterator<Item = PathBuf>) -> Result<TempDir> {
    let mut reasons = Vec::new();
    for root in roots {
        if root.as_os_str().len() > LONGEST_ROOT {
            reasons.push(format!("{} has more than {LONGEST_ROOT} bytes", root.display()));
            continue;
        }
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        let made = tempfile::Builder::new().prefix("arctic-").permissions(private).tempdir_in(&root);
        match made {
            Ok(folder) => return Ok(folder),
            // The error names the path.
            Err(error) => reasons.push(error.to_string()),
        }
    }
    let reasons = reasons.join("; ");
    let remedy = "set XDG_RUNTIME_DIR or TMPDIR to one that this user may write to";
    bail!("no directory for the card's sockets: {reasons}; {remedy}")
}

/// The line that names the directory of a running card, and the commands that show the card.
pub fn line_of_a_card(folder: &Path) -> String {
    let folder = folder.display();
    format!("card        {folder}: `arctic status {folder}`, `arctic trace {folder}`")
}

/// A running card server.
pub struct CardProcess {
    process: Child,
    folder: PathBuf,
    log: PathBuf,
}

impl CardProcess {
    /// Starts the server of `served` with its sockets in `folder`, and waits until it accepts connections. Its messages
    /// are written to `log`.
    pub fn start(served: &Served<'_>, folder: &Path, log: &Path) -> Result<Self> {
        let messages = File::create(log).with_context(|| format!("{} cannot be created", log.display()))?;
        let mut command = Command::new(served.program);
        command.args(served.arguments(folder));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(messages);
        let mut process = Child::spawn(&mut command, "the card")?;
        let stdout = process.inner().stdout.take().context("the card has no stdout")?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            // The receiver is dropped after the first line. Reading continues, so the card never blocks on a full pipe.
            BufReader::new(stdout).lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
        });
        let mut card = Self { process, folder: folder.to_owned(), log: log.to_owned() };
        let start = Instant::now();
        let sockets: Vec<PathBuf> = served.functions.sockets().into_iter().map(|name| folder.join(name)).collect();
        // The first line on stdout is printed when all sockets listen.
        loop {
            interrupt::check()?;
            match lines.recv_timeout(Duration::from_millis(50)) {
                Ok(_) if sockets.iter().all(|socket| socket.exists()) => return Ok(card),
                Ok(_) | Err(RecvTimeoutError::Timeout) if start.elapsed() < START_LIMIT => {}
                Err(RecvTimeoutError::Disconnected) => {
                    // The card's own message states the cause and the file concerned.
                    card.process.wait(Duration::from_secs(1))?;
                    bail!("{}", card.last_message());
                }
                _ => bail!("the card did not start within {} s", START_LIMIT.as_secs()),
            }
        }
    }

    /// Current host memory of the card's server process, if available.
    pub fn memory(&mut self) -> Option<Memory> {
        Memory::parse(&fs::read_to_string(format!("/proc/{}/status", self.process.inner().id())).ok()?)
    }

    /// Fails if the card's server process has exited.
    pub fn check(&mut self) -> Result<()> {
        match self.process.ended()? {
            Some(status) => bail!("the card's process exited early ({status}): {}", self.last_message()),
            None => Ok(()),
        }
    }

    /// Stops the card and reads its report.
    pub fn stop(mut self) -> Result<CardReport> {
        self.check()?;
        if self.process.stop(STOP_LIMIT)?.is_none() {
            bail!("the card's process did not exit within {} s of SIGTERM", STOP_LIMIT.as_secs());
        }
        let path = self.folder.join("report.json");
        let text =
            fs::read_to_string(&path).with_context(|| format!("the card wrote no report ({})", self.last_message()))?;
        serde_json::from_str(&text).context("the card's report cannot be parsed")
    }

    fn last_message(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it printed no message");
        line.trim().trim_start_matches("arctic: ").to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn sockets_are_in_the_first_directory_that_permits_them() {
        let root = TempDir::new().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        let long = root.path().join("x".repeat(LONGEST_ROOT));
        fs::create_dir(&long).unwrap();
        let short = TempDir::with_prefix_in("s", "/tmp").unwrap();
        let roots = [file.clone(), long.clone(), short.path().to_owned()];
        let sockets = sockets_in(roots.clone().into_iter()).unwrap();
        assert_eq!(sockets.path().parent(), Some(short.path()));
        assert_eq!(fs::metadata(sockets.path()).unwrap().permissions().mode() & 0o777, 0o700);
        let error = sockets_in(roots.into_iter().take(2)).unwrap_err().to_string();
        assert!(error.contains("Not a directory") && error.contains("has more than 70 bytes"), "{error}");
        assert!(error.ends_with("set XDG_RUNTIME_DIR or TMPDIR to one that this user may write to"), "{error}");
    }

    /// Creates a script in place of the program. It is called with `serve --card CARD --dir DIR`.
    fn program(folder: &Path, script: &str) -> PathBuf {
        let path = folder.join("program");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn served(program: &Path) -> Served<'_> {
        Served {
            program,
            card: "flex170",
            functions: Functions::Physical,
            place: Place::FIRST,
            trace: None,
            unmodelled: None,
            viommu: None,
        }
    }

    #[test]
    fn a_server_has_the_options_of_the_run() {
        let words = |served: Served<'_>| {
            let words = served.arguments(Path::new("/c")).into_iter().map(|word| word.into_string().unwrap());
            words.collect::<Vec<_>>().join(" ")
        };
        let plain = served(Path::new("arctic"));
        assert_eq!(words(plain), "serve --card flex170 --dir /c");
        let all = Served {
            functions: Functions::Together(2),
            place: Place::FREE,
            trace: Some(Path::new("t")),
            unmodelled: Some("fault"),
            viommu: Some(Viommu::Amd),
            ..plain
        };
        let further = "--vfs 2 --pf-address 0000:00:10.0 --trace t --unmodelled fault --viommu amd";
        assert_eq!(words(all), format!("serve --card flex170 --dir /c {further}"));
    }

    #[test]
    fn the_line_of_a_card_has_commands_for_its_directory() {
        let line = "card        /tmp/arctic-x: `arctic status /tmp/arctic-x`, `arctic trace /tmp/arctic-x`";
        assert_eq!(line_of_a_card(Path::new("/tmp/arctic-x")), line);
    }

    #[test]
    fn a_card_reports_when_it_is_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let report =
            r#"{"trapped":{"bar0":7,"config":2},"unmodelled":[{"offset":4,"reads":1,"reason":"x"},{"offset":8}]}"#;
        let script = format!(
            "trap 'echo \\'{report}\\' > $5/report.json; exit 0' TERM\n: > $5/pf.sock\necho ready\n\
             while :; do sleep 0.02; done"
        )
        .replace("\\'", "'\\''");
        let program = program(folder.path(), &script);
        let card = CardProcess::start(&served(&program), folder.path(), &folder.path().join("log")).unwrap();
        let report = card.stop().unwrap();
        assert_eq!(report.trapped.values().sum::<u64>(), 9);
        assert_eq!(report.unexplained().map(|register| register.offset).collect::<Vec<_>>(), [8]);
    }

    #[test]
    fn each_arrangement_has_its_arguments_and_sockets() {
        let arguments = |functions: Functions| functions.arguments(Place::FIRST);
        assert_eq!((arguments(Functions::Physical), Functions::Physical.sockets()), (vec![], vec!["pf.sock".into()]));
        let together = Functions::Together(2);
        assert_eq!(arguments(together), ["--vfs", "2", "--pf-address", "0000:00:01.0"]);
        assert_eq!(together.sockets(), ["pf.sock", "vf1.sock", "vf2.sock"]);
        let passthrough = Functions::Passthrough(2);
        assert_eq!((arguments(passthrough), passthrough.sockets()), (arguments(together), together.sockets()));
        assert!(passthrough.apart().is_empty());
        let split = Functions::Split(2);
        assert_eq!(arguments(split), ["--vfs", "2", "--split"]);
        assert_eq!(split.physical_sockets(), ["pf.sock", "vf1-config-only.sock", "vf2-config-only.sock"]);
        assert_eq!(
            split.sockets(),
            ["pf.sock", "vf1-config-only.sock", "vf2-config-only.sock", "vf1.sock", "vf2.sock"]
        );
        let provisioned = Functions::Provisioned(1);
        assert_eq!(arguments(provisioned), ["--vfs", "1", "--provision", "config"]);
        assert_eq!((provisioned.physical_sockets(), provisioned.sockets()), (vec![], vec!["vf1.sock".into()]));
    }

    #[test]
    fn memory_is_read_from_the_processs_status() {
        let status = "Name:\tarctic\nVmRSS:\t   90 kB\nRssAnon:\t   12 kB\nRssFile:\t 8 kB\nRssShmem:\t    70 kB\n";
        assert_eq!(Memory::parse(status), Some(Memory { own: 12 << 10, shared: 70 << 10 }));
        assert_eq!(Memory::parse("Name:\tarctic\n"), None);
    }

    #[test]
    fn startup_error_contains_the_message_of_the_server() {
        let folder = tempfile::tempdir().unwrap();
        let program = program(folder.path(), "echo 'arctic: bad.toml line 3: no such key' >&2; exit 2");
        let error = CardProcess::start(&served(&program), folder.path(), &folder.path().join("log")).err().unwrap();
        assert_eq!(error.to_string(), "bad.toml line 3: no such key");
    }
}
