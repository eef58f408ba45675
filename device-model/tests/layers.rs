// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The order of the modules of the device model, of `sriov` and of the library `arctic-gpu`: a module may use only itself and
//! the modules below it, so that each can be read, tested and replaced without those above it. The modules in a folder have no
//! listed order, but may not use each other in a circle.
//!
//! The test reads the sources: every path that starts at the crate's root (`crate::a::b`, `super::` out of a module,
//! groups in `use`), in `use` declarations and in code. Items for tests (`#[cfg(test)]`) are exempt.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// A crate, with the folder of its sources from that of this package, and its modules, lowest first, with their contents.
type Crate = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// The crates, lowest first. A new module of a `lib.rs` needs a line here, above every module that it uses.
const CRATES: &[Crate] = &[
    (
        "sriov",
        "../sriov/src",
        &[
            ("number", "integer conversions"),
            ("config", "configuration space: fields, write masks, resets"),
            ("bar", "base address registers"),
            ("register", "registers of configuration space as types"),
            ("header", "registers of the type 0 header"),
            ("registers", "registers of the PCI Express, MSI and power management capabilities"),
            ("capability", "capability structures and the lists that link them"),
            ("part", "parts of configuration space, by which a saved state is compared"),
            ("reverted", "writes that the hardware does not accept"),
            ("sriov_capability", "the SR-IOV capability and the VF Resizable BAR capability"),
            ("event", "what a write changed"),
            ("function", "a PCI function: configuration accesses, MSI, FLR"),
            ("saved", "saved state of a function"),
            ("virtual_function", "virtual functions, with and without a bus with SR-IOV"),
        ],
    ),
    (
        "base",
        "base/src",
        &[
            ("sync", "locks and atomics, loom's with `--cfg loom`; the rule for poisoned locks"),
            ("event_count", "wakeups of the worker threads"),
            ("host", "the environment: DMA, interrupt sink, clock, function numbers"),
            ("interrupts", "delivery of a function's interrupt by MSI"),
            ("state", "versioned types of saved state, and the trait of the units that have one"),
            ("command", "rows of command tables, with lengths, fields and rules; origins of commands"),
            ("decode", "disassembly of batches"),
            ("memory", "regions that a VMM maps, spans of one translation, epochs of functions"),
            ("blitter", "layouts of surfaces, raster operations, copies and fills of rectangles"),
            ("registers", "parts of register tables"),
            ("trace", "recorder of trace events"),
            ("report", "report of unmodelled accesses and commands"),
            ("limits", "limits on host resources, from the card file"),
            ("gpu", "the interface of a GPU of any family, and of its description"),
            ("workers", "the threads that run a GPU"),
        ],
    ),
    (
        "xehpg",
        "xehpg/src",
        &[
            ("sync", "the lock order of the card"),
            ("hardware_error", "the hardware errors that the card can report"),
            ("gate", "isolation rules as pure functions: GGTT ownership, LMTT walk"),
            ("topology", "identities of engines, their classes and their MMIO bases"),
            ("command", "tables of the engines' commands"),
            ("memory", "local memory, GGTT, PPGTT, TLB, the only access path to bytes"),
            ("blitter", "the operations of the copy engine on spans of memory"),
            ("pcode", "the power controller's mailbox"),
            ("sensors", "power, energy, temperatures and the power limit"),
            ("registers", "tables of the registers, and the file of their values"),
            ("context_image", "layout of the register images of contexts"),
            ("residency", "RC6 residency: what keeps the GT awake"),
            ("heci", "the HECI windows of the GSC and its firmware interface"),
            ("doorbell", "doorbell pages and the block of their registers"),
            ("interrupts", "the interrupt tree, memory-based interrupts, delivery"),
            ("execlist", "submission queues, context descriptors and the context status buffer"),
            ("generation", "the descriptor of a hardware generation, which refers to the tables of the units"),
            ("profile", "the card's SKU and limits, from the card file"),
            ("gt", "state that engines and GuC share, and register accesses with side effects"),
            ("engine", "logical contexts and the command streamer"),
            ("guc", "the GuC: messages, contexts, scheduling, provisioning"),
            ("card", "the whole card: accesses, resets, files of its BARs"),
            ("decode", "disassembly of commands, context images and messages"),
        ],
    ),
    (
        "gen6",
        "gen6/src",
        &[
            ("sync", "the lock order of the card"),
            ("topology", "identities and classes of engines"),
            ("command", "tables of the engines' commands"),
            ("pcode", "the power controller's mailbox"),
            ("residency", "RC6 residency"),
            ("registers", "tables of the registers"),
            ("interrupts", "the banks of interrupt registers and the function's MSI"),
            ("generation", "the descriptor of a generation, which refers to the tables"),
            ("profile", "the card, from the card file"),
            ("decode", "disassembler of batches and rings, by the tables"),
            ("memory", "GGTT, PPGTT, fences and the aperture: the only access path to guest memory"),
            ("gt", "state that the units share, and register accesses with side effects"),
            ("blitter", "commands of the copy engine"),
            ("engine", "command streamers: rings, batches, contexts"),
            ("card", "the whole card: accesses, work, resets, its PCI function"),
        ],
    ),
    (
        "arctic-gpu",
        "../src",
        &[
            ("scheduling", "settings of the kernel's scheduler for the threads of a VMM"),
            ("ram", "guest memory that is replaced as a whole"),
            ("firmware", "placeholder images of firmware"),
            ("card_file", "the card files and the names of cards"),
            ("pci", "the interface between functions and a VMM"),
            ("report", "report of trapped and unmodelled accesses"),
            ("card", "the card as PCI functions"),
            ("vfio_user", "the vfio-user server"),
        ],
    ),
];

/// Exceptions: a crate, a module, the higher module that it uses, and the reason. At most [`MOST_EXCEPTIONS`] of each crate.
const EXCEPTIONS: &[(&str, &str, &str, &str)] = &[];

const MOST_EXCEPTIONS: usize = 2;

/// A token of Rust source: an identifier, `::`, or a single character of punctuation.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    text: String,
    line: usize,
}

/// Splits source into tokens, without comments, strings and numbers' suffixes; literals become the token `0`.
fn tokens(source: &str) -> VecDeque<Token> {
    let chars: Vec<char> = source.chars().collect();
    let at = |index: usize| chars.get(index).copied().unwrap_or('\0');
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut found, mut i, mut line) = (VecDeque::new(), 0, 1);
    while i < chars.len() {
        let (start, first) = (i, chars[i]);
        let text = match (first, at(i + 1)) {
            ('/', '/') => {
                i += chars[i..].iter().take_while(|c| **c != '\n').count();
                None
            }
            ('/', '*') => {
                let mut depth = 0;
                while i < chars.len() {
                    match (at(i), at(i + 1)) {
                        ('/', '*') => depth += 1,
                        ('*', '/') => depth -= 1,
                        _ => {
                            i += 1;
                            continue;
                        }
                    }
                    i += 2;
                    if depth == 0 {
                        break;
                    }
                }
                None
            }
            (c, _) if c.is_whitespace() => {
                i += 1;
                None
            }
            ('"', _) => {
                i = end_of_string(&chars, i, None);
                Some("0".to_owned())
            }
            ('\'', '\\') => {
                i += 3 + chars[i + 3..].iter().take_while(|c| **c != '\'').count() + 1;
                Some("0".to_owned())
            }
            ('\'', _) if at(i + 2) == '\'' => {
                i += 3;
                Some("0".to_owned())
            }
            (':', ':') => {
                i += 2;
                Some("::".to_owned())
            }
            (c, _) if is_word(c) => {
                i += chars[i..].iter().take_while(|c| is_word(**c)).count();
                let word: String = chars[start..i].iter().collect();
                let hashes = chars[i..].iter().take_while(|c| **c == '#').count();
                if matches!(word.as_str(), "r" | "br" | "cr") && at(i + hashes) == '"' {
                    i = end_of_string(&chars, i + hashes, Some(hashes));
                    Some("0".to_owned())
                } else {
                    Some(word)
                }
            }
            (c, _) => {
                i += 1;
                Some(c.to_string())
            }
        };
        found.extend(text.map(|text| Token { text, line }));
        line += chars[start..i.min(chars.len())].iter().filter(|c| **c == '\n').count();
    }
    found
}

/// Index after the string whose opening quote is at `open`; `hashes` of a raw string.
fn end_of_string(chars: &[char], open: usize, hashes: Option<usize>) -> usize {
    let mut i = open + 1;
    while i < chars.len() {
        match (chars[i], hashes) {
            ('\\', None) => i += 1,
            ('"', None) => return i + 1,
            ('"', Some(n)) if chars[i + 1..].iter().take(n).filter(|c| **c == '#').count() == n => return i + 1 + n,
            _ => (),
        }
        i += 1;
    }
    i
}

/// What one source file contains, outside items for tests.
#[derive(Debug, Default)]
struct File {
    /// Names of the modules that it declares in files of their own.
    modules: Vec<String>,
    /// Names in the crate's root that its paths start with, with line and path.
    uses: Vec<(String, usize, String)>,
    /// Its paths that leave the module: number of modules that are left, and the path from there.
    outside: Vec<(usize, Vec<String>)>,
    /// The names that it imports from modules below it, with the module of its folder.
    imports: BTreeMap<String, String>,
}

/// Scans the source of the module at `depth` below the crate's root: 1 for `gt`, 2 for `gt::power`.
fn scan(source: &str, depth: usize) -> File {
    let tokens: Vec<Token> = tokens(source).into();
    let word = |index: usize| tokens.get(index).map_or("", |token| token.text.as_str());
    let mut file = File::default();
    // Nesting of braces, and its value at each open inline module.
    let (mut braces, mut inline) = (0_usize, Vec::new());
    // The paths of `use` that start with a name.
    let mut named = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        match word(i) {
            "#" if is_for_tests(&tokens, i) => {
                let end = (i..tokens.len()).find(|index| word(*index) == "]").map_or(tokens.len(), |end| end + 1);
                i = end_of_item(&tokens, end);
                continue;
            }
            "mod" if word(i + 2) == ";" => file.modules.push(word(i + 1).to_owned()),
            "mod" if word(i + 2) == "{" => inline.push(braces),
            // `use<..>` of a type is no import.
            "use" if !matches!(word(i + 1), "crate" | "super" | "::" | "<") && inline.is_empty() => {
                let end = expand(&tokens, i + 1, &[], &mut named);
                if word(end) == "as"
                    && let Some(name) = named.last_mut().and_then(|path| path.last_mut())
                {
                    *name = word(end + 1).to_owned();
                }
            }
            "{" => braces += 1,
            "}" => {
                braces = braces.saturating_sub(1);
                if inline.last() == Some(&braces) {
                    inline.pop();
                }
            }
            // A renamed root, whose name then begins paths, is reported as well.
            "crate" | "super" if matches!(word(i + 1), "::" | "as") => {
                let mut paths = Vec::new();
                let end = expand(&tokens, i, &[], &mut paths);
                for path in paths {
                    let supers = path.iter().take_while(|segment| *segment == "super").count();
                    let from_root = if path[0] == "crate" { 1 } else { supers };
                    let left = if path[0] == "crate" { depth } else { supers.saturating_sub(inline.len()).min(depth) };
                    if left == depth {
                        let name = path.get(from_root).cloned().unwrap_or_default();
                        file.uses.push((name, tokens[i].line, path.join("::")));
                    }
                    file.outside.push((left, path[from_root..].to_vec()));
                }
                i = end;
                continue;
            }
            _ => (),
        }
        i += 1;
    }
    for mut path in named {
        if path[0] == "self" {
            path.remove(0);
        }
        if let [module, .., name] = path.as_slice()
            && file.modules.contains(module)
        {
            // `self` in a group is the module before it.
            let name = if name == "self" { &path[path.len() - 2] } else { name };
            file.imports.insert(name.clone(), module.clone());
        }
    }
    file
}

/// Returns whether the attribute at `start` is `#[cfg(test)]` or `#[cfg(all(test, ...))]`.
fn is_for_tests(tokens: &[Token], start: usize) -> bool {
    let begins = |texts: &[&str]| {
        tokens[start..].iter().map(|token| token.text.as_str()).take(texts.len()).eq(texts.iter().copied())
    };
    begins(&["#", "[", "cfg", "(", "test", ")", "]"]) || begins(&["#", "[", "cfg", "(", "all", "(", "test", ","])
}

/// Index after the item, field or variant that starts at `start`, which may have more attributes.
fn end_of_item(tokens: &[Token], start: usize) -> usize {
    let word = |index: usize| tokens.get(index).map_or("", |token| token.text.as_str());
    // After attributes and visibility, the name of a field or variant is followed by punctuation.
    let name = (start..).scan(0_usize, |depth, index| {
        match word(index) {
            "(" | "[" => *depth += 1,
            ")" | "]" => *depth = depth.saturating_sub(1),
            "#" | "pub" => (),
            _ if *depth == 0 => return Some(Some(index)),
            _ => (),
        }
        Some(None)
    });
    let is_field = name.flatten().next().is_some_and(|name| matches!(word(name + 1), ":" | "," | "}"));
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(start) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            "<" if is_field => depth += 1,
            ">" if is_field => depth = depth.saturating_sub(1),
            ")" | "]" | "}" if depth == 0 => return index,
            ")" | "]" => depth -= 1,
            "}" => {
                depth -= 1;
                if depth == 0 && !is_field {
                    // A `use` with a group ends with a semicolon.
                    return index + 1 + usize::from(tokens.get(index + 1).is_some_and(|next| next.text == ";"));
                }
            }
            "," if is_field && depth == 0 => return index + 1,
            ";" if depth == 0 => return index + 1,
            _ => (),
        }
    }
    tokens.len()
}

/// Appends the paths of the tree that starts at `start`, such as `crate::{a, b::{c, d}}`. Returns the index after it.
fn expand(tokens: &[Token], start: usize, prefix: &[String], paths: &mut Vec<Vec<String>>) -> usize {
    let word = |index: usize| tokens.get(index).map_or("", |token| token.text.as_str());
    let mut path = prefix.to_vec();
    let mut i = start;
    loop {
        if word(i) == "{" {
            i += 1;
            while !matches!(word(i), "}" | "") {
                i = expand(tokens, i, &path, paths);
                // A name after `as`, and the comma.
                while !matches!(word(i), "," | "}" | "") {
                    i += 1;
                }
                i += usize::from(word(i) == ",");
            }
            return i + 1;
        }
        let is_segment = word(i) == "*" || word(i).starts_with(|c: char| c.is_alphabetic() || c == '_');
        if !is_segment {
            break;
        }
        path.push(word(i).to_owned());
        i += 1;
        if word(i) != "::" {
            break;
        }
        i += 1;
    }
    paths.push(path);
    i
}

/// The modules of a crate.
fn modules(krate: &str) -> &'static [(&'static str, &'static str)] {
    find(krate).2
}

fn find(krate: &str) -> &'static Crate {
    CRATES.iter().find(|(name, ..)| *name == krate).unwrap()
}

fn rank(krate: &str, module: &str) -> Option<usize> {
    modules(krate).iter().position(|(name, _)| *name == module)
}

/// Returns whether the path begins with a module of the base, which the root of each family's crate imports.
fn in_base(krate: &str, name: &str) -> bool {
    matches!(krate, "xehpg" | "gen6") && rank(krate, name).is_none() && rank("base", name).is_some()
}

/// Why `module` of `krate` may not use the path; `None` if it may.
fn objection(krate: &str, module: &str, name: &str) -> Option<String> {
    if in_base(krate, name) {
        return None;
    }
    let (Some(own), Some(used)) = (rank(krate, module), rank(krate, name)) else {
        return Some(format!("`{name}` is no module: name the item by the module that defines it"));
    };
    if used <= own || EXCEPTIONS.iter().any(|(of, from, to, _)| (*of, *from, *to) == (krate, module, name)) {
        return None;
    }
    Some(format!("`{name}` is above `{module}`"))
}

fn source_root(krate: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(find(krate).1)
}

/// Visits the module at `path`, with its file, and every module below it that is not only for tests.
fn visit(krate: &str, path: &[String], each: &mut dyn FnMut(&[String], &Path, File)) {
    let root = source_root(krate);
    let stem = path.iter().fold(root.clone(), |folder, name| folder.join(name));
    let candidates = [stem.with_extension("rs"), stem.join("mod.rs")];
    let file = candidates.iter().find(|file| file.is_file()).unwrap_or_else(|| panic!("no file of {path:?}"));
    let found = scan(&fs::read_to_string(file).unwrap(), path.len());
    let modules = found.modules.clone();
    each(path, file.strip_prefix(root).unwrap(), found);
    for module in modules {
        visit(krate, &[path, &[module]].concat(), each);
    }
}

#[test]
fn every_module_has_a_place() {
    for (krate, _, modules) in CRATES {
        let mut declared = scan(&fs::read_to_string(source_root(krate).join("lib.rs")).unwrap(), 0).modules;
        let mut listed: Vec<_> = modules.iter().map(|(name, _)| (*name).to_owned()).collect();
        declared.sort();
        listed.sort();
        assert_eq!(declared, listed, "CRATES in tests/layers.rs must list the modules of {krate}, lowest first");
    }
}

#[test]
fn modules_use_only_modules_below_them() {
    let (mut objections, mut files, mut paths, mut excepted) = (String::new(), 0, 0, vec![false; EXCEPTIONS.len()]);
    for (krate, module) in CRATES.iter().flat_map(|(krate, _, modules)| modules.iter().map(|(name, _)| (*krate, *name)))
    {
        visit(krate, &[module.to_owned()], &mut |_, path, file| {
            files += 1;
            paths += file.uses.len();
            for (name, line, used) in &file.uses {
                for (seen, (of, from, to, _)) in excepted.iter_mut().zip(EXCEPTIONS) {
                    *seen |= (*of, *from, *to) == (krate, module, name.as_str());
                }
                if let Some(why) = objection(krate, module, name) {
                    writeln!(objections, "{krate}, {}:{line}: uses `{used}`: {why}", path.display()).unwrap();
                }
            }
        });
    }
    assert!(
        objections.is_empty(),
        "\n{objections}\nMove what both modules need to the lower one, or pass it in from above (a parameter, a \
         closure). If the order itself is wrong, move the module's line in CRATES (device-model/tests/layers.rs).\n"
    );
    assert!(files > 100 && paths > 200, "{files} files with {paths} paths: the scanner misses most of them");
    assert!(excepted.into_iter().all(|seen| seen), "EXCEPTIONS has an entry that no source needs");
    for (krate, ..) in CRATES {
        assert!(EXCEPTIONS.iter().filter(|(of, ..)| of == krate).count() <= MOST_EXCEPTIONS, "exceptions of {krate}");
    }
}

/// Modules, by path, with the modules in the same folder that they use, themselves or by a module below them.
type Uses = BTreeMap<Vec<String>, BTreeSet<Vec<String>>>;

/// The modules, by path, with what they use. A name that a module imports from its folder is one of the module that defines it.
fn uses_of(files: &BTreeMap<Vec<String>, File>) -> Uses {
    let mut uses = Uses::new();
    for (path, file) in files {
        uses.entry(path.clone()).or_default();
        for (left, rest) in &file.outside {
            let mut used = [&path[..path.len() - left], rest].concat();
            for at in 1..path.len() {
                let import = used.get(at).and_then(|name| files.get(&used[..at])?.imports.get(name));
                if let Some(module) = import.filter(|module| **module != used[at]) {
                    used.insert(at, module.clone());
                }
            }
            let common = path.iter().zip(&used).take_while(|(own, used)| own == used).count();
            if common < path.len() && common < used.len() {
                uses.entry(path[..=common].to_vec()).or_default().insert(used[..=common].to_vec());
            }
        }
    }
    uses
}

/// Removes the modules that are in no circle and between no two circles, and the uses of those.
fn keep_circles(uses: &mut Uses) {
    let ends = |uses: &Uses, module: &Vec<String>| {
        !uses[module].iter().any(|used| uses.contains_key(used)) || !uses.values().any(|used| used.contains(module))
    };
    while let Some(module) = uses.keys().find(|module| ends(uses, module)).cloned() {
        uses.remove(&module);
    }
    let kept: BTreeSet<_> = uses.keys().cloned().collect();
    uses.values_mut().for_each(|used| used.retain(|module| kept.contains(module)));
}

#[test]
fn modules_of_a_folder_use_each_other_in_no_circle() {
    for (krate, _, modules) in CRATES {
        let mut files = BTreeMap::new();
        for (module, _) in *modules {
            visit(krate, &[(*module).to_owned()], &mut |path, _, file| drop(files.insert(path.to_vec(), file)));
        }
        let mut uses = uses_of(&files);
        // The order of the crate's modules is tested above, with its exceptions.
        uses.retain(|module, _| module.len() > 1);
        assert!(uses.values().any(|used| !used.is_empty()), "the scanner misses the uses in {krate}");
        keep_circles(&mut uses);
        let lines: String = uses
            .iter()
            .flat_map(|(module, used)| used.iter().map(move |used| (module.join("::"), used.join("::"))))
            .map(|(module, used)| format!("{module} uses {used}\n"))
            .collect();
        assert!(
            lines.is_empty(),
            "\ncircles in {krate}:\n{lines}Move what two of these modules need to a module that uses neither.\n"
        );
    }
}

#[test]
fn circles_are_found_through_modules_below() {
    let path = |text: &str| text.split("::").map(str::to_owned).collect::<Vec<_>>();
    let circle = |sources: &[(&str, &str)]| {
        let files = sources.iter().map(|(module, source)| (path(module), scan(source, path(module).len())));
        let mut uses = uses_of(&files.collect());
        keep_circles(&mut uses);
        uses.into_keys().map(|module| module.join("::")).collect::<Vec<_>>()
    };
    let (a, below) =
        (("m::a", "use super::{b::B, c}; use crate::m::d::D;"), ("m::b::inner", "use super::super::c::C;"));
    assert!(
        circle(&[a, below, ("m::b", "use super::Item;"), ("m::c", "mod x { use super::y; }"), ("m::d", "")]).is_empty()
    );
    let b = ("m::b", "");
    assert_eq!(
        circle(&[a, below, b, ("m::c", "fn f() { super::d::g() }"), ("m::d", "use super::b;")]),
        ["m::b", "m::c", "m::d"]
    );
    // An import of the folder's own file does not hide the module that defines the item.
    let (a, c) = (("m::a", "use super::b;"), ("m::c", "use crate::m::d::D;"));
    for import in ["pub use a::{A, B};", "use self::a::inner::X as A;", "use b::B; pub use a::A;"] {
        let folder = format!("{import} mod a; mod b; mod c;");
        assert_eq!(circle(&[("m", folder.as_str()), a, ("m::b", "use super::A;"), c]), ["m::a", "m::b"], "{import}");
        assert!(circle(&[("m", folder.as_str()), a, ("m::b", "use super::Other;"), c]).is_empty(), "{import}");
    }
}

/// Names in the crate's root that `source` uses, at `depth` below the root.
fn used(source: &str, depth: usize) -> Vec<String> {
    scan(source, depth).uses.into_iter().map(|(name, ..)| name).collect()
}

#[test]
fn upward_uses_are_found() {
    let source = "use crate::{engine::{self, power}, host as h, sync};\nfn f() { crate::guc::load::<u8>(); }\n";
    let found = scan(source, 1);
    let lines: Vec<_> = found.uses.iter().map(|(name, line, path)| (name.as_str(), *line, path.as_str())).collect();
    assert_eq!(
        lines,
        [
            ("engine", 1, "crate::engine::self"),
            ("engine", 1, "crate::engine::power"),
            ("host", 1, "crate::host"),
            ("sync", 1, "crate::sync"),
            ("guc", 2, "crate::guc::load"),
        ]
    );
    let objected = |name| objection("xehpg", "gt", name).is_some();
    assert_eq!(["engine", "memory", "pcode", "guc", "gt"].map(objected), [true, false, false, true, false]);
    assert!(objected("*") && objected("Card"), "names that lib.rs re-exports have no place in the order");
}

#[test]
fn every_form_of_a_path_is_found() {
    assert_eq!(used("use crate::\n    a::b;\nmacro_rules! m { () => { $crate::b::c() } }", 1), ["a", "b"]);
    assert_eq!(used("type T = <crate::a::T as crate::b::U>::V; pub(in crate::c) struct S;", 1), ["a", "b", "c"]);
    assert_eq!(used("use crate::*; use crate::{a as b, c};", 1), ["*", "a", "c"]);
    assert_eq!(used("use crate as a; use super as b; use crate::{self as c};", 1), ["", "", "self"]);
    assert_eq!(used("use super as a; use super::super as b; pub(super) const C: u8 = crate_d as u8;", 2), [""]);
    // `super` leaves the module only as often as the module is deep.
    assert_eq!(used("use super::a; use self::super::b; use super::{c, d};", 1), ["a", "b", "c", "d"]);
    assert_eq!(used("use super::a; use super::super::b; use super::{super::c, d};", 2), ["b", "c"]);
    assert_eq!(used("mod inner { use super::a; use super::super::b; } use super::c;", 1), ["b", "c"]);
}

#[test]
fn comments_strings_and_tests_are_no_uses() {
    let source = r##"
        // use crate::a;
        /* crate::b /* nested */ crate::c */
        const S: (&str, &str, char, char) = ("crate::d \" crate::e", r#"crate::f " crate::g"#, '"', '\'');
        fn life<'a>(x: &'a str) -> crate::h::X<'a> { todo!() }
        #[cfg(test)]
        use crate::{i, j};
        #[cfg(test)]
        #[allow(dead_code)]
        fn only(x: [u8; 2]) { crate::k::f() }
        #[cfg(test)]
        mod tests { use crate::l; mod deeper { use crate::m; } }
        #[cfg(test)]
        mod others;
        #[cfg(all(test, feature = "x"))]
        mod more;
        #[cfg(not(test))]
        use crate::q;
        struct Fields { #[cfg(test)] only: crate::o::O, also: crate::p::P }
        mod own;
        use crate::n;
    "##;
    assert_eq!(used(source, 1), ["h", "q", "p", "n"]);
    assert_eq!(scan(source, 1).modules, ["own"]);
}
