// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Sends messages and descriptors of a client over its socket; engines access the memory that the client maps.
#![no_main]

use arctic_test_support::harness::vfio_user;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| vfio_user::run(input));
