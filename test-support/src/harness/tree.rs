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

/// Visits a part of the tree of `root`, with up to seven levels below it, as the byte selects. The part need not exist.
pub(super) fn visit_part(root: &dyn Inspect, selector: u8) {
    let path = Path::new(PARTS[usize::from(selector) % PARTS.len()]).unwrap();
    if let Ok(node) = visit(root, &path, selector >> 5) {
        let text = serde_json::to_string(&node).unwrap();
        assert!(text.len() < 1 << 20, "the answer has {} bytes", text.len());
    }
}
