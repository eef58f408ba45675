/* What the guest says on the serial port, and how a test ends. */
#ifndef CONSOLE_H
#define CONSOLE_H

#include <stddef.h>
#include <stdint.h>

/* What the machine ends with. */
enum exit_code {
    EXIT_PASS = 0x10,           /* the test of the command line went through */
    EXIT_FAIL = 0x11,           /* a line says what was expected and what was seen */
    EXIT_EXCEPTION = 0x12,      /* a processor exception, which a line describes */
    EXIT_USAGE = 0x13,          /* the command line asks for what the guest cannot do */
};

/* Formats: %s text, %u decimal, %x hexadecimal with 0x; all numbers have 64 bits. Returns the length. */
size_t format(char *to, size_t room, const char *format, ...);
/* Writes a line. */
void say(const char *format, ...);
/* A step of the test that went well: one line. */
#define step(...) say("ok " __VA_ARGS__)
/* The end of the test, with a line that says what was expected and what was seen. */
_Noreturn void fail(const char *format, ...);

/* Fails unless what was seen is what is expected. */
void expect(const char *what, uint64_t expected, uint64_t seen);

#endif
