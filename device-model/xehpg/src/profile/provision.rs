// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Resources of each virtual function if no PF driver provisions the card: a card file's `[provision]` section, and
//! fair shares for the values that it omits.

use std::fmt;

use arctic_sriov::number::low;
use serde::de::{Deserialize, Deserializer, Error, Unexpected};

use super::{CardProfile, GIB, MIB};
use crate::gate::lmtt;
use crate::generation::XE_HPG_SRIOV;
use crate::host::MAX_VFS;
use crate::memory::layout::MemoryLayout;

/// Unit of GGTT shares in a card file, coarser than `SriovLimits::ggtt_page`: the entries of one unit fill one page of
/// the VF's GGTT window.
const GGTT_UNIT: u64 = 2 * MIB;
/// Size of the GGTT's address space, all of which no function can have.
const GGTT_SPACE: u64 = 4 * GIB;
/// Maximum share of local memory in a card file.
const MAX_LOCAL_MEMORY: u64 = 16 * GIB;
/// Local memory reserved if the program acts as the PF driver, for the LMTT. Its directory and 63 tables fill half of
/// it: they have 64 KiB each. 8 MiB hold tables of twice that size too.
pub const LMTT_RESERVE: u64 = 8 * MIB;
const _: () = assert!(lmtt::TABLE_ENTRIES * 4 * (MAX_VFS as u64 + 1) <= LMTT_RESERVE, "the LMTT is in the reserve");
/// Alignment of the end of the GGTT space that the PF driver shares out.
const FAIR_GGTT_ALIGNMENT: u64 = 512 * MIB;
/// Maximum number of VFs whose fair GGTT shares are powers of two (xe, pf_profile_fair_ggtt). With one more, the share
/// would be 32 MiB; the PF driver takes [`FAIR_GGTT_OF_MORE_VFS`] instead, which 63 VFs can have.
const MAX_VFS_WITH_64_MIB: u8 = 56;
const FAIR_GGTT_OF_MORE_VFS: u64 = 56 * MIB;
/// Minimum size of a VF's LMEM BAR in bytes: the smaller of the sizes that contract D.4 names for BARs without resizing.
const SMALLEST_VF_BAR: u64 = 256 * MIB;
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

/// How a VF accesses its local memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum VfLocalMemory {
    /// The VMM maps the VF's window. Accesses cause no VM exit. If the VF is in the PF's guest, the mapping has the size of
    /// the BAR.
    #[default]
    Mapped,
    /// Each access is trapped and translated by the LMTT. This conforms exactly to V13-010, also beyond the VF's quota, but
    /// is slow.
    Trapped,
}

/// Resources of one VF, or of each VF. Absent values are taken from [`Provision::each`], then from the fair shares.
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
    /// Shares of single VFs: (VF number 1 to 63, its own shares), in the file's order, each number once.
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
                return Err(format!(
                    "each [[provision.vf]] is one VF: expected number = 1 to {MAX_VFS} and no nested vf"
                ));
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
pub struct SharesExceedCard {
    what: &'static str,
    vfs: u8,
    requested: u64,
    available: u64,
}

impl fmt::Display for SharesExceedCard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SharesExceedCard { what, vfs, requested, available } = self;
        let s = if *vfs == 1 { "" } else { "s" };
        write!(
            f,
            "{vfs} VF{s} would get {requested} {what}, but the card has {available}: reduce [provision] or the number of VFs"
        )
    }
}

impl std::error::Error for SharesExceedCard {}

/// The largest power of two not greater than `number`, or 0.
fn power_of_two_within(number: u64) -> u64 {
    number.checked_ilog2().map_or(0, |log| 1 << log)
}

impl CardProfile {
    /// Returns the quotas of VFs 1 to `vfs` (at most [`MAX_VFS`]), in order: the values of the card file, and for absent
    /// values the fair shares that the PF driver would choose (contract D.4; xe: pf_profile_fair_*).
    ///
    /// # Errors
    ///
    /// If the sum of a resource exceeds what the card has of it.
    pub fn quotas(&self, vfs: u8) -> Result<Vec<Quota>, SharesExceedCard> {
        let fair = self.fair_share(vfs);
        let provision = &self.provision;
        let quota = |number: u8| {
            let own = provision.vf.iter().find(|(vf, _)| *vf == number).map_or(Shares::default(), |(_, own)| *own);
            let shares = own.or(provision.each);
            Quota {
                ggtt: shares.ggtt.unwrap_or(fair.ggtt),
                local_memory: shares.local_memory.unwrap_or(fair.local_memory),
                contexts: shares.contexts.unwrap_or(fair.contexts),
                doorbells: shares.doorbells.unwrap_or(fair.doorbells),
                exec_quantum_ms: shares.exec_quantum_ms.unwrap_or(fair.exec_quantum_ms),
                preempt_timeout_us: shares.preempt_timeout_us.unwrap_or(fair.preempt_timeout_us),
            }
        };
        let quotas: Vec<Quota> = (1..=vfs).map(quota).collect();
        self.check_capacity(vfs, &quotas)?;
        Ok(quotas)
    }

    /// Local memory in bytes that VFs may get.
    fn local_memory_of_vfs(&self) -> u64 {
        MemoryLayout::of(self.local_memory).usable - LMTT_RESERVE
    }

    /// The share of each of `vfs` VFs that the PF driver would choose.
    fn fair_share(&self, vfs: u8) -> Quota {
        let format = self.generation().sriov;
        let count = u64::from(vfs.max(1));
        let usable = self.local_memory_of_vfs();
        // The remainder below a whole GiB is left to the PF driver. The smallest card has less than 1 GiB of usable
        // memory, and half of it is shared.
        let shareable = (usable / GIB * GIB).max(usable / 2);
        let ggtt = if vfs > MAX_VFS_WITH_64_MIB {
            FAIR_GGTT_OF_MORE_VFS
        } else {
            power_of_two_within(format.ggtt.end / FAIR_GGTT_ALIGNMENT * FAIR_GGTT_ALIGNMENT / count)
        };
        Quota {
            ggtt,
            local_memory: power_of_two_within(shareable / (count + 1)).max(format.local_page),
            contexts: low(power_of_two_within(u64::from(format.contexts) / count)),
            doorbells: low(power_of_two_within(u64::from(format.doorbells) / (count + 1))),
            exec_quantum_ms: FAIR_QUANTUM_MS,
            preempt_timeout_us: FAIR_PREEMPT_US,
        }
    }

    /// Checks that the card has what the quotas are in sum.
    fn check_capacity(&self, vfs: u8, quotas: &[Quota]) -> Result<(), SharesExceedCard> {
        let format = self.generation().sriov;
        let check = |what, available: u64, share: fn(&Quota) -> u64, unit: u64| {
            let requested = quotas.iter().map(share).sum::<u64>();
            if requested <= available {
                Ok(())
            } else {
                Err(SharesExceedCard { what, vfs, requested: requested / unit, available: available / unit })
            }
        };
        check("MiB of GGTT space", format.ggtt.end - format.ggtt.start, |quota| quota.ggtt, MIB)?;
        check("MiB of local memory", self.local_memory_of_vfs(), |quota| quota.local_memory, MIB)?;
        check("contexts", format.contexts.into(), |quota| quota.contexts.into(), 1)?;
        check("doorbells", format.doorbells.into(), |quota| quota.doorbells.into(), 1)
    }

    /// Size of each VF's LMEM BAR in bytes: a power of two that covers the share of a single VF as the PF driver
    /// assigns it (contract D.4), and the largest share in `[provision]`. A large BAR only costs address space.
    pub fn vf_local_memory_bar(&self) -> u64 {
        let named = self.provision.vf.iter().map(|(_, shares)| shares).chain([&self.provision.each]);
        let largest = named.filter_map(|shares| shares.local_memory).max().unwrap_or(0);
        (self.local_memory / 4).next_power_of_two().max(largest.next_power_of_two()).max(SMALLEST_VF_BAR)
    }
}

/// Parses a size such as "64MiB" or "1GiB": a multiple of `unit` bytes, from `unit` to `most` bytes. `expected` names
/// the valid sizes in the error.
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
    let (unit, space) = (GGTT_UNIT / MIB, GGTT_SPACE / GIB);
    let expected = format!("GGTT address space like \"64MiB\" or \"1GiB\", a multiple of {unit} MiB below {space} GiB");
    bytes(from, GGTT_UNIT, GGTT_SPACE - GGTT_UNIT, &expected)
}

fn local_memory<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let (unit, most) = (XE_HPG_SRIOV.local_page / MIB, MAX_LOCAL_MEMORY / GIB);
    let expected = format!("local memory like \"256MiB\" or \"1GiB\", a multiple of {unit} MiB up to {most} GiB");
    bytes(from, XE_HPG_SRIOV.local_page, MAX_LOCAL_MEMORY, &expected)
}

fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u8>, D::Error> {
    let number = within(from, 1, MAX_VFS.into(), &format!("a VF's number, 1 to {MAX_VFS}"))?;
    Ok(u8::try_from(number).ok())
}

/// Parses a number from `least` to `most`. `expected` names the valid numbers in the error.
fn within<'de, D: Deserializer<'de>>(from: D, least: u32, most: u32, expected: &str) -> Result<u32, D::Error> {
    match u64::deserialize(from)? {
        number if (u64::from(least)..=u64::from(most)).contains(&number) => Ok(low(number)),
        other => Err(D::Error::invalid_value(Unexpected::Unsigned(other), &expected)),
    }
}

fn contexts<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let most = XE_HPG_SRIOV.contexts;
    within(from, 1, most, &format!("a number of contexts, 1 to {most}")).map(Some)
}

fn doorbells<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let most = XE_HPG_SRIOV.doorbells;
    within(from, 0, most, &format!("a number of doorbells, 0 to {most}")).map(Some)
}

fn exec_quantum_ms<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let most = XE_HPG_SRIOV.max_exec_quantum_ms;
    within(from, 0, most, &format!("an execution quantum in ms, 0 to {most}; 0 is unlimited")).map(Some)
}

fn preempt_timeout_us<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let most = XE_HPG_SRIOV.max_preempt_timeout_us;
    within(from, 0, most, &format!("a preemption timeout in us, 0 to {most}; 0 is unlimited")).map(Some)
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
    fn fair_shares_of_a_16_gib_card_equal_those_of_the_pf_driver() {
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
    fn fair_shares_for_any_memory_size_and_vf_count_are_nonzero_and_fit_the_bar() {
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
    fn values_in_provision_replace_fair_shares() {
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
    fn provision_with_a_duplicate_missing_or_misplaced_vf_number_is_refused() {
        let refused = |more: &str| toml::from_str::<CardProfile>(&format!("{FLEX}\n{more}")).unwrap_err().to_string();
        let one = "[[provision.vf]]\nnumber = 3\n";
        assert!(refused(&[one, one].concat()).contains("duplicate VF 3"));
        assert!(refused("[[provision.vf]]\ncontexts = 3").contains("number = 1 to 63"));
        assert!(refused("[provision]\nnumber = 3").contains("[[provision.vf]]"));
    }

    #[test]
    fn provision_values_outside_their_limits_are_refused() {
        let parsed = |line: &str| toml::from_str::<CardProfile>(&format!("{FLEX}\n[provision]\n{line}"));
        let refused = |line: &str| parsed(line).unwrap_err().to_string();
        assert_eq!(parsed("ggtt = \"4094MiB\"").unwrap().provision.each.ggtt, Some(4094 << 20));
        for size in ["0MiB", "3MiB", "4GiB", "4096MiB"] {
            let error = refused(&format!("ggtt = \"{size}\""));
            assert!(error.contains("a multiple of 2 MiB below 4 GiB"), "{size}: {error}");
        }
        let error = refused("local_memory = \"17GiB\"");
        assert!(error.contains("a multiple of 2 MiB up to 16 GiB"), "{error}");
        for (line, expected) in [
            ("contexts = 0", "a number of contexts, 1 to 65535"),
            ("doorbells = 257", "a number of doorbells, 0 to 256"),
            ("exec_quantum_ms = 100001", "an execution quantum in ms, 0 to 100000; 0 is unlimited"),
            ("preempt_timeout_us = 100000001", "a preemption timeout in us, 0 to 100000000; 0 is unlimited"),
            ("[[provision.vf]]\nnumber = 64", "a VF's number, 1 to 63"),
        ] {
            let error = refused(line);
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn quotas_beyond_the_card_are_refused() {
        let refused = |more: &str, vfs| profile(more).quotas(vfs).unwrap_err().to_string();
        let local = refused("[provision]\nlocal_memory = \"1GiB\"", 16);
        assert_eq!(
            local,
            "16 VFs would get 16384 MiB of local memory, but the card has 16240: reduce [provision] or the number of VFs"
        );
        assert!(refused("[provision]\nggtt = \"2GiB\"", 2).contains("4096 MiB of GGTT space, but the card has 4074"));
        assert!(refused("[provision]\ncontexts = 40000", 2).contains("80000 contexts"));
        assert!(refused("[provision]\ndoorbells = 200", 2).contains("400 doorbells"));
        let single = "[[provision.vf]]\nnumber = 1\nlocal_memory = \"16GiB\"";
        assert!(refused(single, 1).starts_with("1 VF would get 16384 MiB"));
    }
}
