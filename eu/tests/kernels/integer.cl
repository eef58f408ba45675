/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Integer arithmetic of all widths. A line `//:` names a kernel, its global and local size and its arguments. */

//: add32 1024 64 o=i32[1024] a=i32[1024] b=i32[1024]
__kernel void add32(__global int *o, __global const int *a, __global const int *b) { uint i = get_global_id(0); o[i] = a[i] + b[i] * 3 - (a[i] ^ b[i]); }
//: mul32 1024 64 o=i32[1024] a=i32[1024] b=i32[1024]
__kernel void mul32(__global int *o, __global const int *a, __global const int *b) { uint i = get_global_id(0); o[i] = a[i] * b[i]; }
//: mulhi 1024 64 o=i32[1024] p=u32[1024] a=i32[1024] b=i32[1024] c=u32[1024] d=u32[1024]
__kernel void mulhi(__global int *o, __global uint *p, __global const int *a, __global const int *b, __global const uint *c, __global const uint *d) { uint i = get_global_id(0); o[i] = mul_hi(a[i], b[i]); p[i] = mul_hi(c[i], d[i]); }
//: mad24k 1024 64 o=i32[1024] a=i16[1024] b=i16[1024] c=i32[1024]
__kernel void mad24k(__global int *o, __global const short *a, __global const short *b, __global const int *c) { uint i = get_global_id(0); o[i] = mad24((int)a[i], (int)b[i], c[i]) + mul24((int)b[i], 77); }
//: divs 1024 64 o=i32[1024] a=i32[1024] b=nz32[1024]
__kernel void divs(__global int *o, __global const int *a, __global const int *b) { uint i = get_global_id(0); o[i] = a[i] / b[i] + a[i] % b[i] * 7; }
//: divu 1024 64 o=u32[1024] a=u32[1024] b=nz32[1024]
__kernel void divu(__global uint *o, __global const uint *a, __global const uint *b) { uint i = get_global_id(0); o[i] = a[i] / b[i] ^ (a[i] % b[i] << 3); }
//: divsmall 1024 64 o=i32[1024] a=i32[1024]
__kernel void divsmall(__global int *o, __global const int *a) { uint i = get_global_id(0); o[i] = a[i] / 7 + a[i] % 10 + (int)((uint)a[i] / 641u); }
//: add64 1024 64 o=i64[1024] a=i64[1024] b=i64[1024]
__kernel void add64(__global long *o, __global const long *a, __global const long *b) { uint i = get_global_id(0); o[i] = a[i] + b[i] - (a[i] >> 3); }
//: mul64 1024 64 o=i64[1024] a=i64[1024] b=i64[1024]
__kernel void mul64(__global long *o, __global const long *a, __global const long *b) { uint i = get_global_id(0); o[i] = a[i] * b[i]; }
//: mulhi64 1024 64 o=i64[1024] p=u64[1024] a=i64[1024] b=i64[1024]
__kernel void mulhi64(__global long *o, __global ulong *p, __global const long *a, __global const long *b) { uint i = get_global_id(0); o[i] = mul_hi(a[i], b[i]); p[i] = mul_hi((ulong)a[i], (ulong)b[i]); }
//: div64 512 32 o=i64[512] p=u64[512] a=i64[512] b=nz64[512]
__kernel void div64(__global long *o, __global ulong *p, __global const long *a, __global const long *b) { uint i = get_global_id(0); o[i] = a[i] / b[i] + a[i] % b[i]; p[i] = (ulong)a[i] / (ulong)b[i] ^ (ulong)a[i] % (ulong)b[i]; }
//: shift64 1024 64 o=i64[1024] p=u64[1024] a=i64[1024] s=u32[1024]
__kernel void shift64(__global long *o, __global ulong *p, __global const long *a, __global const uint *s) { uint i = get_global_id(0); uint n = s[i] & 63; o[i] = (a[i] << n) ^ (a[i] >> n); p[i] = (ulong)a[i] >> n; }
//: cmp64 1024 64 o=i32[1024] a=i64[1024] b=i64[1024]
__kernel void cmp64(__global int *o, __global const long *a, __global const long *b) { uint i = get_global_id(0); o[i] = (a[i] < b[i]) + 2 * (a[i] >= b[i]) + 4 * ((ulong)a[i] < (ulong)b[i]) + 8 * (a[i] == b[i]); }
//: minmax64 1024 64 o=i64[1024] p=u64[1024] a=i64[1024] b=i64[1024]
__kernel void minmax64(__global long *o, __global ulong *p, __global const long *a, __global const long *b) { uint i = get_global_id(0); o[i] = max(a[i], b[i]) ^ min(a[i], 5L); p[i] = max((ulong)a[i], (ulong)b[i]) + popcount((ulong)a[i]) + clz(b[i]); }
//: abs64 1024 64 o=u64[1024] a=i64[1024] b=i64[1024]
__kernel void abs64(__global ulong *o, __global const long *a, __global const long *b) { uint i = get_global_id(0); o[i] = abs(a[i]) + abs_diff(a[i], b[i]) + rotate((ulong)b[i], 13ul); }
//: sat32 1024 64 o=i32[1024] p=u32[1024] a=i32[1024] b=i32[1024]
__kernel void sat32(__global int *o, __global uint *p, __global const int *a, __global const int *b) { uint i = get_global_id(0); o[i] = add_sat(a[i], b[i]) ^ sub_sat(a[i], b[i]); p[i] = add_sat((uint)a[i], (uint)b[i]) ^ sub_sat((uint)a[i], (uint)b[i]); }
//: sat16 1024 64 o=i16[1024] p=u16[1024] a=i16[1024] b=i16[1024]
__kernel void sat16(__global short *o, __global ushort *p, __global const short *a, __global const short *b) { uint i = get_global_id(0); o[i] = add_sat(a[i], b[i]) ^ sub_sat(b[i], a[i]); p[i] = add_sat((ushort)a[i], (ushort)b[i]) ^ sub_sat((ushort)a[i], (ushort)b[i]); }
//: sat8 1024 64 o=i8[1024] p=u8[1024] a=i8[1024] b=i8[1024]
__kernel void sat8(__global char *o, __global uchar *p, __global const char *a, __global const char *b) { uint i = get_global_id(0); o[i] = add_sat(a[i], b[i]) ^ sub_sat(b[i], a[i]); p[i] = add_sat((uchar)a[i], (uchar)b[i]) ^ sub_sat((uchar)a[i], (uchar)b[i]); }
//: bits32 1024 64 o=u32[1024] a=u32[1024] b=u32[1024]
__kernel void bits32(__global uint *o, __global const uint *a, __global const uint *b) { uint i = get_global_id(0); o[i] = popcount(a[i]) + (clz(b[i]) << 6) + (rotate(a[i], b[i]) & ~b[i]) + bitselect(a[i], b[i], 0x0ff0f00fu); }
//: ctzk 1024 64 o=u32[1024] a=u32[1024]
__kernel void ctzk(__global uint *o, __global const uint *a) { uint i = get_global_id(0); uint v = a[i] & 0xfffff000u; o[i] = v ? popcount((v & -v) - 1) : 77; }
//: hadds 1024 64 o=i32[1024] p=u32[1024] a=i32[1024] b=i32[1024]
__kernel void hadds(__global int *o, __global uint *p, __global const int *a, __global const int *b) { uint i = get_global_id(0); o[i] = hadd(a[i], b[i]) ^ rhadd(a[i], b[i]); p[i] = hadd((uint)a[i], (uint)b[i]) ^ rhadd((uint)a[i], (uint)b[i]); }
//: clampk 1024 64 o=i32[1024] a=i32[1024]
__kernel void clampk(__global int *o, __global const int *a) { uint i = get_global_id(0); o[i] = clamp(a[i], -1000, 100000) + (int)abs(a[i]) + max(a[i], 3) - min(a[i], 9); }
//: shifts 1024 64 o=i32[1024] p=u32[1024] a=i32[1024] s=u32[1024]
__kernel void shifts(__global int *o, __global uint *p, __global const int *a, __global const uint *s) { uint i = get_global_id(0), n = s[i] & 31; o[i] = (a[i] << n) + (a[i] >> n); p[i] = (uint)a[i] >> n; }
//: shorts 1024 64 o=i16[1024] p=u16[1024] a=i16[1024] b=i16[1024]
__kernel void shorts(__global short *o, __global ushort *p, __global const short *a, __global const short *b) { uint i = get_global_id(0); o[i] = a[i] * b[i] + (a[i] >> 3); p[i] = (ushort)a[i] * (ushort)b[i] - ((ushort)b[i] >> 5); }
//: chars8 1024 64 o=i8[1024] p=u8[1024] a=i8[1024] b=i8[1024]
__kernel void chars8(__global char *o, __global uchar *p, __global const char *a, __global const char *b) { uint i = get_global_id(0); o[i] = a[i] * b[i] - (b[i] >> 2); p[i] = (uchar)a[i] * (uchar)3 + ((uchar)b[i] >> 1); }
//: divbytes 1024 64 o=i8[1024] p=u16[1024] a=i8[1024] b=i16[1024]
__kernel void divbytes(__global char *o, __global ushort *p, __global const char *a, __global const short *b) { uint i = get_global_id(0); o[i] = a[i] / 3 + a[i] % 5; p[i] = (ushort)b[i] / (ushort)11 + (ushort)b[i] % (ushort)13; }
//: v4i 256 32 o=i32[1024] a=i32[1024] b=i32[1024]
__kernel void v4i(__global int4 *o, __global const int4 *a, __global const int4 *b) { uint i = get_global_id(0); int4 v = a[i] + b[i].wzyx; o[i] = select(v, b[i], a[i] > b[i]) * (int4)(1, 2, 3, 4); }
//: v16c 64 32 o=u8[1024] a=u8[1027]
__kernel void v16c(__global uchar *o, __global const uchar *a) { uint i = get_global_id(0); uchar16 v = vload16(i, a + 3); vstore16(v.s76543210fedcba98 + (uchar16)(1), i, o); }
//: v3s 256 32 o=i16[768] a=i16[768]
__kernel void v3s(__global short *o, __global const short *a) { uint i = get_global_id(0); short3 v = vload3(i, a); vstore3(v.zxy * (short)2, i, o); }
//: hash 1024 64 o=u32[1024] a=u32[1024]
__kernel void hash(__global uint *o, __global const uint *a) { uint i = get_global_id(0), h = 2166136261u; for (int k = 0; k < 4; k++) { h ^= a[i] >> (8 * k) & 0xff; h *= 16777619u; } o[i] = h; }
//: collatz 1024 64 o=u32[1024]
__kernel void collatz(__global uint *o) { uint i = get_global_id(0) + 1, n = i, steps = 0; while (n != 1) { n = n & 1 ? 3 * n + 1 : n / 2; steps++; } o[i - 1] = steps; }
//: gcdk 1024 64 o=u32[1024] a=nz32[1024] b=nz32[1024]
__kernel void gcdk(__global uint *o, __global const uint *a, __global const uint *b) { uint i = get_global_id(0), x = a[i], y = b[i] & 0xffff; while (y) { uint t = x % y; x = y; y = t; } o[i] = x; }
//: crc 256 32 o=u32[256] a=u8[4096]
__kernel void crc(__global uint *o, __global const uchar *a) { uint i = get_global_id(0), c = ~0u; for (int k = 0; k < 16; k++) { c ^= a[16 * i + k]; for (int b = 0; b < 8; b++) c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0); } o[i] = ~c; }
//: xorshift 1024 64 o=u64[1024]
__kernel void xorshift(__global ulong *o) { uint i = get_global_id(0); ulong x = i * 0x9e3779b97f4a7c15ul + 1; for (int k = 0; k < 8; k++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; } o[i] = x; }
//: packing 512 64 o=u32[512] a=u8[2048]
__kernel void packing(__global uint *o, __global const uchar4 *a) { uint i = get_global_id(0); uchar4 v = a[i]; o[i] = as_uint(v.yxwz) + (uint)v.x * v.y + convert_ushort(v.z); }
//: structs 256 32 o=i32[1024] a=i32[1024]
typedef struct { int x; short y, z; uchar b[4]; float f; } item;
__kernel void structs(__global item *o, __global const item *a) { uint i = get_global_id(0); item t = a[i]; int old = t.x; t.x = t.y + t.b[1]; t.y = (short)(t.z * 3); t.z = (short)old; t.b[i & 3] = (uchar)old; t.f = (float)(old & 0xff); o[255 - i] = t; }
