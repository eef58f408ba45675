/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* The guest's output on the serial port, and exit codes. */
#ifndef CONSOLE_H
#define CONSOLE_H

#include <stddef.h>
#include <stdint.h>

/* Exit codes of the VM. */
enum exit_code {
    EXIT_PASS = 0x10,           /* the test selected by the command line passed */
    EXIT_FAIL = 0x11,           /* a check failed; the expected and the actual value are printed */
    EXIT_EXCEPTION = 0x12,      /* a processor exception; its details are printed */
    EXIT_USAGE = 0x13,          /* the command line is invalid */
};

/* Formats text. Conversions: %s text, %u decimal, %x hexadecimal with 0x; all numbers are 64-bit. Truncates to `room`
 * bytes and does not append a NUL. Returns the length. */
size_t format(char *to, size_t room, const char *format, ...);
/* Writes a line. */
void say(const char *format, ...);
/* Prints the line of a passed check. */
#define step(...) say("ok " __VA_ARGS__)
/* Prints a line that describes the failure and ends the VM with EXIT_FAIL. */
_Noreturn void fail(const char *format, ...);

/* Fails unless `seen` equals `expected`. */
void expect(const char *what, uint64_t expected, uint64_t seen);

#endif
