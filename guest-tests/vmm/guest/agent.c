/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Serves the test mailbox; see mailbox.h for the protocol. */

#include "agent.h"
#include "console.h"
#include "cpu.h"
#include "mailbox.h"
#include "mmio.h"

static bool fits(uint64_t place, uint64_t width)
{
    return (width == 1 || width == 2 || width == 4 || width == 8) && place % width == 0;
}

static enum mailbox_status copy(uint64_t to, uint64_t from, uint64_t bytes, uint64_t width)
{
    if (!fits(to, width) || !fits(from, width) || bytes % width)
        return MAILBOX_BAD_ARGUMENT;
    for (uint64_t at = 0; at < bytes; at += width)
        access_write(to + at, width, access_read(from + at, width));
    return MAILBOX_DONE;
}

static enum mailbox_status fill(uint64_t to, uint64_t bytes, uint64_t value, uint64_t width, uint64_t add)
{
    if (!fits(to, width) || bytes % width)
        return MAILBOX_BAD_ARGUMENT;
    for (uint64_t at = 0; at < bytes; at += width, value += add)
        access_write(to + at, width, value);
    return MAILBOX_DONE;
}

static enum mailbox_status wait_interrupt(uint8_t vector, uint64_t count, uint64_t within, volatile uint64_t *result)
{
    bool came = wait_interrupts(vector, count, within);
    *result = interrupts(vector);
    return came ? MAILBOX_DONE : MAILBOX_TIMEOUT;
}

static enum mailbox_status wait_value(const uint64_t *argument, volatile uint64_t *result)
{
    if (!fits(argument[0], argument[1]))
        return MAILBOX_BAD_ARGUMENT;
    uint64_t start = tsc(), most = microseconds(argument[4]);
    do {
        *result = access_read(argument[0], argument[1]);
        if ((*result & argument[2]) == argument[3])
            return MAILBOX_DONE;
        pause();
    } while (tsc() - start <= most);
    return MAILBOX_TIMEOUT;
}

static enum mailbox_status time_reads(uint64_t address, uint64_t width, uint64_t rounds, volatile uint64_t *result)
{
    if (!fits(address, width))
        return MAILBOX_BAD_ARGUMENT;
    uint64_t value = 0, start = tsc();
    for (uint64_t n = 0; n < rounds; n++)
        value = access_read(address, width);
    result[0] = tsc() - start;
    result[1] = value;
    return MAILBOX_DONE;
}

static enum mailbox_status time_writes(uint64_t address, uint64_t width, uint64_t rounds, uint64_t value,
                                       volatile uint64_t *result)
{
    if (!fits(address, width))
        return MAILBOX_BAD_ARGUMENT;
    uint64_t start = tsc();
    for (uint64_t n = 0; n < rounds; n++)
        access_write(address, width, value);
    result[0] = tsc() - start;
    return MAILBOX_DONE;
}

static enum mailbox_status serve(enum mailbox_command command, const uint64_t *argument, volatile uint64_t *result)
{
    switch (command) {
    case MAILBOX_NOTHING:
    case MAILBOX_EXIT:
        return MAILBOX_DONE;
    case MAILBOX_READ:
        if (!fits(0, argument[1]))
            return MAILBOX_BAD_ARGUMENT;
        *result = access_read(argument[0], argument[1]);
        return MAILBOX_DONE;
    case MAILBOX_WRITE:
        if (!fits(0, argument[1]))
            return MAILBOX_BAD_ARGUMENT;
        access_write(argument[0], argument[1], argument[2]);
        return MAILBOX_DONE;
    case MAILBOX_COPY:
        return copy(argument[0], argument[1], argument[2], argument[3]);
    case MAILBOX_FILL:
        return fill(argument[0], argument[1], argument[2], argument[3], argument[4]);
    case MAILBOX_WAIT_INTERRUPT:
        return wait_interrupt(argument[0], argument[1], argument[2], result);
    case MAILBOX_WAIT_VALUE:
        return wait_value(argument, result);
    case MAILBOX_TIME_READS:
        return time_reads(argument[0], argument[1], argument[2], result);
    case MAILBOX_TIME_WRITES:
        return time_writes(argument[0], argument[1], argument[2], argument[3], result);
    case MAILBOX_MACHINE:
        result[0] = msi_address();
        result[1] = microseconds(1);
        return MAILBOX_DONE;
    case MAILBOX_HALT:
        halt_until(argument[0], argument[1]);
        result[0] = interrupts(argument[0]);
        return MAILBOX_DONE;
    }
    return MAILBOX_UNKNOWN;
}

_Noreturn void agent(void)
{
    say("ok agent: serving the mailbox");
    mailbox.state = MAILBOX_READY;
    for (;;) {
        uint64_t request;
        while ((request = mailbox.request) == mailbox.answer)
            pause();
        fence();
        uint64_t argument[MAILBOX_ARGUMENTS];
        for (int n = 0; n < MAILBOX_ARGUMENTS; n++)
            argument[n] = mailbox.argument[n];
        enum mailbox_command command = mailbox.command;
        mailbox.status = serve(command, argument, mailbox.result);
        fence();
        mailbox.answer = request;
        if (command == MAILBOX_EXIT)
            machine_exit(argument[0]);
    }
}
