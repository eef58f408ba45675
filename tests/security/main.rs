// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Regression tests for vulnerability classes found in other device models and drivers.
//!
//! * `num_vfs.rs`: NumVFs above TotalVFs, NumVFs that changes while VFs are enabled, NumVFs after a reset. QEMU:
//!   CVE-2024-26327, CVE-2024-26328.
//! * `own_bars.rs`, `own_bars_all_transports.rs`: DMA to the device's own registers (reentrancy). QEMU: CVE-2021-3929,
//!   CVE-2021-3750 and about a dozen others.
//! * `toctou.rs`: TOCTOU, memory that changes between check and use. virtio, nvme, Xen's back ends (XSA-155).
//! * `stale_translations.rs`: stale translations after an unmap, a reset or new provisioning. i915: CVE-2022-0330.
//! * `data_remanence.rs`: one user's data is visible to the next user. LeftoverLocals: CVE-2023-4969.
//!
//! Each test fails if the guard that its comment names is removed.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

mod data_remanence;
mod machine;
mod num_vfs;
mod own_bars;
mod own_bars_all_transports;
mod stale_translations;
mod toctou;
