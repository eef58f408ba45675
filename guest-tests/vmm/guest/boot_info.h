/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/*
 * Data that the VMM passes to a bare-metal guest. On entry, rdi has its address. Rust equivalent:
 * `arctic_vmm::boot::BootInfo`.
 *
 * Every processor enters the program at its entry point, in ring 0, in 64-bit mode, with interrupts disabled, without
 * an IDT, and with an identity mapping that is accessible to every ring. rsi has the processor's index.
 */
#ifndef BOOT_INFO_H
#define BOOT_INFO_H

#include <stddef.h>
#include <stdint.h>

#define BOOT_INFO_MAGIC 0x6d76636974637261ull   /* "arcticvm" */
#define BOOT_INFO_VERSION 1

struct boot_info {
    uint64_t magic;             /*   0: BOOT_INFO_MAGIC */
    uint32_t version;           /*   8: 1; incremented when fields are appended */
    uint32_t size;              /*  12: size of this structure in bytes */
    uint64_t ram_low;           /*  16: bytes of RAM from address 0 */
    uint64_t ram_high;          /*  24: bytes of RAM from 4 GiB, or 0 */
    uint64_t ecam;              /*  32: configuration space, 4 KiB per function */
    uint32_t bus_first;         /*  40: bus range of the configuration space */
    uint32_t bus_last;          /*  44 */
    uint64_t mmio32;            /*  48: window for 32-bit BARs: address */
    uint64_t mmio32_size;       /*  56: window for 32-bit BARs: size in bytes */
    uint64_t mmio64;            /*  64: window for 64-bit BARs: address */
    uint64_t mmio64_size;       /*  72: window for 64-bit BARs: size in bytes */
    uint32_t pf_bus;            /*  80: location of the card's PF */
    uint32_t pf_device;         /*  84 */
    uint32_t pf_function;       /*  88 */
    uint32_t vfs;               /*  92: number of VFs that can be enabled; VF n has routing ID PF + n */
    uint64_t mailbox;           /*  96: a page shared by guest and host for communication */
    uint64_t mailbox_size;      /* 104 */
    uint64_t command_line;      /* 112: NUL-terminated string */
    uint64_t command_line_size; /* 120: length without the NUL */
    uint32_t cpus;              /* 128: number of processors, all of which enter the program */
    uint32_t root_port_devfn;   /* 132: device << 3 | function of the root port on bus 0 */
};

_Static_assert(sizeof(struct boot_info) == 136, "size differs from the VMM's BootInfo");

/* Set before any code runs in ring 3. */
extern const struct boot_info *boot;

/* Looks up an option in the command line, which is a space-separated list. Returns the text after `word=`, or after
 * the option if it has no value; NULL if the option is absent. */
const char *boot_option(const char *word);
/* Returns the number (decimal, or hexadecimal with 0x) of `word=number`, or `otherwise` if the option is absent. */
uint64_t boot_number(const char *word, uint64_t otherwise);

#endif
