// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The commands of the program.

pub mod asm;
pub mod check;
pub mod coverage;
pub mod debug;
pub mod disasm;
pub mod firmware;
pub mod isa;
pub mod patch;
pub mod run;
pub mod vectors;

use std::fmt::Display;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use arctic_afuc::container::{ContainerError, Image};
use arctic_afuc::isa::Generation;
use arctic_afuc::text::{Assembled, Diagnostic, Diagnostics, Options, assemble};

/// Result of a command or a part of it. The error is printed after `afuc: `.
pub type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// The file name that means standard input or standard output.
const STANDARD: &str = "-";

/// Maximum number of symbolic links in a row, as in Linux.
const MAX_LINKS: usize = 40;

/// Parses the value of `--gen`.
pub fn generation(text: &str) -> Result<Generation, String> {
    let number = text.parse().ok().and_then(Generation::from_number);
    number.ok_or_else(|| "the generation is 5, 6 or 7".to_owned())
}

/// Returns the function that makes the error of a failed access: `cannot ACTION FILE: CAUSE`.
pub fn cannot<E: Display>(action: &str, path: &Path) -> impl FnOnce(E) -> Box<dyn std::error::Error> {
    move |cause| format!("cannot {action} {}: {cause}", path.display()).into()
}

/// Returns whether the path means standard input or standard output.
pub fn is_standard(path: &Path) -> bool {
    path.as_os_str() == STANDARD
}

/// Reads a file; `-` is standard input.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let bytes = if is_standard(path) {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    bytes.map_err(cannot("read", path))
}

/// Reads a file in UTF-8; `-` is standard input.
pub fn read_text(path: &Path) -> Result<String> {
    String::from_utf8(read(path)?).map_err(|_| format!("{} is not UTF-8 text", path.display()).into())
}

/// Reads a firmware file; `-` is standard input. `generation` is needed if the file's id is unknown; it overrides that of
/// a known id.
pub fn read_image(path: &Path, generation: Option<Generation>) -> Result<Image> {
    Image::from_bytes(&read(path)?, generation).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// Returns the image in the bytes of a file; `default` is the generation if the file's id is unknown.
pub fn image_by_id(bytes: &[u8], default: Option<Generation>) -> Result<Image, ContainerError> {
    match Image::from_bytes(bytes, None) {
        Err(ContainerError::Generation(_)) => Image::from_bytes(bytes, default),
        image => image,
    }
}

/// Assembles a source file; `-` is standard input. `None` after the errors were printed.
pub fn assemble_file(path: &Path, generation: Option<Generation>) -> Result<Option<Assembled>> {
    let source = read_text(path)?;
    match assemble(&source, &Options { generation }) {
        Ok(assembled) => {
            print_warnings(&assembled.warnings, &source, path);
            Ok(Some(assembled))
        }
        Err(errors) => {
            print_errors(&errors, &source, path);
            Ok(None)
        }
    }
}

/// Prints the warnings of the source at `path` to standard error.
pub fn print_warnings(warnings: &[Diagnostic], source: &str, path: &Path) {
    for warning in warnings {
        print_rendered(path, |name, color| warning.render_warning(source, name, color));
    }
}

/// Prints the errors of the source at `path`, and their number, to standard error.
pub fn print_errors(errors: &Diagnostics, source: &str, path: &Path) {
    print_rendered(path, |name, color| errors.render(source, name, color));
    eprintln!("afuc: {} in {}", count(errors.0.len()), path.display());
}

/// Prints what `render` returns for the name of a source, with colors or without, and an empty line to standard error.
fn print_rendered(path: &Path, render: impl Fn(&str, bool) -> String) {
    eprintln!("{}\n", render(&path.display().to_string(), io::stderr().is_terminal()));
}

/// `1 error`, `2 errors`
fn count(errors: usize) -> String {
    format!("{errors} error{}", if errors == 1 { "" } else { "s" })
}

/// Writes a file; `-` is standard output.
///
/// A regular file is replaced by a new one with its permissions: a process that reads it, or a failure of the system, finds
/// the old or the new content, and other hard links keep the old content. A file without write permission is not replaced.
/// Symbolic links are followed, also one whose target does not exist. Devices and pipes are written directly.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = if is_standard(path) {
        let mut out = io::stdout().lock();
        out.write_all(bytes).and_then(|()| out.flush())
    } else {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => match fs::canonicalize(path) {
                Ok(target) => replace(&target, Some(metadata.permissions()), bytes),
                // A file without a name, which `/dev/stdout` can be.
                Err(_) => fs::write(path, bytes),
            },
            Ok(_) => fs::write(path, bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                missing_target(path).and_then(|target| replace(&target, None, bytes))
            }
            Err(error) => Err(error),
        }
    };
    written.map_err(cannot("write", path))
}

/// Returns the path to which the symbolic links at `path` lead, of which the last one's target does not exist.
fn missing_target(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&target) {
            // An absolute path replaces the directory.
            Ok(next) => target = target.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Replaces the file `target`, which is no link, by one with these permissions, or the default ones if `None`.
fn replace(target: &Path, permissions: Option<Permissions>, bytes: &[u8]) -> io::Result<()> {
    if permissions.as_ref().is_some_and(Permissions::readonly) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"));
    }
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".tmp{}", std::process::id()));
    let temporary = target.with_file_name(name);
    let mut file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
    let written = permissions
        .map_or(Ok(()), |permissions| file.set_permissions(permissions))
        .and_then(|()| file.write_all(bytes))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&temporary, target));
    if written.is_err() {
        // The error to report is the first one, not that of the removal.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Prints to standard output. A closed pipe is no error: the text is dropped, and the command continues.
pub fn print(text: &str) -> Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write the output: {error}").into())
        }
        _ => Ok(()),
    }
}
