/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Measures frequent operations of a driver and writes the results to the mailbox. Other load on the host can
 * lengthen a measurement but never shorten it, so each operation is measured repeatedly and the shortest time is
 * used. */

#include "bench.h"
#include "boot_info.h"
#include "console.h"
#include "cpu.h"
#include "lifecycle.h"
#include "mailbox.h"
#include "mmio.h"

static void message(struct gpu *gpu)
{
    SEND_FAST(gpu, 0x7000, 77, 1u << 31);
    expect_message(gpu, "TLB_INVALIDATION_DONE", 2, 0x90007001, 77, 0);
}

static void message_with_interrupt(struct gpu *gpu)
{
    uint64_t before = interrupts(gpu->vector);
    SEND_FAST(gpu, 0x7000, 77, 1u << 31);
    if (!wait_interrupts(gpu->vector, before + 1, 10000000))
        fail("bench: no MSI");
}

static void batch(struct gpu *gpu)
{
    queue_batch(gpu, 0, NULL, 0);
    submit(gpu, 0);
    volatile uint32_t *seqno = (volatile uint32_t *)(gpu->ram + RAM_SEQNOS);
    while (*seqno != gpu->seqno[0])
        pause();
}

/* Addresses of ioeventfds that the VMM registered for comparison, without and with a waiting thread; 0 if none. */
static uint64_t event, waited;
static uint64_t entry, entry_value;

static void once(enum report what, struct gpu *gpu, uint64_t round)
{
    switch (what) {
    case REPORT_BARE_EXIT:
        read32(boot->mmio32);       /* unassigned: no device has a 32-bit BAR */
        break;
    case REPORT_REGISTER_READ:
        read32(gpu->registers + 0x101010);
        break;
    case REPORT_REGISTER_WRITE:
        write32(gpu->registers + REG_SCRATCH(14), round);
        break;
    case REPORT_BARE_EVENT:
        write32(event, 0);
        break;
    case REPORT_HOT_WRITE:
        write32(gpu->registers + REG_VF_CAP, 0);
        break;
    case REPORT_WAITED_EVENT:
        write32(waited, 0);
        break;
    case REPORT_NOTIFICATION:
        write32(gpu->registers + REG_GUC_HOST_INTERRUPT, 0);
        break;
    case REPORT_LOCAL_WRITE:
        write64(own_local(gpu, OWN_DATA + 0x800), round);
        break;
    case REPORT_GGTT_WRITE:
        write64(entry, entry_value);
        break;
    case REPORT_MAILBOX:
        mail_expect(gpu, "SELF_CFG", 0x0508, 0x0904 << 16 | 1, 4096, 0xf0000001);
        break;
    case REPORT_MESSAGE:
        message(gpu);
        break;
    case REPORT_INTERRUPT:
        message_with_interrupt(gpu);
        break;
    case REPORT_SUBMISSION:
        batch(gpu);
        break;
    case REPORTS:
        break;
    }
}

static void settle(struct gpu *gpu)
{
    for (uint64_t start = tsc(); tsc() - start < microseconds(100);)
        pause();
    serve_interrupts(gpu);          /* an interrupt that stays pending suppresses further MSIs */
}

static void keep(enum report what, uint64_t ticks, uint64_t rounds)
{
    volatile struct mailbox_report *report = &mailbox.report[what];
    if (!report->rounds || ticks < report->cycles)
        report->cycles = ticks;
    report->rounds = rounds;
}

static void measure(enum report what, struct gpu *gpu, uint64_t rounds)
{
    if ((what == REPORT_BARE_EVENT && !event) || (what == REPORT_WAITED_EVENT && !waited))
        return;
    settle(gpu);
    /* The first write of a burst wakes the waiting thread, which takes time. Use long bursts, as a busy driver
     * does. */
    if (what == REPORT_WAITED_EVENT || what == REPORT_NOTIFICATION)
        rounds *= 10;
    if (what < REPORT_MAILBOX) {
        uint64_t start = tsc();
        for (uint64_t round = 0; round < rounds; round++)
            once(what, gpu, round);
        keep(what, tsc() - start, rounds);
        return;
    }
    /* Operations that involve another thread are measured individually. */
    for (uint64_t round = 0; round < rounds; round++) {
        uint64_t start = tsc();
        once(what, gpu, round);
        keep(what, tsc() - start, 1);
        if (what == REPORT_INTERRUPT) {
            serve_interrupts(gpu);
            expect_message(gpu, "TLB_INVALIDATION_DONE", 2, 0x90007001, 77, 0);
        }
    }
}

void bench(void)
{
    static const char *const names[REPORTS] = {
        "an exit", "a register read", "a register write", "an ioeventfd", "a hot register write",
        "an ioeventfd with a waiting thread", "a doorbell", "a write to local memory", "a GGTT entry",
        "a mailbox request", "a CT request", "an interrupt", "a submission",
    };
    uint64_t rounds = boot_number("rounds", 20), repeats = boot_number("repeats", 20);
    event = boot_number("event", 0);
    waited = boot_number("waited", 0);
    enumerate();
    place();
    pf_up();
    struct gpu *gpu = &pf_gpu;
    entry = gpu->registers + GGTT + 8 * ((gpu->shown + SHOWN_RAM) / 4096);
    entry_value = read64(entry);
    start_context(gpu, 0, COPY);
    expect_batch(gpu, 0, COPY);
    for (uint64_t repeat = 0; repeat < repeats; repeat++)
        for (enum report what = 0; what < REPORTS; what++)
            measure(what, gpu, rounds);
    for (enum report what = 0; what < REPORTS; what++)
        if (mailbox.report[what].rounds)
            step("bench: %s: %u ticks", names[what], mailbox.report[what].cycles / mailbox.report[what].rounds);
}
