/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Sub-groups of 16 lanes, dot products and matrices, which pocl does not have: results are those of the plain loops of the
   test. */

__kernel __attribute__((intel_reqd_sub_group_size(16))) void shuffles(__global int *o, __global const int *a) { uint i = get_global_id(0), l = get_sub_group_local_id(); int v = a[i]; o[i] = intel_sub_group_shuffle(v, (l * 7 + 3) & 15) + 3 * intel_sub_group_shuffle_xor(v, 5) - sub_group_broadcast(v, 2); }
__kernel __attribute__((intel_reqd_sub_group_size(16))) void scans(__global int *o, __global int *p, __global int *q, __global const int *a) { uint i = get_global_id(0); int v = a[i]; o[i] = sub_group_reduce_add(v) ^ sub_group_reduce_max(v); p[i] = sub_group_scan_inclusive_add(v); q[i] = sub_group_scan_exclusive_min(v); }
__kernel __attribute__((intel_reqd_sub_group_size(16))) void votes(__global int *o, __global const int *a) { uint i = get_global_id(0); int v = a[i]; o[i] = sub_group_any(v < 0) + 2 * sub_group_all(v > -2000000000) + 4 * sub_group_any((v & 0xfff) == 5); }
__kernel __attribute__((intel_reqd_sub_group_size(16))) void blocks(__global uint *o, __global const uint *a) { uint g = get_group_id(0) * 64; uint4 v = intel_sub_group_block_read4(a + g); intel_sub_group_block_write4(o + g, v * 3 + (uint4)(1, 2, 3, 4)); }
