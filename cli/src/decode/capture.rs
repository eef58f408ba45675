// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Formats the events of a capture of `arctic trace`, with commands and messages disassembled.

use arctic_device_model::command::{Origin, Requester};
use arctic_device_model::decode::{Line, Message, status};
use arctic_device_model::trace::{Event, EventKind, Filter};

use super::engine::{Batch, Engine, Family, named};
use crate::capture::{Heading, VERSION};

/// Returns whether a text begins like a capture.
pub fn is(text: &str) -> bool {
    text.trim_start().starts_with("{\"arctic_capture\"")
}

/// Parses the first line of a capture.
pub fn heading(line: &str) -> Result<Heading, String> {
    let heading: Heading = serde_json::from_str(line).map_err(|error| error.to_string())?;
    match heading.arctic_capture {
        VERSION => Ok(heading),
        other => Err(format!("it is of version {other}, and this program reads {VERSION}")),
    }
}

/// Name of a function, as printed by other commands.
fn function(number: u8) -> String {
    if number == 0 { "pf".into() } else { format!("vf{number}") }
}

/// The family of the card of which a capture with this heading is.
pub fn family(heading: &Heading) -> Result<Family, String> {
    let name = heading.generation.as_deref();
    named(name).ok_or_else(|| format!("its card is of the unknown generation {}", name.unwrap_or_default()))
}

/// Formats an event of a card of `family` as a line of text; `None` if the filter excludes it.
pub fn text(event: &Event, family: Family, filter: &Filter) -> Option<String> {
    filter.passes(event).then(|| {
        let place = event.engine.as_deref().unwrap_or("-");
        let when = event.ns as f64 / 1e6;
        format!("{when:>14.6} {:<5} {place:<6} {}", function(event.function), what(event, family))
    })
}

fn what(event: &Event, family: Family) -> String {
    match &event.what {
        EventKind::Load { context, descriptor } => {
            let lines = status::descriptor(*descriptor);
            let meaning = lines
                .first()
                .and_then(|line| if let Line::Dword(low) = line { Some(low.meaning.as_str()) } else { None });
            format!("load     context {context:#x}: {}", meaning.unwrap_or_default())
        }
        EventKind::Restore { ring, head, tail, batch } => {
            let batch = batch.map_or(String::new(), |batch| format!(", continues in the batch at {batch:#x}"));
            format!("restore  ring {ring:#x}, HEAD {head:#x}, TAIL {tail:#x}{batch}")
        }
        EventKind::LiteRestore { tail } => format!("more     TAIL {tail:#x}"),
        EventKind::Command { address, ppgtt, level, length, dwords } => {
            let engine = event.engine.as_deref().and_then(|name| family.engine(name));
            let unknown = || {
                let words: Vec<_> = dwords.iter().map(|dword| format!("{dword:08x}")).collect();
                format!("{}: of an engine that the card does not have", words.join(" "))
            };
            let text = engine.map_or_else(unknown, |engine| command(*address, *ppgtt, *length, dwords, engine));
            let indent = "  ".repeat(usize::from(*level).min(4));
            let space = if *ppgtt { "ppgtt" } else { "ggtt" };
            format!("{indent}{space}:{address:#x} {text}")
        }
        EventKind::Skipped { command, origin, stopped } => {
            let of = match origin {
                Origin::User => "user space",
                Origin::Driver => "the driver",
            };
            let effect = if *stopped { "stops the context" } else { "is not executed" };
            format!("skipped  {command} of {of} {effect}")
        }
        EventKind::Walker { kernel, groups, instructions, faults, outside, at } => {
            let of = |count: u64, what: &str| if count == 0 { String::new() } else { format!(", {count} {what}") };
            let faults = of(*faults, "threads at instructions that cannot be executed");
            let at = at.as_ref().map_or(String::new(), |at| format!(", has not ended: {at}"));
            let outside = of(*outside, "accesses outside of surfaces");
            format!("walker   kernel {kernel:#x}: {groups} groups, {instructions} instructions{faults}{outside}{at}")
        }
        EventKind::Wait => "waits".into(),
        EventKind::Stop { outcome, head } => format!("stop     {outcome}, HEAD {head:#x}"),
        EventKind::Switch { status } => format!("status   {}", status::quadword(*status)),
        EventKind::Stream { unit, enabled, period_ns, written, lost } => {
            let way = if *enabled { "begins" } else { "ends" };
            let period = period_ns.map_or(String::new(), |ns| format!(", a report every {:.1} us", ns as f64 / 1e3));
            format!("stream   of {unit} {way}{period}; {written} reports written, {lost} lost")
        }
        EventKind::Reset => "reset".into(),
        EventKind::Interrupt { bits } => {
            let names = [(0, "user interrupt"), (3, "error"), (4, "flush complete"), (8, "context switch")];
            let named = names.iter().filter(|(bit, _)| bits >> bit & 1 != 0).map(|(_, name)| *name);
            format!("signals  {}", named.collect::<Vec<_>>().join(", "))
        }
        EventKind::Msi { vector } => format!("MSI      vector {vector}"),
        EventKind::Guc { mailbox, fence, dwords } => {
            let message = Message::new(dwords, (!mailbox).then_some(*fence));
            let way = if *mailbox { "mailbox " } else { "CT      " };
            format!("{way} {}", message.to_string().trim_start())
        }
        EventKind::Doorbell { page, doorbell, notifies } => {
            let of = doorbell.map_or("which no doorbell watches".into(), |doorbell| format!("doorbell {doorbell}"));
            let effect = if doorbell.is_some() && !notifies { ", served with an earlier ring" } else { "" };
            format!("rings    page {page:#x}, {of}{effect}")
        }
        EventKind::TlbInvalidation { by, all } => {
            let of = if *all { ", of all functions" } else { "" };
            format!("TLB      invalidated by {by}{of}")
        }
        EventKind::Lost { events } => {
            format!("{events} events are missing here: the card was faster than its follower")
        }
        other => format!("{other:?}"),
    }
}

fn command(address: u64, ppgtt: bool, length: u32, dwords: &[u32], engine: Engine) -> String {
    let requester = if ppgtt { Requester::PfUser } else { Requester::PfKernel };
    // Missing dwords of a long command are due to the recording and are not an error in the command.
    let mut words = dwords.to_vec();
    words.resize((length as usize).clamp(1, 0x1000), 0);
    let batch = Batch { requester, ends: false, ..Batch::new(&words, address, engine) };
    let Some(command) = batch.commands().next() else { return String::new() };
    let mut text = command.name.unwrap_or("unknown").to_string();
    if dwords.len() < length as usize {
        return format!("{text}: {length} dwords, of which {} were kept", dwords.len());
    }
    let fields = command.text();
    if !fields.is_empty() {
        text += ": ";
        text += &fields;
    }
    for note in &command.notes {
        text += " # ";
        text += note;
    }
    text
}
