// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic registers`: what a card models at an offset of its register BAR, from its tables.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use arctic_device_model::gpu::{AtOffset, CommandAccess, Model, RegisterDescription, RegisterGap, RegisterMap};
use arctic_gpu::card_file;
use serde::Serialize;

use super::card_args::default_card;
use super::offered::card;
use super::{stdout, usage};

/// Print what a card models at an offset of its register BAR (BAR 0), or the registers with a name: behaviour, value after
/// reset, owner of the state, the functions and commands that reach it, and the source of each row.
///
/// This is read from the tables that the card itself executes. Without OFFSET and NAME, all registers are listed, one per
/// line. No card has to be running.
///
/// The exit status is 1 if an offset has no register, or if no register has the name.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    arctic registers 0x2030\n  \
    arctic registers GDRST bcs0.RING_TAIL\n  \
    arctic registers --card ivb FORCEWAKE 0x145998\n  \
    arctic registers --card snb\n  \
    arctic registers --json RING_TAIL | jq '.found[].register.offset'")]
pub struct RegistersArgs {
    /// The card: a file, or the name of a built-in one; the default is flex170
    #[arg(long, value_name = "FILE|NAME", value_parser = card(), hide_possible_values = true)]
    card: Option<String>,
    /// An offset in bytes, like 0x2030; or the name of a register, with or without its engine, in any case, or a part of it
    #[arg(value_name = "OFFSET|NAME")]
    wanted: Vec<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The document of `--json`.
#[derive(Serialize)]
struct Document<'m> {
    card: &'m str,
    bar: u8,
    bar_name: &'m str,
    register_bytes: u32,
    found: Vec<Found<'m>>,
}

/// What an argument names, or a register of the list.
#[derive(Debug, PartialEq, Serialize)]
struct Found<'m> {
    /// The argument; absent in the list of all registers.
    #[serde(skip_serializing_if = "Option::is_none")]
    wanted: Option<&'m str>,
    /// The register; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    register: Option<&'m RegisterDescription>,
    /// The VF of which the offset is the view.
    #[serde(skip_serializing_if = "Option::is_none")]
    vf: Option<u32>,
    /// What is there instead of a register.
    #[serde(skip_serializing_if = "Option::is_none")]
    gap: Option<&'m RegisterGap>,
}

/// The offset that an argument names: hexadecimal with 0x. `None` if it is a name.
fn offset(text: &str) -> Option<Result<u64, String>> {
    let digits = text.strip_prefix("0x").or(text.strip_prefix("0X"))?;
    Some(u64::from_str_radix(digits, 16).map_err(|_| format!("{text} is no offset: expected one like 0x2030")))
}

/// What the arguments name, in their order; all registers without arguments.
fn find<'m>(map: &'m RegisterMap, wanted: &'m [String]) -> Result<Vec<Found<'m>>, String> {
    let register = |wanted, register| Found { wanted, register: Some(register), vf: None, gap: None };
    if wanted.is_empty() {
        return Ok(map.registers.iter().map(|one| register(None, one)).collect());
    }
    let mut found = Vec::new();
    for text in wanted.iter().map(String::as_str) {
        match offset(text) {
            Some(offset) => found.push(match map.at(offset?) {
                AtOffset::Register(one, vf) => Found { vf, ..register(Some(text), one) },
                AtOffset::Nothing(gap) => Found { wanted: Some(text), register: None, vf: None, gap },
            }),
            None => match map.named(text) {
                none if none.is_empty() => {
                    found.push(Found { wanted: Some(text), register: None, vf: None, gap: None });
                }
                several => found.extend(several.into_iter().map(|one| register(Some(text), one))),
            },
        }
    }
    Ok(found)
}

/// The engines of an access.
fn on(map: &RegisterMap, access: &CommandAccess) -> String {
    let all = access.engines.len() == map.engines.len();
    if all { "all engines".into() } else { access.engines.join(", ") }
}

/// The paragraph about a register.
fn paragraph(map: &RegisterMap, register: &RegisterDescription, vf: Option<u32>) -> String {
    let mut text = format!("{:#08x}  {}\n", register.offset, register.full_name());
    let mut line = |heading: &str, value: &str| writeln!(text, "  {heading:<10}{value}").unwrap_or_default();
    if let Some(vf) = vf {
        line("view", &format!("of VF {vf}'s register, for the PF"));
    }
    line("behaviour", &register.behaviour.to_string());
    let reset = format!("{:#010x}", register.reset);
    match register.vf_reset {
        Some(of_vf) if of_vf != register.reset => line("reset", &format!("{reset}, in a VF {of_vf:#010x}")),
        _ => line("reset", &reset),
    }
    if register.instances != 1 {
        line("values", &format!("{}, one for each instance of the unit", register.instances));
    }
    line("owner", &register.owner);
    if let Some(domain) = &register.awake {
        line("awake", &format!("{domain}: a driver holds this forcewake domain for an access"));
    }
    if let Some(views) = map.views {
        line(
            "MMIO",
            &match register.vf_reset {
                Some(_) => format!(
                    "PF and each VF, a value each; the PF has that of VF n at {:#x} * n above its own",
                    views.stride
                ),
                None => "PF; a VF reads 0, and its writes are dropped".into(),
            },
        );
    }
    for access in &register.commands {
        line("commands", &format!("{}: {} on {}", access.from, access.access, on(map, access)));
    }
    line("source", register.source);
    text
}

/// The sentence about an argument that names no register.
fn nothing(card: &str, map: &RegisterMap, wanted: &str, gap: Option<&RegisterGap>) -> String {
    let Some(Ok(offset)) = offset(wanted) else { return format!("{wanted}  the card {card} has no such register\n") };
    let reason = gap.map_or(String::new(), |gap| format!("; {}", gap.what));
    if offset < map.bytes.into() {
        return format!("{offset:#08x}  not modelled: reads 0, writes are dropped, both are counted{reason}\n");
    }
    format!(
        "{offset:#08x}  behind the registers, which are the first {} MiB of {}{reason}\n",
        map.bytes >> 20,
        map.bar_name
    )
}

/// The text of what was found.
fn text(card: &str, map: &RegisterMap, found: &[Found<'_>]) -> String {
    let part = |found: &Found<'_>| match (found.wanted, found.register) {
        (None, Some(register)) => {
            let (name, reset) = (register.full_name(), register.reset);
            format!(
                "{:#08x}  {name:<36}  {reset:#010x}  {}  ({})\n",
                register.offset, register.behaviour, register.source
            )
        }
        (_, Some(register)) => paragraph(map, register, found.vf),
        (wanted, None) => nothing(card, map, wanted.unwrap_or_default(), found.gap),
    };
    found.iter().map(part).collect()
}

/// Runs `arctic registers`.
pub fn run(arguments: &RegistersArgs) -> Result<ExitCode> {
    let card = arguments.card.as_deref().unwrap_or_else(|| default_card(0));
    let map = card_file::load(card).map_err(usage)?.register_map();
    let found = find(&map, &arguments.wanted).map_err(|error| usage(anyhow::anyhow!(error)))?;
    let missing = found.iter().any(|found| found.register.is_none());
    if arguments.json {
        let document = Document { card, bar: map.bar, bar_name: map.bar_name, register_bytes: map.bytes, found };
        stdout::line(serde_json::to_string_pretty(&document)?)?;
    } else {
        stdout::print(text(card, &map, &found))?;
    }
    Ok(ExitCode::from(u8::from(missing)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(card: &str, wanted: &[&str]) -> String {
        let map = card_file::load(card).unwrap().register_map();
        let wanted: Vec<String> = wanted.iter().map(|text| (*text).to_owned()).collect();
        let found = find(&map, &wanted).unwrap();
        text(card, &map, &found)
    }

    #[test]
    fn a_register_has_a_paragraph() {
        let text = shown("flex170", &["0x190a40", "bcs0.ring_tail"]);
        for line in [
            "0x190240  VF_SW_FLAG[0]\n  view      of VF 2's register, for the PF\n  behaviour ",
            "\n  MMIO      PF and each VF, a value each; the PF has that of VF n at 0x400 * n above its own\n",
            "0x022030  bcs0.RING_TAIL\n  behaviour stored, mask 0x001ffff8\n  reset     0x00000000\n",
            "\n  awake     GT: a driver holds this forcewake domain for an access\n",
            "\n  MMIO      PF; a VF reads 0, and its writes are dropped\n",
            "\n  commands  PF's driver: read and write on all engines\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        let text = shown("ivb", &["0x145998"]);
        assert!(text.starts_with("0x145998  RP_STATE_CAP\n  behaviour read-only\n  reset     0x00070d17\n"), "{text}");
        assert!(!text.contains("VF") && !text.contains("MMIO"), "{text}");
    }

    /// An offset without a register says so, with the reason if it is known.
    #[test]
    fn offsets_without_a_register_are_named() {
        let text = shown("flex170", &["0x40000", "0x800008", "0x6", "nonsense"]);
        let expected = "0x040000  not modelled: reads 0, writes are dropped, both are counted; display: not present\n\
            0x800008  behind the registers, which are the first 4 MiB of GTTMMADR; entries of the GGTT, 8 bytes each\n\
            0x000006  not modelled: reads 0, writes are dropped, both are counted\n\
            nonsense  the card flex170 has no such register\n";
        assert_eq!(text, expected);
        let map = card_file::load("snb").unwrap().register_map();
        assert_eq!(find(&map, &["0xzz".into()]).unwrap_err(), "0xzz is no offset: expected one like 0x2030");
    }

    /// The list has each register of every card once, a line each.
    #[test]
    fn without_arguments_all_registers_are_listed() {
        for card in crate::commands::offered::built_in() {
            let map = card_file::load(card).unwrap().register_map();
            let text = text(card, &map, &find(&map, &[]).unwrap());
            assert_eq!(text.lines().count(), map.registers.len(), "{card}");
            assert!(text.lines().all(|line| line.starts_with("0x") && line.ends_with(')')), "{card}");
        }
    }

    #[test]
    fn the_document_has_what_the_text_has() {
        let map = card_file::load("ivb").unwrap().register_map();
        let wanted = ["0x145998".to_owned(), "0x1ffffc".to_owned()];
        let found = serde_json::to_value(find(&map, &wanted).unwrap()).unwrap();
        assert_eq!(found[0]["register"]["name"], "RP_STATE_CAP");
        assert_eq!(found[0]["register"]["behaviour"], serde_json::json!({"kind": "read-only"}));
        assert_eq!(found[1], serde_json::json!({"wanted": "0x1ffffc"}));
    }
}
