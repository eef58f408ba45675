// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Branches (group L of the document on the ISA). Channels that are not at the thread's instruction wait at the uop of their
//! own.

use super::operand::Fetch;
use super::thread::Thread;
use super::translate::Code;
use super::uop::Uop;
use crate::isa::table::{Control, Format};

/// Executes the branch at `thread.next` and sets `thread.next`.
pub fn execute(control: Control, thread: &mut Thread, uop: &Uop, code: &Code) {
    let next = thread.next + 1;
    let active = uop.channels(thread) << uop.channel;
    let taken = active & uop.predicate_bits(thread) << uop.channel;
    let located = &code.instructions[uop.instruction as usize];
    let after = if thread.mask == 0 { uop.jip } else { next };
    thread.next = match control {
        Control::Jmpi => {
            if uop.predicate_bits(thread) & 1 == 0 {
                next
            } else {
                register_target(thread, uop, code, 0).unwrap_or(uop.jip)
            }
        }
        Control::Goto | Control::Brc if is_backward(uop, code) => {
            if taken == 0 {
                next
            } else {
                thread.wait(active & !taken, next);
                uop.uip
            }
        }
        Control::Goto | Control::Brc | Control::Halt | Control::Cont | Control::Break => {
            let target = register_target(thread, uop, code, 4).unwrap_or(uop.uip);
            thread.wait(taken, target);
            if thread.mask == 0 { register_target(thread, uop, code, 0).unwrap_or(uop.jip) } else { next }
        }
        Control::Brd => {
            let target = register_target(thread, uop, code, 0).unwrap_or(uop.jip);
            thread.wait(taken, target);
            if thread.mask == 0 { target } else { next }
        }
        Control::Join | Control::Endif => after,
        Control::If => {
            thread.wait(active & !taken, uop.jip);
            if thread.mask == 0 { uop.jip } else { next }
        }
        Control::Else => {
            thread.wait(active, uop.uip);
            thread.rejoin(next);
            if thread.mask == 0 { uop.jip } else { next }
        }
        Control::While => {
            if taken == 0 {
                next
            } else {
                thread.wait(active & !taken, next);
                uop.jip
            }
        }
        Control::Call | Control::Calla => {
            if taken == 0 {
                next
            } else {
                let return_address = code.base.wrapping_add(located.address + located.length);
                let target = call_target(control, thread, uop, code);
                thread.wait(active & !taken, next);
                uop.dst.write(thread, 0, u64::from(return_address));
                // In a recursion, channels of an outer call wait at the addresses of the inner one.
                uop.dst.write(thread, 1, u64::from(thread.call_mask));
                thread.call_mask = thread.mask;
                target
            }
        }
        Control::Ret => {
            let at = uop.src[0].lane_offset(thread, 0);
            let address = thread.u32(at).wrapping_sub(code.base);
            let target = code.entry(i64::from(address));
            let returning = if uop.no_mask { thread.mask & taken } else { taken };
            thread.wait(returning, target);
            if thread.mask == 0 {
                // Code that has made the register itself may have no mask in it.
                let saved = thread.u32(at + 4);
                thread.call_mask = if saved & returning != 0 { saved } else { !0 };
                thread.rejoin(target);
                target
            } else {
                next
            }
        }
    };
}

/// Uop at the target in a register, in bytes relative to the branch. ISA-022: brc has JIP and UIP in a pair; which comes first is
/// a choice.
fn register_target(thread: &Thread, uop: &Uop, code: &Code, byte: usize) -> Option<u32> {
    let located = &code.instructions[uop.instruction as usize];
    let instruction = located.instruction.as_ref()?;
    if !instruction.register_target || instruction.row.format == Format::Ret {
        return None;
    }
    let input = &uop.src[0];
    let distance = match input.fetch {
        Fetch::Constant => input.widened(thread, 0),
        _ => thread.u32(input.lane_offset(thread, 0) + byte),
    }
    .cast_signed();
    Some(code.entry(i64::from(located.address) + i64::from(distance)))
}

fn call_target(control: Control, thread: &Thread, uop: &Uop, code: &Code) -> u32 {
    let located = &code.instructions[uop.instruction as usize];
    let in_register = located.instruction.is_some_and(|instruction| instruction.register_target);
    if in_register && control == Control::Calla {
        let address = uop.src[0].widened(thread, 0).wrapping_sub(code.base);
        return code.entry(i64::from(address));
    }
    register_target(thread, uop, code, 0).unwrap_or(uop.jip)
}

/// True for `goto.b`. ISA-171.
fn is_backward(uop: &Uop, code: &Code) -> bool {
    let instruction = code.instructions[uop.instruction as usize].instruction;
    instruction.is_some_and(|instruction| instruction.row.has_branch_control() && instruction.acc_write)
}
