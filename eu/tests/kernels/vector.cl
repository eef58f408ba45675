/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Vectors, conversions and saturation of all widths, atomics of OpenCL 3.0 and of 64 bits, functions with stacks, large private
   arrays, the rest of the math library. */
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable

//: longsat 256 64 o=i64[256] p=u64[256] a=i64[256] b=i64[256]
__kernel void longsat(__global long *o, __global ulong *p, __global const long *a, __global const long *b) { uint i = get_global_id(0); o[i] = add_sat(a[i], b[i]) ^ sub_sat(a[i], b[i]) ^ hadd(a[i], b[i]) ^ rhadd(b[i], a[i]) ^ clamp(a[i], -1000L, 1000000L) ^ mad_hi(a[i], b[i], 5L); p[i] = add_sat((ulong)a[i], (ulong)b[i]) ^ sub_sat((ulong)a[i], (ulong)b[i]) ^ mad_sat((ulong)a[i], 7ul, (ulong)b[i]) ^ upsample((uint)a[i], (uint)b[i]) ^ rotate((ulong)a[i], (ulong)b[i]); }
//: madsat 256 64 o=i32[256] p=i16[256] q=i8[256] a=i32[256] b=i32[256]
__kernel void madsat(__global int *o, __global short *p, __global char *q, __global const int *a, __global const int *b) { uint i = get_global_id(0); o[i] = mad_sat(a[i], b[i], 77) ^ mad_hi(a[i], b[i], 3); p[i] = mad_sat((short)a[i], (short)b[i], (short)5) ^ mul_hi((short)a[i], (short)b[i]) ^ hadd((short)a[i], (short)b[i]); q[i] = mad_sat((char)a[i], (char)b[i], (char)5) ^ mul_hi((char)a[i], (char)b[i]) ^ (char)popcount((char)a[i]) ^ (char)clz((char)b[i]) ^ rotate((char)a[i], (char)b[i]); }
//: convertall 64 32 o=i8[512] p=u16[512] a=f32[512] b=i64[512]
__kernel void convertall(__global char8 *o, __global ushort8 *p, __global const float8 *a, __global const long8 *b) { uint i = get_global_id(0); o[i] = convert_char8_sat_rte(a[i]) ^ convert_char8_sat(b[i]); p[i] = convert_ushort8_sat_rtp(a[i]) ^ convert_ushort8_sat(b[i]) ^ convert_ushort8(b[i]); }
//: bytes16 64 32 o=u8[1024] a=u8[1024] b=u8[1024]
__kernel void bytes16(__global uchar16 *o, __global const uchar16 *a, __global const uchar16 *b) { uint i = get_global_id(0); uchar16 x = a[i], y = b[i]; o[i] = add_sat(x, y) ^ abs_diff(x, y) ^ max(x, y) ^ (x > y ? x : y.sfedcba9876543210) ^ shuffle(x, y) ^ shuffle2(x, y, y) ^ hadd(x, y); }
//: shorts3 64 32 o=i16[192] a=i16[192]
__kernel void shorts3(__global short *o, __global const short *a) { uint i = get_global_id(0); short3 v = vload3(i, a); v = v * v.yzx - (short3)(any(v > (short)0), all(v < (short)100), 3); vstore3(v, i, o); }
//: floats16 64 32 ulp=8 abs=1e-2 o=f32[1024] a=f32[1024]
__kernel void floats16(__global float16 *o, __global const float16 *a) { uint i = get_global_id(0); float16 v = a[i]; o[i] = fmax(v, v.sfedcba9876543210) * 2.0f + (float16)(dot(v.s0123, v.s4567), cross(v.s012, v.s345), normalize(v.s6789), length(v.sabcd), 0, 0, 0, 0, 0, 0, 0); }
//: asynccopy 256 64 o=i32[256] a=i32[256]
__kernel void asynccopy(__global int *o, __global const int *a) { __local int t[64]; event_t e = async_work_group_copy(t, a + get_group_id(0) * 64, 64, 0); wait_group_events(1, &e); uint l = get_local_id(0); o[get_global_id(0)] = t[63 - l]; barrier(CLK_LOCAL_MEM_FENCE); event_t f = async_work_group_strided_copy(t, a, 32, 2, 0); wait_group_events(1, &f); o[get_global_id(0)] += t[l & 31]; prefetch(a, 64); }
//: atomics30 256 64 options=-cl-std=CL3.0 c=zero32[16] u=zero32[4] o=zero32[4] a=i32[256]
__kernel void atomics30(__global atomic_int *c, __global atomic_uint *u, __global int *o, __global const int *a) { uint i = get_global_id(0); int v = a[i]; atomic_fetch_add_explicit(c, v, memory_order_relaxed, memory_scope_device); atomic_fetch_sub_explicit(c + 1, v, memory_order_acq_rel, memory_scope_device); atomic_fetch_or(c + 2, v & 0xff); atomic_fetch_xor(c + 3, v); atomic_fetch_and(c + 4, v | 0xff00); atomic_fetch_min(c + 5, v); atomic_fetch_max(c + 6, v); atomic_fetch_min(u, (uint)v); atomic_fetch_max(u + 1, (uint)v); if (i == 0) { atomic_store(c + 7, 77); o[0] = atomic_exchange(c + 8, 5); o[1] = atomic_load(c + 9); } int e = 0; if (i == 3) o[2] = atomic_compare_exchange_strong(c + 10, &e, 9) ? 1 : e; }
//: stackcall 256 64 ulp=4 abs=1e-1 o=f32[256] a=f32[256]
__attribute__((noinline)) float walk(__global float *p, int n, float4 v) { float t[40]; for (int i = 0; i < 40; i++) t[i] = v.x * i + p[(n + i) & 255]; float s = 0; for (int i = 0; i < n; i++) s += t[(i * 7) % 40] * v.w; return s; }
__kernel void stackcall(__global float *o, __global float *a) { uint i = get_global_id(0); o[i] = i & 1 ? walk(a, i & 31, (float4)(1, 2, 3, 4)) : walk(a + 1, 5, (float4)(i)); }
//: bigprivate 256 64 o=i32[256] a=i32[256]
__kernel void bigprivate(__global int *o, __global const int *a) { int t[1024]; uint i = get_global_id(0); for (int j = 0; j < 1024; j++) t[j] = a[(i + j) & 255] + j; int s = 0; for (int j = 0; j < 256; j++) s += t[(a[j] & 1023)]; o[i] = s; }
//: localtypes 256 64 o=u8[256] a=u8[256]
__kernel void localtypes(__global uchar *o, __global const uchar *a) { __local uchar t[64]; __local ushort u[64]; __local ulong4 w[64]; uint l = get_local_id(0), i = get_global_id(0); t[l] = a[i]; u[l] = a[i] * 3; w[l] = (ulong4)(a[i], l, i, 5); barrier(CLK_LOCAL_MEM_FENCE); o[i] = t[63 - l] ^ (uchar)u[l ^ 1] ^ (uchar)w[l ^ 3].z ^ (uchar)w[63 - l].x; }
//: morelocal 256 64 o=u32[64] a=u32[256]
__kernel void morelocal(__global uint *o, __global const uint *a) { __local uint t[8]; uint l = get_local_id(0); if (l < 8) t[l] = 0; barrier(CLK_LOCAL_MEM_FENCE); uint v = a[get_global_id(0)]; atomic_inc(t); atomic_dec(t + 1); atomic_xchg(t + 2, 5); atomic_cmpxchg(t + 3, 0, 6); atomic_min((__local int *)t + 4, (int)v); atomic_and(t + 5, v); atomic_sub(t + 6, v); atomic_max(t + 7, v); barrier(CLK_LOCAL_MEM_FENCE); if (l < 8) o[get_group_id(0) * 8 + l] = t[l]; }
//: required 6,10,7 3,5,7 o=u32[420]
__kernel __attribute__((reqd_work_group_size(3, 5, 7))) void required(__global uint *o) { uint x = get_global_id(0), y = get_global_id(1), z = get_global_id(2); o[(z * 10 + y) * 6 + x] = get_local_id(0) | get_local_id(1) << 8 | get_local_id(2) << 16; }
//: largest 2048 1024 o=i32[2048] a=i32[2048] t=local:4096
__kernel void largest(__global int *o, __global const int *a, __local int *t) { uint l = get_local_id(0); t[l] = a[get_global_id(0)]; barrier(CLK_LOCAL_MEM_FENCE); o[get_global_id(0)] = t[1023 - l]; }
//: hyperbolic 256 64 ulp=64 abs=1e-3 o=f32[256] a=f32[256]
__kernel void hyperbolic(__global float *o, __global const float *a) { uint i = get_global_id(0); float x = a[i]; o[i] = sinh(x * 0.1f) + cosh(x * 0.05f) + asinh(x) + acosh(fabs(x) + 1.0f) + atanh(x * 0.009f) + acos(x * 0.01f) + atan2(x, 3.0f) + sinpi(x) + cospi(x * 0.5f) + tanpi(x * 0.01f) + expm1(x * 0.01f) + log1p(fabs(x)); }
//: remainders 256 64 ulp=64 abs=1e-3 o=f32[256] p=i32[256] a=f32[256] b=f32[256]
__kernel void remainders(__global float *o, __global int *p, __global const float *a, __global const float *b) { uint i = get_global_id(0); float x = a[i]; int q; float r = remquo(x, b[i], &q); o[i] = r + fdim(x, 1.0f) + nextafter(x, b[i]) + logb(x) + rootn(fabs(x), 3) + pown(x * 0.1f, 3) + powr(fabs(x), 0.3f) + maxmag(x, b[i]) + minmag(x, b[i]) + fract(x, &r) + modf(x, &r); p[i] = q + ilogb(x); }
//: gammas 256 64 ulp=64 abs=1e-4 o=f32[256] p=f32[256] a=f32[256]
__kernel void gammas(__global float *o, __global float *p, __global const float *a) { uint i = get_global_id(0); float x = fabs(a[i]) * 0.1f + 0.1f; o[i] = erf(x) + erfc(x); p[i] = lgamma(x + 1.0f); }
//: largeangles 256 64 ulp=64 abs=1e-3 o=f32[256] a=f32[256]
__kernel void largeangles(__global float *o, __global const float *a) { uint i = get_global_id(0); float c; float x = a[i] * 100.0f; float s = sincos(x, &c); o[i] = s + c + sin(x * 1000.0f) + half_sqrt(fabs(x)) + half_recip(x); }
//: denormals 256 64 o=f32[256] a=f32[256]
__kernel void denormals(__global float *o, __global const float *a) { uint i = get_global_id(0); o[i] = a[i] * 1e-38f * 0.01f + ldexp(a[i], -130); }
