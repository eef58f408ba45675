/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Floats of 32 and 16 bits, conversions, math. `ulp=` is the largest distance of a result; the default is equality. */
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL FP_CONTRACT OFF

//: fadd 1024 64 o=f32[1024] a=f32[1024] b=f32[1024]
__kernel void fadd(__global float *o, __global const float *a, __global const float *b) { uint i = get_global_id(0); o[i] = a[i] + b[i]; }
//: fmulsub 1024 64 o=f32[1024] a=f32[1024] b=f32[1024]
__kernel void fmulsub(__global float *o, __global const float *a, __global const float *b) { uint i = get_global_id(0); o[i] = (a[i] - b[i]) * a[i]; }
//: fmak 1024 64 o=f32[1024] a=f32[1024] b=f32[1024] c=f32[1024]
__kernel void fmak(__global float *o, __global const float *a, __global const float *b, __global const float *c) { uint i = get_global_id(0); o[i] = fma(a[i], b[i], c[i]); }
//: anybits 1024 64 o=f32[1024] p=f32[1024] q=i32[1024] a=bits32[1024] b=bits32[1024]
__kernel void anybits(__global float *o, __global float *p, __global int *q, __global const float *a, __global const float *b) { uint i = get_global_id(0); o[i] = a[i] * b[i]; p[i] = a[i] + b[i]; q[i] = (a[i] < b[i]) + 2 * (a[i] == b[i]) + 4 * isnan(a[i]) + 8 * isinf(b[i]) + 16 * (a[i] >= b[i]) + 32 * signbit(a[i]) + 64 * isnormal(b[i]); }
//: fdivk 1024 64 ulp=3 o=f32[1024] a=f32[1024] b=f32[1024]
__kernel void fdivk(__global float *o, __global const float *a, __global const float *b) { uint i = get_global_id(0); o[i] = a[i] / b[i]; }
//: fsqrt 1024 64 ulp=3 o=f32[1024] a=f32[1024]
__kernel void fsqrt(__global float *o, __global const float *a) { uint i = get_global_id(0); o[i] = sqrt(fabs(a[i])); }
//: exactdiv 2048 64 options=-cl-fp32-correctly-rounded-divide-sqrt o=f32[2048] p=f32[2048] a=wide32[2048] b=wide32[2048]
__kernel void exactdiv(__global float *o, __global float *p, __global const float *a, __global const float *b) { uint i = get_global_id(0); o[i] = a[i] / b[i]; p[i] = sqrt(fabs(a[i])); }
//: rounds 1024 64 o=f32[1024] p=f32[1024] q=f32[1024] r=f32[1024] a=f32[1024]
__kernel void rounds(__global float *o, __global float *p, __global float *q, __global float *r, __global const float *a) { uint i = get_global_id(0); o[i] = floor(a[i]); p[i] = ceil(a[i]); q[i] = trunc(a[i]); r[i] = rint(a[i]); }
//: roundaway 1024 64 o=f32[1024] a=f32[1024]
__kernel void roundaway(__global float *o, __global const float *a) { uint i = get_global_id(0); o[i] = round(a[i]); }
//: fmin_max 1024 64 o=f32[1024] p=f32[1024] a=f32[1024] b=f32[1024]
__kernel void fmin_max(__global float *o, __global float *p, __global const float *a, __global const float *b) { uint i = get_global_id(0); o[i] = fmin(a[i], b[i]) - fmax(a[i], 1.5f); p[i] = clamp(a[i], -2.0f, 3.0f) + fabs(b[i]); }
//: fparts 1024 64 o=f32[1024] p=i32[1024] q=f32[1024] a=f32[1024]
__kernel void fparts(__global float *o, __global int *p, __global float *q, __global const float *a) { uint i = get_global_id(0); int e; o[i] = frexp(a[i], &e); p[i] = e; q[i] = ldexp(a[i], (int)(i & 15) - 8) + copysign(1.0f, a[i]); }
//: fmodk 1024 64 o=f32[1024] a=f32[1024] b=f32[1024]
__kernel void fmodk(__global float *o, __global const float *a, __global const float *b) { uint i = get_global_id(0); o[i] = fmod(a[i], b[i]); }
//: sincosk 1024 64 ulp=8 abs=1e-6 o=f32[1024] p=f32[1024] a=f32[1024]
__kernel void sincosk(__global float *o, __global float *p, __global const float *a) { uint i = get_global_id(0); o[i] = sin(a[i]); p[i] = cos(a[i]); }
//: explog 1024 64 ulp=8 o=f32[1024] p=f32[1024] a=f32[1024]
__kernel void explog(__global float *o, __global float *p, __global const float *a) { uint i = get_global_id(0); o[i] = exp(a[i] * 0.25f); p[i] = log(fabs(a[i]) + 1.5f); }
//: exp2log2 1024 64 ulp=8 o=f32[1024] p=f32[1024] q=f32[1024] a=f32[1024]
__kernel void exp2log2(__global float *o, __global float *p, __global float *q, __global const float *a) { uint i = get_global_id(0); o[i] = exp2(a[i] * 0.5f); p[i] = log2(fabs(a[i]) + 2.5f); q[i] = log10(fabs(a[i]) + 3.5f); }
//: powk 1024 64 ulp=20 o=f32[1024] a=f32[1024]
__kernel void powk(__global float *o, __global const float *a) { uint i = get_global_id(0); o[i] = pow(fabs(a[i]), 1.5f); }
//: tank 1024 64 ulp=10 abs=1e-5 o=f32[1024] p=f32[1024] a=f32[1024]
__kernel void tank(__global float *o, __global float *p, __global const float *a) { uint i = get_global_id(0); o[i] = tan(a[i] * 0.01f); p[i] = atan(a[i]); }
//: hypotk 1024 64 ulp=8 o=f32[1024] p=f32[1024] a=f32[1024] b=f32[1024]
__kernel void hypotk(__global float *o, __global float *p, __global const float *a, __global const float *b) { uint i = get_global_id(0); o[i] = hypot(a[i], b[i]); p[i] = cbrt(a[i]); }
//: tanhk 1024 64 ulp=10 o=f32[1024] p=f32[1024] a=f32[1024]
__kernel void tanhk(__global float *o, __global float *p, __global const float *a) { uint i = get_global_id(0); o[i] = tanh(a[i] * 0.1f); p[i] = asin(clamp(a[i] * 0.01f, -1.0f, 1.0f)); }
//: natives 1024 64 ulp=64 abs=2e-4 o=f32[1024] p=f32[1024] a=f32[1024]
__kernel void natives(__global float *o, __global float *p, __global const float *a) { uint i = get_global_id(0); float x = fabs(a[i]) + 0.5f; o[i] = native_sin(x) + native_exp2(x * 0.1f) * native_log2(x); p[i] = native_rsqrt(x) + native_recip(x) + native_sqrt(x); }
//: dots 256 32 ulp=4 abs=1e-3 o=f32[256] p=f32[256] a=f32[1024] b=f32[1024]
__kernel void dots(__global float *o, __global float *p, __global const float4 *a, __global const float4 *b) { uint i = get_global_id(0); o[i] = dot(a[i], b[i]); p[i] = length(a[i].xyz) + distance(a[i], b[i]); }
//: toint 1024 64 o=i32[1024] p=u32[1024] q=i16[1024] r=u8[1024] a=f32[1024]
__kernel void toint(__global int *o, __global uint *p, __global short *q, __global uchar *r, __global const float *a) { uint i = get_global_id(0); o[i] = (int)a[i]; p[i] = (uint)fabs(a[i]); q[i] = (short)a[i]; r[i] = (uchar)fabs(a[i]); }
//: tosat 1024 64 o=i32[1024] p=u32[1024] q=i16[1024] r=u8[1024] s=i8[1024] a=wide32[1024]
__kernel void tosat(__global int *o, __global uint *p, __global short *q, __global uchar *r, __global char *s, __global const float *a) { uint i = get_global_id(0); o[i] = convert_int_sat(a[i]); p[i] = convert_uint_sat(a[i]); q[i] = convert_short_sat(a[i]); r[i] = convert_uchar_sat(a[i]); s[i] = convert_char_sat(a[i]); }
//: torounded 1024 64 o=i32[1024] p=i32[1024] q=i32[1024] r=i32[1024] a=f32[1024]
__kernel void torounded(__global int *o, __global int *p, __global int *q, __global int *r, __global const float *a) { uint i = get_global_id(0); o[i] = convert_int_rte(a[i]); p[i] = convert_int_rtp(a[i]); q[i] = convert_int_rtn(a[i]); r[i] = convert_int_rtz(a[i]); }
//: fromint 1024 64 o=f32[1024] p=f32[1024] q=f32[1024] r=f32[1024] a=i32[1024]
__kernel void fromint(__global float *o, __global float *p, __global float *q, __global float *r, __global const int *a) { uint i = get_global_id(0); o[i] = (float)a[i]; p[i] = (float)(uint)a[i]; q[i] = convert_float_rtz(a[i]); r[i] = convert_float_rtp(a[i]) - convert_float_rtn((uint)a[i]); }
//: fromlong 512 64 o=f32[512] p=f32[512] q=i64[512] a=i64[512] b=f32[512]
__kernel void fromlong(__global float *o, __global float *p, __global long *q, __global const long *a, __global const float *b) { uint i = get_global_id(0); o[i] = (float)a[i]; p[i] = (float)(ulong)a[i]; q[i] = convert_long(b[i] * 1e6f); }
//: halves 1024 64 o=f32[1024] p=u16[1024] a=f16[1024] b=f32[1024]
__kernel void halves(__global float *o, __global ushort *p, __global const half *a, __global const float *b) { uint i = get_global_id(0); o[i] = vload_half(i, a) * 2.0f; vstore_half(b[i], i, (__global half *)p); }
//: halfrounds 1024 64 o=u16[1024] p=u16[1024] q=u16[1024] a=wide32[1024]
__kernel void halfrounds(__global ushort *o, __global ushort *p, __global ushort *q, __global const float *a) { uint i = get_global_id(0); vstore_half_rtz(a[i], i, (__global half *)o); vstore_half_rtp(a[i], i, (__global half *)p); vstore_half_rtn(a[i], i, (__global half *)q); }
//: poly 1024 64 ulp=4 abs=1e-2 o=f32[1024] a=f32[1024]
__kernel void poly(__global float *o, __global const float *a) { uint i = get_global_id(0); float x = a[i], s = 0; for (int k = 0; k < 12; k++) s = fma(s, x * 0.01f, (float)(k + 1)); o[i] = s; }
//: smooth 1024 64 ulp=8 abs=1e-5 o=f32[1024] p=f32[1024] a=f32[1024]
__kernel void smooth(__global float *o, __global float *p, __global const float *a) { uint i = get_global_id(0); o[i] = smoothstep(-10.0f, 10.0f, a[i]) + step(0.0f, a[i]) + sign(a[i]); p[i] = mix(a[i], 3.0f, 0.25f) + degrees(a[i]) * 1e-3f; }
