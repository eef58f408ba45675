// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Runs work on the engine and on the reference, and compares the resulting states.

use std::collections::BTreeMap;
use std::fmt;

use arctic_device_model::generation::XE_HPG;
use arctic_device_model::topology::EngineClass;

use crate::differential::grammar::Case;
use crate::differential::layout::{CONTEXT_CONTROL, GGTT_PAGES, OAR_CONTROL, TIMESTAMP};
use crate::differential::reference;
use crate::differential::world::{FinalState, Stop, World};

/// The cards on which cases run.
pub struct Worlds {
    pf: World,
    vf: World,
}

impl Default for Worlds {
    fn default() -> Self {
        Worlds { pf: World::new(false), vf: World::new(true) }
    }
}

impl Worlds {
    /// Returns the card for the function of a case.
    pub fn of(&mut self, vf: bool) -> &mut World {
        if vf { &mut self.vf } else { &mut self.pf }
    }
}

/// Returns the compared registers as offsets from the engine's base.
pub(super) fn watched(class: EngineClass) -> Vec<u32> {
    let mut offsets: Vec<u32> = (0x600..0x680).step_by(4).collect();
    offsets.extend([0x094, 0x0c0, 0x158, 0x1fc, 0x21c, 0x3b4, 0x3b8, 0x3bc, 0x41c]);
    offsets.extend([0x098, 0x0b0, 0x0b4, 0x0b8, 0x214, 0x23c, 0x248, 0x24c, 0x4d0, 0x4d4, 0x4d8, 0x4dc]);
    match class {
        EngineClass::Render | EngineClass::Compute => {
            offsets.extend((0x400..0x41c).step_by(4));
            offsets.extend([0x500, 0x504, 0x508]);
            if class == EngineClass::Render {
                offsets.extend([CONTEXT_CONTROL, OAR_CONTROL]);
            }
        }
        EngineClass::Copy => offsets.extend([0x200, 0x204]),
        _ => {}
    }
    offsets
}

/// Returns the value in a saved image of a register with `value`. A masked register is saved with all write enables
/// set. `None` for a clock: it is not restored, so its saved value is undefined (V8-215).
fn in_image(offset: u32, value: u32) -> Option<u32> {
    match offset & 0x7ff {
        0x0c0 | 0x200 => Some(value | 0xffff_0000),
        0x358 => None,
        _ => Some(value),
    }
}

/// Where two states differ. Differences of one kind are likely to have one cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The reasons for the end of the run: names of the engine's and of the reference's.
    Stop(&'static str, &'static str),
    /// A part of the memory.
    Memory(&'static str),
    /// The entries of the GGTT.
    Ggtt,
    /// A register, by offset.
    Register(u32),
    /// A register in the context image, by offset.
    Image(u32),
    /// Memory was written that the context must not access.
    Harm,
}

/// Maximum number of differences that are printed.
const PRINTED: usize = 12;

/// The differences between the state of the engine and that of the reference; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement<K = Kind> {
    /// The kind of the first difference.
    pub kind: K,
    /// A line for each difference.
    pub lines: Vec<String>,
}

impl<K> fmt::Display for Disagreement<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines[..self.lines.len().min(PRINTED)].join("\n"))
    }
}

/// The result of a case.
pub struct Comparison {
    /// The engine's state.
    pub engine: FinalState,
    /// Reason for the end of the reference's run.
    pub stop: Stop,
    /// Number of commands that the reference executed.
    pub commands: u32,
    /// The differences, if there is one.
    pub disagreement: Option<Disagreement>,
}

/// Runs a case on the engine and on the reference, and compares the states and the memory that the context must not access.
/// The card is restored if such memory was written.
pub fn compare(worlds: &mut Worlds, case: &Case) -> Comparison {
    let info = XE_HPG.engines.info(case.engine);
    let mut registers: Vec<u32> = watched(info.class).into_iter().map(|offset| info.mmio_base + offset).collect();
    for base in [0x2000, 0x2_2000, 0x1_a000, 0x1c_0000, 0x1c_8000] {
        registers.extend((0x600..0x680).step_by(4).map(|offset| base + offset));
    }
    registers.sort_unstable();
    registers.dedup();
    let world = worlds.of(case.vf);
    let mut initial: BTreeMap<u32, u32> = world.initial(case.engine, &registers);
    initial.insert(info.mmio_base + 0x8c, world.register(info.mmio_base + 0x8c));
    for (offset, value) in [(0x358, TIMESTAMP as u32), (0x35c, (TIMESTAMP >> 32) as u32)] {
        initial.insert(info.mmio_base + offset, value);
    }
    let engine = world.run(&case.work(), &registers);
    let (reference, commands) = reference::run(case, &initial);
    let disagreement = match world.unharmed() {
        Ok(()) => disagreement(&engine, &reference),
        Err(harm) => {
            world.power_cycle();
            Some(Disagreement { kind: Kind::Harm, lines: vec![harm] })
        }
    };
    Comparison { engine, stop: reference.stop, commands, disagreement }
}

/// Returns the differences between the two states.
fn disagreement(engine: &FinalState, reference: &FinalState) -> Option<Disagreement> {
    let mut differences: Vec<(Kind, String)> = Vec::new();
    if engine.stop != reference.stop {
        let line = format!("stop: engine {:x?}, reference {:x?}", engine.stop, reference.stop);
        differences.push((Kind::Stop(engine.stop.name(), reference.stop.name()), line));
    }
    let (ours, theirs) = (&engine.memory, &reference.memory);
    let parts = [
        ("local memory", &ours.local, &theirs.local),
        ("guest memory", &ours.ram, &theirs.ram),
        ("guest memory by message", &ours.remote, &theirs.remote),
        ("another function's page", &ours.foreign, &theirs.foreign),
    ];
    for (name, ours, theirs) in parts {
        if ours == theirs {
            continue;
        }
        for (at, (a, b)) in ours.chunks_exact(4).zip(theirs.chunks_exact(4)).enumerate() {
            if a != b {
                let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("a dword"));
                let line = format!("{name} at {:#x}: engine {:#x}, reference {:#x}", at * 4, word(a), word(b));
                differences.push((Kind::Memory(name), line));
            }
        }
    }
    for (page, (a, b)) in GGTT_PAGES.zip(ours.entries.iter().zip(&theirs.entries)) {
        if a != b {
            differences.push((Kind::Ggtt, format!("GGTT entry {page:#x}: engine {a:#x}, reference {b:#x}")));
        }
    }
    for (offset, value) in &engine.registers {
        let expected = reference.registers[offset];
        if *value != expected {
            let line = format!("register {offset:#x}: engine {value:#x}, reference {expected:#x}");
            differences.push((Kind::Register(*offset), line));
        }
    }
    for (offset, value) in &engine.image {
        let expected = reference.image.get(offset).and_then(|value| in_image(*offset, *value));
        if expected.is_some_and(|expected| expected != *value) {
            let line = format!("image, {offset:#x}: engine {value:#x}, reference {:#x}", reference.image[offset]);
            differences.push((Kind::Image(*offset), line));
        }
    }
    let kind = differences.first()?.0.clone();
    Some(Disagreement { kind, lines: differences.into_iter().map(|(_, line)| line).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differential::layout::{BASE, PAGE, at};
    use crate::differential::world::Work;

    fn state(worlds: &mut Worlds) -> FinalState {
        let engine = XE_HPG.engines.all().next().unwrap();
        let ring = vec![0; 2];
        let work = Work { engine, head: 0, ring, batches: Vec::new(), fill: 0, interruptions: None, execlist: false };
        worlds.of(false).run(&work, &[])
    }

    #[test]
    fn changed_entry_beside_the_mapped_pages_is_a_disagreement() {
        let state = state(&mut Worlds::default());
        assert_eq!(disagreement(&state, &state), None);
        let mapped = BASE / PAGE..BASE / PAGE + at::END;
        assert!(GGTT_PAGES.start < mapped.start && mapped.end < GGTT_PAGES.end);
        for (n, page) in GGTT_PAGES.enumerate() {
            let mut other = state.clone();
            other.memory.entries[n] ^= 1;
            let found = disagreement(&other, &state).unwrap();
            assert_eq!(found.kind, Kind::Ggtt);
            assert!(found.to_string().starts_with(&format!("GGTT entry {page:#x}: ")), "{found}");
        }
    }

    #[test]
    fn fault_at_the_same_offset_of_the_other_half_is_a_disagreement() {
        use crate::differential::layout::{HIGH, Space};
        use crate::differential::world::Fault;
        let mut state = state(&mut Worlds::default());
        let fault = |page| Stop::Fault(Fault { space: Space::Ppgtt, page });
        state.stop = fault(BASE);
        let other = FinalState { stop: fault(HIGH + BASE), ..state.clone() };
        assert_eq!(disagreement(&state, &other).unwrap().kind, Kind::Stop("Fault", "Fault"));
    }
}
