// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Guest tests that take too long for the full test tier: long IGT lists, the maximum number of VFs.
//! `cargo xtask long --list` lists them.

use serde_json::Value;

mod busy;
mod hang;
mod kernels;
mod own_guest;

// Included by path: the module needs the path of the program, which cargo sets only for tests of this package.
#[path = "../guest/run.rs"]
mod run;
use run::{CLASSES, all_worked, arctic, list, migrations, one_guest, others};

/// Runs an IGT list. Each subtest must pass; a skip is a failure.
///
/// Tests of xe_waitfence are repeated up to twice. In these tests, seven binds write their sequence numbers to the same
/// address, which must finally contain the last number. xe may perform a bind with the CPU, and signal it, while an
/// earlier bind still waits for the copy engine to clear its memory; then the earlier number is written last. This race
/// between xe and the test exists on any card.
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

/// Seven virtual functions in the PF's guest are enabled, run workloads and are disabled, twice.
#[test]
fn seven_virtual_functions() {
    let _one = one_guest();
    vfs_work_twice(7);
}

/// Boots one guest with the PF and `vfs` VFs, which are enabled, run workloads and are disabled, twice.
fn vfs_work_twice(vfs: usize) {
    let (status, report) = arctic(&["boot", "--vfs", &vfs.to_string()]);
    assert_eq!(others(&report, "pass"), Vec::<&Value>::new());
    assert_eq!(status, Some(0));
    all_worked(&report, vfs, &CLASSES);
    for again in ["vfs enabled again", &format!("vf{vfs}: work again"), "vfs disabled again"] {
        assert!(report["results"].as_array().unwrap().iter().any(|result| result["test"] == again), "{again}");
    }
}

/// Two guests run workloads concurrently: one has the PF and provisions a VF, the other has that VF.
#[test]
fn two_guests_share_a_card() {
    let _one = one_guest();
    guests_share_a_card(1);
}

/// Three guests run workloads concurrently: one has the PF and provisions two VFs, the others have one of these VFs
/// each.
#[test]
fn three_guests_share_a_card() {
    let _one = one_guest();
    guests_share_a_card(2);
}

/// Boots a guest with the PF, which provisions `vfs` VFs, and a guest for each VF.
fn guests_share_a_card(vfs: usize) {
    let (status, report) = arctic(&["boot", "--vfs", &vfs.to_string(), "--split"]);
    assert_eq!(others(&report, "pass"), Vec::<&Value>::new());
    assert_eq!(status, Some(0));
    let clocks: Vec<&Value> = report["clocks"].as_array().unwrap().iter().map(|clock| &clock["guest"]).collect();
    let guests: Vec<String> =
        std::iter::once("pf".into()).chain((1..=vfs).map(|number| format!("vf{number}"))).collect();
    assert_eq!(clocks, guests.iter().collect::<Vec<_>>());
    all_worked(&report, vfs, &CLASSES);
}

/// Migrates a busy VF `rounds` times while another one works on. Each step is right, VF 2's share of engine time too.
fn a_vf_is_migrated(rounds: usize, arguments: &[&str]) {
    let _one = one_guest();
    let count = rounds.to_string();
    let (status, report) = arctic(&[&["boot", "--vfs", "2", "--migrate", &count][..], arguments].concat());
    assert_eq!(others(&report, "pass"), Vec::<&Value>::new());
    assert_eq!((status, &report["ok"]), (Some(0), &Value::Bool(true)));
    assert_eq!(migrations(&report), rounds);
    let steps = report["steps"].as_array().unwrap();
    assert!(steps.iter().any(|step| step["name"] == "share of VF 2"), "{steps:#?}");
    let twice = steps.iter().filter(|step| step["name"].as_str().is_some_and(|name| name.ends_with(", twice")));
    assert_eq!(twice.count(), if arguments.contains(&"--split") { rounds / 10 } else { 0 });
}

/// A VF with a guest of its own is migrated a hundred times, ten times of these twice before its driver has recovered.
#[test]
fn a_busy_vf_is_migrated() {
    a_vf_is_migrated(100, &["--split"]);
}

/// The same in the guest of the PF.
#[test]
fn a_busy_vf_of_the_pfs_guest_is_migrated() {
    a_vf_is_migrated(20, &[]);
}

/// The same with Linux 7.3 of Debian's backports as the PF's kernel, the VFs', and both.
#[test]
fn a_busy_vf_is_migrated_with_the_newest_kernel() {
    let newest = "trixie-backports";
    for of in ["--pf-debian", "--vf-debian", "--debian"] {
        a_vf_is_migrated(20, &["--split", of, newest]);
    }
}

/// An outer guest behind a virtual IOMMU passes two VFs on to inner guests: one after the other, both at once, one that is
/// killed, one that loses its VF and gets it back. Both VFs then work in the outer guest.
#[test]
fn inner_guests_have_virtual_functions() {
    let _one = one_guest();
    let (status, report) = arctic(&["boot", "--vfs", "2", "--passthrough"]);
    assert_eq!(others(&report, "pass"), Vec::<&Value>::new());
    assert_eq!((status, &report["ok"]), (Some(0), &Value::Bool(true)));
    let steps = report["steps"].as_array().unwrap();
    assert!(steps.iter().all(|step| step["ok"] == true && step["seconds"].as_f64().unwrap() > 0.0), "{steps:#?}");
    // All workloads run on seven engines and on all together; short work is one check on each engine.
    for (name, least) in [
        ("inner guest with vf1, hugetlbfs", 77),
        ("inner guest with vf2, transparent huge pages", 7),
        ("inner guests with vf1 and vf2 at once", 2 * 77),
        ("vf2 unplugged from its inner guest, and added again", 77 + 7),
        ("next inner guest with vf1", 7),
        ("vf1 and vf2 on xe again", 2 * 5),
    ] {
        let step = steps.iter().find(|step| step["name"] == name).unwrap_or_else(|| panic!("no step {name}"));
        let checks = step["checks"].as_array().unwrap();
        assert!(checks.len() >= least && checks.iter().all(|check| check["ok"] == true), "{name}: {}", checks.len());
    }
}

/// The PF behind a root port, with its VFs on the port's bus: VF 9 is in another slot of the bus than the PF.
#[test]
fn functions_behind_a_root_port() {
    let _one = one_guest();
    let (status, report) = arctic(&["boot", "--vfs", "9", "--pci-port"]);
    assert_eq!(others(&report, "pass"), Vec::<&Value>::new());
    assert_eq!(status, Some(0));
    all_worked(&report, 9, &CLASSES);
    let addresses: Vec<&Value> = report["vfs"].as_array().unwrap().iter().map(|vf| &vf["address"]).collect();
    assert_eq!((addresses[0], addresses[8]), (&"0000:01:00.1".into(), &"0000:01:01.1".into()));
}

/// i915 on the PF behind a root port.
#[test]
fn i915_behind_a_root_port() {
    let _one = one_guest();
    let (status, report) = arctic(&["boot", "--driver", "i915", "--pci-port"]);
    assert_eq!(others(&report, "pass"), Vec::<&Value>::new());
    assert_eq!(status, Some(0));
}

/// The maximum number of virtual functions of the hardware, in one guest.
#[test]
fn sixty_three_virtual_functions() {
    let _one = one_guest();
    let (status, report) = arctic(&["boot", "--vfs", "63"]);
    assert_eq!(others(&report, "pass"), Vec::<&Value>::new());
    assert_eq!((status, &report["card"]), (Some(0), &Value::from("flex170-63vf")));
    all_worked(&report, 63, &CLASSES);
}

/// One GPU of a Flex 140: the smaller die, with local memory that is not a power of two. xe and i915 probe it and run
/// the workloads on every engine, also on two virtual functions.
#[test]
fn flex_140() {
    let _one = one_guest();
    for further in [["--driver", "xe"].as_slice(), &["--driver", "i915"], &["--vfs", "2"]] {
        let (status, report) = arctic(&[["boot", "--card", "flex140"].as_slice(), further].concat());
        assert_eq!(others(&report, "pass"), Vec::<&Value>::new(), "{further:?}");
        assert_eq!((status, &report["card"]), (Some(0), &Value::from("flex140")), "{further:?}");
        assert_eq!(report["guest_card"]["pci_id"], "8086:56c1", "{further:?}");
    }
}

/// IGT tests in a guest with one virtual function; none is skipped. The tests that fill local memory run on a small
/// card.
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

/// IGT tests of SR-IOV on the physical function: enabling VFs, and clearing of a VF's data by its reset. The card has
/// few functions and little memory, because these tests read every byte.
#[test]
fn igt_on_a_physical_function_with_virtual_ones() {
    let _one = one_guest();
    let list = list("sriov.txt");
    let (status, report) =
        arctic(&["igt", "--list", list.to_str().unwrap(), "--vfs", "2", "--card", "small", "--timeout", "240"]);
    // This test assigns the functions to xe_vfio_pci, which is not enabled in this kernel's configuration.
    let skipped = others(&report, "pass").into_iter().map(|result| (&result["test"], &result["result"]));
    assert_eq!(skipped.collect::<Vec<_>>(), [(&"xe_sriov_flr@flr-basic".into(), &"skip".into())]);
    assert_eq!(status, Some(0));
}

/// With trapped local memory, accesses of VFs in the PF's guest end at the quota, also after it was reduced.
#[test]
fn igt_on_a_physical_function_with_trapped_local_memory() {
    let _one = one_guest();
    let mapped = include_str!("../../../configs/small.toml");
    let trapped = mapped.replace("vf_local_memory = \"mapped\"", "vf_local_memory = \"trapped\"");
    assert_ne!(trapped, mapped);
    let dir = vmm_sys_util::tempdir::TempDir::new().unwrap();
    let card = dir.as_path().join("trapped.toml");
    std::fs::write(&card, trapped).unwrap();
    let list = list("trapped-vfs.txt");
    let (status, report) = arctic(&[
        "igt",
        "--list",
        list.to_str().unwrap(),
        "--vfs",
        "2",
        "--card",
        card.to_str().unwrap(),
        "--timeout",
        "240",
    ]);
    assert_eq!(others(&report, "pass"), Vec::<&Value>::new());
    assert_eq!(status, Some(0));
}

/// All IGT subtests that apply to this card pass; none is skipped.
#[test]
fn igt_first_light() {
    let _one = one_guest();
    let list = list("first-light.txt");
    igt_passes(&["igt", "--list", list.to_str().unwrap()]);
}

/// IGT's `perf` on i915. Three lines limit the time of the driver's code to 1 % of that of the stream. It consists of five register
/// accesses for each report and of the execution of the system call in TCG, of which the cost depends on the host: for each report
/// 273 us are allowed, and 300 to 700 us were measured on an idle host where an access in a loop takes 28 us, and the first one
/// after a pause of 27 ms 160 us. A sleep of 27 ms alone, in a process that accesses no card, took 243 to 295 us of the process's
/// time there (one of 0.1 ms 31 us): the guest's code is no longer in the host's caches. The lines may be run once more, alone;
/// no other line may.
#[test]
fn igt_perf() {
    const REPEATED: [&str; 3] = ["perf@blocking", "perf@polling", "perf@gen12-group-concurrent-oa-buffer-read"];
    let _one = one_guest();
    let list = list("perf.txt");
    let arguments = ["igt", "--driver", "i915", "--list", list.to_str().unwrap(), "--timeout", "300"];
    let (_, report) = arctic(&arguments);
    let mut failed = Vec::new();
    for result in others(&report, "pass") {
        let test = result["test"].as_str().unwrap();
        let passes_alone = || others(&arctic(&[&arguments[..], &["--filter", test]].concat()).1, "pass").is_empty();
        if REPEATED.contains(&test) && passes_alone() {
            eprintln!("{test}: passed on retry");
        } else {
            failed.push(result.clone());
        }
    }
    assert_eq!(failed, Vec::<Value>::new());
}

/// The guest uses more local memory than the card has: eviction by the copy engine, including compressed surfaces.
#[test]
fn igt_small_card() {
    let _one = one_guest();
    let list = list("small-card.txt");
    let (status, report) =
        arctic(&["igt", "--list", list.to_str().unwrap(), "--card", "small", "--memory", "6144", "--timeout", "120"]);
    assert_eq!(others(&report, "pass"), Vec::<&Value>::new());
    assert_eq!(status, Some(0));
}

/// The list of i915's pre-merge CI that applies to Ivy Bridge, with the tests of fences, tiling, the aperture, contexts
/// and the command parser. A subtest has 180 s on an idle host.
#[test]
fn igt_on_ivy_bridge() {
    let _one = one_guest();
    igt_on_an_integrated_gpu("ivb", "ivb.txt");
}

/// The same for Sandy Bridge, which has no command parser.
#[test]
fn igt_on_sandy_bridge() {
    let _one = one_guest();
    igt_on_an_integrated_gpu("snb", "snb.txt");
}

fn igt_on_an_integrated_gpu(card: &str, tests: &str) {
    let list = list(tests);
    igt_passes(&["igt", "--card", card, "--list", list.to_str().unwrap(), "--timeout", "180"]);
}

/// The list of i915's pre-merge CI passes on a card with less local memory than the guest uses. The skipped tests are
/// skipped on every card with local memory: `all` is the name of `all-engines` in older IGT versions, and there is no
/// aperture that detiles.
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
