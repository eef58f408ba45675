// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The card's report of unmodelled accesses and commands.

use super::Card;
use crate::host::Function;
use crate::report::{FunctionKernels, Report, SkippedCommands};

impl Card {
    /// The report since power-on.
    pub fn report_unmodelled(&self) -> Report {
        let name = |id| self.gt.engine(id).name;
        let skipped = self.engines.skipped().into_iter();
        let skipped = skipped.map(|(id, function, origin, command, count)| SkippedCommands {
            function: function.number(),
            origin,
            engine: name(id),
            command,
            count,
        });
        let mut skipped: Vec<_> = skipped.collect();
        skipped.sort_by_key(|of| (of.function, of.origin, of.engine, of.command));
        let kernels = |function| (function, self.gt.kernels(function).counts());
        let walkers = Function::all().map(kernels).filter(|(_, counts)| !counts.is_zero());
        let walkers = walkers.map(|(function, counts)| FunctionKernels { function: function.number(), counts });
        Report {
            undone: self.engines.undone(),
            skipped_commands: skipped,
            walkers: walkers.collect(),
            panics: self.panics(),
            ..self.gt.report()
        }
    }
}
