// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Runs with kernels: the commands of the guest's job, and the evaluation of its reports.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use arctic_guest_agent::compute::mandelbrot;
use arctic_guest_agent::compute::report::{ComputeReport, KernelReport};
use arctic_guest_agent::report::{TestResult, Verdict};
use serde::Serialize;

use super::BootReport;
use super::checks::{Evidence, check};
use crate::devices::Place;
use crate::guest_process::Options;

pub use arctic_guest_agent::compute::report::Verdict as KernelVerdict;

/// The pixels that the guest's kernel drew.
const PICTURE: &str = "mandelbrot.raw";
/// Smallest memory in MiB of a guest with the drivers and their compiler.
const LEAST_MEMORY: u32 = 1536;
/// File of the user's command in a root of the guest.
const COMMAND: &str = "tmp/command";
/// End of the user's command in the job.
const END_OF_COMMAND: &str = "END-OF-THE-USERS-COMMAND";
/// Mounts the image and reads the driver while the guest loads xe, which keeps one of its two processors busy: the first kernel
/// then waits for neither.
pub(super) const PREPARE: &str = "{ compute-root && cat /compute/usr/lib/x86_64-linux-gnu/intel-opencl/*.so > /dev/null; } &\n\
                                  PREPARING=$!\n";
/// Waits for [`PREPARE`], if that was not done.
const PREPARED: &str = "[ -z \"$PREPARING\" ] || wait $PREPARING || \
                        echo \"problem the drive with the compute stack cannot be mounted\" >&3\nPREPARING=\n";
/// Environment of programs in a root of the guest.
const ENVIRONMENT: &str = "env HOME=/root PATH=/usr/bin:/usr/sbin:/opt/arctic/bin TERM=$TERM";

/// The kernels of one function, with what the host measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ComputeLine {
    /// The guest's report.
    #[serde(flatten)]
    pub report: ComputeReport,
    /// Seconds from the power-on of the guest to the first right result.
    pub first_right_seconds: Option<f64>,
}

/// Fails if the guests would have too little memory for the drivers.
pub(super) fn check_memory(options: &Options) -> Result<()> {
    match options.memory {
        Some(memory) if options.compute && memory < LEAST_MEMORY => {
            bail!("--compute needs guests of at least {LEAST_MEMORY} MiB, not {memory}: raise --memory, or omit it")
        }
        _ => Ok(()),
    }
}

/// File name of the report of a function on the results share.
fn report_file(function: &str) -> String {
    format!("compute-{function}.json")
}

/// A function that runs kernels in a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// `pf`, `vf1`…, or `card` in a guest that has one function.
    pub(super) name: String,
    /// Its PCI address in the guest.
    address: String,
    /// Whether it is the first one: it also draws the picture, and its driver compiles a kernel.
    first: bool,
}

/// The PF and its VFs in one guest.
pub(super) fn together(place: Place, vfs: u8) -> Vec<Target> {
    let name = |index: u8| if index == 0 { "pf".to_owned() } else { format!("vf{index}") };
    (0..=vfs).map(|index| Target { name: name(index), address: place.address(index), first: index == 0 }).collect()
}

/// The function of a guest that has no other. `first` as in [`Target`].
pub(super) fn alone(place: Place, first: bool) -> Vec<Target> {
    vec![Target { name: "card".into(), address: place.address(0), first }]
}

/// The shell commands that run the kernels on all `targets` at the same time, and set STATUS. The time limit of a kernel is below
/// that of the stage, `limit`, so that a kernel that does not end is reported.
pub(super) fn commands(targets: &[Target], limit: Duration) -> String {
    let seconds = (limit.as_secs() / 2).max(1);
    let mut text = format!(
        "compute() {{\n\
         name=$1 address=$2; shift 2\n\
         compute-root /run/$name $address && chroot /run/$name {ENVIRONMENT} arctic guest compute --function $name \
         --device $address --timeout {seconds} --out /mnt/compute-$name.json \"$@\"\n}}\n\
         {PREPARED}RUNNING=\n"
    );
    for Target { name, address, first } in targets {
        let more = if *first { format!(" --source --picture /mnt/{PICTURE}") } else { String::new() };
        text += &format!("compute {name} {address}{more} &\nRUNNING=\"$RUNNING $!\"\n");
    }
    text + "STATUS=0\nfor process in $RUNNING; do wait $process || STATUS=1; done\n"
}

/// The shell commands that begin to run the kernels on the function at `address` again and again, until `file` exists. KERNELS is the
/// process; it fails if a kernel has a wrong result.
pub(super) fn begin_until(file: &str, address: &str, limit: Duration) -> String {
    let (root, seconds) = ("/run/busy", (limit.as_secs() / 2).max(1));
    format!(
        "{PREPARED}compute-root {root} {address}\ncat > {root}/{COMMAND} << '{END_OF_COMMAND}'\n\
         while [ ! -e {file} ]; do arctic guest compute --device {address} --timeout {seconds} || exit 1; done\n\
         {END_OF_COMMAND}\nchroot {root} {ENVIRONMENT} sh /{COMMAND} &\nKERNELS=$!\n"
    )
}

/// The shell commands that run the user's `command` in a root with the drivers, or an interactive shell.
pub(super) fn user_commands(command: Option<&str>) -> String {
    let root = "/run/user";
    let prepare = format!("{PREPARED}compute-root {root}\n");
    match command {
        Some(command) => format!(
            "{prepare}cat > {root}/{COMMAND} << '{END_OF_COMMAND}'\ncd /root\n{command}\n{END_OF_COMMAND}\n\
             chroot {root} {ENVIRONMENT} sh /{COMMAND}\nSTATUS=$?\n"
        ),
        None => format!(
            "{prepare}setsid -c chroot {root} {ENVIRONMENT} sh -c 'cd /root; exec sh -i' \
             < /dev/hvc0 > /dev/hvc0 2>&1\nSTATUS=$?\n"
        ),
    }
}

/// Adds a result for each kernel of each target, one for what else failed, and the picture of the first.
pub(super) fn evaluate(report: &mut BootReport, evidence: &Evidence<'_>, targets: &[Target]) {
    for target in targets {
        let name = if evidence.name.is_empty() { &target.name } else { evidence.name };
        match read(evidence.results, &target.name) {
            Ok(of_guest) => add(report, evidence, name, of_guest),
            Err(error) => report.results.push(check(&format!("compute {name}"), vec![format!("{error:#}")], 0.0)),
        }
        if target.first {
            let (picture, problems) = match picture(evidence.results, &report.log) {
                Ok(path) => (Some(path), Vec::new()),
                Err(error) => (None, vec![format!("{error:#}")]),
            };
            report.picture = picture.map(Into::into);
            report.results.push(evidence.check("picture", problems, 0.0));
        }
    }
}

fn add(report: &mut BootReport, evidence: &Evidence<'_>, name: &str, of_guest: ComputeReport) {
    let of_guest = ComputeReport { function: name.to_owned(), ..of_guest };
    for kernel in &of_guest.kernels {
        report.results.push(result(name, kernel));
    }
    // Kernels that were not run are no failures, so their reason has to be one.
    let unexplained = of_guest.kernels.iter().all(|kernel| !is_failure(kernel.verdict));
    let problem = match (&of_guest.problem, of_guest.ok) {
        (Some(problem), _) if unexplained => Some(problem.clone()),
        (None, false) if unexplained => Some("no kernel was run".to_owned()),
        _ => None,
    };
    if let Some(problem) = problem {
        report.results.push(check(&format!("compute {name}"), vec![problem], 0.0));
    }
    let first_right_seconds = evidence.guest.since_power_on(of_guest.first_right);
    report.compute.push(ComputeLine { report: of_guest, first_right_seconds });
}

fn is_failure(verdict: KernelVerdict) -> bool {
    matches!(verdict, KernelVerdict::Wrong | KernelVerdict::Failed | KernelVerdict::TimedOut)
}

fn result(function: &str, kernel: &KernelReport) -> TestResult {
    let verdict = match kernel.verdict {
        KernelVerdict::Right => Verdict::Pass,
        KernelVerdict::NotRun => Verdict::Skip,
        _ => Verdict::Fail,
    };
    let reason = if kernel.verdict == KernelVerdict::NotRun { "not run" } else { &kernel.detail };
    TestResult::new(format!("compute {function}: {}", kernel.name), verdict, reason, kernel.seconds)
}

fn read(results: &Path, target: &str) -> Result<ComputeReport> {
    let file = report_file(target);
    let text = fs::read_to_string(results.join(&file)).context("the guest has not run the kernels")?;
    serde_json::from_str(&text).with_context(|| format!("the guest's {file} cannot be parsed"))
}

/// Compares the guest's picture with the host's computation and saves it as a PNG in `folder`.
fn picture(results: &Path, folder: &Path) -> Result<PathBuf> {
    let raw = results.join(PICTURE);
    let pixels = fs::read(&raw).context("the guest has drawn no picture")?;
    let path = folder.join("mandelbrot.png");
    // A wrong picture is saved as well, as a diagnostic aid.
    let saved = mandelbrot::save_png(&path, &pixels).with_context(|| format!("{} cannot be written", path.display()));
    mandelbrot::verify(&pixels).with_context(|| format!("{}", path.display()))?;
    saved?;
    fs::remove_file(&raw).with_context(|| format!("{} cannot be removed", raw.display()))?;
    Ok(path)
}

/// Whether the result `test` is that of a kernel.
pub(super) fn has_line(test: &str) -> bool {
    test.starts_with("compute ") && test.contains(": ")
}

/// Writes the lines of the summary: each kernel of the first function, and of the others those that failed, with a line of each
/// function.
pub(super) fn write_lines(lines: &[ComputeLine], out: &mut impl FnMut(&str, &str) -> fmt::Result) -> fmt::Result {
    for (index, ComputeLine { report, first_right_seconds }) in lines.iter().enumerate() {
        if let (0, Some(device)) = (index, &report.device) {
            out("compute", &format!("{}, {} execution units, driver {}", device.name, device.units, device.driver))?;
        }
        for kernel in report.kernels.iter().filter(|kernel| index == 0 || is_failure(kernel.verdict)) {
            out(&format!("  {}", report.function), &kernel.to_string())?;
        }
        let first = first_right_seconds.map(|seconds| format!(", first right result {seconds:.1} s after power-on"));
        out(&format!("  {}", report.function), &format!("{report}{}", first.unwrap_or_default()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::checks::Role;
    use crate::boot::serial::Guest;
    use crate::driver::Driver;

    const FIRST: Place = Place::FIRST;

    fn is_shell(text: &str) -> bool {
        std::process::Command::new("sh").args(["-n", "-c", text]).status().unwrap().success()
    }

    #[test]
    fn all_functions_run_at_once_and_one_compiles_and_draws() {
        let targets = together(FIRST, 2);
        let text = commands(&targets, Duration::from_secs(120));
        assert!(is_shell(&text), "{text}");
        assert!(text.contains("compute pf 0000:00:01.0 --source --picture /mnt/mandelbrot.raw &\n"), "{text}");
        assert!(text.contains("compute vf2 0000:00:01.2 &\n") && text.contains("--timeout 60 "), "{text}");
        assert_eq!((text.matches("--source").count(), text.matches("do wait ").count()), (1, 1));
        assert!(commands(&alone(FIRST, false), Duration::from_secs(1)).contains("--timeout 1 "));
    }

    /// The user's command is passed on unchanged, and `exit` in it does not end the job.
    #[test]
    fn the_users_command_runs_in_the_root() {
        let text = user_commands(Some("echo \"$HOME\" '`'\nexit 7"));
        assert!(is_shell(&text), "{text}");
        assert!(text.contains("\ncd /root\necho \"$HOME\" '`'\nexit 7\nEND-OF"), "{text}");
        assert!(is_shell(&user_commands(None)));
    }

    #[test]
    fn too_little_memory_is_refused() {
        let options = |memory| Options { compute: true, memory, ..Options::new("a".into(), "flex170", 0x56c0) };
        let error = check_memory(&options(Some(1024))).unwrap_err().to_string();
        assert_eq!(error, "--compute needs guests of at least 1536 MiB, not 1024: raise --memory, or omit it");
        assert!(check_memory(&options(None)).is_ok() && check_memory(&options(Some(1536))).is_ok());
        assert!(check_memory(&Options { compute: false, ..options(Some(512)) }).is_ok());
    }

    fn kernel(name: &str, verdict: KernelVerdict) -> KernelReport {
        KernelReport { name: name.into(), verdict, detail: "1 of 2 wrong".into(), ..KernelReport::default() }
    }

    /// Evaluates reports of two functions, of which the second one is missing if `second` is `None`.
    fn evaluated(first: &ComputeReport, second: Option<&ComputeReport>, picture: &[u8]) -> BootReport {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, report: &ComputeReport| {
            fs::write(folder.path().join(report_file(name)), serde_json::to_vec(report).unwrap()).unwrap();
        };
        write("pf", first);
        if let Some(second) = second {
            write("vf1", second);
        }
        fs::write(folder.path().join(PICTURE), picture).unwrap();
        let guest = Guest { boot_seconds: 7.5, ready_uptime: Some(5.5), ..Guest::default() };
        let evidence = Evidence {
            name: "",
            driver: Driver::Xe,
            role: Role::Physical { vfs: 1 },
            place: FIRST,
            guest: &guest,
            log: "",
            results: folder.path(),
            own_kernel: false,
            mei_gsc: true,
            compute: &[],
        };
        let mut report = BootReport { log: folder.path().to_owned().into(), ..BootReport::default() };
        evaluate(&mut report, &evidence, &together(FIRST, 1));
        report
    }

    fn verdicts(report: &BootReport) -> Vec<(&str, Verdict)> {
        report.results.iter().map(|result| (result.test.as_str(), result.result)).collect()
    }

    #[test]
    fn each_kernel_is_a_result_and_the_first_right_one_has_a_time() {
        let good = ComputeReport {
            ok: true,
            first_right: Some(15.0),
            kernels: vec![KernelReport { detail: String::new(), ..kernel("vadd", KernelVerdict::Right) }],
            ..ComputeReport::default()
        };
        let picture = mandelbrot::raw(&mandelbrot::render());
        let report = evaluated(&good, Some(&good), &picture);
        let expected = ["compute pf: vadd", "picture", "compute vf1: vadd"].map(|name| (name, Verdict::Pass));
        assert_eq!(verdicts(&report), expected);
        assert_eq!(report.compute[0].first_right_seconds, Some(17.0));
        assert!(report.picture.is_some());
        let text = report.to_string();
        assert!(
            text.contains(
                "  vf1       1 of 1 kernels right, 0.000 s on the device, 0.0 s, first right result 17.0 s after"
            ),
            "{text}"
        );
    }

    #[test]
    fn wrong_kernels_missing_reports_and_wrong_pictures_fail() {
        let kernels = vec![kernel("vadd", KernelVerdict::TimedOut), kernel("saxpy", KernelVerdict::NotRun)];
        let hung = ComputeReport { problem: Some("vadd did not end".into()), kernels, ..ComputeReport::default() };
        let report = evaluated(&hung, None, &[0; 4]);
        let expected = [
            ("compute pf: vadd", Verdict::Fail),
            ("compute pf: saxpy", Verdict::Skip),
            ("picture", Verdict::Fail),
            ("compute vf1", Verdict::Fail),
        ];
        assert_eq!(verdicts(&report), expected);
        let closed = ComputeReport {
            problem: Some("OpenCL has no GPU".into()),
            kernels: vec![kernel("vadd", KernelVerdict::NotRun)],
            ..ComputeReport::default()
        };
        let report = evaluated(&closed, Some(&closed), &[]);
        let failed = report.results.iter().filter(|result| result.result == Verdict::Fail);
        let failed: Vec<(&str, &str)> = failed.map(|result| (result.test.as_str(), result.reason.as_str())).collect();
        assert_eq!(failed[0], ("compute pf", "OpenCL has no GPU"));
        assert_eq!((failed[2], failed.len()), (("compute vf1", "OpenCL has no GPU"), 3));
        let text = report.to_string();
        assert!(text.contains("  pf        vadd                not run       0 items"), "{text}");
        assert!(!text.contains("skip  ") && text.contains("FAIL  compute vf1 "), "{text}");
    }
}
