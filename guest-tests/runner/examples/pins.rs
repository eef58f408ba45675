// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Prints `src/artifacts/pinned.tsv` with the newest packages of the Debian mirror.
//!
//! ```text
//! cargo run -p arctic-guest-runner --example pins > pinned.tsv && mv pinned.tsv guest-tests/runner/src/artifacts/
//! ```

use anyhow::Result;
use arctic_guest_runner::artifacts;
use arctic_guest_runner::cache::Cache;
use arctic_guest_runner::progress::StderrProgress;

fn main() -> Result<()> {
    // The progress is dropped, and its open line erased, before the pins are printed.
    let pins = artifacts::newest_pins(&Cache::open()?, &StderrProgress::default())?;
    print!("{pins}");
    Ok(())
}
