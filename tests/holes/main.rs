//! Holes that others had, each with the test that would find it here.
//!
//! | file | the hole | who had it |
//! |---|---|---|
//! | `num_vfs.rs` | NumVFs above TotalVFs, NumVFs that changes under enabled VFs, NumVFs after a reset | QEMU: CVE-2024-26327, CVE-2024-26328 |
//! | `own_bars.rs`, `own_bars_through_doors.rs` | DMA that is aimed at the device's own registers | QEMU: CVE-2021-3929, CVE-2021-3750 and a dozen more |
//! | `read_once.rs` | memory that changes between check and use | virtio, nvme, Xen's back ends (XSA-155) |
//! | `stale.rs` | translations that outlive an unmap, a reset or another sharing | i915: CVE-2022-0330 |
//! | `residue.rs` | what one function leaves behind is seen by the next | LeftoverLocals: CVE-2023-4969 |
//!
//! A test here fails when the guard that it is about is taken away; its comment names the guard.

#[path = "../../device-model/tests/hostile_vf/bench.rs"]
#[allow(dead_code, reason = "another test's bench")]
mod bench;
#[path = "../../device-model/tests/hostile_vf/canary.rs"]
#[allow(dead_code, reason = "another test's bench")]
mod canary;
#[path = "../../device-model/tests/hostile/grammar.rs"]
#[allow(dead_code, reason = "another test's bench")]
mod grammar;
#[path = "../../device-model/tests/hostile_vf/pf.rs"]
#[allow(dead_code, reason = "another test's bench")]
mod pf;
#[path = "../../device-model/tests/hostile/process.rs"]
#[allow(dead_code, reason = "another test's bench")]
mod process;
#[path = "../../device-model/tests/hostile/random.rs"]
#[allow(dead_code, reason = "another test's bench")]
mod random;
#[path = "../../device-model/tests/hostile_vf/world.rs"]
#[allow(dead_code, reason = "another test's bench")]
mod world;

#[path = "../serve/driver.rs"]
#[allow(dead_code, reason = "another test's driver")]
mod driver;

mod machine;
mod num_vfs;
mod own_bars;
mod own_bars_through_doors;
mod read_once;
mod residue;
mod stale;
