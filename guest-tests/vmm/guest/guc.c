/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* The GuC: firmware, mailbox, CT rings (contract B.4, B.6, K.7). */

#include "boot_info.h"
#include "console.h"
#include "cpu.h"
#include "gpu.h"
#include "mailbox.h"
#include "mmio.h"

#define RING_DWORDS 1024
#define TO_GUC (OWN_CTB + 0x1000)
#define FROM_GUC (OWN_CTB + 0x2000)
#define TO_GUC_HEAD (OWN_CTB + 0x000)
#define FROM_GUC_HEAD (OWN_CTB + 0x800)

/* Timeout in microseconds: longer than the drivers' (contract K.9), since the host's CPUs may be busy. */
#define PATIENCE 10000000

uint32_t reg_read(const struct gpu *gpu, uint32_t reg)
{
    return read32(counted_read(gpu->function) + reg);
}

void reg_write(const struct gpu *gpu, uint32_t reg, uint32_t value)
{
    struct mailbox_accesses *accesses = accesses_of(gpu->function);
    bool event = reg == REG_GUC_HOST_INTERRUPT || reg == REG_VF_CAP;
    __atomic_fetch_add(event ? &accesses->events : &accesses->writes, 1, __ATOMIC_RELAXED);
    write32(gpu->registers + reg, value);
}

/* Writes the ADS with the engine instances of each class (contract B.7), as fused in the card file. */
static void write_ads(struct gpu *gpu)
{
    static const uint32_t instances[CLASSES] = { 0x1, 0x5, 0x3, 0x1, 0xf };
    uint64_t ads = own_local(gpu, OWN_ADS);
    uint32_t shown = gpu->shown + OWN_ADS;
    write32(ads + 0x1004, shown + 0x11dc);
    write32(ads + 0x1008, shown + 0x123c);
    write32(ads + 0x1220, 1);
    for (unsigned class = 0; class < 16; class++) {
        uint64_t row = ads + 0x123c + 32 * class;
        uint32_t mask = class < CLASSES ? instances[class] : 0;
        unsigned logical = 0;
        for (unsigned physical = 0; physical < 32; physical++)
            if (mask & 1u << physical)
                write8(row + logical++, physical);
        while (logical < 32)
            write8(row + logical++, 0x20);
        write32(ads + 0x143c + 4 * class, mask);
    }
}

/* Placeholder firmware, used if the command line gives none: a header (xe: abi/uc_fw_abi.h) that the card's boot ROM
 * accepts, an empty page, a non-zero signature. */
#define STAND_IN_KERNEL 1024
#define STAND_IN_SIGNATURE 96
static uint32_t stand_in[32 + STAND_IN_KERNEL + STAND_IN_SIGNATURE] __attribute__((aligned(4096))) = {
    6, 32 + 96 + 96 + 1, 0x10000, 0, 0x8086, 0x20260101, 32 + 96 + 96 + 1 + STAND_IN_KERNEL, STAND_IN_SIGNATURE, 96, 1,
    [16] = 70 << 16 | 53 << 8,
    [17] = 1 << 16 | 26 << 8,
    [32 + STAND_IN_KERNEL] = 0x12345678,
};

void load_guc(struct gpu *gpu)
{
    uint64_t at = boot_number("firmware", (uint64_t)stand_in);
    uint64_t bytes = boot_number("firmware_bytes", sizeof(stand_in));
    for (uint64_t page = 0; page * 4096 < bytes; page++)
        write64(gpu->registers + GGTT + 8 * ((gpu->shown + SHOWN_FIRMWARE) / 4096 + page), (at + page * 4096) | 1);
    write_ads(gpu);
    uint32_t signature = read32(at + 28) * 4;
    uint32_t moved = bytes - signature, shown = gpu->shown + SHOWN_FIRMWARE;
    const uint32_t writes[][2] = {
        { REG_WOPCM_SIZE, 0x3f3000 },
        { REG_WOPCM_OFFSET, 0x4000 },
        { REG_SCRATCH(5), (gpu->shown + OWN_ADS) >> 12 << 1 },
        { REG_SCRATCH(3), 0x14 },           /* features: SLPC, lite restore */
        { REG_SCRATCH(2), 0x424800 },       /* workarounds */
        { REG_RSA, shown + moved },
        { REG_DMA_SOURCE, shown },
        { REG_DMA_SOURCE_HIGH, 0x80000 },   /* GGTT addresses */
        { REG_DMA_TARGET, 0x2000 },
        { REG_DMA_TARGET_HIGH, 0x70000 },   /* WOPCM */
        { REG_DMA_SIZE, moved },
        { REG_DMA_CONTROL, 0x00110011 },    /* UOS_MOVE, START_DMA */
    };
    for (unsigned n = 0; n < sizeof(writes) / sizeof(writes[0]); n++)
        reg_write(gpu, writes[n][0], writes[n][1]);
    expect("WOPCM size, locked", 0x3f3001, reg_read(gpu, REG_WOPCM_SIZE));
    expect("WOPCM offset, valid", 0x4001, reg_read(gpu, REG_WOPCM_OFFSET));
    uint32_t status = 0;
    for (uint64_t start = tsc(); tsc() - start < microseconds(PATIENCE);) {
        status = reg_read(gpu, REG_GUC_STATUS);
        if (!(reg_read(gpu, REG_DMA_CONTROL) & 1) && (status >> 8 & 0xff) == 0xf0)
            break;
    }
    expect("START_DMA after the DMA completed", 0, reg_read(gpu, REG_DMA_CONTROL) & 1);
    expect("GUC_STATUS: ready", 0x8001f0ec, status);
    step("%s: the GuC has its firmware, %u bytes by DMA from guest memory at %x, and runs", gpu->name, (uint64_t)moved,
         at);
}

void mail(struct gpu *gpu, uint32_t message[4])
{
    for (int n = 0; n < 4; n++)
        reg_write(gpu, REG_MAILBOX(n), message[n]);
    reg_read(gpu, REG_MAILBOX(3));
    reg_write(gpu, REG_GUC_HOST_INTERRUPT, 0);
    uint32_t header = 0;
    for (uint64_t start = tsc(); tsc() - start < microseconds(PATIENCE); pause()) {
        header = reg_read(gpu, REG_MAILBOX(0));
        /* A message from the GuC other than BUSY. */
        if (header >> 31 && (header >> 28 & 7) != 3)
            break;
    }
    if (!(header >> 31))
        fail("%s: no response of the GuC to request %x; the mailbox has %x", gpu->name, (uint64_t)message[0],
             (uint64_t)header);
    for (int n = 0; n < 4; n++)
        message[n] = reg_read(gpu, REG_MAILBOX(n));
}

void mail_expect(struct gpu *gpu, const char *what, uint32_t action, uint32_t one, uint32_t two, uint32_t expected)
{
    uint32_t message[4] = { action, one, two, 0 };
    mail(gpu, message);
    if (message[0] != expected)
        fail("%s: %s: expected %x, the GuC responds %x", gpu->name, what, (uint64_t)expected, (uint64_t)message[0]);
}

void open_rings(struct gpu *gpu)
{
    for (uint64_t at = OWN_CTB; at < FROM_GUC + 4 * RING_DWORDS; at += 8)
        write64(own_local(gpu, at), 0);
    uint32_t shown = gpu->shown + OWN_CTB;
    const uint32_t keys[][3] = {
        { 0x0903, 2, shown },
        { 0x0902, 2, shown + 0x1000 },
        { 0x0904, 1, 4 * RING_DWORDS },
        { 0x0906, 2, shown + 0x800 },
        { 0x0905, 2, shown + 0x2000 },
        { 0x0907, 1, 4 * RING_DWORDS },
    };
    for (unsigned n = 0; n < sizeof(keys) / sizeof(keys[0]); n++)
        mail_expect(gpu, "SELF_CFG", 0x0508, keys[n][0] << 16 | keys[n][1], keys[n][2], 0xf0000001);
    gpu->tail = gpu->head = 0;
    mail_expect(gpu, "CONTROL_CTB", 0x4509, 1, 0, 0xf0000000);
    step("%s: CT rings are open, configured by six mailbox requests", gpu->name);
}

static void put(struct gpu *gpu, uint32_t dword)
{
    write32(own_local(gpu, TO_GUC + 4 * gpu->tail), dword);
    gpu->tail = (gpu->tail + 1) % RING_DWORDS;
}

void send(struct gpu *gpu, uint32_t fence_number, const uint32_t *hxg, unsigned length)
{
    if (gpu->tail + 1 + length > RING_DWORDS)
        while (gpu->tail)
            put(gpu, 0);
    put(gpu, fence_number << 16 | length);
    for (unsigned n = 0; n < length; n++)
        put(gpu, hxg[n]);
    fence();
    write32(own_local(gpu, TO_GUC_HEAD + 4), gpu->tail);
    reg_write(gpu, REG_GUC_HOST_INTERRUPT, 0);
}

static bool receive_any(struct gpu *gpu, struct message *message, uint64_t within)
{
    for (uint64_t start = tsc(); read32(own_local(gpu, FROM_GUC_HEAD + 4)) == gpu->head; pause())
        if (tsc() - start > microseconds(within))
            return false;
    expect("status of the ring to the GuC", 0, read32(own_local(gpu, TO_GUC_HEAD + 8)));
    expect("status of the ring from the GuC", 0, read32(own_local(gpu, FROM_GUC_HEAD + 8)));
    message->length = read32(own_local(gpu, FROM_GUC + 4 * gpu->head)) & 0xff;
    for (unsigned n = 1; n <= message->length; n++) {
        uint32_t dword = read32(own_local(gpu, FROM_GUC + 4 * ((gpu->head + n) % RING_DWORDS)));
        if (n <= MESSAGE_DWORDS)
            message->hxg[n - 1] = dword;
    }
    gpu->head = (gpu->head + 1 + message->length) % RING_DWORDS;
    write32(own_local(gpu, FROM_GUC_HEAD), gpu->head);
    return true;
}

bool receive(struct gpu *gpu, struct message *message, uint64_t within)
{
    while (receive_any(gpu, message, within)) {
        if (message->length != 3 || message->hxg[0] != VF_STATE_NOTIFY || message->hxg[2] != VF_NOTIFY_FLR)
            return true;
        uint64_t vf = 1ull << (message->hxg[1] & 63);
        if (!(gpu->resets & vf)) {
            gpu->resets |= vf;
            return true;
        }
    }
    return false;
}

void expect_message(struct gpu *gpu, const char *what, unsigned length, uint32_t header, uint32_t one, uint32_t two)
{
    struct message message = { 0 };
    if (!receive(gpu, &message, PATIENCE))
        fail("%s: %s: no message from the GuC; expected %x %x %x", gpu->name, what, (uint64_t)header, (uint64_t)one,
             (uint64_t)two);
    bool as_expected = message.length == length && message.hxg[0] == header;
    as_expected &= length < 2 || message.hxg[1] == one;
    as_expected &= length < 3 || message.hxg[2] == two;
    if (!as_expected)
        fail("%s: %s: expected %x %x %x, the GuC sends %u dwords: %x %x %x", gpu->name, what, (uint64_t)header,
             (uint64_t)one, (uint64_t)two, (uint64_t)message.length, (uint64_t)message.hxg[0],
             (uint64_t)message.hxg[1], (uint64_t)message.hxg[2]);
}
