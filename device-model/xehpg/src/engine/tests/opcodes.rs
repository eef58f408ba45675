// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Comparison of the command table with Volume 8: opcodes, engines, lengths, and handling of unlisted opcodes
//! (V8-095..100).

use super::*;
use crate::command::mi;
use crate::command::mi::COMMANDS;
use arctic_fidelity::proves;

const ALL: &[EngineClass] = &EngineClass::BY_GUC;
const RENDER_COPY: &[EngineClass] = &[EngineClass::Render, EngineClass::Copy];
const RENDER_COMPUTE: &[EngineClass] = &[EngineClass::Render, EngineClass::Compute];
const RENDER: &[EngineClass] = &[EngineClass::Render];
const NOT_RENDER: &[EngineClass] =
    &[EngineClass::VideoDecode, EngineClass::VideoEnhance, EngineClass::Copy, EngineClass::Compute];

/// Opcodes and engines as documented, or as used by drivers if these differ (traps T7, T8). The copy engine implements
/// MI_ARB_ON_OFF, and every engine implements MI_BATCH_BUFFER_START. Compute engines implement MI_PREDICATE, whose
/// result register exists, and MI_SET_CONTEXT, which IGT executes (intel_compute.c). MI_REPORT_PERF_COUNT is missing in
/// this table of the PRM and listed in two others.
const DOCUMENT: &[(u32, &str, &[EngineClass])] = &[
    (0x00, "MI_NOOP", ALL),
    (0x01, "MI_SET_PREDICATE", ALL),
    (0x02, "MI_USER_INTERRUPT", ALL),
    (0x03, "MI_WAIT_FOR_EVENT", RENDER_COPY),
    (0x04, "MI_WAIT_FOR_EVENT_2", RENDER_COPY),
    (0x05, "MI_ARB_CHECK", ALL),
    (0x07, "MI_REPORT_HEAD", ALL),
    (0x08, "MI_ARB_ON_OFF", ALL),
    (0x0a, "MI_BATCH_BUFFER_END", ALL),
    (0x0b, "MI_SUSPEND_FLUSH", ALL),
    (0x0c, "MI_PREDICATE", RENDER_COMPUTE),
    (0x12, "MI_LOAD_SCAN_LINES_INCL", RENDER_COPY),
    (0x13, "MI_LOAD_SCAN_LINES_EXCL", RENDER_COPY),
    (0x14, "MI_DISPLAY_FLIP", RENDER_COPY),
    (0x18, "MI_SET_CONTEXT", RENDER_COMPUTE),
    (0x1a, "MI_MATH", ALL),
    (0x1b, "MI_SEMAPHORE_SIGNAL", ALL),
    (0x1c, "MI_SEMAPHORE_WAIT", ALL),
    (0x1d, "MI_FORCE_WAKEUP", NOT_RENDER),
    (0x20, "MI_STORE_DATA_IMM", ALL),
    (0x21, "MI_STORE_DATA_INDEX", ALL),
    (0x22, "MI_LOAD_REGISTER_IMM", ALL),
    (0x23, "MI_UPDATE_GTT", ALL),
    (0x24, "MI_STORE_REGISTER_MEM", ALL),
    (0x26, "MI_FLUSH_DW", NOT_RENDER),
    (0x27, "MI_CLFLUSH", RENDER),
    (0x28, "MI_REPORT_PERF_COUNT", RENDER_COMPUTE),
    (0x29, "MI_LOAD_REGISTER_MEM", ALL),
    (0x2a, "MI_LOAD_REGISTER_REG", ALL),
    (0x2e, "MI_COPY_MEM_MEM", ALL),
    (0x2f, "MI_ATOMIC", ALL),
    (0x31, "MI_BATCH_BUFFER_START", ALL),
    (0x36, "MI_CONDITIONAL_BATCH_BUFFER_END", ALL),
    (0x39, "MI_PRT_BATCH_BUFFER_START", ALL),
];

/// Opcodes used by drivers that the PRM does not list (xe: xe_mi_commands.h, in context images and protected sessions).
const DRIVERS: &[(u32, &str, &[EngineClass])] = &[(0x0d, "MI_TOPOLOGY_FILTER", RENDER), (0x0e, "MI_SET_APPID", ALL)];

/// Returns the name of the command with this opcode on engines of `class`, according to the lists above.
fn listed(opcode: u32, class: EngineClass) -> Option<&'static str> {
    let mut rows = DOCUMENT.iter().chain(DRIVERS);
    rows.find(|(of, _, classes)| *of == opcode && classes.contains(&class)).map(|(_, name, _)| *name)
}

#[test]
fn the_table_is_the_documents() {
    proves!([V8_097, V8_098, V8_099, V8_100], "exactly the listed commands are decoded, each on its engines");
    assert_eq!(COMMANDS.len(), DOCUMENT.len() + DRIVERS.len());
    for opcode in 0..0x40 {
        for class in EngineClass::BY_GUC {
            let decoded = XE_HPG.commands.decode(opcode << 23, class).map(|command| command.name());
            assert_eq!(decoded, listed(opcode, class), "{opcode:#x} on {class:?}");
        }
    }
}

#[test]
fn lengths() {
    proves!(V8_096, "commands with opcodes below 10h have one dword. Other commands encode their length minus two");
    for command in COMMANDS {
        let header = u32::from(command.opcode) << 23;
        let all = header | 0x007f_ffff;
        let class = ALL.iter().copied().find(|class| command.classes.has(*class)).unwrap();
        let dwords = |header| {
            let decoded = XE_HPG.commands.decode(header, class).unwrap().dwords(header);
            assert_eq!(decoded, command.length.dwords(header), "{}", command.name);
            decoded
        };
        if command.opcode < 0x10 {
            assert_eq!((dwords(header), dwords(all)), (1, 1), "{}", command.name);
            continue;
        }
        let most = dwords(all);
        assert!(most == 0x3f + 2 || most == 0xff + 2 || most == 0x3ff + 2, "{}", command.name);
        for length in [0, 1, 2, most - 2] {
            assert_eq!(dwords(header | length), length + 2, "{}", command.name);
        }
        assert!(u32::from(command.least) <= most);
    }
}

/// Commands of the copy engine, with their lengths (Mesa: genxml gen125; IGT: intel_blt.c).
const BLITS: [u32; 7] = [0x40c0_0001, 0x5040_0014, 0x5080_0008, 0x5100_000e, 0x5200_0003, 0x5400_0005, 0x54c0_0008];

#[test]
fn other_opcodes_are_invalid() {
    proves!(
        [V8_099, V8_095],
        "an unimplemented opcode, a reserved client or, on any other engine, a command of the copy engine is an \
        illegal command. The context halts at the command, ESR and, if unmasked, EIR report the instruction error, \
        IPEHR contains the header, and the command is counted once"
    );
    assert!(BLITS.iter().all(|header| XE_HPG.commands.decode(*header, EngineClass::Copy).is_some()));
    for class in EngineClass::BY_GUC {
        let opcodes = (0..0x40u32).filter(|opcode| listed(*opcode, class).is_none());
        let clients = [1u32, 2, 4, 5, 6, 7].into_iter().filter(|client| *client != 2 || class != EngineClass::Copy);
        let blits = BLITS.into_iter().filter(|_| class != EngineClass::Copy);
        let clients = clients.map(|client| client << 29);
        let headers: Vec<u32> = opcodes.map(|opcode| opcode << 23).chain(clients).chain(blits).collect();
        assert!(headers.len() >= 30, "{class:?}: {}", headers.len());
        for header in headers {
            let mut bench = EngineBench::new(class);
            bench.gt.registers.set(bench.base() + reg::EMR, !1);
            let outcome = bench.batch(&[0, header, 0x0040_0001]);
            let halt = Halt::IllegalCommand { header, address: VA + BATCH + 4 };
            assert_eq!(outcome, Outcome::Halted(halt), "{class:?} {header:#x}");
            assert_eq!((bench.own(reg::ESR), bench.own(reg::EIR), bench.own(reg::IPEHR)), (1, 1, header));
            assert_eq!(bench.own(reg::NOPID), 0, "the parser has stopped");
            assert_eq!(bench.run(), Outcome::Halted(halt));
            assert_eq!(bench.engine.counters().nonzero(), [("illegal commands".to_owned(), 1)].into());
        }
    }
}

#[test]
fn commands_that_are_too_short_are_invalid() {
    proves!(
        V8_096,
        "a command that is too short for its operands is illegal, on the fast path and on the slow path of the \
        parser"
    );
    for command in COMMANDS.iter().filter(|command| command.least > 2) {
        let class = *ALL.iter().find(|class| command.classes.has(**class)).unwrap();
        let mut bench = EngineBench::new(class);
        let header = u32::from(command.opcode) << 23 | (u32::from(command.least) - 3);
        let outcome = bench.ring(&[header, 0, 0, 0, 0, 0, 0, 0]);
        assert!(matches!(outcome, Outcome::Halted(Halt::IllegalCommand { .. })), "{}: {outcome:?}", command.name);
    }
    assert!(mi::lookup(XE_HPG.commands.mi, 0x20 << 23).is_some_and(|command| command.least == 4));
}
