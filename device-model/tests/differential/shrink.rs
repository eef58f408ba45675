// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Minimises a failing case: removes commands while engine and reference still disagree.

use arctic_test_support::differential::compare::{Worlds, both, disagreement};
use arctic_test_support::differential::grammar::Case;

/// Returns the commands of part `n` of a case: its batches, then its ring.
fn part(case: &mut Case, n: usize) -> &mut Vec<Vec<u32>> {
    if n < 8 { &mut case.batches[n] } else { &mut case.ring }
}

/// Returns a smaller case on which engine and reference disagree, and the difference.
pub fn shrink(worlds: &mut Worlds, mut case: Case, mut difference: String) -> (Case, String) {
    let mut attempt = |case: &mut Case, smaller: Case, difference: &mut String| {
        let (engine, reference, _) = both(worlds, &smaller);
        let Some(found) = disagreement(&engine, &reference) else { return false };
        (*case, *difference) = (smaller, found);
        true
    };
    for _ in 0..4 {
        let before = case.size();
        for n in 0..9 {
            // Removes runs of commands first, then single commands; the last command of a batch is kept.
            let mut run = part(&mut case, n).len();
            while run > 0 {
                let mut at = 0;
                while at + run + usize::from(n < 8) <= part(&mut case, n).len() {
                    let mut smaller = case.clone();
                    part(&mut smaller, n).drain(at..at + run);
                    if !attempt(&mut case, smaller, &mut difference) {
                        at += run;
                    }
                }
                run /= 2;
            }
        }
        if case.size() == before {
            break;
        }
    }
    let simpler: [fn(Case) -> Case; 3] = [
        |case| Case { head: 0, ..case },
        |case| Case { interruptions: None, ..case },
        |case| Case { execlist: false, ..case },
    ];
    for simpler in simpler {
        let smaller = simpler(case.clone());
        attempt(&mut case, smaller, &mut difference);
    }
    (case, difference)
}
