// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `eu disasm`.

use std::fmt::Write;
use std::path::PathBuf;

use arctic_eu::text;
use arctic_eu::zebin::Zebin;
use serde_json::json;

/// Prints the instructions of a zebin (ELF) or of raw code.
///
/// The text is that of Intel's assembler iga64, and `eu asm` makes the same bytes of it.
#[derive(clap::Args)]
pub struct Options {
    /// Zebin or raw code; `-` for standard input
    file: PathBuf,
    /// Only this kernel or function of a zebin
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// One JSON document: for each kernel, instructions with address, bytes, opcode and text
    #[arg(long)]
    json: bool,
}

impl Options {
    pub fn execute(self) -> super::Result {
        let file = super::read(&self.file)?;
        let mut parts: Vec<(String, Vec<u8>)> = Vec::new();
        if Zebin::is_file(&file) {
            let zebin = Zebin::parse(file).and_then(|zebin| zebin.check_target().map(|()| zebin));
            let zebin = zebin.map_err(|error| format!("error: {}: {error}", self.file.display()))?;
            if let Some(name) = &self.kernel
                && !zebin.code().any(|(found, _)| found == name)
            {
                let known: Vec<&str> = zebin.code().map(|(name, _)| name).collect();
                return Err(format!("error: no kernel or function {name}: the file has {}", known.join(", ")));
            }
            let wanted = |name: &str| self.kernel.as_deref().is_none_or(|wanted| wanted == name);
            parts
                .extend(zebin.code().filter(|(name, _)| wanted(name)).map(|(name, code)| (name.into(), code.to_vec())));
        } else {
            parts.push((self.file.display().to_string(), file));
        }
        if self.json {
            return super::print(&format!("{:#}\n", json(&parts)));
        }
        let mut output = String::new();
        let single = parts.len() == 1;
        for (name, code) in &parts {
            if !single {
                let _ = writeln!(output, "// {name}");
            }
            output.push_str(&text::disassemble(code));
        }
        super::print(&output)
    }
}

fn json(parts: &[(String, Vec<u8>)]) -> serde_json::Value {
    let kernels: Vec<_> = parts
        .iter()
        .map(|(name, code)| {
            let lines: Vec<_> = text::lines(code)
                .iter()
                .map(|line| {
                    let bytes: String = line.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                    let opcode = line.instruction.as_ref().map(|instruction| instruction.row.name);
                    json!({ "address": line.address, "bytes": bytes, "opcode": opcode, "text": line.text.trim() })
                })
                .collect();
            json!({ "name": name, "instructions": lines })
        })
        .collect();
    json!({ "kernels": kernels })
}
