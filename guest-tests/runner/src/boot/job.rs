// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The shell scripts that the guests' init runs, and the files that guests and host exchange in addition to control
//! messages.

use super::{Mode, compute};
use crate::card::Functions;
use crate::guest_process::Options;
use crate::terminal;

/// File name of the report of `arctic guest work` on the results share.
pub(super) const WORK_REPORT: &str = "work.json";
/// The pixels that `arctic guest work` drew.
pub(super) const PICTURE: &str = "testcard.raw";
/// The report of `arctic guest rounds`.
pub(super) const ROUNDS_REPORT: &str = "rounds.json";
/// The report of a program with steps.
pub(super) const STEPS_REPORT: &str = "steps.json";
/// Created by the host to start the work of the VF guests.
pub(super) const GO: &str = "go";
/// Created by the host to make the PF guest disable the VFs.
pub(super) const FINISH: &str = "finish";
/// Marks sent by the job: before the VFs are enabled, after they have completed their work, while still enabled, and after the
/// migrations.
pub(super) const BEFORE: &str = "before";
pub(super) const WORKED: &str = "worked";
pub(super) const MIGRATED: &str = "migrated";

/// Waits for the host's start signal.
const WAIT_FOR_GO: &str = "while [ ! -e /mnt/go ]; do sleep 0.1; done\n";

/// The `arctic guest vfs` steps with the VFs in the same guest as the PF: name, report file, and whether the VFs exist
/// afterwards.
pub(super) const STEPS: [(&str, &str, bool); 4] = [
    ("enabled", "vfs-up.json", true),
    ("disabled", "vfs-down.json", false),
    ("enabled again", "vfs-up-again.json", true),
    ("disabled again", "vfs-down-again.json", false),
];

/// A guest's job in a run with checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Runs work on the PF, then on the VFs in the same guest, if any.
    All {
        /// Number of VFs that are enabled.
        vfs: u8,
    },
    /// Passes two of its VFs on to inner guests.
    Outer {
        /// Number of VFs that are enabled.
        vfs: u8,
    },
    /// Runs work on the VFs in the same guest, enables them again, and migrates VF 1 while the others work on.
    Migrating {
        /// Number of VFs that are enabled.
        vfs: u8,
        /// Number of migrations.
        rounds: u32,
    },
    /// The PF guest: enables VFs for other guests and runs work until they have finished.
    Provider {
        /// Number of VFs.
        vfs: u8,
    },
    /// The PF guest: enables VFs for other guests, and migrates VF 1.
    Migrator {
        /// Number of VFs.
        vfs: u8,
        /// Number of migrations.
        rounds: u32,
    },
    /// A VF guest: waits for the host's start signal and runs its work.
    Consumer,
    /// A VF guest that keeps all engines busy until the host's other signal, and runs its work then.
    BusyConsumer,
}

impl Part {
    /// Returns the job of a run's only guest.
    pub(super) fn only(functions: Functions) -> Self {
        match functions {
            Functions::Together(vfs) => Self::All { vfs },
            Functions::Passthrough(vfs) => Self::Outer { vfs },
            Functions::Migrating { vfs, rounds, split: false } => Self::Migrating { vfs, rounds },
            _ => Self::All { vfs: 0 },
        }
    }

    /// The job of the PF's guest in a run with several guests.
    pub(super) fn of_pf(functions: Functions) -> Self {
        match functions {
            Functions::Migrating { vfs, rounds, .. } => Self::Migrator { vfs, rounds },
            _ => Self::Provider { vfs: functions.vfs() },
        }
    }

    /// The job of each VF's guest.
    pub(super) fn of_vf(functions: Functions) -> Self {
        if let Functions::Migrating { .. } = functions { Self::BusyConsumer } else { Self::Consumer }
    }

    /// The shell commands of the job. They set STATUS.
    fn task(self, options: &Options) -> String {
        let card = options.place.address(0);
        let work = format!("arctic guest work --out /mnt/{WORK_REPORT}");
        let kernels = |first| compute::commands(&compute::alone(options.place, first), options.limit);
        let (of_pf, of_vf) = match options.compute {
            true => (kernels(true), kernels(false)),
            false => (format!("{work} --picture /mnt/{PICTURE}\nSTATUS=$?\n"), format!("{work}\nSTATUS=$?\n")),
        };
        match self {
            Self::All { vfs } if options.compute => {
                let kernels = compute::commands(&compute::together(options.place, vfs), options.limit);
                let [(_, up, _), (_, down, _), ..] = STEPS;
                let change = |count, file| {
                    format!("arctic guest vfs --pf {card} --count {count} --out /mnt/{file} || ENABLED=1\n")
                };
                match vfs {
                    0 => kernels,
                    _ => format!(
                        "ENABLED=0\necho mark {BEFORE} >&3\n{}{kernels}echo mark {WORKED} >&3\n{}\
                         [ $ENABLED = 0 ] || STATUS=1\n",
                        change(vfs, up),
                        change(0, down)
                    ),
                }
            }
            Self::All { vfs: 0 } => of_pf,
            Self::All { vfs } => {
                let mut text = format!("{of_pf}echo mark {BEFORE} >&3\n");
                for (index, (_, file, there)) in STEPS.iter().enumerate() {
                    let count = if *there { vfs } else { 0 };
                    text += &format!("arctic guest vfs --pf {card} --count {count} --out /mnt/{file} || STATUS=1\n");
                    if index == 0 {
                        text += &format!("echo mark {WORKED} >&3\n");
                    }
                }
                text
            }
            Self::Outer { vfs } => {
                format!("arctic guest passthrough --pf {card} --vfs {vfs} --out /mnt/{STEPS_REPORT}\nSTATUS=$?\n")
            }
            Self::Migrating { vfs, rounds } => {
                let [(_, up, _), (_, down, _), ..] = STEPS;
                format!(
                    "CHANGED=0\necho mark {BEFORE} >&3\n\
                     arctic guest vfs --pf {card} --count {vfs} --out /mnt/{up} || CHANGED=1\n\
                     echo mark {WORKED} >&3\n\
                     arctic guest vfs --pf {card} --count 0 --out /mnt/{down} || CHANGED=1\n\
                     arctic guest migrate --pf {card} --vfs {vfs} --rounds {rounds} --out /mnt/{STEPS_REPORT}\nSTATUS=$?\n\
                     [ $CHANGED = 0 ] || STATUS=1\n"
                )
            }
            Self::Provider { vfs } => {
                let [(_, up, _), (_, down, _), ..] = STEPS;
                format!(
                    "echo mark {BEFORE} >&3\n\
                     if arctic guest vfs --pf {card} --count {vfs} --no-driver --out /mnt/{up}; then\n\
                     echo vfs {vfs} >&3\n\
                     {of_pf}\
                     arctic guest rounds --until /mnt/{FINISH} --out /mnt/{ROUNDS_REPORT} || STATUS=1\n\
                     arctic guest vfs --pf {card} --count 0 --out /mnt/{down} || STATUS=1\n\
                     else STATUS=1; fi\n"
                )
            }
            Self::Migrator { vfs, rounds } => {
                let (_, down, _) = STEPS[1];
                format!(
                    "echo mark {BEFORE} >&3\nSTATUS=0\n\
                     if arctic guest migrate --pf {card} --vfs {vfs} --prepare; then\n\
                     echo vfs {vfs} >&3\n{WAIT_FOR_GO}\
                     arctic guest migrate --pf {card} --vfs {vfs} --rounds {rounds} --guests /mnt \
                     --out /mnt/{STEPS_REPORT} || STATUS=1\n\
                     echo mark {MIGRATED} >&3\n\
                     while [ ! -e /mnt/{FINISH} ]; do sleep 0.1; done\n\
                     arctic guest vfs --pf {card} --count 0 --out /mnt/{down} || STATUS=1\n\
                     else STATUS=1; fi\n"
                )
            }
            Self::Consumer => format!("echo waiting >&3\n{WAIT_FOR_GO}{of_vf}echo mark {WORKED} >&3\n"),
            Self::BusyConsumer => {
                let (begin, end) = match options.compute {
                    true => {
                        let begin = compute::begin_until(&format!("/mnt/{FINISH}"), &card, options.limit);
                        (begin, "wait $KERNELS || BUSY=1\n")
                    }
                    false => (String::new(), ""),
                };
                format!(
                    "echo waiting >&3\n{WAIT_FOR_GO}BUSY=0\n{begin}\
                     (while [ ! -e /mnt/{FINISH} ]; do sleep 0.5; done) | arctic guest load --until-eof all=80 &\n\
                     LOAD=$!\n\
                     arctic guest rounds --until /mnt/{FINISH} --out /mnt/{ROUNDS_REPORT} || BUSY=1\n\
                     wait $LOAD || BUSY=1\n{end}\
                     {of_vf}echo mark {WORKED} >&3\n[ $BUSY = 0 ] || STATUS=1\n"
                )
            }
        }
    }
}

/// The steps with VFs in the same guest as the PF. In a run with kernels or migrations `arctic guest vfs` enables them once.
pub(super) fn steps(once: bool) -> &'static [(&'static str, &'static str, bool)] {
    if once { &STEPS[..2] } else { &STEPS }
}

/// Returns the script for `part`.
pub(super) fn of_part(part: Part, options: &Options) -> String {
    around(&part.task(options), options.compute)
}

/// Returns the script for a run's only guest.
pub(super) fn only(mode: &Mode, options: &Options) -> String {
    match mode {
        Mode::Work => of_part(Part::only(options.functions), options),
        Mode::Shell => {
            let size =
                terminal::size().map(|(rows, columns)| format!("stty -F /dev/hvc0 rows {rows} cols {columns}\n"));
            let shell = match options.compute {
                true => compute::user_commands(None),
                false => "setsid -c sh -i < /dev/hvc0 > /dev/hvc0 2>&1\nSTATUS=$?\n".to_owned(),
            };
            around(&format!("cd /root\n{}{shell}", size.unwrap_or_default()), options.compute)
        }
        Mode::Run(command) if options.compute => around(&compute::user_commands(Some(command)), true),
        // In a subshell, so that `exit` ends only the user's command.
        Mode::Run(command) => around(&format!("( cd /root\n{command}\n)\nSTATUS=$?\n"), false),
    }
}

/// The script with the `task`, which uses the compute stack if `compute` is set.
fn around(task: &str, compute: bool) -> String {
    let prepare = if compute { compute::PREPARE } else { "" };
    format!(
        "echo \"kernel $(uname -r)\" >&3\n{prepare}load-driver >&3\nclock\necho working >&3\n{task}\
         echo \"taint $(cat /proc/sys/kernel/tainted)\" >&3\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::Place;

    /// Options of a card behind a root port.
    fn options(compute: bool) -> Options {
        let place = Place { bus: 1, devfn: 0, port: None };
        Options { place, compute, ..Options::new("arctic".into(), "flex170", 0x56c0) }
    }

    #[test]
    fn exit_in_a_user_command_does_not_end_the_job() {
        let text = only(&Mode::Run("exit 7".into()), &options(false));
        assert!(text.contains("( cd /root\nexit 7\n)\nSTATUS=$?\n"), "{text}");
        assert!(text.contains("taint"));
    }

    /// Every script has valid shell syntax.
    #[test]
    fn a_shell_understands_every_part() {
        for part in [
            Part::All { vfs: 0 },
            Part::All { vfs: 63 },
            Part::Migrating { vfs: 2, rounds: 100 },
            Part::Outer { vfs: 2 },
            Part::Provider { vfs: 3 },
            Part::Migrator { vfs: 2, rounds: 100 },
            Part::Consumer,
            Part::BusyConsumer,
        ] {
            for compute in [false, true] {
                let text = of_part(part, &options(compute));
                let status = std::process::Command::new("sh").args(["-n", "-c", &text]).status().unwrap();
                assert!(status.success(), "{text}");
            }
        }
    }

    /// The kernels run while the VFs are enabled, and the status of each part is kept.
    #[test]
    fn kernels_run_between_enabling_and_disabling_the_vfs() {
        let text = of_part(Part::All { vfs: 1 }, &options(true));
        let at = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word} is not in {text}"));
        let order = ["--count 1", "compute vf1 0000:01:00.1", "STATUS=0", "mark worked", "--count 0", "STATUS=1\necho"];
        assert!(order.iter().map(|word| at(word)).is_sorted(), "{text}");
        assert!(!text.contains("guest work"), "{text}");
        let text = of_part(Part::Provider { vfs: 2 }, &options(true));
        assert!(text.contains("compute card 0000:01:00.0 --source") && !text.contains("guest work"), "{text}");
        assert!(!of_part(Part::Consumer, &options(true)).contains("--source"));
        assert_eq!((steps(true).len(), steps(false).len()), (2, 4));
    }

    /// After the PF's work, the VFs are enabled and disabled twice. Memory is sampled before the VFs are enabled and
    /// after their first work.
    #[test]
    fn job_enables_and_disables_vfs_twice_after_the_work_of_the_pf() {
        let text = of_part(Part::All { vfs: 7 }, &options(false));
        let wanted = [
            "guest work",
            "mark before",
            "vfs --pf 0000:01:00.0 --count 7",
            "mark worked",
            "--count 0",
            "--count 7",
            "--count 0",
            "taint",
        ];
        let mut rest = text.as_str();
        for word in wanted {
            let at = rest.find(word).unwrap_or_else(|| panic!("{word} is not in order in {text}"));
            rest = &rest[at + word.len()..];
        }
        assert!(!of_part(Part::All { vfs: 0 }, &options(false)).contains("guest vfs"));
    }
}
