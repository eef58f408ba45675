// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! ffmpeg scales a picture with libva and Debian's media driver in a guest. The card has no media pipelines: every call
//! succeeds, and the picture is not written. This checks that the card names the skipped commands, and that it stops the
//! context with `--unmodelled fault`. It is an example rather than a test because it downloads 150 MB.
//!
//! ```text
//! cargo run --release -p arctic-guest-runner --example libva -- target/release/arctic
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};
use arctic_guest_runner::artifacts;
use arctic_guest_runner::cache::Cache;
use arctic_guest_runner::interrupt::{self, Interrupted};
use arctic_guest_runner::kernel_log::XE_JOB_TIMEOUT;
use arctic_guest_runner::progress::StderrProgress;
use serde_json::Value;

/// The guest's command: a picture in NV12 of 320 x 240 with the luma and chroma 'Z' is scaled to 160 x 128. Prints how
/// many bytes of the result have another value.
const SCALE: &str = r#"
for folder in dev proc sys; do mount -o rbind /$folder /share/$folder; done
mount -t tmpfs tmp /share/tmp
head -c 115200 /dev/zero | tr '\0' Z > /share/tmp/in
libraries=/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$libraries/blas:$libraries/lapack:$libraries/pulseaudio LIBVA_DRIVER_NAME=iHD
chroot /share /usr/bin/ffmpeg -hide_banner -loglevel error \
    -init_hw_device vaapi=card:/dev/dri/renderD128 -filter_hw_device card \
    -f rawvideo -pix_fmt nv12 -s 320x240 -i /tmp/in \
    -vf hwupload,scale_vaapi=160:128,hwdownload,format=nv12 -f rawvideo /tmp/out
echo "ffmpeg $?"
echo "size $(wc -c < /share/tmp/out)"
echo "wrong $(tr -d Z < /share/tmp/out | wc -c)"
"#;
/// Bytes of the result.
const RESULT: u64 = 160 * 128 * 3 / 2;
/// Commands without which the media driver does not scale.
const NEEDED: [&str; 2] = ["SFC_FRAME_START", "VEBOX"];

fn main() -> ExitCode {
    interrupt::install();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<Interrupted>() => ExitCode::from(130),
        Err(error) => {
            eprintln!("libva: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arctic = PathBuf::from(env::args_os().nth(1).context("usage: libva ARCTIC (the program)")?);
    let media = artifacts::media(&Cache::open()?, &StderrProgress::default())?;

    let skip = scale(&arctic, &media, "skip")?;
    ensure!(skip.lines.get("ffmpeg") == Some(&0), "ffmpeg failed: {:?}", skip.lines);
    ensure!(skip.lines.get("size") == Some(&RESULT), "the result has another size: {:?}", skip.lines);
    ensure!(skip.lines.get("wrong") != Some(&0), "the picture is right, so nothing was skipped");
    for command in NEEDED {
        ensure!(skip.skipped.contains_key(command), "{command} is not among the skipped commands: {:?}", skip.skipped);
    }
    ensure!(!skip.banned, "the context was stopped without --unmodelled fault");
    println!("skip   {} of {RESULT} bytes wrong, skipped: {:?}", skip.lines["wrong"], skip.skipped);

    let fault = scale(&arctic, &media, "fault")?;
    ensure!(fault.banned, "the driver did not report the stopped context ({XE_JOB_TIMEOUT:?} in its log)");
    println!("fault  the driver reports the context, skipped: {:?}", fault.skipped);
    Ok(())
}

/// What a guest and its card say about the job.
struct Job {
    /// The guest's lines, by their first word.
    lines: BTreeMap<String, u64>,
    /// Skipped commands of user contexts, by name.
    skipped: BTreeMap<String, u64>,
    /// Whether the driver has reported the context.
    banned: bool,
}

/// Runs the job in a guest. `unmodelled` is what the card does with commands that it does not execute.
fn scale(arctic: &Path, media: &Path, unmodelled: &str) -> Result<Job> {
    let mut command = Command::new(arctic);
    command.args(["boot", "--json", "--unmodelled", unmodelled, "--run", SCALE]).arg("--share").arg(media);
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("arctic cannot be started")?;
    let report: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("arctic boot printed no report ({})", output.status))?;
    let text = report["output"].as_str().context("the report has no output")?;
    let word = |line: &str| {
        let (word, number) = line.split_once(' ')?;
        Some((word.to_owned(), number.trim().parse().ok()?))
    };
    let mut skipped = BTreeMap::new();
    for of in report["skipped_commands"].as_array().context("the report has no skipped commands")? {
        if of["origin"] == "user" {
            let name = of["command"].as_str().context("a skipped command has no name")?;
            *skipped.entry(name.to_owned()).or_default() += of["count"].as_u64().unwrap_or(0);
        }
    }
    let Some(log) = report["log"].as_str() else { bail!("the report names no log") };
    let console = fs::read(Path::new(log).join("console.log")).with_context(|| format!("{log}/console.log"))?;
    let banned = String::from_utf8_lossy(&console).contains(XE_JOB_TIMEOUT);
    Ok(Job { lines: text.lines().filter_map(word).collect(), skipped, banned })
}
