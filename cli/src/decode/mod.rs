// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Files that `arctic decode` reads: raw dwords, hexadecimal text, captures, and dumps of drivers.

pub mod ascii85;
pub mod capture;
pub mod engine;
pub mod i915;
pub mod limits;
pub mod memory;
pub mod source;
#[cfg(test)]
mod tests;
pub mod text;
pub mod xe;

/// The type and contents of a file.
#[derive(Debug, PartialEq)]
pub enum File {
    /// xe's devcoredump.
    Xe(String),
    /// i915's error state.
    I915(String),
    /// A capture of `arctic trace`.
    Capture(String),
    /// Dwords, and the number of trailing bytes that are not a whole dword.
    Dwords(Vec<u32>, usize),
}

impl File {
    /// Detects the type of these bytes.
    pub fn of(bytes: Vec<u8>) -> Result<File, String> {
        if bytes.is_empty() {
            return Err("it is empty".into());
        }
        if let Some((name, _)) = COMPRESSED.iter().find(|(_, start)| bytes.starts_with(start)) {
            return Err(format!("it is compressed by {name}: decompress it first"));
        }
        let printable = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
        let start = &bytes[..bytes.len().min(4096)];
        let is_text = start.iter().filter(|byte| !printable(byte)).count() * 50 < start.len();
        if !is_text {
            return Ok(File::Dwords(ascii85::dwords(&bytes), bytes.len() % 4));
        }
        let text =
            String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        if text.trim_start().starts_with(xe::HEADING) {
            return Ok(File::Xe(text));
        }
        if capture::is(&text) {
            return Ok(File::Capture(text));
        }
        if i915::is(&text) {
            return Ok(File::I915(text));
        }
        if text.trim_start().to_ascii_lowercase().starts_with("no error state collected") {
            return Err("it is an error state of i915 that says that no error was recorded".into());
        }
        hexadecimal(&text).map(|dwords| File::Dwords(dwords, 0))
    }
}

/// Programs that compress files, and the first bytes of their files.
const COMPRESSED: [(&str, &[u8]); 4] =
    [("gzip", &[0x1f, 0x8b, 8]), ("xz", b"\xfd7zXZ\0"), ("zstd", &[0x28, 0xb5, 0x2f, 0xfd]), ("bzip2", b"BZh")];

/// Parses hexadecimal dwords separated by blanks or commas, with or without 0x; a word that ends in a colon is an
/// address and is ignored, and text after `#` is a comment.
fn hexadecimal(text: &str) -> Result<Vec<u32>, String> {
    let mut dwords = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        for word in line.split([' ', '\t', ',']).filter(|word| !word.is_empty() && !word.ends_with(':')) {
            let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")).unwrap_or(word);
            let dword = u32::from_str_radix(digits, 16).map_err(|_| {
                format!(
                    "line {}: `{}` is not a hexadecimal number of 32 bits, and the file has no other known format",
                    n + 1,
                    shortened(word)
                )
            })?;
            dwords.push(dword);
        }
    }
    if dwords.is_empty() { Err("it contains no dwords".into()) } else { Ok(dwords) }
}

fn shortened(word: &str) -> String {
    if word.chars().count() > 24 { word.chars().take(24).chain("...".chars()).collect() } else { word.into() }
}
