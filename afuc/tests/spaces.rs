// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What instructions reach: control and SQE registers, queues, registers of the GPU, pipe registers, memory.

#[path = "common/steps.rs"]
mod steps;

use arctic_afuc::machine::{Effect, FaultKind, INSTR_BASE, Stop};
use arctic_fidelity::proves;
use steps::{DATA, fault, image, run, run_on, to_waitin};

#[test]
fn control_registers_are_read_at_once_and_pre_increment() {
    proves!(AF_054, "the number of a control register is the sum of a register and an offset of 12 bits");
    proves!(AF_055, "pre-increment writes the number back to the register");
    proves!(AF_058, "a write is read at once");
    proves!(AF_060, "control registers have names");
    let source = "mov $05, 0x100\ncwrite $02, [$05 + 0x2]!\ncread $04, [$00 + 0x102]\ncread $06, [$05 + 0x1]!";
    let machine = run(source, [0x55, 0]);
    assert_eq!(machine.gpr[4..7], [0x55, 0x103, 0]);
    let machine =
        run("mov $05, 0x103\ncwrite $02, [$05 + 0x5]\ncread $04, [$05 + 0x5]\ncread $06, [$00 + 0x108]", [9, 0]);
    assert_eq!(machine.gpr[4..7], [9, 0x103, 9]);
    let machine = run("cwrite $02, [$00 + @LOAD_STORE_HI]\ncread $04, [$00 + 0x58]", [9, 0]);
    assert_eq!(machine.gpr[4], 9);
}

/// AF-057: 0x100 to 0x2ff are storage.
#[test]
fn scratch_control_registers_keep_their_values() {
    let source = "mov $rem, 0x200\nmov $05, 0xff\n(rep)cwrite $02, [$05 + 0x1]!\ncread $04, [$00 + 0x17f]\ncread $06, [$00 + 0x2ff]";
    let machine = run_on(6, source, [0x77, 0]);
    assert_eq!((machine.gpr[4], machine.gpr[5], machine.gpr[6]), (0x77, 0x2ff, 0x77));
}

#[test]
fn sqe_registers_are_read_and_written() {
    proves!(AF_062, "swrite writes the registers of the processor itself");
    let machine = run("swrite $02, [$00 + %PREEMPT_INSTR]\nsread $04, [$00 + %PREEMPT_INSTR]", [0x123, 0]);
    assert_eq!((machine.gpr[4], machine.sqe[4]), (0x123, 0x123));
}

/// A copy from memory to memory, with addresses of 64 bits.
#[test]
fn memdata_reads_consecutive_words() {
    proves!(AF_065, "$memdata is the next word at MEM_READ_ADDR");
    proves!(AF_081, "on a6xx words are written through NRT_ADDR and NRT_DATA");
    let source = "cwrite $02, [$00 + @MEM_READ_ADDR]\ncwrite $04, [$00 + @MEM_READ_ADDR+0x1]\nmov $rem, 0x3\n\
                  cwrite $rem, [$00 + @MEM_READ_DWORDS]\nmov $addr, |NRT_ADDR << 24\nmov $data, $03\nmov $data, $04\n\
                  mov $addr, 0xa204 << 16\n(rep)mov $data, $memdata";
    for high in [0, 9_u32] {
        let (base, low) = (u64::from(high) << 32 | DATA, u32::try_from(DATA).unwrap());
        let mut machine = image(&format!(".gen 6\n{source}\nwaitin\nnop\n"));
        machine.bus.memory.map(base, 0x1000);
        machine.gpr[2..5].copy_from_slice(&[low, low + 0x100, high]);
        (0..3).for_each(|n| machine.bus.memory.write(base + n * 4, 10 + u32::try_from(n).unwrap()).unwrap());
        let machine = to_waitin(machine, source);
        let expected: Vec<Effect> = (0..3).map(|n| Effect::Memory(base + 0x100 + u64::from(n) * 4, 10 + n)).collect();
        assert_eq!(machine.bus.effects, expected);
        assert_eq!([0x18, 0x19, 0x1a].map(|number| machine.bus.read_control(number)), [low + 12, high, 0]);
    }
}

#[test]
fn reads_of_memory_are_not_cached() {
    proves!(AF_068, "load and $memdata have the word that memory has when they are executed");
    let source = "load $04, [$02 + 0x0]\nstore $03, [$02 + 0x0]\nload $05, [$02 + 0x0]\n\
                  cwrite $02, [$00 + @MEM_READ_ADDR]\ncwrite $00, [$00 + @MEM_READ_DWORDS]\nmov $06, $memdata\n\
                  store $00, [$02 + 0x0]\nmov $07, $memdata";
    let mut machine = image(&format!(".gen 6\n{source}\nwaitin\nnop\n"));
    [machine.gpr[2], machine.gpr[3]] = [u32::try_from(DATA).unwrap(), 8];
    machine.bus.memory.write(DATA, 7).unwrap();
    assert_eq!(to_waitin(machine, source).gpr[4..8], [7, 8, 8, 0]);
}

#[test]
fn regdata_reads_consecutive_registers() {
    proves!(AF_066, "$regdata is the next register at REG_READ_ADDR");
    let source = "cwrite $02, [$00 + @REG_READ_ADDR]\ncwrite $03, [$00 + @REG_READ_DWORDS]\nmov $04, $regdata\nmov $05, $regdata";
    let mut machine = image(&format!(".gen 7\n{source}\nwaitin\nnop\n"));
    [machine.gpr[2], machine.gpr[3]] = [0x500, 2];
    (machine.bus.gpu[0x500], machine.bus.gpu[0x501]) = (7, 8);
    assert_eq!(machine.run(100), Stop::Idle);
    assert_eq!(machine.gpr[4..6], [7, 8]);
    assert_eq!([0x39, 0x38].map(|number| machine.bus.read_control(number)), [0x502, 0]);
}

/// Each level reads its own buffer, at an address of 64 bits, and `$rem` falls with each word.
#[test]
fn data_reads_the_queue_of_the_current_level() {
    proves!(AF_059, "the registers of the levels are four apart");
    proves!(AF_064, "$data is the next word of the level in IB_LEVEL, and lowers $rem");
    let arm = |level: u32| {
        format!(
            "mov $05, {:#x}\ncwrite $02, [$05 + @IB1_BASE]\ncwrite $0a, [$05 + @IB1_BASE+0x1]\n\
             cwrite $03, [$05 + @IB1_DWORDS]\nadd $02, $02, 0x100\nmov $0a, 0x1\n",
            level * 4
        )
    };
    let source = format!(
        "{}{}mov $rem, 0x5\nmov $05, 0x1\ncwrite $05, [$00 + @IB_LEVEL]\nmov $04, $data\nmov $05, 0x2\n\
         cwrite $05, [$00 + @IB_LEVEL]\nmov $06, $data\nmov $07, $data\nmov $05, 0x1\ncwrite $05, [$00 + @IB_LEVEL]\n\
         mov $08, $data\ncwrite $00, [$00 + @IB_LEVEL]\nmov $09, $rem\nmov $rem, 0x0",
        arm(0),
        arm(1)
    );
    for generation in [6, 7] {
        let mut machine = image(&format!(".gen {generation}\n{source}\nwaitin\nnop\n"));
        [machine.gpr[2], machine.gpr[3]] = [u32::try_from(DATA).unwrap(), 3];
        // The address of the second level has a high half.
        machine.bus.memory.map(1 << 32 | DATA, 0x1000);
        for n in 0..3 {
            machine.bus.memory.write(DATA + u64::from(n) * 4, 0x10 + n).unwrap();
            machine.bus.memory.write(DATA + (1 << 32) + 0x100 + u64::from(n) * 4, 0x20 + n).unwrap();
        }
        assert_eq!(machine.run(100), Stop::Idle);
        assert_eq!(machine.gpr[4], 0x10);
        assert_eq!(machine.gpr[6..10], [0x20, 0x21, 0x11, 1]);
    }
}

#[test]
fn register_writes_increment_their_address_unless_bit_18_is_set() {
    proves!(AF_070, "$data writes the register and counts the address up");
    proves!(AF_071, "bit 18 of the address keeps it");
    proves!(AF_074, "REG_WRITE counts its address up and keeps the flags above bit 15");
    let source = "mov $addr, 0x123\nmov $data, $02\nmov $data, $03\nmov $05, 0x4 << 16\nor $addr, $05, 0x200\n\
                  mov $data, $02\nmov $data, $03\nmov $05, 0x9 << 16\nor $05, $05, 0x300\n\
                  cwrite $05, [$00 + @REG_WRITE_ADDR]\ncwrite $02, [$00 + @REG_WRITE]\ncwrite $03, [$00 + @REG_WRITE]\n\
                  cread $04, [$00 + @REG_WRITE_ADDR]";
    let machine = run(source, [1, 2]);
    let writes = [(0x123, 1), (0x124, 2), (0x200, 1), (0x200, 2), (0x300, 1), (0x301, 2)];
    assert_eq!(machine.bus.effects, writes.map(|(number, value)| Effect::Register(number, value)));
    assert_eq!(machine.gpr[4], 0x9_0302);
}

/// Void registers act on the address (AF-077).
#[test]
fn pipe_registers_are_selected_by_the_top_byte() {
    proves!(AF_076, "the top byte of the address selects a pipe register");
    proves!(AF_078, "the step of pipe registers is in the top byte");
    proves!(AF_082, "bit 0 of NRT_ADDR keeps the address and is no part of it");
    let low = u32::try_from(DATA).unwrap();
    let source = "mov $addr, 0x84 << 24\nmov $addr, 0xa0 << 24\nmov $data, $02\nmov $data, $00\nmov $addr, 0xa204 << 16\n\
                  mov $data, $03\nmov $data, $03";
    let at = |offset: u64| Effect::Memory(DATA + offset, 9);
    assert_eq!(run(source, [low, 9]).bus.effects, [Effect::Pipe(0x84, 0), at(0), at(4)]);
    assert_eq!(run(source, [low | 1, 9]).bus.effects, [Effect::Pipe(0x84, 0), at(0), at(0)]);
    // Without bit 18 the third write goes to NRT_DATA.
    let source = "mov $addr, 0xa0 << 24\nmov $data, $02\nmov $data, $00\nmov $data, $03";
    assert_eq!(run(source, [low, 9]).bus.effects, [at(0)]);
    assert_eq!(run("mov $addr, 0xe7 << 24\nmov $data, $03", [0, 9]).bus.effects, [Effect::Pipe(0xe7, 9)]);
}

/// The high half comes from LOAD_STORE_HI, and the low half wraps (AF-083).
#[test]
fn load_and_store_use_load_store_hi() {
    proves!(AF_084, "accesses that are not aligned or not mapped are faults");
    let high = u32::try_from(INSTR_BASE >> 32).unwrap();
    let source =
        "cwrite $02, [$00 + @LOAD_STORE_HI]\nload $04, [$03 + 0x4]!\nload $05, [$03 + 0x4]!\nstore $05, [$03 + 0x8]";
    let mut machine = image(&format!(".gen 6\n{source}\nwaitin\nnop\n"));
    [machine.gpr[2], machine.gpr[3]] = [high, 0u32.wrapping_sub(4)];
    assert_eq!(machine.run(100), Stop::Idle);
    let words = [0, 4].map(|offset| machine.bus.memory.read(INSTR_BASE + offset).unwrap());
    assert_eq!((machine.gpr[4..6].to_vec(), machine.gpr[3]), (words.to_vec(), 4));
    assert_eq!(machine.bus.effects, [Effect::Memory(INSTR_BASE + 12, words[1])]);
    assert_eq!(fault(image(".gen 6\nload $04, [$00 + 0x0]\n")), FaultKind::Unmapped(0));
    assert_eq!(fault(image(".gen 6\nstore $04, [$00 + 0x1]\n")), FaultKind::Unaligned(1));
}

/// `waitin` leaves the header to its slot; the handler is chosen by what `$01` holds then.
#[test]
fn waitin_dispatches_on_the_header_in_register_01() {
    proves!(AF_095, "waitin does not take the header, and dispatches on it after its delay slot");
    proves!(AF_096, "the table is indexed by the opcode of type 7, and by 4 for type 4");
    proves!(AF_098, "$rem is the count of the header, and $01 has no type for type 4");
    proves!(AF_118, "the dispatch of waitin follows its delay slot");
    let long: Vec<u32> = std::iter::once(0x7010_8096).chain(0..150).collect();
    let source = "[016ee001]\n[#jumptbl]\nmov $02, #handler\nmov $03, 0x10\ncwrite $03, [$00 + @PACKET_TABLE_WRITE_ADDR]\n\
                  cwrite $02, [$00 + @PACKET_TABLE_WRITE]\nmov $03, 0x4\ncwrite $03, [$00 + @PACKET_TABLE_WRITE_ADDR]\n\
                  cwrite $02, [$00 + @PACKET_TABLE_WRITE]\nwaitin\nmov $01, $data\nhandler:\nmov $04, $01\nmov $05, $rem\n\
                  (rep)mov $06, $data\nwaitin\nmov $01, $data\njumptbl:\n";
    for (words, header, rem, last) in [
        (vec![0x7010_0002, 7, 8], 0x7010_0002, 2, 8),
        (vec![0x4805_0001, 9], 0x0805_0001, 1, 9),
        (long, 0x7010_8096, 150, 149),
    ] {
        let mut machine = image(source);
        let words = [&words[..]].concat();
        (0..).zip(&words).for_each(|(n, word)| machine.bus.memory.write(DATA + n * 4, *word).unwrap());
        machine.submit(DATA, u32::try_from(words.len()).unwrap());
        assert_eq!(machine.run(1_000), Stop::Idle, "{:?}", machine.packet());
        assert_eq!(machine.gpr[4..7], [header, rem, last]);
    }
}
