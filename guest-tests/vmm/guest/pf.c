/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Tests of the PF. */

#include "boot_info.h"
#include "console.h"
#include "cpu.h"
#include "lifecycle.h"
#include "mmio.h"

/* The driver's range of local memory, at 64 MiB, and the GGTT address at which it is mapped. */
#define PF_OWN 0x4000000
#define PF_SHOWN 0xc0000000

struct gpu pf_gpu;

static void registers_answer(void)
{
    struct gpu *gpu = &pf_gpu;
    /* Read twice: after the first exit KVM may cache that the page is emulated, and use a faster path. */
    expect("VF_CAP of the PF", 0, reg_read(gpu, REG_VF_CAP) & 1);
    expect("VF_CAP of the PF, again", 0, reg_read(gpu, REG_VF_CAP) & 1);
    /* The forcewake handshake (contract B.2): the acknowledgement follows the request. */
    reg_write(gpu, 0xa188, 0x00010001);
    expect("forcewake of the GT, acknowledged", 1, reg_read(gpu, 0x130044) & 1);
    reg_write(gpu, 0xa188, 0x00010000);
    expect("forcewake of the GT, released", 0, reg_read(gpu, 0x130044) & 1);
    expect("a byte of a register", reg_read(gpu, 0xd00) & 0xff, read8(counted_read(gpu->function) + 0xd00));
    uint64_t before = reg_read(gpu, 0xa500), start = tsc();
    while (tsc() - start < microseconds(2000))
        pause();
    if (reg_read(gpu, 0xa500) == before)
        fail("PF: the GPM time stamp does not advance: %x", before);
    step("PF: registers respond: identity, forcewake, time stamp");
}

static void memory_is_memory(void)
{
    uint64_t local = pf_gpu.local, last = pf_gpu.function->local.size - 8;
    const uint64_t places[] = { 0, 0x1000, PF_OWN - 8, last };
    for (unsigned n = 0; n < sizeof(places) / sizeof(places[0]); n++)
        write64(local + places[n], 0x0123456789abcdefull + n);
    for (unsigned n = 0; n < sizeof(places) / sizeof(places[0]); n++)
        expect("local memory", 0x0123456789abcdefull + n, read64(local + places[n]));
    uint64_t start = tsc(), rounds = 4096;
    for (uint64_t n = 0; n < rounds; n++)
        write64(local + PF_OWN + 8 * n, n);
    step("PF: local memory stores what is written; a write takes %u ticks", (tsc() - start) / rounds);
}

void pf_up(void)
{
    struct gpu *gpu = &pf_gpu;
    gpu_init(gpu, "PF", &pf, false, PF_OWN, PF_SHOWN);
    enable_msi(&pf, gpu->vector);
    show_memory(gpu);
    write_tables(gpu);
    load_guc(gpu);
    uint32_t hwconfig[4] = { 0x4100 };
    mail(gpu, hwconfig);
    if (hwconfig[0] >> 28 != 0xf || !(hwconfig[0] & 0xfffffff))
        fail("PF: GET_HWCONFIG: expected a size, seen %x", (uint64_t)hwconfig[0]);
    step("PF: mailbox and notification of the GuC: the hardware configuration has %u bytes", (uint64_t)(hwconfig[0] & 0xfffffff));
    enable_interrupts(gpu);
    open_rings(gpu);
    uint64_t before = interrupts(gpu->vector);
    invalidate(gpu);
    expect_sources(gpu, "a message from the GuC", SOURCE_GUC);
    step("PF: a message comes with an MSI: vector %x, %u so far", (uint64_t)gpu->vector,
         interrupts(gpu->vector) - before);
    REQUEST(gpu, "an unknown action", 0xe0000030, 0x0666, 0);
    step("PF: an unknown action is rejected with UNKNOWN_ACTION");
}

static void work(void)
{
    struct gpu *gpu = &pf_gpu;
    static const enum engine_class classes[] = { COPY, RENDER, COMPUTE, VIDEO, VIDEO_ENHANCE };
    for (unsigned n = 0; n < CLASSES; n++) {
        uint64_t before = interrupts(gpu->vector);
        start_context(gpu, n, classes[n]);
        expect_batch(gpu, n, classes[n]);
        step("PF: %s: a batch stored to local memory and to RAM, %u MSIs", class_names[classes[n]],
             interrupts(gpu->vector) - before);
    }
    for (unsigned round = 0; round < 200; round++) {
        unsigned id = round % CLASSES;
        queue_batch(gpu, id, NULL, 0);
        submit(gpu, id);
        expect_batch(gpu, id, classes[id]);
    }
    step("PF: 200 more batches on all engines, each with its MSI");
    submit_by_page(gpu, 0, COPY, 20);
    step("PF: 21 more through a page of the doorbell window, 20 writes and a read");
    for (unsigned n = 0; n < CLASSES; n++)
        end_context(gpu, n);
    step("PF: contexts disabled and deregistered");
}

/* A halted processor is woken by the MSI, which KVM delivers through its irqfd. */
static void sleep(void)
{
    struct gpu *gpu = &pf_gpu;
    serve_interrupts(gpu);      /* an interrupt that stays pending suppresses further MSIs */
    for (unsigned round = 0; round < 20; round++) {
        uint64_t before = interrupts(gpu->vector);
        SEND_FAST(gpu, 0x7000, 77, 1u << 31);
        halt_until(gpu->vector, before + 1);
        serve_interrupts(gpu);
        expect_message(gpu, "TLB_INVALIDATION_DONE", 2, 0x90007001, 77, 0);
    }
    step("PF: 20 MSIs woke a halted processor");
}

/* Makes the GuC send one message; its MSI may or may not be delivered. */
static void one_message(void)
{
    struct gpu *gpu = &pf_gpu;
    serve_interrupts(gpu);
    invalidate(gpu);
}

static void expect_silence(const char *what, uint8_t vector, uint64_t count)
{
    if (wait_interrupts(vector, count + 1, 1000))
        fail("PF: %s: unexpected MSI with vector %x", what, (uint64_t)vector);
}

/* Vector change, mask and MSI disable: the VMM must update the MSI route immediately on each change. */
static void msi_rules(void)
{
    struct gpu *gpu = &pf_gpu;
    uint8_t first = gpu->vector, other = 0xa5;
    uint16_t data = pf.msi + 0x0c, mask = pf.msi + 0x10, pending = pf.msi + 0x14, control = pf.msi + 0x02;
    for (unsigned round = 0; round < 10; round++) {
        uint8_t now = round % 2 ? first : other, before = round % 2 ? other : first;
        config_write16(&pf, data, now);
        uint64_t count = interrupts(now), silent = interrupts(before);
        one_message();
        if (!wait_interrupts(now, count + 1, 10000000))
            fail("PF: no MSI with the new vector %x", (uint64_t)now);
        expect("MSIs with the previous vector", silent, interrupts(before));
    }
    uint64_t count = interrupts(first);
    config_write32(&pf, mask, 1);
    one_message();
    expect_silence("masked", first, count);
    expect("the pending bit while masked", 1, config_read32(&pf, pending));
    config_write32(&pf, mask, 0);
    if (!wait_interrupts(first, count + 1, 10000000))
        fail("PF: no MSI after unmasking");
    expect("the pending bit after unmasking", 0, config_read32(&pf, pending));
    config_write16(&pf, control, 0);
    count = interrupts(first);
    one_message();
    expect_silence("MSI disabled", first, count);
    config_write16(&pf, control, 1);
    count = interrupts(first);
    one_message();
    if (!wait_interrupts(first, count + 1, 10000000))
        fail("PF: no MSI after MSI was enabled again");
    step("PF: MSIs follow vector, mask and enable");
}

/* D3hot, into which the driver puts an idle card: BARs read all ones, and no state is lost (contract A.3, B.12). */
static void power(void)
{
    struct gpu *gpu = &pf_gpu;
    uint64_t count = interrupts(gpu->vector);
    write64(own_local(gpu, OWN_DATA + 0x900), 0x1234567890abcdef);
    for (unsigned round = 0; round < 5; round++) {
        config_write16(&pf, pf.power + 4, 3);
        expect("power state", 3, config_read16(&pf, pf.power + 4) & 3);
        expect("a register in D3hot", 0xffffffff, read32(gpu->registers + REG_GUC_STATUS));
        expect("local memory in D3hot", ~0ull, read64(own_local(gpu, OWN_DATA + 0x900)));
        config_write16(&pf, pf.power + 4, 0);
        expect("the GuC after D3hot", 0x8001f0ec, reg_read(gpu, REG_GUC_STATUS));
        expect("local memory after D3hot", 0x1234567890abcdef, read64(own_local(gpu, OWN_DATA + 0x900)));
        one_message();
        if (!wait_interrupts(gpu->vector, count + round + 1, 10000000))
            fail("PF: no MSI after D3hot");
    }
    step("PF: D3hot and back five times: GuC, rings, memory and MSI survive");
}

/* Without bus mastering the card accesses no RAM and sends no MSI, but still accesses local memory. */
static void bus_mastering(void)
{
    struct gpu *gpu = &pf_gpu;
    serve_interrupts(gpu);
    start_context(gpu, 5, COPY);
    expect_batch(gpu, 5, COPY);
    serve_interrupts(gpu);
    volatile uint32_t *stored = (volatile uint32_t *)(gpu->ram + RAM_DATA + 16 * 5);
    uint32_t before = *stored;
    uint64_t count = interrupts(gpu->vector);
    config_write16(&pf, COMMAND, COMMAND_MEMORY);
    queue_batch(gpu, 5, NULL, 0);
    submit(gpu, 5);
    expect_message(gpu, "NOTIFY_MEMORY_CAT_ERROR", 2, 0x90006000, 5, 0);
    expect_message(gpu, "CONTEXT_RESET_NOTIFICATION", 2, 0x90001008, 5, 0);
    expect("RAM without bus mastering", before, *stored);
    expect_silence("bus mastering disabled", gpu->vector, count);
    config_write16(&pf, COMMAND, COMMAND_MEMORY | COMMAND_MASTER);
    serve_interrupts(gpu);      /* interrupts that could not be sent are lost */
    end_context(gpu, 5);
    start_context(gpu, 5, COPY);
    expect_batch(gpu, 5, COPY);
    end_context(gpu, 5);
    step("PF: without bus mastering no RAM access and no MSI; both again after it is enabled");
}

/* Checks that the reset has cleared the state, and starts the driver. */
static void after_reset(void)
{
    expect("command register after a reset", 0, config_read16(&pf, COMMAND));
    expect("BAR 0 after a reset", 0xc, config_read32(&pf, 0x10));
    expect("MSI Enable after a reset", 0, config_read16(&pf, pf.msi + 2) & 1);
    expect("a register at the previous address of BAR 0", 0xffffffff, read32(pf.registers.address + REG_GUC_STATUS));
    place();
    expect("the GuC after a reset: not running", 0, reg_read(&pf_gpu, REG_GUC_STATUS) >> 8 & 0xff);
    pf_up();
}

void pf_life(void)
{
    enumerate();
    place();
    gpu_init(&pf_gpu, "PF", &pf, false, PF_OWN, PF_SHOWN);
    registers_answer();
    memory_is_memory();
    pf_up();
    work();
    sleep();
    msi_rules();
    bus_mastering();
    power();
    function_level_reset(&pf);
    after_reset();
    work();
    step("PF: works after a Function Level Reset");
    secondary_bus_reset();
    after_reset();
    work();
    step("PF: works after a reset of its bus");
}

/* Shared between the two processors. */
static volatile uint64_t second_rounds;
static volatile bool second_stops, second_wrong;

/* Accesses the same registers as the first processor. */
static void disturb(void)
{
    uint32_t expected = reg_read(&pf_gpu, 0x101010);
    while (!second_stops) {
        reg_write(&pf_gpu, REG_GUC_HOST_INTERRUPT, 0);
        reg_write(&pf_gpu, REG_VF_CAP, 0);
        if (reg_read(&pf_gpu, 0x101010) != expected)
            second_wrong = true;
        write64(pf_gpu.local + second_rounds % 0x1000 * 8, second_rounds);
        second_rounds++;
    }
}

static void copy_batches(unsigned count)
{
    struct gpu *gpu = &pf_gpu;
    while (count--) {
        queue_batch(gpu, 0, NULL, 0);
        submit(gpu, 0);
        expect_batch(gpu, 0, COPY);
    }
}

static void drive_vf_2(void)
{
    for (unsigned life = 0; life < 5; life++) {
        vf_up(2);
        vf_works(2, false);
    }
}

void two_processors(void)
{
    if (boot->cpus < 2)
        fail("two processors are required, there is %u", (uint64_t)boot->cpus);
    enumerate();
    place();
    pf_up();
    start_context(&pf_gpu, 0, COPY);
    expect_batch(&pf_gpu, 0, COPY);
    start_second(disturb);
    for (uint64_t start = tsc(); second_rounds < 10; pause())
        if (tsc() - start > microseconds(10000000))
            fail("the second processor does not run");
    uint64_t before = second_rounds;
    copy_batches(300);
    uint64_t rounds = second_rounds - before;
    second_stops = true;
    await_second();
    if (second_wrong || !rounds)
        fail("the second processor read a wrong register value or did not run: %u rounds", rounds);
    step("two: 300 batches while the second processor notified the GuC and read registers %u times", rounds);
    vfs_up(2);
    start_second(drive_vf_2);
    vf_up(1);
    vf_works(1, false);
    copy_batches(100);
    for (unsigned round = 0; round < 3; round++)
        reset_vf_1(false);
    await_second();
    step("two: the first processor drove PF and VF 1, which was reset three times, the second VF 2");
}
