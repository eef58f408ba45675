// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// A private array whose index is known at run time only.

__kernel void private_memory(__global const int *in, __global int *out)
{
    int values[64];
    uint i = get_global_id(0);
    for (int j = 0; j < 64; j++)
        values[j] = in[(i + j) & 63] * j;
    int sum = 0;
    for (int j = 0; j < 64; j++) {
        sum += values[in[j] & 63];
        values[in[j] & 63] = sum;
    }
    out[i] = sum;
}
