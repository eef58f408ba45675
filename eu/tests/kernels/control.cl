/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Divergence, loops, switches, functions, kernels that call kernels, ranges and groups of all shapes, work-group functions. */

//: manycases 1024 64 o=i32[1024] a=u32[1024]
__kernel void manycases(__global int *o, __global const uint *a) { uint i = get_global_id(0); int r = 1; switch (a[i] & 31) { case 0: r = 3; break; case 1: r = (int)i; case 2: r += 5; break; case 3: r = 77; break; case 4: r ^= 9; case 5: case 6: r *= 7; break; case 7: for (int k = 0; k < (int)(a[i] >> 8 & 7); k++) r += k; break; case 8: r = -1; break; case 9: r = 100; break; case 10: return; case 11: r = (int)(a[i] >> 5); break; case 13: r -= 2; break; case 17: r <<= 3; break; case 20: r = ~(int)a[i]; break; case 31: r = 31; break; default: r = (int)a[i] % 11; } o[i] = r; }
//: sparsecases 1024 64 o=i32[1024] a=u32[1024]
__kernel void sparsecases(__global int *o, __global const uint *a) { uint i = get_global_id(0); long v = (long)(a[i] & 3) << 33 | (a[i] >> 8 & 1); int r; switch (v) { case 0: r = 1; break; case 1L << 33: r = 2; break; case 1L << 34 | 1: r = 3; break; case 3L << 33 | 1: r = 4; break; default: r = 5; } switch ((char)a[i]) { case -128 ... -1: r += 10; break; case 'a': r += 20; break; case 1 ... 9: r += 30; break; } o[i] = r; }
//: statemachine 256 64 o=u32[256] a=u8[4096]
__kernel void statemachine(__global uint *o, __global const uchar *a) { uint i = get_global_id(0), s = 0, n = 0; for (int k = 0; k < 16; k++) { uchar c = a[i * 16 + k]; switch (s) { case 0: s = c < 64 ? 1 : c < 128 ? 2 : 0; break; case 1: if (c & 1) s = 3; else n++; break; case 2: n += c; if (n > 500) s = 4; break; case 3: s = c >> 6; n ^= c; break; case 4: n++; k++; s = 5; break; case 5: if (c == 0) goto out; s = 0; break; } } out: o[i] = s << 24 | n; }
//: gotos 512 32 o=u32[512] a=u32[512]
__kernel void gotos(__global uint *o, __global const uint *a) { uint i = get_global_id(0), v = a[i], n = 0; again: n++; if (v & 1) { v = v * 5 + 1; if (n < 20) goto next; goto end; } v >>= 1; if (v == 0) goto end; next: if (n < 40) goto again; end: o[i] = v ^ n << 20; }
//: deeploops 256 64 o=u32[256] a=u32[256]
__kernel void deeploops(__global uint *o, __global const uint *a) { uint i = get_global_id(0), s = 0; for (uint x = 0; x < (a[i] & 7); x++) { uint y = 0; while (1) { if (++y > (a[i] >> 3 & 7)) break; do { s += x * y; if ((s & 15) == 13) { s++; goto skip; } for (uint z = y; z; z &= z - 1) { s ^= z; if (s & 0x1000) return; } } while ((s & 3) == 2 && s < 5000); if (s % 5 == 2) continue; s += 3; } skip: s += 1; } o[i] = s; }
//: shortcircuit 512 64 o=i32[512] a=i32[512]
__kernel void shortcircuit(__global int *o, __global const int *a) { uint i = get_global_id(0); int v = a[i], n = 0; if ((v & 1 && ++n > 0 && v & 2) || (v & 4 && ++n && !(v & 8))) n += 10; if (!(v > 0 ? v & 16 : v & 32) == !(v & 64)) n += 100; o[i] = n + (v & 1 ? v & 2 ? 1000 : 2000 : v & 4 ? 3000 : 4000); }
//: loopcarried 256 64 o=u32[256] p=f32[256] a=u32[256]
__kernel void loopcarried(__global uint *o, __global float *p, __global const uint *a) { uint i = get_global_id(0), x = a[i], y = 1, z = 2; float f = 1; while (x) { if (x & 1) { uint t = y; y = z; z = t + x; f = f + 1.0f; } else if (x & 2) { z = y ^ z; f = f * 2.0f; if (f > 1e6f) f = 0.5f; } else y += 3; x >>= 1 + (z & 1); } o[i] = y * 31 + z; p[i] = f; }
//: barriersinloop 256 64 o=i32[256] a=i32[256]
__kernel void barriersinloop(__global int *o, __global const int *a) { __local int t[64], n; uint l = get_local_id(0); int v = a[get_global_id(0)]; if (l == 0) n = 3 + (a[get_group_id(0)] & 7); barrier(CLK_LOCAL_MEM_FENCE); int m = n; for (int k = 0; k < m; k++) { t[l] = v; barrier(CLK_LOCAL_MEM_FENCE); if (v & 1) v = t[(l + k + 1) & 63] * 3; else v ^= t[63 - l]; barrier(CLK_LOCAL_MEM_FENCE); } o[get_global_id(0)] = v; }
//: barriersindivergence 256 64 o=i32[256] a=i32[256]
__kernel void barriersindivergence(__global int *o, __global const int *a) { __local int t[64]; uint l = get_local_id(0), g = get_group_id(0); int v = a[get_global_id(0)]; t[l] = v; if (g & 1) { barrier(CLK_LOCAL_MEM_FENCE); v = t[63 - l]; } else { barrier(CLK_LOCAL_MEM_FENCE); if (g & 2) { v += t[l ^ 32]; barrier(CLK_LOCAL_MEM_FENCE); t[l ^ 1] = v; barrier(CLK_LOCAL_MEM_FENCE); v = t[l]; } } o[get_global_id(0)] = v; }
//: functions 512 64 o=i32[512] a=i32[512]
__attribute__((noinline)) int twice(int x) { return x * 2 + 1; }
__attribute__((noinline)) int choose(int x, int y) { if (x & 1) return twice(y); for (int k = 0; k < (x & 3); k++) y = twice(y) ^ x; return y; }
__attribute__((noinline)) long4 spread(int4 v, short s, char c) { return (long4)(v.x * (long)v.y, v.z + s, v.w - c, s * c); }
__kernel void functions(__global int *o, __global const int *a) { uint i = get_global_id(0); int v = a[i], w = a[i ^ 5]; int r = choose(v, w); if (v & 8) r += choose(w, r); long4 q = spread((int4)(v, w, r, 7), (short)v, (char)w); o[i] = r ^ (int)(q.x >> 3) ^ (int)q.y ^ (int)q.z ^ (int)q.w; }
//: structfunctions 256 64 o=i32[256] a=i32[256]
typedef struct { int x, y; float f[3]; } pair;
__attribute__((noinline)) pair swap(pair p, int n) { pair q; q.x = p.y + n; q.y = p.x; q.f[0] = p.f[2]; q.f[1] = p.f[0] * 2; q.f[2] = n; return q; }
__attribute__((noinline)) void change(pair *p, const int *t, int n) { for (int k = 0; k < n; k++) { p->x += t[k]; p->f[k % 3] += k; } }
__kernel void structfunctions(__global int *o, __global const int *a) { uint i = get_global_id(0); pair p = { a[i], (int)i, { 1, 2, 3 } }; int t[6]; for (int k = 0; k < 6; k++) t[k] = a[(i + k) & 255] >> k; p = swap(p, t[0] & 255); if (a[i] & 1) change(&p, t, 6); else change(&p, t + 2, a[i] >> 1 & 3); p = swap(p, 3); o[i] = p.x ^ p.y * 3 ^ (int)(p.f[0] + p.f[1] * 2 + p.f[2]); }
//: outer 256 32 o=i32[256] a=i32[256]
__kernel void inner(__global int *o, __global const int *a) { uint i = get_global_id(0); o[i] += a[i] * 3 + get_local_id(0) + 1000 * get_group_id(0); }
__kernel void outer(__global int *o, __global const int *a) { uint i = get_global_id(0); o[i] = a[i] >> 2; inner(o, a); if (a[i] & 1) inner(o, a); }
//: offsets1 96 32 offset=1000 o=u32[384]
__kernel void offsets1(__global uint4 *o) { uint i = get_global_id(0); o[i - 1000] = (uint4)(i, get_global_offset(0), get_group_id(0) << 16 | get_local_id(0), get_global_linear_id()); }
//: offsets2 24,10 8,5 offset=7,33 o=u32[960]
__kernel void offsets2(__global uint4 *o) { uint x = get_global_id(0) - 7, y = get_global_id(1) - 33; o[y * 24 + x] = (uint4)(get_global_id(0) << 16 | get_global_id(1), get_global_offset(0) * 1000 + get_global_offset(1), get_local_linear_id(), get_global_linear_id()); }
//: offsets3 6,4,10 3,2,5 offset=100,200,300 o=u32[960]
__kernel void offsets3(__global uint4 *o) { uint x = get_global_id(0) - 100, y = get_global_id(1) - 200, z = get_global_id(2) - 300; o[(z * 4 + y) * 6 + x] = (uint4)(get_global_id(0) * 7 + get_global_id(1) * 5 + get_global_id(2), get_global_offset(2) * 1000 + get_global_size(2), get_local_linear_id() * 1000 + get_group_id(2) * 100 + get_group_id(1) * 10 + get_group_id(0), get_global_linear_id()); }
//: shapes1 49,3,2 7,3,1 o=u32[294]
__kernel void shapes1(__global uint *o) { o[get_global_linear_id()] = get_local_id(0) | get_local_id(1) << 8 | get_local_id(2) << 16 | get_group_id(0) << 20 | get_group_id(2) << 28; }
//: shapes2 5,1,30 1,1,15 o=u32[150]
__kernel void shapes2(__global uint *o) { o[get_global_linear_id()] = get_local_id(0) | get_local_id(1) << 8 | get_local_id(2) << 16 | get_group_id(0) << 20 | get_group_id(2) << 28; }
//: shapes3 2,33,4 2,11,4 o=u32[264]
__kernel void shapes3(__global uint *o) { o[get_global_linear_id()] = get_local_linear_id() | get_local_id(1) << 8 | get_local_id(2) << 16 | get_group_id(0) << 20 | get_group_id(1) << 28; }
//: shapes4 1,64 1,64 o=u32[64]
__kernel void shapes4(__global uint *o) { o[get_global_linear_id()] = get_local_linear_id() << 8 | get_work_dim() << 4 | get_enqueued_local_size(1); }
//: shapes5 3 1 o=u32[12]
__kernel void shapes5(__global uint4 *o) { o[get_global_id(0)] = (uint4)(get_local_size(0), get_num_groups(0), get_global_size(1), get_global_id(3) * 2 + get_group_id(7) + 5); }
//: singleitem 1 1 o=i64[4]
__kernel void singleitem(__global long *o) { o[0] = get_global_size(0); o[1] = get_work_dim(); o[2] += 5; o[3] = -1; }
//: tiles 48,48 12,12 o=i32[2304] a=i32[2304]
__kernel void tiles(__global int *o, __global const int *a) { __local int t[14][14]; int x = get_local_id(0), y = get_local_id(1), gx = get_global_id(0), gy = get_global_id(1); for (int k = y * 12 + x; k < 196; k += 144) { int tx = k % 14, ty = k / 14, px = clamp((int)get_group_id(0) * 12 + tx - 1, 0, 47), py = clamp((int)get_group_id(1) * 12 + ty - 1, 0, 47); t[ty][tx] = a[py * 48 + px]; } barrier(CLK_LOCAL_MEM_FENCE); int s = 0; for (int dy = 0; dy < 3; dy++) for (int dx = 0; dx < 3; dx++) s += t[y + dy][x + dx] * (dx * 2 - dy); o[gy * 48 + gx] = s; }
//: asyncs 256 64 o=i32[256] p=u8[256] q=i64[256] a=i32[256] b=u8[256] c=i64[256]
__kernel void asyncs(__global int *o, __global uchar *p, __global long *q, __global const int *a, __global const uchar *b, __global const long *c) { __local int s[64]; __local uchar t[64]; __local long u[64]; uint g = get_group_id(0) * 64, l = get_local_id(0); event_t e = async_work_group_copy(s, a + g, 64, 0); e = async_work_group_copy(t, b + g, 64, e); e = async_work_group_copy(u, c + g, 64, e); wait_group_events(1, &e); s[l] *= 3; t[l] += 7; u[l] ^= l; barrier(CLK_LOCAL_MEM_FENCE); event_t f[3]; f[0] = async_work_group_copy(o + g, s, 64, 0); f[1] = async_work_group_copy(p + g, t, 64, 0); f[2] = async_work_group_copy(q + g, u, 64, 0); wait_group_events(3, f); }
//: asyncvectors 64 32 o=f32[256] p=i16[192] a=f32[256] b=i16[512]
__kernel void asyncvectors(__global float4 *o, __global short *p, __global const float4 *a, __global const short2 *b) { __local float4 s[32]; __local short2 t[32]; uint g = get_group_id(0), l = get_local_id(0); event_t e = async_work_group_copy(s, a + g * 32, 32, 0); event_t f = async_work_group_strided_copy(t, b + g * 96, 32, 3, 0); wait_group_events(1, &e); wait_group_events(1, &f); barrier(CLK_LOCAL_MEM_FENCE); o[get_global_id(0)] = s[31 - l].wzyx; p[get_global_id(0)] = t[31 - l].x ^ t[l].y; }
//: groupfunctions 256 64 options=-cl-std=CL3.0 o=i32[256] p=u32[256] q=i64[256] a=i32[256]
#ifdef POCL
#define WG(T, name, init, op) T wg_##name(__local T *t, T v, int kind) { uint l = get_local_id(0), n = get_local_size(0); t[l] = v; barrier(CLK_LOCAL_MEM_FENCE); T r = init; uint end = kind == 0 ? n : kind == 1 ? l + 1 : l; for (uint k = 0; k < end; k++) { T w = t[k]; r = op; } barrier(CLK_LOCAL_MEM_FENCE); return r; }
WG(int, add, 0, r + w) WG(int, min, 0x7fffffff, min(r, w)) WG(int, max, -0x7fffffff - 1, max(r, w)) WG(long, ladd, 0, r + w) WG(uint, umax, 0, max(r, w))
#endif
__kernel void groupfunctions(__global int *o, __global uint *p, __global long *q, __global const int *a) { uint i = get_global_id(0), l = get_local_id(0); int v = a[i];
#ifdef POCL
__local int t[64]; __local long u[64]; __local uint w[64];
o[i] = wg_add(t, v, 0) ^ wg_min(t, v, 0) ^ wg_add(t, v, 1) ^ wg_max(t, v, 2) ^ wg_add(t, l == 5 ? v : 0, 0); p[i] = wg_umax(w, (uint)v, 1) + (wg_max(t, v < 0, 0) ? 1 : 0) + (wg_min(t, v > -2147483000, 0) ? 2 : 0); q[i] = wg_ladd(u, (long)v * v, 2) ^ wg_ladd(u, v, 0);
#else
o[i] = work_group_reduce_add(v) ^ work_group_reduce_min(v) ^ work_group_scan_inclusive_add(v) ^ work_group_scan_exclusive_max(v) ^ work_group_broadcast(v, 5); p[i] = work_group_scan_inclusive_max((uint)v) + (work_group_any(v < 0) ? 1 : 0) + (work_group_all(v > -2147483000) ? 2 : 0); q[i] = work_group_scan_exclusive_add((long)v * v) ^ work_group_reduce_add((long)v);
#endif
}
//: groupfunctions2d 16,8 8,4 options=-cl-std=CL3.0 o=i32[128] a=i32[128]
__kernel void groupfunctions2d(__global int *o, __global const int *a) { uint i = get_global_id(1) * 16 + get_global_id(0); int v = a[i];
#ifdef POCL
__local int t[32]; uint l = get_local_id(1) * 8 + get_local_id(0); t[l] = v; barrier(CLK_LOCAL_MEM_FENCE); int s = 0, m = -0x7fffffff - 1; for (int k = 0; k < 32; k++) { s += t[k]; if (k <= l) m = max(m, t[k]); } o[i] = s ^ m ^ t[2 * 8 + 3];
#else
o[i] = work_group_reduce_add(v) ^ work_group_scan_inclusive_max(v) ^ work_group_broadcast(v, 3, 2);
#endif
}
//: bigspill 64 16 o=f32[64] a=f32[4096]
__kernel void bigspill(__global float *o, __global const float *a) { uint i = get_global_id(0); float v[200]; _Pragma("unroll") for (int k = 0; k < 200; k++) v[k] = a[(i * 7 + k * 19) & 4095]; float s = 0; _Pragma("unroll") for (int r = 0; r < 2; r++) _Pragma("unroll") for (int k = 0; k < 200; k++) { v[k] = fma(v[k], 0.5f, v[(k + 61) % 200]); s = fmax(s, v[k]); } o[i] = s; }
//: longspill 64 16 o=i64[64] a=i64[4096]
__kernel void longspill(__global long *o, __global const long *a) { uint i = get_global_id(0); long v[80]; _Pragma("unroll") for (int k = 0; k < 80; k++) v[k] = a[(i * 7 + k * 19) & 4095]; long s = 0; _Pragma("unroll") for (int r = 0; r < 3; r++) _Pragma("unroll") for (int k = 0; k < 80; k++) { v[k] = v[k] * 3 + (v[(k + 31) % 80] >> 1); s ^= v[k]; } o[i] = s; }
//: matmul8 64 16 o=i32[4096] a=i32[64] b=i32[64]
__kernel void matmul8(__global int *o, __global const int *a, __global const int *b) { uint i = get_global_id(0); int m[8][8], n[8][8], r[8][8]; for (int y = 0; y < 8; y++) for (int x = 0; x < 8; x++) { m[y][x] = a[y * 8 + x] + i; n[y][x] = b[(y * 8 + x + i) & 63]; } for (int y = 0; y < 8; y++) for (int x = 0; x < 8; x++) { int s = 0; for (int k = 0; k < 8; k++) s += m[y][k] * n[k][x]; r[y][x] = s; } for (int k = 0; k < 64; k++) o[i * 64 + k] = r[k >> 3][k & 7]; }
//: quicksort 64 32 o=i32[2048] a=i32[2048]
__kernel void quicksort(__global int *o, __global const int *a) { uint i = get_global_id(0); int t[32]; for (int k = 0; k < 32; k++) t[k] = a[i * 32 + k]; int stack[32], top = 0; stack[top++] = 0; stack[top++] = 31; while (top) { int h = stack[--top], l = stack[--top]; if (l >= h) continue; int p = t[h], j = l; for (int k = l; k < h; k++) if (t[k] < p) { int s = t[k]; t[k] = t[j]; t[j++] = s; } t[h] = t[j]; t[j] = p; stack[top++] = l; stack[top++] = j - 1; stack[top++] = j + 1; stack[top++] = h; } for (int k = 0; k < 32; k++) o[i * 32 + k] = t[k]; }
//: primes 512 64 o=u32[512]
__kernel void primes(__global uint *o) { uint n = get_global_id(0) * 3 + 2, d = 2; bool p = true; for (; d * d <= n; d++) if (n % d == 0) { p = false; break; } o[get_global_id(0)] = p ? n : d << 16; }
//: sha 64 32 o=u32[512] a=u32[1024]
__constant uint round_keys[16] = { 0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174 };
__kernel void sha(__global uint *o, __global const uint *a) { uint i = get_global_id(0), h[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 }; for (int k = 0; k < 16; k++) { uint e = h[4], A = h[0]; uint t1 = h[7] + (rotate(e, 26u) ^ rotate(e, 21u) ^ rotate(e, 7u)) + ((e & h[5]) ^ (~e & h[6])) + round_keys[k] + a[i * 16 + k]; uint t2 = (rotate(A, 30u) ^ rotate(A, 19u) ^ rotate(A, 10u)) + ((A & h[1]) ^ (A & h[2]) ^ (h[1] & h[2])); for (int j = 7; j; j--) h[j] = h[j - 1]; h[4] += t1; h[0] = t1 + t2; } for (int k = 0; k < 8; k++) o[i * 8 + k] = h[k]; }
//: lzss 64 32 o=u8[2048] a=u8[1024]
__kernel void lzss(__global uchar *o, __global const uchar *a) { uint i = get_global_id(0); uint in = 0, out = 0; __global uchar *p = o + i * 32; while (out < 32 && in < 16) { uchar c = a[i * 16 + in++]; if (c & 0x80 && out > 0) { uint d = (c >> 3 & 15) % out + 1, n = (c & 7) + 1; while (n-- && out < 32) { p[out] = p[out - d]; out++; } } else p[out++] = c; } while (out < 32) p[out++] = 0xaa; }
//: split 256 64 o=i32[256] a=i32[256]
#ifdef POCL
#define intel_work_group_barrier_arrive(x) barrier(x)
#define intel_work_group_barrier_wait(x)
#endif
__kernel void split(__global int *o, __global const int *a) { __local int t[64]; uint l = get_local_id(0); int v = a[get_global_id(0)]; t[l] = v; intel_work_group_barrier_arrive(CLK_LOCAL_MEM_FENCE); v = v * 3 + 1; intel_work_group_barrier_wait(CLK_LOCAL_MEM_FENCE); o[get_global_id(0)] = v ^ t[63 - l]; }
//: splitloop 256 64 o=i32[256] a=i32[256]
__kernel void splitloop(__global int *o, __global const int *a) { __local int t[64], u[64]; uint l = get_local_id(0); int v = a[get_global_id(0)]; for (int k = 0; k < 5; k++) { t[l] = v; intel_work_group_barrier_arrive(CLK_LOCAL_MEM_FENCE); v = v * 3 + 1; intel_work_group_barrier_wait(CLK_LOCAL_MEM_FENCE); v ^= t[(l + k) & 63]; barrier(CLK_LOCAL_MEM_FENCE); u[63 - l] = v; intel_work_group_barrier_arrive(CLK_LOCAL_MEM_FENCE); intel_work_group_barrier_wait(CLK_LOCAL_MEM_FENCE); v += u[l ^ 5]; barrier(CLK_LOCAL_MEM_FENCE); } o[get_global_id(0)] = v; }
//: spin 256 256 o=i32[256] t=local:4
__kernel void spin(__global int *o, __local volatile int *t) { uint l = get_local_id(0); if (l == 0) *t = 0; barrier(CLK_LOCAL_MEM_FENCE);
#ifdef POCL
o[l] = 1;
#else
uint s = get_sub_group_id(), n = get_num_sub_groups(); if (get_sub_group_local_id() == 0) { while (atomic_add(t, 0) != n - 1 - s); o[l] = 1; atomic_inc(t); } sub_group_barrier(CLK_LOCAL_MEM_FENCE); if (get_sub_group_local_id() != 0) o[l] = *t >= n - s;
#endif
}
