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
for mei in /dev/mei*; do
    for what in fw fw-data oprom-data oprom-code; do igsc $what version --device $mei; done
done
";
const SYSMAN: &str = include_str!("sysman.py");

/// Operators' tools of a Debian guest see the card: lspci its driver, clinfo an OpenCL device, vainfo the entry points of
/// libva's driver, gputop no clients; sensors, igsc and Level Zero's sysman read what docs/reference-card.md says. Sysman
/// looks for the link two bridges above the GPU, where this guest has none, and for temperatures in a telemetry function that
/// the card does not have. The exit status is QEMU's.
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
        "rated max = 150.00 W",
        "FW Version: DG02_1.3185",
        "sysman pci 01:00.0 generation -1 width -1",
        "sysman power limit 150000 mW",
        "sysman frequency 0 300 to 2050 MHz",
        "sysman memory 16248 MiB",
        "sysman engine groups 0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 2, 7: 2, 8: 1, 9: 2",
        "sysman firmware GFX_DATA Major : 101, OEM Manufacturing Data : 651, Major VCN : 1",
    ];
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}
