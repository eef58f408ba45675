/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Kernels of other shapes than those of `applications.cl`, for `shapes.py`: trees, scans, local histograms, filters, narrow loads
   and stores, halves, divisions, dispatch by a byte code, sub-groups. Before each are its range and its arguments, as in
   `tests/kernels`. */
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_subgroup_shuffle : enable

//: tree 4096 256 o=i32[16] a=i32[4096]
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void tree(__global int *o, __global const int *a) {
    __local int t[256];
    int l = get_local_id(0);
    t[l] = a[get_global_id(0)];
    for (int s = 128; s > 0; s >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < s) t[l] += t[l + s];
    }
    if (l == 0) o[get_group_id(0)] = t[0];
}

//: blelloch 2048 128 o=u32[4096] a=u32[4096]
__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void blelloch(__global uint *o, __global const uint *a) {
    __local uint t[288];
    uint l = get_local_id(0), first = get_group_id(0) * 256;
#define AT(i) ((i) + ((i) >> 4))
    t[AT(l)] = a[first + l];
    t[AT(l + 128)] = a[first + l + 128];
    uint step = 1;
    for (uint d = 128; d > 0; d >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < d) t[AT(step * (2 * l + 2) - 1)] += t[AT(step * (2 * l + 1) - 1)];
        step *= 2;
    }
    if (l == 0) t[AT(255)] = 0;
    for (uint d = 1; d < 256; d *= 2) {
        step >>= 1;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < d) {
            uint x = AT(step * (2 * l + 1) - 1), y = AT(step * (2 * l + 2) - 1), v = t[x];
            t[x] = t[y];
            t[y] += v;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    o[first + l] = t[AT(l)];
    o[first + l + 128] = t[AT(l + 128)];
}

//: bins 4096 256 h=zero32[256] a=u8[65536]
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void bins(__global uint *h, __global const uchar4 *a) {
    __local uint t[256];
    int l = get_local_id(0);
    t[l] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < 4; k++) {
        uchar4 v = a[get_global_id(0) + k * 4096];
        atomic_inc(&t[v.x]); atomic_inc(&t[v.y]); atomic_inc(&t[v.z]); atomic_inc(&t[v.w]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(&h[l], t[l]);
}

//: sobel 64,64 16,16 o=u8[4096] a=u8[4356]
__kernel void sobel(__global uchar *o, __global const uchar *a) {
    int x = get_global_id(0), y = get_global_id(1), p = 66;
    __global const uchar *r = a + y * p + x;
    int gx = r[2] - r[0] + 2 * (r[p + 2] - r[p]) + r[2 * p + 2] - r[2 * p];
    int gy = r[2 * p] - r[0] + 2 * (r[2 * p + 1] - r[1]) + r[2 * p + 2] - r[2];
    o[y * 64 + x] = convert_uchar_sat(native_sqrt((float)(gx * gx + gy * gy)));
}

//: gray 4096 64 o=u8[4096] a=u8[16384]
__kernel void gray(__global uchar *o, __global const uchar4 *a) {
    int i = get_global_id(0);
    uchar4 v = a[i];
    o[i] = (v.x * 77 + v.y * 150 + v.z * 29) >> 8;
}

//: blend 4096 64 o=u8[16384] a=u8[16384] b=u8[16384]
__kernel void blend(__global uchar4 *o, __global const uchar4 *a, __global const uchar4 *b) {
    int i = get_global_id(0);
    ushort4 s = convert_ushort4(a[i]), d = convert_ushort4(b[i]);
    o[i] = convert_uchar4_sat((s * s.w + d * (ushort4)(255 - s.w)) / (ushort4)255);
}

//: mix16 4096 64 o=i16[4096] a=i16[4096] b=i16[4096]
__kernel void mix16(__global short *o, __global const short *a, __global const short *b) {
    int i = get_global_id(0);
    short v = 0;
    for (int k = 0; k < 8; k++) v = add_sat((short)(v >> 1), (short)(mul_hi(a[(i + k) & 4095], b[i]) + (a[i] ^ (short)k)));
    o[i] = v;
}

//: bytes 4096 64 o=u8[4096] a=u8[4096] b=u8[4096]
__kernel void bytes(__global uchar *o, __global const uchar *a, __global const uchar *b) {
    int i = get_global_id(0);
    uchar v = 0;
    for (int k = 0; k < 8; k++) v = hadd(v, abs_diff(a[(i + k) & 4095], b[i])) + (uchar)(rotate(a[i], (uchar)k) ^ max(v, b[i]));
    o[i] = v;
}

//: halfmul 256,16 16,16 c=f16[4096] a=f16[4096] b=f16[4096]
__kernel void halfmul(__global half *c, __global const half *a, __global const half *b) {
    int x = get_global_id(0), y = get_global_id(1);
    half s = 0;
    for (int k = 0; k < 16; k++) s = fma(a[y * 16 + k], b[k * 256 + x], s);
    c[y * 256 + x] = max(s, (half)0);
}

//: halfvec 2048 64 o=f16[4096] a=f16[4096] b=f16[4096]
__kernel void halfvec(__global half2 *o, __global const half2 *a, __global const half2 *b) {
    int i = get_global_id(0);
    half2 v = a[i], w = b[i];
    for (int k = 0; k < 8; k++) v = v * w + (half2)(0.5h) - native_recip(fabs(v) + (half2)1.0h) * exp2(-fabs(w));
    o[i] = v;
}

//: softmax 1024 16 o=f32[16384] a=f32[16384]
__kernel void softmax(__global float *o, __global const float *a) {
    int i = get_global_id(0);
    float m = -INFINITY, s = 0;
    for (int k = 0; k < 16; k++) m = fmax(m, a[k * 1024 + i]);
    for (int k = 0; k < 16; k++) s += exp(a[k * 1024 + i] - m);
    for (int k = 0; k < 16; k++) o[k * 1024 + i] = exp(a[k * 1024 + i] - m) / s;
}

//: divide 1024 64 o=u32[1024] a=u32[1024] b=u32[1024]
__kernel void divide(__global uint *o, __global const uint *a, __global const uint *b) {
    int i = get_global_id(0);
    uint x = a[i], y = b[i] >> 16 | 1, s = 0;
    while (y) { s += x / y; uint t = x % y; x = y; y = t; }
    o[i] = s;
}

//: signeddivide 1024 64 o=i32[1024] a=i32[1024] b=i32[1024]
__kernel void signeddivide(__global int *o, __global const int *a, __global const int *b) {
    int i = get_global_id(0), s = 0;
    for (int k = 1; k < 9; k++) s += a[i] / (b[i] >> k | 1) + a[i] % (k * 7);
    o[i] = s;
}

//: longs 1024 64 o=u64[1024] a=u64[1024] b=u64[1024]
__kernel void longs(__global ulong *o, __global const ulong *a, __global const ulong *b) {
    int i = get_global_id(0);
    ulong x = a[i], y = b[i] | 1;
    for (int k = 0; k < 8; k++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; y = y * 6364136223846793005ul + x; x += mul_hi(x, y); if (x < y) x = ~x; }
    o[i] = x ^ y;
}

//: longdivide 256 64 o=u64[256] a=u64[256] b=u64[256]
__kernel void longdivide(__global ulong *o, __global const ulong *a, __global const ulong *b) {
    int i = get_global_id(0);
    o[i] = a[i] / (b[i] >> 20 | 1) + a[i] % 1000003ul;
}

//: vm 1024 32 o=u32[1024] p=u8[512]
__kernel void vm(__global uint *o, __global const uchar *p) {
    uint i = get_global_id(0), x = i, y = ~i, z = 1;
    for (int pc = 0; pc < 64; pc++) {
        uchar op = p[pc + (i & 3) * 64];
        switch (op & 7) {
        case 0: x += y; break;
        case 1: y ^= x << 3; break;
        case 2: z = z * x + op; break;
        case 3: x = rotate(x, z); break;
        case 4: if (y & 1) pc += op >> 6; break;
        case 5: y = popcount(x) + clz(z); break;
        case 6: z = min(x, y); break;
        default: x = y - z;
        }
    }
    o[i] = x ^ y ^ z;
}

//: sub8 1024 64 o=f32[1024] a=f32[1024]
__kernel __attribute__((intel_reqd_sub_group_size(8))) void sub8(__global float *o, __global const float *a) {
    int i = get_global_id(0);
    float v = a[i];
    for (int k = 0; k < 8; k++) v = mad(v, 0.5f, intel_sub_group_shuffle_xor(v, 1 << k % 3)) - sub_group_reduce_max(v) * 0.25f;
    o[i] = v;
}

//: sub32 1024 64 o=i32[1024] a=i32[1024]
__kernel __attribute__((intel_reqd_sub_group_size(32))) void sub32(__global int *o, __global const int *a) {
    int i = get_global_id(0), v = a[i], l = get_sub_group_local_id();
    for (int k = 0; k < 4; k++) v += intel_sub_group_shuffle(v, (l * 5 + k) & 31) ^ sub_group_scan_inclusive_add(v) ^ intel_sub_group_shuffle_down(v, k, 3u);
    o[i] = v;
}

//: lane8 1024 64 o=f32[1024] a=f32[1024]
__kernel __attribute__((intel_reqd_sub_group_size(8))) void lane8(__global float *o, __global const float *a) {
    int i = get_global_id(0);
    float x = a[i], y = 0;
    for (int k = 0; k < 32; k++) { y = mad(x, y, 0.25f); x = x * 0.5f - y; if (y > 1.0f) y -= x; }
    o[i] = x + y;
}

//: transposed 64,64 16,16 o=f32[4096] a=f32[4096]
__kernel void transposed(__global float *o, __global const float *a) {
    __local float t[16][17];
    int x = get_local_id(0), y = get_local_id(1);
    t[y][x] = a[get_global_id(1) * 64 + get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    o[(get_group_id(0) * 16 + y) * 64 + get_group_id(1) * 16 + x] = t[x][y];
}

//: bilateral 32,32 16,16 s=image:32x32:rgba8unorm d=image:32x32:rgba8unorm t=sampler:clamp_edge,linear,pixels
__kernel void bilateral(__read_only image2d_t s, __write_only image2d_t d, sampler_t t) {
    int2 p = (int2)(get_global_id(0), get_global_id(1));
    float4 c = read_imagef(s, t, convert_float2(p)), sum = 0;
    float w = 0;
    for (int j = -2; j <= 2; j++)
        for (int i = -2; i <= 2; i++) {
            float4 v = read_imagef(s, t, convert_float2(p) + (float2)(i, j) * 0.7f);
            float4 e = v - c;
            float k = native_exp(-(i * i + j * j) * 0.1f - dot(e, e) * 4);
            sum += v * k;
            w += k;
        }
    write_imagef(d, p, sum / w);
}

//: circle 1024 64 o=f32[1024] a=f32[1024]
__kernel void circle(__global float *o, __global const float *a) {
    int i = get_global_id(0);
    float c, s = sincos(a[i], &c);
    o[i] = atan2(s, c) + pow(fabs(a[i]), 1.7f) + log(fabs(s) + 1) + tanh(c);
}

//: prng 1024 64 o=f32[1024]
__kernel void prng(__global float *o) {
    uint i = get_global_id(0), c0 = i, c1 = 0, c2 = 7, c3 = 9, k0 = 0xdeadbeef, k1 = 0xcafe;
    for (int r = 0; r < 10; r++) {
        uint h0 = mul_hi(0xD2511F53u, c0), l0 = 0xD2511F53u * c0, h1 = mul_hi(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;
        c0 = h1 ^ c1 ^ k0; c1 = l1; c2 = h0 ^ c3 ^ k1; c3 = l0;
        k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
    }
    o[i] = convert_float(c0 ^ c2) * 2.3283064e-10f;
}

//: insertion 512 32 o=u16[8192] a=u16[8192]
__kernel void insertion(__global ushort *o, __global const ushort *a) {
    int i = get_global_id(0);
    ushort s[16];
    for (int k = 0; k < 16; k++) s[k] = a[i * 16 + k];
    for (int k = 1; k < 16; k++) {
        ushort v = s[k];
        int j = k;
        while (j > 0 && s[j - 1] > v) { s[j] = s[j - 1]; j--; }
        s[j] = v;
    }
    for (int k = 0; k < 16; k++) o[i * 16 + k] = s[k];
}

//: dot4 1024 64 o=i32[1024] a=i8[4096] b=i8[4096]
__kernel void dot4(__global int *o, __global const char4 *a, __global const char4 *b) {
    int i = get_global_id(0), s = 0;
    for (int k = 0; k < 8; k++) { char4 x = a[(i + k) & 1023], y = b[i]; s += x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w; }
    o[i] = s;
}

//: products 256 64 o=i64[256] a=i32[256]
__kernel void products(__global long *o, __global const int *a) {
    int i = get_global_id(0);
    long s = 0;
    for (int k = 0; k < 16; k++) { s = s * 31 + (long)a[(i + k) & 255] * a[i]; s ^= s >> 29; }
    o[i] = s;
}
