// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// c = a + b, for as many items as there are.

__kernel void vadd(__global const float *a, __global const float *b, __global float *c, uint n)
{
    uint i = get_global_id(0);
    if (i < n)
        c[i] = a[i] + b[i];
}
