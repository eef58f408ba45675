/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* What pocl does not have: functions called through pointers, arrays of images and samplers, sub-groups of the other extensions,
   matrices of other types, atomics of floats. Results are those of the plain loops of the test. */
#pragma OPENCL EXTENSION cl_ext_float_atomics : enable
#define SUB_GROUP __attribute__((intel_reqd_sub_group_size(16)))

#ifdef POINTERS
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable
int with_local(int x) { return x + get_local_id(0); }
int with_global(int x) { return x * 3 + get_global_id(0) + 1000 * get_group_id(0); }
int with_sizes(int x) { return x ^ (0x55 + get_local_size(0) + get_global_size(0) * 10 + get_num_groups(0) * 100); }
int with_offset(int x) { return x + get_global_offset(0) + get_work_dim(); }
__kernel void pointers(__global int *o, __global const int *a) { uint i = get_global_id(0); int (*t[4])(int) = { with_local, with_global, with_sizes, with_offset }; int (*g)(int) = t[a[i] & 3]; o[i] = g(a[i]); }
int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }
__kernel void recursion(__global int *o, __global const int *a) { uint i = get_global_id(0); o[i] = factorial(a[i] & 7); }
#else
__kernel void arrays(read_only image2d_array_t s, write_only image2d_array_t d, __global int *o) { int4 p = (int4)(get_global_id(0), get_global_id(1), get_global_id(2), 0); int n = get_image_array_size(s); write_imageui(d, p, read_imageui(s, (int4)(p.x, p.y, n - 1 - p.z, 0)) + 1); o[0] = get_image_width(s) | get_image_height(s) << 8 | n << 16; o[1] = get_image_channel_data_type(s); o[2] = get_image_channel_order(s); }
__kernel void lines(read_only image1d_array_t s, write_only image1d_array_t d) { int2 p = (int2)(get_global_id(0), get_global_id(1)); write_imagef(d, p, read_imagef(s, (int2)(p.x, (int)get_image_array_size(s) - 1 - p.y))); }
__kernel void texels(read_only image1d_buffer_t s, write_only image1d_t d) { int i = get_global_id(0); write_imagei(d, i, read_imagei(s, i) * 2 + get_image_width(s)); }
__kernel void inplace(read_write image2d_t s) { int2 p = (int2)(get_global_id(0), get_global_id(1)); write_imagef(s, p, read_imagef(s, p) + 1.0f); }
__kernel void sampled(read_only image2d_t s, sampler_t t, __global float4 *o) { int2 p = (int2)(get_global_id(0), get_global_id(1)); o[p.y * 16 + p.x] = read_imagef(s, t, (float2)(p.x * 0.125f - 0.5f, p.y * 0.25f - 0.75f)); }
__kernel void sampledarray(read_only image2d_array_t s, sampler_t t, __global float4 *o) { int2 p = (int2)(get_global_id(0), get_global_id(1)); o[p.y * 16 + p.x] = read_imagef(s, t, (float4)(p.x * 0.125f - 0.5f, 0.25f, p.y + 0.25f, 0)); }
__kernel SUB_GROUP void divided(__global int *o, __global const int *a) { uint i = get_global_id(0); int v = a[i], r = 0; if (v & 1) { r = sub_group_non_uniform_reduce_add(v) + sub_group_non_uniform_scan_inclusive_max(v); r ^= sub_group_elect() ? 0x1000 : 0; } else r = sub_group_non_uniform_reduce_xor(v); o[i] = r; }
__kernel SUB_GROUP void ballots(__global uint4 *o, __global const int *a) { uint i = get_global_id(0); uint4 b = sub_group_ballot(a[i] & 1); o[i] = (uint4)(b.x, sub_group_ballot_bit_count(b), sub_group_ballot_inclusive_scan(b), sub_group_inverse_ballot(b)); }
__kernel SUB_GROUP void clusters(__global int *o, __global const int *a) { uint i = get_global_id(0); int v = a[i], w = a[i ^ 1]; o[i] = sub_group_clustered_reduce_add(v, 4) ^ sub_group_clustered_reduce_max(v, 8) ^ intel_sub_group_shuffle_down(v, w, 3); }
__kernel SUB_GROUP void widths(__global ushort *o, __global ulong *p, __global uchar *q, __global const ushort *a, __global const ulong *b, __global const uchar *c) { uint g = get_group_id(0); intel_sub_group_block_write_us8(o + g * 128, intel_sub_group_block_read_us8(a + g * 128) * (ushort)3); intel_sub_group_block_write_ul2(p + g * 32, intel_sub_group_block_read_ul2(b + g * 32) + 3); intel_sub_group_block_write_uc4(q + g * 64, intel_sub_group_block_read_uc4(c + g * 64) + (uchar)3); }
__kernel SUB_GROUP void imageblocks(read_only image2d_t s, write_only image2d_t d) { int2 p = (int2)(get_group_id(0) * 64, get_group_id(1) * 4); intel_sub_group_block_write4(d, p, intel_sub_group_block_read4(s, p) + 1); }
__kernel void floatatomics(__global atomic_float *c, __global const float *a, __local atomic_float *l) { uint i = get_global_id(0); float v = a[i]; if (get_local_id(0) == 0) { atomic_init(l, 0.0f); } barrier(CLK_LOCAL_MEM_FENCE); atomic_fetch_add_explicit(c, v, memory_order_relaxed, memory_scope_device); atomic_fetch_min_explicit(c + 1, v, memory_order_relaxed, memory_scope_device); atomic_fetch_max_explicit(c + 2, v, memory_order_relaxed, memory_scope_device); atomic_fetch_min_explicit(l, v, memory_order_relaxed, memory_scope_work_group); barrier(CLK_LOCAL_MEM_FENCE); if (get_local_id(0) == 0) atomic_fetch_min_explicit(c + 3, atomic_load(l), memory_order_relaxed, memory_scope_device); }
__kernel void texts(__global const float *a) { if (get_global_id(0) == 0) { printf("%d %5d|%-5d|%05d %+d %u %x %o %#x\n", -3, 42, 42, 42, 7, 7u, 255, 8, 255); printf("%.2f %e %g %8.3f| %s %c %% %ld %hhd\n", 2.345f, 1e10f, 0.0001f, a[0], "text", 'x', 123456789012L, (char)-1); printf("%v4d %v2f %v4hhd %v8hd %v2ld\n", (int4)(1, 2, 3, 4), (float2)(1.5f, 2.5f), (char4)(-1, 2, -3, 4), (short8)(1, 2, 3, 4, 5, 6, 7, 8), (long2)(1, -1)); } }
#endif

/* Two samplers of which only the last channel is read: the message has a header, with a binding table, too. */
__kernel void twosamplers(read_only image2d_t s, sampler_t t, sampler_t u, __global float *o)
{
    int x = get_global_id(0), y = get_global_id(1), i = y * get_global_size(0) + x;
    float2 c = (float2)(x - 1, y);
    o[2 * i] = read_imagef(s, t, c).w;
    o[2 * i + 1] = read_imagef(s, u, c).w;
}
