// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Pointers whose address space is known at run time only.

int sum_of(const int *values, int count)
{
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

__kernel __attribute__((reqd_work_group_size(16, 1, 1)))
void generic_pointers(__global const int *in, __global int *out)
{
    __local int shared[16];
    int own[4];
    uint i = get_global_id(0), item = get_local_id(0);
    shared[item] = in[i] + 1;
    for (int j = 0; j < 4; j++)
        own[j] = in[i] * (j + 1);
    barrier(CLK_LOCAL_MEM_FENCE);
    const int *values = in[i] % 3 == 0 ? (const int *)&shared[item & 12] : in[i] % 3 == 1 ? (const int *)own : (const int *)&in[i & ~3u];
    out[i] = sum_of(values, 4);
}
