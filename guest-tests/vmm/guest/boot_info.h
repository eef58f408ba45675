/* What the VMM tells a bare-metal guest: rdi has its address at the entry. Twin: arctic_vmm's boot_info. */
#ifndef BOOT_INFO_H
#define BOOT_INFO_H

#include <stdint.h>

struct boot_info {
    uint64_t magic;
};

#endif
