/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Arithmetic of half precision. pocl has only its loads and stores: there an operation is one in double precision, rounded. */
#pragma OPENCL FP_CONTRACT OFF
#ifdef POCL
typedef float h;
float rounded(double x) { ushort u; vstore_half(x, 0, (half *)&u); return vload_half(0, (half *)&u); }
#define ADD(a, b) rounded((double)(a) + (double)(b))
#define SUB(a, b) rounded((double)(a) - (double)(b))
#define MUL(a, b) rounded((double)(a) * (double)(b))
#define FMA(a, b, c) rounded((double)(a) * (double)(b) + (double)(c))
#define LOAD(p, i) vload_half(i, (__global const half *)(p))
#define STORE(v, i, p) vstore_half((float)(v), i, (__global half *)(p))
#define FROM_INT(x) rounded((double)(x))
#define FROM_FLOAT(x) rounded((double)(x))
#define FROM_FLOAT_MODE(mode, x) ({ ushort u; vstore_half_##mode(x, 0, (half *)&u); vload_half(0, (half *)&u); })
#define BITS(x) ({ ushort u; vstore_half(x, 0, (half *)&u); u; })
#define LITERAL(x) ((float)(x))
#else
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
typedef half h;
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define FMA(a, b, c) fma(a, b, c)
#define LOAD(p, i) ((__global const half *)(p))[i]
#define STORE(v, i, p) ((__global half *)(p))[i] = (v)
#define FROM_INT(x) convert_half(x)
#define FROM_FLOAT(x) ((half)(x))
#define FROM_FLOAT_MODE(mode, x) convert_half_##mode(x)
#define BITS(x) as_ushort(x)
#define LITERAL(x) ((half)(x))
#endif

//: sums 256 64 o=u16[256] p=u16[256] a=half16[256] b=half16[256]
__kernel void sums(__global ushort *o, __global ushort *p, __global const ushort *a, __global const ushort *b) { uint i = get_global_id(0); h x = LOAD(a, i), y = LOAD(b, i); STORE(ADD(x, y), i, o); STORE(SUB(MUL(x, y), x), i, p); }
//: fused 256 64 o=u16[256] a=half16[256] b=half16[256] c=half16[256]
__kernel void fused(__global ushort *o, __global const ushort *a, __global const ushort *b, __global const ushort *c) { uint i = get_global_id(0); STORE(FMA(LOAD(a, i), LOAD(b, i), LOAD(c, i)), i, o); }
//: compared 256 64 o=i32[256] p=u16[256] a=half16[256] b=half16[256]
__kernel void compared(__global int *o, __global ushort *p, __global const ushort *a, __global const ushort *b) { uint i = get_global_id(0); h x = LOAD(a, i), y = LOAD(b, i); o[i] = (x < y) + 2 * (x == y) + 4 * (x >= y) + 8 * (x != x) + 16 * (fabs(x) > LITERAL(1.5)) + 32 * (x > LITERAL(0)); STORE(x > y ? fabs(y) : -x, i, p); }
//: extremes 256 64 o=u16[256] p=u16[256] a=half16[256] b=half16[256]
__kernel void extremes(__global ushort *o, __global ushort *p, __global const ushort *a, __global const ushort *b) { uint i = get_global_id(0); h x = LOAD(a, i), y = LOAD(b, i); STORE(fmin(x, y), i, o); STORE(fmax(clamp(x, LITERAL(-2), LITERAL(3)), y), i, p); }
//: roundings 256 64 o=u16[256] p=u16[256] q=u16[256] r=u16[256] a=half16[256]
__kernel void roundings(__global ushort *o, __global ushort *p, __global ushort *q, __global ushort *r, __global const ushort *a) { uint i = get_global_id(0); h x = LOAD(a, i); STORE(floor(x), i, o); STORE(ceil(x), i, p); STORE(trunc(x), i, q); STORE(rint(x), i, r); }
//: tointegers 256 64 o=i32[256] p=i16[256] q=u8[256] r=i64[256] a=half16[256]
__kernel void tointegers(__global int *o, __global short *p, __global uchar *q, __global long *r, __global const ushort *a) { uint i = get_global_id(0); h x = LOAD(a, i); o[i] = convert_int_sat(x) ^ convert_int_rte(clamp(x, LITERAL(-1000), LITERAL(1000))) << 8; p[i] = convert_short_sat(x); q[i] = convert_uchar_sat_rte(x); r[i] = convert_long(x) * 3; }
//: frominteger 256 64 o=u16[256] p=u16[256] q=u16[256] r=u16[256] a=i32[256] b=i16[256]
__kernel void frominteger(__global ushort *o, __global ushort *p, __global ushort *q, __global ushort *r, __global const int *a, __global const short *b) { uint i = get_global_id(0); STORE(FROM_INT(a[i] >> 15), i, o); STORE(FROM_INT(b[i]), i, p); STORE(FROM_INT((uchar)b[i]), i, q); STORE(FROM_INT((ushort)b[i] >> 1), i, r); }
//: fromfloat 256 64 o=u16[256] p=u16[256] q=u16[256] r=u16[256] a=wide32[256]
__kernel void fromfloat(__global ushort *o, __global ushort *p, __global ushort *q, __global ushort *r, __global const float *a) { uint i = get_global_id(0); float x = a[i]; STORE(FROM_FLOAT(x), i, o); STORE(FROM_FLOAT_MODE(rtz, x), i, p); STORE(FROM_FLOAT_MODE(rtp, x), i, q); STORE(FROM_FLOAT_MODE(rtn, x), i, r); }
//: mixed 256 64 o=f32[256] p=u16[256] a=half16[256] b=f32[256]
__kernel void mixed(__global float *o, __global ushort *p, __global const ushort *a, __global const float *b) { uint i = get_global_id(0); h x = LOAD(a, i); o[i] = (float)x * b[i] + (float)x; STORE(FROM_FLOAT((float)x + b[i]), i, p); }
//: iterated 256 64 o=u16[256] a=half16[256] b=half16[256]
__kernel void iterated(__global ushort *o, __global const ushort *a, __global const ushort *b) { uint i = get_global_id(0); h x = LOAD(a, i), y = LOAD(b, i), s = LITERAL(0); for (int k = 0; k < 10; k++) { if (x > s) s = ADD(s, MUL(x, LITERAL(0.125))); else { s = SUB(s, LITERAL(0.5)); x = MUL(x, LITERAL(0.75)); } if (k & 1) y = ADD(y, s); } STORE(ADD(s, y), i, o); }
//: bitsof 256 64 o=u16[256] p=i32[256] a=half16[256]
__kernel void bitsof(__global ushort *o, __global int *p, __global const ushort *a) { uint i = get_global_id(0); h x = LOAD(a, i); o[i] = BITS(-x) ^ BITS(fabs(x)) >> 1; p[i] = (isnan(x) ? 1 : 0) + (isinf(x) ? 2 : 0) + (signbit(x) ? 4 : 0) + (isfinite(x) ? 8 : 0); }
//: locals 128 64 o=u16[128] a=half16[128]
__kernel void locals(__global ushort *o, __global const ushort *a) { __local h t[64]; uint i = get_global_id(0), l = get_local_id(0); t[l] = LOAD(a, i); barrier(CLK_LOCAL_MEM_FENCE); STORE(ADD(t[63 - l], t[l ^ 1]), i, o); }
