// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Minimises a case on which engine and reference disagree: removes commands, and simplifies how the case is run, while
//! they still disagree in the same way.

use std::ops::Range;

use crate::differential::compare::{Disagreement, Worlds, compare};
use crate::differential::grammar::{Case, Part};
use crate::differential::world::STEP;

/// A case of a differential test whose commands can be removed.
pub trait Reducible: Clone {
    /// Number of lists of commands.
    fn lists(&self) -> usize;
    /// Number of commands of a list.
    fn length(&self, list: usize) -> usize;
    /// The case without the commands `range` of a list.
    fn without(&self, list: usize, range: Range<usize>) -> Self;
    /// Whether the case keeps the grammar's rules, if its commands are some of a generated case.
    fn is_well_formed(&self) -> bool;
    /// Simpler ways to run the same commands, the simplest first. Each must be simpler than this one, otherwise the
    /// minimisation does not end.
    fn simpler(&self) -> Vec<Self>;
}

impl Reducible for Case {
    fn lists(&self) -> usize {
        Part::all().count()
    }

    fn length(&self, list: usize) -> usize {
        Part::all().nth(list).map_or(0, |part| self.commands(part).len())
    }

    fn without(&self, list: usize, range: Range<usize>) -> Case {
        Part::all().nth(list).map_or_else(|| self.clone(), |part| self.without(part, range))
    }

    fn is_well_formed(&self) -> bool {
        self.is_well_formed()
    }

    /// Starts the ring at 0, submits by the GuC, and preempts never or at least less often.
    fn simpler(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        if self.head != 0 {
            cases.push(Case { head: 0, ..self.clone() });
        }
        if self.execlist {
            cases.push(Case { execlist: false, ..self.clone() });
        }
        if let Some(commands) = self.interruptions {
            cases.push(Case { interruptions: None, ..self.clone() });
            if commands < STEP {
                cases.push(Case { interruptions: Some(commands * 2), ..self.clone() });
            }
        }
        cases
    }
}

/// Returns a smaller case with a disagreement of the same kind, and that disagreement. Runs engine and reference many
/// times, which also counts preemptions in `worlds`.
pub fn minimise(worlds: &mut Worlds, case: Case, disagreement: Disagreement) -> (Case, Disagreement) {
    minimise_by(case, disagreement, |case| compare(worlds, case).disagreement)
}

/// Same as [`minimise`], of any case, with a function that returns its disagreement. The result is well-formed
/// ([`Reducible::is_well_formed`]) if `case` is, and no command can be removed from it alone.
pub fn minimise_by<C: Reducible, K: PartialEq>(
    case: C,
    disagreement: Disagreement<K>,
    disagrees: impl FnMut(&C) -> Option<Disagreement<K>>,
) -> (C, Disagreement<K>) {
    let mut minimiser = Minimiser { case, disagreement, disagrees };
    // Each round but the last one removes commands or makes one of a bounded number of simplifications.
    while minimiser.round() {}
    (minimiser.case, minimiser.disagreement)
}

struct Minimiser<C, K, F> {
    /// The smallest case found.
    case: C,
    disagreement: Disagreement<K>,
    disagrees: F,
}

impl<C: Reducible, K: PartialEq, F: FnMut(&C) -> Option<Disagreement<K>>> Minimiser<C, K, F> {
    /// Makes `candidate` the smallest case if it is well-formed and has a disagreement of the same kind. Returns whether
    /// that is so.
    fn accept(&mut self, candidate: C) -> bool {
        if !candidate.is_well_formed() {
            return false;
        }
        let found = (self.disagrees)(&candidate).filter(|found| found.kind == self.disagreement.kind);
        let Some(found) = found else { return false };
        (self.case, self.disagreement) = (candidate, found);
        true
    }

    /// Returns whether the case became smaller or simpler.
    fn round(&mut self) -> bool {
        let mut is_changed = false;
        for list in 0..self.case.lists() {
            is_changed |= self.remove_from(list);
        }
        while self.case.simpler().into_iter().any(|case| self.accept(case)) {
            is_changed = true;
        }
        is_changed
    }

    /// Removes sequences of commands, long ones first. Returns whether there was one.
    fn remove_from(&mut self, list: usize) -> bool {
        let before = self.case.length(list);
        let mut length = before;
        while length > 0 {
            let mut at = 0;
            while at + length <= self.case.length(list) {
                if !self.accept(self.case.without(list, at..at + length)) {
                    at += length;
                }
            }
            length /= 2;
        }
        self.case.length(list) < before
    }
}

#[cfg(test)]
mod tests {
    use arctic_device_model::generation::XE_HPG;

    use super::*;
    use crate::differential::choice::Seeded;
    use crate::differential::compare::Kind;
    use crate::differential::grammar::Words;

    const STORE: u32 = 0x20;
    const START: u32 = 0x31;
    const END: u32 = 0x0a << 23;

    fn opcode(words: &Words) -> u32 {
        words[0] >> 23
    }

    fn disagreement(kind: Kind) -> Disagreement {
        Disagreement { kind, lines: vec!["a difference".to_owned()] }
    }

    /// Generated cases for which a condition holds; at least one.
    fn cases(holds: impl Fn(&Case) -> bool) -> Vec<Case> {
        let engine = XE_HPG.engines.all().next().unwrap();
        let generate = |seed| Case::generate(&mut Seeded::new(seed), engine, false, Some(3), 48);
        let cases: Vec<Case> = (1..400).map(generate).filter(holds).take(10).collect();
        assert!(!cases.is_empty());
        cases
    }

    fn count(case: &Case, found: impl Fn(&Words) -> bool) -> usize {
        Part::all().flat_map(|part| case.commands(part)).filter(|words| found(words)).count()
    }

    /// The disagreement needs a store in batch 3 and two preemption points in a run of 20 commands: these stay, and the last
    /// command of each batch.
    #[test]
    fn result_is_minimal_and_keeps_the_ends_of_batches() {
        let has_store = |case: &Case| case.batches[3].iter().any(|words| opcode(words) == STORE);
        let is_wrong = |case: &Case| has_store(case) && case.interruptions.is_some_and(|n| n <= 10);
        for case in cases(is_wrong) {
            assert!(case.is_well_formed());
            let found = disagreement(Kind::Ggtt);
            let (small, _) = minimise_by(case, found.clone(), |case| is_wrong(case).then(|| found.clone()));
            assert!(small.ring.is_empty());
            for (n, commands) in small.batches.iter().enumerate() {
                assert_eq!(commands.len(), if n == 3 { 2 } else { 1 });
                assert_eq!(commands.last().unwrap()[..], [END]);
            }
            assert_eq!(opcode(&small.batches[3][0]), STORE);
            assert_eq!((small.head, small.execlist, small.interruptions), (0, false, Some(6)));
        }
    }

    /// Without commands the case has another disagreement, which is not taken for the first one.
    #[test]
    fn disagreement_of_another_kind_is_not_accepted() {
        let stores = |case: &Case| count(case, |words| opcode(words) == STORE);
        for case in cases(|case| stores(case) > 1) {
            let wrong = |case: &Case| {
                Some(disagreement(if stores(case) > 0 { Kind::Register(0x2600) } else { Kind::Register(0x2604) }))
            };
            let (small, found) = minimise_by(case, disagreement(Kind::Register(0x2600)), wrong);
            assert_eq!((found.kind, stores(&small)), (Kind::Register(0x2600), 1));
        }
    }

    /// Starts that add BB_OFFSET get into the block of MI_NOOPs, so it stays while there is such a start, and only then.
    #[test]
    fn noops_at_the_start_of_batches_stay_while_a_start_adds_an_offset() {
        let adds = |words: &Words| opcode(words) == START && words[0] >> 16 & 1 != 0;
        let found = disagreement(Kind::Ggtt);
        for case in cases(|case| count(case, adds) > 0) {
            let (small, _) =
                minimise_by(case.clone(), found.clone(), |case| (count(case, adds) > 0).then(|| found.clone()));
            assert_eq!(count(&small, adds), 1);
            assert!(small.batches.iter().all(|commands| commands[0] == vec![0; 32]));
            let (small, _) = minimise_by(case, found.clone(), |_| Some(found.clone()));
            assert!(small.batches.iter().all(|commands| commands.len() == 1));
        }
    }

    /// Without the load, an indirect access of MI_MATH has an arbitrary address.
    #[test]
    fn load_of_the_address_of_an_indirect_access_stays() {
        let is_indirect =
            |words: &Words| opcode(words) == 0x1a && words[1..].iter().any(|word| matches!(word >> 20, 0x082 | 0x181));
        let found = disagreement(Kind::Ggtt);
        for case in cases(|case| count(case, is_indirect) > 0) {
            let wrong = |case: &Case| (count(case, is_indirect) > 0).then(|| found.clone());
            let (small, _) = minimise_by(case, found.clone(), wrong);
            assert!(small.is_well_formed());
            assert_eq!(count(&small, |words| words[..] != [END]), 2, "{}", small.disassembled());
        }
    }
}
