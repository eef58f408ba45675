// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Parser of the output of the device model's benches, `blit` and `streamer`.

/// The first number after `name` in `text`.
pub fn number(text: &str, name: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.trim_start().strip_prefix(name))?;
    rest.trim_start_matches([':', ' ']).split_whitespace().next()?.parse().ok()
}
