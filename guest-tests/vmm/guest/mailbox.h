/*
 * The test mailbox: how a test on the host has this guest's processor touch memory and devices.
 *
 * One page of guest memory at MAILBOX_ADDRESS, which the VMM leaves alone (arctic_vmm::layout::MAILBOX): the host
 * finds it in the memory that it has given the guest. All fields are little-endian; the twin in Rust is
 * `arctic_vmm::agent`, whose offsets are asserted below.
 *
 * The guest's command line says what the guest does; with `agent` it serves the mailbox, in ring 3, where the processor
 * runs natively also under a KVM that interprets ring 0:
 *
 *   guest   writes MAILBOX_MAGIC and `version`, then `state` = MAILBOX_READY
 *   host    writes `command` and `argument`s (and `data`), then `request` = the last request + 1
 *   guest   does it, writes `status` and `result`, then `answer` = `request`
 *
 * Only one command is under way at a time. Requests start with 1. The host may write MAILBOX_EXIT at any time between.
 * `interrupts` counts the interrupts taken with each vector, with or without an agent; vectors 0x30 to 0x7f and
 * 0x90 to 0xef are anybody's. `report` has what the guest measured (see bench.h).
 */
#ifndef MAILBOX_H
#define MAILBOX_H

#include <stddef.h>
#include <stdint.h>

#define MAILBOX_ADDRESS 0x10000
#define MAILBOX_MAGIC 0x58424d4245524142ull     /* "BAREBMBX" */
#define MAILBOX_VERSION 1

enum mailbox_state {
    MAILBOX_ABSENT = 0,     /* the guest is not there yet, or has another job */
    MAILBOX_READY = 1,      /* it serves commands */
    MAILBOX_GONE = 2,       /* it has taken its leave: MAILBOX_EXIT, or an exception */
};

enum mailbox_command {
    /* Nothing: is anybody there? */
    MAILBOX_NOTHING = 0,
    /* argument[0]: guest-physical address, aligned or not, [1]: bytes of the access, 1, 2, 4 or 8. result[0]: what was
     * read. */
    MAILBOX_READ = 1,
    /* The same, and [2]: the value. */
    MAILBOX_WRITE = 2,
    /* Copies between any two places: [0]: to, [1]: from, [2]: bytes in all, [3]: bytes of each access, which both
     * places and the whole are multiples of. Ascending. A place may be in `data` of this page. */
    MAILBOX_COPY = 3,
    /* Fills: [0]: first address, [1]: bytes in all, [2]: value, [3]: bytes of each access, [4]: added to the value
     * after each. */
    MAILBOX_FILL = 4,
    /* Waits until interrupts[[0]] is at least [1], at most [2] microseconds. result[0]: the count. */
    MAILBOX_WAIT_INTERRUPT = 5,
    /* Waits until a read of [0] with [1] bytes, masked by [2], gives [3], at most [4] microseconds. result[0]: what was
     * read last, unmasked. */
    MAILBOX_WAIT_VALUE = 6,
    /* The same read [2] times: [0]: address, [1]: bytes. result[0]: cycles of the time-stamp counter in all, [1]: the
     * last value. */
    MAILBOX_TIME_READS = 7,
    /* The same write [2] times: [0]: address, [1]: bytes, [3]: the value. result[0]: cycles. */
    MAILBOX_TIME_WRITES = 8,
    /* What a driver needs to have itself interrupted: result[0]: address of an MSI to this processor, [1]: cycles a
     * microsecond. */
    MAILBOX_MACHINE = 9,
    /* The vCPU halts until interrupts[[0]] is at least [1]: for ever, if it never is. result[0]: the count. */
    MAILBOX_HALT = 10,
    /* Ends the machine with the exit code [0]. `answer` is written before. */
    MAILBOX_EXIT = 11,
};

enum mailbox_status {
    MAILBOX_DONE = 0,
    MAILBOX_TIMEOUT = 1,        /* a wait was in vain */
    MAILBOX_UNKNOWN = 2,        /* no such command */
    MAILBOX_BAD_ARGUMENT = 3,   /* a size that is none, a place that is no multiple of it */
};

#define MAILBOX_ARGUMENTS 6
#define MAILBOX_RESULTS 2
#define MAILBOX_REPORTS 32
#define MAILBOX_DATA_BYTES 1024

struct mailbox_report {
    uint64_t cycles;            /* of the time-stamp counter, in all */
    uint64_t rounds;            /* 0: not measured */
};

/* Accesses of one function's registers that the guest has made; those of configuration space are not counted. */
struct mailbox_accesses {
    uint64_t reads;
    uint64_t writes;            /* but for those that may be events */
    uint64_t events;            /* writes of the registers that the VMM may turn into events */
    uint64_t pages;             /* of pages of the doorbell window, reads and writes */
};

struct mailbox {
    uint64_t magic;                             /* 0x000 */
    uint32_t version;                           /* 0x008 */
    volatile uint32_t state;                    /* 0x00c */
    volatile uint64_t request;                  /* 0x010, by the host */
    volatile uint64_t answer;                   /* 0x018 */
    volatile uint32_t command;                  /* 0x020, by the host */
    volatile uint32_t status;                   /* 0x024 */
    volatile uint64_t argument[MAILBOX_ARGUMENTS];      /* 0x028, by the host */
    volatile uint64_t result[MAILBOX_RESULTS];          /* 0x058 */
    uint8_t reserved[0x98];
    struct mailbox_accesses accesses[8];        /* 0x100: the PF's, VF 1's, ...; the eighth is of VFs 7 on */
    volatile struct mailbox_report report[MAILBOX_REPORTS];     /* 0x200 */
    volatile uint8_t data[MAILBOX_DATA_BYTES];  /* 0x400, by the host and by commands */
    volatile uint64_t interrupts[256];          /* 0x800 */
};

_Static_assert(offsetof(struct mailbox, argument) == 0x028, "argument");
_Static_assert(offsetof(struct mailbox, result) == 0x058, "result");
_Static_assert(offsetof(struct mailbox, accesses) == 0x100, "accesses");
_Static_assert(offsetof(struct mailbox, report) == 0x200, "report");
_Static_assert(offsetof(struct mailbox, data) == 0x400, "data");
_Static_assert(offsetof(struct mailbox, interrupts) == 0x800, "interrupts");
_Static_assert(sizeof(struct mailbox) == 0x1000, "one page");

/* At MAILBOX_ADDRESS, by the linker script. */
extern struct mailbox mailbox;

#endif
