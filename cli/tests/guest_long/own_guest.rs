// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A Debian guest that `dist/own-guest.sh` makes, booted by `arctic qemu`.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::run::one_guest;

/// What the guest runs before it powers off, and then [`SYSMAN`].
const COMMANDS: &str = "exec >/dev/ttyS0 2>&1
udevadm settle
lspci -nnk -d 8086:56c0
clinfo -l
vainfo --display drm
timeout 9 gputop -n 2
sensors
igsc list-devices
for what in fw fw-data oprom-data oprom-code; do igsc $what version --device /dev/mei1; done
";
const SYSMAN: &str = include_str!("sysman.py");

/// Operators' tools of a Debian guest see the card: lspci its driver, clinfo an OpenCL device, vainfo the entry points of
/// libva's driver, gputop no clients; sensors, igsc and Level Zero's sysman read what docs/reference-card.md says. The exit
/// status is QEMU's.
#[test]
fn tools_in_a_debian_disk_image_see_the_card() {
    let _one = one_guest();
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("own-guest");
    let program = env!("CARGO_BIN_EXE_arctic");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dist/own-guest.sh");
    let made = Command::new(script).arg(&dir).arg(program).env("PACKAGES", "python3").status().unwrap();
    assert!(made.success());
    // A second disk has the commands. A disk has whole sectors.
    let mut commands = format!("{COMMANDS}python3 - <<'END'\n{SYSMAN}END\nexit\n");
    commands.extend(std::iter::repeat_n('\n', commands.len().next_multiple_of(512) - commands.len()));
    fs::write(dir.join("commands"), commands).unwrap();
    let append = "root=/dev/vda rw quiet xe.force_probe=56c0 i915.force_probe=!56c0 systemd.run=\"sh /dev/vdb\"";
    let console = dir.join("console.log");
    let mut command = Command::new("timeout");
    command.args(["--signal=INT", "900", program, "qemu", "--pci-port", "--disk", "root.img", "--kernel", "vmlinuz"]);
    command.args(["--initrd", "initrd.img", "--append", append, "--", "-snapshot"]);
    command.args(["-drive", "file=commands,format=raw,if=virtio,readonly=on"]);
    command.current_dir(&dir).stdin(Stdio::null()).stdout(File::create(&console).unwrap());
    let status = command.status().unwrap();
    let text = String::from_utf8_lossy(&fs::read(&console).unwrap()).into_owned();
    assert_eq!(status.code(), Some(0), "{text}");
    let parts = [
        "Kernel driver in use: xe",
        "Device #0: Intel(R) Data Center GPU Flex 170",
        "VAProfileHEVCMain10             :\tVAEntrypointVLD",
        "No GPU clients yet",
        "DG02_1.3185",
        "sysman pci 01:00.0 generation 4 width 16",
        "sysman power limit 150000 mW",
    ];
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}
