// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Immediate stores, register moves and the writes of flushes, verified by the CPU.

use anyhow::{Result, ensure};
use arctic_mi::gpr;

use super::{CheckEnvironment, Random, compare};
use crate::batch::{MAX_QWORDS, PostSync};
use crate::device::Engine;
use crate::mapping::Mapping;
use crate::number::low;
use crate::vm::Place;

/// Stores of random dwords, quadwords and long runs to both memories. Adjacent bytes must not change.
pub fn stores(env: &CheckEnvironment<'_>, engine: Engine) -> Result<String> {
    const SIZE: usize = 64 << 10;
    let mut random = Random(1);
    let mut written = 0;
    for (target, code) in [(Place::Vram, Place::System), (Place::System, Place::Vram)] {
        let vm = env.device.vm()?;
        let queue = vm.queue(engine)?;
        let memory = vm.buffer(target, SIZE as u64)?;
        let mut expected = random.bytes(SIZE);
        memory.mapping().write(&expected);
        env.run(&vm, &queue, code, |batch| {
            let mut put = |at: usize, values: &[u64], dword: bool| {
                let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
                let len = if dword { 4 } else { bytes.len() };
                expected[at..at + len].copy_from_slice(&bytes[..len]);
                written += len;
                let address = memory.address() + at as u64;
                if dword {
                    batch.store_dword(address, low(values[0]));
                } else {
                    batch.store_qwords(address, values);
                }
            };
            // One dword per cache line, at a different offset in each line.
            for line in 0..64 {
                put(64 * line + 4 * (line % 16), &[random.quadword()], true);
            }
            for index in 0..32 {
                put(0x2000 + 72 * index, &[random.quadword()], false);
            }
            // Stores of the maximum length, across page boundaries.
            for start in [0x3f08, 0x8000, 0xcff8] {
                let values: Vec<_> = (0..MAX_QWORDS).map(|_| random.quadword()).collect();
                put(start, &values, false);
            }
        })?;
        compare("stores", &memory, &expected)?;
    }
    Ok(format!("{written} bytes in dwords, quadwords and runs of {MAX_QWORDS}, in both memories"))
}

/// Moves from memory to register, register to register, immediate to register, and back to memory.
pub fn registers(env: &CheckEnvironment<'_>, engine: Engine) -> Result<String> {
    let vm = env.device.vm()?;
    let queue = vm.queue(engine)?;
    let memory = vm.buffer(Place::System, 4096)?;
    let mut random = Random(2);
    let immediates: Vec<u64> = (0..8).map(|_| random.quadword()).collect();
    let seeds: Vec<u64> = (0..8).map(|_| random.quadword()).collect();
    for (index, seed) in seeds.iter().enumerate() {
        memory.mapping().write_u64(8 * index, *seed);
    }
    let at = |index: u64| memory.address() + 8 * index;
    env.run(&vm, &queue, Place::Vram, |batch| {
        // GPR 0 to 7 from immediates and 8 to 15 from memory, then 0 to 3 and 8 to 11 are swapped through 7.
        for n in 0..8 {
            batch.load_gpr(n, immediates[n as usize]);
            batch.load_register_mem(gpr(8 + n), at(n.into()));
            batch.load_register_mem(gpr(8 + n) + 4, at(n.into()) + 4);
        }
        for half in [0, 4] {
            for n in 0..4 {
                batch.load_register_reg(gpr(7) + half, gpr(n) + half);
                batch.load_register_reg(gpr(n) + half, gpr(8 + n) + half);
                batch.load_register_reg(gpr(8 + n) + half, gpr(7) + half);
            }
        }
        for n in 0..16 {
            batch.store_gpr(n, at(64 + u64::from(n)));
        }
    })?;
    let mut expected: Vec<u64> = immediates.iter().chain(&seeds).copied().collect();
    for n in 0..4 {
        expected.swap(n, 8 + n);
    }
    expected[7] = immediates[3];
    for (n, want) in expected.iter().enumerate() {
        let got = memory.mapping().read_u64(8 * (64 + n));
        ensure!(got == *want, "GPR {n}: expected {want:#018x}, got {got:#018x}");
    }
    Ok("16 general purpose registers from immediates, memory and each other".into())
}

/// MI_FLUSH_DW or PIPE_CONTROL writes a 64-bit value and timestamps.
pub fn flush_writes(env: &CheckEnvironment<'_>, engine: Engine) -> Result<String> {
    const VALUE: u64 = 0x0123_4567_89ab_cdef;
    let vm = env.device.vm()?;
    let queue = vm.queue(engine)?;
    let memory = vm.buffer(Place::System, 4096)?;
    env.run(&vm, &queue, Place::Vram, |batch| {
        for (at, what) in [(0, PostSync::Immediate(VALUE)), (8, PostSync::Timestamp), (16, PostSync::Timestamp)] {
            let address = memory.address() + at;
            if engine.has_pipe_control() {
                batch.pipe_control(address, what)
            } else {
                batch.flush_dw(address, what)
            };
        }
    })?;
    flushed(memory.mapping(), VALUE, engine)
}

/// Checks that flushes have written `expected` and two timestamps at offset 0 of `memory`, and nothing behind them.
pub(crate) fn flushed(memory: &Mapping, expected: u64, engine: Engine) -> Result<String> {
    let [value, first, second] = [0, 8, 16].map(|at| memory.read_u64(at));
    ensure!(value == expected, "post-sync write: expected {expected:#018x}, got {value:#018x}");
    ensure!(first != 0 && first <= second, "post-sync timestamps must not decrease: got {first:#x}, then {second:#x}");
    ensure!(memory.read_u64(24) == 0, "bytes after the last write changed");
    let command = if engine.has_pipe_control() { "PIPE_CONTROL" } else { "MI_FLUSH_DW" };
    Ok(format!("{command} wrote an immediate and timestamps"))
}
