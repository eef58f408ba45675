/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Sub-groups of 16 lanes, dot products and matrices, which pocl does not have: results are those of the plain loops of the
   test. */

__kernel __attribute__((intel_reqd_sub_group_size(16))) void shuffles(__global int *o, __global const int *a) { uint i = get_global_id(0), l = get_sub_group_local_id(); int v = a[i]; o[i] = intel_sub_group_shuffle(v, (l * 7 + 3) & 15) + 3 * intel_sub_group_shuffle_xor(v, 5) - sub_group_broadcast(v, 2); }
__kernel __attribute__((intel_reqd_sub_group_size(16))) void scans(__global int *o, __global int *p, __global int *q, __global const int *a) { uint i = get_global_id(0); int v = a[i]; o[i] = sub_group_reduce_add(v) ^ sub_group_reduce_max(v); p[i] = sub_group_scan_inclusive_add(v); q[i] = sub_group_scan_exclusive_min(v); }
__kernel __attribute__((intel_reqd_sub_group_size(16))) void votes(__global int *o, __global const int *a) { uint i = get_global_id(0); int v = a[i]; o[i] = sub_group_any(v < 0) + 2 * sub_group_all(v > -2000000000) + 4 * sub_group_any((v & 0xfff) == 5); }
__kernel __attribute__((intel_reqd_sub_group_size(16))) void blocks(__global uint *o, __global const uint *a) { uint g = get_group_id(0) * 64; uint4 v = intel_sub_group_block_read4(a + g); intel_sub_group_block_write4(o + g, v * 3 + (uint4)(1, 2, 3, 4)); }
__kernel void dp4(__global int *o, __global uint *p, __global const int *a, __global const int *b, __global const int *c) { uint i = get_global_id(0); o[i] = dot_acc_sat_4x8packed_ss_int((uint)a[i], (uint)b[i], c[i]); p[i] = dot_acc_sat_4x8packed_uu_uint((uint)a[i], (uint)b[i], (uint)c[i]); }
__kernel __attribute__((intel_reqd_sub_group_size(8))) void matrix(__global int8 *o, __global const int8 *a, __global const int8 *b) { uint l = get_sub_group_local_id(); o[l] = intel_sub_group_i8_i8_matrix_mad_k32(a[l], b[l], o[l]); }
__kernel __attribute__((intel_reqd_sub_group_size(8))) void matrixh(__global float8 *o, __global const int8 *a, __global const int8 *b) { uint l = get_sub_group_local_id(); o[l] = intel_sub_group_f16_f16_matrix_mad_k16(a[l], b[l], o[l]); }
__kernel void copyimage(read_only image2d_t s, write_only image2d_t d) { int2 p = (int2)(get_global_id(0), get_global_id(1)); write_imagef(d, (int2)(p.y, p.x), read_imagef(s, p).wzyx); }
const sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
const sampler_t linear = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR;
__kernel void sampleimage(read_only image2d_t s, __global float4 *o) { int2 p = (int2)(get_global_id(0), get_global_id(1)); o[p.y * get_image_width(s) + p.x] = read_imagef(s, nearest, p + (int2)(-3, 2)) + 0.5f * read_imagef(s, linear, (float2)(p.x + 1.0f, p.y + 0.5f)); }
__kernel void integerimage(read_only image2d_t s, write_only image2d_t d, sampler_t t) { int2 p = (int2)(get_global_id(0), get_global_id(1)); write_imageui(d, p, read_imageui(s, t, p) * 3 + (uint)get_image_height(s)); }
__kernel void volume(read_only image3d_t s, __global float *o) { int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2); o[(z * 4 + y) * 8 + x] = read_imagef(s, (int4)(7 - x, y, z, 0)).x; }
__kernel void hello(int n) { if (get_global_id(0) < 2) printf("item %d of %d: %.2f %s %u\n", (int)get_global_id(0), n, 1.5f, "text", 7u); }
