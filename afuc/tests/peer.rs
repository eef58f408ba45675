// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Mesa's fixtures, from Debian's source package (long tier).
#![cfg(feature = "long-tests")]

mod mesa;

use arctic_afuc::container::Image;
use arctic_afuc::text::{Options, Syntax, assemble, disassemble};

/// Both fixtures, both directions: bytes and text are those of Mesa's tools (AF-107, AF-108).
#[test]
fn fixtures_are_assembled_and_disassembled_as_by_the_peer() {
    for name in ["afuc_test", "afuc_test_a7xx"] {
        let source = mesa::text(&format!("traces/{name}.asm"));
        let firmware = mesa::file(&format!("reference/{name}.fw"));
        let reference = mesa::text(&format!("reference/{name}.asm"));
        let assembled = assemble(&source, &Options::default()).unwrap();
        assert!(assembled.image.to_bytes() == firmware, "{name}");
        let image = Image::from_bytes(&firmware, None).unwrap();
        assert_eq!(disassemble(&image, Syntax::Peer), reference, "{name}");
        for text in [reference, disassemble(&image, Syntax::Own)] {
            assert!(assemble(&text, &Options::default()).unwrap().image.to_bytes() == firmware, "{name}");
        }
    }
}
