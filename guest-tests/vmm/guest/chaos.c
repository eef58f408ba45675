/* Accesses at random: configuration spaces, registers, memory. The machine has to live, and to be put in order again. */

#include "boot_info.h"
#include "console.h"
#include "cpu.h"
#include "life.h"
#include "mmio.h"

static uint64_t state;

/* xorshift64*. */
static uint64_t any(void)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1d;
}

static uint64_t below(uint64_t limit)
{
    return (any() >> 16) % limit;
}

/* Mostly values that mean something to somebody. */
static uint64_t value(void)
{
    switch (below(6)) {
    case 0:
        return 0;
    case 1:
        return ~0ull;
    case 2:
        return 1ull << below(64);
    case 3:
        return boot->mmio64 + (below(1 << 16) << 20);
    case 4:
        return below(64);
    default:
        return any();
    }
}

static void access(uint64_t address)
{
    uint64_t width = 1ull << below(4);
    if (below(8))
        address &= -width;
    if (below(2))
        access_write(address, width, value());
    else
        access_read(address, width);
}

/* Host bridge, root port, PF, VFs, and functions that are not there; but no MSI, which could be any vector. */
static void configuration(void)
{
    static const uint16_t first[] = { 0x000, 0x008, 0x100, 0x100, 0x100, 0x100, 0x101, 0x102, 0x108, 0x200 };
    uint64_t at = below(4) ? below(0x100) : below(0x1000);
    uint16_t routing_id = first[below(sizeof(first) / sizeof(first[0]))];
    if (routing_id == 0x100 && below(3) == 0)
        at = pf.sriov + below(0x40);
    if (routing_id >= 0x100 && at + 8 > pf.msi && at < pf.msi + 0x18u)
        return;
    access(boot->ecam + ((uint64_t)routing_id << 12) + at);
}

static void registers(void)
{
    static const uint32_t hot[] = { 0x941c, 0xa188, 0xc000, 0xc314, 0xcf58, 0x101010, 0x138124, 0x190008, 0x1901f0,
                                    0x190240, 0x22230, 0x2230, 0x4ab8, 0x373000 };
    uint64_t at = below(3) ? below(0x400000) : hot[below(sizeof(hot) / sizeof(hot[0]))] + below(16);
    if (below(8) == 0)
        at = below(pf.registers.size);
    access(pf.registers.address + at);
}

static void memory(void)
{
    const struct bar *bars[] = { &pf.local, &pf.vf_local, &pf.vf_registers };
    const struct bar *bar = bars[below(3)];
    access(bar->address + below(bar->size));
}

/* The machine in order: what a reset by the guest's means can do. */
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
    state = seed * 0x9e3779b97f4a7c15 + 1;
    enumerate();
    place();
    for (uint64_t round = 1; round <= rounds; round++) {
        switch (below(4)) {
        case 0:
        case 1:
            configuration();
            break;
        case 2:
            registers();
            break;
        default:
            memory();
        }
        if (round % 2000 == 0)
            recover();
    }
    recover();
    pf_up();
    start_context(&pf_gpu, 0, COPY);
    expect_batch(&pf_gpu, 0, COPY);
    step("chaos: the card works after %u accesses at random, seed %u", rounds, seed);
}
