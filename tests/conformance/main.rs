//! One device, many doors: every test that does not depend on a transport, through each way to the card.
//!
//! `suite` has the tests, plain functions of a [`door::Machine`]; `doors` has the machines; `driver` is a driver in plain
//! Rust. Each door runs each test under its own name: `cargo test --test conformance vfio_user::` runs one door's.

mod bus;
mod cloud_hypervisor;
mod door;
mod doors;
mod driver;
mod suite;

/// A module for each door, with a test for each name.
macro_rules! doors {
    ($($door:ident => $open:path),* $(,)? ; $($area:ident: [$($test:ident),* $(,)?]),* $(,)?) => {
        doors!(@each [$($door => $open),*] [$($area [$($test)*])*]);
    };
    (@each [] $areas:tt) => {};
    (@each [$door:ident => $open:path $(, $more:ident => $others:path)*] [$($area:ident [$($test:ident)*])*]) => {
        mod $door {
            $($(
                #[test]
                fn $test() {
                    let name = concat!(stringify!($door), "::", stringify!($test));
                    crate::door::run(name, $open, crate::suite::$area::$test);
                }
            )*)*
        }
        doors!(@each [$($more => $others),*] [$($area [$($test)*])*]);
    };
}

doors! {
    // Each function in a guest of its own, over its socket.
    vfio_user => crate::doors::vfio_user::split,
    // All functions in one guest, over their sockets.
    vfio_user_one_guest => crate::doors::vfio_user::together,
    // All functions in one guest of a VMM in this process.
    library => crate::doors::in_process::native,
    // All functions in one guest under KVM: its processor makes every access.
    kvm => crate::doors::kvm::reference_vmm;

    configuration: [
        the_function_shows_its_identity,
        capabilities_are_chained,
        vfs_show_what_they_are,
        bars_are_sized_by_all_ones,
        vf_bars_are_sized_in_the_capability,
        configuration_space_takes_every_width,
        read_only_registers_keep_their_values,
    ],
    bars: [
        bars_answer_with_memory_space_only,
        bars_answer_in_d0_only,
        bars_answer_where_they_have_been_moved_to,
        registers_take_every_width,
        local_memory_takes_every_width,
        both_ways_lead_to_the_same_bytes,
        the_doorbell_window_keeps_nothing,
        a_function_tells_what_it_is,
        missing_registers_are_reported,
        a_conventional_reset_begins_anew,
        a_function_level_reset_begins_anew,
        a_machine_that_is_switched_off_leaves_nothing_behind,
    ],
    functions: [
        vf_enable_brings_vfs_into_being,
        more_vfs_than_there_are_cannot_be_enabled,
        the_number_of_vfs_is_locked_while_they_are_enabled,
        vf_bars_answer_with_vf_memory_space_only,
        vfs_are_apart,
        a_vf_reset_reaches_its_own,
        a_reset_of_the_pf_takes_its_vfs,
        vfs_enabled_again_are_as_new,
    ],
    memory: [
        a_vf_has_the_local_memory_it_was_given,
        a_vf_writes_entries_of_its_own_pages_only,
        the_pf_gives_and_takes_global_pages,
        guest_memory_takes_bus_mastering,
        each_function_reaches_its_own_guest_memory,
    ],
    work: [
        the_guc_answers,
        a_batch_stores_and_interrupts,
        msi_waits_while_masked,
        no_msi_without_enable,
        msi_takes_bus_mastering,
        contexts_share_an_engine,
        a_context_that_hangs_is_reset,
        a_vf_learns_its_share,
        a_vf_stores_and_interrupts,
        a_vf_works_in_its_local_memory,
        a_vf_that_reaches_beyond_its_own_is_reset,
        a_vf_comes_back_from_its_reset,
        vfs_enabled_again_work_again,
        work_ends_with_a_reset_of_the_card,
    ],
}

doors! {
    // Each VF in a guest of its own, over its socket, and no guest that has the PF.
    vfio_user_without_pf => crate::doors::vfio_user::provisioned;

    alone: [
        a_vf_is_an_ordinary_function,
        a_vf_needs_no_address_that_its_guest_chose,
        a_vf_has_what_the_card_file_gives,
        a_vf_stores_and_interrupts,
        a_vf_works_in_its_local_memory,
        a_vf_comes_back_from_its_reset,
        the_next_machine_finds_nothing,
    ],
}
