// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tools that tests of the long tier run (`tests/tools.sh`), and launches of what they compile.
#![allow(dead_code, reason = "each test file uses a part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use arctic_eu::launch::{Argument, Launch, Outcome, Range, Settings};
use arctic_eu::zebin::Zebin;

use crate::common;

/// The ways to compile: name, options of the compiler, arguments of ocloc.
pub const BUILDS: [(&str, &str, &[&str]); 4] = [
    ("bindless", "", &[]),
    ("bindful", "", &["-stateful_address_mode", "bindful"]),
    ("flat", "-cl-intel-greater-than-4GB-buffer-required", &[]),
    ("O0", "-cl-opt-disable", &[]),
];

fn tools() -> PathBuf {
    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one = ONE.lock();
    let home = || PathBuf::from(std::env::var_os("HOME").expect("HOME")).join(".cache/arctic");
    let directory = std::env::var_os("ARCTIC_CACHE").map_or_else(home, PathBuf::from).join("eu");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tools.sh");
    assert!(Command::new("sh").arg(script).arg(&directory).status().unwrap().success());
    directory
}

/// A program of the tools, run with their own libraries.
pub fn tool(tools: &Path, name: &str) -> Command {
    let root = tools.join("root/usr");
    let mut command = Command::new(root.join("lib64/ld-linux-x86-64.so.2"));
    command.arg("--library-path").arg(root.join("lib/x86_64-linux-gnu")).arg(root.join("bin").join(name));
    command
}

fn program(tools: &Path) -> String {
    let names = fs::read_dir(tools.join("root/usr/bin")).unwrap();
    let mut names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.find(|name| name.starts_with("ocloc")).unwrap()
}

/// A directory for the files of a test, and the tools.
pub struct Work {
    pub tools: PathBuf,
    pub directory: PathBuf,
}

impl Work {
    pub fn new(name: &str) -> Work {
        let directory = std::env::temp_dir().join(format!("arctic-eu-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        Work { tools: tools(), directory }
    }

    /// Compiles a source in one of the ways. `internal` are options that only the compiler's own extensions need.
    pub fn compile(&self, source: &str, build: usize, more: &str, internal: &str) -> Zebin {
        let (name, options, arguments) = BUILDS[build];
        let path = format!("{}/tests/kernels/{source}.cl", env!("CARGO_MANIFEST_DIR"));
        let output = format!("{source}-{name}{}", more.len() + internal.len());
        let status = tool(&self.tools, &program(&self.tools))
            .current_dir(&self.directory)
            .args(["compile", "-q", "-file", &path, "-device", "dg2", "-exclude_ir", "-output", &output])
            .arg("-options")
            .arg(format!("-cl-std=CL3.0 {options} {more}"))
            .args(arguments)
            .args(if internal.is_empty() { vec![] } else { vec!["-internal_options", internal] })
            .output()
            .unwrap();
        assert!(status.status.success(), "{source} {name}: {}", String::from_utf8_lossy(&status.stdout));
        let file = fs::read(self.directory.join(format!("{output}_dg2.bin"))).unwrap();
        Zebin::parse(file).unwrap()
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A kernel of the source `subgroup` with its arguments.
pub fn launch(
    zebin: &Zebin,
    kernel: &str,
    global: [u32; 3],
    local: [u32; 3],
    arguments: &[(&str, Argument)],
) -> Launch {
    let arguments: Vec<_> = arguments.iter().map(|(name, value)| ((*name).to_string(), value.clone())).collect();
    let range = Range { global, local, offset: [0; 3] };
    let launch = Launch::new(zebin, Some(kernel), range, &arguments, Settings::default()).unwrap();
    let report = launch.run(&|_| {});
    assert_eq!((report.outcome, report.outside), (Outcome::Complete, 0), "{kernel}");
    launch
}

pub fn buffer(values: &[i32]) -> Argument {
    Argument::Buffer(values.iter().flat_map(|value| value.to_le_bytes()).collect())
}

pub fn ints(launch: &Launch, name: &str) -> Vec<i32> {
    common::dwords(&launch.buffer(name).unwrap()).into_iter().map(u32::cast_signed).collect()
}

pub fn floats(launch: &Launch, name: &str) -> Vec<f32> {
    common::dwords(&launch.buffer(name).unwrap()).into_iter().map(f32::from_bits).collect()
}
