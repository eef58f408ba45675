// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Half precision: sums and products, fma, conversions.

#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL FP_CONTRACT OFF

__kernel void half_precision(__global const half *a, __global const half *b, __global half *out)
{
    uint i = get_global_id(0);
    half x = a[i], y = b[i];
    out[4 * i] = x + y;
    out[4 * i + 1] = x * y;
    out[4 * i + 2] = fma(x, y, (half)1.5h);
    out[4 * i + 3] = convert_half(convert_int_rte(x) + convert_int_rtz(y));
}
