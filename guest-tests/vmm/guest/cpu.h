/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Processors: rings, interrupts, time. */
#ifndef CPU_H
#define CPU_H

#define SELECTOR_KERNEL_CODE 0x08
#define SELECTOR_KERNEL_DATA 0x10
#define SELECTOR_USER_DATA 0x1b
#define SELECTOR_USER_CODE 0x23
#define SELECTOR_TASK 0x28      /* of the first processor; the second processor's is 16 higher */

/* MAILBOX_ADDRESS + offsetof(struct mailbox, interrupts) */
#define MAILBOX_INTERRUPTS 0x10800

#define VECTOR_UNDEFINED 6
#define VECTOR_SPURIOUS 0xff

#define APIC_BASE 0xfee00000
#define APIC_ID 0x020
#define APIC_EOI 0x0b0
#define APIC_SPURIOUS 0x0f0
#define APIC_ICR 0x300

#ifndef __ASSEMBLER__
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Services of ring 0. Ring 3 requests them with UD2, since a KVM that interprets ring 0 supports neither INT nor
 * SYSCALL for this. */
enum service {
    SERVICE_WRITE,      /* address, length: writes text to the serial port */
    SERVICE_EXIT,       /* code: ends the VM */
    SERVICE_HALT,       /* vector, count: halts until the vector has been taken `count` times */
    SERVICE_TABLES,     /* returns the address of the top-level page table */
};

uint64_t service(enum service what, uint64_t first, uint64_t second);

static inline uint64_t tsc(void)
{
    uint32_t low, high;
    __asm__ volatile("lfence; rdtsc; lfence" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
}

static inline void pause(void)
{
    __asm__ volatile("pause" : : : "memory");
}

/* Orders all earlier accesses before all later ones, for all memory types. */
static inline void fence(void)
{
    __asm__ volatile("mfence" : : : "memory");
}

/* Converts microseconds to TSC ticks. */
uint64_t microseconds(uint64_t number);

/* Returns the address of an MSI to the first processor (APIC ID 0). */
uint64_t msi_address(void);

/* Returns the number of interrupts taken with a vector, on all processors. */
uint64_t interrupts(uint8_t vector);

/* Waits until a vector has been taken at least `count` times in total. Returns false after `within` microseconds. */
bool wait_interrupts(uint8_t vector, uint64_t count, uint64_t within);

/* Like wait_interrupts() without a time limit, but halts: KVM does not run the vCPU until an interrupt arrives. */
void halt_until(uint8_t vector, uint64_t count);

/* Ends the VM. */
_Noreturn void machine_exit(uint8_t code);

/* Identity-maps addresses that the VMM has not mapped, in units of 1 GiB. */
void map(uint64_t address, uint64_t bytes);

/* Starts a job on the second processor, which must exist and be idle. */
void start_second(void (*job)(void));
/* Waits until the second processor has finished its job. */
void await_second(void);

/* Main function of the first processor in ring 3. */
void main_at_ring3(void);

#endif
#endif
