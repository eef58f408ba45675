/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Descriptor tables, the local APIC, and ring 0 services for ring 3. KVM may interpret ring 0, so as little code as
 * possible runs there. */

#include "cpu.h"
#include "boot_info.h"
#include "console.h"
#include "mailbox.h"

/* Segments of ring 0 and ring 3, and a task-state segment (two entries) for each of two processors. */
static uint64_t gdt[9] = {
    0,
    0x00af9b000000ffff,     /* ring 0 code, long mode */
    0x00cf93000000ffff,     /* ring 0 data */
    0x00cff3000000ffff,     /* ring 3 data */
    0x00affb000000ffff,     /* ring 3 code, long mode */
};

struct gate {
    uint16_t low, selector;
    uint8_t stack, kind;
    uint16_t middle;
    uint32_t high, reserved;
};
static struct gate idt[256];

struct __attribute__((packed)) task {
    uint32_t reserved;
    uint64_t ring_stack[3];
    uint64_t reserved2, interrupt_stack[7], reserved3;
    uint16_t reserved4, map;
};
static struct task tasks[2];
static uint8_t ring0_stacks[2][0x2000] __attribute__((aligned(16)));
static uint8_t ring3_stacks[2][0x8000] __attribute__((aligned(16)));

struct __attribute__((packed)) descriptor_pointer {
    uint16_t limit;
    uint64_t base;
};

extern const uint8_t vectors[];
void load_tables(const struct descriptor_pointer *gdt, const struct descriptor_pointer *idt, uint16_t task);
_Noreturn void to_ring3(void (*function)(void), uint64_t stack);

const struct boot_info *boot;
static _Noreturn void serve_second(void);
/* Set when the first processor has initialised the shared tables. */
static volatile bool tables_ready;

static inline void out8(uint16_t port, uint8_t value)
{
    __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static volatile uint32_t *apic(uint32_t at)
{
    return (volatile uint32_t *)(uintptr_t)(APIC_BASE + at);
}

static void fill_idt(void)
{
    for (int n = 0; n < 256; n++) {
        uint64_t at = (uint64_t)vectors + 16 * n;
        idt[n] = (struct gate){ at, SELECTOR_KERNEL_CODE, 0, 0x8e /* an interrupt gate */, at >> 16, at >> 32, 0 };
    }
}

static void start_processor(int number)
{
    struct task *task = &tasks[number];
    task->ring_stack[0] = (uint64_t)ring0_stacks[number] + sizeof(ring0_stacks[number]);
    task->map = sizeof(*task);
    uint64_t base = (uint64_t)task;
    gdt[5 + 2 * number] =
        (sizeof(*task) - 1) | (base & 0xffffff) << 16 | 0x89ull << 40 | (base >> 24 & 0xff) << 56;
    gdt[6 + 2 * number] = base >> 32;
    struct descriptor_pointer to_gdt = { sizeof(gdt) - 1, (uint64_t)gdt }, to_idt = { sizeof(idt) - 1, (uint64_t)idt };
    load_tables(&to_gdt, &to_idt, SELECTOR_TASK + 16 * number);
    *apic(APIC_SPURIOUS) = 0x100 | VECTOR_SPURIOUS;
}

void processor(const struct boot_info *info, uint64_t number)
{
    if (number == 0) {
        boot = info;
        fill_idt();
        tables_ready = true;
    }
    while (!tables_ready)
        pause();
    start_processor(number);
    to_ring3(number ? serve_second : main_at_ring3, (uint64_t)ring3_stacks[number] + sizeof(ring3_stacks[number]));
}

uint64_t service_at_ring0(enum service what, uint64_t first, uint64_t second)
{
    switch (what) {
    case SERVICE_WRITE:
        for (uint64_t n = 0; n < second; n++)
            out8(0x3f8, ((const uint8_t *)first)[n]);
        break;
    case SERVICE_EXIT:
        mailbox.state = MAILBOX_GONE;
        out8(0xf4, first);
        break;
    case SERVICE_HALT:
        /* STI takes effect after the next instruction, so an interrupt that arrives after the check ends the halt. */
        while (mailbox.interrupts[first] < second)
            __asm__ volatile("sti; hlt; cli" : : : "memory");
        break;
    case SERVICE_TABLES: {
        uint64_t root;
        __asm__ volatile("mov %%cr3, %0" : "=r"(root));
        return root & ~0xfffull;
    }
    }
    return 0;
}

uint64_t service(enum service what, uint64_t first, uint64_t second)
{
    uint64_t result = what;
    __asm__ volatile("ud2" : "+a"(result) : "D"(first), "S"(second) : "memory");
    return result;
}

struct frame {
    uint64_t vector, error, rip, cs, flags, rsp, ss;
};

_Noreturn void exception_taken(const struct frame *frame, uint64_t cr2)
{
    char text[160];
    size_t len = format(text, sizeof(text), "FAIL exception %u, error %x, at %x, stack %x, address %x\n", frame->vector,
                        frame->error, frame->rip, frame->rsp, cr2);
    service_at_ring0(SERVICE_WRITE, (uint64_t)text, len);
    service_at_ring0(SERVICE_EXIT, EXIT_EXCEPTION, 0);
    for (;;)
        __asm__ volatile("hlt");
}

void halt_until(uint8_t vector, uint64_t count)
{
    service(SERVICE_HALT, vector, count);
}

static void (*volatile second_job)(void);

void start_second(void (*job)(void))
{
    second_job = job;
}

void await_second(void)
{
    for (uint64_t start = tsc(); second_job; pause())
        if (tsc() - start > microseconds(30000000))
            fail("the second processor did not finish");
}

/* Main loop of the second processor. It polls instead of halting: start_second() sends no interrupt. */
static _Noreturn void serve_second(void)
{
    for (;; pause()) {
        if (second_job) {
            second_job();
            second_job = NULL;
        }
    }
}

_Noreturn void machine_exit(uint8_t code)
{
    for (;;)
        service(SERVICE_EXIT, code, 0);
}

/* Page tables for addresses that the VMM has not mapped: one page directory per GiB, plus upper-level tables. */
static uint64_t table_pool[80][512] __attribute__((aligned(4096)));
static size_t tables_used;

static uint64_t *below(uint64_t *entry)
{
    const uint64_t present_writable_user = 7;
    if (!(*entry & 1)) {
        if (tables_used == sizeof(table_pool) / sizeof(table_pool[0]))
            fail("more than %u page tables", (uint64_t)tables_used);
        *entry = (uint64_t)table_pool[tables_used++] | present_writable_user;
    }
    return (uint64_t *)(*entry & 0xffffffffff000);
}

void map(uint64_t address, uint64_t bytes)
{
    const uint64_t gib = 1 << 30, large_page = 0xe7;    /* present, writable, user, accessed, dirty, 2 MiB */
    uint64_t *root = (uint64_t *)service(SERVICE_TABLES, 0, 0);
    for (uint64_t at = address & -gib; at < address + bytes; at += gib) {
        uint64_t *pointers = below(&root[at >> 39 & 511]);
        uint64_t *entry = &pointers[at >> 30 & 511];
        if (*entry & 1)
            continue;
        uint64_t *directory = below(entry);
        for (uint64_t n = 0; n < 512; n++)
            directory[n] = (at + (n << 21)) | large_page;
    }
    fence();
}

/* Returns TSC ticks per microsecond: as reported by CPUID, otherwise an upper bound. */
static uint64_t ticks(void)
{
    static uint64_t known;
    if (!known) {
        uint32_t a = 0, b, c = 0, d;
        __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
        /* For a leaf above the maximum, an Intel processor returns the data of the maximum leaf. */
        bool told = a >= 0x15;
        a = 0x15, c = 0;
        __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
        known = told && a && b && c ? (uint64_t)c * b / a / 1000000 : 4000;
    }
    return known;
}

uint64_t microseconds(uint64_t number)
{
    return number * ticks();
}

static bool same(const char *word, const char *text, size_t len)
{
    for (size_t n = 0; n < len; n++)
        if (word[n] != text[n] || !word[n])
            return false;
    return !word[len];
}

const char *boot_option(const char *word)
{
    const char *text = (const char *)boot->command_line;
    while (*text) {
        size_t len = 0;
        while (text[len] && text[len] != ' ' && text[len] != '=')
            len++;
        if (len && same(word, text, len))
            return text + len + (text[len] == '=');
        while (*text && *text != ' ')
            text++;
        while (*text == ' ')
            text++;
    }
    return NULL;
}

uint64_t boot_number(const char *word, uint64_t otherwise)
{
    const char *text = boot_option(word);
    if (!text)
        return otherwise;
    unsigned base = text[0] == '0' && text[1] == 'x' ? 16 : 10;
    text += base == 16 ? 2 : 0;
    uint64_t number = 0;
    for (;; text++) {
        unsigned digit = *text >= 'a' ? *text - 'a' + 10 : *text - '0';
        if (*text < '0' || digit >= base)
            return number;
        number = number * base + digit;
    }
}

uint64_t msi_address(void)
{
    return APIC_BASE;       /* targets the processor with APIC ID 0 */
}

uint64_t interrupts(uint8_t vector)
{
    return mailbox.interrupts[vector];
}

bool wait_interrupts(uint8_t vector, uint64_t count, uint64_t within)
{
    for (uint64_t start = tsc(); interrupts(vector) < count;) {
        if (tsc() - start > microseconds(within))
            return false;
        pause();
    }
    return true;
}
