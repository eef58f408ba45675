/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Kernels of `speed.rs`; `kernels.zebin` is what `ocloc compile -file kernels.cl -device dg2 -exclude_ir` makes of them.
   `host.c` has the same computations in C. */

__kernel void saxpy(__global float *y, __global const float *x, float a) {
    uint i = get_global_id(0);
    y[i] = a * x[i] + y[i];
}

__kernel void sgemm(__global float *c, __global const float *a, __global const float *b, int n) {
    __local float s[16][16], t[16][16];
    int x = get_local_id(0), y = get_local_id(1), column = get_global_id(0), row = get_global_id(1);
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        s[y][x] = a[row * n + k + x];
        t[y][x] = b[(k + y) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = 0; j < 16; j++) sum += s[y][j] * t[j][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = sum;
}

__kernel void reduction(__global uint *o, __global const uint *a, __local uint *t) {
    uint l = get_local_id(0);
    t[l] = a[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint s = get_local_size(0) / 2; s > 0; s >>= 1) {
        if (l < s) t[l] += t[l + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0) atomic_add(o, t[0]);
}

__kernel void mandelbrot(__global uint *o, uint width, float left, float top, float step) {
    uint x = get_global_id(0), y = get_global_id(1), n = 0;
    float cx = left + x * step, cy = top + y * step, zx = 0, zy = 0;
    while (n < 256 && zx * zx + zy * zy < 4.0f) {
        float t = zx * zx - zy * zy + cx;
        zy = 2.0f * zx * zy + cy;
        zx = t;
        n++;
    }
    o[y * width + x] = n;
}
