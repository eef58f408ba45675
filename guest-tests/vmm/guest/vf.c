/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Tests of two VFs: the PF's driver provisions them and handles their resets, and the VFs' drivers run (contract C,
 * D). */

#include "console.h"
#include "cpu.h"
#include "lifecycle.h"
#include "mmio.h"

#define PATIENCE 10000000

/* Quota of each VF. */
#define QUOTA_LOCAL 0x800000ull
#define QUOTA_GLOBAL 0x1000000ull
#define QUOTA_CONTEXTS 64
#define QUOTA_DOORBELLS 4
/* Addresses of the LMTT, of each VF's local memory frames, and of its GGTT range. */
#define LMTT 0x2000000ull
#define FRAMES(vf) (0x8000000ull + QUOTA_LOCAL * ((vf) - 1))
#define GLOBAL(vf) (0x10000000ull + QUOTA_GLOBAL * ((vf) - 1))

static struct gpu vf_gpus[64];

/* Assigns a VF's GGTT entries to the VF, with address 0. */
static void assign(unsigned vf)
{
    for (uint64_t page = GLOBAL(vf) / 4096; page < (GLOBAL(vf) + QUOTA_GLOBAL) / 4096; page++)
        write64(pf_gpu.registers + GGTT + 8 * page, vf << 2 | 1);
}

/* Writes the LMTT: a directory and tables of 64 KiB with an entry per 2 MiB of a VF's local memory (contract D.5). */
static void write_lmtt(unsigned count)
{
    uint64_t directory = pf_gpu.local + LMTT;
    for (unsigned vf = 1; vf <= count; vf++) {
        uint64_t table = LMTT + 0x10000 * vf;
        write32(directory + 4 * vf, table >> 16 << 4 | 1);
        for (uint64_t page = 0; page < QUOTA_LOCAL >> 21; page++)
            write32(pf_gpu.local + table + 4 * page, (FRAMES(vf) + (page << 21)) >> 21 << 5 | 1);
    }
    reg_write(&pf_gpu, REG_LMEM_CFG, 1u << 31 | LMTT >> 16);
}

static void provision(unsigned vf)
{
    assign(vf);
    const uint32_t list[] = {
        0x0001 << 16 | 2, GLOBAL(vf), 0,                /* GGTT_START */
        0x0002 << 16 | 2, QUOTA_GLOBAL, 0,              /* GGTT_SIZE */
        0x0003 << 16 | 2, QUOTA_LOCAL, 0,               /* LMEM_SIZE */
        0x8a0bu << 16 | 1, 1024 + vf * QUOTA_CONTEXTS,  /* BEGIN_CONTEXT_ID: after those of the PF */
        0x0004 << 16 | 1, QUOTA_CONTEXTS,
        0x8a0au << 16 | 1, (vf - 1) * QUOTA_DOORBELLS,  /* BEGIN_DOORBELL_ID */
        0x0006 << 16 | 1, QUOTA_DOORBELLS,
        0x8a01u << 16 | 1, 16,                          /* EXEC_QUANTUM, ms */
        0x8a02u << 16 | 1, 640000,                      /* PREEMPT_TIMEOUT, us */
    };
    for (unsigned n = 0; n < sizeof(list) / 4; n++)
        write32(own_local(&pf_gpu, OWN_LIST + 4 * n), list[n]);
    REQUEST(&pf_gpu, "UPDATE_VF_CFG: nine KLVs are accepted", 0xf0000000 | 9, 0x5503, vf, pf_gpu.shown + OWN_LIST, 0,
            sizeof(list) / 4);
}

static uint64_t query(struct gpu *gpu, uint32_t key, unsigned dwords)
{
    uint32_t message[4] = { 0x5509, key };
    mail(gpu, message);
    if (message[0] != (0xf0000000 | dwords))
        fail("%s: query of %x: expected %u dwords, the GuC responds %x", gpu->name, (uint64_t)key, (uint64_t)dwords,
             (uint64_t)message[0]);
    return message[1] | (dwords == 2 ? (uint64_t)message[2] << 32 : 0);
}

/* Initialises a VF's driver, which queries its provisioned quotas from the GuC. */
static void handshake(struct gpu *gpu, unsigned vf)
{
    expect("VF_CAP of a VF", 1, reg_read(gpu, REG_VF_CAP));
    expect("VF_CAP of a VF, again", 1, reg_read(gpu, REG_VF_CAP));
    expect("a register that does not exist on VFs", 0, reg_read(gpu, 0x101010));
    reg_write(gpu, 0xc068, 0x12345678);
    expect("the same register after a write", 0, reg_read(gpu, 0xc068));
    mail_expect(gpu, "VF_RESET", 0x5507, 0, 0, 0xf0000000);
    uint32_t version[4] = { 0x5500, 1 << 16 | 1 << 8 };
    mail(gpu, version);
    expect("MATCH_VERSION", 0xf0000000, version[0]);
    expect("the GuC's version: 1.27.0", 0x011b00, version[1]);
    expect("GGTT_START", GLOBAL(vf), query(gpu, 1, 2));
    expect("GGTT_SIZE", QUOTA_GLOBAL, query(gpu, 2, 2));
    expect("LMEM_SIZE", QUOTA_LOCAL, query(gpu, 3, 2));
    expect("NUM_CONTEXTS", QUOTA_CONTEXTS, query(gpu, 4, 1));
    expect("NUM_DOORBELLS", QUOTA_DOORBELLS, query(gpu, 6, 1));
    step("%s: handshake by mailbox: reset, version 1.27.0, five quotas as the PF gave them", gpu->name);
}

void vf_up(unsigned vf)
{
    static char names[64][8];
    names[vf][format(names[vf], sizeof(names[vf]) - 1, "VF %u", (uint64_t)vf)] = 0;
    struct gpu *gpu = &vf_gpus[vf];
    gpu_init(gpu, names[vf], &vfs[vf], true, 0, GLOBAL(vf));
    enable_msi(&vfs[vf], gpu->vector);
    handshake(gpu, vf);
    show_memory(gpu);
    write_tables(gpu);
    uint32_t page = gpu->shown + SHOWN_RAM + RAM_INTERRUPTS;
    mail_expect(gpu, "SELF_CFG: source", 0x0508, 0x0901 << 16 | 2, page + 0x400 + 25, 0xf0000001);
    mail_expect(gpu, "SELF_CFG: status", 0x0508, 0x0900 << 16 | 2, page + 16 * 25, 0xf0000001);
    open_rings(gpu);
    invalidate(gpu);
    expect_sources(gpu, "a message from the GuC", SOURCE_GUC);
    step("%s: a message raises a memory-based interrupt and the VF's own MSI, vector %x", gpu->name,
         (uint64_t)gpu->vector);
}

void vf_works(unsigned vf, bool alone)
{
    static const enum engine_class classes[] = { COPY, RENDER, COMPUTE };
    struct gpu *gpu = &vf_gpus[vf];
    uint64_t before = interrupts(gpu->vector), pf_before = interrupts(pf_gpu.vector);
    for (unsigned n = 0; n < 3; n++) {
        start_context(gpu, n, classes[n]);
        expect_batch(gpu, n, classes[n]);
    }
    for (unsigned round = 0; round < 60; round++) {
        queue_batch(gpu, round % 3, NULL, 0);
        submit(gpu, round % 3);
        expect_batch(gpu, round % 3, classes[round % 3]);
    }
    submit_by_page(gpu, 0, COPY, 10);
    if (alone)
        expect("MSIs of the PF during a VF's batches", pf_before, interrupts(pf_gpu.vector));
    step("%s: 74 batches on copy, render and compute: local memory, RAM, %u MSIs of its own", gpu->name,
         interrupts(gpu->vector) - before);
}

/* Commands of one VF access resources of the other. */
static void kept_apart(void)
{
    struct gpu *one = &vf_gpus[1], *two = &vf_gpus[2];
    uint64_t place = OWN_DATA + 0x800;
    write32(own_local(one, place), 0x11111111);
    write32(own_local(two, place), 0x22222222);
    expect("VF 1's local memory next to VF 2's", 0x11111111, read32(own_local(one, place)));
    expect("VF 1's GGTT entries, read by VF 2", 0, read64(two->registers + GGTT + 8 * (GLOBAL(1) / 4096)));
    write64(two->registers + GGTT + 8 * (GLOBAL(1) / 4096), 0);
    /* A store from VF 2's ring, which is privileged, to a GGTT address of VF 1. */
    const uint32_t commands[] = { 0x20 << 23 | 1 << 22 | 2, GLOBAL(1) + place, 0, 0xbad };
    uint64_t ring = own_local(two, OWN_RINGS);
    for (unsigned n = 0; n < 4; n++)
        write32(ring + (two->image_tail[0] + 4 * n) % 4096, commands[n]);
    write32(own_local(two, OWN_IMAGES) + 0x1000 + 4 * 0x07, (two->image_tail[0] + 16) % 4096);
    submit(two, 0);
    struct message message = { 0 };
    if (!receive(two, &message, PATIENCE))
        fail("VF 2: a store to VF 1's memory is not reported");
    if (message.hxg[0] != 0x90006000 && message.hxg[0] != 0x90001008)
        fail("VF 2: expected CAT_ERROR or CONTEXT_RESET of context 0, seen %x %x", (uint64_t)message.hxg[0],
             (uint64_t)message.hxg[1]);
    expect("the context that is reported", 0, message.hxg[1]);
    expect("VF 1's local memory after VF 2's store", 0x11111111, read32(own_local(one, place)));
    queue_batch(one, 0, NULL, 0);
    submit(one, 0);
    expect_batch(one, 0, COPY);
    step("VF 2 reaches nothing of VF 1's: local memory, global entries, stores by its ring (%x)",
         (uint64_t)message.hxg[0]);
}

/* The PF's copy engine clears a VF's frames, as the driver does (contract D.7, XY_FAST_COLOR_BLT). */
static void clear_frames(unsigned vf)
{
    struct gpu *gpu = &pf_gpu;
    for (uint64_t frame = FRAMES(vf); frame < FRAMES(vf) + QUOTA_LOCAL; frame += 1 << 21) {
        show_frame(gpu, frame);
        invalidate(gpu);
        const uint32_t blit[16] = {
            2u << 29 | 0x44 << 22 | 2 << 19 | 14, 4095, 0, 512 << 16 | 1024, PROCESS_FRAME,
        };
        queue_batch(gpu, 0, blit, 16);
        submit(gpu, 0);
        expect_batch(gpu, 0, COPY);
    }
}

/* Handles a VF's reset in the PF's driver (contract D.7). */
static void lead_reset(unsigned vf)
{
    struct gpu *gpu = &pf_gpu;
    const uint32_t start[] = { 0x5506, vf, 4 }, finish[] = { 0x5506, vf, 5 };
    send(gpu, 0x12, start, 3);
    bool answered = false, done = false;
    while (!answered || !done) {
        struct message message = { 0 };
        if (!receive(gpu, &message, PATIENCE))
            fail("PF: FLR_START of VF %u: response %u, FLR_DONE %u", (uint64_t)vf, (uint64_t)answered, (uint64_t)done);
        if (message.length == 1 && message.hxg[0] == 0xf0000000)
            answered = true;
        else if (message.length == 3 && message.hxg[0] == VF_STATE_NOTIFY && message.hxg[1] == vf &&
                 message.hxg[2] == VF_NOTIFY_FLR_DONE)
            done = true;
        else
            fail("PF: FLR_START of VF %u: the GuC sends %x %x %x", (uint64_t)vf, (uint64_t)message.hxg[0],
                 (uint64_t)message.hxg[1], (uint64_t)message.hxg[2]);
    }
    assign(vf);
    clear_frames(vf);
    for (int n = 0; n < 4; n++)
        reg_write(gpu, 0x400 * vf + REG_MAILBOX(n), 0);
    send(gpu, 0x12, finish, 3);
    expect_message(gpu, "FLR_FINISH", 1, 0xf0000000, 0, 0);
    gpu->resets &= ~(1ull << vf);
}

void reset_vf_1(bool alone)
{
    struct gpu *gpu = &vf_gpus[1];
    uint64_t left[] = { OWN_DATA, OWN_RINGS, OWN_IMAGES + 0x1000, OWN_CTB + 0x1000 };
    function_level_reset(&vfs[1]);
    expect("a VF's MSI Enable after FLR", 0, config_read16(&vfs[1], vfs[1].msi + 2) & 1);
    expect_message(&pf_gpu, "VF_STATE_NOTIFY: FLR", 3, VF_STATE_NOTIFY, 1, VF_NOTIFY_FLR);
    lead_reset(1);
    for (unsigned n = 0; n < 4; n++)
        expect("VF 1's local memory after FLR", 0, read32(own_local(gpu, left[n])));
    expect("VF 1's mailbox after FLR", 0, reg_read(gpu, REG_MAILBOX(0)));
    step("VF 1: reset by its Express capability; the PF led it: FLR_START, FLR_DONE, memory cleared, FLR_FINISH");
    config_write16(&vfs[1], COMMAND, COMMAND_MASTER);
    vf_up(1);
    vf_works(1, alone);
}

static void vfs_end(void)
{
    disable_vfs();
    for (unsigned vf = 1; vf <= 2; vf++)
        expect_message(&pf_gpu, "VF_STATE_NOTIFY: FLR", 3, VF_STATE_NOTIFY, vf, VF_NOTIFY_FLR);
    for (unsigned vf = 1; vf <= 2; vf++)
        lead_reset(vf);
    for (unsigned vf = 1; vf <= 2; vf++)
        REQUEST(&pf_gpu, "UPDATE_VF_CFG: quotas removed", 0xf0000000, 0x5503, vf, 0, 0, 0);
    step("PF: both VFs reset, their quotas released");
}

void vfs_up(unsigned count)
{
    write_lmtt(count);
    for (unsigned vf = 1; vf <= count; vf++)
        provision(vf);
    SEND_FAST(&pf_gpu, 0x7002, 1, 1u << 31);        /* TLB_INVALIDATION_ALL */
    expect_message(&pf_gpu, "TLB_INVALIDATION_DONE", 2, 0x90007001, 1, 0);
    step("PF: %u VFs provisioned: global entries, tables of local memory, nine values each", (uint64_t)count);
    enable_vfs(count);
}

void many_vfs(void)
{
    enumerate();
    place();
    pf_up();
    start_context(&pf_gpu, 0, COPY);
    expect_batch(&pf_gpu, 0, COPY);
    unsigned total = config_read16(&pf, pf.sriov + SRIOV_TOTAL_VFS);
    vfs_up(total);
    for (unsigned vf = 1; vf <= total; vf++) {
        vf_up(vf);
        struct gpu *gpu = &vf_gpus[vf];
        start_context(gpu, 0, COPY);
        expect_batch(gpu, 0, COPY);
        write64(own_local(gpu, OWN_DATA + 0x800), vf);
    }
    for (unsigned vf = 1; vf <= total; vf++)
        expect("a VF's local memory after all VFs' writes", vf, read64(own_local(&vf_gpus[vf], OWN_DATA + 0x800)));
    step("many: %u VFs concurrently, each with a driver, a batch and its own MSI", (uint64_t)total);
    disable_vfs();
}

void vf_life(void)
{
    enumerate();
    place();
    pf_up();
    start_context(&pf_gpu, 0, COPY);
    expect_batch(&pf_gpu, 0, COPY);
    for (int life = 1; life <= 2; life++) {
        vfs_up(2);
        vf_up(1);
        vf_works(1, true);
        vf_up(2);
        vf_works(2, true);
        kept_apart();
        reset_vf_1(true);
        queue_batch(&pf_gpu, 0, NULL, 0);
        submit(&pf_gpu, 0);
        expect_batch(&pf_gpu, 0, COPY);
        vfs_end();
    }
    enable_vfs(2);
    function_level_reset(&pf);
    expect("SR-IOV Control after the PF's FLR", 0, config_read16(&pf, pf.sriov + SRIOV_CONTROL));
    expect("VF 1's configuration space after the PF's FLR", 0xffffffff, config_read32(&vfs[1], 4));
    place();
    pf_up();
    start_context(&pf_gpu, 0, COPY);
    expect_batch(&pf_gpu, 0, COPY);
    step("PF: alive again after its Function Level Reset, which took the VFs with it");
}
