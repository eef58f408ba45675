/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Kernels whose code is in tests/data for the quick tier, with the results of the plain loops of tests/limits.rs: groups that are
   smaller at the end of a range, and image formats, of which pocl has not all. */

/* Each item takes the number that the opposite item of its group has stored. */
__kernel void partial(__global uint *o, __global uint *p, __global uint *q, __local uint *t)
{
    uint i = get_global_linear_id(), l = get_local_linear_id();
    uint n = get_local_size(0) * get_local_size(1) * get_local_size(2);
    t[l] = i;
    barrier(CLK_LOCAL_MEM_FENCE);
    o[i] = t[n - 1 - l];
    p[i] = get_local_size(0) | get_local_size(1) << 8 | get_local_size(2) << 16 | get_enqueued_local_size(0) << 24;
    q[i] = get_group_id(0) | get_group_id(1) << 5 | get_group_id(2) << 10 | get_num_groups(0) << 15 | get_num_groups(1) << 20 |
        get_num_groups(2) << 25;
}

__kernel __attribute__((intel_reqd_sub_group_size(16))) void lanes(__global uint *o, __global uint *p)
{
    uint i = get_global_linear_id();
    o[i] = get_sub_group_size() | get_num_sub_groups() << 8 | get_sub_group_id() << 16;
    p[i] = sub_group_reduce_add(i);
}

/* Texels without a sampler, and with one between four texels. */
__kernel void colors(read_only image2d_t s, sampler_t t, __global float4 *o, __global float4 *p, __global int *q)
{
    int x = get_global_id(0), y = get_global_id(1), i = y * get_global_size(0) + x;
    o[i] = read_imagef(s, (int2)(x, y));
    p[i] = read_imagef(s, t, (float2)(x, y));
    if (i == 0) {
        q[0] = get_image_channel_order(s);
        q[1] = get_image_channel_data_type(s);
    }
}

__kernel void paint(write_only image2d_t d, __global const float4 *a)
{
    int x = get_global_id(0), y = get_global_id(1);
    write_imagef(d, (int2)(x, y), a[y * get_global_size(0) + x]);
}

__kernel void depths(read_only image2d_depth_t s, sampler_t t, __global float *o)
{
    int x = get_global_id(0), y = get_global_id(1);
    o[y * get_global_size(0) + x] = read_imagef(s, t, (float2)(x + 0.5f, y + 0.5f));
}
