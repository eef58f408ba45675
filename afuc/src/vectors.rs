// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Checks of tables with expected results: words with their text, and instructions with what they compute.
//!
//! A table has a row on each line, with tabs between the columns. Lines that begin with `#`, and the line of the columns'
//! names, are not rows.

use crate::container::Image;
use crate::isa::{Generation, decode};
use crate::machine::{Machine, Stop};
use crate::names::ControlSet;
use crate::text::{Options, Syntax, assemble, disassemble_raw, instruction_text};

/// What a table has shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Rows.
    pub rows: usize,
    /// Rows with a note that the expected text is wrong.
    pub corrected: usize,
    /// What is different: line of the table and reason.
    pub differences: Vec<(usize, String)>,
}

impl Report {
    fn row(&mut self, number: usize, result: Result<(), String>) {
        self.rows += 1;
        self.differences.extend(result.err().map(|reason| (number, reason)));
    }
}

/// A row with its number and the generation in its first column.
fn rows(table: &str) -> impl Iterator<Item = (usize, Generation, Vec<&str>)> {
    (1..).zip(table.lines()).filter(|(_, line)| !line.starts_with('#')).filter_map(|(number, line)| {
        let columns: Vec<&str> = line.split('\t').collect();
        let generation = columns.first()?.parse().ok().and_then(Generation::from_number)?;
        Some((number, generation, columns))
    })
}

fn hex(columns: &[&str], index: usize) -> Result<u32, String> {
    let text = columns.get(index).ok_or_else(|| format!("there is no column {}", index + 1))?;
    u32::from_str_radix(text.trim(), 16).map_err(|_| format!("`{text}` is no hexadecimal number"))
}

/// Checks words: generation, word, text in Mesa's syntax, and a note. The text must be that of the disassembler, and our own
/// text must assemble to the word again. If the note says `offset is 0xN`, that offset is expected in the text.
pub fn words(table: &str) -> Report {
    let mut report = Report::default();
    for (number, generation, columns) in rows(table) {
        let mut is_corrected = false;
        let result = word(generation, &columns, &mut is_corrected);
        report.corrected += usize::from(is_corrected);
        report.row(number, result);
    }
    report
}

fn word(generation: Generation, columns: &[&str], is_corrected: &mut bool) -> Result<(), String> {
    let word = hex(columns, 1)?;
    let mut expected = (*columns.get(2).ok_or("there is no text")?).to_owned();
    if let Some((_, offset)) = columns.get(3).and_then(|note| note.split_once("offset is ")) {
        let place = expected.find(" + ").map(|start| start + 3).zip(expected.find(']'));
        let (start, end) = place.filter(|(start, end)| start <= end).ok_or("the text has no offset")?;
        expected.replace_range(start..end, offset.trim());
        *is_corrected = true;
    }
    let set = ControlSet::of(generation);
    let text = decode(word, generation).map(|instruction| instruction_text(&instruction, set));
    let text = text.ok_or_else(|| format!("{word:08x} is no instruction; expected `{expected}`"))?;
    if text != expected {
        return Err(format!("{word:08x} is `{text}`; expected `{expected}`"));
    }
    // A word that begins an image would be read as its id.
    let image = Image { words: vec![generation.nop_literal(0), word], leading_zero: true, set };
    let own = disassemble_raw(&image, Syntax::Native);
    match assemble(&own, &Options { generation: Some(generation) }) {
        Ok(again) if again.image.words == image.words => Ok(()),
        Ok(again) => Err(format!("{word:08x} is {:08x} after its text was assembled", again.image.words[1])),
        Err(errors) => Err(format!("{word:08x}: its text does not assemble: {errors}")),
    }
}

/// Checks what instructions compute: generation, `$02`, `$03`, instructions with `;` between them, and then `$04`, `$05`.
pub fn alu(table: &str) -> Report {
    let mut report = Report::default();
    for (number, generation, columns) in rows(table) {
        report.row(number, execute(generation, &columns));
    }
    report
}

fn execute(generation: Generation, columns: &[&str]) -> Result<(), String> {
    let text = columns.get(3).ok_or("there are no instructions")?;
    let lines: Vec<&str> = text.split(';').map(str::trim).collect();
    let source = format!(".gen {}\n{}\n", generation.number(), lines.join("\n"));
    let assembled = assemble(&source, &Options::default()).map_err(|errors| errors.to_string())?;
    let mut machine = Machine::new(&assembled.image);
    (machine.gpr[2], machine.gpr[3]) = (hex(columns, 1)?, hex(columns, 2)?);
    if let Stop::Fault(fault) = machine.run(lines.len() as u64) {
        return Err(fault.to_string());
    }
    let found = [machine.gpr[4], machine.gpr[5]];
    let expected = [hex(columns, 4)?, hex(columns, 5)?];
    if found == expected {
        return Ok(());
    }
    let [a, b] = found;
    Err(format!("`{text}` gives $04 {a:08x}, $05 {b:08x}; expected {:08x}, {:08x}", expected[0], expected[1]))
}

#[cfg(test)]
mod tests {
    use arctic_fidelity::proves;

    use super::*;

    const WORDS: &str = include_str!("../tests/data/vectors.tsv");
    const STEPS: &str = include_str!("../tests/data/alu-vectors.tsv");

    /// All words of the published vectors, as Mesa 25.0.7 prints them (AFC-011), but for those that it prints wrongly.
    #[test]
    fn published_vectors_have_the_text_of_the_peer_and_make_the_same_words() {
        proves!(
            [AF_010, AF_017, AF_030, AF_039, AF_103, AF_114],
            "words have the text of Mesa, and the text makes them again"
        );
        let report = words(WORDS);
        assert_eq!((report.rows, report.differences), (1064, vec![]));
        assert!(report.corrected > 0);
    }

    #[test]
    fn published_steps_have_the_published_results() {
        proves!([AF_016, AF_018, AF_019, AF_020, AF_021, AF_022], "operations have the results of Mesa");
        proves!([AF_026, AF_027, AF_028, AF_032, AF_033], "operations have the results of Mesa");
        let report = alu(STEPS);
        assert_eq!((report.rows, report.differences), (544, vec![]));
    }

    #[test]
    fn each_kind_of_difference_is_reported_with_its_line() {
        let text = |row: &str| words(&format!("# words\n{row}\n")).differences;
        assert_eq!(text("6\t98030201\tadd $00, $00, $04")[0].0, 2);
        for (row, reason) in [
            ("6\t98030201", "there is no text"),
            ("6\txyz\tnop", "`xyz` is no hexadecimal number"),
            ("6\tffffffff\tnop", "ffffffff is no instruction; expected `nop`"),
            ("6\t01000000\tnop \tthe offset is 0x1", "the text has no offset"),
        ] {
            assert_eq!(text(row)[0].1, reason);
        }
        let step = |row: &str| alu(row).differences.pop().map(|(_, reason)| reason);
        let wrong = step("6\t1\t2\tadd $04, $02, $03\t4\t0");
        assert_eq!(
            wrong.as_deref(),
            Some("`add $04, $02, $03` gives $04 00000003, $05 00000000; expected 00000004, 00000000")
        );
        assert!(step("6\t1\t2\tfrob\t4\t0").is_some() && step("6\t1\t2").is_some());
        assert_eq!(step("6\t1\t2\tadd $04, $02, $03\t3\t0"), None);
    }
}
