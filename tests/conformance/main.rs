// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Runs each transport-independent test over each transport.
//!
//! `suite` has the tests, which are functions of a [`transport::Machine`]. The machines of all transports except KVM,
//! and a driver in plain Rust, are in `arctic_test_support::machine`. A test's name starts with the transport's name:
//! `cargo test --test conformance vfio_user::` runs the tests of one transport.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

mod cloud_hypervisor;
mod kvm;
mod late_replies;
mod suite;

use std::process::ExitCode;

use arctic_test_support::machine::transport::{self, Machine, Test};
use arctic_test_support::machine::{in_process, vfio_user};
use arctic_vmm::elf_guest;
use libtest_mimic::{Arguments, Trial};

use crate::suite::{alone, bars, configuration, functions, memory, work};

/// Lists functions with their names.
macro_rules! tests {
    ($($area:ident::$test:ident),* $(,)?) => { &[$((stringify!($test), $area::$test as fn(&mut dyn Machine))),*] };
}

/// A transport: its name, and a function that creates a machine with the card.
type Transport = (&'static str, fn() -> Box<dyn Machine>);

/// Transports over which the PF and all VFs are accessible.
const TRANSPORTS: [Transport; 4] = [
    // Each function in a separate guest, over its socket.
    ("vfio_user", vfio_user::split),
    // As above, with guest memory that has no file descriptor.
    ("vfio_user_by_messages", vfio_user::by_messages),
    // All functions in one guest, over their sockets.
    ("vfio_user_one_guest", vfio_user::together),
    // All functions in one guest of a VMM in this process.
    ("library", in_process::native),
];
/// All functions in one guest under KVM; a vCPU makes each access.
const KVM: Transport = ("kvm", kvm::reference_vmm);
/// Each VF in a separate guest, over its socket. No guest has the PF.
const WITHOUT_PF: Transport = ("vfio_user_without_pf", vfio_user::provisioned);

/// Tests with a PF and its VFs.
const ALL: &[Test] = tests![
    configuration::the_function_shows_its_identity,
    configuration::capabilities_are_chained,
    configuration::vfs_have_class_msi_and_flr_and_no_power_management,
    configuration::bars_are_sized_by_all_ones,
    configuration::vf_bars_are_sized_in_the_capability,
    configuration::configuration_space_takes_every_width,
    configuration::read_only_registers_keep_their_values,
    bars::bars_answer_with_memory_space_only,
    bars::bars_answer_in_d0_only,
    bars::bars_answer_where_they_have_been_moved_to,
    bars::registers_take_every_width,
    bars::local_memory_takes_every_width,
    bars::mapped_and_trapped_accesses_reach_the_same_bytes,
    bars::doorbell_window_does_not_store_writes,
    bars::vf_cap_reg_identifies_the_function,
    bars::missing_registers_are_reported,
    bars::conventional_reset_restores_the_reset_state,
    bars::flr_has_the_effect_of_a_conventional_reset,
    bars::power_cycle_clears_memory_and_registers,
    functions::vf_enable_enables_num_vfs_functions,
    functions::a_vf_that_is_absent_can_be_accessed_and_reset,
    functions::more_vfs_than_there_are_cannot_be_enabled,
    functions::the_number_of_vfs_is_locked_while_they_are_enabled,
    functions::vf_bars_answer_with_vf_memory_space_only,
    functions::vfs_have_separate_registers,
    functions::vf_flr_leaves_other_vfs_unchanged,
    functions::pf_reset_disables_vfs,
    functions::enabled_vfs_are_in_reset_state,
    memory::lmtt_defines_the_local_memory_of_a_vf,
    memory::a_vf_writes_entries_of_its_own_pages_only,
    memory::pf_assigns_and_revokes_ggtt_pages,
    memory::guest_memory_access_requires_bus_mastering,
    memory::each_function_reaches_its_own_guest_memory,
    work::the_guc_answers,
    work::a_batch_stores_and_interrupts,
    work::msi_waits_while_masked,
    work::no_msi_without_enable,
    work::msi_requires_bus_mastering,
    work::contexts_share_an_engine,
    work::a_context_that_hangs_is_reset,
    work::vf_queries_its_provisioned_resources,
    work::a_vf_stores_and_interrupts,
    work::a_vf_works_in_its_local_memory,
    work::vf_access_to_a_foreign_ggtt_range_resets_the_context,
    work::vf_works_after_its_reset,
    work::vfs_work_after_each_enable,
    work::work_ends_with_a_reset_of_the_card,
];
/// Tests of VFs without a PF driver.
const ALONE: &[Test] = tests![
    alone::vf_has_ids_and_bars_of_an_ordinary_function,
    alone::vf_bar_addresses_do_not_affect_accesses,
    alone::vf_has_the_resources_of_the_card_file,
    alone::a_vf_stores_and_interrupts,
    alone::a_vf_works_in_its_local_memory,
    alone::vf_works_after_its_reset,
    alone::vf_is_in_reset_state_after_a_disconnect,
];

/// Returns the tests for one transport. If `closed` has a reason to skip them, prints their names and marks them as
/// ignored.
fn trials((transport, open): Transport, tests: &[Test], closed: Option<&str>) -> Vec<Trial> {
    let trial = |&(test, body): &Test| {
        let name = format!("{transport}::{test}");
        if let Some(why) = closed {
            eprintln!("skipped: {name}: {why}");
        }
        let run = {
            let name = name.clone();
            move || {
                transport::run(&name, open, body);
                Ok(())
            }
        };
        Trial::test(name, run).with_ignored_flag(closed.is_some())
    };
    tests.iter().map(trial).collect()
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    // The check for usable KVM is slow, so it runs only if a selected test needs KVM.
    let is_selected = |(transport, _): Transport| {
        let name = |test| format!("{transport}::{test}");
        let filter = arguments.filter.as_deref().unwrap_or_default();
        ALL.iter().any(|(test, _)| name(test).contains(filter))
    };
    let mut all: Vec<Trial> = TRANSPORTS.into_iter().flat_map(|transport| trials(transport, ALL, None)).collect();
    all.extend(trials(KVM, ALL, if is_selected(KVM) { elf_guest::unable() } else { None }));
    all.extend(trials(WITHOUT_PF, ALONE, None));
    let of_one_transport: [(&str, fn()); 5] = [
        ("cloud_hypervisor::disabled_vf_keeps_its_connection", cloud_hypervisor::disabled_vf_keeps_its_connection),
        ("cloud_hypervisor::a_device_is_added_and_taken_away", cloud_hypervisor::a_device_is_added_and_taken_away),
        ("late_replies::an_engine_continues", late_replies::an_engine_continues),
        ("late_replies::the_guc_continues", late_replies::the_guc_continues),
        ("late_replies::a_reset_ends_the_access", late_replies::a_reset_ends_the_access),
    ];
    all.extend(of_one_transport.map(|(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    }));
    libtest_mimic::run(&arguments, all).exit_code()
}
