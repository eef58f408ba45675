// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Sub-groups of 16 items: reductions, scans, exchange of values, block reads and writes.

#pragma OPENCL EXTENSION cl_khr_subgroups : enable

__kernel __attribute__((intel_reqd_sub_group_size(16)))
void sub_groups(__global const int *in, __global int *out)
{
    uint i = get_global_id(0);
    int value = in[i];
    out[5 * i] = sub_group_reduce_add(value);
    out[5 * i + 1] = sub_group_scan_inclusive_add(value);
    out[5 * i + 2] = sub_group_scan_exclusive_max(value);
    out[5 * i + 3] = sub_group_broadcast(value, 5);
    out[5 * i + 4] = intel_sub_group_shuffle_xor(value, 3);
}

__kernel __attribute__((intel_reqd_sub_group_size(16))) __attribute__((reqd_work_group_size(64, 1, 1)))
void block_io(__global const uint *in, __global uint *out)
{
    uint start = get_group_id(0) * 128 + get_sub_group_id() * 32;
    uint2 values = intel_sub_group_block_read2(in + start);
    intel_sub_group_block_write2(out + start, values + 1u);
}
