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

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use arctic_afuc::container::Image;
use arctic_afuc::isa::Generation;
use arctic_afuc::text::{Assembled, Diagnostic, Diagnostics, Options, assemble};

/// An error in one sentence.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Parses the value of `--gen`.
pub fn generation(text: &str) -> std::result::Result<Generation, String> {
    let number = text.parse().ok().and_then(Generation::from_number);
    number.ok_or_else(|| "the generation is 5, 6 or 7".to_owned())
}

/// Reads a file.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()).into())
}

/// Reads a file in UTF-8.
pub fn read_text(path: &Path) -> Result<String> {
    String::from_utf8(read(path)?).map_err(|_| format!("{} is not UTF-8 text", path.display()).into())
}

/// Reads a firmware file.
pub fn read_image(path: &Path, generation: Option<Generation>) -> Result<Image> {
    Image::from_bytes(&read(path)?, generation).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// Assembles a source file; `None` after the errors were printed.
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
    let color = io::stderr().is_terminal();
    for warning in warnings {
        eprintln!("{}\n", warning.render_warning(source, &path.display().to_string(), color));
    }
}

/// Prints the errors of the source at `path`, and their number, to standard error.
pub fn print_errors(errors: &Diagnostics, source: &str, path: &Path) {
    eprintln!("{}", errors.render(source, &path.display().to_string(), io::stderr().is_terminal()));
    eprintln!("\nafuc: {} in {}; no file was written", count(errors.0.len()), path.display());
}

/// `1 error`, `2 errors`
fn count(errors: usize) -> String {
    format!("{errors} error{}", if errors == 1 { "" } else { "s" })
}

/// Replaces a file as a whole: the old content stays until the new is complete. A link keeps its place, and what is no file,
/// such as `/dev/stdout`, is written as it is.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return fs::write(path, bytes).map_err(|error| format!("cannot write {}: {error}", path.display()).into());
    }
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".tmp{}", std::process::id()));
    let temporary = target.with_file_name(name);
    let written = fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, &target));
    written.map_err(|error| {
        // The error of interest is the first one.
        let _ = fs::remove_file(&temporary);
        format!("cannot write {}: {error}", path.display()).into()
    })
}

/// Prints to standard output. A closed pipe is no error.
pub fn print(text: &str) -> Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
