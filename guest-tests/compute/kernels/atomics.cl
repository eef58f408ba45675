// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Atomics on global memory: inc (each ticket is taken once), add, max, min, xor, and a sum by cmpxchg.

__kernel void global_atomics(__global const uint *values, volatile __global uint *results, volatile __global uint *counts,
                             __global uint *tickets)
{
    uint value = values[get_global_id(0)];
    tickets[atomic_inc(&results[0])] = 1;
    atomic_max(&results[1], value);
    atomic_min(&results[2], value);
    atomic_xor(&results[3], value);
    atomic_add(&counts[value & 255], value >> 8);
    uint seen = results[4], old;
    do {
        old = seen;
        seen = atomic_cmpxchg(&results[4], old, old + value);
    } while (seen != old);
}

// A histogram in shared local memory, added to global memory by group.
__kernel void local_atomics(__global const uint *values, volatile __global uint *counts)
{
    __local uint part[256];
    uint item = get_local_id(0);
    for (uint i = item; i < 256; i += get_local_size(0))
        part[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_inc(&part[values[get_global_id(0)] & 255]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = item; i < 256; i += get_local_size(0))
        if (part[i] != 0)
            atomic_add(&counts[i], part[i]);
}
