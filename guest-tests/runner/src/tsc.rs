// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The frequency of the host's time stamp counter (TSC), and the kernel arguments that pass it to a guest.
//!
//! Under TCG on an x86-64 host, the guest's RDTSC returns the host's TSC (QEMU: `cpu_get_host_ticks`). A guest kernel
//! that calibrates the TSC against emulated timers on a busy host gets a wrong frequency and keeps it; `tsc_early_khz=`
//! sets the frequency instead. Linux derives `loops_per_jiffy` from that frequency only on the boot CPU and calibrates
//! the other CPUs (`calibrate_delay` in init/calibrate.c), so `udelay` also needs `lpj=`.

use std::sync::OnceLock;

/// Plausible TSC frequencies in kHz.
const PLAUSIBLE: std::ops::RangeInclusive<u32> = 200_000..=10_000_000;
/// Maximum relative error of a frequency: 0.1 %.
const TOLERANCE: f64 = 1e-3;

/// Returns the TSC frequency of this host in kHz, with an error of at most 0.1 %. Returns `None` if the TSC is not
/// invariant, or if guests use another counter. Measured once per process, which takes some tens of milliseconds.
pub fn host_khz() -> Option<u32> {
    static KHZ: OnceLock<Option<u32>> = OnceLock::new();
    *KHZ.get_or_init(|| {
        let khz = host::khz();
        match khz {
            Some(khz) => log::info!("the host's TSC frequency is {khz} kHz"),
            None => {
                log::info!("the host's TSC cannot be used: guests calibrate their clocks themselves")
            }
        }
        khz
    })
}

/// Returns the kernel arguments for a guest with TSC frequency `khz` and `hz` timer ticks per second. Without `hz`,
/// `lpj=` is omitted: a wrong value makes every delay wrong.
pub fn arguments(khz: Option<u32>, hz: Option<u32>) -> String {
    match (khz, hz) {
        (None, _) => String::new(),
        (Some(khz), None) => format!("tsc_early_khz={khz}"),
        (Some(khz), Some(hz)) => format!("tsc_early_khz={khz} lpj={}", u64::from(khz) * 1000 / u64::from(hz.max(1))),
    }
}

/// A measured frequency in kHz with its maximum relative error.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measured {
    khz: f64,
    error: f64,
}

/// One reading of both clocks: the TSC was read within `width` ns from `ns`.
#[derive(Clone, Copy, Debug)]
struct Bracket {
    ns: u64,
    width: u64,
    ticks: u64,
}

/// Returns the frequency from the pair of brackets with the smallest error, or `None` if there is no valid pair.
fn between(brackets: &[Bracket]) -> Option<Measured> {
    let pairs =
        brackets.iter().enumerate().flat_map(|(index, late)| brackets[..index].iter().map(move |early| (early, late)));
    let measured = pairs.filter_map(|(early, late)| {
        let middle = |bracket: &Bracket| bracket.ns as f64 + bracket.width as f64 / 2.0;
        let ns = middle(late) - middle(early);
        let ticks = late.ticks.checked_sub(early.ticks)?;
        let error = (early.width + late.width) as f64 / 2.0 / ns;
        (ns > 0.0 && ticks > 0).then(|| Measured { khz: ticks as f64 / ns * 1e6, error })
    });
    measured.min_by(|a, b| a.error.total_cmp(&b.error))
}

/// Selects the frequency to use: one reported by CPUID if the measurement agrees with it, else the measured one.
/// Returns `None` if neither is plausible.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and is checked to be plausible")]
fn settle(named: &[u32], measured: Option<Measured>) -> Option<u32> {
    let measured = measured.filter(|measured| measured.error <= TOLERANCE);
    let mut named = named.iter().copied().filter(|khz| PLAUSIBLE.contains(khz));
    match measured {
        None => named.next(),
        Some(Measured { khz, .. }) => named
            .find(|named| (f64::from(*named) - khz).abs() <= khz * TOLERANCE)
            .or(Some(khz.round() as u32).filter(|khz| PLAUSIBLE.contains(khz))),
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod host {
    pub(super) fn khz() -> Option<u32> {
        None
    }
}

#[cfg(target_arch = "x86_64")]
mod host {
    use std::thread;
    use std::time::Duration;

    use raw_cpuid::CpuId;
    use rustix::time::{ClockId, clock_gettime};

    use super::{Bracket, Measured, between, settle};

    /// Number of readings, and the time between them.
    const READINGS: usize = 4;
    const PAUSE: Duration = Duration::from_millis(15);
    /// Attempts per reading; the narrowest bracket is kept.
    const TRIES: usize = 200;

    pub(super) fn khz() -> Option<u32> {
        let cpuid = CpuId::new();
        if !cpuid.get_advanced_power_mgmt_info().is_some_and(|info| info.has_invariant_tsc()) {
            return None;
        }
        settle(&named(&cpuid), measure())
    }

    /// Returns the frequencies reported by the hypervisor (leaf 0x4000_0010) and by the CPU (leaf 0x15). Leaf 0x16 is
    /// not used: its nominal frequency can be wrong by more than 0.1 %.
    fn named<R: raw_cpuid::CpuIdReader>(cpuid: &CpuId<R>) -> Vec<u32> {
        let hypervisor = cpuid.get_hypervisor_info().and_then(|info| info.tsc_frequency());
        let crystal =
            cpuid.get_tsc_info().and_then(|info| info.tsc_frequency()).and_then(|hz| u32::try_from(hz / 1000).ok());
        [hypervisor, crystal].into_iter().flatten().collect()
    }

    fn measure() -> Option<Measured> {
        let mut brackets = Vec::with_capacity(READINGS);
        for reading in 0..READINGS {
            if reading > 0 {
                thread::sleep(PAUSE);
            }
            brackets.extend((0..TRIES).map(|_| bracket()).min_by_key(|bracket| bracket.width));
        }
        between(&brackets)
    }

    fn bracket() -> Bracket {
        let now = || {
            let time = clock_gettime(ClockId::MonotonicRaw);
            time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
        };
        let ns = now();
        // SAFETY: RDTSC only reads a counter; every x86-64 CPU has it.
        let ticks = unsafe { std::arch::x86_64::_rdtsc() };
        Bracket { ns, width: now() - ns, ticks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_name_the_frequency_and_the_delay_only_where_both_are_known() {
        assert_eq!(arguments(Some(2_445_422), Some(250)), "tsc_early_khz=2445422 lpj=9781688");
        assert_eq!(arguments(Some(2_445_422), Some(1000)), "tsc_early_khz=2445422 lpj=2445422");
        assert_eq!(arguments(Some(2_445_422), None), "tsc_early_khz=2445422");
        assert_eq!(arguments(None, Some(250)), "");
    }

    /// The widest interval between two narrow brackets is used; a preempted reading does not affect the result.
    #[test]
    fn preempted_readings_are_rejected() {
        let at = |ns: u64, width: u64, late: u64| Bracket { ns, width, ticks: (ns + width / 2 + late) * 5 / 2 };
        let brackets = [at(0, 100, 0), at(15_000_000, 8_000_000, 4_000_000), at(60_000_000, 100, 0)];
        let measured = between(&brackets).unwrap();
        assert!((measured.khz - 2_500_000.0).abs() < 10.0, "{measured:?}");
        assert!(measured.error < 2e-6, "{measured:?}");
        assert_eq!(between(&brackets[..1]), None);
        let backwards = [Bracket { ns: 0, width: 10, ticks: 9 }, Bracket { ns: 100, width: 10, ticks: 3 }];
        assert_eq!(between(&backwards), None);
    }

    #[test]
    fn a_named_frequency_counts_only_where_the_measurement_agrees() {
        let measured = |khz: f64| Some(Measured { khz, error: 1e-6 });
        assert_eq!(settle(&[2_600_000, 2_596_000], measured(2_596_100.0)), Some(2_596_000));
        assert_eq!(settle(&[2_400_000], measured(2_596_100.2)), Some(2_596_100));
        assert_eq!(settle(&[], measured(2_596_100.2)), Some(2_596_100));
        // Without a usable measurement, the plausible reported frequency is used.
        let vague = Some(Measured { khz: 87_000.0, error: 0.5 });
        assert_eq!(settle(&[0, 2_596_000], vague), Some(2_596_000));
        assert_eq!(settle(&[0], vague), None);
        assert_eq!(settle(&[], measured(87_000.0)), None);
    }

    /// Two measurements on one host agree to 0.1 %.
    #[test]
    fn this_hosts_frequency_is_plausible_and_repeatable() {
        let (Some(first), Some(second)) = (host::khz(), host::khz()) else { return };
        assert!(PLAUSIBLE.contains(&first));
        assert!((f64::from(first) - f64::from(second)).abs() <= f64::from(first) * TOLERANCE, "{first} {second}");
    }
}
