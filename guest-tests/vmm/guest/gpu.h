/* A driver of one function of the card, PF or VF, by registers, tables and messages (docs/spec/xe-driver-contract.md).
 * */
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

/* What a driver has in its local memory, by offset from gpu.own. */
#define OWN_BYTES 0x400000
#define OWN_CTB 0x000000
#define OWN_RINGS 0x100000          /* 4 KiB a context */
#define OWN_BATCHES 0x140000        /* 4 KiB a context */
#define OWN_TABLES 0x160000
#define OWN_DATA 0x180000
#define OWN_IMAGES 0x200000         /* 64 KiB a context */
#define OWN_ADS 0x300000
#define OWN_LIST 0x3f0000
/* Global addresses from gpu.shown on: its local memory, its RAM, the firmware. */
#define SHOWN_RAM 0x400000
#define SHOWN_FIRMWARE 0x500000
/* Addresses of a process of its own: its local memory from 0 on, then its RAM, then whatever show_frame has. */
#define PROCESS_RAM 0x400000
#define PROCESS_FRAME 0x600000
#define RAM_BYTES 0x10000
/* In its RAM: the page of memory-based interrupts, seqnos (16 bytes a context), data. */
#define RAM_INTERRUPTS 0x0000
#define RAM_SEQNOS 0x1000
#define RAM_DATA 0x2000

/* Classes as the GuC numbers them. */
enum engine_class { RENDER, VIDEO, VIDEO_ENHANCE, COPY, COMPUTE, CLASSES };

struct gpu {
    const char *name;
    const struct function *function;
    bool vf;
    uint8_t vector;                 /* 0x40 + the function's number */
    uint64_t registers, local;      /* where the BARs are */
    uint64_t own;                   /* first byte of local memory that is this driver's, a multiple of 2 MiB */
    uint64_t shown;                 /* global address that shows it */
    uint8_t *ram;                   /* RAM_BYTES of the guest's memory; with the word `high`, from 4 GiB on */
    uint32_t tail, head;            /* of the rings to and from the GuC, in dwords */
    uint32_t image_tail[8];         /* of the contexts' rings, in bytes */
    uint32_t seqno[8];
};

/* Messages from the GuC are kept to this length: CT header, HXG dwords. */
#define MESSAGE_DWORDS 16
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

/* Names a driver's places and clears its memory. */
void gpu_init(struct gpu *gpu, const char *name, const struct function *function, bool vf, uint64_t own,
              uint64_t shown);
/* Writes the global entries of the driver's local memory and RAM. */
void show_memory(struct gpu *gpu);
/* Writes the tables of a process. */
void write_tables(struct gpu *gpu);
/* A frame of 2 MiB of the card's local memory at PROCESS_FRAME. */
void show_frame(struct gpu *gpu, uint64_t frame);

/* PF: uploads the firmware that the command line tells of, and waits until the GuC says that it runs. */
void load_guc(struct gpu *gpu);

/* A request of up to four dwords through the mailbox; the answer comes back in its place. */
void mail(struct gpu *gpu, uint32_t message[4]);
/* The same, which must be answered with this header. */
void mail_expect(struct gpu *gpu, const char *what, uint32_t action, uint32_t one, uint32_t two, uint32_t expected);
/* Opens the rings to and from the GuC. */
void open_rings(struct gpu *gpu);
/* Sends a message, HXG header first; with a fence, it is a request whose answer comes with it. */
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
/* The next message of the GuC's, waited for so long; false if none comes. */
bool receive(struct gpu *gpu, struct message *message, uint64_t within);
/* The next message has this length and begins with these dwords. */
void expect_message(struct gpu *gpu, const char *what, unsigned length, uint32_t header, uint32_t one, uint32_t two);

/* PF: has the GuC's and the engines' events told by the interrupt registers. */
void enable_interrupts(struct gpu *gpu);
/* PF: what the driver does after an MSI: asks the registers what has happened. A bit for each source of both banks. */
uint64_t serve_interrupts(struct gpu *gpu);
/* VF: the sources that have told of something in memory; they are cleared. */
uint64_t serve_memory_interrupts(struct gpu *gpu);
/* Waits for MSIs until all these sources have told of something. */
void expect_sources(struct gpu *gpu, const char *what, uint64_t sources);
/* The GuC's own. */
#define SOURCE_GUC (1ull << 25)
uint64_t source_of(enum engine_class class);
extern const char *const class_names[CLASSES];

/* A context of a class in slot `id`, 0 to 7: image, ring, tables; registered and enabled, with a first batch. */
void start_context(struct gpu *gpu, unsigned id, enum engine_class class);
/* Puts a batch of these commands into the context's ring; at its end it stores a number of its own to local memory and
 * to RAM. The ring stores a seqno and sends a user interrupt after it. */
void queue_batch(struct gpu *gpu, unsigned id, const uint32_t *commands, unsigned count);
/* Tells the GuC that there is something new in the ring. */
void submit(struct gpu *gpu, unsigned id);
/* Waits for the last batch, and looks at all that it has written. */
void expect_batch(struct gpu *gpu, unsigned id, enum engine_class class);
/* The same batches by a page of the doorbell window, as a process in user space submits: no message, no exit to the
 * driver. */
void submit_by_page(struct gpu *gpu, unsigned id, enum engine_class class, unsigned rounds);
void end_context(struct gpu *gpu, unsigned id);
/* Has translations of the function's forgotten, and waits until they are. */
void invalidate(struct gpu *gpu);

#endif
