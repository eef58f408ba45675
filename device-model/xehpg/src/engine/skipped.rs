// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Counts of the commands that one engine skips because the model has no unit that executes them: by function, origin
//! and name, in a table of fixed size.

use std::collections::BTreeMap;
use std::fmt;

use crate::command::origin::ORIGINS;
use crate::command::{CommandSet, Origin};
use crate::host::{FUNCTIONS, Function};
use crate::topology::EngineClass;

/// Maximum number of contexts for which a skipped command is logged: of a function per boot of the GuC, or of an engine's
/// submission queue.
pub const MOST_WARNINGS: u64 = 64;

/// The first command of a loaded context that was skipped in a batch of user space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkippedCommand {
    /// Name of the command.
    pub name: &'static str,
    /// Whether the context was stopped at the command ([`crate::profile::Unmodelled::Fault`]).
    pub stopped: bool,
}

impl SkippedCommand {
    /// Logs that the command of `context` was not executed. The caller limits the number of messages.
    pub fn warn(self, function: Function, engine: &str, context: fmt::Arguments<'_>) {
        let SkippedCommand { name, stopped } = self;
        let effect = if stopped { "the context is stopped" } else { "the results of its program are not valid" };
        log::warn!("function {}, {engine}: {name} of {context} is not executed: {effect}", function.number());
    }
}

/// The counts of one engine since the card was created.
pub struct SkippedCounts {
    commands: &'static CommandSet,
    class: EngineClass,
    /// Number of command numbers of the class ([`CommandSet::numbers`]).
    numbers: usize,
    /// The counts, by function, origin and command number. Zeroed memory that the host allocates on first use.
    counts: Vec<u64>,
}

impl SkippedCounts {
    /// A table of zeros for an engine of `class`.
    #[allow(clippy::arithmetic_side_effects, reason = "a class has less than 1024 commands")]
    pub fn new(commands: &'static CommandSet, class: EngineClass) -> Self {
        let numbers = commands.numbers(class);
        SkippedCounts { commands, class, numbers, counts: vec![0; FUNCTIONS * ORIGINS * numbers] }
    }

    #[allow(clippy::arithmetic_side_effects, reason = "the number of rows is at most FUNCTIONS * ORIGINS")]
    fn row(&self, function: Function, origin: Origin) -> usize {
        function.index() * ORIGINS + origin.index()
    }

    /// Counts a command with this number ([`CommandSet::number`]).
    #[allow(clippy::arithmetic_side_effects, reason = "the index is at most the length of the table")]
    pub fn count(&mut self, function: Function, origin: Origin, number: usize) {
        let at = self.row(function, origin) * self.numbers + number.min(self.numbers.saturating_sub(1));
        if let Some(count) = self.counts.get_mut(at) {
            *count = count.saturating_add(1);
        }
    }

    /// The nonzero counts: function, origin, name of the command, count.
    #[allow(clippy::arithmetic_side_effects, reason = "the divisors are not 0")]
    pub fn iter(&self) -> impl Iterator<Item = (Function, Origin, &'static str, u64)> + '_ {
        let rows = self.counts.chunks_exact(self.numbers.max(1)).enumerate();
        let functions = Function::all().flat_map(|function| [function; ORIGINS]);
        functions.zip(rows).flat_map(move |(function, (row, counts))| {
            let origin = Origin::new(row % ORIGINS == Origin::Driver.index());
            let nonzero = counts.iter().enumerate().filter(|(_, count)| **count != 0);
            nonzero.map(move |(number, count)| (function, origin, self.commands.name_of(number, self.class), *count))
        })
    }
}

impl SkippedCounts {
    /// The nonzero counts of all functions by name.
    pub fn by_name(&self) -> BTreeMap<&'static str, u64> {
        let mut total = BTreeMap::<_, u64>::new();
        for (.., name, count) in self.iter() {
            let sum = total.entry(name).or_default();
            *sum = sum.saturating_add(count);
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::XE_HPG_COMMANDS;

    #[test]
    fn counts_are_apart_by_function_origin_and_command() {
        for class in EngineClass::BY_GUC {
            let mut counts = SkippedCounts::new(&XE_HPG_COMMANDS, class);
            assert_eq!(counts.iter().count(), 0);
            let numbers = XE_HPG_COMMANDS.numbers(class);
            for number in [0, 0x0e, numbers - 1] {
                counts.count(Function::PF, Origin::Driver, number);
                counts.count(Function::new(63).unwrap(), Origin::User, number);
                counts.count(Function::new(63).unwrap(), Origin::User, number);
            }
            let found: Vec<_> =
                counts.iter().map(|(function, origin, _, count)| (function.number(), origin, count)).collect();
            let expected = [(0, Origin::Driver, 1), (63, Origin::User, 2)].map(|of| [of; 3]).concat();
            assert_eq!(found, expected, "{class:?}");
        }
    }
}
