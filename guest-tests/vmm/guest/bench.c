/* Measures what a driver does most, and leaves the numbers in the mailbox. */

#include "bench.h"
#include "boot_info.h"
#include "console.h"
#include "cpu.h"
#include "life.h"
#include "mailbox.h"
#include "mmio.h"

static void report(enum report number, const char *what, uint64_t ticks, uint64_t rounds)
{
    mailbox.report[number].cycles = ticks;
    mailbox.report[number].rounds = rounds;
    step("bench: %s: %u ticks", what, ticks / rounds);
}

#define MEASURE(number, what, rounds, statement)                                                                       \
    do {                                                                                                               \
        uint64_t start_ = tsc();                                                                                       \
        for (uint64_t round_ = 0; round_ < (rounds); round_++) {                                                       \
            statement;                                                                                                 \
        }                                                                                                              \
        report(number, what, tsc() - start_, rounds);                                                                  \
    } while (0)

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
    serve_interrupts(gpu);
    expect_message(gpu, "TLB_INVALIDATION_DONE", 2, 0x90007001, 77, 0);
}

static void batch(struct gpu *gpu)
{
    queue_batch(gpu, 0, NULL, 0);
    submit(gpu, 0);
    volatile uint32_t *seqno = (volatile uint32_t *)(gpu->ram + RAM_SEQNOS);
    while (*seqno != gpu->seqno[0])
        pause();
}

void bench(void)
{
    uint64_t rounds = boot_number("rounds", 2000);
    enumerate();
    place();
    pf_up();
    struct gpu *gpu = &pf_gpu;
    uint64_t nobody = boot->mmio32;     /* no device has a 32-bit BAR */
    MEASURE(REPORT_BARE_EXIT, "an exit", rounds, read32(nobody));
    MEASURE(REPORT_REGISTER_READ, "a register read", rounds, reg_read(gpu, 0x101010));
    MEASURE(REPORT_REGISTER_WRITE, "a register write", rounds, reg_write(gpu, REG_SCRATCH(14), round_));
    MEASURE(REPORT_DOORBELL, "a doorbell", rounds, reg_write(gpu, REG_GUC_HOST_INTERRUPT, 0));
    MEASURE(REPORT_HOT_WRITE, "a hot register write", rounds, reg_write(gpu, REG_VF_CAP, 0));
    MEASURE(REPORT_LOCAL_WRITE, "a write to local memory", 100 * rounds, write64(own_local(gpu, OWN_DATA + 8), round_));
    uint64_t entry = gpu->registers + GGTT + 8 * ((gpu->shown + SHOWN_RAM) / 4096), value = read64(entry);
    MEASURE(REPORT_GGTT_WRITE, "a global entry", 100 * rounds, write64(entry, value));
    MEASURE(REPORT_MAILBOX, "a request by mailbox", rounds / 10,
            mail_expect(gpu, "SELF_CFG", 0x0508, 0x0904 << 16 | 1, 4096, 0xf0000001));
    MEASURE(REPORT_MESSAGE, "a request by message", rounds / 10, message(gpu));
    serve_interrupts(gpu);      /* what is pending already brings no new MSI */
    MEASURE(REPORT_INTERRUPT, "an interrupt's round", rounds / 10, message_with_interrupt(gpu));
    start_context(gpu, 0, COPY);
    expect_batch(gpu, 0, COPY);
    MEASURE(REPORT_SUBMISSION, "a submission", rounds / 10, batch(gpu));
}
