//! MMIO remapping: a command names a register of one engine, and reaches that of the engine that executes it, so that a
//! buffer runs on whatever instance it is scheduled to (V8-046, trap T19; Intel media-driver
//! mhw_mi_hwcmd_xe_xpm.h, MMIO_REMAP_ENABLE).

use super::id::{EngineClass, EngineId, TRTT_REGISTERS, trtt};

/// First register and bytes of what each instance of an engine class has for itself.
type Block = (u32, u32);

/// Tables of engines that share one: render and compute have a common one, decode and enhancement one each, copy none.
fn table(class: EngineClass) -> Option<u8> {
    match class {
        EngineClass::Render | EngineClass::Compute => Some(0),
        EngineClass::VideoDecode => Some(1),
        EngineClass::VideoEnhance => Some(2),
        EngineClass::Copy => None,
    }
}

/// The blocks of an engine: that of its streamer, with its pipeline's where the two are one, and its TRTT registers.
fn blocks(engine: EngineId) -> [Option<Block>; 2] {
    let info = engine.info();
    let own = match info.class {
        EngineClass::VideoDecode | EngineClass::VideoEnhance => 0x4000,
        _ => 0x1000,
    };
    [Some((info.mmio_base, own)), trtt(info.class, info.instance).map(|first| (first, 4 * TRTT_REGISTERS))]
}

/// Where `register`, if it belongs to an engine of the same table, is on `engine`; an offset that nobody may touch where
/// the engine has none of its kind.
#[cold]
pub fn remap(engine: EngineId, register: u32) -> u32 {
    let Some(number) = table(engine.info().class) else { return register };
    let own = blocks(engine);
    EngineId::all()
        .filter(|other| table(other.info().class) == Some(number))
        .flat_map(|other| std::iter::zip(blocks(other), own))
        .filter_map(|(from, to)| Some((from?, to)))
        .find(|((first, bytes), _)| register.wrapping_sub(*first) < *bytes)
        .map_or(register, |((first, _), to)| to.map_or(u32::MAX, |(own, _)| own + (register - first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(class: EngineClass, instance: u8, register: u32) -> u32 {
        remap(EngineId::find(class, instance).unwrap(), register)
    }

    /// V8-124, trap T19: registers of instance 0 move to the executing instance, within the table of the class.
    #[test]
    fn registers_move_to_the_executing_instance() {
        use EngineClass::*;
        assert_eq!(on(VideoDecode, 2, 0x1c_0600), 0x1d_0600);
        assert_eq!(on(VideoDecode, 2, 0x1c_2834), 0x1d_2834, "HEVC goes along");
        assert_eq!(on(VideoDecode, 2, 0x1d_0600), 0x1d_0600, "its own stays");
        assert_eq!(on(VideoDecode, 1, 0x4424), 0x4444, "TRTT of VDBOX0");
        assert_eq!(on(VideoEnhance, 1, 0x4460), 0x4560);
        assert_eq!(on(Compute, 1, 0x2600), 0x1_c600, "render and compute share a table");
        assert_eq!(on(Render, 0, 0x1_a600), 0x2600);
        assert_eq!(on(Compute, 3, 0x4404), 0x45e4);
    }

    /// V8-124: what belongs to no engine of the table stays; what the executing instance does not have is nowhere.
    #[test]
    fn other_registers_stay() {
        use EngineClass::*;
        for register in [0x7004, 0x2_2600, 0x1c_8600, 0x4480, 0x4418, 0x1c_4000 - 0x4001] {
            assert_eq!(on(Compute, 0, register), register, "{register:#x}");
        }
        assert_eq!(on(VideoDecode, 0, 0x1c_8600), 0x1c_8600);
        assert_eq!(on(VideoDecode, 5, 0x4420), u32::MAX);
        assert_eq!(on(Copy, 0, 0x2600), 0x2600);
    }
}
