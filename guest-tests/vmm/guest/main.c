/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Evaluates the guest's command line, which selects a test ("theme"). */

#include "agent.h"
#include "boot_info.h"
#include "console.h"
#include "cpu.h"
#include "lifecycle.h"
#include "mailbox.h"

static void enumeration(void)
{
    enumerate();
    place();
}

static const struct {
    const char *word, *what;
    void (*run)(void);
} themes[] = {
    { "enumerate", "finds the card, sizes its BARs and assigns addresses", enumeration },
    { "pf", "the life of the PF", pf_life },
    { "vf", "the life of two VFs under their PF", vf_life },
    { "many", "all VFs of the card", many_vfs },
    { "two", "two processors concurrently", two_processors },
    { "moves", "BARs at other addresses, including invalid ones", moves },
    { "races", "VFs, BARs and the card change while another processor accesses them", races },
    { "chaos", "random accesses", chaos },
    { "bench", "measurements", bench },
};

void main_at_ring3(void)
{
    if (boot->magic != BOOT_INFO_MAGIC || boot->version < BOOT_INFO_VERSION)
        fail("boot information: expected %x version %u, seen %x version %u", BOOT_INFO_MAGIC,
             (uint64_t)BOOT_INFO_VERSION, boot->magic, (uint64_t)boot->version);
    mailbox.version = MAILBOX_VERSION;
    mailbox.magic = MAILBOX_MAGIC;
    if (boot_option("agent"))
        agent();
    for (unsigned n = 0; n < sizeof(themes) / sizeof(themes[0]); n++) {
        if (!boot_option(themes[n].word))
            continue;
        themes[n].run();
        say("PASS %s: %s", themes[n].word, themes[n].what);
        machine_exit(EXIT_PASS);
    }
    say("FAIL the command line \"%s\" names no theme: agent, enumerate, pf, vf, many, two, moves, races, chaos, bench",
        (const char *)boot->command_line);
    machine_exit(EXIT_USAGE);
}
