//! Guests that take too long for the test command: long IGT lists, as many virtual functions as the hardware has.
//! `cargo xtask long --list` names them.

use serde_json::Value;

#[path = "../guest/run.rs"]
mod run;
use run::{CLASSES, all_worked, arctic, igt_passes, list, one_guest, others};

/// Seven virtual functions in the PF's guest, enabled, at work and disabled twice, as the short test does with three.
#[test]
fn seven_virtual_functions() {
    let _one = one_guest();
    let (status, report) = arctic(&["boot", "--vfs", "7"]);
    assert_eq!(others(&report, "pass"), Vec::<&Value>::new());
    assert_eq!(status, Some(0));
    all_worked(&report, 7, &CLASSES);
}

/// A guest that provisions and two that use what it gave them, all at work at the same time.
#[test]
fn three_guests_share_a_card() {
    let _one = one_guest();
    let (status, report) = arctic(&["boot", "--vfs", "2", "--split"]);
    assert_eq!(others(&report, "pass"), Vec::<&Value>::new());
    assert_eq!(status, Some(0));
    all_worked(&report, 2, &CLASSES);
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
