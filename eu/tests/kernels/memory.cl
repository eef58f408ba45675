/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Loads and stores of all types and widths; private, local, constant and generic memory; structures, tables and pointers. */
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

//: threes 64 32 o=i32[192] p=u8[192] q=i64[192] r=u16[192] a=i32[192] b=u8[192] c=i64[192] d=u16[192]
__kernel void threes(__global int *o, __global uchar *p, __global long *q, __global ushort *r, __global const int *a, __global const uchar *b, __global const long *c, __global const ushort *d) { uint i = get_global_id(0); vstore3(vload3(i, a).zxy + 1, i, o); vstore3(vload3(i, b).yzx ^ (uchar)3, i, p); vstore3(vload3(63 - i, c) * 3, i, q); vstore3(vload3(i, d).zzx, i, r); }
//: threesarray 64 32 o=i32[256] a=i32[256]
__kernel void threesarray(__global int3 *o, __global const int3 *a) { uint i = get_global_id(0); int4 v = (int4)(a[63 - i].zyx * (int)i, 0); o[i] = v.xyz; ((__global int *)o)[i * 4 + 3] = (int)i; }
//: unaligned 64 32 o=i32[520] a=u8[2100]
__kernel void unaligned(__global int *o, __global const uchar *a) { uint i = get_global_id(0); int4 v = vload4(0, (__global const int *)(a + i * 16)); short8 s = vload8(i, (__global const short *)a); vstore4(v ^ (int4)(s.s0, s.s3, s.s5, s.s7), i, o + 4); }
//: bytesvectors 64 32 o=u8[1100] a=u8[1100]
__kernel void bytesvectors(__global uchar *o, __global const uchar *a) { uint i = get_global_id(0); vstore8(vload8(i, a + 1) + (uchar)1, i, o); vstore4(vload4(i, a + 3).wzyx, i, o + 513); vstore2(vload2(i, a + 7), i, o + 771); vstore3(vload3(i, a + 5), i, o + 900); }
//: halfvectors 64 32 o=u16[1024] p=f32[1024] a=f16[1024] b=wide32[1024]
__kernel void halfvectors(__global half *o, __global float *p, __global const half *a, __global const float *b) { uint i = get_global_id(0); vstore16(vload_half16(i, a), i, p); vstore_half8(vload8(i, b), i, o); vstore_half4_rtz(vload4(i, b), i, o + 512); vstore_half2_rtp(vload2(i, b), i, o + 768); vstore_half_rtn(b[i], i, o + 896); }
//: halfthrees 64 32 o=u16[192] p=f32[192] a=f16[192] b=wide32[192]
__kernel void halfthrees(__global half *o, __global float *p, __global const half *a, __global const float *b) { uint i = get_global_id(0); vstore_half3(vload3(i, b), i, o); vstore3(vload_half3(i, a), i, p); }
//: halfaligned 32 32 o=u16[256] p=f32[256] a=f16[256] b=wide32[256]
__kernel void halfaligned(__global half *o, __global float *p, __global const half *a, __global const float *b) { uint i = get_global_id(0); vstorea_half4_rte(vload4(i, b), i, o); vstorea_half2_rtz(vload2(i, b), i, o + 128); vstore_half(b[i], i, o + 192); vstore4(vloada_half4(i, a), i, p); vstore2(vloada_half2(i, a), i, p + 128); }
//: halfarith 256 64 o=u16[256] p=u16[256] a=f16[256] b=f16[256]
__kernel void halfarith(__global ushort *o, __global ushort *p, __global const half *a, __global const half *b) { uint i = get_global_id(0); float x = vload_half(i, a), y = vload_half(i, b); vstore_half(x * y + 1.0f, i, (__global half *)o); vstore_half_rte(x > y ? x - y : fabs(y), i, (__global half *)p); }
//: privates 256 64 o=i32[256] a=i32[256]
__kernel void privates(__global int *o, __global const int *a) { uint i = get_global_id(0); uchar t[32]; short s[16]; long q[8]; for (int k = 0; k < 32; k++) t[k] = a[(i + k) & 255]; for (int k = 0; k < 16; k++) s[k] = a[(i * 3 + k) & 255] >> 7; for (int k = 0; k < 8; k++) q[k] = (long)a[(i ^ k)] << k; int r = 0; for (int k = 0; k < 16; k++) r += t[a[k] & 31] ^ s[a[k + 1] & 15] ^ (int)(q[a[k + 2] & 7] >> 5); o[i] = r; }
//: bigstruct 128 32 o=i32[1024] a=i32[2048]
typedef struct { int v[8]; char c[12]; short s; long l; float4 f; } big;
__kernel void bigstruct(__global int *o, __global const int *a) { uint i = get_global_id(0); big t[3]; for (int k = 0; k < 3; k++) { for (int j = 0; j < 8; j++) t[k].v[j] = a[i * 8 + j + k]; for (int j = 0; j < 12; j++) t[k].c[j] = (char)(a[i + j] >> k); t[k].s = a[i] >> 3; t[k].l = (long)a[i] * a[i + 1]; t[k].f = (float4)(k, i, 1, 2); } big u = t[a[i] & 1], w = t[(a[i + 1] & 1) + 1]; for (int j = 0; j < 8; j++) o[i * 8 + j] = u.v[j] ^ w.c[j] ^ (int)(w.l >> j) ^ u.s ^ (int)w.f.y; }
//: packed 64 32 o=u8[704] a=u8[704]
typedef struct __attribute__((packed)) { char a; int b; short c; uint d; } tight;
__kernel void packed(__global tight *o, __global const tight *a) { uint i = get_global_id(0); tight t = a[i]; int b = t.b; t.b = t.d + t.c; t.c += t.a; t.d = b ^ 0x55; t.a = (char)(b >> 9); o[63 - i] = t; }
//: unions 64 32 o=u32[256] a=u32[256]
typedef union { uint u[4]; ushort s[8]; uchar b[16]; ulong q[2]; } overlay;
__kernel void unions(__global overlay *o, __global const overlay *a) { uint i = get_global_id(0); overlay t = a[i], r; for (int k = 0; k < 16; k++) r.b[(k * 7 + (int)i) & 15] = t.b[k] + k; r.s[i & 7] += t.s[(i >> 1) & 7]; r.q[1] ^= t.q[0] >> (i & 63); o[i] = r; }
//: constanttables 256 64 o=i64[256] a=u32[256]
__constant uchar bytes[37] = { 5, 200, 3, 99, 255, 0, 17 };
__constant long longs[9] = { -1, 1L << 40, 77, -(1L << 62), 5 };
__constant struct { short a; int b; char c[3]; } records[5] = { { 1, 2, { 3, 4, 5 } }, { -1, 77777, { 9, 8, 7 } }, { 300, -5, { 1 } } };
__constant float4 colours[3] = { (float4)(1, 2, 3, 4), (float4)(0.5f), (float4)(-1, 0, 1e10f, 7) };
__kernel void constanttables(__global long *o, __global const uint *a) { uint i = get_global_id(0), v = a[i]; o[i] = bytes[v % 37] + longs[(v >> 8) % 9] * 3 + records[(v >> 16) % 5].b + records[(v >> 17) % 5].c[v % 3] + records[i % 5].a + (int)colours[v % 3].y; }
//: zeroconstants 256 64 o=i32[256] a=u32[256]
__constant int nothing[64] = { 0 };
__constant int something[64] = { 1, 2, 3 };
__kernel void zeroconstants(__global int *o, __global const uint *a) { uint i = get_global_id(0), v = a[i]; o[i] = nothing[v & 63] * 7 + something[v >> 5 & 3] + (int)v; }
//: pointertable 256 64 o=i32[256] a=u32[256]
__constant int first[4] = { 10, 20, 30, 40 };
__constant int second[4] = { -1, -2, -3, -4 };
__constant int third[4] = { 7, 77, 777, 7777 };
__constant int *__constant lists[3] = { first, second + 1, third };
__kernel void pointertable(__global int *o, __global const uint *a) { uint i = get_global_id(0), v = a[i]; o[i] = lists[v % 3][v >> 8 & 1] + lists[(v >> 4) % 3][v >> 9 & 1]; }
//: strings 64 32 o=u8[64] a=u32[64]
__constant char text[] = "the quick brown fox jumps over the lazy dog";
__kernel void strings(__global char *o, __global const uint *a) { uint i = get_global_id(0); __constant char *p = a[i] & 1 ? text + 4 : "other text, with more than forty characters in it"; o[i] = p[a[i] >> 8 & 31]; }
//: localpointers 128 64 o=i32[128] a=i32[128]
__kernel void localpointers(__global int *o, __global const int *a) { __local int s[64], t[64]; __local short u[128]; uint l = get_local_id(0), i = get_global_id(0); s[l] = a[i]; t[63 - l] = a[i] * 3; u[l * 2] = a[i] >> 3; u[l * 2 + 1] = a[i] >> 9; barrier(CLK_LOCAL_MEM_FENCE); __local int *p = a[i] & 1 ? s : t; o[i] = p[(a[i] >> 2) & 63] + *(__local int *)&u[(l * 2) & ~1]; }
//: locals2d 32,16 16,8 o=i32[512] a=i32[512] t=local:1024 u=local:512
__kernel void locals2d(__global int *o, __global const int *a, __local int *t, __local short *u) { uint x = get_local_id(0), y = get_local_id(1), i = get_global_id(1) * 32 + get_global_id(0); t[y * 16 + x] = a[i]; u[x * 8 + y] = a[i] >> 5; barrier(CLK_LOCAL_MEM_FENCE); o[i] = t[(7 - y) * 16 + x] + u[(15 - x) * 8 + y]; }
//: vectorsoflocal 64 32 o=u64[256] a=u64[256]
__kernel void vectorsoflocal(__global ulong4 *o, __global const ulong4 *a) { __local ulong4 t[32]; __local uchar3 u[32]; uint l = get_local_id(0), i = get_global_id(0); t[l] = a[i]; u[l] = convert_uchar3(a[i].xyz); barrier(CLK_LOCAL_MEM_FENCE); o[i] = t[31 - l].wxzy + (ulong4)(convert_ulong3(u[l ^ 5]), 1); }
//: genericmix 256 64 o=i32[256] a=i32[256]
#ifndef POCL
__attribute__((noinline)) int look(int *p, int n) { int s = 0; for (int k = 0; k < n; k++) s += p[k] * (k + 1); p[0] ^= s & 0xff; return s; }
#else
#define look(p, n) ({ int s = 0; for (int k = 0; k < (n); k++) s += (p)[k] * (k + 1); (p)[0] ^= s & 0xff; s; })
#endif
__kernel void genericmix(__global int *o, __global const int *a) { __local int t[64 * 4]; int q[4]; uint l = get_local_id(0), i = get_global_id(0); for (int k = 0; k < 4; k++) { t[l * 4 + k] = a[(i + k) & 255]; q[k] = a[(i * 5 + k) & 255]; } o[i] = a[i]; int r; if (a[i] & 1) r = look(t + l * 4, 4); else if (a[i] & 2) r = look(q, 3) + q[0]; else r = look(o + i, 1); o[i] += r ^ t[l * 4]; }
//: negativeindex 128 32 o=i32[128] a=i32[256]
__kernel void negativeindex(__global int *o, __global const int *a) { int i = get_global_id(0); __global const int *m = a + 128; o[i] = m[-i] + m[i - 128] + *(m + (long)i - 64); }
//: wideload 32 16 o=i32[512] a=i32[512]
__kernel void wideload(__global int16 *o, __global const int16 *a) { uint i = get_global_id(0); int16 v = a[i]; o[31 - i] = v.s02468ace13579bdf ^ (int16)(v.even, v.odd.s76543210); }
//: longs16 32 16 o=i64[512] a=i64[512]
__kernel void longs16(__global long16 *o, __global const long16 *a) { uint i = get_global_id(0); long16 v = a[i]; o[31 - i] = v.s76543210fedcba98 - (long16)i; }
//: copies 16 16 o=u8[2048] a=u8[2048]
typedef struct { uchar b[128]; } block;
__kernel void copies(__global block *o, __global const block *a) { uint i = get_global_id(0); block t = a[i]; t.b[i] = 0xee; t.b[127 - i] ^= 1; o[15 - i] = t; }
//: volatiles 64 32 o=i32[64] a=i32[64]
__kernel void volatiles(__global volatile int *o, __global const volatile int *a) { uint i = get_global_id(0); o[i] = a[i]; o[i] += a[63 - i]; volatile int k = o[i]; k = k * 2; o[i] = k + k; }
//: manyarguments 64 32 o=i32[64] a=i32[64] b=i32[64] c=i32[64] d=i32[64] e=i32[64] f=i32[64] g=i32[64] h=u8(7) j=i16(-9) k=u32(77) l=i64(-5) m=f32(1.5) n=u16(65535) p=u64(12345678901234) q=i32(-1) r=i8(-128)
__kernel void manyarguments(__global int *o, __global int *a, __global int *b, __global int *c, __global int *d, __global int *e, __global int *f, __global int *g, uchar h, short j, uint k, long l, float m, ushort n, ulong p, int q, char r) { uint i = get_global_id(0); o[i] = a[i] + b[i] * 3 + c[i] - d[i] + (e[i] ^ f[i]) + g[i] + h + j + (int)k + (int)l + (int)(m * 2) + n + (int)(p >> 7) + q + r; }
//: programscope 256 64 o=i32[256] p=i32[256] a=u32[256]
#ifndef POCL
__global int weights[4] = { 5, -7, 11, 13 };
__global int zeros[64];
__global short more[8] = { 1, 2, 3 };
__global int *__global places[3] = { weights, zeros + 3, weights + 2 };
__global long sum = 1L << 40;
#endif
__kernel void programscope(__global int *o, __global int *p, __global const uint *a) { uint i = get_global_id(0), v = a[i];
#ifdef POCL
int weights[4] = { 5, -7, 11, 13 }, zeros[8] = { 0 }; short more[8] = { 1, 2, 3 }; int *places[3] = { weights, zeros + 3, weights + 2 }; long sum = 1L << 40;
#endif
o[i] = places[v % 3][v >> 8 & 1] + weights[v >> 4 & 3] * 3 + more[v >> 6 & 7] + (int)(sum >> 35);
#ifndef POCL
zeros[i & 63] = 0; atomic_add(&zeros[40], 0); p[i] = zeros[i & 63] + 1;
#else
p[i] = 1;
#endif
}
//: statics 256 64 o=i32[256] a=u32[256]
__constant int steps[] = { 3, 1, 4, 1, 5, 9, 2, 6 };
int walk(uint v) { int s = 0; for (int k = 0; k < 8; k++) s = s * 3 + steps[(v + k) & 7]; return s; }
__kernel void statics(__global int *o, __global const uint *a) { uint i = get_global_id(0); __constant static char digits[] = "0123456789abcdef"; o[i] = walk(a[i]) ^ digits[a[i] >> 9 & 15]; }
