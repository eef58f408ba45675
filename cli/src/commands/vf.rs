// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic vf`: pauses, saves, restores and resumes a function of a served card.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, anyhow};
use arctic_gpu::card::status::{Status, name_of};
use arctic_guest_runner::progress::{Progress, StderrProgress};
use clap::builder::{OsStringValueParser, TypedValueParser};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use super::stdout::{self, Stdout};
use super::{function_number, operator_socket, usage};
use crate::operator::{Connection, Done, Request, TransferError};

/// Save and restore a virtual function of a card without a PF driver (`arctic serve --provision config`), or an integrated GPU.
///
/// The file has the state of the function: configuration space, registers, GGTT, contexts, kernels in flight, and its local memory
/// without the parts that read as zeros. Guest memory is not in it. Restore takes it on the same card, or on another one of the same
/// device and stepping that gives the function the same quotas. If the function's range of the GGTT begins elsewhere there, its driver
/// adapts its addresses as after a migration (xe of Linux 7.2, interface 1.27 of the GuC).
///
/// A running function is paused while it is saved or restored, and continues afterwards. To copy the guest's memory as it was at that
/// time, stop the guest's processors, pause the function, save it and copy the memory, in either order, then resume both. A function
/// that cannot be restored is empty afterwards, as after a reset.
///
/// VFs of a card with a PF driver are saved by that driver (docs/sriov.md).
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    arctic vf save /tmp/card/vf1 vf1.state\n  \
    arctic vf restore /tmp/card/vf1 vf1.state\n  \
    arctic vf pause /tmp/card/vf1 && arctic vf save /tmp/card/vf1 vf1.state && arctic vf resume /tmp/card/vf1\n  \
    arctic vf save vf1 - | zstd > vf1.state.zst\n  \
    arctic vf save pf ivb.state")]
pub struct VfArgs {
    /// What is done
    #[arg(value_name = "ACTION", value_enum)]
    action: Action,
    /// The function by its path: the card's directory (`arctic serve --dir`), then vf1, vf2 ..., or pf for an integrated GPU; without
    /// the directory, of the only card of this user
    #[arg(value_name = "DIR/FUNCTION", value_parser = OsStringValueParser::new().try_map(FunctionPath::parse))]
    function: FunctionPath,
    /// The file to write with save, or to read with restore; `-` is standard output or input
    #[arg(value_name = "FILE", required_if_eq_any([("action", "save"), ("action", "restore")]))]
    file: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Action {
    /// Write the state of a function to a file
    Save,
    /// Replace the state of a function by that of a file
    Restore,
    /// Stop the work of a function; its contexts, requests and memory stay
    Pause,
    /// Continue the work of a function that is paused
    Resume,
}

/// A function of a served card.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FunctionPath {
    /// The card's directory; `None` for the only card.
    card: Option<PathBuf>,
    number: u8,
}

impl FunctionPath {
    fn parse(path: OsString) -> Result<FunctionPath, String> {
        let path = PathBuf::from(path);
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = function_number(name.strip_suffix(".sock").unwrap_or(name));
        let number = number.ok_or("expected the card's directory and a function, as in /tmp/card/vf1")?;
        let card = path.parent().filter(|parent| !parent.as_os_str().is_empty()).map(Path::to_path_buf);
        Ok(FunctionPath { card, number })
    }
}

/// Does what the command says.
pub fn run(arguments: &VfArgs) -> Result<()> {
    let function = arguments.function.number;
    match (arguments.action, &arguments.file) {
        (Action::Save, Some(file)) => save(arguments, file),
        (Action::Restore, Some(file)) => restore(arguments, file),
        (Action::Pause, None) => request(arguments, &Request::Pause { function }, "paused"),
        (Action::Resume, None) => request(arguments, &Request::Resume { function }, "continues"),
        // The parser requires the file of the others.
        (_, _) => Err(usage(anyhow!("only save and restore have a file"))),
    }
}

/// A connection to the card of a function, and the path of its socket.
fn open(arguments: &VfArgs) -> Result<(Connection, PathBuf)> {
    let path = operator_socket(arguments.function.card.as_deref())?;
    let connection = Connection::open(&path).map_err(|error| super::failure(&path, &error.into()))?;
    Ok((connection, path))
}

/// Has a request about a function carried out.
fn request(arguments: &VfArgs, request: &Request, what: &str) -> Result<()> {
    let (mut connection, path) = open(arguments)?;
    let done: Done = connection.request(request).map_err(|failure| super::failure(&path, &failure))?;
    if arguments.json {
        stdout::line(serde_json::json!({ "function": done.function, "state": what }))?;
    } else {
        stdout::line(format_args!("{} {what}", done.function))?;
    }
    Ok(())
}

fn save(arguments: &VfArgs, file: &Path) -> Result<()> {
    let to_stdout = file.as_os_str() == "-";
    if to_stdout && arguments.json {
        return Err(usage(anyhow!("--json and the file `-` are both standard output")));
    }
    let (mut connection, path) = open(arguments)?;
    let name = name_of(arguments.function.number);
    let status: Status = connection.request(&Request::Status {}).map_err(|failure| super::failure(&path, &failure))?;
    let function = status.functions.iter().find(|function| function.number() == arguments.function.number);
    let expected = function.map_or(0, |function| function.memory_bytes);
    let mut counted = Counted::new(format!("saving {name}"), expected)?;
    let out: Box<dyn Write> = if to_stdout {
        Box::new(Stdout::new())
    } else {
        Box::new(File::create(file).with_context(|| format!("{} cannot be created", file.display()))?)
    };
    let mut out = BufWriter::with_capacity(1 << 20, out);
    let saved = connection.save(arguments.function.number, &mut counted.around(&mut out));
    let saved = saved.and_then(|done| out.flush().map(|()| done).map_err(TransferError::File));
    let done = saved.map_err(|error| {
        if !to_stdout {
            // It is not complete.
            let _ = fs::remove_file(file);
        }
        match error {
            _ if counted.interrupted() => anyhow!("{name} was not saved: interrupted"),
            TransferError::Request(failure) => super::failure(&path, &failure),
            TransferError::File(error) => {
                anyhow::Error::from(error).context(format!("{} cannot be written", file.display()))
            }
        }
    })?;
    let bytes = counted.end();
    if to_stdout { Ok(()) } else { report(arguments, &done, "saved", file, bytes) }
}

fn restore(arguments: &VfArgs, file: &Path) -> Result<()> {
    let (from, expected): (Box<dyn Read>, u64) = if file.as_os_str() == "-" {
        (Box::new(io::stdin().lock()), 0)
    } else {
        let opened = File::open(file).with_context(|| format!("{} cannot be opened", file.display()))?;
        let bytes = opened.metadata().map_or(0, |metadata| metadata.len());
        (Box::new(opened), bytes)
    };
    let (connection, path) = open(arguments)?;
    let name = name_of(arguments.function.number);
    let mut counted = Counted::new(format!("restoring {name}"), expected)?;
    let done = connection.restore(arguments.function.number, &mut counted.around(from));
    let done = done.map_err(|error| match error {
        _ if counted.interrupted() => anyhow!("{name} was not restored: interrupted; it is empty, as after a reset"),
        TransferError::Request(failure) => super::failure(&path, &failure),
        TransferError::File(error) => anyhow!("{} cannot be read: {error}", file.display()),
    })?;
    let bytes = counted.end();
    report(arguments, &done, "restored", file, bytes)
}

fn report(arguments: &VfArgs, done: &Done, what: &str, file: &Path, bytes: u64) -> Result<()> {
    let function = &done.function;
    if arguments.json {
        let file = file.to_string_lossy();
        return Ok(stdout::line(serde_json::json!({ "function": function, what: file, "bytes": bytes }))?);
    }
    let mib = bytes as f64 / f64::from(1 << 20);
    Ok(stdout::line(format_args!("{function} {what}: {mib:.1} MiB, {}", file.display()))?)
}

/// Bytes that are transferred, until a signal arrives.
struct Counted {
    what: String,
    expected: u64,
    bytes: u64,
    progress: StderrProgress,
    stop: Arc<AtomicBool>,
}

impl Counted {
    /// No bytes of about `expected`; 0 if that is not known.
    fn new(what: String, expected: u64) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register(signal, stop.clone()).context("cannot install signal handlers")?;
        }
        Ok(Counted { what, expected, bytes: 0, progress: StderrProgress::default(), stop })
    }

    /// Counts the bytes of a file.
    fn around<F>(&mut self, file: F) -> CountedFile<'_, F> {
        CountedFile { counted: self, file }
    }

    fn add(&mut self, bytes: usize) -> io::Result<usize> {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        let percent = self.bytes.saturating_mul(100).checked_div(self.expected);
        // What is short is done before a percentage would be read.
        if let Some(percent) = percent.filter(|_| self.expected >= 64 << 20) {
            self.progress.percent(&self.what, u8::try_from(percent.min(100)).unwrap_or(100));
        }
        // Not `Interrupted`, after which the transfer would be repeated.
        if self.interrupted() { Err(io::Error::other("interrupted")) } else { Ok(bytes) }
    }

    fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Erases the percentage. Returns the number of bytes.
    fn end(self) -> u64 {
        self.bytes
    }
}

struct CountedFile<'c, F> {
    counted: &'c mut Counted,
    file: F,
}

impl<F: Write> Write for CountedFile<'_, F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.counted.add(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl<F: Read> Read for CountedFile<'_, F> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(bytes)?;
        self.counted.add(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_the_path_of_their_socket() {
        for (text, card, number) in [
            ("/tmp/card/vf1", Some("/tmp/card"), 1),
            ("/tmp/card/vf12.sock", Some("/tmp/card"), 12),
            ("card/pf", Some("card"), 0),
            ("./vf63", Some("."), 63),
            ("vf2", None, 2),
        ] {
            let expected = FunctionPath { card: card.map(PathBuf::from), number };
            assert_eq!(FunctionPath::parse(text.into()), Ok(expected), "{text}");
        }
        for text in ["", "/tmp/card", "/tmp/card/vf0", "/tmp/card/vf64", "/tmp/card/vf1/", "vf", "/"] {
            let parsed = FunctionPath::parse(text.into());
            assert_eq!(parsed.is_err(), text != "/tmp/card/vf1/", "{text}: {parsed:?}");
        }
    }
}
