// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The kernels of `tests/kernels` as Intel's compiler makes them for DG2: text against iga64, results against pocl on the host.
//!
//! Needs the network once (`tests/tools.sh`); the tools are kept in `$ARCTIC_CACHE` or `~/.cache/arctic`, in `eu/`.
#![cfg(feature = "long-tests")]

mod cases;
mod common;
mod random;
mod tools;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::process::Command;

use arctic_eu::exec::Way;
use arctic_eu::exec::memory::ChannelOrder;
use arctic_eu::launch::{Argument, Launch, LocalIds, Outcome, Range, Settings};
use arctic_eu::text::{assemble, disassemble, lines};
use arctic_eu::zebin::Zebin;
use cases::{Case, ImageKind, cases, checksum_line, distance, element_size, inputs, is_float};
use random::Random;
use serde_json::json;
use tools::{BUILDS, Work, buffer, floats, ints, launch, tool};

/// Sources of kernels with results of pocl.
const SOURCES: [&str; 14] = [
    "algorithms",
    "integer",
    "float",
    "group",
    "vector",
    "golden",
    "atomic",
    "bits",
    "control",
    "half",
    "image",
    "lanes",
    "memory",
    "narrow",
];

/// Where a buffer differs from the expected one, of a case's argument.
fn difference(case: &Case, kind: &str, ours: &[u8], theirs: &[u8]) -> Option<String> {
    if ours == theirs {
        return None;
    }
    if !is_float(kind) {
        let at = ours.iter().zip(theirs).position(|(a, b)| a != b)?;
        let size = element_size(kind);
        let start = at / size * size;
        return Some(format!(
            "element {}: {:02x?}, expected {:02x?}",
            at / size,
            &ours[start..start + size],
            &theirs[start..start + size]
        ));
    }
    for (index, (a, b)) in common::dwords(ours).into_iter().zip(common::dwords(theirs)).enumerate() {
        let (x, y) = (f32::from_bits(a), f32::from_bits(b));
        let close = x.is_nan() && y.is_nan() || distance(a, b) <= case.ulp || (x - y).abs() <= case.abs;
        if !close {
            return Some(format!("element {index}: {x:e} ({a:#x}), expected {y:e} ({b:#x})"));
        }
    }
    None
}

/// Results of all kernels with pocl: for each case, the buffers after it.
fn expected(work: &Work, cases: &[Case]) -> Vec<Vec<(String, Vec<u8>)>> {
    let mut jobs = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let arguments: Vec<_> = inputs(case)
            .iter()
            .zip(&case.arguments)
            .map(|((name, value), (_, kind))| match value {
                Argument::Local(size) => json!({ "kind": "local", "size": size }),
                Argument::Sampler(sampler) => json!({
                    "kind": "sampler", "normalized": sampler.normalized, "linear": sampler.magnify.linear,
                    "addressing": format!("{:?}", sampler.addressing[0]),
                }),
                Argument::Image { bytes, format, .. } => {
                    let file = format!("{number}-{name}");
                    fs::write(work.directory.join(&file), bytes).unwrap();
                    let image = ImageKind::parse(kind).unwrap();
                    json!({
                        "kind": "image", "file": file, "size": image.size, "array": image.array, "buffer": image.buffer,
                        "channels": format.channels(), "bgra": format.order == ChannelOrder::Bgra, "bytes": format.channel.bytes(),
                        "type": format!("{:?}", format.channel.kind()),
                    })
                }
                Argument::Value(bytes) | Argument::Buffer(bytes) => {
                    let file = format!("{number}-{name}");
                    fs::write(work.directory.join(&file), bytes).unwrap();
                    let kind = if matches!(value, Argument::Value(_)) { "value" } else { "buffer" };
                    json!({ "kind": kind, "file": file })
                }
                Argument::Null | Argument::Same(_) => unreachable!("the cases have a buffer for each pointer"),
            })
            .collect();
        let source = format!("{}/tests/kernels/{}.cl", env!("CARGO_MANIFEST_DIR"), case.source);
        let dimensions = (1..=3).rev().find(|count| case.global[count - 1] > 1).unwrap_or(1);
        jobs.push(json!({
            "source": source, "options": case.options, "kernel": case.kernel,
            "global": &case.global[..dimensions], "local": &case.local[..dimensions],
            "offset": &case.offset[..dimensions], "arguments": arguments,
        }));
    }
    fs::write(work.directory.join("jobs.json"), serde_json::to_string(&jobs).unwrap()).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peer.py");
    let python = work.tools.join("python");
    let output = Command::new(python).arg(script).arg(&work.directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read =
        |number: usize, name: &str| fs::read(work.directory.join(format!("{number}-{name}"))).unwrap_or_default();
    cases
        .iter()
        .enumerate()
        .map(|(number, case)| case.arguments.iter().map(|(name, _)| (name.clone(), read(number, name))).collect())
        .collect()
}

/// Runs a case and returns what differs.
fn compare(case: &Case, zebin: &Zebin, expected: &[(String, Vec<u8>)], settings: Settings) -> Result<u64, String> {
    let range = Range { global: case.global, local: case.local, offset: case.offset };
    let launch =
        Launch::new(zebin, Some(&case.kernel), range, &inputs(case), settings).map_err(|error| error.to_string())?;
    let report = launch.run(&|_| {});
    if report.outcome != Outcome::Complete || report.outside > 0 {
        return Err(format!("{:?}, {} outside, first {:?}", report.outcome, report.outside, report.first_outside));
    }
    for ((name, kind), (_, theirs)) in case.arguments.iter().zip(expected) {
        if let Some(ours) = launch.buffer(name)
            && let Some(text) = difference(case, kind, &ours, theirs)
        {
            return Err(format!("{name}: {text}"));
        }
    }
    Ok(report.instructions)
}

/// Group (c) of the evidence: all kernels, compiled in four ways, with the results of pocl.
#[test]
fn kernels_have_the_results_of_pocl() {
    let work = Work::new("pocl");
    let cases: Vec<Case> = SOURCES.iter().flat_map(|source| cases(source)).collect();
    let expected = expected(&work, &cases);
    let mut failures = Vec::new();
    let (mut runs, mut instructions) = (0, 0);
    for (build, (name, ..)) in BUILDS.iter().enumerate() {
        for source in &SOURCES {
            let mut zebins: Vec<(&str, Zebin)> = Vec::new();
            for (case, expected) in cases.iter().zip(&expected).filter(|(case, _)| case.source == *source) {
                if !zebins.iter().any(|(options, _)| *options == case.options) {
                    zebins.push((case.options.as_str(), work.compile(source, build, &case.options, "")));
                }
                let zebin = &zebins.iter().find(|(options, _)| *options == case.options).unwrap().1;
                for (way, local_ids) in
                    [(Way::Fast, LocalIds::Driver), (Way::Fast, LocalIds::Memory), (Way::General, LocalIds::Driver)]
                {
                    let settings = Settings { way, local_ids, limit: 50_000_000, ..Settings::default() };
                    match compare(case, zebin, expected, settings) {
                        Ok(count) => instructions += count,
                        Err(text) => failures.push(format!("{name} {} {way:?} {local_ids:?}: {text}", case.kernel)),
                    }
                    runs += 1;
                }
            }
        }
    }
    println!("{} kernels, {runs} runs, {instructions} instructions", cases.len());
    assert!(failures.is_empty(), "{} of {runs} runs differ:\n{}", failures.len(), failures.join("\n"));
}

/// The results in `tests/data/golden.txt` are those of pocl. With `ARCTIC_EU_GOLDEN` set, they and the code of their kernels
/// are written anew.
#[test]
fn golden_results_are_those_of_pocl() {
    let work = Work::new("golden");
    let cases = cases("golden");
    let lines: Vec<String> = cases
        .iter()
        .zip(expected(&work, &cases))
        .flat_map(|(case, buffers)| {
            let buffers = buffers.into_iter().filter(|(_, bytes)| !bytes.is_empty());
            buffers.map(|(name, bytes)| checksum_line(&case.kernel, &name, &bytes)).collect::<Vec<_>>()
        })
        .collect();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/golden");
    if std::env::var_os("ARCTIC_EU_GOLDEN").is_some() {
        work.compile("golden", 0, "", "");
        fs::copy(work.directory.join("golden-bindless0_dg2.bin"), format!("{data}.zebin")).unwrap();
        fs::write(format!("{data}.txt"), lines.concat()).unwrap();
        // Of kernels that pocl has not; their results are in the test.
        work.compile("limits", 0, "", "");
        let limits = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/limits.zebin");
        fs::copy(work.directory.join("limits-bindless0_dg2.bin"), limits).unwrap();
    }
    assert_eq!(fs::read_to_string(format!("{data}.txt")).unwrap(), lines.concat());
}

/// Group (d) of the evidence: the text of all kernels is that of iga64, and makes the same bytes.
#[test]
fn kernels_have_the_text_of_iga64() {
    let work = Work::new("iga");
    let mut count = 0;
    for (build, (name, ..)) in BUILDS.iter().enumerate() {
        // Of the extensions, iga64 also names the messages of media blocks in a comment, which the disassembler does not.
        for source in SOURCES.iter().chain(&["subgroup"]) {
            let zebin = work.compile(source, build, "", "");
            for (kernel, code) in zebin.code() {
                let file = work.directory.join("code");
                fs::write(&file, code).unwrap();
                let output = tool(&work.tools, "iga64").args(["-d", "-p=12p71"]).arg(&file).output().unwrap();
                let theirs = String::from_utf8(output.stdout).unwrap();
                let ours = disassemble(code);
                assert_eq!(assemble(&ours).unwrap(), code);
                // Bytes of padding at the end that are no instruction have no text in iga64's.
                let ours: Vec<&str> = ours.lines().filter(|line| !line.contains("the code ends within")).collect();
                let theirs: Vec<&str> = theirs.lines().map(str::trim_end).collect();
                for (ours, theirs) in ours.iter().zip(&theirs) {
                    assert_eq!(ours, theirs, "{name} {source} {kernel}");
                }
                assert_eq!(ours.len(), theirs.len(), "{name} {source} {kernel}");
                count += ours.len();
            }
        }
    }
    println!("{count} lines are equal");
}

/// Instructions of compiled kernels with up to three bits changed. Those that iga64 refuses are not among them.
fn changed_words(code: &[u8], count: usize, random: &mut Random) -> Vec<Vec<u8>> {
    let mut all: Vec<&[u8]> = Vec::new();
    let mut at = 0;
    while at + 16 <= code.len() {
        let length = arctic_eu::isa::length(&code[at..]);
        all.push(&code[at..at + length]);
        at += length;
    }
    let mut word = || {
        let mut word = all[random.below(all.len())].to_vec();
        for _ in 0..1 + random.below(3) {
            let bit = 8 + random.below(word.len() * 8 - 8);
            // The length stays.
            if bit != 29 {
                word[bit / 8] ^= 1 << (bit % 8);
            }
        }
        word
    };
    (0..count).map(|_| word()).collect()
}

/// The text without spacing, the numbers of labels, and what is said of messages.
fn without_comments(text: &str) -> String {
    let text = text.split("//").next().unwrap_or(text);
    let words = text.split_whitespace().map(|word| match word.strip_prefix('L') {
        Some(rest) if rest.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit()) => "L",
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Group (d) of the evidence: random words that iga64 accepts have its text, or are printed as bytes if no text makes them.
#[test]
fn random_words_have_the_text_of_iga64() {
    let work = Work::new("words");
    let mut random = Random(41);
    let (mut equal, mut as_bytes, mut refused, mut differ) = (0, 0, 0, Vec::new());
    for source in ["integer", "float", "group", "subgroup"] {
        let zebin = work.compile(source, 0, "", "");
        let code: Vec<u8> = zebin.code().flat_map(|(_, code)| code[..code.len() & !15].to_vec()).collect();
        let words = changed_words(&code, 10_000, &mut random);
        let (file, text) = (work.directory.join("words"), work.directory.join("text"));
        fs::write(&file, words.concat()).unwrap();
        let output = tool(&work.tools, "iga64")
            .args(["-d", "-p=12p71", "-Xprint-pc", "--output-on-fail", "-o"])
            .arg(&text)
            .arg(&file)
            .output()
            .unwrap();
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        let address = |hex: &str| u32::from_str_radix(hex.trim_start_matches("0x").trim_end_matches(':'), 16).ok();
        let errors: HashSet<u32> = messages
            .lines()
            .filter_map(|line| address(line.strip_prefix("byte offset ")?.split_whitespace().next()?))
            .collect();
        // Some comments of iga64 have bytes of the instruction.
        let printed = fs::read(&text).unwrap();
        let theirs: HashMap<u32, String> = String::from_utf8_lossy(&printed)
            .lines()
            .filter_map(|line| {
                let (at, text) = line.strip_prefix("/* [")?.split_once(']')?;
                Some((address(at)?, without_comments(text.trim_start().strip_prefix("*/")?)))
            })
            .collect();
        for line in lines(&words.concat()) {
            let Some(theirs) = theirs.get(&line.address).filter(|_| !errors.contains(&line.address)) else {
                refused += 1;
                continue;
            };
            let ours = without_comments(&line.text);
            if ours == *theirs {
                equal += 1;
            } else if ours.starts_with(".inst") || ours.starts_with(".byte") {
                as_bytes += 1;
            } else {
                differ.push(format!("{:02x?}\n  {theirs}\n  {ours}", line.bytes));
            }
        }
    }
    println!("{equal} words are equal, {as_bytes} are printed as bytes, iga64 refuses {refused}");
    // iga64 rounds immediates of 64-bit floats, which no compiler emits, to six digits.
    assert!(differ.len() <= 10, "{} differ:\n{}", differ.len(), differ.join("\n"));
    assert!(equal > 19_000, "{equal}");
}

/// ISA-055, ISA-063, ISA-119, ISA-185, ISA-215: sub-groups and matrices against plain loops.
#[test]
fn subgroups_dot_products_and_matrices_are_those_of_plain_loops() {
    let work = Work::new("subgroup");
    let mut random = Random(11);
    let mut values = |count: usize| -> Vec<i32> { (0..count).map(|_| random.next() as i32).collect() };
    let (a, b, c) = (values(256), values(256), values(256));
    for build in 0..BUILDS.len() {
        let zebin = work.compile("subgroup", build, "", "");
        let zeros = buffer(&[0; 256]);
        let run =
            |kernel: &str, arguments: &[(&str, Argument)]| launch(&zebin, kernel, [256, 1, 1], [32, 1, 1], arguments);
        let done = run("shuffles", &[("o", zeros.clone()), ("a", buffer(&a))]);
        let group = |i: usize| &a[i & !15..(i & !15) + 16];
        for (i, value) in ints(&done, "o").into_iter().enumerate() {
            let (lane, group) = (i & 15, group(i));
            let expected =
                group[(lane * 7 + 3) & 15].wrapping_add(group[lane ^ 5].wrapping_mul(3)).wrapping_sub(group[2]);
            assert_eq!(value, expected, "shuffles {i}");
        }
        let done = run("scans", &[("o", zeros.clone()), ("p", zeros.clone()), ("q", zeros.clone()), ("a", buffer(&a))]);
        let (o, p, q) = (ints(&done, "o"), ints(&done, "p"), ints(&done, "q"));
        for i in 0..256 {
            let (lane, group) = (i & 15, group(i));
            let sum = |values: &[i32]| values.iter().fold(0i32, |sum, value| sum.wrapping_add(*value));
            assert_eq!(o[i], sum(group) ^ group.iter().max().unwrap(), "reduce {i}");
            assert_eq!(p[i], sum(&group[..=lane]), "inclusive {i}");
            assert_eq!(q[i], group[..lane].iter().copied().min().unwrap_or(i32::MAX), "exclusive {i}");
        }
        let done = run("votes", &[("o", zeros.clone()), ("a", buffer(&a))]);
        for (i, value) in ints(&done, "o").into_iter().enumerate() {
            let group = group(i);
            let any = i32::from(group.iter().any(|v| *v < 0));
            let all = i32::from(group.iter().all(|v| *v > -2_000_000_000));
            let five = i32::from(group.iter().any(|v| v & 0xfff == 5));
            assert_eq!(value, any + 2 * all + 4 * five, "votes {i}");
        }
        let done = launch(&zebin, "blocks", [64, 1, 1], [16, 1, 1], &[("o", zeros.clone()), ("a", buffer(&a))]);
        for (i, value) in ints(&done, "o").into_iter().enumerate() {
            assert_eq!(value, a[i].wrapping_mul(3).wrapping_add((i as i32 >> 4 & 3) + 1), "blocks {i}");
        }
        let all = [("o", zeros.clone()), ("p", zeros.clone()), ("a", buffer(&a)), ("b", buffer(&b)), ("c", buffer(&c))];
        let done = run("dp4", &all);
        let (o, p) = (ints(&done, "o"), ints(&done, "p"));
        for i in 0..256 {
            let (x, y) = (a[i].to_le_bytes(), b[i].to_le_bytes());
            let signed: i64 = (0..4).map(|k| i64::from(x[k] as i8) * i64::from(y[k] as i8)).sum();
            let unsigned: u64 = (0..4).map(|k| u64::from(x[k]) * u64::from(y[k])).sum();
            let expected = (signed + i64::from(c[i])).clamp(i32::MIN.into(), i32::MAX.into());
            assert_eq!(i64::from(o[i]), expected, "dp4 {i}");
            let expected = (unsigned + u64::from(c[i].cast_unsigned())).min(u32::MAX.into());
            assert_eq!(u64::from(p[i].cast_unsigned()), expected, "dp4 unsigned {i}");
        }
        matrices(&zebin, &a, &b);
    }
}

/// Lane `l` holds column `l` of `b` and of the result, and a part of each row of `a`.
fn matrices(zebin: &Zebin, a: &[i32], b: &[i32]) {
    let start: Vec<i32> = (0..64).collect();
    let arguments = [("o", buffer(&start)), ("a", buffer(&a[..64])), ("b", buffer(&b[..64]))];
    let done = launch(zebin, "matrix", [8, 1, 1], [8, 1, 1], &arguments);
    for (index, value) in ints(&done, "o").into_iter().enumerate() {
        let (n, m) = (index / 8, index % 8);
        let sum = (0..32).fold(start[index], |sum, k| {
            let x = a[k / 4 * 8 + m].to_le_bytes()[k % 4] as i8;
            let y = b[n * 8 + k / 4].to_le_bytes()[k % 4] as i8;
            sum + i32::from(x) * i32::from(y)
        });
        assert_eq!(value, sum, "matrix {m} {n}");
    }
    // In a loop (ISA-189), and with half of the rows in each of two sub-groups (ISA-190).
    let product =
        |x: i32, y: i32, k: usize| i32::from(x.to_le_bytes()[k % 4] as i8) * i32::from(y.to_le_bytes()[k % 4] as i8);
    let count = |n: u32| Argument::Value(n.to_le_bytes().to_vec());
    let arguments = [("o", buffer(&start)), ("a", buffer(&a[..192])), ("b", buffer(&b[..192])), ("n", count(3))];
    let done = launch(zebin, "matrixloop", [8, 1, 1], [8, 1, 1], &arguments);
    for (index, value) in ints(&done, "o").into_iter().enumerate() {
        let (n, m) = (index / 8, index % 8);
        let steps = (0..3).flat_map(|step| (0..32).map(move |k| (step * 64, k)));
        let sum =
            steps.fold(start[index], |sum, (at, k)| sum + product(a[at + k / 4 * 8 + m], b[at + n * 8 + k / 4], k));
        assert_eq!(value, sum, "matrixloop {m} {n}");
    }
    let start: Vec<i32> = (0..128).collect();
    let arguments = [("o", buffer(&start)), ("a", buffer(&a[..128])), ("b", buffer(&b[..256])), ("n", count(2))];
    let done = launch(zebin, "matrixsplit", [16, 1, 1], [16, 1, 1], &arguments);
    for (index, value) in ints(&done, "o").into_iter().enumerate() {
        let (s, n, m) = (index / 64, index / 8 % 8, index % 8);
        let steps = (0..2).flat_map(|step| (0..32).map(move |k| (step * 2, k)));
        let sum = steps.fold(start[index], |sum, (step, k)| {
            let x = a[((step + m / 4) * 8 + k / 4) * 4 + m % 4];
            sum + product(x, b[((step + s) * 8 + n) * 8 + k / 4], k)
        });
        assert_eq!(value, sum, "matrixsplit {s} {m} {n}");
    }
    let half = |value: i32| arctic_eu::float::f32_to_f16((value % 64) as f32 / 16.0);
    let pack = |values: &[i32]| -> Vec<i32> {
        values.chunks_exact(2).map(|pair| i32::from(half(pair[0])) | i32::from(half(pair[1])) << 16).collect()
    };
    let (x, y) = (pack(&a[..128]), pack(&b[..128]));
    let arguments = [("o", buffer(&[0; 64])), ("a", buffer(&x)), ("b", buffer(&y))];
    let done = launch(zebin, "matrixh", [8, 1, 1], [8, 1, 1], &arguments);
    for (index, value) in floats(&done, "o").into_iter().enumerate() {
        let (n, m) = (index / 8, index % 8);
        let element = |values: &[i32], row: usize, k: usize| {
            f64::from(arctic_eu::float::f16_to_f32((values[row].cast_unsigned() >> (k % 2 * 16)) as u16))
        };
        let sum: f64 = (0..16).map(|k| element(&x, k / 2 * 8 + m, k) * element(&y, n * 8 + k / 2, k)).sum();
        assert!((f64::from(value) - sum).abs() < 1e-4, "matrixh {m} {n}: {value} {sum}");
    }
}

/// EU-080 to EU-084: images are read with and without samplers, and written, in several formats; printf.
#[test]
fn images_and_printf_are_those_of_plain_loops() {
    let work = Work::new("image");
    let (w, h) = (16u32, 8u32);
    let texels: Vec<u8> = (0..w * h * 4).map(|index| (index * 37 % 251) as u8).collect();
    let format = |name: &str| arctic_eu::launch::parse_image_format(name).unwrap();
    let image = |bytes: &[u8], size: [u32; 3], name: &str| Argument::Image {
        bytes: bytes.to_vec(),
        size,
        format: format(name),
    };
    for build in 0..BUILDS.len() {
        let zebin = work.compile("subgroup", build, "", "");
        let arguments = [("s", image(&texels, [w, h, 1], "rgba8unorm")), ("d", image(&[], [h, w, 1], "rgba32f"))];
        let done = launch(&zebin, "copyimage", [w, h, 1], [8, 2, 1], &arguments);
        for (index, value) in floats(&done, "d").into_iter().enumerate() {
            let (x, y, channel) = (index as u32 / 4 / h, index as u32 / 4 % h, index as u32 % 4);
            let raw = texels[((y * w + x) * 4 + 3 - channel) as usize];
            assert!((value - f32::from(raw) / 255.0).abs() < 1e-6, "copyimage {x} {y} {channel}");
        }
        let arguments =
            [("s", image(&texels, [w, h, 1], "rgba8unorm")), ("o", Argument::Buffer(vec![0; (w * h * 16) as usize]))];
        let done = launch(&zebin, "sampleimage", [w, h, 1], [8, 2, 1], &arguments);
        for (index, value) in floats(&done, "o").into_iter().enumerate() {
            let (x, y, channel) = ((index as u32 / 4 % w) as i32, (index as u32 / 4 / w) as i32, index % 4);
            let at = |x: i32, y: i32| {
                let (x, y) = (x.clamp(0, w as i32 - 1) as usize, y.clamp(0, h as i32 - 1) as usize);
                f32::from(texels[(y * w as usize + x) * 4 + channel]) / 255.0
            };
            let expected = at(x - 3, y + 2) + 0.25 * (at(x, y) + at(x + 1, y));
            assert!((value - expected).abs() < 1e-5, "sampleimage {x} {y} {channel}: {value} {expected}");
        }
        let sampler = Argument::parse("sampler:clamp_edge,nearest").unwrap();
        let words: Vec<u8> = (0..w * h * 4).flat_map(|index| (index as u16).wrapping_mul(331).to_le_bytes()).collect();
        let arguments =
            [("s", image(&words, [w, h, 1], "rgba16ui")), ("d", image(&[], [w, h, 1], "rgba32ui")), ("t", sampler)];
        let done = launch(&zebin, "integerimage", [w, h, 1], [8, 2, 1], &arguments);
        for (index, value) in common::dwords(&done.buffer("d").unwrap()).into_iter().enumerate() {
            assert_eq!(value, u32::from(index as u16 * 331) * 3 + h, "integerimage {index}");
        }
        let cube: Vec<u8> = (0..8 * 4 * 3).flat_map(|index: u32| (index as f32).to_le_bytes()).collect();
        let arguments = [("s", image(&cube, [8, 4, 3], "r32f")), ("o", Argument::Buffer(vec![0; 8 * 4 * 3 * 4]))];
        let done = launch(&zebin, "volume", [8, 4, 3], [8, 1, 1], &arguments);
        for (index, value) in floats(&done, "o").into_iter().enumerate() {
            assert_eq!(value, (index / 8 * 8 + 7 - index % 8) as f32, "volume {index}");
        }
        let done = launch(&zebin, "hello", [32, 1, 1], [32, 1, 1], &[("n", Argument::parse("i32:32").unwrap())]);
        let text = arctic_eu::launch::printf_text(&done.space, done.printf.unwrap());
        assert_eq!(text, "item 0 of 32: 1.50 text 7\nitem 1 of 32: 1.50 text 7\n");
    }
}
