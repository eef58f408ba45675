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

/// The line about skipped commands of user space, most frequent first; `None` if there were none. The card of an
/// `integrated` GPU cannot distinguish them from those of batches of the driver without privilege.
pub fn line(skipped: &[Skipped], integrated: bool) -> Option<String> {
    let mut by_name = BTreeMap::<&str, u64>::new();
    for of in skipped.iter().filter(|of| of.origin == "user") {
        *by_name.entry(&of.command).or_default() += of.count;
    }
    let total: u64 = by_name.values().sum();
    let mut names: Vec<_> = by_name.into_iter().collect();
    names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut parts: Vec<String> = names.iter().take(MOST_NAMES).map(|(name, count)| format!("{name} {count}")).collect();
    if let Some(others) = names.len().checked_sub(MOST_NAMES).filter(|others| *others != 0) {
        parts.push(format!("{others} others"));
    }
    let (source, note) = match integrated {
        false => ("user contexts", "results of these programs are not valid"),
        true => (
            "batches without privilege",
            "the driver has such batches, too, which clear what contexts leave; results of other programs with these \
             commands are not valid",
        ),
    };
    let commands = if total == 1 { "command of" } else { "commands of" };
    let were = if total == 1 { "was" } else { "were" };
    (total != 0).then(|| format!("{total} {commands} {source} {were} not executed: {}; {note}", parts.join(", ")))
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

    /// Gen7's driver clears registers and caches by media commands before each switch of contexts.
    #[test]
    fn the_line_of_an_integrated_gpu_names_the_drivers_batches() {
        let text = line(&[skipped(0, "user", "media command", 4)], true).unwrap();
        assert!(
            text.starts_with("4 commands of batches without privilege were not executed: media command 4; the driver")
        );
    }

    #[test]
    fn the_line_is_short() {
        let all: Vec<_> = (0..20).map(|n| skipped(0, "user", &format!("MFX_{n:02}"), 1)).collect();
        let text = line(&all, false).unwrap();
        assert!(text.contains("MFX_07 1, 12 others;") && !text.contains("MFX_08"), "{text}");
    }
}
