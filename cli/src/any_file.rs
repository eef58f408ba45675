// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Decodes a file of which anything may be wrong, as `arctic decode` does: for tests and for the fuzz target `files`, which have the
//! modules that they use under the same names.

use arctic_device_model::trace::{Event, Filter};

use crate::decode::engine::FLEX;
use crate::decode::limits::Budget;
use crate::decode::source::{Gpu, Understood};
use crate::decode::{File, capture, i915, xe};
use crate::perfetto::Timeline;

/// Largest timeline in bytes.
const MOST: u64 = 1 << 20;

/// Decodes an input. Lines of a capture that are no events are left out, where `arctic decode` ends.
///
/// # Panics
///
/// If a capture becomes a timeline that is not valid.
pub fn run(input: &[u8]) {
    let (budget, understood) = (&mut Budget::default(), &mut Understood::default());
    let decoded = match File::of(input.to_vec()) {
        Ok(File::Capture(text)) => return decode_capture(&text),
        Ok(File::Xe(text)) => xe::decode(budget, &text, &[], understood, &mut |_| Ok(())),
        Ok(File::I915(text)) => {
            let family = Gpu::of(&text).family().unwrap_or(FLEX);
            i915::decode(budget, &text, (family, &[]), understood, &mut |_| Ok(()))
        }
        Ok(File::Dwords(..)) | Err(_) => Ok(()),
    };
    decoded.expect("the lines are accepted");
}

fn decode_capture(text: &str) {
    let mut lines = text.lines().skip_while(|line| line.trim().is_empty());
    let Some(Ok(heading)) = lines.next().map(capture::heading) else { return };
    let Ok(family) = capture::family(&heading) else { return };
    let mut bytes = Vec::new();
    let mut timeline = Timeline::new(&mut bytes, MOST, &heading.card, family, None).expect("memory");
    for event in lines.filter_map(|line| serde_json::from_str::<Event>(line).ok()) {
        capture::text(&event, family, &Filter::default());
        timeline.add(&event).expect("memory");
    }
    timeline.finish().expect("memory");
    arctic_timeline::read(&bytes).expect("a valid timeline");
}

#[cfg(test)]
mod tests {
    use arctic_sriov::number::size;
    use arctic_test_support::random::Random;
    use arctic_test_support::replay;

    use super::*;

    /// Variants of each input of the corpus.
    const VARIANTS: u64 = 1000;

    #[test]
    fn damaged_files_are_decoded() {
        replay::corpus("files", run);
        for (_, input) in replay::inputs("files") {
            for seed in 0..VARIANTS {
                let mut random = Random::new(seed);
                let mut input = input.clone();
                for _ in 0..=random.below(4) {
                    let (at, length) = (size(random.below(input.len() as u64 + 1)), size(random.below(40)));
                    let end = (at + length).min(input.len());
                    match random.below(4) {
                        0 => drop(input.drain(at..end)),
                        1 => drop(input.splice(at..at, input[at..end].to_vec())),
                        2 => drop(input.splice(at..at, random.edge().to_string().into_bytes())),
                        _ => input[at..end].iter_mut().for_each(|byte| *byte ^= 1 << random.below(8)),
                    }
                }
                run(&input);
            }
        }
    }
}
