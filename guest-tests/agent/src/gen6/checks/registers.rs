// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers accessed by a batch, and their values in contexts. Where the driver has a command parser (Gen7), it allows
//! these accesses; elsewhere engines execute the commands of all batches as MI_NOOP (IVB-133).

use anyhow::{Result, ensure};

use super::{CheckEnvironment, Found, Random, no_registers, passed};
use crate::device::Engine;
use crate::gen6::gem::{Context, Object, Program, Trust};
use crate::number::low;

/// Parameters of indirect draws and offsets of stream output: registers of a context without effect on other commands
/// (IVB-117, IVB-125), which the parser allows.
const REGISTERS: [u32; 10] = [0x2420, 0x2430, 0x2434, 0x2438, 0x243c, 0x2440, 0x5280, 0x5284, 0x5288, 0x528c];
/// A register of all generations that is never 0 for long (IVB-116).
const TIMESTAMP: u32 = 0x2358;
/// The bits that all of [`REGISTERS`] have.
const BITS: u32 = !3;

fn values(random: &mut Random) -> Vec<u32> {
    REGISTERS.iter().map(|_| low(random.quadword()) & BITS).collect()
}

fn load<'o>(env: &CheckEnvironment<'o>, values: &[u32]) -> Result<Program<'o>> {
    Ok(Program::trusted(env.device, Trust::Parsed, |batch| {
        for (register, value) in REGISTERS.iter().zip(values) {
            batch.load_register(*register, *value);
        }
    })?)
}

fn store<'o>(env: &CheckEnvironment<'o>, memory: &'o Object<'o>) -> Result<Program<'o>> {
    Ok(Program::trusted(env.device, Trust::Parsed, |batch| {
        for (at, register) in (0..).step_by(4).zip(REGISTERS) {
            batch.store_register(register, memory, at);
        }
    })?)
}

fn stored(memory: &Object<'_>) -> Vec<u32> {
    (0..REGISTERS.len()).map(|index| memory.memory().read_u32(4 * index)).collect()
}

fn must_be(what: &str, found: &[u32], want: &[u32]) -> Result<()> {
    for ((register, got), want) in REGISTERS.iter().zip(found).zip(want) {
        ensure!(got == want, "{what}: register {register:#x}: expected {want:#010x}, got {got:#010x}");
    }
    Ok(())
}

/// Registers are loaded from immediates and from memory, and stored to memory. The same commands without privilege do
/// nothing if the batch is not parsed.
pub fn registers(env: &CheckEnvironment<'_>, engine: Engine) -> Result<Found> {
    let context = Context::new(env.device, engine)?;
    without_privilege(env, &context)?;
    if !env.parser {
        return passed("batches without privilege cannot access registers");
    }
    let mut random = Random(2);
    let memory = env.object(4096)?;
    let (first, second) = (values(&mut random), values(&mut random));
    for (index, value) in second.iter().enumerate() {
        memory.memory().write_u32(1024 + 4 * index, *value);
    }
    let program = Program::trusted(env.device, Trust::Parsed, |batch| {
        for (at, (register, value)) in (0..).step_by(4).zip(REGISTERS.iter().zip(&first)) {
            batch.load_register(*register, *value).store_register(*register, &memory, at);
            batch.load_register_mem(*register, &memory, 1024 + at).store_register(*register, &memory, 512 + at);
        }
    })?;
    context.run(&program, env.timeout)?;
    must_be("from an immediate", &stored(&memory), &first)?;
    let from_memory: Vec<u32> = (0..REGISTERS.len()).map(|index| memory.memory().read_u32(512 + 4 * index)).collect();
    must_be("from memory", &from_memory, &second)?;
    passed(format!("{} registers from immediates and memory, by parsed batches only", REGISTERS.len()))
}

/// A batch that is not parsed neither loads nor stores a register.
fn without_privilege(env: &CheckEnvironment<'_>, context: &Context<'_>) -> Result<()> {
    let memory = env.object(4096)?;
    let program = Program::new(env.device, |batch| {
        batch.load_register(TIMESTAMP, 0).store_register(TIMESTAMP, &memory, 0).store_dword(&memory, 4, 1);
    })?;
    context.run(&program, env.timeout)?;
    let found = [0, 4].map(|at| memory.memory().read_u32(at));
    ensure!(found == [0, 1], "a register and a dword stored without privilege: expected [0, 1], got {found:#x?}");
    Ok(())
}

/// Two contexts have their own values of the registers, which switches between them keep. A new context has zeros.
pub fn contexts(env: &CheckEnvironment<'_>, engine: Engine) -> Result<Found> {
    const ROUNDS: usize = 4;
    if !env.parser {
        return no_registers();
    }
    let mut random = Random(3);
    let memory = env.object(4096)?;
    let read = store(env, &memory)?;
    let contexts = [Context::new(env.device, engine)?, Context::new(env.device, engine)?];
    let mut current = [values(&mut random), values(&mut random)];
    for (context, values) in contexts.iter().zip(&current) {
        context.run(&load(env, values)?, env.timeout)?;
    }
    for round in 0..ROUNDS {
        for (number, context) in contexts.iter().enumerate() {
            context.run(&read, env.timeout)?;
            must_be(&format!("context {number} in round {round}"), &stored(&memory), &current[number])?;
            if number == round % 2 {
                current[number] = values(&mut random);
                context.run(&load(env, &current[number])?, env.timeout)?;
            }
        }
    }
    Context::new(env.device, engine)?.run(&read, env.timeout)?;
    must_be("a new context", &stored(&memory), &[0; REGISTERS.len()])?;
    passed(format!("{} registers of two contexts, {ROUNDS} rounds", REGISTERS.len()))
}
