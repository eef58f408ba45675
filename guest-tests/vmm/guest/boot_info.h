/*
 * What the VMM tells a bare-metal guest: rdi has its address at the entry. Twin: `arctic_vmm::boot::BootInfo`.
 *
 * Every processor enters the program at its entry point, in ring 0 in 64-bit mode, interrupts off, no interrupt table,
 * everything mapped to itself for every ring. rsi has the processor's number.
 */
#ifndef BOOT_INFO_H
#define BOOT_INFO_H

#include <stddef.h>
#include <stdint.h>

#define BOOT_INFO_MAGIC 0x6d76636974637261ull   /* "arcticvm" */
#define BOOT_INFO_VERSION 1

struct boot_info {
    uint64_t magic;             /*   0: BOOT_INFO_MAGIC */
    uint32_t version;           /*   8: 1; grows when fields are appended */
    uint32_t size;              /*  12: bytes of this structure */
    uint64_t ram_low;           /*  16: bytes of RAM from address 0 */
    uint64_t ram_high;          /*  24: bytes of RAM from 4 GiB on, or 0 */
    uint64_t ecam;              /*  32: configuration space, 4 KiB a function */
    uint32_t bus_first;         /*  40: buses that configuration space has */
    uint32_t bus_last;          /*  44 */
    uint64_t mmio32;            /*  48: where 32-bit BARs may be ... */
    uint64_t mmio32_size;       /*  56: ... and how many bytes that is */
    uint64_t mmio64;            /*  64: where 64-bit BARs may be ... */
    uint64_t mmio64_size;       /*  72: ... and how many bytes that is */
    uint32_t pf_bus;            /*  80: where the card's PF is */
    uint32_t pf_device;         /*  84 */
    uint32_t pf_function;       /*  88 */
    uint32_t vfs;               /*  92: VFs that can be enabled; VF n has routing ID PF + n */
    uint64_t mailbox;           /*  96: a page for guest and host to talk through */
    uint64_t mailbox_size;      /* 104 */
    uint64_t command_line;      /* 112: characters, then a NUL */
    uint64_t command_line_size; /* 120: without the NUL */
    uint32_t cpus;              /* 128: processors, all of which enter the program */
    uint32_t root_port_devfn;   /* 132: device << 3 | function of the root port on bus 0 */
};

_Static_assert(sizeof(struct boot_info) == 136, "as the VMM has it");

/* Set before anything in ring 3 runs. */
extern const struct boot_info *boot;

/* Whether the command line, words separated by spaces, has this word; where it begins with `word=`, what comes then. */
const char *boot_option(const char *word);
/* The number (decimal, or hexadecimal with 0x) of the word `word=number`; `otherwise` where there is none. */
uint64_t boot_number(const char *word, uint64_t otherwise);

#endif
