/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Conditions of results that a narrow type cuts, and negations of the smallest number of each type. */

//: narrow1 256 64 o=u32[256] a=i32[256] b=i32[256]
__kernel void narrow1(__global uint *o, __global const int *a, __global const int *b) { uint i = get_global_id(0); uint x = a[i] & 0x1ff0f, y = b[i] & 0xff0f; uint r = 0; if ((uchar)(x + y)) r |= 1; if ((ushort)(x - y) == 0) r |= 2; if ((short)(x + y) < 0) r |= 4; if ((char)(x ^ y) > 0) r |= 8; if ((uchar)(x | y)) r |= 16; if ((short)(x << 4) >= 0) r |= 32; if ((uchar)(x >> 3) == 0) r |= 64; if ((short)(x & y) <= 0) r |= 128; if ((char)~x) r |= 256; if ((ushort)(x * y) == 0) r |= 512; if ((short)-x > 0) r |= 1024; o[i] = r; }
//: narrow2 256 64 o=u16[256] p=u8[256] a=u16[256] b=u16[256] 
__kernel void narrow2(__global ushort *o, __global uchar *p, __global const ushort *a, __global const ushort *b) { uint i = get_global_id(0); ushort x = a[i], y = b[i] & 0xff00; ushort s = x + y; uchar t = x - y; short u = x * y; char v = x >> 4; o[i] = s ? s : 7; if (!t) o[i] += 3; if (u < 0) o[i] ^= u; p[i] = v > 0 ? v : t; if ((uchar)s == 0) p[i] = 99; }
//: narrow3 256 64 o=i32[256] a=i16[256] b=i8[256]
__kernel void narrow3(__global int *o, __global const short *a, __global const char *b) { uint i = get_global_id(0); short x = a[i]; char y = b[i]; char s = y + y; short t = x + x; int r = 0; while (s) { s = s << 1; r++; } while (t) { t = (short)(t * 4); r += 100; } uchar w = (uchar)y; do { w = w * 2; r += 10000; } while (w); o[i] = r; }
//: narrow4 256 64 o=i32[256] a=i64[256] b=i64[256]
__kernel void narrow4(__global int *o, __global const long *a, __global const long *b) { uint i = get_global_id(0); long x = a[i], y = b[i]; int r = 0; if ((int)((ulong)x + (ulong)y) == 0) r |= 1; if ((int)(x ^ y) < 0) r |= 2; if ((short)(x >> 7) > 0) r |= 4; if ((uint)(x & ~y)) r |= 8; if ((char)(x | y) != 0) r |= 16; if ((x & 0xff00000000L) == 0) r |= 32; if ((long)((ulong)x - (ulong)y) < 0) r |= 64; if ((x & y) == 0) r |= 128; o[i] = r; }
//: narrow5 256 64 o=f32[256] p=i32[256] a=f32[256] b=f32[256]
__kernel void narrow5(__global float *o, __global int *p, __global const float *a, __global const float *b) { uint i = get_global_id(0); float x = a[i], y = b[i]; int n = (int)x; uchar m = (uchar)fabs(y); o[i] = n ? x : y; p[i] = (m == 0) + 2 * ((short)n < 0) + 4 * (x + y > 0) + 8 * (x * y == 0) + 16 * ((int)y == 0) + 32 * (fabs(x) - 1.0f < 0) + 64 * (fma(x, y, 1.0f) >= 0); }
//: narrow6 256 64 o=u32[256] a=u32[256] b=u32[256]
__kernel void narrow6(__global uint *o, __global const uint *a, __global const uint *b) { uint i = get_global_id(0); uint x = a[i], y = b[i]; uint r = 0; if (x + y == 0) r |= 1; if (x - y) r |= 2; if ((int)(x + y) < 0) r |= 4; if ((int)(x * 3) > 0) r |= 8; if ((x ^ 0x80000000) == 0) r |= 16; if ((int)(x - 1) >= 0) r |= 32; if ((int)(x << 1) <= 0) r |= 64; if ((int)~x > 0) r |= 128; if ((x >> 31) == 0) r |= 256; if (-x == y) r |= 512; if ((int)-x < 0) r |= 1024; if ((int)(x + y + 1) < 0) r |= 2048; if ((int)(x * y + 5) == 0) r |= 4096; o[i] = r; }
//: negated1 64 32 o=i16[64] a=least16[64] b=least16[64]
__kernel void negated1(__global short *o, __global const short *a, __global const short *b) { uint i = get_global_id(0); o[i] = sub_sat(a[i], b[i]); }
//: negated2 64 32 o=i32[64] a=least16[64] b=least16[64]
__kernel void negated2(__global int *o, __global const short *a, __global const short *b) { uint i = get_global_id(0); o[i] = (short)-a[i] > 0; }
//: negated3 64 32 o=i32[64] a=least16[64] b=least16[64]
__kernel void negated3(__global int *o, __global const short *a, __global const short *b) { uint i = get_global_id(0); o[i] = (short)-a[i] + b[i]; }
//: negated4 64 32 o=i64[64] a=least32[64] b=i32[64]
__kernel void negated4(__global long *o, __global const int *a, __global const int *b) { uint i = get_global_id(0); o[i] = (int)(0u - (uint)a[i]) > b[i] ? 5 : 7; }
//: negated5 64 32 o=i32[64] a=least32[64] b=i32[64]
__kernel void negated5(__global int *o, __global const int *a, __global const int *b) { uint i = get_global_id(0); o[i] = sub_sat(a[i], b[i]); }
//: negated6 64 32 o=i32[64] a=least8[64] b=least8[64]
__kernel void negated6(__global int *o, __global const char *a, __global const char *b) { uint i = get_global_id(0); o[i] = (char)-a[i] * (char)-b[i] + max((char)-a[i], b[i]); }
//: negated7 64 32 o=i32[64] a=least16[64] b=least16[64]
__kernel void negated7(__global int *o, __global const short *a, __global const short *b) { uint i = get_global_id(0); o[i] = max((short)-a[i], b[i]) * (short)-b[i]; }
//: negated8 64 32 o=f32[64] p=f32[64] a=least32[64] b=least16[64]
__kernel void negated8(__global float *o, __global float *p, __global const int *a, __global const short *b) { uint i = get_global_id(0); o[i] = (float)(int)(0 - (uint)a[i]); p[i] = (float)(short)-b[i]; }
//: negated9 64 32 o=i64[64] p=i32[64] a=least32[64] b=i32[64]
__kernel void negated9(__global long *o, __global int *p, __global const int *a, __global const int *b) { uint i = get_global_id(0); o[i] = (long)(int)(0 - (uint)a[i]) * b[i]; p[i] = max((int)(0u - (uint)a[i]), b[i]) >> 3; }
#ifdef POCL
// The absolute value of the least integer, which pocl 3.1 leaves undefined.
#define magnitude(x) ((x) < 0 ? 0u - (uint)(x) : (uint)(x))
#else
#define magnitude(x) abs(x)
#endif
//: absolutes16 64 32 o=i32[64] p=i32[64] a=least16[64] b=least32[64]
__kernel void absolutes16(__global int *o, __global int *p, __global const short *a, __global const int *b) { uint i = get_global_id(0); o[i] = abs(a[i]) * 3; p[i] = (int)magnitude(b[i]) > 5 ? 1 : (int)magnitude(b[i]) >> 4; }
//: widened 64 32 o=i32[64] p=i32[64] a=least16[64] b=least8[64]
__kernel void widened(__global int *o, __global int *p, __global const short *a, __global const char *b) { uint i = get_global_id(0); o[i] = (int)abs((int)a[i]) * 3; p[i] = (int)abs((int)b[i]) - (int)abs((int)a[i]); }
