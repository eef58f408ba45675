// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `eu asm`.

use std::path::PathBuf;
use std::process::ExitCode;

use arctic_eu::text;

/// Assembles text to raw code.
///
/// The text is that of `eu disasm` and iga64: labels, `.inst 0x… 0x…` for dwords, `.byte 0x…` for bytes, `//` comments.
#[derive(clap::Args)]
pub struct Options {
    /// Source; `-` for standard input
    file: PathBuf,
    /// File for the code; `-` for standard output
    #[arg(short, long)]
    output: PathBuf,
}

impl Options {
    pub fn execute(self) -> super::Result {
        let bytes = super::read(&self.file)?;
        let source = String::from_utf8(bytes).map_err(|_| format!("error: {} is not UTF-8", self.file.display()))?;
        let code =
            text::assemble(&source).map_err(|errors| errors.render(&source, &self.file.display().to_string()))?;
        super::write(&self.output, &code)?;
        Ok(ExitCode::SUCCESS)
    }
}
