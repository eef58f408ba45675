// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The sum of each group's items, by halves in shared local memory.

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void reduce(__global const float *in, __global float *sums, __local float *part)
{
    uint item = get_local_id(0);
    part[item] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = get_local_size(0) / 2; step > 0; step >>= 1) {
        if (item < step)
            part[item] += part[item + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0)
        sums[get_group_id(0)] = part[0];
}
