// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Branches (group L of the document on the ISA). Channels that are not at the thread's instruction wait at the uop of their
//! own.

use super::operand::Fetch;
use super::program::Program;
use super::thread::Thread;
use super::uop::Uop;
use crate::isa::table::Control;

/// Code at this address, relative to the start of the code, is not decoded.
pub struct NotDecoded(pub u32);

/// Executes the branch at `thread.next` and sets `thread.next`.
///
/// # Errors
/// If a target in a register is not in the program; then the thread is as before.
#[inline(always)]
pub fn execute(control: Control, thread: &mut Thread, uop: &Uop, code: &Program) -> Result<(), NotDecoded> {
    let next = uop.next;
    let active = uop.channels(thread) << uop.channel;
    let taken = active & uop.predicate_bits(thread) << uop.channel;
    // Only the channels of the instruction decide where it goes on: code for 8 lanes runs with all others enabled, because
    // compilers enable them in sr0.2 for calls by a stack (ISA-170).
    let own = uop.all << uop.channel;
    let is_empty = |thread: &Thread| thread.mask & own == 0;
    // Of brc with registers: true if no channel goes on behind it.
    let empties = thread.mask & own & !taken == 0;
    let after = if is_empty(thread) { uop.jip } else { next };
    thread.next = match control {
        Control::Jmpi => {
            if uop.predicate_bits(thread) & 1 == 0 {
                next
            } else {
                register_target(thread, uop, code, 0, false)?.unwrap_or(uop.jip)
            }
        }
        Control::Goto | Control::Brc if uop.backward => {
            if taken == 0 {
                next
            } else {
                thread.wait(active & !taken, next);
                uop.uip
            }
        }
        Control::Goto | Control::Brc | Control::Halt | Control::Cont | Control::Break => {
            let (mut target, mut jip) = (uop.uip, uop.jip);
            if uop.register_target {
                if taken != 0 {
                    target = register_target(thread, uop, code, 4, true)?.unwrap_or(target);
                }
                if empties {
                    jip = register_target(thread, uop, code, 0, true)?.unwrap_or(jip);
                }
            }
            thread.wait(taken, target);
            if is_empty(thread) { jip } else { next }
        }
        Control::Brd => {
            let mut target = uop.jip;
            if taken != 0 || empties {
                target = register_target(thread, uop, code, 0, true)?.unwrap_or(target);
            }
            thread.wait(taken, target);
            if is_empty(thread) { target } else { next }
        }
        Control::Join | Control::Endif => after,
        Control::If => {
            thread.wait(active & !taken, uop.jip);
            if is_empty(thread) { uop.jip } else { next }
        }
        Control::Else => {
            thread.wait(active, uop.uip);
            thread.rejoin(next);
            if is_empty(thread) { uop.jip } else { next }
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
                let located = &code.instructions[uop.instruction as usize];
                let return_address = code.base.wrapping_add(located.address.wrapping_add(located.length));
                let target = call_target(control, thread, uop, code)?;
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
            let returning = if uop.no_mask { thread.mask & taken } else { taken };
            let leaves = thread.mask & own & !returning == 0;
            if returning != 0 || leaves {
                let address = thread.u32(at).wrapping_sub(code.base);
                let target = find(code, address.into(), true)?;
                thread.wait(returning, target);
                if leaves {
                    // Code that has made the register itself may have no mask in it.
                    let saved = thread.u32(at + 4);
                    thread.call_mask = if saved & returning != 0 { saved } else { !0 };
                    thread.rejoin(target);
                    target
                } else {
                    next
                }
            } else {
                next
            }
        }
    };
    Ok(())
}

fn find(code: &Program, address: i64, waits: bool) -> Result<u32, NotDecoded> {
    code.find(address, waits).ok_or(NotDecoded(address as u32))
}

/// Uop at the target in a register, in bytes relative to the branch. ISA-022: brc has JIP and UIP in a pair; which comes first is
/// a choice.
fn register_target(
    thread: &Thread,
    uop: &Uop,
    code: &Program,
    byte: usize,
    waits: bool,
) -> Result<Option<u32>, NotDecoded> {
    if !uop.register_target {
        return Ok(None);
    }
    let located = &code.instructions[uop.instruction as usize];
    let input = &uop.src[0];
    let distance = match input.fetch {
        Fetch::Constant => input.widened(thread, 0),
        _ => thread.u32(input.lane_offset(thread, 0) + byte),
    }
    .cast_signed();
    find(code, i64::from(located.address) + i64::from(distance), waits).map(Some)
}

fn call_target(control: Control, thread: &Thread, uop: &Uop, code: &Program) -> Result<u32, NotDecoded> {
    if uop.register_target && control == Control::Calla {
        let address = uop.src[0].widened(thread, 0).wrapping_sub(code.base);
        return find(code, address.into(), false);
    }
    Ok(register_target(thread, uop, code, 0, false)?.unwrap_or(uop.jip))
}
