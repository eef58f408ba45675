// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Implicit values of functions that are called through a stack: they do not have the kernel's payload, and read a structure
//! at the address in r0.0 (IGC: `implicit_args.h`, version 0), before the kernel's cross-thread data.

use super::memory::Space;
use super::{LaunchError, Range};
use crate::zebin::{Kernel, Zebin};

/// Bytes of the structure, a multiple of 64 because the low bits of r0.0 are others.
pub const BYTES: usize = 128;
/// Bytes that the version has.
const USED: u8 = 112;

/// Name of the symbol with the distance from r0.0 to the cross-thread data.
pub const DISTANCE: &str = "__INTEL_PATCH_CROSS_THREAD_OFFSET";

/// True if the code of a kernel expects the structure: it asks for the distance.
pub fn is_used(zebin: &Zebin, kernel: &str) -> bool {
    zebin.relocations.iter().any(|relocation| {
        let section = zebin.sections.get(relocation.section).and_then(|section| section.name.strip_prefix(".text."));
        let symbol = zebin.symbols.get(relocation.symbol).map_or("", |symbol| symbol.name.as_str());
        section == Some(kernel) && symbol.starts_with(DISTANCE)
    })
}

/// Number of dimensions of the range: as given, but those with more than one work item.
pub fn dimensions(range: &Range, given: Option<u8>) -> u8 {
    let used = range.global.iter().rposition(|size| *size > 1).map_or(1, |last| last as u8 + 1);
    given.map_or(used, |given| given.clamp(used, 3))
}

/// The structure for groups of the size `local`. `local_ids` has those of all threads of a group.
pub fn structure(
    kernel: &Kernel,
    range: &Range,
    local: [u32; 3],
    dimensions: u8,
    printf: Option<u64>,
    local_ids: &[u8],
    space: &mut Space,
) -> Result<[u8; BYTES], LaunchError> {
    let table = space.allocate_with("local ids of functions", local_ids)?;
    let mut bytes = vec![USED, 0, dimensions, kernel.simd as u8];
    let dwords = |bytes: &mut Vec<u8>, values: [u32; 3]| bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    let qwords =
        |bytes: &mut Vec<u8>, values: &[u64]| bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    dwords(&mut bytes, local);
    qwords(&mut bytes, &range.global.map(u64::from));
    qwords(&mut bytes, &[printf.unwrap_or(0)]);
    qwords(&mut bytes, &range.offset.map(u64::from));
    qwords(&mut bytes, &[table]);
    dwords(&mut bytes, range.groups());
    let mut all = [0; BYTES];
    all[..bytes.len()].copy_from_slice(&bytes);
    Ok(all)
}
