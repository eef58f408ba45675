// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Loads card files by name or path. An invalid file is rejected with a one-line message that gives the line number and
//! the valid values. The key `family` selects the family of GPUs, which determines the other keys.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arctic_device_model::gen6::profile::IntegratedProfile;
use arctic_device_model::gpu::{Gpu, Host, Model, PowerOnError, RegisterMap};
use arctic_device_model::limits::Limits;
use arctic_device_model::profile::CardProfile;
use arctic_sriov::function::{FunctionError, PciFunction};
use arctic_sriov::header::Identity;
use rustix::fs::{Mode, OFlags, open};
use serde::Deserialize;
use toml::de::{DeTable, DeValue};

/// Maximum size of a card file in bytes.
const LONGEST: u64 = 1 << 20;

/// The built-in card files, by name.
pub const BUILT_IN: [(&str, &str); 8] = [
    ("flex170", include_str!("../configs/flex170.toml")),
    ("flex140", include_str!("../configs/flex140.toml")),
    ("flex170-63vf", include_str!("../configs/flex170-63vf.toml")),
    ("small", include_str!("../configs/small.toml")),
    ("ivb", include_str!("../configs/ivb.toml")),
    ("ivb-swizzled", include_str!("../configs/ivb-swizzled.toml")),
    ("ivb-fused", include_str!("../configs/ivb-fused.toml")),
    ("snb", include_str!("../configs/snb.toml")),
];

/// A card of any family.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CardFile {
    /// A card of the Flex series.
    Flex(CardProfile),
    /// An integrated GPU.
    Integrated(IntegratedProfile),
}

impl CardFile {
    /// The profile of a Flex card.
    ///
    /// # Errors
    /// [`CardFileError::Integrated`] if the card is of another family.
    pub fn flex(self) -> Result<CardProfile, CardFileError> {
        match self {
            CardFile::Flex(profile) => Ok(profile),
            CardFile::Integrated(profile) => Err(CardFileError::Integrated { card: profile.name }),
        }
    }

    fn model(&self) -> &dyn Model {
        match self {
            CardFile::Flex(profile) => profile,
            CardFile::Integrated(profile) => profile,
        }
    }
}

impl Model for CardFile {
    fn name(&self) -> &str {
        self.model().name()
    }

    fn identity(&self) -> Identity {
        self.model().identity()
    }

    fn total_vfs(&self) -> u8 {
        self.model().total_vfs()
    }

    fn limits(&self) -> Limits {
        self.model().limits()
    }

    fn posted_writes(&self) -> bool {
        self.model().posted_writes()
    }

    fn physical_function(&self, vfs: u8) -> Result<PciFunction, FunctionError> {
        self.model().physical_function(vfs)
    }

    fn virtual_function(&self) -> Result<PciFunction, FunctionError> {
        self.model().virtual_function()
    }

    fn virtual_function_on_bus(&self) -> Result<PciFunction, FunctionError> {
        self.model().virtual_function_on_bus()
    }

    fn register_map(&self) -> RegisterMap {
        self.model().register_map()
    }

    fn power_on(&self, vfs: u8, provisioned: bool, host: Host) -> Result<Arc<dyn Gpu>, PowerOnError> {
        self.model().power_on(vfs, provisioned, host)
    }
}

/// Errors of loading a card file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CardFileError {
    /// The name is neither a file nor a built-in card.
    #[error("card file {card} not found; the built-in cards are {}", BUILT_IN.map(|(name, _)| name).join(", "))]
    Unknown {
        /// The name that was requested.
        card: String,
    },
    /// The file cannot be read.
    #[error(
        "cannot read card file {card}: {error}{}",
        if built_in(card).is_some() {
            "; it comes before the built-in card of this name: rename it, or run the command in another directory"
        } else {
            ""
        }
    )]
    Unreadable {
        /// The file.
        card: String,
        /// The cause.
        error: std::io::Error,
    },
    /// The card is an integrated GPU, where only Flex cards can be used.
    #[error("the card {card} is an integrated GPU: expected a Flex card, such as {}", BUILT_IN[0].0)]
    Integrated {
        /// Name of the card.
        card: String,
    },
    /// The file is not a valid card file.
    #[error(
        "{file}{}{}: {message}",
        line.map(|line| format!(" line {line}")).unwrap_or_default(),
        family.map(|family| format!(" (family {family})")).unwrap_or_default()
    )]
    Wrong {
        /// The file.
        file: String,
        /// The invalid line, counted from 1, if the error is on one line.
        line: Option<usize>,
        /// The family of the card, if it is known.
        family: Option<&'static str>,
        /// The error and the valid values.
        message: String,
    },
}

/// Loads `card`, which is a file or the name of a built-in card.
pub fn load(card: &str) -> Result<CardFile, CardFileError> {
    let path = Path::new(card);
    // A file takes precedence over a built-in card of the same name.
    if !path.exists()
        && let Some((name, text)) = built_in(card)
    {
        return parse(name, text);
    }
    let card = card.to_owned();
    match read(path) {
        Ok(text) => parse(&card, &text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(CardFileError::Unknown { card }),
        Err(error) => Err(CardFileError::Unreadable { card, error }),
    }
}

/// Name and text of a built-in card.
fn built_in(card: &str) -> Option<&'static (&'static str, &'static str)> {
    BUILT_IN.iter().find(|(name, _)| *name == card)
}

/// Reads a regular file. Other file types are rejected: reading a FIFO may block, and a device may return unlimited
/// data.
fn read(path: &Path) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut text = Vec::new();
    if file.take(LONGEST + 1).read_to_end(&mut text)? as u64 > LONGEST {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {LONGEST} bytes")));
    }
    String::from_utf8(text).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "no text: expected a TOML document"))
}

/// A family of GPUs.
struct Family {
    /// Value of the key `family`.
    name: &'static str,
    /// Reads the keys of a card.
    card: fn(toml::Deserializer<'_>) -> Result<CardFile, toml::de::Error>,
}

const XEHPG: Family = Family { name: "xehpg", card: |keys| Deserialize::deserialize(keys).map(CardFile::Flex) };
const GEN6: Family = Family { name: "gen6", card: |keys| Deserialize::deserialize(keys).map(CardFile::Integrated) };

/// The families.
const FAMILIES: [Family; 2] = [XEHPG, GEN6];

/// Parses the `text` of a card file; `file` is its name in messages. Logs a warning if the file has no key `family`.
pub fn parse(file: &str, text: &str) -> Result<CardFile, CardFileError> {
    let source = Source { file, text };
    let keys = DeTable::parse(text).map_err(|error| source.wrong(&error, None))?;
    let (family, warning) = source.family(keys.get_ref())?;
    if let Some(warning) = warning {
        log::warn!("{warning}");
    }
    (family.card)(keys.into()).map_err(|error| source.wrong(&error, Some(family.name)))
}

/// A card file that is parsed.
#[derive(Clone, Copy)]
struct Source<'s> {
    file: &'s str,
    text: &'s str,
}

impl Source<'_> {
    /// Returns the family, and a warning if the file does not name it.
    fn family(self, keys: &DeTable<'_>) -> Result<(Family, Option<String>), CardFileError> {
        let Some(value) = keys.get("family") else {
            // Files for version 0.1.0 name no family: only those of integrated GPUs have a generation.
            let family = if keys.contains_key("generation") { GEN6 } else { XEHPG };
            let line = format!("family = \"{}\"", family.name);
            let warning =
                format!("{} has no family: add the line `{line}`, which the next version requires", self.file);
            return Ok((family, Some(warning)));
        };
        let family = FAMILIES.into_iter().find(|family| value.get_ref().as_str() == Some(family.name));
        let unknown = || {
            let names = FAMILIES.map(|family| format!("\"{}\"", family.name)).join(" or ");
            let span = value.span();
            let text = self.text.get(span.clone()).unwrap_or_default();
            self.wrong_at(Some(span.start), None, &format!("unknown family {text}: expected {names}"))
        };
        Ok((family.ok_or_else(unknown)?, None))
    }

    fn wrong(self, error: &toml::de::Error, family: Option<&'static str>) -> CardFileError {
        let span = error.span();
        let message = match (error.message(), span.as_ref().and_then(|span| self.text.get(span.clone()))) {
            (WANTED_NAME, Some(found)) => format!("invalid type: `{found}`, expected a string"),
            (message, _) => without_types(message),
        };
        let keys = DeTable::parse(self.text).ok();
        let key = span.as_ref().and_then(|span| key_at(keys.as_ref()?.get_ref(), span));
        let names = |key: &String| {
            ["`", "[", ""]
                .iter()
                .zip(["`", "]", " ="])
                .any(|(start, end)| message.contains(&format!("{start}{key}{end}")))
        };
        let message = match key.filter(|key| !names(key)) {
            Some(key) => format!("{key}: {message}"),
            None => message,
        };
        self.wrong_at(span.map(|span| span.start), family, &message)
    }

    /// The error with this message at an offset in the text.
    fn wrong_at(self, at: Option<usize>, family: Option<&'static str>, message: &str) -> CardFileError {
        let line = at.and_then(|at| self.text.get(..at)).map(|before| before.matches('\n').count() + 1);
        CardFileError::Wrong { file: self.file.into(), line, family, message: one_sentence(message) }
    }
}

/// The key of the innermost value that contains the range of the text.
fn key_at(keys: &DeTable<'_>, at: &Range<usize>) -> Option<String> {
    let contains = |span: Range<usize>| span.start <= at.start && at.end <= span.end;
    keys.iter().find_map(|(key, value)| {
        let within = match value.get_ref() {
            DeValue::Table(table) => key_at(table, at),
            DeValue::Array(values) => values.iter().find_map(|value| key_at(value.get_ref().as_table()?, at)),
            _ => None,
        };
        within.or_else(|| (contains(key.span()) || contains(value.span())).then(|| key.get_ref().to_string()))
    })
}

/// The parser's message on a value that is not one of some names.
const WANTED_NAME: &str = "wanted string or table";

/// What the parser's messages call the types of this program, and a user of a card file does not know.
const TYPES: [(&str, &str); 5] = [
    ("u8", "a number from 0 to 255, like 8 or 0x08"),
    ("u16", "a number from 0 to 65535, like 0x56c0"),
    ("u32", "a number from 0 to 4294967295"),
    ("u64", "a number, like 8 or 0x08"),
    ("a sequence", "an array"),
];

/// A message of the parser with words in place of the type that was expected.
fn without_types(message: &str) -> String {
    const EXPECTED: &str = "expected ";
    let Some((found, expected)) = message.rsplit_once(EXPECTED) else { return message.to_owned() };
    let words = TYPES.into_iter().find(|(name, _)| *name == expected).map_or(expected, |(_, words)| words);
    let words = if words.starts_with("struct ") { "a section of keys" } else { words };
    format!("{found}{EXPECTED}{words}")
}

/// Formats the parser's message as one line of limited length without control characters. The message may quote
/// arbitrary text of the file, including terminal escape sequences and very long strings. Its end, which lists the
/// valid values, is kept.
fn one_sentence(message: &str) -> String {
    const START: usize = 120;
    const END: usize = 300;
    let line = message.lines().collect::<Vec<_>>().join(", ");
    let printed: Vec<char> =
        line.chars().flat_map(|c| if c.is_control() { c.escape_debug().collect() } else { vec![c] }).collect();
    if printed.len() <= START + END {
        return printed.into_iter().collect();
    }
    let (start, end) = (&printed[..START], &printed[printed.len() - END..]);
    start.iter().chain(&[' ', '…', ' ']).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use arctic_device_model::profile::provision::GgttAccess;

    use super::*;

    fn profile(card: &str) -> CardProfile {
        load(card).unwrap().flex().unwrap()
    }

    fn integrated(card: &str) -> IntegratedProfile {
        match load(card).unwrap() {
            CardFile::Integrated(profile) => profile,
            other => panic!("{card} is {other:?}"),
        }
    }

    /// The text of a built-in card.
    fn text(card: &str) -> &'static str {
        BUILT_IN.iter().find(|(name, _)| *name == card).unwrap().1
    }

    #[test]
    fn built_in_card_files_have_the_expected_values() {
        let flex = profile("flex170");
        assert_eq!((flex.local_memory, flex.revision), (16 << 30, 8));
        assert_eq!((flex.fuses.vdbox_mask, flex.fuses.vebox_mask, flex.frequency.rp0), (5, 3, 2050));
        assert!((0..4).all(|n| flex.has_compute(n)) && !flex.has_compute(4));
        assert_eq!((0..8).filter(|n| flex.has_video_decode(*n)).collect::<Vec<_>>(), [0, 2]);
        assert_eq!((0..8).filter(|n| flex.has_video_enhance(*n)).collect::<Vec<_>>(), [0, 1]);
        let flex140 = profile("flex140");
        assert_eq!((flex140.die.name, flex140.device, flex140.revision), ("dg2-g11", 0x56c1, 5));
        assert_eq!((flex140.local_memory, flex140.local_memory_bar()), (6 << 30, 8 << 30));
        assert_eq!((0..4).filter(|n| flex140.has_compute(*n)).collect::<Vec<_>>(), [0]);
        // PCU_CR_PACKAGE_RAPL_LIMIT, in units of 1/8 W.
        assert_eq!([&flex, &flex140].map(|card| card.registers().value(0x14_59a0) & 0x7fff), [150 * 8, 38 * 8]);
        assert_eq!((flex.die.name, flex.device, flex.local_memory_bar()), ("dg2-g10", 0x56c0, 16 << 30));
        let mut small = profile("small");
        assert_eq!(small.local_memory, 2 << 30);
        (small.name, small.local_memory) = (flex.name.clone(), flex.local_memory);
        assert_eq!(small, flex);
        assert_eq!((flex.total_vfs, flex.ggtt), (31, GgttAccess::Mapped));
        let versions = |card: &CardProfile| (card.firmware.graphics.bytes(), card.firmware.data.oem);
        assert_eq!(versions(&flex), (*b"DG02\x01\0\x71\x0c", 651));
        assert_eq!(versions(&flex140), (*b"DG02\x02\0\xdf\x08", 651));
        // SKUs SOC1 and SOC2; tools have no names for the steppings C0 and B1.
        assert_eq!(
            [&flex, &flex140].map(|card| (card.controller().sku, card.controller().step)),
            [(0, 0xff), (1, 0xff)]
        );
        let mut most = profile("flex170-63vf");
        assert_eq!(most.total_vfs, 63);
        (most.name, most.total_vfs) = (flex.name.clone(), 31);
        assert_eq!(most, flex);
    }

    #[test]
    fn integrated_gpus_are_a_separate_family() {
        let ivb = integrated("ivb");
        assert_eq!((ivb.device, ivb.revision, load("ivb").unwrap().total_vfs()), (0x0162, 9, 0));
        let swizzled = integrated("ivb-swizzled");
        assert_eq!((ivb.swizzling, swizzled.swizzling, swizzled.device), (false, true, 0x0162));
        for (card, device, display) in [("ivb-fused", 0x0162, "display = \"fused-off\""), ("snb", 0x0112, "")] {
            assert!(integrated(card).device == device && text(card).contains(display), "{card}");
        }
        let message = load("ivb").unwrap().flex().unwrap_err().to_string();
        let name = "Intel HD Graphics 4000";
        assert_eq!(message, format!("the card {name} is an integrated GPU: expected a Flex card, such as flex170"));
    }

    /// Errors name the family of which the file is: an unknown key, a value, and a key of the other family.
    #[test]
    fn mistakes_are_reported_with_the_family() {
        let mistakes = [
            ("ivb", "ivy-bridge", "i740", " line 10 (family gen6): ", "expected a generation"),
            ("ivb", "aperture =", "apertur =", " line 17 (family gen6): unknown field `apertur`", "`aperture`"),
            ("ivb", "\"gen6\"", "\"xehpg\"", " line 17 (family xehpg): unknown field `aperture`", "`local_memory`"),
            ("small", "\"xehpg\"", "\"gen6\"", " line ", " (family gen6): unknown field `f"),
            ("small", "\"2GiB\"", "\"2KiB\"", " line 9 (family xehpg): ", "a number of GiB"),
            ("small", "\"xehpg\"", "\"xe2\"", " line 4: unknown family \"xe2\"", ": expected \"xehpg\" or \"gen6\""),
            ("small", "\"xehpg\"", "7", " line 4: unknown family 7", ": expected \"xehpg\" or \"gen6\""),
            ("small", "\"xehpg\"", "\"xehpg\" \"", " line 4: ", ""),
        ];
        for (card, from, to, start, contents) in mistakes {
            assert!(text(card).contains(from), "{from}");
            let message = parse("my.toml", &text(card).replacen(from, to, 1)).unwrap_err().to_string();
            assert!(message.starts_with(&format!("my.toml{start}")) && message.contains(contents), "{to}: {message}");
        }
    }

    /// Files of version 0.1.0 have no family. They are read as before, with a warning that says what to add.
    #[test]
    fn a_file_without_family_is_read_with_a_warning() {
        for (card, text) in BUILT_IN {
            let line = text.lines().find(|line| line.starts_with("family = ")).unwrap();
            let old = text.replacen(&format!("{line}\n"), "", 1);
            assert_eq!(format!("{:?}", parse(card, &old).unwrap()), format!("{:?}", load(card).unwrap()));
            let warning = |text: &str| {
                let source = Source { file: "my.toml", text };
                source.family(DeTable::parse(text).unwrap().get_ref()).unwrap().1
            };
            let expected = format!("my.toml has no family: add the line `{line}`, which the next version requires");
            assert_eq!((warning(&old), warning(text)), (Some(expected), None), "{card}");
        }
    }

    /// Each case has the text to replace, its replacement, and a string that the message must contain. The message must
    /// also give the line number.
    #[test]
    fn a_bad_card_file_is_refused_with_line_and_remedy() {
        let good = BUILT_IN[0].1;
        let line = |text: &str| good[..good.find(text).unwrap()].matches('\n').count() + 1;
        let mistakes = [
            ("= \"16GiB\"", "= \"17GiB\"", "\"1GiB\" to \"16GiB\""),
            ("= \"16GiB\"", "= \"512MiB\"", "a number of GiB"),
            ("\"dg2-g10\"", "\"dg2-g12\"", "\"dg2-g10\" or \"dg2-g11\""),
            (
                "device = 0x56c0",
                "device = 0x156c0",
                "device: invalid value: integer `87744`, expected a number from 0 to 65535",
            ),
            ("device = 0x56c0", "device = 0", "a PCI device ID of the die"),
            ("= \"16GiB\"", "= 16", "expected a string"),
            ("revision = 8", "revision = 3", "8 (C0)"),
            (
                "revision = 8",
                "revision = \"C0\"",
                "revision: invalid type: string \"C0\", expected a number, like 8 or 0x08",
            ),
            ("revision = 8", "revison = 8", "expected one of `family`, `name`"),
            ("0xffffffff", "0x100000000", "0x1 to 0xffffffff"),
            ("vebox_mask = 0x3 ", "vebox_mask = 0x10 ", "0x1 to 0xf"),
            ("vdbox_mask = 0x05", "vdbox_mask = 0", "0x1 to 0xff"),
            ("vdbox_mask = 0x05", "vdbox_mask = -1", "integer `-1`"),
            ("rp0 = 2050", "rp0 = 2040", "a multiple of 50 MHz"),
            ("rp0 = 2050", "rp0 = = 2050", ""),
            ("total_vfs = 31", "total_vfs = 64", "1 to 63, or 0"),
            ("total_vfs = 31", "total_vfs = \"31\"", "total_vfs: invalid type: string \"31\", expected a number"),
            ("ggtt = \"mapped\"", "ggtt = \"fast\"", "`mapped` or `trapped`"),
            ("vf_local_memory = \"mapped\"", "vf_local_memory = \"fast\"", "`mapped` or `trapped`"),
            ("unmodelled = \"skip\"", "unmodelled = \"hang\"", "`skip` or `fault`"),
            ("\"DG02_1.3185\"", "\"DG2_1.3185\"", "a version such as \"DG02_1.3185\""),
            ("\"DG02_1.3185\"", "\"DG02_1.65536\"", "a version such as \"DG02_1.3185\""),
            ("\"101.0.1.3185\"", "\"101.0.3185\"", "a version of four numbers"),
            ("\"101.0.1.3185\"", "\"256.0.1.3185\"", "a version of four numbers"),
            ("\"101.651.1\"", "\"101.651.-1\"", "a version of three numbers"),
            ("code = [0x14, ", "code = [", "an array of length 8"),
            (
                "code = [0x14, ",
                "code = [0x114, ",
                "code: invalid value: integer `276`, expected a number from 0 to 255",
            ),
            ("# [provision]", "[provision]\nlocal_memory = \"3MiB\"", "a multiple of 2 MiB up to 16 GiB"),
            ("# [provision]", "[provision]\nggtt = \"4097MiB\"", "below 4 GiB"),
            ("# [provision]", "[provision]\ncontexts = 0", "1 to 65535"),
            ("# [provision]", "[provision]\ndoorbells = 257", "0 to 256"),
            ("# [provision]", "[provision]\ndoorbell = 1", "expected one of"),
            ("# [provision]", "[provision]\nexec_quantum_ms = 100001", "0 is unlimited"),
            ("# [provision]", "[[provision.vf]]\nnumber = 64", "1 to 63"),
            ("# [limits]", "[limits]\nmapped = \"0GiB\"", "\"1GiB\" to \"64TiB\""),
            ("# [limits]", "[limits]\nmapped = \"65537GiB\"", "\"1GiB\" to \"64TiB\""),
            ("# [limits]", "[limits]\nmapped_in_all = \"65TiB\"", "\"1GiB\" to \"64TiB\""),
            ("# [limits]", "[limits]\nmapped_in_all = \"18446744073709551615TiB\"", "\"1GiB\" to \"64TiB\""),
            ("# [limits]", "[limits]\nmapped = \"1024MiB\"", "\"1GiB\" to \"64TiB\""),
            ("# [limits]", "[limits]\nmapped = 1", "mapped: invalid type: integer `1`, expected a string"),
            ("# [limits]", "[limits]\nmappings = 15", "a number from 16 to 65535"),
            ("# [limits]", "[limits]\nmappings_in_all = 65536", "a number from 16 to 65535"),
            ("# [limits]", "[limits]\ndescriptors = 15", "a number from 16 to 65535"),
            ("# [limits]", "[limits]\ndescriptors_in_all = 65536", "a number from 16 to 65535"),
            ("# [limits]", "[limits]\nsections = 15", "a number from 16 to 16777216"),
            ("# [limits]", "[limits]\nsections_in_all = 0x1000001", "a number from 16 to 16777216"),
            ("# [limits]", "[limits]\nthreads = 0", "a number from 1 to 16"),
            ("# [limits]", "[limits]\nthreads = 17", "a number from 1 to 16"),
            ("# [limits]", "[limits]\nsection = 16", "expected one of"),
        ];
        for (from, to, remedy) in mistakes {
            let message = format!("{}", parse("my.toml", &good.replacen(from, to, 1)).unwrap_err());
            // An error in a section is on the line after its heading.
            let at = line(from) + to.matches('\n').count();
            let of = if remedy.is_empty() { "" } else { " (family xehpg)" };
            assert!(message.starts_with(&format!("my.toml line {at}{of}: ")), "{to}: {message}");
            assert!(message.contains(remedy) && !message.contains('\n'), "{to}: {message}");
        }
        let message = parse("my.toml", &good.replace("rp1 = 1950", "rp1 = 200")).unwrap_err().to_string();
        assert!(message.starts_with(&format!("my.toml line {} (family xehpg): ", line("[frequency]"))), "{message}");
        assert!(message.contains("rpn <= rp1 <= rp0"), "{message}");
        let message = parse("my.toml", &good.replace("board = 150", "board = 15")).unwrap_err().to_string();
        assert!(message.starts_with(&format!("my.toml line {} (family xehpg): ", line("[power]"))), "{message}");
        assert!(message.contains("idle = 40: expected idle <= board"), "{message}");
        let message = parse("my.toml", &good.replace("rpn = 300", "")).unwrap_err().to_string();
        assert!(message.contains("missing field `rpn`"), "{message}");
    }

    /// The commented lines of the card file are the defaults. The bounds and both units of sizes are accepted.
    #[test]
    fn limits_of_the_card_file_are_the_defaults_and_have_bounds() {
        let (before, section) = BUILT_IN[0].1.split_once("# [limits]\n").unwrap();
        let limits = |lines: &str| parse("my.toml", &format!("{before}[limits]\n{lines}")).unwrap().limits();
        let lines: Vec<_> = section.lines().map(|line| line.strip_prefix("# ").unwrap()).collect();
        assert_eq!(lines.len(), 9, "every limit");
        assert_eq!(limits(&lines.join("\n")), Limits::default());
        for (bytes, [size, total], count, files, sections, threads) in
            [(1 << 30, ["1GiB", "1 GiB"], 16, 16, 16, 1), (64 << 40, ["64TiB", "65536 GiB"], 65535, 65535, 1 << 24, 16)]
        {
            let text = format!(
                "mapped = \"{size}\"\nmapped_in_all = \"{total}\"\nmappings = {count}\nmappings_in_all = {count}\n\
                 sections = {sections}\nsections_in_all = {sections}\ndescriptors = {files}\ndescriptors_in_all = {files}\n\
                 threads = {threads}"
            );
            let [mapped, mapped_in_all] = [bytes; 2];
            let [mappings, mappings_in_all, descriptors, descriptors_in_all] = [count, count, files, files];
            let [sections, sections_in_all] = [sections; 2];
            let expected = Limits {
                mapped,
                mapped_in_all,
                mappings,
                mappings_in_all,
                sections,
                sections_in_all,
                descriptors,
                descriptors_in_all,
                threads,
            };
            assert_eq!(limits(&text), expected);
        }
    }

    /// Values of which each is valid, but not on the die of the card.
    #[test]
    fn values_that_the_die_does_not_have_are_refused() {
        let mistakes = [
            ("device = 0x56c1", "device = 0x56c0", "device = 0x56c0 has no dg2-g11: expected 0x56c1"),
            ("revision = 5", "revision = 8", "expected 0 (A0), 4 (B0), 5 (B1)"),
            ("dss_mask = 0xff ", "dss_mask = 0x1ff ", "expected bits of 0xff"),
            ("mslice_mask = 0x3 ", "mslice_mask = 0x4 ", "expected bits of 0x3"),
            ("vdbox_mask = 0x05", "vdbox_mask = 0x02", "expected bits of 0x5"),
            ("vebox_mask = 0x3 ", "vebox_mask = 0x4 ", "expected bits of 0x3"),
        ];
        let (_, good) = BUILT_IN.iter().find(|(name, _)| *name == "flex140").unwrap();
        for (from, to, remedy) in mistakes {
            assert!(good.contains(from), "{from}");
            let message = parse("my.toml", &good.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(message.starts_with("my.toml") && message.contains(remedy), "{to}: {message}");
        }
        let default = parse("my.toml", &BUILT_IN[0].1.replace("die = \"dg2-g10\"\ndevice = 0x56c0\n", "")).unwrap();
        assert_eq!(default.flex().unwrap(), profile("flex170"));
    }

    /// A message that quotes the file contains no control characters and is of limited length.
    #[test]
    fn message_has_limited_length_and_no_control_characters() {
        let message = |text: &str| parse("my.toml", text).unwrap_err().to_string();
        let clear = message("name = \"x\"\n\"\\u001b[2J\" = 1\n");
        assert!(
            clear.starts_with("my.toml line 2 (family xehpg): unknown field `\\u{1b}[2J`, expected one of `family`"),
            "{clear}"
        );
        for text in [format!("{} = 1\n", "k".repeat(9000)), format!("name = \"{}\"\n", "\\n".repeat(9000))] {
            let message = message(&text);
            assert!(message.len() < 600 && !message.contains(char::is_control), "{message}");
            assert!(message.contains(" … ") && message.contains("expected"), "{message}");
        }
    }

    #[test]
    fn only_regular_files_of_a_sane_length_are_read() {
        let dir = vmm_sys_util::tempdir::TempDir::new().unwrap();
        let path = dir.as_path().join("card");
        let message = || load(path.to_str().unwrap()).unwrap_err().to_string();
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(message().ends_with("card: not a regular file"), "{}", message());
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(message().ends_with("not a regular file"), "{}", message());
        std::fs::remove_dir(&path).unwrap();
        std::fs::write(&path, [0x7f, 0xff]).unwrap();
        assert!(message().ends_with("card: no text: expected a TOML document"), "{}", message());
        std::fs::write(&path, vec![b'#'; 2 << 20]).unwrap();
        assert!(message().ends_with("larger than 1048576 bytes"), "{}", message());
    }

    /// A directory or a binary file that has the name of a built-in card.
    #[test]
    fn what_hides_a_built_in_card_is_named() {
        let hidden = |card: &str| {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
            CardFileError::Unreadable { card: card.into(), error }.to_string()
        };
        assert_eq!(
            hidden("small"),
            "cannot read card file small: not a regular file; it comes before the built-in card of this name: rename it, \
             or run the command in another directory"
        );
        assert_eq!(hidden("./small"), "cannot read card file ./small: not a regular file");
    }

    #[test]
    fn an_unknown_card_is_reported_with_the_known_ones() {
        let message = load("flex9000").unwrap_err().to_string();
        assert_eq!(
            message,
            "card file flex9000 not found; the built-in cards are flex170, flex140, flex170-63vf, \
             small, ivb, ivb-swizzled, ivb-fused, snb"
        );
    }
}
