/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Memory, interrupts and contexts of a function (contract B.10, C.3, E.2, K.1). */

#include "gpu.h"
#include "boot_info.h"
#include "console.h"
#include "cpu.h"
#include "mailbox.h"
#include "mmio.h"

#define PATIENCE 10000000

/* RAM of the drivers: of the PF, of even-numbered VFs, of odd-numbered VFs. */
static uint8_t rams[3][RAM_BYTES] __attribute__((aligned(4096)));

const char *const class_names[CLASSES] = { "render", "video", "video enhance", "copy", "compute" };
/* By class: register base of the first engine, and its bit in the interrupt sources (contract K.3). */
static const uint32_t bases[CLASSES] = { 0x2000, 0x1c0000, 0x1c8000, 0x22000, 0x1a000 };
static const uint8_t sources[CLASSES] = { 0, 32, 63, 15, 4 };

uint64_t source_of(enum engine_class class)
{
    return 1ull << sources[class];
}

void gpu_init(struct gpu *gpu, const char *name, const struct function *function, bool vf, uint64_t own, uint64_t shown)
{
    unsigned number = function->routing_id - pf.routing_id;
    uint8_t *ram = rams[number ? 1 + number % 2 : 0];
    if (boot_option("high")) {
        if (boot->ram_high < 64 * RAM_BYTES)
            fail("high: not enough RAM above 4 GiB");
        ram = (uint8_t *)(0x100000000 + (uint64_t)number * RAM_BYTES);
        map((uint64_t)ram, RAM_BYTES);
    }
    *gpu = (struct gpu){ .name = name, .function = function, .vf = vf, .vector = 0x40 + number,
                         .registers = function->registers.address, .local = function->local.address, .own = own,
                         .shown = shown, .ram = ram };
    for (unsigned n = 0; n < RAM_BYTES; n++)
        ram[n] = 0;
}

void show_memory(struct gpu *gpu)
{
    uint64_t entries = gpu->registers + GGTT;
    for (uint64_t page = 0; page < OWN_BYTES / 4096; page++)
        write64(entries + 8 * (gpu->shown / 4096 + page), (gpu->own + page * 4096) | 3);
    for (uint64_t page = 0; page < RAM_BYTES / 4096; page++)
        write64(entries + 8 * ((gpu->shown + SHOWN_RAM) / 4096 + page), ((uint64_t)gpu->ram + page * 4096) | 1);
    uint64_t last = read64(entries + 8 * ((gpu->shown + SHOWN_RAM) / 4096));
    expect("a GGTT entry, read back", (uint64_t)gpu->ram, last & 0x3ffffffff000);
}

/* Page tables of four levels, in local memory. Entries that refer to tables have no local memory bit. Table 2 maps
 * 2 MiB pages of local memory, table 3 the driver's RAM. */
void write_tables(struct gpu *gpu)
{
    const uint64_t table = 0x003, local_2m = 0x883, system = 0x003;
    uint64_t at = own_local(gpu, OWN_TABLES), physical = gpu->own + OWN_TABLES;
    for (uint64_t n = 0; n < 0x4000; n += 8)
        write64(at + n, 0);
    write64(at, (physical + 0x1000) | table);
    write64(at + 0x1000, (physical + 0x2000) | table);
    for (uint64_t n = 0; n < OWN_BYTES >> 21; n++)
        write64(at + 0x2000 + 8 * n, (gpu->own + (n << 21)) | local_2m);
    write64(at + 0x2000 + 8 * (PROCESS_RAM >> 21), (physical + 0x3000) | table);
    for (uint64_t n = 0; n < RAM_BYTES / 4096; n++)
        write64(at + 0x3000 + 8 * n, ((uint64_t)gpu->ram + 4096 * n) | system);
}

void show_frame(struct gpu *gpu, uint64_t frame)
{
    write64(own_local(gpu, OWN_TABLES + 0x2000 + 8 * (PROCESS_FRAME >> 21)), frame | 0x883);
}

void enable_interrupts(struct gpu *gpu)
{
    static const uint32_t masks[] = { 0x190090, 0x1900a0, 0x1900a8, 0x1900ac, 0x1900b0,
                                      0x1900b4, 0x1900d0, 0x1900d4, 0x190100, 0x190104 };
    for (unsigned n = 0; n < sizeof(masks) / sizeof(masks[0]); n++)
        reg_write(gpu, masks[n], ~0x00110011u);
    reg_write(gpu, 0x190030, 0x00110011);   /* render, copy: user interrupt, flush */
    reg_write(gpu, 0x190034, 0x00110011);   /* video */
    reg_write(gpu, 0x190048, 0x00110000);   /* compute */
    reg_write(gpu, 0x190038, 0x80000000);   /* GuC to host */
    reg_write(gpu, 0x1900e8, ~0x80000000u);
    reg_write(gpu, REG_MASTER, 0x80000000);
}

uint64_t serve_interrupts(struct gpu *gpu)
{
    uint64_t seen = 0;
    reg_write(gpu, REG_MASTER, 0);
    uint32_t tile = reg_read(gpu, REG_MASTER);
    if (tile) {
        expect("the tile's bit", 1, tile);
        reg_write(gpu, REG_MASTER, tile);
        uint32_t banks = reg_read(gpu, REG_GT_MASTER);
        reg_write(gpu, REG_GT_MASTER, banks);
        for (int bank = 0; bank < 2; bank++) {
            if (!(banks & 1u << bank))
                continue;
            uint32_t bits = reg_read(gpu, REG_GT_INTERRUPT(bank));
            for (uint32_t left = bits; left; left &= left - 1) {
                unsigned bit = __builtin_ctz(left);
                reg_write(gpu, REG_SELECTOR(bank), 1u << bit);
                uint32_t identity = reg_read(gpu, REG_IDENTITY(bank));
                if (!(identity >> 31))
                    fail("%s: identity of bank %u, bit %u is not valid: %x", gpu->name, (uint64_t)bank, (uint64_t)bit,
                         (uint64_t)identity);
                reg_write(gpu, REG_IDENTITY(bank), identity);
                seen |= 1ull << (32 * bank + bit);
            }
            reg_write(gpu, REG_GT_INTERRUPT(bank), bits);
        }
    }
    reg_write(gpu, REG_MASTER, 0x80000000);
    return seen;
}

uint64_t serve_memory_interrupts(struct gpu *gpu)
{
    uint64_t seen = 0;
    for (unsigned n = 0; n < 64; n++) {
        volatile uint8_t *byte = gpu->ram + RAM_INTERRUPTS + 0x400 + n;
        if (!*byte)
            continue;
        expect("the source byte of a memory-based interrupt", 0xff, *byte);
        *byte = 0;
        fence();
        unsigned bit = n == 25 ? 15 : 0;    /* GUC2HOST, or a user interrupt */
        volatile uint8_t *status = gpu->ram + RAM_INTERRUPTS + 16 * n + bit;
        expect("the status of an interrupt source", 0xff, *status);
        *status = 0;
        seen |= 1ull << n;
    }
    return seen;
}

void expect_sources(struct gpu *gpu, const char *what, uint64_t wanted)
{
    static uint64_t served[256];
    uint64_t seen = 0;
    for (uint64_t start = tsc(); (seen & wanted) != wanted; pause()) {
        /* Sources are read only after an MSI, as in a driver. */
        uint64_t count = interrupts(gpu->vector);
        if (count != served[gpu->vector]) {
            served[gpu->vector] = count;
            seen |= gpu->vf ? serve_memory_interrupts(gpu) : serve_interrupts(gpu);
        }
        if (tsc() - start > microseconds(PATIENCE))
            fail("%s: %s: expected interrupts of sources %x, seen %x in %u MSIs", gpu->name, what, wanted, seen, count);
    }
}

/* Writes the register state of a context in xe's layout, for the first engine of a class. */
static void write_image(struct gpu *gpu, unsigned id, enum engine_class class)
{
    static const uint16_t first[] = { 0x244, 0x034, 0x030, 0x038, 0x03c, 0x168, 0x140, 0x110,
                                      0x1c0, 0x1c4, 0x1c8, 0x180, 0x2b4, 0x120, 0x124 };
    static const uint16_t second[] = { 0x3a8, 0x28c, 0x288, 0x284, 0x280, 0x27c, 0x278, 0x274, 0x270 };
    uint64_t at = own_local(gpu, OWN_IMAGES + 0x10000 * id);
    for (uint64_t n = 0; n < 0x2000; n += 8)
        write64(at + n, 0);
    uint64_t image = at + 0x1000;
    write32(image + 4 * 0x01, 0x1108101d);      /* MI_LOAD_REGISTER_IMM of 15 registers, base-relative, posted */
    for (unsigned n = 0; n < 15; n++)
        write32(image + 4 * (0x02 + 2 * n), bases[class] + first[n]);
    write32(image + 4 * 0x21, 0x11081011);      /* of 9 registers */
    for (unsigned n = 0; n < 9; n++)
        write32(image + 4 * (0x22 + 2 * n), bases[class] + second[n]);
    write32(image + 4 * 0x34, 0x05000001);      /* MI_BATCH_BUFFER_END */
    write32(image + 4 * 0x03, 0x00090009);      /* restore inhibit: the context is new */
    write32(image + 4 * 0x09, gpu->shown + OWN_RINGS + 0x1000 * id);
    write32(image + 4 * 0x0b, 1);               /* a ring of 4 KiB */
    write32(image + 4 * 0x33, gpu->own + OWN_TABLES);
    if (!gpu->vf)
        return;
    uint32_t page = gpu->shown + SHOWN_RAM + RAM_INTERRUPTS;
    write32(image + 4 * 0x50, 0x14c80002);      /* MI_LOAD_REGISTER_MEM: interrupt mask */
    write32(image + 4 * 0x51, 0xa8);
    write32(image + 4 * 0x52, page + 0x440);
    write32(image + 4 * 0x55, 0x11081003);      /* status and source pointers */
    write32(image + 4 * 0x56, 0xac);
    write32(image + 4 * 0x57, page);
    write32(image + 4 * 0x58, 0xa4);
    write32(image + 4 * 0x59, page + 0x400);
    *(volatile uint32_t *)(gpu->ram + RAM_INTERRUPTS + 0x440) = 1;
}

/* Returns the value that the last batch of a context stores. */
static uint32_t stored(const struct gpu *gpu, unsigned id)
{
    return 0x5e000000 | (gpu->function->routing_id & 0xffu) << 16 | id << 12 | (gpu->seqno[id] & 0xfff);
}

static uint64_t put(uint64_t at, const uint32_t *commands, unsigned count)
{
    for (unsigned n = 0; n < count; n++, at += 4)
        write32(at, commands[n]);
    return at;
}

void queue_batch(struct gpu *gpu, unsigned id, const uint32_t *commands, unsigned count)
{
    gpu->seqno[id]++;
    uint32_t value = stored(gpu, id);
    const uint32_t stores[] = {
        0x20 << 23 | 2, OWN_DATA + 16 * id, 0, value,                       /* MI_STORE_DATA_IMM to local memory */
        0x20 << 23 | 2, PROCESS_RAM + RAM_DATA + 16 * id, 0, ~value,        /* and to RAM */
        0x0a << 23,                                                         /* MI_BATCH_BUFFER_END */
    };
    uint64_t batch = own_local(gpu, OWN_BATCHES + 0x1000 * id);
    put(put(batch, commands, count), stores, sizeof(stores) / 4);
    const uint32_t in_ring[] = {
        0x31 << 23 | 1 << 8 | 1, OWN_BATCHES + 0x1000 * id, 0,              /* MI_BATCH_BUFFER_START in the PPGTT */
        0x20 << 23 | 1 << 22 | 2, gpu->shown + SHOWN_RAM + RAM_SEQNOS + 16 * id, 0, gpu->seqno[id],
        0x02 << 23,                                                         /* MI_USER_INTERRUPT */
    };
    uint64_t ring = own_local(gpu, OWN_RINGS + 0x1000 * id);
    uint32_t tail = gpu->image_tail[id];
    for (unsigned n = 0; n < sizeof(in_ring) / 4; n++, tail = (tail + 4) % 4096)
        write32(ring + tail, in_ring[n]);
    gpu->image_tail[id] = tail;
    fence();
    write32(own_local(gpu, OWN_IMAGES + 0x10000 * id) + 0x1000 + 4 * 0x07, tail);
}

void start_context(struct gpu *gpu, unsigned id, enum engine_class class)
{
    gpu->image_tail[id] = 0;
    write_image(gpu, id, class);
    queue_batch(gpu, id, NULL, 0);
    uint32_t descriptor = (gpu->shown + OWN_IMAGES + 0x10000 * id) | 0x119;
    SEND_FAST(gpu, 0x4502, 1, id, class, 1, 0, 0, 0, 0, 0, descriptor, 0);                      /* REGISTER_CONTEXT */
    SEND_FAST(gpu, 0x100b, id, 0x20030001, 1, 0x20010001, 1000, 0x20020001, 640000);            /* policies */
    SEND_FAST(gpu, 0x1001, id, 1);                                                              /* enable */
    expect_message(gpu, "SCHED_CONTEXT_MODE_DONE", 3, 0x90001002, id, 1);
}

void submit(struct gpu *gpu, unsigned id)
{
    SEND_FAST(gpu, 0x1000, id);
}

void expect_batch(struct gpu *gpu, unsigned id, enum engine_class class)
{
    volatile uint32_t *seqno = (volatile uint32_t *)(gpu->ram + RAM_SEQNOS + 16 * id);
    expect_sources(gpu, class_names[class], source_of(class));
    for (uint64_t start = tsc(); *seqno != gpu->seqno[id]; pause())
        if (tsc() - start > microseconds(PATIENCE))
            fail("%s: %s: expected seqno %u, seen %u", gpu->name, class_names[class], (uint64_t)gpu->seqno[id],
                 (uint64_t)*seqno);
    uint32_t value = stored(gpu, id);
    expect("stored to local memory", value, read32(own_local(gpu, OWN_DATA + 16 * id)));
    expect("stored to RAM", ~value, *(volatile uint32_t *)(gpu->ram + RAM_DATA + 16 * id));
}

static uint32_t page_read(struct gpu *gpu, unsigned page)
{
    __atomic_fetch_add(&accesses_of(gpu->function)->pages, 1, __ATOMIC_RELAXED);
    return read32(gpu->registers + DOORBELL_PAGE(page));
}

static void page_write(struct gpu *gpu, unsigned page)
{
    __atomic_fetch_add(&accesses_of(gpu->function)->pages, 1, __ATOMIC_RELAXED);
    write32(gpu->registers + DOORBELL_PAGE(page), 1);
}

void submit_by_page(struct gpu *gpu, unsigned id, enum engine_class class, unsigned rounds)
{
    const uint32_t armed = 0xacedbeef, not_armed = 0xdeadbeef;
    unsigned doorbell = 2, page = 5 + id;
    expect("a page without a doorbell", not_armed, page_read(gpu, page));
    REQUEST(gpu, "ALLOCATE_DOORBELL", 0xf0000000, 0x0010, id, doorbell, DOORBELL_PAGE(page), 0, 0);
    while (rounds--) {
        queue_batch(gpu, id, NULL, 0);
        page_write(gpu, page);
        expect_batch(gpu, id, class);
    }
    queue_batch(gpu, id, NULL, 0);
    expect("a page with a doorbell, which the read rings", armed, page_read(gpu, page));
    expect_batch(gpu, id, class);
    REQUEST(gpu, "DEALLOCATE_DOORBELL", 0xf0000000, 0x0020, id);
    expect("the page after the doorbell was deallocated", not_armed, page_read(gpu, page));
}

void end_context(struct gpu *gpu, unsigned id)
{
    SEND_FAST(gpu, 0x1001, id, 0);
    expect_message(gpu, "SCHED_CONTEXT_MODE_DONE", 3, 0x90001002, id, 0);
    SEND_FAST(gpu, 0x4503, id);
    expect_message(gpu, "DEREGISTER_CONTEXT_DONE", 2, 0x90004600, id, 0);
}

void invalidate(struct gpu *gpu)
{
    SEND_FAST(gpu, 0x7000, 77, 1u << 31);       /* TLB_INVALIDATION of all entries */
    expect_message(gpu, "TLB_INVALIDATION_DONE", 2, 0x90007001, 77, 0);
}
