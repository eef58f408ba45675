// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Functions that call functions.

__attribute__((noinline)) uint square(uint value)
{
    return value * value;
}

__attribute__((noinline)) uint sum_of_squares(uint count)
{
    uint sum = 0;
    for (uint i = 1; i <= count; i++)
        sum += square(i);
    return sum;
}

__kernel void nested_calls(__global const uint *in, __global uint *out)
{
    uint i = get_global_id(0);
    out[i] = sum_of_squares(in[i]) + square(in[i]);
}
