/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Groups, local memory, atomics, private memory, calls, divergence. */

//: ids2d 32,24 8,4 o=u32[3072]
__kernel void ids2d(__global uint4 *o) { uint x = get_global_id(0), y = get_global_id(1); o[y * 32 + x] = (uint4)(get_local_id(0) | get_local_id(1) << 8, get_group_id(0) | get_group_id(1) << 8, get_local_size(0) * 100 + get_local_size(1), get_num_groups(0) * 100 + get_num_groups(1)); }
//: ids3d 8,6,4 4,3,2 o=u32[768]
__kernel void ids3d(__global uint4 *o) { uint x = get_global_id(0), y = get_global_id(1), z = get_global_id(2); o[(z * 6 + y) * 8 + x] = (uint4)(get_local_id(0) | get_local_id(1) << 8 | get_local_id(2) << 16, get_group_id(0) | get_group_id(1) << 8 | get_group_id(2) << 16, get_global_size(0) * get_global_size(1) + get_global_size(2), get_work_dim()); }
//: oddgroup 120 40 o=u32[120]
__kernel void oddgroup(__global uint *o) { uint i = get_global_id(0); o[i] = get_local_id(0) * 1000 + get_group_id(0); }
//: reduce 1024 64 o=i32[16] a=i32[1024] t=local:256
__kernel void reduce(__global int *o, __global const int *a, __local int *t) { uint l = get_local_id(0); t[l] = a[get_global_id(0)]; barrier(CLK_LOCAL_MEM_FENCE); for (uint s = get_local_size(0) / 2; s > 0; s >>= 1) { if (l < s) t[l] += t[l + s]; barrier(CLK_LOCAL_MEM_FENCE); } if (l == 0) o[get_group_id(0)] = t[0]; }
//: bigreduce 2048 512 o=i32[4] a=i32[2048] t=local:2048
__kernel void bigreduce(__global int *o, __global const int *a, __local int *t) { uint l = get_local_id(0); t[l] = a[get_global_id(0)]; barrier(CLK_LOCAL_MEM_FENCE); for (uint s = get_local_size(0) / 2; s > 0; s >>= 1) { if (l < s) t[l] ^= t[l + s] + 1; barrier(CLK_LOCAL_MEM_FENCE); } if (l == 0) o[get_group_id(0)] = t[0]; }
//: scan 512 64 o=i32[512] a=i32[512]
__kernel void scan(__global int *o, __global const int *a) { __local int t[64]; uint l = get_local_id(0); t[l] = a[get_global_id(0)]; barrier(CLK_LOCAL_MEM_FENCE); for (uint d = 1; d < 64; d <<= 1) { int v = l >= d ? t[l - d] : 0; barrier(CLK_LOCAL_MEM_FENCE); t[l] += v; barrier(CLK_LOCAL_MEM_FENCE); } o[get_global_id(0)] = t[l]; }
//: transpose 64,32 16,16 o=f32[2048] a=f32[2048]
__kernel void transpose(__global float *o, __global const float *a) { __local float t[16][17]; uint lx = get_local_id(0), ly = get_local_id(1), w = 64, h = 32; t[ly][lx] = a[get_global_id(1) * w + get_global_id(0)]; barrier(CLK_LOCAL_MEM_FENCE); o[(get_group_id(0) * 16 + ly) * h + get_group_id(1) * 16 + lx] = t[lx][ly]; }
//: histogram 4096 64 h=zero32[256] a=u8[4096]
__kernel void histogram(__global uint *h, __global const uchar *a) { __local uint l[256]; for (uint i = get_local_id(0); i < 256; i += get_local_size(0)) l[i] = 0; barrier(CLK_LOCAL_MEM_FENCE); atomic_inc(&l[a[get_global_id(0)]]); barrier(CLK_LOCAL_MEM_FENCE); for (uint i = get_local_id(0); i < 256; i += get_local_size(0)) atomic_add(&h[i], l[i]); }
//: atomics 1024 64 c=zero32[16] a=i32[1024]
__kernel void atomics(__global int *c, __global const int *a) { int v = a[get_global_id(0)]; atomic_add(c, v); atomic_sub(c + 1, v); atomic_inc(c + 2); atomic_dec(c + 3); atomic_max(c + 4, v); atomic_min(c + 5, v); atomic_or(c + 6, v & 0xff00); atomic_and(c + 7, v); atomic_xor(c + 8, v); atomic_max((__global uint *)c + 9, (uint)v); atomic_min((__global uint *)c + 10, (uint)v); }
//: localatomics 1024 64 o=i32[64] a=i32[1024]
__kernel void localatomics(__global int *o, __global const int *a) { __local int t[4]; uint l = get_local_id(0); if (l < 4) t[l] = 0; barrier(CLK_LOCAL_MEM_FENCE); int v = a[get_global_id(0)]; atomic_add(t, v); atomic_max(t + 1, v); atomic_xor(t + 2, v); atomic_or(t + 3, v & 0xf0f0); barrier(CLK_LOCAL_MEM_FENCE); if (l < 4) o[get_group_id(0) * 4 + l] = t[l]; }
//: casloop 1024 64 c=zero32[4] a=i32[1024]
__kernel void casloop(__global int *c, __global const int *a) { int v = a[get_global_id(0)] & 0xffff, old, seen = c[0]; do { old = seen; seen = atomic_cmpxchg(c, old, old + v); } while (seen != old); atomic_add(c + 1, 1); }
//: compact 1024 64 n=zero32[1] o=sorted32[1024] a=i32[1024]
__kernel void compact(__global int *n, __global int *o, __global const int *a) { int v = a[get_global_id(0)]; o[get_global_id(0)] = 0; barrier(CLK_GLOBAL_MEM_FENCE); if (v > 0) atomic_inc(n); }
//: privatearray 512 32 o=i32[512] x=idx64[64]
__kernel void privatearray(__global int *o, __global const int *x) { int t[64]; uint i = get_global_id(0); for (int j = 0; j < 64; j++) t[j] = x[(i + j) & 63] * j; int s = 0; for (int j = 0; j < 64; j++) s += t[x[j] & 63] ^ j; o[i] = s; }
//: nested 1024 64 o=i32[1024] a=i32[1024]
__kernel void nested(__global int *o, __global const int *a) { uint i = get_global_id(0); int s = 0; for (int j = 0; j < (int)(i & 15); j++) { if (a[(i + j) & 1023] < 0) continue; for (int k = 0; k < 8; k++) { if ((a[(i * 3 + k) & 1023] & 7) == k) break; s += k * j; } if (s > 200) break; } o[i] = s; }
//: switches 1024 64 o=i32[1024] a=u32[1024]
__kernel void switches(__global int *o, __global const uint *a) { uint i = get_global_id(0); int r; switch (a[i] % 7) { case 0: r = 10; break; case 1: r = (int)i * 3; break; case 2: r = -5; case 3: r = (int)(a[i] >> 20); break; case 4: r = i & 1 ? 7 : 9; break; default: r = 1000; } o[i] = r; }
//: earlyreturn 1024 64 o=i32[1024] a=i32[1024]
__kernel void earlyreturn(__global int *o, __global const int *a) { uint i = get_global_id(0); o[i] = 1; if (a[i] & 1) return; o[i] = 2; for (int k = 0; k < 5; k++) { if ((a[i] >> k & 3) == 2) return; o[i] += k + 1; } o[i] += 100; }
//: calls 512 32 o=i32[512] a=i32[512]
__attribute__((noinline)) int helper(int x, int n) { int s = x; for (int k = 0; k < n; k++) s = s * 3 + k; return s; }
__kernel void calls(__global int *o, __global const int *a) { uint i = get_global_id(0); int v = a[i] & 0xff; if (v & 1) v = helper(v, v & 7); else v = helper(v + 1, 3) - helper(v, 2); o[i] = v; }
//: fibonacci 512 32 o=u32[512]
__kernel void fibonacci(__global uint *o) { uint i = get_global_id(0), a = 0, b = 1; for (uint k = 0; k < (i & 31); k++) { uint t = a + b; a = b; b = t; } o[i] = a; }
//: mandel 64,64 16,4 o=u32[4096]
__kernel void mandel(__global uint *o) { uint x = get_global_id(0), y = get_global_id(1), n = 0; int cx = (int)x * 96 - 4608, cy = (int)y * 80 - 2560, zx = 0, zy = 0; while (n < 100 && zx * zx + zy * zy < 4 << 22) { int t = ((zx * zx - zy * zy) >> 11) + cx; zy = (zx * zy >> 10) + cy; zx = t; n++; } o[y * 64 + x] = n; }
//: sgemm 32,32 16,16 ulp=16 abs=1e-1 c=f32[1024] a=f32[1024] b=f32[1024]
__kernel void sgemm(__global float *c, __global const float *a, __global const float *b) { __local float s[16][16], t[16][16]; int r = get_local_id(0), q = get_local_id(1), gr = 16 * get_group_id(0) + r, gc = 16 * get_group_id(1) + q; float v = 0; for (int k = 0; k < 2; k++) { s[q][r] = a[(16 * k + q) * 32 + gr]; t[q][r] = b[gc * 32 + 16 * k + r]; barrier(CLK_LOCAL_MEM_FENCE); for (int j = 0; j < 16; j++) v += s[j][r] * t[q][j]; barrier(CLK_LOCAL_MEM_FENCE); } c[gc * 32 + gr] = v; }
//: bitonic 256 256 o=i32[256] a=i32[256]
__kernel void bitonic(__global int *o, __global const int *a) { __local int t[256]; uint l = get_local_id(0); t[l] = a[l]; barrier(CLK_LOCAL_MEM_FENCE); for (uint k = 2; k <= 256; k <<= 1) for (uint j = k >> 1; j > 0; j >>= 1) { uint p = l ^ j; if (p > l) { int x = t[l], y = t[p]; if ((x > y) == ((l & k) == 0)) { t[l] = y; t[p] = x; } } barrier(CLK_LOCAL_MEM_FENCE); } o[l] = t[l]; }
//: stencil 64,64 16,4 ulp=4 abs=1e-3 o=f32[4096] a=f32[4096]
__kernel void stencil(__global float *o, __global const float *a) { int x = get_global_id(0), y = get_global_id(1); float s = 0; for (int dy = -1; dy <= 1; dy++) for (int dx = -1; dx <= 1; dx++) { int px = clamp(x + dx, 0, 63), py = clamp(y + dy, 0, 63); s += a[py * 64 + px]; } o[y * 64 + x] = s * 0.125f; }
//: spills 256 16 o=i32[256] a=i32[4096]
__kernel __attribute__((intel_reqd_sub_group_size(16))) void spills(__global int *o, __global const int *a) { uint i = get_global_id(0); int v[96]; _Pragma("unroll") for (int k = 0; k < 96; k++) v[k] = a[(i * 16 + k * 37) & 4095]; int s = 0; _Pragma("unroll") for (int r = 0; r < 3; r++) { _Pragma("unroll") for (int k = 0; k < 96; k++) { v[k] = v[k] * 3 + v[(k + 7) % 96]; s ^= v[k]; } } o[i] = s; }
//: genericptr 256 32 o=i32[256] a=i32[256]
#ifndef POCL
__attribute__((noinline)) void bump(int *p, int n) { *p += n; }
#else
#define bump(p, n) (*(p) += (n))
#endif
__kernel void genericptr(__global int *o, __global const int *a) { __local int t[32]; uint i = get_global_id(0), l = get_local_id(0); int v = a[i] & 0xfff; t[l] = v; barrier(CLK_LOCAL_MEM_FENCE); bump(&v, 3); o[i] = v; if (v & 1) bump(&o[i], t[31 - l]); }
//: offsets 256 32 o=i32[256] n=i32(5) m=i64(70000000000) f=f32(2.5) c=i8(-3)
__kernel void offsets(__global int *o, int n, long m, float f, char c) { uint i = get_global_id(0); o[i] = (int)i * n + (int)(m >> 8) + (int)(f * 4) + c; }
//: constants 256 32 o=i32[256]
__constant int table[16] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3 };
__kernel void constants(__global int *o) { uint i = get_global_id(0); o[i] = table[i & 15] * 10 + table[(i >> 4) & 15]; }
