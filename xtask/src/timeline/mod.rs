// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `cargo xtask timeline`: draws a timeline that `arctic trace --perfetto` or `arctic decode --perfetto` has written.

mod draw;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

/// A timeline, and its picture.
#[derive(clap::Args)]
pub struct TimelineArgs {
    /// The timeline
    file: PathBuf,
    /// The picture, in SVG
    picture: PathBuf,
    /// Begin of the part that is drawn, in ms from the first event; the default is all
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    from: f64,
    /// End of the part, likewise
    #[arg(long, value_name = "MS", default_value_t = f64::MAX)]
    to: f64,
}

/// Draws a timeline.
pub fn run(arguments: &TimelineArgs) -> Result<()> {
    let TimelineArgs { file, picture, from, to } = arguments;
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let timeline = arctic_timeline::read(&bytes).with_context(|| format!("{} is no timeline", file.display()))?;
    let svg = draw::svg(&timeline, (*from, *to)).with_context(|| format!("{} has nothing to draw", file.display()))?;
    println!("{} slices, {} other events", timeline.slices.len(), timeline.instants.len());
    fs::write(picture, svg).with_context(|| format!("cannot write {}", picture.display()))
}
