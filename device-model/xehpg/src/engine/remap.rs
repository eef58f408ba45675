// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! MMIO remapping. A command that encodes a register of one engine accesses the corresponding register of the executing
//! engine, so a batch buffer can run on any instance (V8-046, vol8.md note T19; Intel media-driver
//! mhw_mi_hwcmd_xe_xpm.h, MMIO_REMAP_ENABLE).

use crate::topology::{EngineClass, EngineId, EngineInfo, EngineTable, TRTT_REGISTERS, trtt};

/// First register offset and size in bytes of a block that each instance of an engine class has.
type Block = (u32, u32);

/// Returns the index of the remap table of an engine class. Render and compute share a table, decode and enhancement
/// have one each, copy has none.
fn table(class: EngineClass) -> Option<u8> {
    match class {
        EngineClass::Render | EngineClass::Compute => Some(0),
        EngineClass::VideoDecode => Some(1),
        EngineClass::VideoEnhance => Some(2),
        EngineClass::Copy => None,
    }
}

/// Returns the register blocks of an engine: the command streamer's block, which includes a contiguous media pipeline
/// block, and the TRTT registers.
fn blocks(info: &EngineInfo) -> [Option<Block>; 2] {
    let own = match info.class {
        EngineClass::VideoDecode | EngineClass::VideoEnhance => 0x4000,
        _ => 0x1000,
    };
    [Some((info.mmio_base, own)), trtt(info.class, info.instance).map(|first| (first, 4 * TRTT_REGISTERS))]
}

/// Returns the register on `engine` that corresponds to `register`, if `register` belongs to an engine that uses the
/// same table. Returns an inaccessible offset if `engine` has no such register.
#[cold]
#[allow(
    clippy::arithmetic_side_effects,
    reason = "the register lies in the first block of the pair, and the second is as long and ends below 4 MiB"
)]
pub fn remap(engines: EngineTable, engine: EngineId, register: u32) -> u32 {
    let engine = engines.info(engine);
    let Some(number) = table(engine.class) else { return register };
    let own = blocks(engine);
    engines
        .list()
        .iter()
        .filter(|other| table(other.class) == Some(number))
        .flat_map(|other| std::iter::zip(blocks(other), own))
        .filter_map(|(from, to)| Some((from?, to)))
        .find(|((first, bytes), _)| register.wrapping_sub(*first) < *bytes)
        .map_or(register, |((first, _), to)| to.map_or(u32::MAX, |(own, _)| own + (register - first)))
}

#[cfg(test)]
mod tests {
    use arctic_fidelity::proves;

    use super::*;
    use crate::topology::XE_HPG_ENGINES;

    fn on(class: EngineClass, instance: u8, register: u32) -> u32 {
        remap(XE_HPG_ENGINES, XE_HPG_ENGINES.find(class, instance).unwrap(), register)
    }

    #[test]
    fn registers_map_to_the_executing_instance() {
        proves!(
            V8_124,
            "registers of instance 0 map to the executing instance, within the table of the class (vol8.md note \
            T19)"
        );
        use EngineClass::*;
        assert_eq!(on(VideoDecode, 2, 0x1c_0600), 0x1d_0600);
        assert_eq!(on(VideoDecode, 2, 0x1c_2834), 0x1d_2834, "the HEVC block is remapped too");
        assert_eq!(on(VideoDecode, 2, 0x1d_0600), 0x1d_0600, "own registers are unchanged");
        assert_eq!(on(VideoDecode, 1, 0x4424), 0x4444, "TRTT of VDBOX0");
        assert_eq!(on(VideoEnhance, 1, 0x4460), 0x4560);
        assert_eq!(on(Compute, 1, 0x2600), 0x1_c600, "render and compute share a table");
        assert_eq!(on(Render, 0, 0x1_a600), 0x2600);
        assert_eq!(on(Compute, 3, 0x4404), 0x45e4);
    }

    #[test]
    fn other_registers_are_not_remapped() {
        proves!(
            V8_124,
            "registers outside the table are not remapped. Registers that the executing instance does not have map \
            to an inaccessible offset"
        );
        use EngineClass::*;
        for register in [0x7004, 0x2_2600, 0x1c_8600, 0x4480, 0x4418, 0x1c_4000 - 0x4001] {
            assert_eq!(on(Compute, 0, register), register, "{register:#x}");
        }
        assert_eq!(on(VideoDecode, 0, 0x1c_8600), 0x1c_8600);
        assert_eq!(on(VideoDecode, 5, 0x4420), u32::MAX);
        assert_eq!(on(Copy, 0, 0x2600), 0x2600);
    }
}
