// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Parsing of the card's log, of kernel counters and of the output of other benches by `cargo bench`.

// The report is a program without a test harness, so its modules are tested by this separate target.
#[path = "../benches/report/bench_output.rs"]
mod bench_output;
#[path = "../benches/report/memory.rs"]
mod memory;
#[path = "../benches/report/trace.rs"]
mod trace;

use trace::{Access, Counts, access, per_submission, phases};

const LOG: &str = "\
[INFO  arctic_gpu::vfio_user::server] pf: client connected
[TRACE arctic_gpu::card::function] 0: write 0:0xa188 = [01, 00, 01, 00]
[TRACE arctic_gpu::card::function] 0: read 0:0x2358 = [a7, be, 63, 15]
[TRACE arctic_gpu::card::function] 0: write 0:0x1901f0 = [00, 00, 00, 00]
[DEBUG arctic_gpu::vfio_user::session] command 7 failed with errno 22
[TRACE arctic_gpu::card::function] 0: read 0:0x2358 = [46, eb, 70, 15]
[TRACE arctic_gpu::card::function] 0: write 0:0x1901f0 = [00, 00, 00, 00]
[TRACE arctic_gpu::card::function] 0: read config:0x2358 = [00]
[TRACE arctic_gpu::card::function] 0: write 0:0x1901f0 = [00, 00, 00, 00]
[TRACE arctic_gpu::card::function] 0: read 0:0x2358 = [99, 09, 95, 15]
[TRACE arctic_gpu::card::function] 0: write 0:0xa188 = [00, 00, 01, 00]
";

const NOTIFICATION: Access = Access { write: true, region: 0, offset: 0x19_01f0 };
const FORCEWAKE: Access = Access { write: true, region: 0, offset: 0xa188 };

#[test]
fn accesses_are_distinguished_from_other_lines() {
    let found: Vec<Access> = LOG.lines().filter_map(access).collect();
    assert_eq!(found.len(), 9);
    assert_eq!(found[0], FORCEWAKE);
    assert_eq!(found[5], Access { write: false, region: 7, offset: 0x2358 });
    assert_eq!(access("[TRACE arctic_gpu::card::function] 0: read 0:0xno = [00]"), None);
}

#[test]
fn phases_lie_between_marks() {
    let phases = phases(LOG, 0x2358);
    let config = Access { write: false, region: 7, offset: 0x2358 };
    assert_eq!(phases, [Counts::from([(NOTIFICATION, 1)]), Counts::from([(NOTIFICATION, 2), (config, 1)])]);
    assert!(trace::phases(LOG, 0x9999).is_empty());
}

#[test]
fn accesses_of_a_phase_are_not_attributed_to_submissions() {
    let few = Counts::from([(NOTIFICATION, 105), (FORCEWAKE, 3)]);
    let many = Counts::from([(NOTIFICATION, 405), (FORCEWAKE, 3)]);
    let each = per_submission((100, &few), (200, &many)).unwrap();
    assert_eq!(each.into_iter().collect::<Vec<_>>(), [(NOTIFICATION, 3.0)]);
    assert!(per_submission((100, &few), (100, &many)).is_err());
    assert!(per_submission((100, &few), (200, &few)).is_err(), "a phase without accesses must be an error");
}

#[test]
fn resident_memory_is_read_in_mib() {
    let status =
        "Name:\tarctic\nVmRSS:\t   10240 kB\nRssAnon:\t    4096 kB\nRssFile:\t 512 kB\nRssShmem:\t    2048 kB\n";
    let resident = memory::resident(status).unwrap();
    assert_eq!((resident.total, resident.own, resident.shared), (10.0, 4.0, 2.0));
    // Shared pages are counted through the backing file, whether or not they are resident in the card's process.
    assert_eq!(memory::MemoryUse { resident, backing: 5.0 }.total(), 13.0);
    assert_eq!(memory::resident("Name:\tkthreadd\n"), None);
    // This test has no card as a child process.
    assert!(memory::of_the_card().is_err());
}

#[test]
fn values_of_benches_are_read() {
    let value = |text, name| {
        let (value, detail) = bench_output::value(text, name);
        assert_eq!(detail, "");
        value
    };
    let blit = "speed\nlinear copy / non-temporal memcpy   0.97   (7.1 GiB/s against 7.3 GiB/s)\n";
    assert_eq!(value(blit, "linear copy / non-temporal memcpy"), Some(0.97));
    let streamer = "instructions for one MI_STORE_DATA_IMM: 101 (target: under 150)\n";
    assert_eq!(value(streamer, "instructions for one MI_STORE_DATA_IMM"), Some(101.0));
    let kvm = "ticks of exit: 2000\nregister read / exit: 1.010\n";
    assert_eq!(value(kvm, "register read / exit"), Some(1.01));
}

#[test]
fn fewer_or_more_values_than_rows_are_an_error() {
    let findings = |count| vec![(Some(1.0), String::new()); count];
    assert_eq!(bench_output::one_for_each_row(findings(2), 2).unwrap(), findings(2));
    for count in [0, 1, 3] {
        assert!(bench_output::one_for_each_row(findings(count), 2).is_err());
    }
}

#[test]
fn a_value_that_is_absent_has_a_reason() {
    let skipped = "commands per second: 7.0 million\nskipped: valgrind cannot be started\n";
    assert_eq!(bench_output::value(skipped, "instructions"), (None, "valgrind cannot be started".into()));
    let renamed = "instructions of one store: 101\n";
    let (value, reason) = bench_output::value(renamed, "instructions for one store");
    assert_eq!(value, None);
    assert!(reason.contains("no number") && reason.contains("instructions for one store"), "{reason}");
}
