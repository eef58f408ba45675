/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Accesses to memory or devices with exactly one instruction of exactly one width. */
#ifndef MMIO_H
#define MMIO_H

#include <stdint.h>

#define MMIO_WIDTH(bits)                                                                                               \
    static inline uint##bits##_t read##bits(uint64_t address)                                                          \
    {                                                                                                                  \
        return *(volatile uint##bits##_t *)address;                                                                    \
    }                                                                                                                  \
    static inline void write##bits(uint64_t address, uint##bits##_t value)                                             \
    {                                                                                                                  \
        *(volatile uint##bits##_t *)address = value;                                                                   \
    }
MMIO_WIDTH(8)
MMIO_WIDTH(16)
MMIO_WIDTH(32)
MMIO_WIDTH(64)

/* Like the functions above, with the width in bytes as an argument: 1, 2, 4 or 8. */
static inline uint64_t access_read(uint64_t address, uint64_t width)
{
    switch (width) {
    case 1:
        return read8(address);
    case 2:
        return read16(address);
    case 4:
        return read32(address);
    default:
        return read64(address);
    }
}

static inline void access_write(uint64_t address, uint64_t width, uint64_t value)
{
    switch (width) {
    case 1:
        write8(address, value);
        break;
    case 2:
        write16(address, value);
        break;
    case 4:
        write32(address, value);
        break;
    default:
        write64(address, value);
    }
}

#endif
