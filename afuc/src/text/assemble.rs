// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The assembler: emits words while the parser reads statements, and resolves labels at the end of each section.

use std::collections::HashMap;
use std::ops::Range;

use crate::container::{Image, SECTION_ALIGN_BYTES, chip};
use crate::isa::{EncodeError, Generation, Instruction, Op, Slot, encode};
use crate::names::{ControlSet, PACKET_TABLE, PacketLabel, packet_of_label};

use super::diagnostic::{Diagnostic, Diagnostics, LIMIT};
use super::limits::{CALL_TARGET_BITS, SETSECURE_TITLE, SETSECURE_WORDS, field_reason};
use super::parse::{FAR_BRANCH, Parser};

/// Words that a call can address.
const MAX_WORDS: usize = 1 << CALL_TARGET_BITS;

/// Options of the assembler.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// The generation, if the source has neither `.gen` nor a literal with a known id, or `.if` precedes them.
    pub generation: Option<Generation>,
}

/// The result of an assembly.
#[derive(Debug, Clone)]
pub struct Assembled {
    /// The image.
    pub image: Image,
    /// Sections in order.
    pub sections: Vec<AssembledSection>,
    /// What is suspicious, but has a meaning.
    pub warnings: Vec<Diagnostic>,
}

/// A section of the result.
#[derive(Debug, Clone)]
pub struct AssembledSection {
    /// Name; `None` for the first.
    pub name: Option<String>,
    /// First word in the image.
    pub start: usize,
    /// Labels with their offsets in the section, in order of offset.
    pub labels: Vec<(String, u32)>,
}

/// Assembles a source.
///
/// # Errors
///
/// All errors of the source, at most 20. Each has its place, a reason and, if there is one, a cure. If several are errors
/// because the source is of another generation, there is one for all of them.
pub fn assemble(source: &str, options: &Options) -> Result<Assembled, Diagnostics> {
    let mut assembler = Assembler::new(options, None);
    Parser::new(source).parse(&mut assembler);
    let set = assembler.set;
    let declared = assembler.declared.clone();
    assembler.finish(source.len()).map_err(|errors| match set {
        Some(set) => of_another_generation(source, errors, set.generation(), declared),
        None => errors,
    })
}

/// Replaces the errors that the source does not have in another generation by one, if there are several. `present` is the
/// generation that the source was assembled for, and `declared` the place of its declaration.
fn of_another_generation(
    source: &str,
    errors: Diagnostics,
    present: Generation,
    declared: Option<Range<usize>>,
) -> Diagnostics {
    let Diagnostics(errors) = errors;
    let others = Generation::ALL.into_iter().filter(|other| *other != present);
    let tried = others.map(|other| {
        let mut assembler = Assembler::new(&Options::default(), Some(other));
        Parser::new(source).parse(&mut assembler);
        (other, assembler.finish(source.len()).map_or_else(|errors| errors.0, |_| Vec::new()))
    });
    let Some((other, remaining)) = tried.min_by_key(|(_, errors)| errors.len()) else { return Diagnostics(errors) };
    let remains = |error: &&Diagnostic| remaining.iter().any(|other| other.span == error.span);
    let (kept, caused): (Vec<_>, Vec<_>) = errors.iter().partition(remains);
    let (first, last) = match caused.as_slice() {
        [first, .., last] if remaining.len() < LIMIT => (*first, *last),
        _ => return Diagnostics(errors),
    };
    let is_cut = errors.len() >= LIMIT;
    let (present, other) = (present.number(), other.number());
    let line = |error: &Diagnostic| source[..error.span.start].matches('\n').count() + 1;
    let count = if is_cut { format!("{} or more", caused.len()) } else { caused.len().to_string() };
    let reason = format!("{}; {count} places like this in lines {} to {}", first.title, line(first), line(last));
    let help = match &declared {
        Some(span) => format!("correct `{}`, which is of a{present}xx", source[span.clone()].trim()),
        None => format!("use --gen {other}"),
    };
    // Errors that follow the last one that was reported.
    let end = errors.iter().map(|error| error.span.start).max().unwrap_or_default();
    let more = remaining.iter().filter(|error| is_cut && error.span.start > end);
    let title = format!("the source is for a{other}xx, and is assembled for a{present}xx");
    let merged = Diagnostic::new(first.span.clone(), title, reason).help(help);
    let mut all: Vec<Diagnostic> = [merged].into_iter().chain(kept.into_iter().chain(more).cloned()).collect();
    all.sort_by_key(|error| error.span.start);
    Diagnostics(all)
}

/// What a label's offset is put into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// 16-bit offset from the instruction.
    Relative,
    /// 26-bit offset from the start of the section.
    Absolute,
    /// 16-bit immediate of `mov`.
    Immediate,
    /// Target of `setsecure`, which is always three words ahead.
    SetSecure,
    /// 24 bits of a NOP, `[#label]`.
    Literal,
    /// A whole word.
    Word,
}

struct Fixup<'s> {
    at: usize,
    name: &'s str,
    span: Range<usize>,
    kind: Use,
}

/// Places of operands in the source, by [`Slot`].
#[derive(Debug, Clone)]
pub(super) struct Spans {
    pub mnemonic: Range<usize>,
    pub slots: [Range<usize>; 8],
}

pub(super) struct Assembler<'s> {
    set: Option<ControlSet>,
    /// True after `.gen` or the first literal.
    fixed: bool,
    /// The source is assembled for this generation whatever it declares.
    forced: bool,
    /// Where the source declares the generation.
    declared: Option<Range<usize>>,
    words: Vec<u32>,
    leading_zero: bool,
    sections: Vec<AssembledSection>,
    labels: HashMap<&'s str, (u32, Range<usize>)>,
    fixups: Vec<Fixup<'s>>,
    /// `[#end]`
    end_fixups: Vec<(usize, Range<usize>)>,
    tables: Vec<usize>,
    pub constants: HashMap<&'s str, u32>,
    pub errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
}

impl<'s> Assembler<'s> {
    fn new(options: &Options, forced: Option<Generation>) -> Self {
        let first = AssembledSection { name: None, start: 0, labels: Vec::new() };
        Self {
            set: forced.or(options.generation).map(ControlSet::of),
            fixed: false,
            forced: forced.is_some(),
            declared: None,
            words: Vec::new(),
            leading_zero: true,
            sections: vec![first],
            labels: HashMap::new(),
            fixups: Vec::new(),
            end_fixups: Vec::new(),
            tables: Vec::new(),
            constants: HashMap::new(),
            errors: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// True if no more errors are reported.
    pub fn is_full(&self) -> bool {
        self.errors.len() >= LIMIT
    }

    fn report(&mut self, error: Diagnostic) {
        if !self.is_full() {
            self.errors.push(error);
        }
    }

    /// The control registers, which also say the generation.
    pub fn set(&self, span: &Range<usize>) -> Result<ControlSet, Diagnostic> {
        self.set.ok_or_else(|| {
            Diagnostic::new(span.clone(), "the generation is not known here", "needs the generation")
                .help("begin with a literal that has a known id, such as `[016ee001]`, with `.gen 6`, or use --gen")
        })
    }

    fn section_start(&self) -> usize {
        self.sections.last().map_or(0, |section| section.start)
    }

    /// Offset of the next word in the section.
    fn offset(&self) -> u32 {
        u32::try_from(self.words.len() - self.section_start()).unwrap_or(u32::MAX)
    }

    fn push(&mut self, word: u32, span: &Range<usize>) -> Result<(), Diagnostic> {
        if self.words.len() >= MAX_WORDS {
            return Err(Diagnostic::new(span.clone(), "the image is too large", format!("at most {MAX_WORDS} words")));
        }
        self.words.push(word);
        Ok(())
    }

    pub fn declare_generation(&mut self, number: u32, span: Range<usize>) -> Result<(), Diagnostic> {
        let Some(generation) = Generation::from_number(number) else {
            return Err(Diagnostic::new(span, format!("there is no generation {number}"), "5, 6 or 7 is possible"));
        };
        if self.forced {
            self.fixed = true;
            return Ok(());
        }
        if self.set.is_some_and(|set| set.generation() != generation) {
            let reason = "another generation is in use already";
            return Err(Diagnostic::new(span, "the generation cannot change", reason));
        }
        if self.set.is_none() {
            self.declared = Some(span);
        }
        self.set = Some(ControlSet::of(generation));
        self.fixed = true;
        Ok(())
    }

    pub fn no_leading_zero(&mut self) {
        self.leading_zero = false;
    }

    pub fn declare_label(&mut self, name: &'s str, span: Range<usize>) -> Result<(), Diagnostic> {
        let offset = self.offset();
        if let Some((first, _)) = self.labels.get(name) {
            let title = format!("label `{name}` is defined twice");
            let reason = format!("the first definition is at word {first:#x}");
            return Err(Diagnostic::new(span, title, reason).help("give one of the two another name"));
        }
        self.labels.insert(name, (offset, span));
        if let Some(section) = self.sections.last_mut() {
            section.labels.push((name.to_owned(), offset));
        }
        Ok(())
    }

    pub fn emit_literal(&mut self, word: u32, span: &Range<usize>) -> Result<(), Diagnostic> {
        if !self.fixed {
            match (chip(word), self.set) {
                (Some(chip), None) => {
                    self.set = Some(chip.set);
                    self.declared = Some(span.clone());
                }
                (Some(chip), Some(set)) if chip.set.generation() == set.generation() => self.set = Some(chip.set),
                (_, Some(_)) => {}
                (None, None) => {
                    let title = format!("the id {:03x} of the first literal is unknown", word >> 12 & 0xfff);
                    return Err(Diagnostic::new(span.clone(), title, "bits 23:12 are the id")
                        .help("put `.gen 5`, `.gen 6` or `.gen 7` before it"));
                }
            }
            self.fixed = true;
        }
        self.push(word, span)
    }

    pub fn emit_word(&mut self, word: u32, span: &Range<usize>) -> Result<(), Diagnostic> {
        self.push(word, span)
    }

    pub fn emit_label_word(&mut self, name: &'s str, span: Range<usize>, kind: Use) -> Result<(), Diagnostic> {
        self.set(&span)?;
        self.fixups.push(Fixup { at: self.words.len(), name, span: span.clone(), kind });
        self.push(0, &span)
    }

    pub fn align(&mut self, bytes: u32, span: Range<usize>) -> Result<(), Diagnostic> {
        if bytes == 0 || !bytes.is_multiple_of(4) || bytes > 1 << 20 {
            return Err(Diagnostic::new(
                span,
                format!("{bytes} is no alignment"),
                "a multiple of 4 bytes, at most 1 MiB",
            ));
        }
        let nop = self.set(&span)?.generation().nop_literal(0);
        while !self.offset().is_multiple_of(bytes / 4) {
            self.push(nop, &span)?;
        }
        Ok(())
    }

    pub fn packet_table(&mut self, span: &Range<usize>) -> Result<(), Diagnostic> {
        self.set(span)?;
        self.tables.push(self.words.len());
        (0..PACKET_TABLE).try_for_each(|_| self.push(0, span))
    }

    pub fn next_section(&mut self, name: &str, span: Range<usize>) -> Result<(), Diagnostic> {
        self.align(SECTION_ALIGN_BYTES, span)?;
        self.end_section();
        let section = AssembledSection { name: Some(name.to_owned()), start: self.words.len(), labels: Vec::new() };
        self.sections.push(section);
        Ok(())
    }

    /// Encodes an instruction. `target` is a label for its immediate.
    pub fn emit(
        &mut self,
        instruction: &Instruction,
        mnemonic: &str,
        spans: &Spans,
        target: Option<(&'s str, Range<usize>, Use)>,
    ) -> Result<(), Diagnostic> {
        let generation = self.set(&spans.mnemonic)?.generation();
        let word = encode(instruction, generation)
            .map_err(|error| explain(error, instruction, mnemonic, generation, spans))?;
        if let Some((name, span, kind)) = target {
            self.fixups.push(Fixup { at: self.words.len(), name, span, kind });
        }
        self.push(word, &spans.mnemonic)
    }

    /// The offset of the instruction that is emitted next from the start of its section, for `#=` targets of branches.
    pub fn here(&self) -> u32 {
        self.offset()
    }

    fn end_section(&mut self) {
        self.fill_tables();
        let start = self.section_start();
        for fixup in std::mem::take(&mut self.fixups) {
            // Each error searches the labels for a similar name, which makes the time quadratic in the source.
            if self.is_full() {
                break;
            }
            if let Err(error) = self.resolve(&fixup, start) {
                self.report(error);
            }
        }
        self.labels.clear();
    }

    fn resolve(&mut self, fixup: &Fixup<'s>, start: usize) -> Result<(), Diagnostic> {
        let Some((offset, _)) = self.labels.get(fixup.name) else {
            if fixup.name == "end" && fixup.kind == Use::Literal {
                self.end_fixups.push((fixup.at, fixup.span.clone()));
                return Ok(());
            }
            let error =
                Diagnostic::new(fixup.span.clone(), format!("no label `{}`", fixup.name), "not in this section")
                    .help("define it in this section");
            let error = error.help_by_name(
                if fixup.kind == Use::Word { "" } else { "#" },
                fixup.name,
                self.labels.keys().copied(),
            );
            let other = self.sections.iter().any(|section| section.labels.iter().any(|(name, _)| name == fixup.name));
            return Err(if other { error.help("labels are local to a `.section`") } else { error });
        };
        let offset = *offset;
        let relative = i64::from(offset) - i64::try_from(fixup.at - start).unwrap_or(i64::MAX);
        let too_far = |limit: &str| {
            let title = format!("label `{}` is out of reach", fixup.name);
            let error = Diagnostic::new(fixup.span.clone(), title, format!("at word {offset:#x}; {limit}"));
            Err(if fixup.kind == Use::Relative { error.help(FAR_BRANCH) } else { error })
        };
        let generation = self.set(&fixup.span)?.generation();
        let word = &mut self.words[fixup.at];
        match fixup.kind {
            Use::Relative => match i16::try_from(relative) {
                Ok(relative) => *word |= u32::from(relative.cast_unsigned()),
                Err(_) => return too_far(&format!("{relative} words away, a branch reaches -32768 to 32767")),
            },
            Use::Absolute if offset < 1 << CALL_TARGET_BITS => *word |= offset,
            Use::Absolute => return too_far(&format!("a call reaches 2^{CALL_TARGET_BITS} words")),
            Use::Immediate if offset <= 0xffff => *word |= offset,
            Use::Immediate => return too_far("an immediate has 16 bits"),
            Use::SetSecure if relative == i64::from(SETSECURE_WORDS) => {}
            Use::SetSecure => {
                let reason = format!("this label is {relative} words ahead");
                return Err(Diagnostic::new(fixup.span.clone(), SETSECURE_TITLE, reason)
                    .help("put the label after the two instructions that follow"));
            }
            Use::Literal => match generation.nop_with(offset) {
                Some(literal) => *word = literal,
                None => return too_far("a literal holds 24 bits"),
            },
            Use::Word => *word = offset,
        }
        Ok(())
    }

    fn fill_tables(&mut self) {
        if self.tables.is_empty() {
            return;
        }
        let Some(generation) = self.set.map(ControlSet::generation) else { return };
        let mut labels: Vec<_> = self.labels.iter().map(|(name, (at, span))| (*name, *at, span.clone())).collect();
        labels.sort_by_key(|(_, _, span)| span.start);
        let mut table = [0_u32; PACKET_TABLE];
        let mut used: [Option<&str>; PACKET_TABLE] = [None; PACKET_TABLE];
        for (name, at, span) in labels {
            let opcode = match packet_of_label(name, generation) {
                PacketLabel::None => continue,
                PacketLabel::Handler(opcode) => usize::from(opcode),
                PacketLabel::OtherGeneration(opcode, own) => {
                    let title = format!("a{}xx has no packet `{name}`", generation.number());
                    let reason = format!("taken as opcode {opcode:#04x}, as on other generations");
                    let warning = Diagnostic::new(span.clone(), title, reason);
                    self.warnings.push(warning.help(format!("here the opcode's name is `{own}`")));
                    usize::from(opcode)
                }
            };
            if let Some(other) = used[opcode].filter(|_| table[opcode] != at) {
                let title = format!("opcode {opcode:#04x} has two handlers");
                self.report(Diagnostic::new(span, title, format!("`{other}` is its handler already")));
                continue;
            }
            (table[opcode], used[opcode]) = (at, Some(name));
        }
        for at in std::mem::take(&mut self.tables) {
            self.words[at..at + PACKET_TABLE].copy_from_slice(&table);
        }
    }

    fn finish(mut self, end: usize) -> Result<Assembled, Diagnostics> {
        self.end_section();
        let total = u32::try_from(self.words.len()).unwrap_or(u32::MAX);
        if let Some(set) = self.set {
            for (at, span) in std::mem::take(&mut self.end_fixups) {
                match set.generation().nop_with(total) {
                    Some(literal) => self.words[at] = literal,
                    None => {
                        let reason = format!("a literal holds 24 bits, and the image has {total} words");
                        self.report(Diagnostic::new(span, "the image is too large for `[#end]`", reason));
                    }
                }
            }
        } else if self.errors.is_empty() {
            let span = end.saturating_sub(1)..end;
            if let Err(error) = self.set(&span) {
                self.report(error);
            }
        }
        match self.set {
            Some(set) if self.errors.is_empty() => {
                let image = Image { words: self.words, leading_zero: self.leading_zero, set };
                Ok(Assembled { image, sections: self.sections, warnings: self.warnings })
            }
            _ => {
                self.errors.sort_by_key(|error| error.span.start);
                Err(Diagnostics(self.errors))
            }
        }
    }
}

/// Turns an error of the encoder into one with place, reason and cure. Shifts, bits and immediates of branches were
/// checked by the parser.
fn explain(
    error: EncodeError,
    instruction: &Instruction,
    mnemonic: &str,
    generation: Generation,
    spans: &Spans,
) -> Diagnostic {
    let number = generation.number();
    let EncodeError::Range { slot, value, max } = error else {
        let rows = crate::isa::ENCODINGS.iter().filter(|row| row.op == instruction.op);
        let has: Vec<String> =
            rows.flat_map(|row| row.generations.iter()).map(|g| format!("a{}xx", g.number())).collect();
        let title = format!("a{number}xx has no `{mnemonic}` with these operands");
        let error = Diagnostic::new(spans.mnemonic.clone(), title, format!("only {} has it", has.join(", ")));
        return error.help(format!("use other instructions, which `afuc isa --gen {number}` lists"));
    };
    let span = spans.slots[slot as usize].clone();
    let modifier = match slot {
        Slot::Rep => Some("(rep)"),
        Slot::Peek => Some("(peek)"),
        Slot::Extra => Some("this modifier"),
        Slot::Preincrement => Some("`!`"),
        _ => None,
    };
    if let Some(modifier) = modifier {
        let title = format!("{modifier} is not possible here");
        let reason = if max == 0 {
            format!("`{mnemonic}` in this form has no such modifier on a{number}xx")
        } else {
            format!("at most {max}")
        };
        return Diagnostic::new(span, title, reason).help("leave it away");
    }
    let reason = field_reason(value, max);
    match (slot, instruction.op) {
        (Slot::Imm, Op::MovImm) => {
            let zeros = value.trailing_zeros();
            let error = Diagnostic::new(span, "the immediate does not fit", reason);
            if value >> zeros <= 0xffff {
                error.help(format!("write `{:#x} << {zeros}`", value >> zeros))
            } else {
                let (high, low) = (value >> 16, value & 0xffff);
                error.help(format!("move `{high:#x} << 16`, then `or` with {low:#x}"))
            }
        }
        (Slot::Imm, Op::Load | Op::Store | Op::Cread | Op::Cwrite | Op::Sread | Op::Swrite) => {
            let (title, help) =
                ("the offset does not fit", format!("move {value:#x} to a register, and use it as the base"));
            Diagnostic::new(span, title, reason).help(help)
        }
        (Slot::Imm, op) if op.is_alu_immediate() || op == Op::NotImm => {
            Diagnostic::new(span, "the immediate does not fit", reason)
                .help(format!("move {value:#x} to a register, and use the form with registers"))
        }
        _ => Diagnostic::new(span, "the immediate does not fit", reason),
    }
}
