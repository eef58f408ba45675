// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! MI_ATOMIC: operations, sizes, operands and return values (V8-133).

use super::commands::{gpr, gpr_of};
use super::*;
use crate::command::FieldKind;
use crate::command::mi::fields::ATOMIC_OPCODE;
use crate::host::{Access, DmaFault, DmaView};
use arctic_fidelity::proves;
use vm_memory::VolatileSlice;

const AT: u32 = (VA + DATA) as u32;
const RETURN: u32 = 1 << 16;
const CS_STALL: u32 = 1 << 17;
const INLINE: u32 = 1 << 18;

/// Returns MI_ATOMIC with operands in registers.
fn atomic(opcode: u32, flags: u32) -> [u32; 3] {
    [MI_ATOMIC | 1 | opcode << 8 | flags, AT, 0]
}

/// Returns MI_ATOMIC with the operands in the command, with alternating dwords.
fn inline(opcode: u32, flags: u32, first: [u64; 2], second: [u64; 2]) -> [u32; 11] {
    let dword = |value: u64, n: u32| (value >> (32 * n)) as u32;
    let mut command = [0; 11];
    command[..3].copy_from_slice(&[MI_ATOMIC | 9 | INLINE | opcode << 8 | flags, AT, 0]);
    for n in 0..4 {
        let (index, half) = (n / 2, n as u32 % 2);
        command[3 + 2 * n] = dword(first[index], half);
        command[4 + 2 * n] = dword(second[index], half);
    }
    command
}

/// Dword test vectors: operation, old value, operands, new value.
const DWORDS: &[(u32, u32, u32, u32, u32)] = &[
    (0x01, 0xf0, 0x3c, 0, 0x30),
    (0x02, 0xf0, 0x0f, 0, 0xff),
    (0x03, 0xff, 0x0f, 0, 0xf0),
    (0x04, 1, 2, 0, 2),
    (0x05, u32::MAX, 7, 0, 0),
    (0x06, 0, 7, 0, u32::MAX),
    (0x07, 5, 6, 0, 11),
    (0x08, 5, 6, 0, u32::MAX),
    (0x09, 5, 6, 0, 1),
    (0x0a, u32::MAX, 3, 0, 3),
    (0x0a, 4, 3, 0, 4),
    (0x0b, u32::MAX, 3, 0, u32::MAX),
    (0x0b, 4, 3, 0, 3),
    (0x0c, u32::MAX, 3, 0, u32::MAX),
    (0x0d, u32::MAX, 3, 0, 3),
    (0x0e, 7, 7, 9, 9),
    (0x0e, 7, 8, 9, 7),
];

#[test]
fn operations() {
    proves!(
        V8_133,
        "all operations on dwords and qwords, with operands in the command and in GPR0 and GPR2. The old value is \
        returned in GPR4 if enabled, for a dword only in the low half. Adjacent memory is unchanged"
    );
    let widen = |value: u32| if value == u32::MAX { u64::MAX } else { u64::from(value) << 36 | u64::from(value) };
    let qwords = DWORDS.iter().map(|&(operation, old, first, second, new)| match operation {
        // Increment, decrement and subtraction need separate qword vectors. The others repeat the value in both halves.
        0x05 | 0x06 => (
            operation | 0x20,
            u64::from(old),
            first.into(),
            0,
            u64::from(old).wrapping_add(if operation == 5 { 1 } else { u64::MAX }),
        ),
        0x08 => (operation | 0x20, 5 << 36, 6 << 36, 0, u64::MAX << 36),
        0x09 => (operation | 0x20, 5 << 36, 6 << 36, 0, 1 << 36),
        _ => (operation | 0x20, widen(old), widen(first), widen(second), widen(new)),
    });
    let dwords = DWORDS.iter().map(|&(operation, old, first, second, new)| {
        (operation, u64::from(old), u64::from(first), u64::from(second), u64::from(new))
    });
    for (opcode, old, first, second, new) in dwords.chain(qwords) {
        let qword = opcode & 0x20 != 0;
        let mut bench = EngineBench::new(EngineClass::Copy);
        let beside = if qword { 0 } else { 0x5555_5555 << 32 };
        let (was, becomes) = (old | beside, new | beside);
        let kept = 0x6666_6666_0000_0000u64;
        let returned = if qword { old } else { kept | old };
        for flags in [RETURN, RETURN | CS_STALL | u32::from(qword) << 19, 0] {
            for in_registers in [false, true] {
                bench.put64(DATA, was);
                let mut batch = gpr(4, kept).to_vec();
                if in_registers {
                    batch.extend([gpr(0, first), gpr(2, second)].concat());
                    batch.extend(atomic(opcode, flags));
                } else {
                    batch.extend([gpr(0, 0x99), gpr(2, 0x99)].concat());
                    batch.extend(inline(opcode, flags, [first, 0x99], [second, 0x99]));
                }
                assert_eq!(bench.batch(&batch), Outcome::Complete);
                assert_eq!(bench.get64(DATA), becomes, "{opcode:#x} {old:#x} {first:#x}");
                let expected = if flags & RETURN != 0 { returned } else { kept };
                assert_eq!(gpr_of(&bench, 4), expected, "{opcode:#x} returns the old value");
            }
        }
    }
}

#[test]
fn predecrement() {
    proves!(V8_133, "predecrement returns the new value");
    for (opcode, returned) in [(0x0f, 4), (0x2f, 4)] {
        let mut bench = EngineBench::new(EngineClass::Copy);
        bench.put64(DATA, 5);
        assert_eq!(bench.batch(&atomic(opcode, RETURN)), Outcome::Complete);
        assert_eq!((bench.get64(DATA), gpr_of(&bench, 4)), (4, returned));
    }
}

#[test]
fn sixteen_bytes() {
    proves!(V8_133, "a 16-byte compare and write returns the old value in GPR4 and GPR5");
    let mut bench = EngineBench::new(EngineClass::Render);
    for (second_matches, becomes) in [(true, [3, 4]), (false, [1, 2])] {
        for in_registers in [false, true] {
            bench.put64(DATA, 1);
            bench.put64(DATA + 8, 2);
            let high = if second_matches { 2 } else { 9 };
            let batch = if in_registers {
                let operands = [gpr(0, 1), gpr(1, high), gpr(2, 3), gpr(3, 4)].concat();
                [&operands[..], &atomic(0x4e, RETURN | 2 << 19)].concat()
            } else {
                inline(0x4e, RETURN | 2 << 19, [1, high], [3, 4]).to_vec()
            };
            assert_eq!(bench.batch(&batch), Outcome::Complete);
            assert_eq!([bench.get64(DATA), bench.get64(DATA + 8)], becomes);
            assert_eq!((gpr_of(&bench, 4), gpr_of(&bench, 5)), (1, 2));
        }
    }
}

#[test]
fn post_sync_operations() {
    proves!(
        V8_133,
        "operands of a post-sync operation are in the command, a qword in two consecutive dwords. No value is \
        returned. Unsupported post-sync operations and reserved operations are illegal commands"
    );
    let command = |opcode: u32, first: u32, second: u32| {
        [MI_ATOMIC | 9 | INLINE | POST_SYNC | RETURN | opcode << 8, AT, 0, first, second, 8, 8, 8, 8, 8, 8]
    };
    for (opcode, first, second, new) in [(0x27, 1, 2, 0x2_0000_0006u64), (0x07, 1, 2, 6), (0x0e, 5, 9, 9)] {
        let mut bench = EngineBench::new(EngineClass::Render);
        bench.put64(DATA, 5);
        assert_eq!(bench.batch(&command(opcode, first, second)), Outcome::Complete);
        assert_eq!((bench.get64(DATA), gpr_of(&bench, 4)), (new, 0), "{opcode:#x}");
    }
    let reserved =
        [0x00, 0x10, 0x1f, 0x20, 0x30, 0x40, 0x47, 0x60, 0x87, 0xff].map(|opcode| inline(opcode, 0, [1, 0], [1, 0]));
    for invalid in reserved.into_iter().chain([command(0x2e, 5, 9), command(0x4e, 5, 9)]) {
        let mut bench = EngineBench::new(EngineClass::Render);
        bench.put64(DATA, 5);
        let outcome = bench.batch(&invalid);
        assert!(matches!(outcome, Outcome::Halted(Halt::IllegalCommand { .. })), "{:#x}: {outcome:?}", invalid[0]);
        assert_eq!(bench.get64(DATA), 5);
    }
}

/// The table of opcodes is for the disassembler; the engine decodes operation and size.
#[test]
fn exactly_the_opcodes_of_the_table_are_executed() {
    let FieldKind::Enum(opcodes) = ATOMIC_OPCODE.kind else { panic!("not a list of opcodes") };
    let executed = |opcode: &u32| {
        let outcome = EngineBench::new(EngineClass::Copy).batch(&inline(*opcode, 0, [0; 2], [0; 2]));
        assert!(matches!(outcome, Outcome::Complete | Outcome::Halted(Halt::IllegalCommand { .. })), "{outcome:?}");
        outcome == Outcome::Complete
    };
    let expected: Vec<u32> = opcodes.iter().map(|(opcode, _)| *opcode).collect();
    assert_eq!((0..=0xff).filter(executed).collect::<Vec<_>>(), expected);
}

/// 16 bytes of guest memory at IOVA 0, accessed by messages.
#[derive(Clone, Default)]
struct RemoteGuest(Arc<Mutex<[u8; 16]>>);

impl DmaView for RemoteGuest {
    fn slice(&self, _: u64, _: usize, _: Access) -> Option<VolatileSlice<'_>> {
        None
    }

    fn read_remote(&self, iova: u64, data: &mut [u8]) -> Result<(), DmaFault> {
        data.copy_from_slice(&self.0.lock().unwrap()[iova as usize..][..data.len()]);
        Ok(())
    }

    fn write_remote(&self, iova: u64, data: &[u8]) -> Result<(), DmaFault> {
        self.0.lock().unwrap()[iova as usize..][..data.len()].copy_from_slice(data);
        Ok(())
    }
}

impl Dma for RemoteGuest {
    fn view(&self, _: Function) -> Arc<dyn DmaView> {
        Arc::new(self.clone())
    }
}

/// Such memory has no atomic access. The operations are executed as a read and a write, which the report shows.
#[test]
fn atomics_on_guest_memory_without_a_mapping_are_counted() {
    const GUEST_VA: u64 = VA + (200 << 20);
    let guest = RemoteGuest::default();
    let mut bench = EngineBench::beside(EngineClass::Copy, Arc::new(guest.clone()));
    bench.put64(ROOT + 0x2000 + 8 * 100, 0x83);
    let on = |at: u64, opcode: u32| [MI_ATOMIC | 1 | opcode << 8, at as u32, 0];
    let batch = [on(GUEST_VA, 0x05), on(GUEST_VA + 8, 0x25), on(VA + DATA, 0x05), on(NULL_VA, 0x05)].concat();
    assert_eq!(bench.batch(&batch), Outcome::Complete);
    assert_eq!(*guest.0.lock().unwrap(), [1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    let counted = ("atomics as a read and a write, by messages".to_owned(), 2);
    assert_eq!(bench.engine.counters().nonzero(), [counted].into());
}

#[test]
fn atomics_are_in_order() {
    proves!(
        [V8_133, V8_202],
        "an atomic observes earlier stores of the engine, and the next command observes its result"
    );
    let mut bench = EngineBench::new(EngineClass::Copy);
    let batch =
        [&store(VA + DATA, 5)[..], &atomic(0x05, 0), &[MI_LOAD_REGISTER_MEM | CS_MMIO | 2, 0x600, AT, 0]].concat();
    assert_eq!(bench.batch(&batch), Outcome::Complete);
    assert_eq!(bench.own(0x600), 6);
}
