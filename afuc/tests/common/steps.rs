// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Execution of a few instructions.
#![allow(dead_code, reason = "each test target uses a part of the module")]

use arctic_afuc::machine::{Fault, FaultKind, Machine, Stop};
use arctic_afuc::text::{Options, assemble};

/// Mapped memory.
pub const DATA: u64 = 0x20_0000;

/// A machine with the image of `source` and with [`DATA`].
pub fn image(source: &str) -> Machine {
    mapped(source, DATA, 0x2000)
}

/// A machine with the image of `source` and `bytes` of memory at `address`, which records its effects.
pub fn mapped(source: &str, address: u64, bytes: u64) -> Machine {
    let assembled = assemble(source, &Options::default())
        .unwrap_or_else(|errors| panic!("{}", errors.render(source, "source", false)));
    let mut machine = Machine::new(&assembled.image);
    machine.bus.record = true;
    machine.bus.memory.map(address, bytes);
    machine
}

pub fn words(source: &str) -> Vec<u32> {
    assemble(source, &Options::default()).unwrap().image.words
}

/// Executes a machine until `waitin`, by the fast path and by the slow path, which have the same result.
pub fn to_waitin(mut machine: Machine, source: &str) -> Machine {
    // A preemption that is never due: all instructions take the slow path.
    let mut slow = machine.clone();
    slow.preempt_every = Some(u64::MAX);
    assert_eq!((machine.run(10_000), slow.run(10_000)), (Stop::Idle, Stop::Idle), "{source}");
    assert_eq!((machine.gpr, machine.sqe, &machine.bus.effects), (slow.gpr, slow.sqe, &slow.bus.effects), "{source}");
    machine
}

/// Executes instructions of a generation with `$02` and `$03` set, until `waitin`.
pub fn run_on(generation: u32, source: &str, values: [u32; 2]) -> Machine {
    let mut machine = image(&format!(".gen {generation}\n{source}\nwaitin\nnop\n"));
    [machine.gpr[2], machine.gpr[3]] = values;
    to_waitin(machine, source)
}

pub fn run(source: &str, values: [u32; 2]) -> Machine {
    run_on(7, source, values)
}

pub fn result(source: &str, values: [u32; 2]) -> u32 {
    run(source, values).gpr[4]
}

pub fn fault(mut machine: Machine) -> FaultKind {
    match machine.run(10_000) {
        Stop::Fault(Fault { kind, .. }) => kind,
        other => panic!("{other:?}"),
    }
}
