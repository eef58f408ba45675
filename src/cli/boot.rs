//! `arctic boot`: a Linux guest on the card, from nothing to a judged run, a shell or one command.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use arctic_guest_tests::boot::{self, Mode, Sink};
use arctic_guest_tests::interrupt::Interrupted;
use arctic_guest_tests::life::Options;
use arctic_guest_tests::parts::Own;
use arctic_guest_tests::progress::Stderr;

/// Boot a Linux guest with the card, load its unmodified xe driver, put every engine to work and judge the run.
///
/// Without --kernel, --modules and --qemu the parts come from Debian, verified by apt's signatures, into a cache
/// (ARCTIC_CACHE, else XDG_CACHE_HOME/arctic, else ~/.cache/arctic); remove that folder to fetch newer ones.
/// The mirror is the one in the host's apt sources; ARCTIC_DEBIAN_MIRROR names another.
/// The exit status is 0 only if all was well, 130 after Ctrl-C; with --run and --shell it is the guest's own.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    guest: GuestArgs,
    /// Give a shell in the guest on this terminal
    #[arg(long, conflicts_with_all = ["run", "json"])]
    shell: bool,
    /// Run one shell command in the guest, print its output and return its status
    #[arg(long, value_name = "CMD")]
    run: Option<String>,
    /// Print one JSON document on stdout and nothing else
    #[arg(long)]
    json: bool,
    /// Seconds that each stage of the run (boot, driver load, work, shutdown) may take
    #[arg(long, value_name = "S", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
}

/// What all commands that boot a guest take.
#[derive(clap::Args)]
pub struct GuestArgs {
    /// The card: a file, or the name of a built-in one (flex170, small)
    #[arg(long, value_name = "FILE|NAME", default_value = "flex170")]
    card: String,
    /// Boot without a card
    #[arg(long, hide = true)]
    no_card: bool,
    /// A kernel of your own (bzImage); needs --modules
    #[arg(long, value_name = "FILE", requires = "modules")]
    kernel: Option<PathBuf>,
    /// Its modules: lib/modules/RELEASE, or a folder that holds it
    #[arg(long, value_name = "DIR", requires = "kernel")]
    modules: Option<PathBuf>,
    /// A QEMU of your own, 11.1 or later
    #[arg(long, value_name = "FILE")]
    qemu: Option<PathBuf>,
    /// A folder with i915/dg2_guc_70.bin; a stand-in is written without it
    #[arg(long, value_name = "DIR")]
    firmware: Option<PathBuf>,
    /// Further arguments for the guest's kernel
    #[arg(long, value_name = "ARGS", default_value = "", allow_hyphen_values = true)]
    append: String,
    /// A folder of this host to mount on /share in the guest
    #[arg(long, value_name = "DIR")]
    share: Option<PathBuf>,
    /// Memory of the guest in MiB
    #[arg(long, value_name = "MIB", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(320..))]
    memory: u32,
    /// Folder for the guest's logs; otherwise a new one in the cache
    #[arg(long, value_name = "DIR")]
    log: Option<PathBuf>,
}

impl GuestArgs {
    /// The library's options; `limit` bounds each stage of a run.
    pub fn options(&self, limit: Duration) -> Result<Options> {
        let program = std::env::current_exe().context("this program's own file cannot be found")?;
        Ok(Options {
            own: Own { kernel: self.kernel.clone(), modules: self.modules.clone(), qemu: self.qemu.clone() },
            card: (!self.no_card).then(|| self.card.clone()),
            firmware: self.firmware.clone(),
            memory: self.memory,
            append: self.append.clone(),
            share: self.share.clone(),
            limit,
            log: self.log.clone(),
            ..Options::new(program)
        })
    }
}

/// Prints a command's output as it comes, or keeps it for the JSON document.
struct Printer {
    keep: bool,
    output: Vec<u8>,
    errors: Vec<u8>,
}

impl Sink for Printer {
    fn output(&mut self, bytes: &[u8]) {
        match self.keep {
            true => self.output.extend_from_slice(bytes),
            // A reader that has gone (`| head`) does not stop the guest's command.
            false => drop(std::io::stdout().write_all(bytes).and_then(|()| std::io::stdout().flush())),
        }
    }

    fn errors(&mut self, bytes: &[u8]) {
        match self.keep {
            true => self.errors.extend_from_slice(bytes),
            false => drop(std::io::stderr().write_all(bytes)),
        }
    }
}

/// Runs `arctic boot`.
pub fn run(args: Args) -> Result<ExitCode> {
    let options = args.guest.options(Duration::from_secs(args.timeout))?;
    let mode = match (args.shell, args.run) {
        (true, _) => Mode::Shell,
        (false, Some(command)) => Mode::Run(command),
        (false, None) => Mode::Work,
    };
    let mut printer = Printer { keep: args.json, output: Vec::new(), errors: Vec::new() };
    let report = match boot::run(&options, &mode, &mut printer, &Stderr::default()) {
        Ok(report) => report,
        Err(error) => return failure(error),
    };
    if args.json {
        let mut document = serde_json::to_value(&report)?;
        if let (Mode::Run(_), Some(document)) = (&mode, document.as_object_mut()) {
            document.insert("output".into(), String::from_utf8_lossy(&printer.output).into());
            document.insert("errors".into(), String::from_utf8_lossy(&printer.errors).into());
        }
        println!("{document:#}");
    } else if mode == Mode::Work {
        print!("{report}");
    }
    Ok(match (&mode, report.status) {
        (Mode::Work, _) => ExitCode::from(u8::from(!report.ok)),
        (_, Some(status)) => ExitCode::from(status.clamp(0, 255) as u8),
        (_, None) => ExitCode::FAILURE,
    })
}

/// An interruption is told in one word with the status that shells expect; everything else goes to `main`.
pub fn failure(error: anyhow::Error) -> Result<ExitCode> {
    match error.is::<Interrupted>() {
        true => {
            eprintln!("arctic: interrupted");
            Ok(ExitCode::from(130))
        }
        false => Err(error),
    }
}
