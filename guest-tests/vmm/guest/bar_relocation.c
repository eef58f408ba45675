/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Tests of BARs that are moved, overlap each other or RAM, and are enabled and disabled while another processor
 * accesses them. */

#include "boot_info.h"
#include "console.h"
#include "cpu.h"
#include "lifecycle.h"
#include "mmio.h"

#define GIB (1ull << 30)
#define PATTERN 0x0123456789abcdefull

/* Writes a BAR's register pair. With `decoding` set, memory decoding stays enabled during the write, which drivers
 * avoid. */
static void move(uint16_t at, uint64_t address, bool decoding)
{
    if (!decoding)
        config_write16(&pf, COMMAND, COMMAND_MASTER);
    config_write32(&pf, at, address);
    config_write32(&pf, at + 4, address >> 32);
    if (!decoding)
        config_write16(&pf, COMMAND, COMMAND_MASTER | COMMAND_MEMORY);
}

static void one_bar(void)
{
    uint64_t home = pf.local.address, before = home;
    write64(home + 0x1000, PATTERN);
    for (unsigned n = 1; n <= 8; n++) {
        /* Above all other BARs, so that nothing overlaps. */
        uint64_t next = boot->mmio64 + 64 * GIB + n * pf.local.size;
        map(next, GIB);
        move(0x18, next, n % 2);
        expect("local memory at its new address", PATTERN, read64(next + 0x1000));
        expect("local memory at its old address", ~0ull, read64(before + 0x1000));
        write64(next + 0x1000 * (n + 1), PATTERN + n);
        before = next;
    }
    move(0x18, home, false);
    for (unsigned n = 0; n <= 8; n++)
        expect("local memory, moved back", PATTERN + n, read64(home + 0x1000 * (n + 1)));
    step("moves: local memory moved to 8 other addresses and back, with and without decoding");

    home = before = pf.registers.address;
    for (unsigned n = 1; n <= 8; n++) {
        uint64_t next = boot->mmio64 + 128 * GIB + n * pf.registers.size;
        map(next, pf.registers.size);
        move(0x10, next, n % 2);
        expect("GU_CNTL at its new address", 0x80, read32(next + 0x101010) & 0x80);
        expect("GU_CNTL at its old address", 0xffffffff, read32(before + 0x101010));
        write64(next + GGTT + 8 * n, n << 12 | 1);
        write32(next + REG_GUC_HOST_INTERRUPT, 0);
        before = next;
    }
    move(0x10, home, false);
    for (uint64_t n = 1; n <= 8; n++)
        expect("a GGTT entry, moved back", n << 12 | 1, read64(home + GGTT + 8 * n));
    step("moves: registers, GGTT entries and doorbells moved to 8 other addresses and back");
}

/* Moves a BAR to invalid addresses. RAM must stay accessible, the guest must continue, and the BAR must work after
 * the move back. */
static void wrong_places(void)
{
    uint64_t home = pf.local.address;
    volatile uint64_t here = PATTERN;
    const uint64_t places[] = { 0, pf.registers.address & -pf.local.size, pf.vf_local.address & -pf.local.size,
                                1ull << 45, -pf.local.size };
    for (unsigned n = 0; n < sizeof(places) / sizeof(places[0]); n++) {
        move(0x18, places[n], true);
        expect("RAM while local memory is at an invalid address", PATTERN, here);
        here = PATTERN;
        move(0x18, home, true);
        expect("local memory after an invalid address", PATTERN, read64(home + 0x1000));
        expect("GU_CNTL after an invalid address", 0x80, read32(pf.registers.address + 0x101010) & 0x80);
    }
    config_write32(&pf, 0x10, pf.local.address);
    config_write32(&pf, 0x14, pf.local.address >> 32);
    config_write32(&pf, 0x10, pf.registers.address);
    config_write32(&pf, 0x14, pf.registers.address >> 32);
    expect("local memory after registers overlapped it", PATTERN, read64(home + 0x1000));
    expect("GU_CNTL after it overlapped local memory", 0x80, read32(pf.registers.address + 0x101010) & 0x80);
    step("moves: BARs over RAM, over other BARs and beyond the address space have no effect");
}

/* Enables invalid numbers of VFs. */
static void wrong_vfs(void)
{
    uint16_t total = config_read16(&pf, pf.sriov + SRIOV_TOTAL_VFS);
    const uint16_t counts[] = { 0, total + 1, 0xffff };
    for (unsigned n = 0; n < 3; n++) {
        config_write16(&pf, pf.sriov + SRIOV_NUM_VFS, counts[n]);
        config_write16(&pf, pf.sriov + SRIOV_CONTROL, VF_ARI | VF_ENABLE | VF_MEMORY);
        struct function vf = pf;
        vf.config += 4096;
        expect("VF 1 with an invalid NumVFs", 0xffffffff, config_read32(&vf, 4));
        expect("a register of VF 1 with an invalid NumVFs", 0xffffffff, read32(pf.vf_registers.address + REG_VF_CAP));
        config_write16(&pf, pf.sriov + SRIOV_CONTROL, 0);
    }
    step("moves: NumVFs 0, TotalVFs + 1 and 65535 enable no VF");
}

/* Accesses of all widths, unaligned accesses, and accesses at the edge of mapped ranges. */
static void odd_accesses(void)
{
    uint64_t registers = pf.registers.address;
    uint32_t word = read32(registers + 0x1083a0);
    for (unsigned byte = 0; byte < 4; byte++)
        expect("a byte of SG_TILE_ADDR_RANGE", word >> 8 * byte & 0xff, read8(registers + 0x1083a0 + byte));
    for (unsigned byte = 0; byte < 4; byte += 2)
        expect("a word of SG_TILE_ADDR_RANGE", word >> 8 * byte & 0xffff, read16(registers + 0x1083a0 + byte));
    expect("the lower half of a quad word", word, (uint32_t)read64(registers + 0x1083a0));
    read32(registers + 0x1083a1);
    read32(registers + 0x7ffffd);
    write64(registers + GGTT, PATTERN & ~0xfffull);
    expect("a GGTT entry", PATTERN & ~0xfffull, read64(registers + GGTT));
    expect("the middle of a GGTT entry", (uint32_t)(PATTERN >> 16), read32(registers + GGTT + 2));
    read64(registers + GGTT - 4);                       /* crosses from the registers into the GGTT */
    write64(registers + pf.registers.size - 4, 0);      /* crosses from the GGTT into the following range */
    read64(registers - 4);
    step("moves: bytes, words, quad words, unaligned addresses and edges are handled");
}

void moves(void)
{
    enumerate();
    place();
    one_bar();
    wrong_places();
    wrong_vfs();
    odd_accesses();
    pf_up();
    step("moves: the driver starts after these accesses");
}

static volatile bool touching, touched_wrong;
static volatile uint64_t touches, met;

/* Accesses ranges that may or may not be present. An absent range reads as all ones. */
static void touch(void)
{
    struct function vf = pf;
    vf.config += 4096;
    for (touching = true; touching; touches++) {
        uint32_t cap = read32(pf.vf_registers.address + REG_VF_CAP);
        touched_wrong |= cap != 1 && cap != 0xffffffff;
        met += cap == 1;
        write32(pf.vf_registers.address + REG_GUC_HOST_INTERRUPT, 0);
        uint64_t local = pf.vf_local.address + touches % 64 * 4096;
        write64(local, touches);
        read64(local);
        write64(pf.vf_registers.address + GGTT + touches % 64 * 8, touches << 12);
        uint32_t command = config_read32(&vf, COMMAND);
        touched_wrong |= command != 0xffffffff && (command & 0xfff8) != 0;
        write64(pf.local.address + touches % 64 * 4096, touches);
        write32(pf.registers.address + REG_GUC_HOST_INTERRUPT, 0);
    }
}

void races(void)
{
    if (boot->cpus < 2)
        fail("two processors are required, there is %u", (uint64_t)boot->cpus);
    enumerate();
    place();
    pf_up();
    start_second(touch);
    while (touches < 3)
        pause();
    uint64_t home = pf.local.address, away = boot->mmio64 + 64 * GIB;
    map(away, GIB);
    unsigned rounds = boot_number("rounds", 20);
    for (unsigned round = 0; round < rounds; round++) {
        uint64_t before = met;
        enable_vfs(2);
        while (met == before)                               /* wait until the second processor uses a VF */
            pause();
        uint16_t control = vfs[1].express + EXPRESS_DEVICE_CONTROL;
        config_write16(&vfs[1], control, INITIATE_FLR);
        config_write16(&pf, pf.sriov + SRIOV_CONTROL, VF_ARI | VF_ENABLE);
        config_write16(&pf, pf.sriov + SRIOV_CONTROL, VF_ARI | VF_ENABLE | VF_MEMORY);
        move(0x18, away, round % 2);
        move(0x18, home, round % 2);
        disable_vfs();
        if (round % 4 == 3) {
            config_write16(&pf, pf.express + EXPRESS_DEVICE_CONTROL, INITIATE_FLR);
            place();
        }
    }
    touching = false;
    await_second();
    if (touched_wrong)
        fail("the second processor read a value that neither a VF nor an absent range returns");
    pf_up();
    start_context(&pf_gpu, 0, COPY);
    expect_batch(&pf_gpu, 0, COPY);
    step("races: VFs, decoding, BARs and the card changed %u times, accessed %u times by the second processor",
         (uint64_t)rounds, touches);
}
