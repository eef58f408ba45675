// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Faults of accesses, and what accesses cost.

use arctic_eu::exec::memory::Surface;
use arctic_eu::exec::{
    self, AccessKind, Budget, Environment, Fault, FaultAccess, FaultKind, Group, Host, MESSAGE_COST, Program, Stop, Way,
};

use super::{BASE, COST, END, Page, code, run, thread};

fn fault(text: &str) -> Fault {
    match run(text, &mut Page::new(), &mut thread()) {
        Stop::Fault(fault) => fault,
        other => panic!("{text}: {other:?}"),
    }
}

/// A fault has the lane, the kind of the access, the address as the message has it, and the virtual address that the memory
/// names.
#[test]
fn faults_name_the_access() {
    let beyond = BASE + 3 * 0x1_0000;
    let access =
        |kind, surface, address, virtual_address| Some(FaultAccess { kind, surface, address, virtual_address });
    for (text, lane, expected) in [
        (
            "send.ugm (16|M0) r20 r44 null:0 0x0 0x04200500",
            Some(3),
            access(AccessKind::Read, Some(Surface::Flat), beyond, Some(beyond)),
        ),
        (
            "send.ugm (16|M0) null r44 r60:2 0x0 0x04000504",
            Some(3),
            access(AccessKind::Write, Some(Surface::Flat), beyond, Some(beyond)),
        ),
        (
            "send.ugm (16|M0) null r44 r60:2 0x0 0x0400050C",
            Some(3),
            access(AccessKind::Atomic, Some(Surface::Flat), beyond, Some(beyond)),
        ),
        // Binding table entry 2 does not exist.
        (
            "send.ugm (16|M0) r20 r48 null:0 0x02000000 0x64200500",
            Some(0),
            access(AccessKind::Read, Some(Surface::Binding(2)), 0, None),
        ),
        (
            "send.dc1 (8|M0) null r10 r40:4 0x0 0x04035003",
            None,
            access(AccessKind::Write, Some(Surface::Binding(3)), 0, None),
        ),
        // A block at r60.2, which is 2.
        (
            "(W) send.dc0 (16|M0) r20 r60 null:0 0x0 0x021842FD",
            None,
            access(AccessKind::Read, Some(Surface::Stateless), 2, None),
        ),
    ] {
        let fault = fault(text);
        assert_eq!((fault.lane, fault.access), (lane, expected), "{text}");
        assert_eq!(fault.instruction, 0);
    }
    // An atomic operation that is not aligned, of surface and of local memory: lane 1 has the address 1.
    let fault = fault("send.slm (16|M0) null r60 r60:2 0x0 0x0400050C");
    assert_eq!((fault.kind, fault.lane), (FaultKind::Alignment, Some(1)));
    assert_eq!(fault.access, access(AccessKind::Atomic, None, 1, None));
    // Faults of other kinds have none.
    assert_eq!(self::fault("illegal").access, None);
}

/// After a fault, the operands of the message are as they were, though its response is in their registers: if memory has
/// changed, the thread goes on with the same instruction.
#[test]
fn a_message_is_executed_again() {
    for text in ["send.ugm (16|M0) r44 r44 null:0 0x0 0x04200500", "send.ugm (16|M0) r44 r44 null:0 0x0 0x04200508"] {
        let (mut memory, mut thread) = (Page::new(), thread());
        let before: Vec<u32> = (0..16).map(|lane| thread.grf(44 + lane / 8, lane % 8)).collect();
        assert!(matches!(run(text, &mut memory, &mut thread), Stop::Fault(_)));
        assert_eq!((0..16).map(|lane| thread.grf(44 + lane / 8, lane % 8)).collect::<Vec<_>>(), before, "{text}");
        memory.bytes.resize(0x10_0000, 0);
        assert_eq!(run(text, &mut memory, &mut thread), Stop::End);
        assert_ne!(thread.grf(44, 0), before[0]);
    }
}

/// A message costs its lanes and what the memory says; a budget of cost ends before the next instruction, at most one later
/// than it is used up, and says what was used.
#[test]
fn budgets_count_what_accesses_cost() {
    let text = "mov (16|M0) r20.0<1>:ud r60.0<1;1,0>:ud\nsend.ugm (16|M0) r20 r40 null:0 0x0 0x04200500\n\
                mov (16|M0) r22.0<1>:ud r60.0<1;1,0>:ud\nsend.ugm (16|M0) r20 r48 null:0 0x01000000 0x64200500\n";
    let program = Program::translate(&code(&format!("{text}{END}")), 0, 128, Host::Portable);
    let mut memory = Page::new();
    let accesses = memory.accesses.clone();
    let mut thread = thread();
    let mut group = Group::default();
    let mut environment = Environment::new(&mut memory, &mut group);
    let mut step = |cost| {
        let before = (thread.executed, environment.cost);
        let stop = exec::run(&program, &mut thread, &mut environment, Budget::cost(cost), Way::Fast, &mut ());
        (stop, thread.executed - before.0, environment.cost - before.1)
    };
    assert_eq!(step(0), (Stop::Budget, 0, 0));
    assert_eq!(step(1), (Stop::Budget, 1, 0));
    // The addresses are consecutive: one access. It ends the budget, whatever is left of it.
    assert_eq!(step(2), (Stop::Budget, 1, MESSAGE_COST - 1 + 16 + COST));
    assert_eq!(accesses.get(), 1);
    // One access for each lane, half of them outside the buffer.
    let gather = MESSAGE_COST - 1 + 16 + 16 * COST;
    assert_eq!(step(gather + 2), (Stop::Budget, 2, gather));
    assert_eq!(accesses.get(), 17);
    assert_eq!(step(1), (Stop::End, 1, MESSAGE_COST));
    assert_eq!(environment.outside, 8);
}
