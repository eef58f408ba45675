// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the visit of a tree.

use std::cell::Cell;

use super::*;

#[derive(Serialize)]
struct Quota {
    bytes: u64,
    limit: Option<u64>,
    ids: [u32; 2],
}

/// A tree with a part whose visits are counted.
#[derive(Default)]
struct Toy {
    visits: Cell<u32>,
}

impl Inspect for Toy {
    fn inspect(&self, to: &mut Inspector<'_>) {
        to.value("name", "toy");
        to.state("quota", &Quota { bytes: 5, limit: None, ids: [1, 2] });
        to.part("engines", |to| {
            self.visits.set(self.visits.get() + 1);
            to.part("rcs0", |to| {
                to.value_with_parts("RING_CTL", Node::hex(0x1001_u32, 8), |to| to.value("enabled", true));
                to.value("busy", false);
            });
            to.part("bcs0", |_| {});
        });
        to.table("table", |to| {
            if let Some(address) = to.wanted().map(str::to_owned) {
                to.value(&address, "an entry");
            }
            (0..100_000_u32).take_while(|_| true).for_each(|entry| to.value(&entry.to_string(), entry));
        });
    }
}

fn json(path: &str, depth: u8) -> Result<String, String> {
    let node = visit(&Toy::default(), &Path::new(path).unwrap(), depth).map_err(|missing| missing.to_string())?;
    Ok(serde_json::to_string(&node).unwrap())
}

#[test]
fn a_visit_shows_the_wanted_levels_alone() {
    let toy = Toy::default();
    let node = visit(&toy, &Path::default(), 0).unwrap();
    let text = serde_json::to_string(&node).unwrap();
    assert_eq!(text, r#"{"name":"toy","quota":null,"engines":null,"table":null}"#);
    assert_eq!(toy.visits.get(), 0, "the engines were not visited");
    assert_eq!(serde_json::from_str::<Node>(&text).unwrap(), node);
    assert_eq!(json("engines", 1).unwrap(), r#"{"rcs0":{"RING_CTL":"0x00001001","busy":false},"bcs0":{}}"#);
    assert_eq!(json("engines/rcs0", 1).unwrap(), r#"{"RING_CTL":{"value":"0x00001001","enabled":true},"busy":false}"#);
    assert_eq!(json("ENGINES//rcs0/ring_ctl/", 0).unwrap(), r#"{"value":"0x00001001","enabled":true}"#);
    assert_eq!(json("engines/rcs0/RING_CTL/enabled", 0).unwrap(), "true");
    assert_eq!(json("quota", 0).unwrap(), r#"{"bytes":5,"ids":null}"#);
    assert_eq!(json("quota/ids/1", 4).unwrap(), "2");
    assert_eq!(json("table/0x1000", 0).unwrap(), r#""an entry""#);
}

#[test]
fn a_missing_part_is_named_with_those_beside_it() {
    assert_eq!(json("engine", 1).unwrap_err(), "the card has no engine: it has name, quota, engines, table");
    assert_eq!(json("engines/vcs0", 1).unwrap_err(), "engines has no vcs0: it has rcs0, bcs0");
    assert_eq!(json("engines/rcs0/RING_CTL/x", 1).unwrap_err(), "engines/rcs0/RING_CTL has no x: it has enabled");
    assert_eq!(json("engines/bcs0/x", 1).unwrap_err(), "engines/bcs0 has no parts, so no x");
    assert_eq!(json("quota/x", 1).unwrap_err(), "quota has no x: it has bytes, ids");
    assert_eq!(json("name/x", 1).unwrap_err(), "name has no parts, so no x");
    assert!(Path::new(&"x/".repeat(40)).is_err());
}

/// The size of an answer is limited.
#[test]
fn a_long_list_is_cut() {
    let node = visit(&Toy::default(), &Path::new("table").unwrap(), 0).unwrap();
    assert!(node.bytes() <= MOST_BYTES + 64, "{}", node.bytes());
    let (last, text) = node.parts().last().unwrap();
    assert_eq!((last.as_str(), text), (CUT, &Node::from("the answer is cut: name a part")));
    assert!(node.parts().len() > 10_000);
}

/// Pages that continue each other are one part, and so are pages with one target.
#[test]
fn runs_of_pages_are_one_part() {
    struct Pages;
    impl Inspect for Pages {
        fn inspect(&self, to: &mut Inspector<'_>) {
            let mut runs = Runs::new(to);
            for (address, target) in [(0, 8), (1, 9), (2, 9), (3, 9), (4, 9), (6, 1), (7, 2), (8, 3)] {
                let kind = "memory".into();
                assert!(runs.add(Run { address: address << 12, bytes: 0x1000, target: target << 12, kind }));
            }
            runs.end();
        }
    }
    let node = visit(&Pages, &Path::default(), 0).unwrap();
    let expected = [
        ("0x0", "0x2000 bytes at 0x8000, memory"),
        ("0x2000", "0x3000 bytes all at one page 0x9000, memory"),
        ("0x6000", "0x3000 bytes at 0x1000, memory"),
    ];
    assert_eq!(node.parts(), expected.map(|(name, text)| (name.to_owned(), text.into())));
    assert_eq!([hexadecimal("0x10"), hexadecimal("16"), hexadecimal("0xg")], [Some(16), None, None]);
}

#[test]
fn fields_are_those_of_the_debug_form() {
    #[derive(Debug)]
    #[allow(dead_code, reason = "read by Debug alone")]
    struct Control {
        enabled: bool,
        pages: u16,
        inner: (u8, u8),
    }
    let fields = fields_of(&Control { enabled: true, pages: 3, inner: (1, 2) });
    assert_eq!(fields, [("enabled".into(), Node::Flag(true)), ("pages".into(), Node::Number(3))]);
    assert!(fields_of(&5).is_empty());
}
