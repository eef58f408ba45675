// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// 64-bit integers, which the execution units compute in halves.

__kernel void int64_multiply(__global const long *a, __global const long *b, __global long *out)
{
    uint i = get_global_id(0);
    out[i] = a[i] * b[i] + mul_hi(a[i], b[i]) - max(a[i], b[i]);
}

__kernel void int64_divide(__global const long *a, __global const long *b, __global long *out)
{
    uint i = get_global_id(0);
    out[i] = a[i] / b[i];
}

__kernel void int64_shift(__global const long *a, __global const long *b, __global long *out)
{
    uint i = get_global_id(0);
    uint by = (uint)b[i] & 63;
    out[i] = (a[i] << by) ^ (a[i] >> by) ^ (long)((ulong)a[i] >> (63 - by)) ^ (long)popcount((ulong)a[i]);
}
