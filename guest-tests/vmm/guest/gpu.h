/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* A driver of one function of the card, PF or VF: registers, page tables and messages
 * (docs/spec/xe-driver-contract.md). */
#ifndef GPU_H
#define GPU_H

#include <stdbool.h>
#include <stdint.h>
#include "pci.h"

/* Registers of GTTMMADR. */
#define REG_GUC_STATUS 0xc000
#define REG_WOPCM_SIZE 0xc050
#define REG_SCRATCH(n) (0xc180 + 4 * (n))
#define REG_RSA 0xc200
#define REG_DMA_SOURCE 0xc300
#define REG_DMA_SOURCE_HIGH 0xc304
#define REG_DMA_TARGET 0xc308
#define REG_DMA_TARGET_HIGH 0xc30c
#define REG_DMA_SIZE 0xc310
#define REG_DMA_CONTROL 0xc314
#define REG_WOPCM_OFFSET 0xc340
#define REG_LMEM_CFG 0xcf58
#define REG_MASTER 0x190008
#define REG_GT_MASTER 0x190010
#define REG_GT_INTERRUPT(bank) (0x190018 + 4 * (bank))
#define REG_IDENTITY(bank) (0x190060 + 4 * (bank))
#define REG_SELECTOR(bank) (0x190070 + 4 * (bank))
#define REG_GUC_HOST_INTERRUPT 0x1901f0
#define REG_VF_CAP 0x1901f8
#define REG_MAILBOX(n) (0x190240 + 4 * (n))
#define DOORBELL_PAGE(n) (0x400000 + 0x1000 * (n))
#define GGTT 0x800000

/* Layout of a driver's local memory, as offsets from gpu.own. */
#define OWN_BYTES 0x400000
#define OWN_CTB 0x000000
#define OWN_RINGS 0x100000          /* 4 KiB per context */
#define OWN_BATCHES 0x140000        /* 4 KiB per context */
#define OWN_TABLES 0x160000
#define OWN_DATA 0x180000
#define OWN_IMAGES 0x200000         /* 64 KiB per context */
#define OWN_ADS 0x300000
#define OWN_LIST 0x3f0000
/* Layout of the GGTT range that starts at gpu.shown: the driver's local memory, its RAM, the firmware. */
#define SHOWN_RAM 0x400000
#define SHOWN_FIRMWARE 0x500000
/* Layout of a process's address space: the driver's local memory at 0, its RAM, the frame mapped by show_frame(). */
#define PROCESS_RAM 0x400000
#define PROCESS_FRAME 0x600000
#define RAM_BYTES 0x10000
/* Layout of the driver's RAM: the page of memory-based interrupts, seqnos (16 bytes per context), data. */
#define RAM_INTERRUPTS 0x0000
#define RAM_SEQNOS 0x1000
#define RAM_DATA 0x2000

/* Engine classes as numbered by the GuC. */
enum engine_class { RENDER, VIDEO, VIDEO_ENHANCE, COPY, COMPUTE, CLASSES };

struct gpu {
    const char *name;
    const struct function *function;
    bool vf;
    uint8_t vector;                 /* 0x40 + function number (0: PF) */
    uint64_t registers, local;      /* addresses of the BARs */
    uint64_t own;                   /* offset of this driver's range in local memory, a multiple of 2 MiB */
    uint64_t shown;                 /* GGTT address of that range */
    uint8_t *ram;                   /* RAM_BYTES of guest memory; above 4 GiB with the option `high` */
    uint32_t tail, head;            /* of the CT rings to and from the GuC, in dwords */
    uint32_t image_tail[8];         /* tails of the contexts' rings, in bytes */
    uint32_t seqno[8];
    uint64_t resets;                /* PF: a bit per VF whose reset is notified and not yet finished */
};

/* Messages from the GuC are truncated to this number of HXG dwords. */
#define MESSAGE_DWORDS 16
/* Event GUC2PF_VF_STATE_NOTIFY: the VF, and what happened to it (xe: guc_actions_sriov_abi). */
#define VF_STATE_NOTIFY 0x90005106
#define VF_NOTIFY_FLR 1
#define VF_NOTIFY_FLR_DONE 2
struct message {
    unsigned length;                /* HXG dwords */
    uint32_t hxg[MESSAGE_DWORDS];
};

static inline uint64_t own_local(const struct gpu *gpu, uint64_t at)
{
    return gpu->local + gpu->own + at;
}

uint32_t reg_read(const struct gpu *gpu, uint32_t reg);
void reg_write(const struct gpu *gpu, uint32_t reg, uint32_t value);

/* Initialises a driver's address ranges and clears its memory. */
void gpu_init(struct gpu *gpu, const char *name, const struct function *function, bool vf, uint64_t own,
              uint64_t shown);
/* Writes the GGTT entries of the driver's local memory and RAM. */
void show_memory(struct gpu *gpu);
/* Writes the page tables of a process. */
void write_tables(struct gpu *gpu);
/* Maps a 2 MiB frame of the card's local memory at PROCESS_FRAME. */
void show_frame(struct gpu *gpu, uint64_t frame);

/* PF only: uploads the firmware given on the command line, and waits until the GuC reports that it runs. */
void load_guc(struct gpu *gpu);

/* Sends a request of up to four dwords through the mailbox; the response replaces it in `message`. */
void mail(struct gpu *gpu, uint32_t message[4]);
/* Like mail(), for a request of three dwords; fails unless the response has the header `expected`. */
void mail_expect(struct gpu *gpu, const char *what, uint32_t action, uint32_t one, uint32_t two, uint32_t expected);
/* Opens the CT rings to and from the GuC. */
void open_rings(struct gpu *gpu);
/* Sends a message, which starts with its HXG header. For a request, `fence` identifies the response. */
void send(struct gpu *gpu, uint32_t fence, const uint32_t *hxg, unsigned length);
#define SEND_FAST(gpu, action, ...)                                                                                    \
    do {                                                                                                               \
        const uint32_t hxg_[] = { 2u << 28 | (action), __VA_ARGS__ };                                                  \
        send(gpu, 0x8001, hxg_, sizeof(hxg_) / 4);                                                                     \
    } while (0)
#define REQUEST(gpu, what, expected, action, ...)                                                                      \
    do {                                                                                                               \
        const uint32_t hxg_[] = { (action), __VA_ARGS__ };                                                             \
        send(gpu, 0x12, hxg_, sizeof(hxg_) / 4);                                                                       \
        expect_message(gpu, what, 1, expected, 0, 0);                                                                  \
    } while (0)
/* Receives the next message from the GuC. Returns false if none arrives within `within` microseconds. The GuC notifies
 * the PF of a VF's reset again until the PF starts to handle it (xe: "FLR is already in progress"): repetitions are
 * dropped. */
bool receive(struct gpu *gpu, struct message *message, uint64_t within);
/* Fails unless the next message has this length and starts with these dwords. */
void expect_message(struct gpu *gpu, const char *what, unsigned length, uint32_t header, uint32_t one, uint32_t two);

/* PF only: enables the interrupts of the GuC and of the engines. */
void enable_interrupts(struct gpu *gpu);
/* PF only: handles an MSI as the driver does, through the interrupt registers. Returns a bit per source of both
 * banks. */
uint64_t serve_interrupts(struct gpu *gpu);
/* VF only: returns the sources that have reported an interrupt in memory, and clears them. */
uint64_t serve_memory_interrupts(struct gpu *gpu);
/* Waits for MSIs until all these sources have reported an interrupt. */
void expect_sources(struct gpu *gpu, const char *what, uint64_t sources);
/* Interrupt source of the GuC. */
#define SOURCE_GUC (1ull << 25)
uint64_t source_of(enum engine_class class);
extern const char *const class_names[CLASSES];

/* Starts a context of a class with ID `id`, 0 to 7: writes the image, queues a first batch, and registers and enables
 * the context. */
void start_context(struct gpu *gpu, unsigned id, enum engine_class class);
/* Queues a batch with these commands in the context's ring. The batch then stores a context-specific value to local
 * memory and to RAM. After the batch, the ring stores a seqno and raises a user interrupt. */
void queue_batch(struct gpu *gpu, unsigned id, const uint32_t *commands, unsigned count);
/* Notifies the GuC of new work in the ring. */
void submit(struct gpu *gpu, unsigned id);
/* Waits for the last batch, and checks all values that it stored. */
void expect_batch(struct gpu *gpu, unsigned id, enum engine_class class);
/* Submits batches through a page of the doorbell window, as a user space process does: without a message and without
 * the kernel driver. */
void submit_by_page(struct gpu *gpu, unsigned id, enum engine_class class, unsigned rounds);
void end_context(struct gpu *gpu, unsigned id);
/* Invalidates the function's TLB entries, and waits for completion. */
void invalidate(struct gpu *gpu);

#endif
