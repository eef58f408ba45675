// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Configuration space beside a listing of a real card, and the pin and the reset of the function.

use arctic_sriov::event::Event;
use arctic_sriov::function::PciFunction;

use super::*;
use crate::profile::IntegratedProfile;
use crate::profile::tests::snb;

/// `lspci -xxx` of a Sandy Bridge for desktops, 8086:0102, with i915 (docs/integrated.md, listing 3): the rows that
/// are not zero.
const LISTING: &[(u64, [u8; 16])] = &[
    (0x00, [0x86, 0x80, 0x02, 0x01, 0x07, 0x04, 0x90, 0, 0x09, 0, 0, 0x03, 0, 0, 0, 0]),
    (0x10, [0x04, 0, 0, 0xfe, 0, 0, 0, 0, 0x0c, 0, 0, 0xe0, 0, 0, 0, 0]),
    (0x20, [0x01, 0xf0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x86, 0x80, 0, 0x20]),
    (0x30, [0, 0, 0, 0, 0x90, 0, 0, 0, 0, 0, 0, 0, 0x0b, 0x01, 0, 0]),
    (0x40, [0x09, 0, 0x0c, 0x01, 0x96, 0x80, 0x80, 0xe2, 0x90, 0, 0, 0x14, 0, 0, 0, 0]),
    (0x50, [0x11, 0x02, 0, 0, 0x19, 0, 0, 0, 0, 0, 0, 0, 0x01, 0, 0xa0, 0x7a]),
    (0x60, [0, 0, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    (0x90, [0x05, 0xd0, 0x01, 0, 0x0c, 0xf0, 0xe0, 0xfe, 0x52, 0x41, 0, 0, 0, 0, 0, 0]),
    (0xa0, [0, 0, 0, 0, 0x13, 0, 0x06, 0x03, 0, 0, 0, 0, 0, 0, 0, 0]),
    (0xd0, [0x01, 0xa4, 0x22, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    (0xe0, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0]),
    (0xf0, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x06, 0, 0x18, 0xa0, 0xbd, 0x79]),
];

/// Bytes that differ from the listing, and why.
const DIFFERENCES: &[(std::ops::Range<u64>, &str)] = &[
    (0x02..0x04, "another product of the generation"),
    (0x2c..0x30, "another board"),
    (0x40..0x4c, "CAPID0: fuses of the product, not in the list of capabilities"),
    (0x50..0x52, "GGC: 1 MiB of GGTT entries in place of 2, no stolen memory"),
    (0x54..0x55, "DEVEN: no PCI Express port at 00:01.0"),
    (0x5c..0x60, "BDSM: no stolen memory"),
    (0xf8..0xfc, "of no known meaning"),
];

fn byte(function: &PciFunction, at: u64) -> u8 {
    let mut data = [0];
    function.read_config(at, &mut data);
    data[0]
}

/// Writes what firmware and i915 had written before the listing was made.
fn as_driven_by_i915(profile: &IntegratedProfile) -> PciFunction {
    let mut function = profile.physical_function(0).unwrap();
    for (at, data) in [
        (0x10, &[0x04, 0, 0, 0xfe][..]),
        (0x18, &[0x0c, 0, 0, 0xe0]),
        (0x20, &[0x01, 0xf0, 0, 0]),
        (0x3c, &[0x0b]),
        (0x94, &[0x0c, 0xf0, 0xe0, 0xfe, 0x52, 0x41]),
        (0x92, &[0x01]),
        (0xfc, &[0x18, 0xa0, 0xbd, 0x79]),
        (0x04, &[0xff, 0xff]),
    ] {
        function.write_config(at, data);
    }
    function
}

#[test]
fn every_byte_is_that_of_a_listing_or_a_named_difference() {
    let function = as_driven_by_i915(&snb());
    let listed = |at: u64| {
        LISTING.iter().find(|(row, _)| *row == at & !15).map_or(0, |(_, row)| row[usize::try_from(at & 15).unwrap()])
    };
    for at in 0..256 {
        let (expected, found) = (listed(at), byte(&function, at));
        let reason = DIFFERENCES.iter().find(|(bytes, _)| bytes.contains(&at)).map(|(_, reason)| reason);
        assert!(found == expected || reason.is_some(), "{at:#x}: {found:#x}, in the listing {expected:#x}");
    }
    for (bytes, reason) in DIFFERENCES {
        assert!(bytes.clone().any(|at| listed(at) != byte(&function, at)), "{bytes:x?} does not differ: {reason}");
    }
    // Both generations differ in the device ID alone.
    let ivb = as_driven_by_i915(&ivb());
    assert!((4..256).all(|at| byte(&ivb, at) == byte(&function, at)));
}

/// ILK-046, MSAC: the bits of the aperture's BAR that are read-only.
#[test]
fn the_aperture_has_its_size_in_msac() {
    for (mebibytes, control) in [(512, 6), (256, 2), (128, 0), (64, 0)] {
        let profile = IntegratedProfile { aperture: mebibytes << 20, ..ivb() };
        assert_eq!(byte(&profile.physical_function(0).unwrap(), 0x62), control, "{mebibytes} MiB");
    }
}

/// Software can reset the function by Advanced Features, and by D3hot, which has no No_Soft_Reset.
#[test]
fn the_function_is_reset_by_both_of_its_ways() {
    for writes in [&[(0xa8, 1)][..], &[(0xd4, 3), (0xd4, 0)]] {
        let mut function = as_driven_by_i915(&ivb());
        let mut events = Vec::new();
        for (at, value) in writes {
            events.extend(function.write_config(*at, &[*value]));
        }
        assert!(events.contains(&Event::FunctionLevelReset), "{events:?}");
        assert_eq!([0x13, 0x04, 0x92, 0xd4].map(|at| byte(&function, at)), [0; 4]);
    }
}
