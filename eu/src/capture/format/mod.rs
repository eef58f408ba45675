// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Files of captures, as `docs/capture.md` describes them: sections of little-endian values. Files are untrusted.

mod read;
mod write;

use thiserror::Error;

use read::Reader;
use write::Writer;

use super::{Capture, Content, PAGE_BYTES, Page};
use crate::exec::memory::{
    Addressing, Channel, ChannelOrder, Comparison, Component, Dimensions, LevelFilter, Reduction,
};

/// First bytes of a file.
pub const MAGIC: [u8; 16] = *b"\x89EU-WALKER\r\n\x1a\n\0\0";
/// Version of the format.
pub const VERSION: u32 = 2;

/// Why a file is no capture.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CaptureError {
    /// The first bytes are others.
    #[error("the file is no captured walker")]
    Magic,
    /// Another version.
    #[error("the capture has version {0} of the format, and this program reads version {VERSION}")]
    Version(u32),
    /// The file ends inside of a section.
    #[error("the file ends in the section {0}: it was not written to its end")]
    End(String),
    /// The section is too short for what it has.
    #[error("the section {0} is too short for what it has to have")]
    Short(&'static str),
    /// Bytes are left in the section.
    #[error("the section {0} has bytes behind its end")]
    Long(&'static str),
    /// A section that every capture has.
    #[error("the section {0} is missing")]
    Missing(&'static str),
    /// A section that is in the file twice.
    #[error("the section {0} is in the file twice")]
    Twice(&'static str),
    /// A value without a meaning.
    #[error("the section {section} has the value {value:#x} for {what}, which has no meaning")]
    Value {
        /// Section.
        section: &'static str,
        /// What has the value.
        what: &'static str,
        /// The value.
        value: u64,
    },
}

const ORIGIN: &str = "ORIG";
const COMMANDS: &str = "CMDS";
const WALKER: &str = "WALK";
const LAUNCH: &str = "EXEC";
const SURFACES: &str = "SURF";
const SAMPLERS: &str = "SAMP";
const PAGES: &str = "PAGE";
const END: &str = "ENDS";
const SECTIONS: [&str; 8] = [ORIGIN, COMMANDS, WALKER, LAUNCH, SURFACES, SAMPLERS, PAGES, END];

// Values by their number in the file.
const ORDERS: [ChannelOrder; 10] = [
    ChannelOrder::R,
    ChannelOrder::Rg,
    ChannelOrder::Rgba,
    ChannelOrder::Bgra,
    ChannelOrder::Srgba,
    ChannelOrder::Sbgra,
    ChannelOrder::A,
    ChannelOrder::Intensity,
    ChannelOrder::Luminance,
    ChannelOrder::Depth,
];
const CHANNELS: [Channel; 12] = [
    Channel::Unorm8,
    Channel::Unorm16,
    Channel::Snorm8,
    Channel::Snorm16,
    Channel::Uint8,
    Channel::Uint16,
    Channel::Uint32,
    Channel::Sint8,
    Channel::Sint16,
    Channel::Sint32,
    Channel::Float16,
    Channel::Float32,
];
const COMPONENTS: [Component; 6] =
    [Component::Zero, Component::One, Component::Red, Component::Green, Component::Blue, Component::Alpha];
const DIMENSIONS: [Dimensions; 3] = [Dimensions::One, Dimensions::Two, Dimensions::Three];
const ADDRESSING_MODES: [Addressing; 8] = [
    Addressing::Wrap,
    Addressing::Mirror,
    Addressing::Clamp,
    Addressing::Border,
    Addressing::MirrorOnce,
    Addressing::HalfBorder,
    Addressing::Cube,
    Addressing::MirrorEdge,
];
const LEVEL_FILTERS: [LevelFilter; 3] = [LevelFilter::None, LevelFilter::Nearest, LevelFilter::Linear];
const COMPARISONS: [Comparison; 8] = [
    Comparison::Always,
    Comparison::Never,
    Comparison::Less,
    Comparison::Equal,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::NotEqual,
    Comparison::GreaterOrEqual,
];
const REDUCTIONS: [Reduction; 3] = [Reduction::Mean, Reduction::Minimum, Reduction::Maximum];

/// Flags of a page.
mod flag {
    pub const COMPRESSED: u8 = 1 << 0;
    pub const NULL: u8 = 1 << 1;
    pub const BEFORE_BYTES: u8 = 1 << 2;
    pub const AFTER_ZEROS: u8 = 1 << 3;
    pub const AFTER_BYTES: u8 = 1 << 4;
    pub const ALL: u8 = 0x1f;
}

impl Capture {
    /// Returns whether a file is a capture, by its first bytes.
    pub fn is_file(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC)
    }

    /// The bytes of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut file = Writer(Vec::with_capacity(self.content_bytes() + 32 * self.pages.len() + 4096));
        file.0.extend(MAGIC);
        file.u32(VERSION);
        file.section(ORIGIN, |out| {
            out.u8(self.origin.function);
            out.u64(self.origin.number);
            out.0.extend(self.origin.engine.as_bytes());
        });
        file.section(COMMANDS, |out| self.commands.iter().for_each(|dword| out.u32(*dword)));
        file.section(WALKER, |out| self.walker.iter().for_each(|dword| out.u32(*dword)));
        file.section(LAUNCH, |out| out.launch(&self.launch));
        file.section(SURFACES, |out| self.surfaces.iter().for_each(|(name, surface)| out.surface(*name, surface)));
        file.section(SAMPLERS, |out| self.samplers.iter().for_each(|(name, sampler)| out.sampler(*name, sampler)));
        file.section(PAGES, |out| self.pages.iter().for_each(|(name, page)| out.page(*name, page)));
        file.section(END, |out| out.end(&self.end));
        file.0
    }

    /// Bytes of the contents of all pages in a file.
    fn content_bytes(&self) -> usize {
        let bytes = |content: &Content| if matches!(content, Content::Zeros) { 0 } else { PAGE_BYTES };
        let pages = self.pages.values().map(|page| match page {
            Page::Null => 0,
            Page::Memory { before, after } => bytes(before) + after.as_ref().map_or(0, bytes),
        });
        pages.sum()
    }

    /// Reads a file. Sections that this version does not know are passed over.
    ///
    /// # Errors
    /// If it is no capture, or is damaged.
    pub fn parse(bytes: &[u8]) -> Result<Capture, CaptureError> {
        let rest = bytes.strip_prefix(&MAGIC).ok_or(CaptureError::Magic)?;
        let mut file = Reader { section: "HEAD", rest };
        let version = file.u32()?;
        if version != VERSION {
            return Err(CaptureError::Version(version));
        }
        let mut sections: [Option<&[u8]>; SECTIONS.len()] = [None; SECTIONS.len()];
        while !file.rest.is_empty() {
            let tag = file.bytes(4)?;
            let name = || String::from_utf8_lossy(tag).into_owned();
            let len = file.u64().map_err(|_| CaptureError::End(name()))?;
            let len = usize::try_from(len).ok().filter(|len| *len <= file.rest.len());
            let content = file.bytes(len.ok_or_else(|| CaptureError::End(name()))?)?;
            if let Some(at) = SECTIONS.iter().position(|section| section.as_bytes() == tag)
                && sections[at].replace(content).is_some()
            {
                return Err(CaptureError::Twice(SECTIONS[at]));
            }
        }
        let mut readers = SECTIONS.into_iter().zip(sections);
        let mut next = || -> Result<Reader<'_>, CaptureError> {
            let (section, content) = readers.next().unwrap_or((END, None));
            Ok(Reader { section, rest: content.ok_or(CaptureError::Missing(section))? })
        };
        Ok(Capture {
            origin: next()?.complete(Reader::origin)?,
            commands: next()?.list(Reader::u32)?,
            walker: next()?.list(Reader::u32)?,
            launch: next()?.complete(Reader::launch)?,
            surfaces: next()?.names(Reader::surface)?.into_iter().collect(),
            samplers: next()?.names(Reader::sampler)?.into_iter().collect(),
            pages: next()?.pages()?,
            end: next()?.complete(Reader::end)?,
        })
    }
}
