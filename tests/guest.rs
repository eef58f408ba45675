//! Real guests judge the card: each test boots an unmodified kernel with its own xe and reads what it says.
//!
//! They run one at a time, since a guest keeps two cores busy. The parts are fetched into the cache on the first run.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use arctic_guest_tests::cache::Cache;
use arctic_guest_tests::image::modules;
use arctic_guest_tests::parts::{self, Own};
use arctic_guest_tests::progress::Silent;
use arctic_guest_tests::tsc;
use serde_json::Value;
use tempfile::TempDir;

static ONE_GUEST: Mutex<()> = Mutex::new(());

fn one_guest() -> MutexGuard<'static, ()> {
    ONE_GUEST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the program as a script would: its exit status and the one JSON document on stdout. Progress goes to stderr.
fn arctic(arguments: &[&str]) -> (Option<i32>, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arctic"));
    command.args(arguments).arg("--json").env_remove("RUST_LOG").stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().unwrap();
    let document = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("arctic {arguments:?} ({}): {error}: {}", output.status, String::from_utf8_lossy(&output.stdout))
    });
    (output.status.code(), document)
}

fn list(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/igt").join(name)
}

/// The results that are not `wanted`, for an assertion that says something.
fn others<'a>(document: &'a Value, wanted: &str) -> Vec<&'a Value> {
    document["results"].as_array().unwrap().iter().filter(|result| result["result"] != wanted).collect()
}

/// Runs an IGT list whose every line has to pass, without a skip.
///
/// The lines of xe_waitfence have two more chances: seven binds write their numbers into one word, which has to hold the
/// last in the end. xe makes a bind with the CPU, and signals it, while an earlier one still waits for the copy engine to
/// clear its memory; then the earlier number is the last to be written. That is between xe and the test on any card.
fn igt_passes(arguments: &[&str]) -> Value {
    let (mut status, first) = arctic(arguments);
    let mut report = first.clone();
    for _ in 0..2 {
        let failed = others(&report, "pass");
        let racing = |result: &&Value| result["test"].as_str().is_some_and(|test| test.starts_with("xe_waitfence@"));
        if failed.is_empty() || !failed.iter().all(racing) {
            break;
        }
        (status, report) = arctic(&[arguments, &["--filter", "xe_waitfence"]].concat());
    }
    assert_eq!(others(&report, "pass"), Vec::<&Value>::new());
    assert_eq!((status, &first["skipped"]), (Some(0), &Value::from(0)));
    assert_eq!(first["clocks"].as_array().unwrap().len() as u64, first["guests"].as_u64().unwrap());
    first
}

/// First light: the distribution's xe probes, a workload of its own runs on every engine, the picture is right, and
/// the kernel's log is clean. Proves V13-027 and contract B, E and F as a driver lives them.
#[test]
fn xe_boots_and_works_on_every_engine() {
    let _one = one_guest();
    boots_and_works_on_every_engine("xe");
}

/// A second judge: the same kernel's i915, which knows the card by other paths, probes it and does the same work. Proves
/// contract G as a driver lives it.
#[test]
fn i915_boots_and_works_on_every_engine() {
    let _one = one_guest();
    boots_and_works_on_every_engine("i915");
}

fn boots_and_works_on_every_engine(driver: &str) {
    let (status, report) = arctic(&["boot", "--driver", driver]);
    assert_eq!(report["driver"], driver);
    assert_eq!(others(&report, "pass"), Vec::<&Value>::new());
    assert_eq!((status, &report["ok"], &report["inconclusive"]), (Some(0), &Value::Bool(true), &Value::Bool(false)));
    assert_eq!(report["clocks"].as_array().unwrap().len(), 1);
    let engines = ["rcs0", "bcs0", "vcs0", "vcs1", "vecs0", "vecs1", "ccs0"];
    assert_eq!(report["engines"], serde_json::json!(engines));
    for engine in engines {
        let ran = |what: &str| {
            let name = format!("{engine}: {what}");
            report["results"].as_array().unwrap().iter().any(|result| result["test"] == name.as_str())
        };
        let all = ["stores", "mi_math loop", "timestamp", "fence chain"];
        assert!(all.iter().all(|what| ran(what)), "{engine} did not do all its work");
    }
    assert_eq!(report["taint"], 64);
    let modules: Vec<&str> = report["modules"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(modules.contains(&driver) && modules.contains(&"mei_gsc"), "{modules:?}");
    let picture = std::fs::File::open(report["picture"].as_str().unwrap()).unwrap();
    let picture = png::Decoder::new(std::io::BufReader::new(picture)).read_info().unwrap();
    assert_eq!((picture.info().width, picture.info().height), (1920, 1080));
    let unexplained = |register: &&Value| register["reason"].is_null();
    assert_eq!(
        report["unmodelled"].as_array().unwrap().iter().filter(unexplained).collect::<Vec<_>>(),
        Vec::<&Value>::new()
    );
}

/// A line a virtual function: enabled, probed, and worked on an engine of each class.
fn all_worked(report: &Value, vfs: usize, classes: &[&str]) {
    let lines = report["vfs"].as_array().unwrap();
    assert_eq!(lines.len(), vfs);
    for line in lines {
        assert_eq!((&line["ok"], &line["problem"]), (&Value::Bool(true), &Value::Null));
        let engines: Vec<&str> = line["engines"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        for class in classes {
            assert!(engines.iter().any(|engine| engine.starts_with(class)), "{class}: {line}");
        }
        assert!(line["lmem_bytes"].as_u64().unwrap() > 0 && line["ggtt_bytes"].as_u64().unwrap() > 0, "{line}");
    }
}

const CLASSES: [&str; 5] = ["rcs", "bcs", "vcs", "vecs", "ccs"];

/// Seven virtual functions beside their physical one in the same guest, which a stock QEMU shows: xe provisions and
/// enables them, xe probes each, each works on every engine class; away, and all of it again. Proves V13-001 and contract
/// C and D as both drivers live them.
#[test]
fn virtual_functions_come_work_and_go() {
    let _one = one_guest();
    let (status, report) = arctic(&["boot", "--vfs", "7"]);
    assert_eq!(others(&report, "pass"), Vec::<&Value>::new());
    assert_eq!(status, Some(0));
    all_worked(&report, 7, &CLASSES);
    for again in ["vfs enabled again", "vf7: work again", "vfs disabled again"] {
        assert!(report["results"].as_array().unwrap().iter().any(|result| result["test"] == again), "{again}");
    }
}

/// As many virtual functions as the hardware has, in one guest.
#[test]
fn sixty_three_virtual_functions() {
    let _one = one_guest();
    let (status, report) = arctic(&["boot", "--vfs", "63"]);
    assert_eq!(others(&report, "pass"), Vec::<&Value>::new());
    assert_eq!((status, &report["card"]), (Some(0), &Value::from("flex170-63vf")));
    all_worked(&report, 63, &CLASSES);
}

/// A guest that provisions and two that use what it gave them, all at work at the same time.
#[test]
fn three_guests_share_a_card() {
    let _one = one_guest();
    let (status, report) = arctic(&["boot", "--vfs", "2", "--split"]);
    assert_eq!(others(&report, "pass"), Vec::<&Value>::new());
    assert_eq!(status, Some(0));
    let clocks: Vec<&Value> = report["clocks"].as_array().unwrap().iter().map(|clock| &clock["guest"]).collect();
    assert_eq!(clocks, ["pf", "vf1", "vf2"]);
    all_worked(&report, 2, &CLASSES);
}

/// The card file provisions: a virtual function probes and works although no guest has a physical one.
#[test]
fn virtual_functions_without_a_physical_guest() {
    let _one = one_guest();
    let (status, report) = arctic(&["boot", "--vfs", "2", "--provision", "config"]);
    assert_eq!(others(&report, "pass"), Vec::<&Value>::new());
    assert_eq!(status, Some(0));
    all_worked(&report, 2, &CLASSES);
}

/// What a guest with one virtual function can do, judged by the field's own tests, without a skip; on a small card those
/// that fill the function's local memory.
#[test]
fn igt_on_a_virtual_function() {
    let _one = one_guest();
    let small = list("vf-card.toml");
    let small = small.to_str().unwrap();
    for (name, further) in [("vf.txt", [].as_slice()), ("vf-small-card.txt", &["--card", small, "--memory", "6144"])] {
        let list = list(name);
        let arguments = ["igt", "--list", list.to_str().unwrap(), "--function", "vf"];
        let report = igt_passes(&[arguments.as_slice(), further].concat());
        assert_eq!(report["function"], "vf");
    }
}

/// The physical function's side of it by the field's own tests: enabling, and that a reset clears what a virtual function
/// left. Few functions and little memory, since these tests look at every byte.
#[test]
fn igt_on_a_physical_function_with_virtual_ones() {
    let _one = one_guest();
    let list = list("sriov.txt");
    let (status, report) =
        arctic(&["igt", "--list", list.to_str().unwrap(), "--vfs", "2", "--card", "small", "--timeout", "240"]);
    // It hands the functions to xe_vfio_pci, which this kernel has not been built with.
    let skipped = others(&report, "pass").into_iter().map(|result| (&result["test"], &result["result"]));
    assert_eq!(skipped.collect::<Vec<_>>(), [(&"xe_sriov_flr@flr-basic".into(), &"skip".into())]);
    assert_eq!(status, Some(0));
}

/// The field's own judge: every IGT subtest that this card has to pass passes, without a skip.
#[test]
fn igt_first_light() {
    let _one = one_guest();
    let list = list("first-light.txt");
    igt_passes(&["igt", "--list", list.to_str().unwrap()]);
}

/// A card whose local memory the guest can overfill: eviction through the copy engine, compressed surfaces included.
#[test]
fn igt_small_card() {
    let _one = one_guest();
    let list = list("small-card.txt");
    let (status, report) =
        arctic(&["igt", "--list", list.to_str().unwrap(), "--card", "small", "--memory", "6144", "--timeout", "120"]);
    assert_eq!(others(&report, "pass"), Vec::<&Value>::new());
    assert_eq!(status, Some(0));
}

/// i915's judge: every line of the list by which its own CI admits a change passes, on a card whose memory the guest can
/// overfill. What is skipped is skipped on every such card: `all` is the name that older IGTs gave `all-engines`, and
/// local memory has no aperture that would undo tiling.
#[test]
fn igt_with_i915() {
    let _one = one_guest();
    let list = list("i915.txt");
    let arguments = ["--driver", "i915", "--card", "small", "--memory", "8192", "--timeout", "240"];
    let (status, report) = arctic(&[["igt", "--list", list.to_str().unwrap()].as_slice(), &arguments].concat());
    let skipped: Vec<(&str, &str)> = others(&report, "pass")
        .into_iter()
        .map(|result| (result["test"].as_str().unwrap(), result["result"].as_str().unwrap()))
        .collect();
    let expected = ["gem_busy@busy@all", "gem_tiled_blits@basic", "gem_wait@busy@all", "gem_wait@wait@all"];
    assert_eq!(skipped, expected.map(|test| (test, "skip")));
    let (guests, clocks) = (&report["guests"], &report["clocks"]);
    assert_eq!((status, guests), (Some(0), &Value::from(1)), "clocks: {clocks:#}");
}

/// A command's output and status come through, and a shared folder is there.
#[test]
fn one_command_in_the_guest() {
    let _one = one_guest();
    let share = TempDir::new().unwrap();
    std::fs::write(share.path().join("word"), "glacier").unwrap();
    let (status, report) =
        arctic(&["boot", "--run", "cat /share/word; exit 7", "--share", share.path().to_str().unwrap()]);
    assert_eq!((status, &report["status"], &report["output"]), (Some(7), &Value::from(7), &Value::from("glacier")));
}

/// A guest whose clock has another rate than the host's shows nothing: the status says so, whatever its command ended with,
/// and the report has both times. A user's own arguments are behind the program's, so that they win.
#[test]
fn a_guest_with_a_wrong_clock_is_inconclusive() {
    let _one = one_guest();
    let Some(khz) = tsc::host_khz() else { return };
    let append = format!("tsc_early_khz={}", khz / 2);
    let (status, report) = arctic(&["boot", "--no-card", "--run", "sleep 8; exit 7", "--append", &append]);
    assert_eq!((status, &report["status"], &report["inconclusive"]), (Some(125), &7.into(), &true.into()));
    let clock = &report["clocks"][0];
    let ratio = clock["guest_seconds"].as_f64().unwrap() / clock["host_seconds"].as_f64().unwrap();
    assert!((1.8..2.2).contains(&ratio), "{clock}");
}

/// A kernel that has only the driver of the run, with modules in each form that a kernel's build makes.
#[test]
fn an_own_kernel_without_i915_and_with_gzip_modules() {
    let _one = one_guest();
    let kernel = parts::obtain(&Own::default(), &Cache::open().unwrap(), &Silent).unwrap().kernel;
    let folder = TempDir::new().unwrap();
    let own = folder.path().join(&kernel.release);
    copy_modules(&kernel.modules, &own);
    let (image, own) = (kernel.image.to_str().unwrap(), own.to_str().unwrap());
    let command = "lsmod | grep -w xe && lsmod | grep -w 9p";
    let (status, report) = arctic(&["boot", "--kernel", image, "--modules", own, "--run", command]);
    assert_eq!((status, &report["inconclusive"]), (Some(0), &false.into()), "{report:#}");
    // The other driver is asked for by name.
    let refused = ["boot", "--kernel", image, "--modules", own, "--driver", "i915", "--run", "true"];
    let refused = Command::new(env!("CARGO_BIN_EXE_arctic")).args(refused).stdin(Stdio::null()).output().unwrap();
    let message = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{message}");
    assert!(message.contains("has no module i915, which --driver i915 needs") && message.contains("CONFIG_DRM_I915"));
}

/// Copies a modules' folder without i915, and with some modules compressed by gzip or not at all.
fn copy_modules(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if path.is_dir() {
            copy_modules(&path, &to.join(name));
            continue;
        }
        let name = name.to_str().unwrap();
        let target = |extension: &str| to.join(name.split(".ko").next().unwrap().to_owned() + extension);
        match name.split(".ko").next().unwrap() {
            "i915" => {}
            "xe" | "9pnet" | "drm" => {
                let file = std::fs::File::create(target(".ko.gz")).unwrap();
                let mut gzip = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
                gzip.write_all(&modules::unpacked(&path).unwrap()).unwrap();
                gzip.finish().unwrap();
            }
            "9p" => std::fs::write(target(".ko"), modules::unpacked(&path).unwrap()).unwrap(),
            _ => std::os::unix::fs::symlink(&path, to.join(name)).unwrap(),
        }
    }
}

/// A list with a line that no IGT has, and one that hangs its process: both fail by name, the next line still runs.
#[test]
fn igt_goes_on_after_a_failure() {
    let _one = one_guest();
    let folder = TempDir::new().unwrap();
    let list = folder.path().join("list");
    std::fs::write(&list, "xe_query@no-such-subtest\nxe_nothing@at-all\nxe_query@query-config\n").unwrap();
    let (status, report) = arctic(&["igt", "--list", list.to_str().unwrap()]);
    let verdicts: Vec<&str> =
        report["results"].as_array().unwrap().iter().filter_map(|result| result["result"].as_str()).collect();
    assert_eq!((status, verdicts), (Some(1), vec!["fail", "fail", "pass"]));
}
