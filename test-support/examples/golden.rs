// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Adds a file of each kind to `test-support/golden`, with the state that this version saves. The name has the lowest number that
//! is free: a file that exists is never replaced.

use std::fs::OpenOptions;
use std::io::Write;

use arctic_test_support::golden::{KINDS, directory, files};

fn main() -> std::io::Result<()> {
    for kind in &KINDS {
        let bytes = (kind.save)();
        let path = directory().join(format!("{}.{}", kind.name, files(kind).len() + 1));
        OpenOptions::new().write(true).create_new(true).open(&path)?.write_all(&bytes)?;
        println!("{}: {} bytes", path.display(), bytes.len());
    }
    Ok(())
}
