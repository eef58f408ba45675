// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The commands that the card's engines skipped in a run, and the line of the summary about those of user space.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Maximum number of command names in the line.
const MOST_NAMES: usize = 8;

/// A command that an engine skipped, from the card's report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Skipped {
    /// Number of the function; 0 is the PF.
    pub function: u8,
    /// `user` for batches of user space, `driver` for those of the driver itself.
    pub origin: String,
    /// Name of the engine.
    pub engine: String,
    /// Name of the command.
    pub command: String,
    /// How often it was skipped.
    pub count: u64,
}

impl Skipped {
    fn key(&self) -> (u8, &str, &str, &str) {
        (self.function, &self.origin, &self.engine, &self.command)
    }
}

/// Adds the counts of another card's report.
pub fn add(total: &mut Vec<Skipped>, more: Vec<Skipped>) {
    for skipped in more {
        match total.iter_mut().find(|known| known.key() == skipped.key()) {
            Some(known) => known.count += skipped.count,
            None => total.push(skipped),
        }
    }
}

/// Commands of the batches by which i915 clears what contexts leave, on Ivy Bridge (i915: gt/gen7_renderclear.c).
const CLEARING: [&str; 5] =
    ["PIPELINE_SELECT", "STATE_BASE_ADDRESS", "MEDIA_VFE_STATE", "MEDIA_INTERFACE_DESCRIPTOR_LOAD", "MEDIA_OBJECT"];

/// The line about skipped commands of user space, most frequent first; `None` if there were none.
///
/// On an `integrated` GPU i915 executes its batches that clear residues in the PPGTT and without privilege, like those of programs. The
/// card has no record by which to tell them apart, so the line does not ascribe these commands to programs.
pub fn line(skipped: &[Skipped], integrated: bool) -> Option<String> {
    let (mut of_programs, mut of_either) = (BTreeMap::<&str, u64>::new(), BTreeMap::<&str, u64>::new());
    for of in skipped.iter().filter(|of| of.origin == "user") {
        let clears = integrated && CLEARING.contains(&&*of.command);
        let counts = if clears { &mut of_either } else { &mut of_programs };
        *counts.entry(&of.command).or_default() += of.count;
    }
    let source = if integrated { "programs" } else { "user contexts" };
    let programs = counted(&of_programs, source).map(|text| text + "; results of these programs are not valid");
    let either = counted(&of_either, "batches without privilege").map(|text| {
        text + "; i915's batches that clear what contexts leave have these commands, and if programs have them too, their results \
                are not valid"
    });
    let parts: Vec<String> = programs.into_iter().chain(either).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The number of commands and the most frequent names; `None` without commands.
fn counted(by_name: &BTreeMap<&str, u64>, source: &str) -> Option<String> {
    let total: u64 = by_name.values().sum();
    let mut names: Vec<_> = by_name.iter().collect();
    names.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let mut parts: Vec<String> = names.iter().take(MOST_NAMES).map(|(name, count)| format!("{name} {count}")).collect();
    if let Some(others) = names.len().checked_sub(MOST_NAMES).filter(|others| *others != 0) {
        parts.push(format!("{others} others"));
    }
    let (commands, were) = if total == 1 { ("command", "was") } else { ("commands", "were") };
    (total != 0).then(|| format!("{total} {commands} of {source} {were} not executed: {}", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped(function: u8, origin: &str, command: &str, count: u64) -> Skipped {
        Skipped { function, origin: origin.into(), engine: "rcs0".into(), command: command.into(), count }
    }

    #[test]
    fn the_line_names_commands_of_user_space_only() {
        let mut all = vec![skipped(0, "driver", "3DSTATE_VS", 50), skipped(0, "user", "3DPRIMITIVE", 1)];
        assert_eq!(
            line(&all, false).unwrap(),
            "1 command of user contexts was not executed: 3DPRIMITIVE 1; results of these programs are not valid"
        );
        assert_eq!(line(&all[..1], false), None);
        add(&mut all, vec![skipped(1, "user", "COMPUTE_WALKER", 4), skipped(0, "user", "3DPRIMITIVE", 2)]);
        assert_eq!(all.len(), 3);
        let text = line(&all, false).unwrap();
        assert!(
            text.starts_with("7 commands of user contexts were not executed: COMPUTE_WALKER 4, 3DPRIMITIVE 3;"),
            "{text}"
        );
    }

    /// i915's own batches have the commands of the first case only.
    #[test]
    fn commands_that_i915_has_too_are_not_ascribed_to_programs() {
        let clearing = [skipped(0, "user", "MEDIA_OBJECT", 128), skipped(0, "user", "PIPELINE_SELECT", 1)];
        let text = line(&clearing, true).unwrap();
        let expected =
            "129 commands of batches without privilege were not executed: MEDIA_OBJECT 128, PIPELINE_SELECT 1; i915's";
        assert!(text.starts_with(expected), "{text}");
        let all = [&clearing[..], &[skipped(0, "user", "3DPRIMITIVE", 4)]].concat();
        let text = line(&all, true).unwrap();
        let programs =
            "4 commands of programs were not executed: 3DPRIMITIVE 4; results of these programs are not valid; ";
        assert!(text.strip_prefix(programs).is_some_and(|rest| rest.starts_with(expected)), "{text}");
        assert!(line(&clearing, false).unwrap().starts_with("129 commands of user contexts were"));
    }

    #[test]
    fn the_line_is_short() {
        let all: Vec<_> = (0..20).map(|n| skipped(0, "user", &format!("MFX_{n:02}"), 1)).collect();
        let text = line(&all, false).unwrap();
        assert!(text.contains("MFX_07 1, 12 others;") && !text.contains("MFX_08"), "{text}");
    }
}
