// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Runs work on the engine and on the reference, and compares the resulting states.

use std::collections::BTreeMap;

use arctic_device_model::generation::XE_HPG;
use arctic_device_model::topology::EngineClass;

use crate::differential::grammar::Case;
use crate::differential::layout;
use crate::differential::reference;
use crate::differential::world::{Left, World};

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
fn watched(class: EngineClass) -> Vec<u32> {
    let mut offsets: Vec<u32> = (0x600..0x680).step_by(4).collect();
    offsets.extend([0x094, 0x0c0, 0x158, 0x1fc, 0x21c, 0x3b4, 0x3b8, 0x3bc, 0x41c]);
    offsets.extend([0x098, 0x0b0, 0x0b4, 0x0b8, 0x214, 0x23c, 0x248, 0x24c, 0x4d0, 0x4d4, 0x4d8, 0x4dc]);
    match class {
        EngineClass::Render | EngineClass::Compute => {
            offsets.extend((0x400..0x41c).step_by(4));
            offsets.extend([0x500, 0x504, 0x508]);
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

/// Returns the states of the engine and of the reference after a case, and the number of commands that the reference
/// executed.
pub fn both(worlds: &mut Worlds, case: &Case) -> (Left, Left, u32) {
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
    for (offset, value) in [(0x358, layout::TIMESTAMP as u32), (0x35c, (layout::TIMESTAMP >> 32) as u32)] {
        initial.insert(info.mmio_base + offset, value);
    }
    let engine = world.run(&case.work(), &registers);
    let (reference, commands) = reference::run(case, &initial);
    (engine, reference, commands)
}

/// Describes the differences between the two states.
pub fn disagreement(engine: &Left, reference: &Left) -> Option<String> {
    let mut lines = Vec::new();
    if engine.stop != reference.stop {
        lines.push(format!("stop: engine {:x?}, reference {:x?}", engine.stop, reference.stop));
    }
    let parts = [
        ("local memory", &engine.home, &reference.home),
        ("guest memory", &engine.ram, &reference.ram),
        ("guest memory by message", &engine.remote, &reference.remote),
        ("another function's page", &engine.foreign, &reference.foreign),
    ];
    for (name, ours, theirs) in parts {
        if ours == theirs {
            continue;
        }
        for (at, (a, b)) in ours.chunks_exact(4).zip(theirs.chunks_exact(4)).enumerate() {
            if a != b {
                let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("a dword"));
                lines.push(format!("{name} at {:#x}: engine {:#x}, reference {:#x}", at * 4, word(a), word(b)));
            }
        }
    }
    if engine.entries[layout::at::WINDOW as usize..] != reference.entries[..] {
        lines.push(format!("entries: engine {:x?}, reference {:x?}", engine.entries, reference.entries));
    }
    for (offset, value) in &engine.registers {
        let expected = reference.registers[offset];
        if *value != expected {
            lines.push(format!("register {offset:#x}: engine {value:#x}, reference {expected:#x}"));
        }
    }
    for (offset, value) in &engine.image {
        let expected = reference.image.get(offset).and_then(|value| in_image(*offset, *value));
        if expected.is_some_and(|expected| expected != *value) {
            lines.push(format!("image, {offset:#x}: engine {value:#x}, reference {:#x}", reference.image[offset]));
        }
    }
    lines.truncate(12);
    (!lines.is_empty()).then(|| lines.join("\n"))
}
