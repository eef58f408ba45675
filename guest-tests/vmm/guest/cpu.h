/* The processors: rings, interrupts, time. */
#ifndef CPU_H
#define CPU_H

#define SELECTOR_KERNEL_CODE 0x08
#define SELECTOR_KERNEL_DATA 0x10
#define SELECTOR_USER_DATA 0x1b
#define SELECTOR_USER_CODE 0x23
#define SELECTOR_TASK 0x28      /* of the first processor; the second's is 16 bytes on */

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

/* What only ring 0 can do; in ring 3 by UD2, as the KVM that interprets ring 0 knows neither INT nor SYSCALL there. */
enum service {
    SERVICE_WRITE,      /* text, bytes: to the serial port */
    SERVICE_EXIT,       /* code: ends the machine */
    SERVICE_HALT,       /* vector, count: the processor stands still until the vector has come so often */
    SERVICE_TABLES,     /* answers the address of the page tables' root */
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

/* Orders what went before with what comes, of all kinds of memory. */
static inline void fence(void)
{
    __asm__ volatile("mfence" : : : "memory");
}

/* Ticks of the time-stamp counter in a number of microseconds. */
uint64_t microseconds(uint64_t number);

/* Address to which a message is written that interrupts the processor that calls, and its data. */
uint64_t msi_address(void);

/* Interrupts taken with a vector, on all processors. */
uint64_t interrupts(uint8_t vector);

/* Waits until a vector has come at least so many times in all; false if it has not within the microseconds. */
bool wait_interrupts(uint8_t vector, uint64_t count, uint64_t within);

/* The same, halted: the VMM's KVM has nothing to run until the interrupt comes. */
void halt_until(uint8_t vector, uint64_t count);

_Noreturn void machine_exit(uint8_t code);

/* Maps addresses to themselves, 1 GiB at a time, where the VMM has not. */
void map(uint64_t address, uint64_t bytes);

/* Has the second processor do something, once it has nothing else to do; the first has made sure that there is one. */
void start_second(void (*job)(void));
/* Waits until it has done it. */
void await_second(void);

/* What the first processor does in ring 3. */
void main_at_ring3(void);

#endif
#endif
