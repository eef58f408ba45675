// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Reader of zebin files: ELF with sections of code, data, relocations and a description of kernels in YAML.

use std::ops::Range;

use thiserror::Error;

mod info;
mod target;

pub use info::{Argument, ArgumentInfo, Buffer, Info, Kernel, Sampler};
pub use target::Target;

/// Why a file is no zebin, or cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ZebinError {
    /// No ELF file of 64 bits, little endian.
    #[error(
        "this is no zebin: the file does not begin as a 64-bit little-endian ELF file; compile it with `ocloc compile -device dg2`"
    )]
    Magic,
    /// The file is for other devices.
    #[error(
        "the file is for {0}, which has other execution units than Xe-HPG: compile it with `ocloc compile -device dg2`"
    )]
    Target(String),
    /// A table or section is beyond the end of the file.
    #[error("{0} is beyond the end of the file: the file is damaged or truncated")]
    Truncated(&'static str),
    /// A section is missing.
    #[error("the section {0} is missing: this is no output of ocloc")]
    Missing(String),
    /// The description of the kernels cannot be read.
    #[error("line {line} of .ze_info cannot be read: {reason}")]
    Info {
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong.
        reason: &'static str,
    },
    /// No kernel has this name.
    #[error("no kernel {name}: the file has {known}")]
    Kernel {
        /// The name.
        name: String,
        /// Names of the kernels.
        known: String,
    },
    /// A relocation cannot be applied.
    #[error("relocation of {symbol} in {section}: {reason}")]
    Relocation {
        /// Symbol.
        symbol: String,
        /// Section that it changes.
        section: String,
        /// What is wrong.
        reason: &'static str,
    },
}

/// A section of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Name.
    pub name: String,
    /// Type.
    pub kind: u32,
    /// Section to which relocations apply.
    pub info: u32,
    /// Bytes in the file. Empty for sections without contents.
    pub bytes: Range<usize>,
    /// Size in memory.
    pub size: u64,
}

/// A symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Name.
    pub name: String,
    /// Number of its section; 0 for an undefined symbol.
    pub section: u16,
    /// Offset in the section.
    pub value: u64,
    /// Size in bytes.
    pub size: u64,
}

/// A relocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Section that it changes.
    pub section: usize,
    /// Offset in the section.
    pub offset: u64,
    /// Kind: 1 address of 64 bits, 2 low dword, 3 high dword, 4 offset of per-thread data.
    pub kind: u32,
    /// Index of the symbol.
    pub symbol: usize,
    /// Number that is added to the symbol's address.
    pub addend: i64,
}

/// Most sections and symbols that are read. Files of compilers have some hundred.
const LIMIT: usize = 1 << 16;

/// A parsed file.
#[derive(Clone, Debug)]
pub struct Zebin {
    file: Vec<u8>,
    /// Sections.
    pub sections: Vec<Section>,
    /// Symbols.
    pub symbols: Vec<Symbol>,
    /// Relocations of all sections.
    pub relocations: Vec<Relocation>,
    /// Kernels.
    pub info: Info,
}

impl Zebin {
    /// True if the bytes begin as an ELF file.
    pub fn is_elf(file: &[u8]) -> bool {
        file.starts_with(b"\x7fELF")
    }

    /// True if the bytes begin as a zebin, or as an archive of some.
    pub fn is_file(file: &[u8]) -> bool {
        Zebin::is_elf(file) || file.starts_with(target::ARCHIVE)
    }

    /// Reads a file; of an archive of files for several devices, the first one that is for Xe-HPG.
    pub fn parse(file: Vec<u8>) -> Result<Zebin, ZebinError> {
        if file.starts_with(target::ARCHIVE) {
            return target::choose(&file);
        }
        if !file.starts_with(b"\x7fELF\x02\x01") {
            return Err(ZebinError::Magic);
        }
        let header = |at, size| number(&file, at, size).ok_or(ZebinError::Truncated("the ELF header"));
        let table = header(0x28, 8)?;
        let count = header(0x3c, 2)? as usize;
        let names = header(0x3e, 2)? as usize;
        let raw: Vec<[u64; 6]> = (0..count)
            .map(|index| raw_section(&file, table, index))
            .collect::<Option<_>>()
            .ok_or(ZebinError::Truncated("the section table"))?;
        let span = |raw: &[u64; 6]| contents(&file, raw).ok_or(ZebinError::Truncated("a section"));
        let name_table = match raw.get(names) {
            Some(raw) => span(raw)?,
            None => 0..0,
        };
        let mut sections = Vec::with_capacity(count);
        for raw in &raw {
            let [name, kind, _, size, _, info] = *raw;
            let name = text(&file[name_table.clone()], name);
            sections.push(Section { name, kind: kind as u32, info: info as u32, bytes: span(raw)?, size });
        }
        let mut zebin = Zebin { file, sections, symbols: Vec::new(), relocations: Vec::new(), info: Info::default() };
        zebin.read_symbols();
        zebin.read_relocations();
        let info = zebin.section(".ze_info").ok_or_else(|| ZebinError::Missing(".ze_info".into()))?;
        zebin.info = Info::parse(&String::from_utf8_lossy(zebin.bytes(info)))?;
        Ok(zebin)
    }

    /// Contents of a section.
    pub fn bytes(&self, section: &Section) -> &[u8] {
        self.file.get(section.bytes.clone()).unwrap_or_default()
    }

    /// The section with this name.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// True if the last groups may be smaller where a global size is no multiple of the local size. As the driver decides it: for
    /// programs that were built for OpenCL 2.0 or later, and without `-cl-uniform-work-group-size`.
    pub fn has_partial_groups(&self) -> bool {
        let options = self.section(".misc.buildOptions").map_or(&[][..], |section| self.bytes(section));
        let options = String::from_utf8_lossy(options);
        let mut words = options.split(|c: char| c.is_whitespace() || c == '\0');
        let is_uniform = words.clone().any(|word| word == "-cl-uniform-work-group-size");
        let version = words.find_map(|word| word.strip_prefix("-cl-std=CL"));
        let major = version.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
        major.is_some_and(|major| major >= 2) && !is_uniform
    }

    /// Names and code of all kernels and functions.
    pub fn code(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.sections.iter().filter_map(|section| Some((section.name.strip_prefix(".text.")?, self.bytes(section))))
    }

    /// Description of a kernel; of the only one, if no name is given.
    pub fn kernel(&self, name: Option<&str>) -> Result<&Kernel, ZebinError> {
        let kernels = &self.info.kernels;
        let visible: Vec<&Kernel> = kernels.iter().filter(|kernel| !kernel.name.starts_with("Intel_Symbol")).collect();
        let found = match name {
            Some(name) => kernels.iter().find(|kernel| kernel.name == name),
            None if visible.len() == 1 => visible.first().copied(),
            None => None,
        };
        found.ok_or_else(|| ZebinError::Kernel {
            name: name.unwrap_or("is named").into(),
            known: visible.iter().map(|kernel| kernel.name.as_str()).collect::<Vec<_>>().join(", "),
        })
    }

    fn read_symbols(&mut self) {
        let names = self.section(".strtab").map_or(0..0, |section| section.bytes.clone());
        let Some(table) = self.sections.iter().find(|section| section.kind == 2) else { return };
        let names = &self.file[names];
        let entries = self.bytes(table).as_chunks::<24>().0;
        let field = |entry: &[u8; 24], at, size| number(entry, at, size).unwrap_or(0);
        self.symbols = entries
            .iter()
            .take(LIMIT)
            .map(|entry| Symbol {
                name: text(names, field(entry, 0, 4)),
                section: field(entry, 6, 2) as u16,
                value: field(entry, 8, 8),
                size: field(entry, 16, 8),
            })
            .collect();
    }

    fn read_relocations(&mut self) {
        let mut relocations = Vec::new();
        for section in &self.sections {
            // SHT_RELA and SHT_REL.
            let size = match section.kind {
                4 => 24,
                9 => 16,
                _ => continue,
            };
            for entry in self.bytes(section).chunks_exact(size).take(LIMIT) {
                let info = number(entry, 8, 8).unwrap_or(0);
                relocations.push(Relocation {
                    section: section.info as usize,
                    offset: number(entry, 0, 8).unwrap_or(0),
                    kind: info as u32,
                    symbol: (info >> 32) as usize,
                    addend: number(entry, 16, 8).unwrap_or(0) as i64,
                });
            }
        }
        self.relocations = relocations;
    }
}

/// A little-endian number of `size` bytes.
fn number(bytes: &[u8], at: u64, size: usize) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// Name, type, offset, size, link and info of a section.
fn raw_section(file: &[u8], table: u64, index: usize) -> Option<[u64; 6]> {
    let at = table.checked_add(index as u64 * 64)?;
    let field = |offset, size| number(file, at.checked_add(offset)?, size);
    Some([field(0, 4)?, field(4, 4)?, field(24, 8)?, field(32, 8)?, field(40, 4)?, field(44, 4)?])
}

fn contents(file: &[u8], raw: &[u64; 6]) -> Option<Range<usize>> {
    let [_, kind, offset, size, ..] = *raw;
    // SHT_NULL and SHT_NOBITS have no contents.
    if kind == 0 || kind == 8 {
        return Some(0..0);
    }
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(size).ok()?)?;
    (end <= file.len()).then_some(start..end)
}

/// The text up to the next zero byte.
fn text(bytes: &[u8], at: u64) -> String {
    let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    String::from_utf8_lossy(&rest[..end]).into_owned()
}
