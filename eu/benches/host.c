/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* The kernels of `kernels.cl` for the host, one work item after the other: `speed.rs` compiles this with -O2 and runs it. Prints
   name and seconds of each. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ITEMS = 1 << 20, SIZE = 256, WIDTH = 512, HEIGHT = 256, ROUNDS = 5 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static float *x, *y, *a, *b, *c;
static unsigned *o, *words, total;

static void saxpy(void) {
    for (int i = 0; i < ITEMS; i++) y[i] = 2.0f * x[i] + y[i];
}

static void sgemm(void) {
    for (int row = 0; row < SIZE; row++)
        for (int column = 0; column < SIZE; column++) {
            float sum = 0;
            for (int k = 0; k < SIZE; k++) sum += a[row * SIZE + k] * b[k * SIZE + column];
            c[row * SIZE + column] = sum;
        }
}

static void reduction(void) {
    for (int i = 0; i < ITEMS; i++) total += words[i];
}

static void mandelbrot(void) {
    for (int row = 0; row < HEIGHT; row++)
        for (int column = 0; column < WIDTH; column++) {
            float cx = -2.4f + column * 0.00694f, cy = -1.0f + row * 0.00694f, zx = 0, zy = 0;
            unsigned n = 0;
            while (n < 256 && zx * zx + zy * zy < 4.0f) {
                float t = zx * zx - zy * zy + cx;
                zy = 2.0f * zx * zy + cy;
                zx = t;
                n++;
            }
            o[row * WIDTH + column] = n;
        }
}

static void measure(const char *name, void (*run)(void)) {
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now();
        run();
        double time = now() - start;
        if (time < best) best = time;
    }
    printf("%s %.9f\n", name, best);
}

int main(void) {
    x = calloc(ITEMS, 4), y = calloc(ITEMS, 4), words = calloc(ITEMS, 4), o = calloc(WIDTH * HEIGHT, 4);
    a = calloc(SIZE * SIZE, 4), b = calloc(SIZE * SIZE, 4), c = calloc(SIZE * SIZE, 4);
    for (int i = 0; i < ITEMS; i++) x[i] = i & 255, words[i] = i;
    for (int i = 0; i < SIZE * SIZE; i++) a[i] = i & 15, b[i] = i & 7;
    measure("saxpy", saxpy);
    measure("sgemm", sgemm);
    measure("reduction", reduction);
    measure("mandelbrot", mandelbrot);
    fprintf(stderr, "%u %f %u\n", total, c[5], o[7]);
    return 0;
}
