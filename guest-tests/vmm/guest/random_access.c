/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Random accesses to configuration spaces, registers and memory. The VM must not crash, and the card must recover after
 * a reset. */

#include "boot_info.h"
#include "console.h"
#include "cpu.h"
#include "lifecycle.h"
#include "mmio.h"

/* xorshift64*; each processor has a separate state. */
static uint64_t any(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1d;
}

static uint64_t below(uint64_t *state, uint64_t limit)
{
    return (any(state) >> 16) % limit;
}

/* Returns a value, mostly one that is meaningful in some register. */
static uint64_t value(uint64_t *state)
{
    switch (below(state, 6)) {
    case 0:
        return 0;
    case 1:
        return ~0ull;
    case 2:
        return 1ull << below(state, 64);
    case 3:
        return boot->mmio64 + (below(state, 1 << 16) << 20);
    case 4:
        return below(state, 64);
    default:
        return any(state);
    }
}

static void access(uint64_t *state, uint64_t address)
{
    uint64_t width = 1ull << below(state, 4);
    if (below(state, 8))
        address &= -width;
    if (below(state, 2))
        access_write(address, width, value(state));
    else
        access_read(address, width);
}

/* Accesses host bridge, root port, PF, VFs and absent functions, except the MSI capability, which could then raise any
 * vector. */
static void configuration(uint64_t *state)
{
    static const uint16_t first[] = { 0x000, 0x008, 0x100, 0x100, 0x100, 0x100, 0x101, 0x102, 0x108, 0x200 };
    uint64_t at = below(state, 4) ? below(state, 0x100) : below(state, 0x1000);
    uint16_t routing_id = first[below(state, sizeof(first) / sizeof(first[0]))];
    if (routing_id == 0x100 && below(state, 3) == 0)
        at = pf.sriov + below(state, 0x40);
    if (routing_id >= 0x100 && at + 8 > pf.msi && at < pf.msi + 0x18u)
        return;
    access(state, boot->ecam + ((uint64_t)routing_id << 12) + at);
}

static void registers(uint64_t *state)
{
    static const uint32_t hot[] = { 0x941c, 0xa188, 0xc000, 0xc314, 0xcf58, 0x101010, 0x138124, 0x190008, 0x1901f0,
                                    0x190240, 0x22230, 0x2230, 0x4ab8, 0x373000 };
    uint64_t at = hot[below(state, sizeof(hot) / sizeof(hot[0]))] + below(state, 16);
    if (below(state, 3))
        at = below(state, 0x400000);
    if (below(state, 8) == 0)
        at = below(state, pf.registers.size);
    access(state, pf.registers.address + at);
}

static void memory(uint64_t *state)
{
    const struct bar *bars[] = { &pf.local, &pf.vf_local, &pf.vf_registers };
    const struct bar *bar = bars[below(state, 3)];
    access(state, bar->address + below(state, bar->size));
}

static void once(uint64_t *state)
{
    switch (below(state, 4)) {
    case 0:
    case 1:
        configuration(state);
        break;
    case 2:
        registers(state);
        break;
    default:
        memory(state);
    }
}

static volatile bool second_stops;
static uint64_t second_seed, second_rounds;

static void second(void)
{
    uint64_t state = second_seed;
    for (; !second_stops; second_rounds++)
        once(&state);
    second_seed = state;
}

/* Restores bus numbers and D0, resets the card by FLR and assigns the BAR addresses again. */
static void recover(void)
{
    number_buses();
    config_write16(&pf, pf.power + 4, 0);
    function_level_reset(&pf);
    place();
}

void chaos(void)
{
    uint64_t rounds = boot_number("rounds", 6000), seed = boot_number("seed", 1);
    uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
    second_seed = any(&state);
    enumerate();
    place();
    for (uint64_t round = 0; round < rounds;) {
        second_stops = false;
        if (boot->cpus > 1)
            start_second(second);
        do
            once(&state);
        while (++round % 2000 && round < rounds);
        second_stops = true;
        if (boot->cpus > 1)
            await_second();
        recover();
    }
    pf_up();
    start_context(&pf_gpu, 0, COPY);
    expect_batch(&pf_gpu, 0, COPY);
    step("chaos: the card works after %u random accesses and %u of a second processor, seed %u", rounds,
         second_rounds, seed);
}
