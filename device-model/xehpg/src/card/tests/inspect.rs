// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The state of the card as a tree.

use super::*;
use arctic_base::inspect::{Node, Path, visit};

fn at(card: &Card, path: &str, depth: u8) -> Node {
    visit(card, &Path::new(path).unwrap(), depth).unwrap_or_else(|missing| panic!("{path}: {missing}"))
}

/// Visits each part, also those that are shown only if they are named. Returns the paths of the values.
fn all(card: &Card, path: &str, node: &Node, into: &mut Vec<String>) {
    for (name, part) in node.parts() {
        let path = format!("{path}/{name}");
        match part {
            Node::Folded => all(card, &path, &at(card, &path, 1), into),
            Node::Parts(_) => all(card, &path, part, into),
            _ => into.push(path),
        }
    }
}

/// Each part can be visited, and no visit changes what a driver reads afterwards, or is counted as an access of one.
#[test]
fn visits_have_no_effect() {
    let (card, msis) = card();
    card.provision(&[QUOTA; 2]).unwrap();
    let vf = card.gt.interrupts_of(VF1);
    // The copy engine's events are enabled; one is pending, and its bank has no snapshot yet.
    vf.write(crate::registers::InterruptRegister::Enable, 0x19_0030, 0, 0xffff_ffff);
    let bcs0 = card.gt.generation.engines.named("bcs0").unwrap();
    vf.raise_engine(bcs0, 1);
    let registers = || {
        let values = card.gt.registers.listing().map(|(offset, _)| card.gt.registers.value(offset));
        values.collect::<Vec<_>>()
    };
    let (before, sent) = (registers(), msis.0.load(Ordering::SeqCst));
    let mut paths = Vec::new();
    all(&card, "", &at(&card, "", 0), &mut paths);
    assert!(paths.len() > 3000, "{}", paths.len());
    for path in ["/registers/GDRST/full", "/functions/vf2/guc/quota/ggtt_size", "/engines/rcs0/loaded"] {
        assert!(paths.iter().any(|found| found == path), "{path}");
    }
    assert_eq!((registers(), msis.0.load(Ordering::SeqCst)), (before, sent));
    assert_eq!(at(&card, "functions/vf1/interrupts/bcs0/pending", 0), Node::from("0x0001"));
    assert_eq!(at(&card, "functions/vf1/interrupts/bank_0/snapshot", 0), Node::from("0x00000000"));
    assert!(card.report().unmodelled.is_empty() && card.report().asleep.is_empty());
}

/// Registers have the values that a driver reads, with the fields of their layout.
#[test]
fn registers_have_values_and_fields() {
    let (card, _) = card();
    card.write_gttmmadr(Function::PF, 0x2_203c, &0x3001_u32.to_le_bytes());
    let ctl = at(&card, "registers/bcs0/RING_CTL", 0);
    assert_eq!(ctl.value(), Some(&Node::from("0x00003001")));
    let field = |name: &str| ctl.parts().iter().find(|(found, _)| found == name).map(|(_, value)| value.clone());
    assert_eq!((field("offset"), field("enabled")), (Some(Node::from("0x2203c")), Some(Node::Flag(true))));
    assert_eq!(at(&card, "registers/gt_intr_dw[0]", 0).value(), Some(&Node::from("not shown: a read changes it")));
    let missing = visit(&*card, &Path::new("registers/NO_SUCH").unwrap(), 0).unwrap_err().to_string();
    assert!(missing.starts_with("registers has no NO_SUCH: it has ") && missing.ends_with(" more"), "{missing}");
}

/// A VF's GGTT range and local memory are those of its quota.
#[test]
fn a_vf_has_its_range_and_its_frames() {
    let (card, _) = card();
    card.provision(&[QUOTA; 2]).unwrap();
    let Node::Number(start) = at(&card, "functions/vf2/guc/quota/ggtt_start", 0) else { panic!() };
    card.gt.memory.ggtt().set_entry(start / 4096 + 1, GgttEntry::from(0x1234_5003).with_owner(2));
    let range = at(&card, "functions/vf2/ggtt", 1);
    let expected = (format!("{:#x}", start + 0x1000), Node::from("0x1000 bytes at 0x12345000, local memory of vf2"));
    assert_eq!(range.parts(), [expected]);
    let page = at(&card, &format!("functions/vf2/ggtt/{:#x}", start + 0x1010), 0);
    assert!(page.parts().contains(&("target".into(), Node::from("0x12345000"))), "{page:?}");
    let frames = at(&card, "functions/vf2/local_memory", 1);
    assert_eq!((frames.parts().len(), frames.parts()[0].0.as_str()), (1, "0x0"));
}
