// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Writes inputs of valid kernels for the fuzz target `walkers` into the directory in the first argument.

use std::path::PathBuf;

use arctic_test_support::harness::walkers;

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).expect("usage: walker_seeds DIRECTORY"));
    std::fs::create_dir_all(&folder)?;
    for (name, input) in walkers::seeds() {
        std::fs::write(folder.join(name), input.encode())?;
    }
    Ok(())
}
