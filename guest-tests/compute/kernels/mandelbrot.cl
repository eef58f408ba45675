// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The number of steps until a point leaves the circle, at most `limit`. Each operation is rounded, as on a CPU.

#pragma OPENCL FP_CONTRACT OFF

__kernel void mandelbrot(__global uint *steps, float left, float top, float size, uint limit)
{
    uint column = get_global_id(0), row = get_global_id(1);
    float x0 = left + (float)column * size, y0 = top + (float)row * size;
    float x = 0, y = 0;
    uint n = 0;
    while (n < limit && x * x + y * y <= 4.0f) {
        float next = x * x - y * y + x0;
        y = 2.0f * x * y + y0;
        x = next;
        n++;
    }
    steps[row * get_global_size(0) + column] = n;
}
