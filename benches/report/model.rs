//! What the device model's own benches, `blit` and `streamer`, print.

/// The first number behind `name` in `text`.
pub fn number(text: &str, name: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.trim_start().strip_prefix(name))?;
    rest.trim_start_matches([':', ' ']).split_whitespace().next()?.parse().ok()
}
