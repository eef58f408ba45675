/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Draws the Mandelbrot set, one dword of red, green, blue and alpha a work item. */
__kernel void mandelbrot(__global uchar4 *image, uint width, float left, float top, float step)
{
    uint x = get_global_id(0), y = get_global_id(1);
    float cx = left + x * step, cy = top + y * step, zx = 0, zy = 0;
    uint n = 0;
    while (n < 400 && zx * zx + zy * zy < 16.0f) {
        float t = zx * zx - zy * zy + cx;
        zy = 2 * zx * zy + cy;
        zx = t;
        n++;
    }
    float smooth = n - native_log2(native_log2(zx * zx + zy * zy) * 0.5f);
    float3 colour = 0.5f + 0.5f * native_cos(3.0f + smooth * 0.12f + (float3)(0.0f, 0.6f, 1.0f));
    image[y * width + x] = n == 400 ? (uchar4)(0, 0, 0, 255) : (uchar4)(convert_uchar3_sat(colour * 255.0f), 255);
}
