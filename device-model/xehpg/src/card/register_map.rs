// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The registers of a card for display, and names for logs: of the rows of the tables, and of the access rules of commands.

use crate::card::GGTT_WINDOW;
use crate::command::Requester;
use crate::doorbell;
use crate::engine::whitelist::{Wanted, permits};
use crate::gpu::{CommandAccess, Permission, RegisterDescription, RegisterGap, RegisterMap, VfViews};
use crate::gt::Gt;
use crate::gt::virtual_function::decode_vf_view;
use crate::host::{Function, MAX_VFS};
use crate::pci::{GTTMMADR_BAR, GTTMMADR_BYTES};
use crate::profile::CardProfile;
use crate::registers::known::UNIMPLEMENTED;
use crate::registers::{Decoded, REGISTER_BYTES, RegisterFile, Scope, VIEW_BASE, VIEW_STRIDE};
use crate::topology::{EngineClass, EngineTable, WakeDomain};

/// Bytes of an entry of the GGTT.
const ENTRY_BYTES: u64 = 8;

/// The parts of the BAR behind the registers (V13-004, V13-007).
const WINDOWS: [RegisterGap; 2] = [
    RegisterGap { start: doorbell::WINDOW, end: GGTT_WINDOW - 1, what: "doorbells, a page each" },
    RegisterGap { start: GGTT_WINDOW, end: GTTMMADR_BYTES - 1, what: "entries of the GGTT, 8 bytes each" },
];

/// The register map of the card.
pub fn register_map(profile: &CardProfile) -> RegisterMap {
    let file = profile.registers();
    let left_out = UNIMPLEMENTED.iter();
    let left_out =
        left_out.map(|range| RegisterGap { start: range.start.into(), end: range.end.into(), what: range.reason });
    RegisterMap {
        bar: GTTMMADR_BAR,
        bar_name: "GTTMMADR",
        bytes: REGISTER_BYTES,
        engines: file.engines().list().iter().map(|engine| engine.name).collect(),
        registers: file.listing().map(|(offset, decoded)| describe(&file, offset, decoded)).collect(),
        gaps: left_out.chain(WINDOWS).collect(),
        views: Some(VfViews { base: VIEW_BASE, stride: VIEW_STRIDE, count: MAX_VFS.into() }),
    }
}

fn describe(file: &RegisterFile, offset: u32, decoded: &Decoded) -> RegisterDescription {
    let row = RegisterDescription::of_row(file, offset, decoded);
    RegisterDescription {
        engine: decoded.engine.map(|engine| file.engines().info(engine).name),
        owner: owner(decoded, row.vf_reset.is_some()),
        awake: decoded.range.and_then(|range| domain(range.wake)),
        commands: commands(file, offset),
        ..row
    }
}

/// The owner of the register's state.
fn owner(decoded: &Decoded, per_function: bool) -> String {
    match decoded.register.scope {
        Scope::Card if per_function => "the function".into(),
        Scope::Card if decoded.engine.is_some() => "the engine".into(),
        Scope::Card => "the card".into(),
        Scope::Common => "all functions, the same for each".into(),
        Scope::Position => "the context that runs: its position".into(),
        Scope::Power => "the function, for all of its contexts on the engine".into(),
        Scope::Context(classes) => {
            let of = EngineClass::BY_GUC.into_iter().filter(|class| classes.has(*class)).map(EngineClass::prefix);
            format!("the context, on {}", of.collect::<Vec<_>>().join(", "))
        }
        Scope::ContextOf(class, instance) => format!("the context, on {}{instance}", class.prefix()),
    }
}

/// The forcewake domain; `None` if it is always on.
fn domain(domain: WakeDomain) -> Option<String> {
    match domain {
        WakeDomain::AlwaysOn => None,
        WakeDomain::Gt => Some("GT".into()),
        WakeDomain::Render => Some("render".into()),
        WakeDomain::Vdbox(n) => Some(format!("media, VDBOX {n}")),
        WakeDomain::Vebox(n) => Some(format!("media, VEBOX {n}")),
    }
}

/// Whose commands have access, on which engines.
fn commands(file: &RegisterFile, offset: u32) -> Vec<CommandAccess> {
    const FROM: [(Requester, &str); 4] = [
        (Requester::PfKernel, "PF's driver"),
        (Requester::PfUser, "PF's user batches"),
        (Requester::VfKernel, "VF's driver"),
        (Requester::VfUser, "VF's user batches"),
    ];
    let engines: EngineTable = file.engines();
    let mut found = Vec::new();
    for (requester, from) in FROM {
        let access = |engine| {
            let may = |wanted| permits(file, engine, requester, offset, wanted);
            Permission::new(may(Wanted::Read), may(Wanted::Write))
        };
        for access_kind in [Permission::ReadWrite, Permission::Read, Permission::Write] {
            let with = engines.all().filter(|engine| access(*engine) == Some(access_kind));
            let with: Vec<_> = with.map(|engine| engines.info(engine).name).collect();
            if !with.is_empty() {
                found.push(CommandAccess { from, access: access_kind, engines: with });
            }
        }
    }
    found
}

/// Name of what is at `offset` of GTTMMADR of `function`.
pub fn name(gt: &Gt, function: Function, offset: u64) -> Option<String> {
    if let Some(at) = offset.checked_sub(GGTT_WINDOW) {
        return Some(format!("GGTT[{:#x}]", at / ENTRY_BYTES));
    }
    if let Some(at) = offset.checked_sub(doorbell::WINDOW) {
        return Some(format!("doorbell[{}]", at / doorbell::PAGE_BYTES));
    }
    let register = |offset: u32| gt.registers.decode(offset).map(|decoded| gt.registers.name(decoded));
    let offset = u32::try_from(offset).ok()?;
    register(offset).or_else(|| {
        let (vf, at) = decode_vf_view(offset).filter(|_| function == Function::PF)?;
        Some(format!("vf{}.{}", vf.number(), register(at)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{AtOffset, Behaviour};

    fn map() -> RegisterMap {
        register_map(&toml::from_str(include_str!("../../configs/flex170.toml")).unwrap())
    }

    /// Each register of the file is in the map, with the value that the card has after reset.
    #[test]
    fn the_map_has_the_registers_of_the_card() {
        let profile: CardProfile = toml::from_str(include_str!("../../configs/small.toml")).unwrap();
        let (map, file) = (register_map(&profile), profile.registers());
        let values: Vec<_> = file.listing().map(|(offset, _)| (offset, file.value(offset))).collect();
        assert!(values.len() > 1000);
        assert_eq!(map.registers.iter().map(|register| (register.offset, register.reset)).collect::<Vec<_>>(), values);
    }

    #[test]
    fn a_register_has_its_engine_owner_domain_and_accesses() {
        let map = map();
        let tail = map.register(0x2_2030).unwrap();
        assert_eq!((tail.full_name().as_str(), tail.awake.as_deref()), ("bcs0.RING_TAIL", Some("GT")));
        assert_eq!(tail.behaviour, Behaviour::Stored { mask: 0x1f_fff8 });
        let reset = &map.register(0x941c).unwrap().behaviour;
        assert!(matches!(reset, Behaviour::SideEffects { unit } if unit == "Reset(Gdrst)"), "{reset:?}");
        assert_eq!(map.register(0x1c_8030).unwrap().awake.as_deref(), Some("media, VEBOX 0"));
        // GPR 0 of rcs0: of its context, for every requester there and for the PF's driver elsewhere.
        let gpr = map.register(0x2600).unwrap();
        assert_eq!((gpr.name.as_str(), gpr.owner.as_str()), ("CS_GPR[0]", "the context, on rcs, vcs, vecs, bcs, ccs"));
        let access = |from, engines: &[&'static str]| CommandAccess {
            from,
            access: Permission::ReadWrite,
            engines: engines.into(),
        };
        let own = ["PF's user batches", "VF's driver", "VF's user batches"].map(|from| access(from, &["rcs0"]));
        assert_eq!(gpr.commands, [&[access("PF's driver", &map.engines)][..], &own].concat());
        assert_eq!(map.at(0x2603), AtOffset::Register(gpr, None), "the dword that contains the byte");
    }

    /// Registers with one value per function have views of the PF, the others have none.
    #[test]
    fn views_have_the_registers_of_the_vfs() {
        let map = map();
        let AtOffset::Register(mailbox, Some(2)) = map.at(0x19_0240 + 0x800) else { panic!("{:?}", map.at(0x19_0a40)) };
        assert_eq!((mailbox.name.as_str(), mailbox.vf_reset), ("VF_SW_FLAG[0]", Some(0)));
        for offset in [0x19_0240 + 64 * 0x400, 0x19_03fc, 0x4_0000] {
            assert!(matches!(map.at(offset), AtOffset::Nothing(_)), "{offset:#x}");
        }
        let AtOffset::Nothing(Some(gap)) = map.at(0x4_0000) else { panic!() };
        assert!(gap.what.starts_with("display"), "{gap:?}");
        assert_eq!([0x40_0000, 0xff_fffc].map(|at| matches!(map.at(at), AtOffset::Nothing(Some(_)))), [true; 2]);
    }

    #[test]
    fn registers_are_found_by_name() {
        let map = map();
        let found = |name: &str| map.named(name).iter().map(|register| register.offset).collect::<Vec<_>>();
        assert_eq!(found("gdrst"), [0x941c]);
        assert_eq!(found("BCS0.ring_tail"), [0x2_2030]);
        assert_eq!(found("bcs0 RING_TAIL"), [0x2_2030]);
        assert_eq!((found("VF_SW_FLAG[2]"), found("VF_SW_FLAG").len()), (vec![0x19_0248], 4));
        assert_eq!(found("RING_TAIL").len(), map.engines.len());
        assert!(found("forcewake").len() > 2, "part of a name");
        assert!(found("no such register").is_empty());
    }
}
