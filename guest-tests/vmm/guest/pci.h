/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* PCI: configuration space, capabilities, BARs, MSI, SR-IOV (PCI Express 6.0; SR-IOV registers: 9.3.3). */
#ifndef PCI_H
#define PCI_H

#include <stdbool.h>
#include <stdint.h>

/* Standard capabilities. */
#define CAP_POWER 0x01
#define CAP_MSI 0x05
#define CAP_EXPRESS 0x10
#define CAP_MSIX 0x11
/* Extended capabilities. */
#define EXT_ARI 0x0e
#define EXT_SRIOV 0x10
#define EXT_VF_REBAR 0x24

#define COMMAND 0x04
#define COMMAND_MEMORY 0x2
#define COMMAND_MASTER 0x4

/* Offsets in the Express capability. */
#define EXPRESS_CAPS 0x02
#define EXPRESS_DEVICE_CAPS 0x04
#define EXPRESS_DEVICE_CONTROL 0x08
#define EXPRESS_DEVICE_CAPS2 0x24
#define EXPRESS_DEVICE_CONTROL2 0x28
#define FLR_CAPABLE (1u << 28)
#define INITIATE_FLR (1u << 15)
#define ARI_FORWARDING (1u << 5)

/* Offsets in the SR-IOV capability. */
#define SRIOV_CAPS 0x04
#define SRIOV_CONTROL 0x08
#define SRIOV_INITIAL_VFS 0x0c
#define SRIOV_TOTAL_VFS 0x0e
#define SRIOV_NUM_VFS 0x10
#define SRIOV_OFFSET 0x14
#define SRIOV_STRIDE 0x16
#define SRIOV_DEVICE 0x1a
#define SRIOV_PAGE_SIZES 0x1c
#define SRIOV_PAGE_SIZE 0x20
#define SRIOV_BAR 0x24
#define VF_ENABLE 0x01
#define VF_MEMORY 0x08
#define VF_ARI 0x10

/* A 64-bit memory BAR. */
struct bar {
    uint64_t size;          /* 0 if absent */
    uint64_t address;
};

/* A function on the bus, present or not. */
struct function {
    uint16_t routing_id;    /* bus, device and function */
    uint64_t config;        /* address of its configuration space */
    uint16_t express, msi, power, ari, sriov, vf_rebar;     /* capability offsets, 0 if absent */
    struct bar registers, local;        /* BAR 0 and BAR 2 */
    struct bar vf_registers, vf_local;  /* of one VF; the VFs' BARs are contiguous */
};

extern struct function pf;

/* Returns the mailbox's counters of accesses to a function's registers. */
struct mailbox_accesses *accesses_of(const struct function *function);
/* Counts one register read of the function and returns the address of its registers. */
uint64_t counted_read(const struct function *function);

uint32_t config_read32(const struct function *function, uint16_t at);
uint16_t config_read16(const struct function *function, uint16_t at);
void config_write32(const struct function *function, uint16_t at, uint32_t value);
void config_write16(const struct function *function, uint16_t at, uint16_t value);

/* Finds host bridge, root port and PF, and checks their registers and capabilities. Does not assign addresses. */
void enumerate(void);
/* Assigns bus numbers to the root port, without which no function below it responds; enables ARI forwarding. */
void number_buses(void);
/* Assigns addresses to the BARs of PF and VFs, opens the root port's window, enables the PF's memory decoding and
 * bus mastering. */
void place(void);
/* Makes a function send MSIs with the given vector to the first processor. */
void enable_msi(const struct function *function, uint8_t vector);
/* Starts a Function Level Reset and waits for the time required by the specification. */
void function_level_reset(const struct function *function);

/* Resets the root port's secondary bus. */
void secondary_bus_reset(void);
/* Enables VFs 1 to `count` and sets their entries of vfs[]. The config of the next entry is 0. */
void enable_vfs(uint16_t count);
void disable_vfs(void);
extern struct function vfs[65];

#endif
