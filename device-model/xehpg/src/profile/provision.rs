// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Resources of each virtual function if no PF driver provisions the card: a card file's `[provision]` section, and
//! fair shares for the values that it omits.

use std::fmt;

use arctic_sriov::number::low;
use serde::de::{Deserialize, Deserializer, Error, Unexpected};

use super::{CardProfile, GIB};
use crate::generation::XE_HPG_SRIOV;
use crate::memory::layout::MemoryLayout;

/// 1 MiB in bytes.
const MIB: u64 = 1 << 20;
/// Unit of GGTT quotas: the entries of one unit fill one whole page of the VF's GGTT window.
const GGTT_PART: u64 = 2 * MIB;
/// Local memory reserved if the program acts as the PF driver: the LMTT's directory and its 63 tables.
pub const LMTT_RESERVE: u64 = 8 * MIB;
/// Execution quantum and preemption timeout that the PF driver sets (contract D.4).
const FAIR_QUANTUM_MS: u32 = 16;
const FAIR_PREEMPT_US: u32 = 16_000;

/// How a VF accesses its part of the GGTT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GgttAccess {
    /// The VMM maps a separate table for the VF. Updates of entries cause no VM exit; the ownership rules are applied
    /// when an entry is used.
    #[default]
    Mapped,
    /// Each access is trapped and checked immediately. This conforms exactly to V13-019..034, but is slow.
    Trapped,
}

/// Resources of one VF, or of each VF: an absent value selects the fair share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Bytes of GGTT address space.
    pub ggtt: Option<u64>,
    /// Bytes of local memory.
    pub local_memory: Option<u64>,
    /// Maximum number of registered contexts.
    pub contexts: Option<u32>,
    /// Number of doorbells.
    pub doorbells: Option<u32>,
    /// Execution quantum in ms; 0 is unlimited.
    pub exec_quantum_ms: Option<u32>,
    /// Preemption timeout in us, after which the engine is reset; 0 is unlimited.
    pub preempt_timeout_us: Option<u32>,
}

impl Shares {
    /// Returns these shares, with absent values taken from `others`.
    fn or(self, others: Shares) -> Shares {
        Shares {
            ggtt: self.ggtt.or(others.ggtt),
            local_memory: self.local_memory.or(others.local_memory),
            contexts: self.contexts.or(others.contexts),
            doorbells: self.doorbells.or(others.doorbells),
            exec_quantum_ms: self.exec_quantum_ms.or(others.exec_quantum_ms),
            preempt_timeout_us: self.preempt_timeout_us.or(others.preempt_timeout_us),
        }
    }
}

/// A card file's `[provision]` section.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "Section")]
pub struct Provision {
    /// Shares of each VF.
    pub each: Shares,
    /// Overrides for single VFs, by VF number.
    pub vf: Vec<(u8, Shares)>,
}

/// A `[provision]` or `[[provision.vf]]` section as written in the file.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    #[serde(default, deserialize_with = "number")]
    number: Option<u8>,
    #[serde(default)]
    vf: Vec<Section>,
    #[serde(default, deserialize_with = "ggtt")]
    ggtt: Option<u64>,
    #[serde(default, deserialize_with = "local_memory")]
    local_memory: Option<u64>,
    #[serde(default, deserialize_with = "contexts")]
    contexts: Option<u32>,
    #[serde(default, deserialize_with = "doorbells")]
    doorbells: Option<u32>,
    #[serde(default, deserialize_with = "exec_quantum_ms")]
    exec_quantum_ms: Option<u32>,
    #[serde(default, deserialize_with = "preempt_timeout_us")]
    preempt_timeout_us: Option<u32>,
}

impl Section {
    fn shares(&self) -> Shares {
        let Section { ggtt, local_memory, contexts, doorbells, exec_quantum_ms, preempt_timeout_us, .. } = *self;
        Shares { ggtt, local_memory, contexts, doorbells, exec_quantum_ms, preempt_timeout_us }
    }
}

impl TryFrom<Section> for Provision {
    type Error = String;

    fn try_from(section: Section) -> Result<Self, String> {
        if section.number.is_some() {
            return Err("number is only valid in [[provision.vf]]".into());
        }
        let mut provision = Provision { each: section.shares(), vf: Vec::new() };
        for single in &section.vf {
            let Some(number) = single.number.filter(|_| single.vf.is_empty()) else {
                return Err("each [[provision.vf]] is one VF: expected number = 1 to 63 and no nested vf".into());
            };
            if provision.vf.iter().any(|(other, _)| *other == number) {
                return Err(format!("duplicate VF {number}: expected one [[provision.vf]] for each number"));
            }
            provision.vf.push((number, single.shares()));
        }
        Ok(provision)
    }
}

/// Resources of one VF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Quota {
    /// Bytes of GGTT address space.
    pub ggtt: u64,
    /// Bytes of local memory.
    pub local_memory: u64,
    /// Maximum number of registered contexts.
    pub contexts: u32,
    /// Number of doorbells.
    pub doorbells: u32,
    /// Execution quantum in ms; 0 is unlimited.
    pub exec_quantum_ms: u32,
    /// Preemption timeout in us, after which the engine is reset; 0 is unlimited.
    pub preempt_timeout_us: u32,
}

/// The requested shares exceed the card's resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooMuch {
    what: &'static str,
    vfs: u8,
    requested: u64,
    there: u64,
}

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooMuch { what, vfs, requested, there } = self;
        let s = if *vfs == 1 { "" } else { "s" };
        write!(f, "{vfs} VF{s} would get {requested} {what} (card: {there}): reduce [provision] or the number of VFs")
    }
}

impl std::error::Error for TooMuch {}

/// The largest power of two not greater than `number`, or 0.
fn power_of_two_within(number: u64) -> u64 {
    number.checked_ilog2().map_or(0, |log| 1 << log)
}

impl CardProfile {
    /// The quotas of VFs 1 to `vfs`, in order: the values of the card file, and for absent values the fair shares that
    /// the PF driver would choose (contract D.4; xe: pf_profile_fair_*).
    pub fn quotas(&self, vfs: u8) -> Result<Vec<Quota>, TooMuch> {
        let format = self.generation().sriov;
        let count = u64::from(vfs.max(1));
        let usable = MemoryLayout::of(self.local_memory).usable - LMTT_RESERVE;
        // The remainder below a whole GiB is left to the PF driver. The smallest card has less than 1 GiB of usable
        // memory, and half of it is shared.
        let shareable = (usable / GIB * GIB).max(usable / 2);
        let fair = Shares {
            ggtt: Some(if vfs > 56 {
                56 * MIB
            } else {
                power_of_two_within((format.ggtt.end & !(512 * MIB - 1)) / count)
            }),
            local_memory: Some(power_of_two_within(shareable / (count + 1)).max(format.local_page)),
            contexts: Some(low(power_of_two_within(u64::from(format.contexts) / count))),
            doorbells: Some(low(power_of_two_within(u64::from(format.doorbells) / (count + 1)))),
            exec_quantum_ms: Some(FAIR_QUANTUM_MS),
            preempt_timeout_us: Some(FAIR_PREEMPT_US),
        };
        let provision = &self.provision;
        let quota = |number: u8| {
            let own = provision.vf.iter().find(|(vf, _)| *vf == number).map_or(Shares::default(), |(_, own)| *own);
            let shares = own.or(provision.each).or(fair);
            Quota {
                ggtt: shares.ggtt.unwrap_or(0),
                local_memory: shares.local_memory.unwrap_or(0),
                contexts: shares.contexts.unwrap_or(0),
                doorbells: shares.doorbells.unwrap_or(0),
                exec_quantum_ms: shares.exec_quantum_ms.unwrap_or(0),
                preempt_timeout_us: shares.preempt_timeout_us.unwrap_or(0),
            }
        };
        let quotas: Vec<Quota> = (1..=vfs).map(quota).collect();
        let check = |what, there: u64, share: fn(&Quota) -> u64, unit: u64| {
            let requested = quotas.iter().map(share).sum::<u64>();
            if requested <= there {
                Ok(())
            } else {
                Err(TooMuch { what, vfs, requested: requested / unit, there: there / unit })
            }
        };
        check("MiB of GGTT space", format.ggtt.end - format.ggtt.start, |quota| quota.ggtt, MIB)?;
        check("MiB of local memory", usable, |quota| quota.local_memory, MIB)?;
        check("contexts", format.contexts.into(), |quota| quota.contexts.into(), 1)?;
        check("doorbells", format.doorbells.into(), |quota| quota.doorbells.into(), 1)?;
        Ok(quotas)
    }

    /// Size of each VF's LMEM BAR in bytes: a power of two that covers the share of a single VF as the PF driver
    /// assigns it (contract D.4), and the largest share in `[provision]`. A large BAR only costs address space.
    pub fn vf_local_memory_bar(&self) -> u64 {
        let named = self.provision.vf.iter().map(|(_, shares)| shares).chain([&self.provision.each]);
        let largest = named.filter_map(|shares| shares.local_memory).max().unwrap_or(0);
        (self.local_memory / 4).next_power_of_two().max(largest.next_power_of_two()).max(256 * MIB)
    }
}

/// Parses "64MiB" or "1GiB": a multiple of `unit`, at most `most` bytes.
fn bytes<'de, D: Deserializer<'de>>(from: D, unit: u64, most: u64, expected: &str) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(from)?;
    let number = |suffix: &str, scale: u64| {
        let number = text.strip_suffix(suffix)?.trim_end().parse::<u64>().ok()?;
        number.checked_mul(scale)
    };
    match number("MiB", MIB).or_else(|| number("GiB", GIB)) {
        Some(bytes) if bytes != 0 && bytes <= most && bytes % unit == 0 => Ok(Some(bytes)),
        _ => Err(D::Error::invalid_value(Unexpected::Str(&text), &expected)),
    }
}

fn ggtt<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    bytes(from, GGTT_PART, 4 * GIB, "GGTT address space like \"64MiB\" or \"1GiB\", a multiple of 2 MiB below 4 GiB")
}

fn local_memory<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    bytes(
        from,
        XE_HPG_SRIOV.local_page,
        16 * GIB,
        "local memory like \"256MiB\" or \"1GiB\", a multiple of 2 MiB up to 16 GiB",
    )
}

fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u8>, D::Error> {
    within(from, 1, 63, "a VF's number, 1 to 63").map(|number| Some((number & 0x3f) as u8))
}

fn within<'de, D: Deserializer<'de>>(from: D, least: u32, most: u32, expected: &str) -> Result<u32, D::Error> {
    match u64::deserialize(from)? {
        number if (u64::from(least)..=u64::from(most)).contains(&number) => Ok(low(number)),
        other => Err(D::Error::invalid_value(Unexpected::Unsigned(other), &expected)),
    }
}

fn contexts<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    within(from, 1, XE_HPG_SRIOV.contexts, "a number of contexts, 1 to 65535").map(Some)
}

fn doorbells<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    within(from, 0, XE_HPG_SRIOV.doorbells, "a number of doorbells, 0 to 256").map(Some)
}

fn exec_quantum_ms<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    within(from, 0, XE_HPG_SRIOV.longest_quantum_ms, "a time slice in ms, up to 100000; 0 is without end").map(Some)
}

fn preempt_timeout_us<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    within(from, 0, XE_HPG_SRIOV.longest_preemption_us, "a time in us, up to 100000000; 0 is without end").map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLEX: &str = include_str!("../../configs/flex170.toml");

    fn profile(more: &str) -> CardProfile {
        toml::from_str(&format!("{FLEX}\n{more}")).unwrap()
    }

    /// Contract D.4: the shares equal the values that the PF driver assigns to 1, 7, 31 and 63 VFs of a 16 GiB card.
    #[test]
    fn fair_shares_are_the_pf_drivers() {
        for (vfs, ggtt, local, contexts, doorbells) in
            [(1, 2048, 4096, 32768, 128), (7, 512, 1024, 8192, 32), (31, 64, 256, 2048, 8), (63, 56, 128, 1024, 4)]
        {
            let quotas = profile("").quotas(vfs).unwrap();
            assert_eq!(quotas.len(), usize::from(vfs));
            let Quota { exec_quantum_ms, preempt_timeout_us, .. } = quotas[0];
            assert_eq!((exec_quantum_ms, preempt_timeout_us), (16, 16000));
            for quota in quotas {
                assert_eq!((quota.ggtt >> 20, quota.local_memory >> 20), (ggtt, local), "{vfs} VFs");
                assert_eq!((quota.contexts, quota.doorbells), (contexts, doorbells), "{vfs} VFs");
            }
        }
    }

    /// For every card size and number of VFs, the fair shares are not empty and fit into the VF's BAR (A.4).
    #[test]
    fn fair_shares_fit_every_card() {
        for gib in [1, 2, 4, 8, 16u64] {
            let card = CardProfile { local_memory: gib << 30, ..profile("") };
            for vfs in 0..=63 {
                for quota in card.quotas(vfs).unwrap() {
                    assert!(quota.local_memory <= card.vf_local_memory_bar() && quota.local_memory > 0);
                    assert!(quota.ggtt > 0 && quota.contexts > 0);
                }
            }
        }
    }

    #[test]
    fn card_file_overrides_fair_shares() {
        let card = profile(
            "[provision]\nlocal_memory = \"64MiB\"\nexec_quantum_ms = 5\n\
            [[provision.vf]]\nnumber = 2\nlocal_memory = \"6GiB\"\ndoorbells = 0\nggtt = \"128MiB\"",
        );
        let quotas = card.quotas(3).unwrap();
        assert_eq!(quotas.iter().map(|quota| quota.local_memory >> 20).collect::<Vec<_>>(), [64, 6144, 64]);
        assert_eq!(quotas.iter().map(|quota| quota.doorbells).collect::<Vec<_>>(), [64, 0, 64]);
        assert_eq!((quotas[1].ggtt >> 20, quotas[1].exec_quantum_ms, quotas[0].exec_quantum_ms), (128, 5, 5));
        assert_eq!(card.vf_local_memory_bar(), 8 << 30);
    }

    #[test]
    fn duplicate_vf_in_a_card_file_is_refused() {
        let refused = |more: &str| toml::from_str::<CardProfile>(&format!("{FLEX}\n{more}")).unwrap_err().to_string();
        let one = "[[provision.vf]]\nnumber = 3\n";
        assert!(refused(&[one, one].concat()).contains("duplicate VF 3"));
        assert!(refused("[[provision.vf]]\ncontexts = 3").contains("number = 1 to 63"));
        assert!(refused("[provision]\nnumber = 3").contains("[[provision.vf]]"));
    }

    #[test]
    fn quotas_beyond_the_card_are_refused() {
        let refused = |more: &str, vfs| profile(more).quotas(vfs).unwrap_err().to_string();
        let local = refused("[provision]\nlocal_memory = \"1GiB\"", 16);
        assert_eq!(
            local,
            "16 VFs would get 16384 MiB of local memory (card: 16240): reduce [provision] or the number of VFs"
        );
        assert!(refused("[provision]\nggtt = \"2GiB\"", 2).contains("4096 MiB of GGTT space (card: 4074)"));
        assert!(refused("[provision]\ncontexts = 40000", 2).contains("80000 contexts"));
        assert!(refused("[provision]\ndoorbells = 200", 2).contains("400 doorbells"));
        let single = "[[provision.vf]]\nnumber = 1\nlocal_memory = \"16GiB\"";
        assert!(refused(single, 1).starts_with("1 VF would get 16384 MiB"));
    }
}
