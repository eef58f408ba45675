// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Output of `arctic decode`, as text or as JSON.

use std::io::{self, Write};

use arctic_device_model::decode::Line;

use crate::decode::source::{Source, Understood};

/// Writes lines, as text or as JSON.
pub struct Printer<W> {
    /// Where they go.
    pub output: W,
    /// Also print the dwords of each command, in text.
    pub raw: bool,
    /// Print one JSON document per line, instead of text.
    pub json: bool,
}

impl<W: Write> Printer<W> {
    /// Says in text what the input was taken for. JSON has it in the summary.
    pub fn source(&mut self, source: &Source) -> io::Result<()> {
        if self.json { Ok(()) } else { self.line(&Line::note(source.to_string())) }
    }

    /// Says what was not understood, in JSON also what the input was taken for.
    pub fn summary(&mut self, source: &Source, understood: &Understood) -> io::Result<()> {
        if self.json {
            let document = serde_json::json!({
                "kind": "summary", "input": source.input, "tables": source.tables, "assumed": source.assumed,
                "decoded": understood.decoded, "not_understood": understood.not_understood,
            });
            return writeln!(self.output, "{document}");
        }
        if understood.not_understood.is_empty() {
            return Ok(());
        }
        self.line(&Line::note(format!("not understood: {understood}")))
    }

    /// Writes a line.
    pub fn line(&mut self, line: &Line) -> io::Result<()> {
        if self.json {
            serde_json::to_writer(&mut self.output, line)?;
            return self.output.write_all(b"\n");
        }
        writeln!(self.output, "{line}")?;
        if let (true, Line::Command(command)) = (self.raw, line) {
            for dwords in command.dwords.chunks(8) {
                let dwords: Vec<_> = dwords.iter().map(|dword| format!("{dword:08x}")).collect();
                writeln!(self.output, "                  {}", dwords.join(" "))?;
            }
        }
        Ok(())
    }
}
