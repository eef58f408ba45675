// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// For Level Zero, with bindless addressing.

__kernel void scale(__global const float *in, __global float *out, float factor, uint n)
{
    uint i = get_global_id(0);
    if (i < n)
        out[i] = in[i] * factor + (float)get_group_id(0);
}
