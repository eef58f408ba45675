// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A Debian guest that `dist/own-guest.sh` makes, booted by `arctic qemu`.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::run::one_guest;

/// What the guest runs before it powers off.
const COMMANDS: &str = "exec >/dev/ttyS0 2>&1; udevadm settle; lspci -nnk -d 8086:56c0; clinfo -l; vainfo --display drm; \
                        timeout 9 gputop -n 2";

/// Operators' tools of a Debian guest see the card: lspci its driver, clinfo an OpenCL device, vainfo the entry points of
/// libva's driver, gputop no clients. The exit status is QEMU's.
#[test]
fn tools_in_a_debian_disk_image_see_the_card() {
    let _one = one_guest();
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("own-guest");
    let program = env!("CARGO_BIN_EXE_arctic");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dist/own-guest.sh");
    assert!(Command::new(script).arg(&dir).arg(program).status().unwrap().success());
    let kernel = "root=/dev/vda rw quiet xe.force_probe=56c0 i915.force_probe=!56c0";
    let append = format!("{kernel} systemd.run=\"sh -c '{COMMANDS}'\"");
    let console = dir.join("console.log");
    let mut command = Command::new("timeout");
    command.args(["--signal=INT", "900", program, "qemu", "--pci-port", "--disk", "root.img", "--kernel", "vmlinuz"]);
    command.args(["--initrd", "initrd.img", "--append", &append, "--", "-snapshot"]);
    command.current_dir(&dir).stdin(Stdio::null()).stdout(File::create(&console).unwrap());
    let status = command.status().unwrap();
    let text = String::from_utf8_lossy(&std::fs::read(&console).unwrap()).into_owned();
    assert_eq!(status.code(), Some(0), "{text}");
    let parts = [
        "Kernel driver in use: xe",
        "Device #0: Intel(R) Data Center GPU Flex 170",
        "VAProfileHEVCMain10             :\tVAEntrypointVLD",
        "No GPU clients yet",
    ];
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}
