// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Which function hangs which engine at which command, found from outside of the guest by the commands that look into a card.

use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use arctic_test_support::process::skipped;

use super::run::one_guest;

const ARCTIC: &str = env!("CARGO_BIN_EXE_arctic");
/// First lines of the script in docs/debugging.md.
const SCRIPT: &str = "```sh\n# Prints each function that hangs an engine";
/// The functions, in the order of their render nodes.
const FUNCTIONS: [&str; 3] = ["pf", "vf1", "vf2"];
const ENGINES: [&str; 4] = ["rcs0", "bcs0", "ccs0", "vecs0"];

/// The script of the document.
fn script() -> String {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/debugging.md");
    let text = fs::read_to_string(document).unwrap();
    let start = text.find(SCRIPT).expect("docs/debugging.md has the script") + "```sh\n".len();
    let end = start + text[start..].find("```").unwrap();
    text[start..end].to_owned()
}

/// The PATH with the directory of the program before the others.
fn path() -> std::ffi::OsString {
    let own = Path::new(ARCTIC).parent().unwrap().to_owned();
    let others = env::var_os("PATH").unwrap_or_default();
    env::join_paths([own].into_iter().chain(env::split_paths(&others))).unwrap()
}

/// A function, chosen at random, hangs an engine, chosen at random, on which the two others have work.
#[test]
fn a_script_finds_the_function_that_hangs() {
    if !Command::new("jq").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return skipped("this host has no jq");
    }
    let _one = one_guest();
    let random = RandomState::new().hash_one(0).to_le_bytes();
    let (victim, engine) = (usize::from(random[0]) % FUNCTIONS.len(), ENGINES[usize::from(random[1]) % ENGINES.len()]);
    println!("{} is to hang {engine}", FUNCTIONS[victim]);
    let node = |function: usize| format!("/dev/dri/renderD{}", 128 + function);
    let load = |function: usize| format!("arctic guest load {engine}=25 --seconds 60 --device {} &\n", node(function));
    let loads: String = (0..FUNCTIONS.len()).filter(|function| *function != victim).map(load).collect();
    let guest_script = format!(
        "echo 2 > $(ls -d /sys/bus/pci/devices/*/sriov_numvfs)\n\
         until [ -e {last} ]; do sleep 0.1; done\n\
         for limit in /sys/bus/pci/devices/*/tile0/gt0/engines/*/job_timeout_ms; do echo 10000 > $limit; done\n\
         {loads}sleep 1\necho hanging\narctic guest hang --engine {engine} --device {victim}\n",
        last = node(FUNCTIONS.len() - 1),
        victim = node(victim),
    );
    let mut guest = Command::new(ARCTIC)
        .args(["boot", "--vfs", "2", "--run", &guest_script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut progress = BufReader::new(guest.stderr.take().unwrap()).lines().map_while(Result::ok);
    let card: PathBuf =
        progress.find_map(|line| Some(line.strip_prefix("card ")?.trim().split(':').next()?.into())).unwrap();
    let rest = std::thread::spawn(move || progress.for_each(drop));
    let mut lines = BufReader::new(guest.stdout.take().unwrap()).lines().map_while(Result::ok);
    lines.find(|line| line.trim() == "hanging").expect("the guest hangs the engine");
    // The job is on the engine some moments later.
    std::thread::sleep(std::time::Duration::from_secs(1));
    let found = Command::new("sh").args(["-ec", &script(), "find"]).arg(&card).env("PATH", path()).output().unwrap();
    // It ends its guest.
    Command::new("kill").arg(guest.id().to_string()).status().unwrap();
    guest.wait().unwrap();
    lines.for_each(drop);
    rest.join().unwrap();
    let text = String::from_utf8_lossy(&found.stdout).into_owned();
    println!("{text}{}", String::from_utf8_lossy(&found.stderr));
    let [line] = text.lines().collect::<Vec<_>>()[..] else { panic!("one line is expected: {text}") };
    // The batch of `arctic guest hang`: MI_STORE_DATA_IMM, then a semaphore that nothing signals.
    let expected = format!("{} hangs {engine} at 0x1000010: MI_SEMAPHORE_WAIT: ", FUNCTIONS[victim]);
    assert!(line.starts_with(&expected), "{line}: {expected}");
}
