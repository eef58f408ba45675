/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Kernels whose code and results are in tests/data for the quick tier. All results are exact. A line `//:` names a kernel, its
   global and local size and its arguments. */

//: divide 256 32 o=i32[256] p=u32[256] a=i32[256] b=nz32[256]
__kernel void divide(__global int *o, __global uint *p, __global const int *a, __global const int *b) { uint i = get_global_id(0); o[i] = a[i] / b[i] ^ a[i] % b[i] << 3; p[i] = as_uint(a[i]) / 641u + popcount(a[i]) + clz(b[i]); }
//: wide 256 32 o=i64[256] a=i64[256] b=i64[256]
__kernel void wide(__global long *o, __global const long *a, __global const long *b) { uint i = get_global_id(0); long x = a[i] * b[i] + (a[i] >> 3); o[i] = a[i] < b[i] ? x - (b[i] << 5) : x ^ mul_hi(a[i], b[i]); }
//: saturate 256 32 o=i32[256] q=u8[256] a=i32[256] b=i16[256]
__kernel void saturate(__global int *o, __global uchar *q, __global const int *a, __global const short *b) { uint i = get_global_id(0); o[i] = sub_sat(add_sat(a[i], (int)b[i] << 16), a[255 - i]); q[i] = convert_uchar_sat(abs_diff(b[i], b[255 - i]) - 99); }
//: crc32 256 32 o=u32[256] a=u8[1024]
__kernel void crc32(__global uint *o, __global const uchar *a) { uint i = get_global_id(0), c = ~0u; c ^= a[4 * i]; for (int k = 1; k < 5; k++) { __attribute__((opencl_unroll_hint(1))) for (int b = 0; b < 8; b++) c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0); c ^= k < 4 ? a[4 * i + k] : 0; } o[i] = ~c; }
//: steps 256 32 o=u32[256] a=u16[256]
__kernel void steps(__global uint *o, __global const ushort *a) { uint i = get_global_id(0), x = a[i] + 1, n = 0; while (x != 1) { if (n > 200) break; x = x & 1 ? 3 * x + 1 : x / 2; if (x % 7 == 3) { n += 2; continue; } switch (x & 3) { case 0: n++; break; case 1: n += x >> 8; break; default: n ^= 1; } n++; } o[i] = n; }
//: convert 256 32 o=i32[256] h=u16[256] a=f32[256] b=f16[256] c=i32[256]
__kernel void convert(__global int *o, __global half *h, __global const float *a, __global const half *b, __global const int *c) { uint i = get_global_id(0); o[i] = convert_int_rte(a[i]) * 3 + (int)floor(a[i]) + as_int(convert_float_rtz(c[i])) - as_int(vload_half(i, b)); vstore_half_rtz(a[i] * 0.25f, i, h); }
//: fused 256 32 o=u32[256] h=u16[256] a=wide32[256] b=wide32[256] c=f16[256]
__kernel void fused(__global uint *o, __global half *h, __global const float *a, __global const float *b, __global const half *c) { uint i = get_global_id(0); float x = fma(a[i], b[i], a[255 - i]); o[i] = as_uint(fmax(x, fmin(a[i], b[i]))); vstore_half(fma(vload_half(i, c), vload_half(255 - i, c), a[i]), i, h); }
//: sums 512 64 o=u32[8] p=zero32[16] a=u32[512] t=local:256
__kernel void sums(__global uint *o, __global uint *p, __global const uint *a, __local uint *t) { uint l = get_local_id(0); t[l] = a[get_global_id(0)]; barrier(CLK_LOCAL_MEM_FENCE); atomic_add(&p[t[63 - l] & 15], l); barrier(CLK_LOCAL_MEM_FENCE); for (uint s = 32; s > 0; s >>= 1) { if (l < s) t[l] += t[l + s]; barrier(CLK_LOCAL_MEM_FENCE); } if (l == 0) o[get_group_id(0)] = t[0]; }
//: turn 32,32 16,16 o=u32[1024] a=u32[1024]
__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void turn(__global uint *o, __global const uint *a) { __local uint t[16][17]; uint x = get_local_id(0), y = get_local_id(1); t[y][x] = a[get_global_id(1) * 32 + get_global_id(0)]; barrier(CLK_LOCAL_MEM_FENCE); o[(get_group_id(0) * 16 + y) * 32 + get_group_id(1) * 16 + x] = t[x][y]; }
//: longs 512 64 c=zero64[12] u=zero64[4] a=i64[512]
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable
__kernel void longs(__global long *c, __global ulong *u, __global const long *a) { long v = a[get_global_id(0)]; atom_add(c, v); atom_sub(c + 1, v); atom_min(c + 2, v); atom_max(c + 3, v); atom_or(c + 4, v & 0xff00ff00ff00L); atom_xor(c + 5, v); atom_add(c + 6, atom_inc(c + 7)); atom_sub(c + 8, atom_dec(c + 9)); atom_max(u, (ulong)v); atom_min(u + 1, (ulong)v); long e = c[10]; for (long n; (n = atom_cmpxchg(c + 10, e, e * 3 + 1)) != e;) e = n; }
//: locallongs 256 64 o=i64[48] a=i64[256] t=local:96
__kernel void locallongs(__global long *o, __global const long *a, __local long *t) { uint l = get_local_id(0); long v = a[get_global_id(0)]; if (l < 12) t[l] = l - 5; barrier(CLK_LOCAL_MEM_FENCE); atom_add(t, v); atom_sub(t + 1, v); atom_min(t + 2, v); atom_max(t + 3, v); atom_and(t + 4, v | 0xffff); atom_or(t + 5, v & 0xff00ff00ff00L); atom_xor(t + 6, v); atom_add(t + 7, atom_inc(t + 8)); long e = t[9]; for (long n; (n = atom_cmpxchg(t + 9, e, e * 3 + 1)) != e;) e = n; atom_xor(t + 10, atom_xchg(t + 11, v)); barrier(CLK_LOCAL_MEM_FENCE); if (l == 0) t[10] ^= t[11]; barrier(CLK_LOCAL_MEM_FENCE); if (l < 11) o[get_group_id(0) * 12 + l] = t[l]; }
