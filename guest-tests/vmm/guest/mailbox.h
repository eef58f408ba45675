/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/*
 * The test mailbox, through which a test on the host makes this guest's processor access memory and devices.
 *
 * The mailbox is one page of guest memory at MAILBOX_ADDRESS (arctic_vmm::layout::MAILBOX), which the VMM does not use
 * otherwise. The host accesses it through its mapping of guest memory. All fields are little-endian. The Rust
 * equivalent is `arctic_vmm::agent`, with the offsets asserted below.
 *
 * With the command line `agent` the guest serves the mailbox, in ring 3, where the processor executes natively even
 * under a KVM that interprets ring 0:
 *
 *   guest   writes MAILBOX_MAGIC and `version`, then `state` = MAILBOX_READY
 *   host    writes `command` and `argument`s (and `data`), then `request` = the last request + 1
 *   guest   executes the command, writes `status` and `result`, then `answer` = `request`
 *
 * Only one command is in progress at a time. The first request is 1. The host may send MAILBOX_EXIT between any two
 * commands. `interrupts` counts the interrupts taken with each vector, with or without an agent; tests may use vectors
 * 0x30 to 0x7f and 0x90 to 0xef. `report` has the guest's measurements (see bench.h).
 */
#ifndef MAILBOX_H
#define MAILBOX_H

#include <stddef.h>
#include <stdint.h>

#define MAILBOX_ADDRESS 0x10000
#define MAILBOX_MAGIC 0x58424d4245524142ull     /* "BAREBMBX" */
#define MAILBOX_VERSION 1

enum mailbox_state {
    MAILBOX_ABSENT = 0,     /* the guest has not started yet, or does not serve commands */
    MAILBOX_READY = 1,      /* the guest serves commands */
    MAILBOX_GONE = 2,       /* the guest has ended: MAILBOX_EXIT, or an exception */
};

enum mailbox_command {
    /* No operation: tests whether the agent responds. */
    MAILBOX_NOTHING = 0,
    /* argument[0]: guest-physical address, aligned or not, [1]: access width in bytes, 1, 2, 4 or 8. result[0]: the
     * value read. */
    MAILBOX_READ = 1,
    /* Like MAILBOX_READ, and [2]: the value to write. */
    MAILBOX_WRITE = 2,
    /* Copies between any two addresses, in ascending order: [0]: destination, [1]: source, [2]: total bytes, [3]:
     * width of each access in bytes. Both addresses and the total must be multiples of the width. An address may be in
     * `data` of this page. */
    MAILBOX_COPY = 3,
    /* Fills: [0]: first address, [1]: total bytes, [2]: value, [3]: width of each access in bytes, [4]: added to the
     * value after each access. */
    MAILBOX_FILL = 4,
    /* Waits until interrupts[[0]] is at least [1], for at most [2] microseconds. result[0]: the count. */
    MAILBOX_WAIT_INTERRUPT = 5,
    /* Waits until a read of [0] with width [1], masked with [2], returns [3], for at most [4] microseconds.
     * result[0]: the last value read, unmasked. */
    MAILBOX_WAIT_VALUE = 6,
    /* Repeats a read [2] times: [0]: address, [1]: width. result[0]: total TSC cycles, [1]: the last value read. */
    MAILBOX_TIME_READS = 7,
    /* Repeats a write [2] times: [0]: address, [1]: width, [3]: the value. result[0]: total TSC cycles. */
    MAILBOX_TIME_WRITES = 8,
    /* Returns properties of the VM for a driver. result[0]: address of an MSI to this processor, [1]: TSC cycles per
     * microsecond. */
    MAILBOX_MACHINE = 9,
    /* Halts the vCPU until interrupts[[0]] is at least [1], without a time limit. result[0]: the count. */
    MAILBOX_HALT = 10,
    /* Ends the VM with the exit code [0], after writing `answer`. */
    MAILBOX_EXIT = 11,
};

enum mailbox_status {
    MAILBOX_DONE = 0,
    MAILBOX_TIMEOUT = 1,        /* a wait timed out */
    MAILBOX_UNKNOWN = 2,        /* no such command */
    MAILBOX_BAD_ARGUMENT = 3,   /* an invalid width, or an address that is not a multiple of it */
};

#define MAILBOX_ARGUMENTS 6
#define MAILBOX_RESULTS 2
#define MAILBOX_REPORTS 32
#define MAILBOX_DATA_BYTES 1024

struct mailbox_report {
    uint64_t cycles;            /* total, of the time-stamp counter */
    uint64_t rounds;            /* 0: not measured */
};

/* Numbers of the guest's accesses to one function's registers; configuration accesses are not counted. */
struct mailbox_accesses {
    uint64_t reads;
    uint64_t writes;            /* except those counted in `events` */
    uint64_t events;            /* writes to the registers that can be ioeventfds */
    uint64_t pages;             /* reads and writes of pages of the doorbell window */
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
    struct mailbox_accesses accesses[8];        /* 0x100: PF, VF 1, ...; the eighth is for VF 7 and higher */
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

/* Placed at MAILBOX_ADDRESS by the linker script. */
extern struct mailbox mailbox;

#endif
