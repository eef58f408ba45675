// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The registers of a card for display, and names for logs: of the rows of the tables, and of the access rules of commands.

use arctic_base::gpu::{CommandAccess, RegisterDescription, RegisterGap, RegisterMap};

use super::{GTTMMADR_BAR, GTTMMADR_BYTES};
use crate::engine::register_permission;
use crate::generation::Generation;
use crate::gt::Gt;
use crate::profile::IntegratedProfile;
use crate::registers::{Decoded, REGISTER_BYTES, RegisterFile, Scope};

/// Bytes of an entry of the GGTT.
const ENTRY_BYTES: u64 = 4;

/// The register map of the card.
pub fn register_map(profile: &IntegratedProfile) -> RegisterMap {
    let (file, generation) = (profile.registers(), profile.generation);
    RegisterMap {
        bar: GTTMMADR_BAR,
        bar_name: "GTTMMADR",
        bytes: REGISTER_BYTES,
        engines: names(generation),
        registers: file.listing().map(|(offset, decoded)| describe(&file, generation, offset, decoded)).collect(),
        gaps: vec![RegisterGap {
            start: REGISTER_BYTES.into(),
            end: GTTMMADR_BYTES.saturating_sub(1),
            what: "entries of the GGTT, 4 bytes each",
        }],
        views: None,
    }
}

fn names(generation: &Generation) -> Vec<&'static str> {
    generation.engines.iter().map(|engine| engine.name).collect()
}

fn describe(file: &RegisterFile, generation: &Generation, offset: u32, decoded: &Decoded) -> RegisterDescription {
    let owner = match decoded.register.scope {
        Scope::Device => "the device",
        Scope::Aperture => "the device: the translation of the aperture",
        Scope::Engine => "the engine",
        Scope::Context => "the logical context",
        Scope::Extended => "the logical context: its extended state",
    };
    let access = [("ring, batches of the GGTT", true), ("batches of the PPGTT", false)].into_iter();
    let commands = access.filter_map(|(from, privileged)| {
        let access = register_permission(offset, decoded, privileged)?;
        Some(CommandAccess { from, access, engines: names(generation) })
    });
    RegisterDescription {
        engine: decoded.engine.map(|engine| generation.engine(engine).name),
        owner: owner.into(),
        awake: decoded.range.map(|_| "GT".into()),
        commands: commands.collect(),
        ..RegisterDescription::of_row(file, offset, decoded)
    }
}

/// Name of what is at `offset` of GTTMMADR.
pub fn name(gt: &Gt, offset: u64) -> Option<String> {
    match offset.checked_sub(REGISTER_BYTES.into()) {
        Some(at) => Some(format!("GGTT[{:#x}]", at / ENTRY_BYTES)),
        None => gt.register_name(u32::try_from(offset).ok()?),
    }
}

#[cfg(test)]
mod tests {
    use arctic_base::gpu::{AtOffset, Behaviour, Permission};

    use super::*;
    use crate::profile::tests::{ivb, snb};

    /// Each register of the file is in the map, with the value that the card has after reset.
    #[test]
    fn the_map_has_the_registers_of_the_card() {
        for profile in [ivb(), snb()] {
            let (map, file) = (register_map(&profile), profile.registers());
            let values: Vec<_> = file.listing().map(|(offset, _)| (offset, file.value(offset))).collect();
            assert!(values.len() > 100);
            let listed = map.registers.iter().map(|register| (register.offset, register.reset));
            assert_eq!(listed.collect::<Vec<_>>(), values);
        }
    }

    #[test]
    fn a_register_has_its_engine_owner_domain_and_accesses() {
        let map = register_map(&ivb());
        let tail = map.register(0x2_2030).unwrap();
        assert_eq!((tail.full_name().as_str(), tail.awake.as_deref()), ("bcs0.RING_BUFFER_TAIL", Some("GT")));
        assert!(matches!(&tail.behaviour, Behaviour::SideEffects { unit } if unit.starts_with("Engine(")), "{tail:?}");
        let from = |register: &RegisterDescription| -> Vec<_> {
            register.commands.iter().map(|access| (access.from, access.access)).collect()
        };
        assert_eq!(from(tail), [("ring, batches of the GGTT", Permission::ReadWrite)]);
        // RP_STATE_CAP: of the memory controller, which only CPUs read; commands write offsets below 0xc0000.
        let limits = map.register(0x14_5998).unwrap();
        assert_eq!((limits.name.as_str(), limits.reset, from(limits)), ("RP_STATE_CAP", 0x0007_0d17, vec![]));
        assert_eq!(map.named("rp_state_cap"), [limits]);
        assert!(matches!(map.at(0x1f_fffc), AtOffset::Nothing(None)));
        assert!(matches!(map.at(0x20_0000), AtOffset::Nothing(Some(_))), "the GGTT");
    }
}
