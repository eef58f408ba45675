// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Names of packets and of control, SQE, pipe and GPU registers, and their numbers. The names are those of Mesa's
//! register database, so that text can be exchanged with its tools.

mod gpu;
mod packets;
mod registers;

use std::borrow::Cow;

use crate::isa::Generation;

pub(crate) use gpu::gpu_register;
pub use packets::{PACKETS, Packet};

/// How many registers a name covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// One register.
    Word,
    /// A pair; the second is `NAME+0x1`.
    Double,
    /// An array; an element is `NAME[0xN].REG`.
    Array(u16),
    /// An array without a name for the register of an element, which is `NAME[0xN]+0`.
    Unnamed(u16),
}

/// A named register.
#[derive(Debug, Clone, Copy)]
pub struct Name {
    /// Number of the first register.
    pub number: u16,
    /// Name.
    pub name: &'static str,
    /// Registers that it covers.
    pub width: Width,
}

/// The control registers of a chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
pub enum ControlSet {
    /// a5xx
    A5,
    /// a6xx
    A6,
    /// a7xx
    A7,
    /// a7xx with firmware id 520
    A7Gen3,
}

impl ControlSet {
    /// The usual set of a generation.
    pub const fn of(generation: Generation) -> Self {
        match generation {
            Generation::A5 => Self::A5,
            Generation::A6 => Self::A6,
            Generation::A7 => Self::A7,
        }
    }

    /// The generation that has the set.
    pub const fn generation(self) -> Generation {
        match self {
            Self::A5 => Generation::A5,
            Self::A6 => Generation::A6,
            Self::A7 | Self::A7Gen3 => Generation::A7,
        }
    }
}

/// The register spaces that text names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// `@NAME`
    Control,
    /// `%NAME`
    Sqe,
    /// `|NAME`
    Pipe,
    /// Registers of the GPU.
    Gpu,
}

/// The names in a space.
pub const fn names(space: Space, set: ControlSet) -> &'static [Name] {
    match (space, set) {
        (Space::Control, ControlSet::A5) => registers::CONTROL_A5XX,
        (Space::Control, ControlSet::A6) => registers::CONTROL_A6XX,
        (Space::Control, ControlSet::A7) => registers::CONTROL_A7XX,
        (Space::Control, ControlSet::A7Gen3) => registers::CONTROL_A7XX_GEN3,
        // Mesa names the numbers on a5xx too, where they have no use.
        (Space::Sqe, _) => registers::SQE,
        (Space::Pipe, ControlSet::A5) | (Space::Gpu, ControlSet::A5) => &[],
        (Space::Pipe, ControlSet::A6) => registers::PIPE_A6XX,
        (Space::Pipe, _) => registers::PIPE_A7XX,
        (Space::Gpu, ControlSet::A6) => gpu::GPU_A6XX,
        (Space::Gpu, _) => gpu::GPU_A7XX,
    }
}

/// Returns the name of a register: `NAME`, `NAME+0x1`, `NAME[0xN].REG`, `NAME[0xN]+0`.
pub fn register_name(space: Space, set: ControlSet, number: u32) -> Option<Cow<'static, str>> {
    let table = names(space, set);
    let after = table.partition_point(|name| u32::from(name.number) <= number);
    let name = table.get(after.checked_sub(1)?)?;
    let index = number - u32::from(name.number);
    let element = |length, register| {
        (index < u32::from(length)).then(|| format!("{}[{}]{register}", name.name, hex_index(index)).into())
    };
    match name.width {
        Width::Array(length) => element(length, ".REG"),
        Width::Unnamed(length) => element(length, "+0"),
        Width::Double if index == 1 => Some(format!("{}+0x1", name.name).into()),
        _ => (index == 0).then_some(name.name.into()),
    }
}

/// Array indices are hexadecimal, with `0x` except for 0.
fn hex_index(index: u32) -> String {
    if index == 0 { "0".to_owned() } else { format!("{index:#x}") }
}

/// Returns the number of the register with this name, without offset.
pub fn register_number(space: Space, set: ControlSet, name: &str) -> Option<u32> {
    names(space, set).iter().find(|row| row.name == name).map(|row| u32::from(row.number))
}

/// The size of the packet table.
pub const PACKET_TABLE: usize = 128;

/// Returns the name of a packet in a generation.
pub fn packet_name(opcode: u8, generation: Generation) -> Option<&'static str> {
    PACKETS.iter().rev().find(|row| row.opcode == opcode && row.generations.has(generation)).map(|row| row.name)
}

/// Returns the name of a packet or its label `UNKNn`.
pub fn packet_label(opcode: u8, generation: Generation) -> Cow<'static, str> {
    packet_name(opcode, generation).map_or_else(|| format!("UNKN{opcode}").into(), Cow::Borrowed)
}

/// What a label means for the packet table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketLabel {
    /// The handler of this opcode.
    Handler(u8),
    /// The packet's name in other generations, and the generation's own name for its opcode.
    OtherGeneration(u8, &'static str),
    /// No packet.
    None,
}

/// Returns what a label means for the packet table of a generation (AF-106, AFC-053). Names of all generations are
/// accepted, because Mesa's sources use them.
pub fn packet_of_label(label: &str, generation: Generation) -> PacketLabel {
    if let Some(number) = label.strip_prefix("UNKN") {
        let opcode = number.parse().ok().filter(|opcode| usize::from(*opcode) < PACKET_TABLE);
        return opcode.map_or(PacketLabel::None, PacketLabel::Handler);
    }
    let mut rows = PACKETS.iter().filter(|row| row.name == label);
    if let Some(row) = rows.clone().find(|row| row.generations.has(generation)) {
        return PacketLabel::Handler(row.opcode);
    }
    match rows.next() {
        Some(row) => match packet_name(row.opcode, generation) {
            Some(own) => PacketLabel::OtherGeneration(row.opcode, own),
            // The opcode has no other name.
            None => PacketLabel::Handler(row.opcode),
        },
        None => PacketLabel::None,
    }
}

#[cfg(test)]
mod tests {
    use arctic_fidelity::proves;

    use super::*;

    const SETS: [ControlSet; 4] = [ControlSet::A5, ControlSet::A6, ControlSet::A7, ControlSet::A7Gen3];

    #[test]
    fn each_register_name_and_its_number_belong_together() {
        proves!([AF_060, AF_061], "each set of control registers has names and numbers, and pairs have NAME+0x1");
        for set in SETS {
            for space in [Space::Control, Space::Sqe, Space::Pipe, Space::Gpu] {
                let table = names(space, set);
                assert!(table.is_sorted_by_key(|name| name.number), "{space:?} {set:?}");
                for name in table.iter().filter(|name| matches!(name.width, Width::Word | Width::Double)) {
                    assert_eq!(register_name(space, set, u32::from(name.number)).as_deref(), Some(name.name));
                    assert_eq!(register_number(space, set, name.name), Some(u32::from(name.number)));
                }
            }
        }
        let name = |number| register_name(Space::Gpu, ControlSet::A6, number);
        assert_eq!(name(0x883).as_deref(), Some("CP_SCRATCH[0].REG"));
        assert_eq!(name(0x88a).as_deref(), Some("CP_SCRATCH[0x7].REG"));
        assert_eq!(name(0x831).as_deref(), Some("CP_SQE_INSTR_BASE+0x1"));
        assert_eq!(name(0x88b), None);
        assert_eq!(name(0x8d1).as_deref(), Some("CP_PERFCTR_CP_SEL[0x1]+0"));
        assert_eq!((name(0x86f).as_deref(), name(0x870)), (Some("CP_PROTECT[0x1f].REG"), None));
        assert_eq!(name(0xd600).as_deref(), Some("CP_EVENT_START"));
    }

    #[test]
    fn gpu_registers_of_a7xx_have_no_names_on_a6xx() {
        for (number, expected) in [
            (0x8ab, "CP_CONTEXT_SWITCH_LEVEL_STATUS"),
            (0x8e6, "CP_BV_PERFCTR_CP_SEL[0x6]+0"),
            (0xa99, "CP_BV_RB_RPTR_ADDR+0x1"),
            (0xbbd, "CP_AQE_STAT_DATA_1"),
        ] {
            assert_eq!(register_name(Space::Gpu, ControlSet::A6, number), None);
            for set in [ControlSet::A7, ControlSet::A7Gen3] {
                assert_eq!(register_name(Space::Gpu, set, number).as_deref(), Some(expected));
            }
        }
        assert_eq!(register_name(Space::Gpu, ControlSet::A7, 0xb83).as_deref(), Some("CP_LPAC_SQE_INSTR_BASE+0x1"));
    }

    #[test]
    fn packet_names_depend_on_the_generation() {
        proves!(AF_100, "packets have names, which depend on the generation");
        proves!(AF_106, "UNKNn is the label of the handler of opcode n");
        assert_eq!(packet_name(0x14, Generation::A6), Some("CP_WAIT_MEM_GTE"));
        assert_eq!(packet_name(0x14, Generation::A7), Some("CP_WAIT_TIMESTAMP"));
        assert_eq!(packet_of_label("CP_LOAD_STATE4", Generation::A5), PacketLabel::Handler(0x30));
        let other = PacketLabel::OtherGeneration(0x46, "CP_EVENT_WRITE7");
        assert_eq!(packet_of_label("CP_EVENT_WRITE", Generation::A7), other);
        assert_eq!(packet_of_label("CP_PREEMPT_TOKEN", Generation::A6), PacketLabel::Handler(0x1e));
        assert_eq!(packet_of_label("UNKN127", Generation::A6), PacketLabel::Handler(127));
        assert_eq!(packet_of_label("UNKN128", Generation::A6), PacketLabel::None);
        for generation in Generation::ALL {
            for opcode in 0..128 {
                let label = packet_label(opcode, generation);
                assert_eq!(packet_of_label(&label, generation), PacketLabel::Handler(opcode));
            }
        }
    }
}
