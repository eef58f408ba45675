// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Messages and descriptors that a client sends over its socket, and engine accesses to the memory it maps.
#![no_main]


use arctic_test_support::harness::vfio_user;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| vfio_user::run(input));
