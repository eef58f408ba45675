// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The disassembler: sections, labels, packet tables, data and code.

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Range;

use crate::container::{Image, SECTION_ALIGN_BYTES, SECTION_ALIGN_WORDS, SecondWord, Section, chip};
use crate::isa::{DataAddress, Generation, Instruction, Op, decode, decode_exact, register};
use crate::names::{ControlSet, PACKET_TABLE, Space, packet_label, register_name};

use super::limits::SETSECURE_WORDS;
use super::print::{Target, write_instruction};

/// Numbers that Mesa's `print_gpu_reg` takes for GPU registers.
const GPU_REGISTERS: Range<u32> = 0x100..0x1_0000;

/// The form of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// Lossless: a word that no instruction text encodes is a literal with a comment, and the text assembles to the same image
    /// (AFC-061).
    Native,
    /// What Mesa's disassembler prints, but without its comments on GPU registers other than those of the command processor
    /// of a6xx and a7xx (AF-113). Some images cannot be assembled from it (AFC-048).
    Mesa,
}

/// What a line of a listing is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineKind {
    /// An instruction.
    Instruction(Instruction),
    /// A word that is written as a literal.
    Literal,
    /// A word of the packet table.
    Table,
}

/// A word of an image with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Offset in the section, in words.
    pub address: u32,
    /// The word.
    pub word: u32,
    /// What it is.
    pub kind: LineKind,
    /// Labels of the word: packet names, `fxnN`, `lN`.
    pub labels: Vec<String>,
    /// The text, without comment. A literal is its number, also where [`disassemble`] prints `[#jumptbl]` or `[#end]`.
    pub text: String,
    /// Target of a branch or call: offset in the section, in words.
    pub target: Option<u32>,
    /// False if no path from the start, the packet table, a preemption handler or a call leads here. Each word of the code
    /// that decodes as a call counts, also one that is data. Paths follow words with ignored bits, which no
    /// instruction text encodes, so a word without a label can be the target of one.
    pub reached: bool,
}

/// A section with its lines.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The section.
    pub section: Section,
    /// Its words in order.
    pub lines: Vec<Line>,
}

impl Listing {
    /// The listings of an image's sections, in the native form.
    pub fn of(image: &Image) -> Vec<Self> {
        let listing = |section: Section| {
            let analysis = SectionAnalysis::new(image, &section, Syntax::Native);
            let lines = (0..section.range.len()).map(|index| analysis.line(index)).collect();
            Self { section, lines }
        };
        image.sections().into_iter().map(listing).collect()
    }
}

/// Returns the text of an image. The assembler makes the same image from the native form.
pub fn disassemble(image: &Image, syntax: Syntax) -> String {
    let mut out = begin(image, syntax);
    let sections = image.sections();
    for (number, section) in sections.iter().enumerate() {
        if let Some(name) = section.name {
            let _ = write!(out, "\n.section {name}\n;\n; {name} microcode:\n;\n");
        }
        let analysis = SectionAnalysis::new(image, section, syntax);
        analysis.write(&mut out, number + 1 == sections.len());
    }
    out
}

/// Returns the text of an image without a search for sections and packet tables (AF-116): it has no names of packets, and
/// the words of tables are literals. The assembler makes the same image from the native form.
pub fn disassemble_raw(image: &Image, syntax: Syntax) -> String {
    let mut out = begin(image, syntax);
    let range = 0..image.words.len();
    let section = Section { name: None, range, table: None, second_word: SecondWord::Unknown };
    SectionAnalysis::new(image, &section, syntax).write(&mut out, true);
    out
}

/// Returns the beginning of a text with room for all of it.
fn begin(image: &Image, syntax: Syntax) -> String {
    // A line has about 30 bytes.
    let mut out = String::with_capacity(64 + image.words.len() * 32);
    write_header(&mut out, image, syntax);
    out
}

/// True if the assembler takes generation and control registers from the first literal. It cannot if the first word is an
/// instruction.
fn is_named(image: &Image) -> bool {
    image.words.first().is_some_and(|first| {
        decode_exact(*first, image.generation()).is_none() && chip(*first).map(|chip| chip.set) == Some(image.set)
    })
}

fn write_header(out: &mut String, image: &Image, syntax: Syntax) {
    let first = image.words.first().copied().unwrap_or_default();
    let number = image.generation().number();
    let _ = write!(out, "; a{number}xx microcode\n; Version: {first:08x}\n\n");
    if syntax == Syntax::Mesa {
        return;
    }
    if !is_named(image) {
        let _ = writeln!(out, ".gen {number}");
    }
    if !image.leading_zero {
        out.push_str(".nozero\n");
    }
}

/// A handler of the packet table.
struct Handler {
    /// Offset in the section, in words.
    offset: usize,
    /// Name of the packet.
    name: Cow<'static, str>,
}

/// The analysis of a section, from which its text is written.
struct SectionAnalysis<'i> {
    words: &'i [u32],
    set: ControlSet,
    generation: Generation,
    syntax: Syntax,
    /// First word of the packet table, if it is printed as `.jumptbl`.
    printed_table: Option<usize>,
    code_len: usize,
    branch_targets: Vec<bool>,
    call_targets: Vec<bool>,
    /// In order of offset and name.
    handlers: Vec<Handler>,
    reached: Vec<bool>,
    /// The word that is printed as `[#end]`, if the second word is the number of words of the image.
    end_word: Option<u32>,
}

impl<'i> SectionAnalysis<'i> {
    fn new(image: &'i Image, section: &Section, syntax: Syntax) -> Self {
        let words = &image.words[section.range.clone()];
        let generation = image.generation();
        // Mesa writes the table of a5xx as literals, but takes the labels from it.
        let table = section.table.as_ref().map(|table| table.start);
        let (printed_table, code_len) = match (syntax, generation, table) {
            (Syntax::Mesa, Generation::A5, _) | (_, _, None) => (None, words.len()),
            (_, _, Some(start)) => (Some(start), start),
        };
        let mut analysis = Self {
            words,
            // If the first word does not name the registers, the assembler uses those of `.gen`.
            set: if syntax == Syntax::Mesa || is_named(image) { image.set } else { ControlSet::of(generation) },
            generation,
            syntax,
            printed_table,
            code_len,
            branch_targets: vec![false; code_len],
            call_targets: vec![false; code_len],
            handlers: Vec::new(),
            reached: Vec::new(),
            end_word: None,
        };
        if section.range.start == 0 && section.second_word == SecondWord::TotalWords {
            analysis.end_word = u32::try_from(image.words.len()).ok().and_then(|total| generation.nop_with(total));
        }
        analysis.find_targets();
        if let Some(start) = table {
            analysis.find_handlers(&words[start..start + PACKET_TABLE]);
        }
        if syntax == Syntax::Native {
            analysis.find_reached();
        }
        analysis
    }

    /// The instruction at a word that is printed as one. Mesa prints words with ignored bits as instructions too.
    fn instruction(&self, index: usize) -> Option<Instruction> {
        match self.syntax {
            Syntax::Native => decode_exact(self.words[index], self.generation),
            Syntax::Mesa => decode(self.words[index], self.generation),
        }
    }

    /// The word that an instruction goes to, if it is in the code.
    fn target(&self, index: usize, instruction: &Instruction) -> Option<usize> {
        let relative = |offset: i32| usize::try_from(index.cast_signed() + offset as isize).ok();
        let target = match instruction.op {
            Op::BrneImm | Op::BreqImm | Op::BrneBit | Op::BreqBit => relative(instruction.offset())?,
            Op::Setsecure => relative(SETSECURE_WORDS)?,
            Op::Call | Op::Bl | Op::Jumpa => instruction.imm as usize,
            _ => return None,
        };
        (target < self.code_len).then_some(target)
    }

    fn find_targets(&mut self) {
        for index in 0..self.code_len {
            let Some(instruction) = self.instruction(index) else { continue };
            if let Some(target) = self.target(index, &instruction) {
                let is_call = matches!(instruction.op, Op::Call | Op::Bl);
                let targets = if is_call { &mut self.call_targets } else { &mut self.branch_targets };
                targets[target] = true;
            }
        }
    }

    fn find_handlers(&mut self, table: &[u32]) {
        // The native form has no labels at offset 0: a slot of the table without a label is 0.
        let is_labelled = |offset: &u32| *offset != 0 || self.syntax == Syntax::Mesa;
        let handler = |(opcode, offset): (u8, &u32)| Handler {
            offset: *offset as usize,
            name: packet_label(opcode, self.generation),
        };
        let mut handlers: Vec<Handler> =
            (0_u8..).zip(table).filter(|(_, offset)| is_labelled(offset)).map(handler).collect();
        handlers.sort_by(|a, b| (a.offset, &a.name).cmp(&(b.offset, &b.name)));
        self.handlers = handlers;
    }

    /// The handlers at a word.
    fn handlers_at(&self, index: usize) -> &[Handler] {
        let first = self.handlers.partition_point(|handler| handler.offset < index);
        let rest = &self.handlers[first..];
        &rest[..rest.partition_point(|handler| handler.offset == index)]
    }

    /// Follows all paths from the start, the handlers, the preemption handlers and the calls (AFC-059). A word with
    /// ignored bits, which no instruction text encodes, is followed as well: the processor executes it.
    fn find_reached(&mut self) {
        let mut reached = vec![false; self.code_len];
        // A word in the delay slot of a terminator is reached, but the word behind it is not, unless another path leads to it.
        let mut followed = vec![false; self.code_len];
        let calls = (0..self.code_len).filter(|index| self.call_targets[*index]);
        let mut open: Vec<usize> = self.handlers.iter().map(|handler| handler.offset).chain(calls).collect();
        open.extend(self.preemption_handlers());
        open.push(0);
        while let Some(mut index) = open.pop() {
            let mut is_last_slot = false;
            while index < self.code_len && !followed[index] {
                reached[index] = true;
                followed[index] = !is_last_slot;
                let instruction = decode(self.words[index], self.generation);
                open.extend(instruction.and_then(|instruction| self.target(index, &instruction)));
                if is_last_slot {
                    break;
                }
                is_last_slot = instruction.is_some_and(|instruction| instruction.is_terminator());
                index += 1;
            }
        }
        self.reached = reached;
    }

    /// The preemption handlers: offsets that are stored in the SQE register PREEMPT_INSTR, if the last write of the stored
    /// register before it, in code without a terminator or data between the two, is a move of an immediate:
    /// `mov $02, #handler`, then `swrite $02, [$00 + %PREEMPT_INSTR]`.
    fn preemption_handlers(&self) -> Vec<usize> {
        let mut handlers = Vec::new();
        // The immediate that each register has, if it is known.
        let mut immediates = [None; 32];
        for word in &self.words[..self.code_len] {
            let Some(instruction) = decode(*word, self.generation) else {
                immediates = [None; 32];
                continue;
            };
            if self.stores_preemption_handler(&instruction) {
                let handler = immediates[usize::from(instruction.src2)].and_then(|value| usize::try_from(value).ok());
                handlers.extend(handler.filter(|handler| *handler < self.code_len));
            }
            if instruction.is_terminator() {
                immediates = [None; 32];
                continue;
            }
            let value = (instruction.op == Op::MovImm).then(|| u64::from(instruction.imm) << instruction.src1);
            for number in instruction.written_registers() {
                immediates[usize::from(number)] = value;
            }
        }
        handlers
    }

    /// True if the instruction stores a general register in PREEMPT_INSTR.
    fn stores_preemption_handler(&self, instruction: &Instruction) -> bool {
        instruction.op == Op::Swrite
            && instruction.src1 == register::ZERO
            && (register::HEADER..register::REM).contains(&instruction.src2)
            && register_name(Space::Sqe, self.set, instruction.imm).is_some_and(|name| name == "PREEMPT_INSTR")
    }

    /// The labels of a word, in the order in which they are printed.
    fn labels(&self, index: usize) -> impl Iterator<Item = Cow<'static, str>> {
        let handlers = self.handlers_at(index).iter().map(|handler| handler.name.clone());
        let flag = |flags: &[bool]| flags.get(index).copied().unwrap_or(false);
        let function = flag(&self.call_targets).then(|| format!("fxn{index}").into());
        let branch = flag(&self.branch_targets).then(|| format!("l{index}").into());
        handlers.chain(function).chain(branch)
    }

    /// What a word is.
    fn kind(&self, index: usize) -> LineKind {
        if self.printed_table.is_some_and(|start| (start..start + PACKET_TABLE).contains(&index)) {
            return LineKind::Table;
        }
        let instruction = (index < self.code_len).then(|| self.instruction(index)).flatten();
        instruction.map_or(LineKind::Literal, LineKind::Instruction)
    }

    fn line(&self, index: usize) -> Line {
        let word = self.words[index];
        let kind = self.kind(index);
        let mut text = String::new();
        let mut target = None;
        if let LineKind::Instruction(instruction) = &kind {
            self.write_instruction(&mut text, index, instruction);
            target = self.target(index, instruction).and_then(|target| u32::try_from(target).ok());
        } else {
            write_number(&mut text, word);
        }
        Line {
            address: u32::try_from(index).unwrap_or(u32::MAX),
            word,
            kind,
            labels: self.labels(index).map(Cow::into_owned).collect(),
            text,
            target,
            reached: self.reached.get(index).copied().unwrap_or(false),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "an offset of 26 bits")]
    fn write_instruction(&self, out: &mut String, index: usize, instruction: &Instruction) {
        let target = match self.target(index, instruction) {
            Some(target) if matches!(instruction.op, Op::Call | Op::Bl) => Target::Function(target as u32),
            Some(target) => Target::Label(target as u32),
            None if self.syntax == Syntax::Mesa => Target::MesaNumber,
            None => Target::Number,
        };
        write_instruction(out, instruction, self.set, target);
    }

    fn write(&self, out: &mut String, is_last: bool) {
        let is_aligned = self.generation == Generation::A7
            && !is_last
            && self.printed_table.is_some_and(|table| table.is_multiple_of(SECTION_ALIGN_WORDS));
        let padding = if is_aligned && self.syntax == Syntax::Native { self.padding() } else { 0 };
        for index in 0..self.code_len - padding {
            if index != 0 && (self.call_targets[index] || !self.handlers_at(index).is_empty()) {
                out.push('\n');
            }
            for label in self.labels(index) {
                let _ = writeln!(out, "{label}:");
            }
            self.write_word(out, index);
            out.push('\n');
        }
        let Some(table) = self.printed_table else { return };
        if is_aligned {
            let _ = writeln!(out, ".align {SECTION_ALIGN_BYTES}");
        }
        out.push_str("jumptbl:\n.jumptbl\n");
        for word in &self.words[table + PACKET_TABLE..] {
            write_number(out, *word);
            out.push('\n');
        }
    }

    /// Number of NOPs at the end of the code that `.align` adds again: no path leads to them.
    fn padding(&self) -> usize {
        let is_padding = |index: &usize| {
            self.words[*index] == self.generation.nop_literal(0)
                && !self.reached[*index]
                && self.labels(*index).next().is_none()
        };
        (0..self.code_len).rev().take(SECTION_ALIGN_WORDS - 1).take_while(is_padding).count()
    }

    fn write_word(&self, out: &mut String, index: usize) {
        let LineKind::Instruction(instruction) = self.kind(index) else {
            self.write_literal(out, index, self.words[index]);
            return;
        };
        self.write_instruction(out, index, &instruction);
        self.write_register_comment(out, &instruction);
        if self.syntax == Syntax::Native && !self.reached[index] {
            out.push_str("\t; not reached");
        }
    }

    fn write_literal(&self, out: &mut String, index: usize, word: u32) {
        let table = self.printed_table.and_then(|table| u32::try_from(table).ok());
        let is_table = table.is_some_and(|table| self.generation.nop_with(table) == Some(word));
        if is_table && (index == 1 || self.syntax == Syntax::Mesa) {
            out.push_str("[#jumptbl]");
            return;
        }
        if self.syntax == Syntax::Native && index == 1 && self.end_word == Some(word) {
            out.push_str("[#end]");
            return;
        }
        write_number(out, word);
        if self.syntax == Syntax::Mesa {
            self.write_gpu_register(out, word);
        } else if let Some(instruction) = decode(word, self.generation) {
            out.push_str("\t; ");
            write_instruction(out, &instruction, self.set, Target::Number);
            out.push_str(", with ignored bits");
        // The first two words are the header of a section.
        } else if index > 1 && !self.reached[index] {
            out.push_str("\t; data");
        }
    }

    /// The comment of Mesa on an immediate: the pipe register that `$addr` gets, if the value is shifted to the place of its
    /// number, otherwise the GPU register that the value may be (AF-113).
    fn write_register_comment(&self, out: &mut String, i: &Instruction) {
        match i.op {
            Op::MovImm if i.dst == register::MEMDATA_ADDR && i.src1 >= 16 => {
                self.write_pipe_register(out, i.imm << i.src1);
            }
            Op::MovImm => self.write_gpu_register(out, i.imm << i.src1),
            op if op.is_alu_immediate() => self.write_gpu_register(out, i.imm),
            _ => {}
        }
    }

    fn write_pipe_register(&self, out: &mut String, value: u32) {
        let address = DataAddress::from_word(value);
        if address.low != 0 {
            return;
        }
        // Mesa prints at least three digits.
        let _ = match register_name(Space::Pipe, self.set, address.pipe.into()) {
            Some(name) => write!(out, "\t; |{name}"),
            None => write!(out, "\t; 0x{:03x}", address.pipe),
        };
    }

    fn write_gpu_register(&self, out: &mut String, number: u32) {
        if GPU_REGISTERS.contains(&number)
            && let Some(name) = register_name(Space::Gpu, self.set, number)
        {
            let _ = write!(out, "\t; {name}");
        }
    }
}

fn write_number(out: &mut String, word: u32) {
    let _ = write!(out, "[{word:08x}]");
}

#[cfg(test)]
mod tests;
