// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A Debian guest that `dist/own-guest.sh` makes, booted by `arctic qemu`.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::run::one_guest;

/// What the guest runs, one after the other, before it powers off.
const COMMANDS: [&str; 4] = ["udevadm settle", "lspci -nnk -d 8086:56c0", "clinfo -l", "vainfo --display drm"];

/// Operators' tools of a Debian guest see the card: lspci its driver, clinfo an OpenCL device, vainfo the entry points of
/// libva's driver. The exit status is QEMU's.
#[test]
fn tools_in_a_debian_disk_image_see_the_card() {
    let _one = one_guest();
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("own-guest");
    let program = env!("CARGO_BIN_EXE_arctic");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dist/own-guest.sh");
    assert!(Command::new(script).arg(&dir).arg(program).status().unwrap().success());
    let commands: String = COMMANDS.iter().map(|command| format!(" systemd.run=\"{command}\"")).collect();
    let kernel = "root=/dev/vda rw quiet xe.force_probe=56c0 i915.force_probe=!56c0";
    let ends = "systemd.run_success_action=poweroff systemd.run_failure_action=poweroff";
    let console = dir.join("console.log");
    let mut command = Command::new("timeout");
    command.args(["--signal=INT", "600", program, "qemu", "--pci-port", "--disk", "root.img", "--kernel", "vmlinuz"]);
    command.args(["--initrd", "initrd.img", "--append", &format!("{kernel}{commands} {ends}"), "--", "-snapshot"]);
    command.current_dir(&dir).stdin(Stdio::null()).stdout(File::create(&console).unwrap());
    let status = command.status().unwrap();
    let text = String::from_utf8_lossy(&std::fs::read(&console).unwrap()).into_owned();
    assert_eq!(status.code(), Some(0), "{text}");
    for part in ["Kernel driver in use: xe", "Platform #0: Intel(R) OpenCL", "VAEntrypointVLD"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
