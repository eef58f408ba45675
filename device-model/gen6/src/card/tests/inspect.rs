// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The state of the card as a tree.

use arctic_base::inspect::{Node, Path, visit};

use super::*;

fn at(card: &Card, path: &str, depth: u8) -> Node {
    visit(card, &Path::new(path).unwrap(), depth).unwrap_or_else(|missing| panic!("{path}: {missing}"))
}

/// Visits each part, also those that are shown only if they are named. Returns the number of values.
fn all(card: &Card, path: &str, node: &Node) -> usize {
    let part = |(name, part): &(String, Node)| {
        let path = format!("{path}/{name}");
        match part {
            Node::Folded => all(card, &path, &at(card, &path, 1)),
            Node::Parts(_) => all(card, &path, part),
            _ => 1,
        }
    };
    node.parts().iter().map(part).sum()
}

/// Each part can be visited, and no visit changes a register or is counted as an access of a driver.
#[test]
fn visits_have_no_effect() {
    let card = card();
    let registers =
        || card.gt.registers.listing().map(|(offset, _)| card.gt.registers.value(offset)).collect::<Vec<_>>();
    let before = registers();
    assert!(all(&card, "", &at(&card, "", 0)) > 500);
    assert_eq!(registers(), before);
    assert!(card.report().unmodelled.is_empty() && card.report().asleep.is_empty());
}

/// An engine shows its ring and the command at its head; the GGTT its runs of pages and each page.
#[test]
fn an_engine_shows_the_command_at_its_head() {
    let card = card();
    // The page at 0x2000 of the GGTT is the page 0x3000 of the guest's memory, with MI_USER_INTERRUPT.
    write(&card, 0, 0x20_0000 + 2 * 4, 0x3001);
    let view = card.gt.view();
    arctic_base::memory::Span::guest(&*view, 0x3000, 4, arctic_base::host::Access::Write)
        .write(&0x0100_0000_u32.to_le_bytes())
        .unwrap();
    write(&card, 0, 0x2_2038, 0x2000);
    let command = at(&card, "engines/bcs0/command", 0);
    let part = |name: &str| command.parts().iter().find(|(found, _)| found == name).map(|(_, value)| value.clone());
    assert_eq!(part("address"), Some(Node::from("0x2000")));
    assert_eq!(part("name"), Some(Node::from("MI_USER_INTERRUPT")), "{command:?}");
    let expected = ("0x2000".to_owned(), Node::from("0x1000 bytes at 0x3000, system memory"));
    assert_eq!(at(&card, "functions/pf/ggtt", 1).parts(), [expected]);
    assert_eq!(at(&card, "functions/pf/ggtt/0x2abc", 0).value(), Some(&Node::from("0x00003001")));
    let ctl = at(&card, "registers/bcs0/RING_BUFFER_CTL", 0);
    assert!(ctl.parts().contains(&("enable".into(), Node::Flag(false))), "{ctl:?}");
}
