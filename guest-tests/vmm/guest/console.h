/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* The guest's output on the serial port, and the end of a test. */
#ifndef CONSOLE_H
#define CONSOLE_H

#include <stddef.h>
#include <stdint.h>

/* Exit codes of the VM. */
enum exit_code {
    EXIT_PASS = 0x10,           /* the test selected by the command line passed */
    EXIT_FAIL = 0x11,           /* a check failed; printed with expected and actual value */
    EXIT_EXCEPTION = 0x12,      /* a processor exception, printed with its details */
    EXIT_USAGE = 0x13,          /* the command line is invalid */
};

/* Conversions: %s text, %u decimal, %x hexadecimal with 0x; all numbers are 64-bit. Returns the length. */
size_t format(char *to, size_t room, const char *format, ...);
/* Writes a line. */
void say(const char *format, ...);
/* Prints one line for a passed step of the test. */
#define step(...) say("ok " __VA_ARGS__)
/* Ends the test with a line that describes the failure. */
_Noreturn void fail(const char *format, ...);

/* Fails unless `seen` equals `expected`. */
void expect(const char *what, uint64_t expected, uint64_t seen);

#endif
