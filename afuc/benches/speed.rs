// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Speed of emulator, disassembler and assembler, and with `--peer DIR` that of Mesa's tools on the same files.
//!
//! `benches/peer.sh DIR` builds Mesa's tools. The disassembler and the assembler are measured as whole processes, best of
//! seven. Mesa's emulator has no front end for long runs; it is measured by its disassembler, which executes the
//! bootstrap: the difference between an image with a loop in its bootstrap and one without.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use arctic_afuc::container::Image;
use arctic_afuc::isa::Generation;
use arctic_afuc::machine::{Machine, Stop};
use arctic_afuc::pm4::operation;
use arctic_afuc::text::{Options, assemble};

const FIRMWARE: &str = include_str!("../firmware/sqe-open.asm");
/// Passes of the loop in the bootstrap, of five instructions each.
const PASSES: u32 = 1 << 18;
/// Words of the image for disassembler and assembler.
const WORDS: usize = 16_157;
const RUNS: u32 = 7;

fn image(source: &str) -> Image {
    let options = Options { generation: Some(Generation::A6) };
    assemble(source, &options).unwrap_or_else(|errors| panic!("{}", errors.render(source, "bench", false))).image
}

/// The open firmware with a loop at its start.
fn with_loop(passes: u32) -> Image {
    let count = format!(
        "mov $02, {:#x} << 16\nor $02, $02, {:#x}\nbench: sub $02, $02, 0x1\nadd $03, $03, 0x3\nxor $04, $04, $03\n\
         brne $02, 0x0, #bench\nnop\n",
        passes >> 16,
        passes & 0xffff
    );
    image(&FIRMWARE.replacen("[#jumptbl]\n", &format!("[#jumptbl]\n{count}"), 1))
}

/// The lines of a source that count on a6xx: Mesa's assembler has no `.if`.
fn of_a6xx(source: &str) -> String {
    let (mut out, mut counts) = (String::new(), true);
    for line in source.lines() {
        match line {
            ".if a7xx" => counts = false,
            ".if a6xx" | ".endif" => counts = true,
            ".else" => counts = !counts,
            line if counts => out.extend([line, "\n"]),
            _ => {}
        }
    }
    out
}

/// A source of `words` words that Mesa's tools can read: without literals in the code, with fewer than 1,298 labels.
fn source(words: usize) -> String {
    let mut out = "[016ee001]\n[#jumptbl]\n".to_owned();
    let lines = [
        "add $02, $03, 0x12",
        "mov $04, 0x34 << 16",
        "cwrite $02, [$00 + @IB1_BASE]",
        "(rep)(xmov3)mov $data, $data",
        "cread $05, [$00 + @IB_LEVEL]",
        "xor $06, $07, $08",
        "shl $06, $06, 0x4",
        "store $02, [$03 + 0x8]",
        "load $02, [$03 + 0x8]",
        "ushr $06, $06, 0x3",
    ];
    // The bootstrap of the open firmware, so that Mesa's disassembler finds the table.
    let firmware = of_a6xx(FIRMWARE);
    let boot = firmware.split_once("; Load the packet table").expect("the bootstrap").1;
    let boot = boot.split_once("\n").expect("its first line").1.split_once("; System memory mode").expect("its end").0;
    // Mesa's assembler has no names of GPU registers.
    out += &boot.replace("CP_SQE_INSTR_BASE", "0x830");
    out += "waitin\nmov $01, $data\n";
    let mut label = 0;
    let used = |out: &str| out.lines().filter(|line| !line.ends_with(':') && !line.starts_with(';')).count();
    let mut count = used(&out);
    while count < words - 128 {
        match count % 40 {
            0 => {
                let _ = writeln!(out, "l{label}:");
                label += 1;
                out += "nop\n";
            }
            1 if label > 1 => {
                let _ = writeln!(out, "brne $02, b4, #l{}", label - 2);
            }
            other => {
                let _ = writeln!(out, "{}", lines[other % lines.len()]);
            }
        }
        count += 1;
    }
    out + "CP_NOP:\njumptbl:\n.jumptbl\n"
}

fn best(mut run: impl FnMut()) -> Duration {
    let times = (0..RUNS).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed()
    });
    times.min().unwrap_or_default()
}

/// Time of a process, best of seven.
fn process(program: &Path, arguments: &[&str], registers: &Path) -> Duration {
    best(|| {
        let mut command = Command::new(program);
        command.args(arguments).env("RNN_PATH", registers).stdout(Stdio::null()).stderr(Stdio::null());
        let status = command.status().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        assert!(status.success(), "{} {arguments:?}: {status}", program.display());
    })
}

fn row(name: &str, unit: &str, ours: f64, peer: Option<f64>, is_rate: bool) {
    let ratio = |peer: f64| if is_rate { ours / peer } else { peer / ours };
    let other = peer.map_or(String::new(), |peer| format!("{peer:12.2} {unit}{:12.1}", ratio(peer)));
    println!("{name:44}{ours:12.2} {unit}{other}");
}

#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn rate(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64() / 1e6
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let peer = arguments.iter().position(|argument| argument == "--peer").map(|at| {
        PathBuf::from(arguments.get(at + 1).unwrap_or_else(|| panic!("--peer needs the directory of Mesa's tools")))
    });
    let registers = peer.as_ref().map_or_else(PathBuf::new, |peer| peer.join("registers"));
    let directory = std::env::temp_dir().join(format!("afuc-bench-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a temporary directory");
    let file = |name: &str| directory.join(name).to_str().expect("a path in UTF-8").to_owned();
    let afuc = Path::new(env!("CARGO_BIN_EXE_afuc"));
    println!(
        "{:60}{:>16}{:>12}",
        "",
        if peer.is_some() { "Mesa" } else { "" },
        if peer.is_some() { "ratio" } else { "" }
    );

    let looped = with_loop(PASSES);
    let mut instructions = 0;
    let time = best(|| {
        let mut machine = Machine::new(&looped);
        machine.packet_budget = u64::MAX;
        assert_eq!(machine.run(u64::MAX), Stop::Idle);
        instructions = machine.executed;
    });
    let ours = rate(instructions, time);
    let other = peer.as_ref().map(|peer| {
        let (with, without) = (file("loop.fw"), file("short.fw"));
        std::fs::write(&with, looped.to_bytes()).expect("a file");
        std::fs::write(&without, with_loop(1).to_bytes()).expect("a file");
        let program = peer.join("afuc-disasm");
        let time = process(&program, &[&with], &registers).saturating_sub(process(&program, &[&without], &registers));
        rate(u64::from(PASSES - 1) * 5, time)
    });
    row("emulator, a loop of five instructions", "M/s", ours, other, true);

    let text = source(WORDS);
    let (asm, fw, out) = (file("large.asm"), file("large.fw"), file("out.fw"));
    std::fs::write(&asm, &text).expect("a file");
    std::fs::write(&fw, image(&text).to_bytes()).expect("a file");
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let ours = ms(process(afuc, &["disasm", &fw], &registers));
    let other = peer.as_ref().map(|peer| ms(process(&peer.join("afuc-disasm"), &[&fw], &registers)));
    row("disassemble 16,157 words, whole process", "ms ", ours, other, false);
    let ours = ms(process(afuc, &["asm", &asm, "-o", &out], &registers));
    let other = peer.as_ref().map(|peer| ms(process(&peer.join("afuc-asm"), &[&asm, &out], &registers)));
    row("assemble 16,157 words, whole process", "ms ", ours, other, false);

    // Packets through the open firmware.
    let mut machine = Machine::new(&image(FIRMWARE));
    machine.packet_budget = u64::MAX;
    assert_eq!(machine.run(u64::MAX), Stop::Idle);
    let buffer = 0x10_0000;
    let packets = operation(0x10, &[0; 7]).repeat(100_000);
    machine.bus.memory.map(buffer, packets.len() as u64 * 4);
    (0..).zip(&packets).for_each(|(index, word)| machine.bus.memory.write(buffer + index * 4, *word).expect("mapped"));
    let words = u32::try_from(packets.len()).expect("few words");
    let time = best(|| {
        machine.submit(buffer, words);
        assert_eq!(machine.run(u64::MAX), Stop::Idle);
    });
    row("CP_NOP of 8 words through the open firmware", "M words/s", rate(u64::from(words), time), None, true);
    let _ = std::fs::remove_dir_all(directory);
}
