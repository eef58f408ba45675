/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Text output: formats a line and writes it to the serial port with one ring 0 service. */

#include "console.h"
#include <stdarg.h>
#include "cpu.h"

struct text {
    char *to;
    size_t room, len;
};

static void put(struct text *text, char c)
{
    if (text->len < text->room)
        text->to[text->len++] = c;
}

static void put_number(struct text *text, uint64_t number, unsigned base)
{
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number);
    while (count)
        put(text, digits[--count]);
}

static size_t format_list(char *to, size_t room, const char *format, va_list list)
{
    struct text text = { to, room, 0 };
    for (; *format; format++) {
        if (*format != '%') {
            put(&text, *format);
            continue;
        }
        switch (*++format) {
        case 's':
            for (const char *s = va_arg(list, const char *); *s; s++)
                put(&text, *s);
            break;
        case 'u':
            put_number(&text, va_arg(list, uint64_t), 10);
            break;
        case 'x':
            put(&text, '0');
            put(&text, 'x');
            put_number(&text, va_arg(list, uint64_t), 16);
            break;
        default:
            put(&text, *format);
        }
    }
    return text.len;
}

size_t format(char *to, size_t room, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    size_t len = format_list(to, room, format, list);
    va_end(list);
    return len;
}

static void say_list(const char *before, const char *format, va_list list)
{
    char line[256];
    size_t len = 0;
    while (*before)
        line[len++] = *before++;
    len += format_list(line + len, sizeof(line) - 1 - len, format, list);
    line[len++] = '\n';
    static char taken;      /* spinlock between the processors */
    while (__atomic_test_and_set(&taken, __ATOMIC_ACQUIRE))
        pause();
    service(SERVICE_WRITE, (uint64_t)line, len);
    __atomic_clear(&taken, __ATOMIC_RELEASE);
}

void say(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say_list("", format, list);
    va_end(list);
}

_Noreturn void fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say_list("FAIL ", format, list);
    va_end(list);
    machine_exit(EXIT_FAIL);
}

void expect(const char *what, uint64_t expected, uint64_t seen)
{
    if (expected != seen)
        fail("%s: expected %x, seen %x", what, expected, seen);
}
