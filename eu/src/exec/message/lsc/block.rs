// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Blocks: one address, consecutive elements of consecutive registers. ISA-215.

use super::super::access::{read, write};
use super::super::operands::{MessageFault, Sent};
use super::{Action, Lsc};
use crate::exec::memory::Access;

/// Largest number of bytes of a block: 64 elements of 8 bytes.
const MOST: usize = 512;

/// Moves a block.
pub fn execute(lsc: &Lsc, sent: Sent<'_, '_>) -> Result<(), MessageFault> {
    let Sent { operands, thread, lanes, environment } = sent;
    let surface = lsc.surface(operands, thread);
    let [address] = lsc.addresses::<1>(operands.src0, thread);
    let slm = lsc.slm;
    let element = lsc.memory_size;
    let size = (lsc.vector * element) as usize;
    let access = match (lsc.action, operands.dst, operands.src1) {
        (Action::Load, Some(dst), _) => match thread.registers_mut(dst, size) {
            Some(bytes) => read(slm, surface, address, element, bytes, environment),
            None => {
                let bytes = &mut [0; MOST][..size];
                let access = read(slm, surface, address, element, bytes, environment);
                thread.write_registers(dst, bytes);
                access
            }
        },
        (Action::Store, _, Some(src)) => match thread.registers(src, size) {
            Some(bytes) => write(slm, surface, address, element, bytes, environment),
            None => {
                let bytes = &mut [0; MOST][..size];
                thread.copy_registers(src, bytes);
                write(slm, surface, address, element, bytes, environment)
            }
        },
        _ => Ok(Access::Inside),
    };
    environment.note(access.map_err(|fault| fault.in_lane(0))?, lanes.instruction, 0);
    Ok(())
}
