// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Visits of the tree of a card's state in any state of the card. The harnesses that have a card make them after the operations of an
//! input, before they check what must not have changed.

use arctic_device_model::inspect::{Inspect, Path, visit};

/// Parts that depend on what guests have written.
const PARTS: [&str; 12] = [
    "",
    "engines",
    "engines/bcs0/ppgtt",
    "engines/ccs0/ppgtt/0xffffabcd1000",
    "guc",
    "functions/pf/guc",
    "functions/vf2/guc",
    "functions/vf1/guc/contexts/1/member_0/ppgtt",
    "functions/vf1/guc/contexts/1/member_0/image",
    "functions/pf/ggtt",
    "functions/vf1/ggtt",
    "registers",
];

/// Longest path from an input.
const PATH_BYTES: usize = 60;

/// Visits a part of the tree of `root`, with up to seven levels below it, as the last byte of an input selects: one of those above,
/// or that of a path which the bytes before it are. The part need not exist.
pub(super) fn visit_part(root: &dyn Inspect, input: &[u8]) {
    let Some((selector, rest)) = input.split_last() else { return };
    let own = String::from_utf8_lossy(&rest[rest.len().saturating_sub(PATH_BYTES)..]);
    let text = if selector & 0x10 == 0 { PARTS[usize::from(*selector) % PARTS.len()] } else { &own };
    let Ok(path) = Path::new(text) else { return };
    match visit(root, &path, selector >> 5) {
        Ok(node) => {
            let text = serde_json::to_string(&node).unwrap();
            assert!(text.len() < 1 << 20, "the answer has {} bytes", text.len());
        }
        Err(missing) => assert!(missing.to_string().len() < 1 << 12, "{missing}"),
    }
}
