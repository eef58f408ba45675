// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The order of the modules of the device model, of `sriov` and of the library `arctic-gpu`: a module may use only itself and
//! the modules below it, so that each can be read, tested and replaced without those above it. The modules in a folder have no
//! listed order, but may not use each other in a circle.
//!
//! The test reads the sources: every path that starts at the crate's root (`crate::a::b`, `super::` out of a module,
//! groups in `use`), in `use` declarations and in code. Items for tests (`#[cfg(test)]`) are exempt.

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use source::{File, scan};

/// A crate, with the folder of its sources from that of this package, and its modules, lowest first, with their contents.
type Crate = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// The crates, lowest first. A new module of a `lib.rs` needs a line here, above every module that it uses.
const CRATES: &[Crate] = &[
    (
        "sriov",
        "../sriov/src",
        &[
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
            ("priority_mutex", "a lock on which other threads have priority over workers"),
            ("wakeup", "when a worker steps an engine that waits, and the generation of memory changes"),
            ("inspect", "parts of a tree of state, for display"),
            ("host", "the environment: DMA, interrupt sink, clock, function numbers"),
            ("interrupts", "delivery of a function's interrupt by MSI"),
            ("state", "versioned types of saved state, and the trait of the units that have one"),
            ("command", "rows of command tables, with lengths, fields and rules; origins of commands"),
            ("decode", "disassembly of batches"),
            ("memory", "regions that a VMM maps, spans of one translation, epochs of functions"),
            ("blitter", "layouts of surfaces, raster operations, copies and fills of rectangles"),
            ("registers", "parts of register tables"),
            ("trace", "recorder of trace events"),
            ("status", "a snapshot of a running card for display"),
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
            ("pci", "the card as PCI functions: identity, BARs, capabilities"),
            ("gate", "isolation rules as pure functions: GGTT ownership, LMTT walk"),
            ("topology", "identities of engines, their classes and their MMIO bases"),
            ("command", "tables of the engines' commands"),
            ("memory", "local memory, GGTT, PPGTT, TLB, the only access path to bytes"),
            ("blitter", "the operations of the copy engine on spans of memory"),
            ("compute", "walkers: state, surfaces and memory of kernels on the execution units"),
            ("pcode", "the power controller's mailbox"),
            ("sensors", "power, energy, temperatures and the power limit"),
            ("doorbell", "doorbell pages and the block of their registers"),
            ("registers", "tables of the registers, and the file of their values"),
            ("context_image", "layout of the register images of contexts"),
            ("residency", "RC6 residency: what keeps the GT awake"),
            ("oa", "observation: counters, formats and triggers of reports, and their buffer"),
            ("heci", "the HECI windows of the GSC and its firmware interface"),
            ("interrupts", "the interrupt tree, memory-based interrupts, delivery"),
            ("execlist", "submission queues, context descriptors and the context status buffer"),
            ("generation", "the descriptor of a hardware generation, which refers to the tables of the units"),
            ("profile", "the card's SKU and limits, from the card file"),
            ("gt", "state that engines and GuC share, and register accesses with side effects"),
            ("units", "the units that workers step, and the waits for the end of their steps"),
            ("engine", "logical contexts and the command streamer"),
            ("guc", "the GuC: messages, contexts, scheduling, provisioning"),
            ("card", "the whole card: accesses, resets, files of its BARs"),
            ("decode", "disassembly of commands, context images and messages"),
            ("state_tree", "the state of the card as a tree, decoded"),
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
            ("line_limit", "a limit on log lines that a guest or a client can cause"),
            ("ram", "guest memory that is replaced as a whole"),
            ("firmware", "placeholder images of firmware"),
            ("card_file", "the card files and the names of cards"),
            ("pci", "the interface between functions and a VMM"),
            ("report", "report of trapped and unmodelled accesses"),
            ("card", "the card as PCI functions"),
            ("vm_device", "BARs on a bus of the crate vm-device"),
            ("vfio_user", "the vfio-user server"),
        ],
    ),
];

/// Exceptions: a crate, a module, the higher module that it uses, and the reason. At most [`MOST_EXCEPTIONS`] of each crate.
const EXCEPTIONS: &[(&str, &str, &str, &str)] = &[];

const MOST_EXCEPTIONS: usize = 2;

/// Macros that a crate exports: they are at its root, whichever module defines them.
const MACROS: [&str; 1] = ["record"];

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
    if in_base(krate, name) || MACROS.contains(&name) {
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
        assert_eq!(declared, listed, "CRATES in tests/layers/main.rs must list the modules of {krate}, lowest first");
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
         closure). If the order itself is wrong, move the module's line in CRATES (device-model/tests/layers/main.rs).\n"
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

/// Files that may write to mapped memory of guests and of the card, with the reason. All others have slices without the means
/// to change them.
const WRITERS: &[(&str, &str, &str)] = &[
    ("base", "memory/cell.rs", "cells"),
    ("base", "memory/span.rs", "spans of one translation"),
    ("base", "memory/region.rs", "zeros"),
    ("arctic-gpu", "ram.rs", "the memory of an embedding VMM, which it marks"),
    ("arctic-gpu", "vfio_user/memory/backing.rs", "files of a client"),
];

/// Words of `vm-memory` by which bytes are changed, or a pointer to them is made.
const WRITES: &[&str] = &[
    "VolatileMemory",
    "get_atomic_ref",
    "ptr_guard_mut",
    "copy_to_volatile_slice",
    "as_volatile_slice",
    "get_host_address",
    "aligned_as_mut",
];

/// Why a file may not contain what it does; `None` if it may.
fn writes(file: &File) -> Option<String> {
    let word = WRITES.iter().find_map(|word| Some(format!("line {}: `{word}`", file.words.get(*word)?)));
    let of_bytes =
        |path: &&Vec<String>| path[0] == "vm_memory" && path.iter().any(|name| matches!(name.as_str(), "Bytes" | "*"));
    word.or_else(|| file.named.iter().find(of_bytes).map(|path| format!("use {}", path.join("::"))))
}

/// Each write of the card to guest memory is made through a slice that was taken for a write, by a cell or a span: another way
/// would not be marked in the guest's log of writes.
#[test]
fn memory_is_written_in_one_place() {
    let (mut found, mut excepted) = (String::new(), vec![false; WRITERS.len()]);
    for (krate, module) in CRATES.iter().flat_map(|(krate, _, modules)| modules.iter().map(|(name, _)| (*krate, *name)))
    {
        visit(krate, &[module.to_owned()], &mut |_, path, file| {
            let Some(what) = writes(&file) else { return };
            match WRITERS.iter().position(|(of, name, _)| *of == krate && Path::new(name) == path) {
                Some(place) => excepted[place] = true,
                None => writeln!(found, "{krate}, {}: {what}", path.display()).unwrap(),
            }
        });
    }
    assert!(found.is_empty(), "\n{found}\nUse `CellValue` for a cell, `Span` for bytes (arctic_base::memory).\n");
    assert!(excepted.into_iter().all(|seen| seen), "WRITERS has a file that does not write");
    for source in ["use vm_memory::Bytes;", "use vm_memory::{Bytes as _, X};", "fn f() { s.get_atomic_ref(0) }"] {
        assert!(writes(&scan(source, 1)).is_some(), "{source}");
    }
    assert!(
        writes(&scan("use vm_memory::VolatileSlice; type Bytes = u8; #[cfg(test)] use vm_memory::Bytes;", 1)).is_none()
    );
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
