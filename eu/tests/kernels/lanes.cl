/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Sub-groups of 8, 16 and 32 lanes. pocl has none: there the functions are loops over local memory. Groups have 64 items. */
#pragma OPENCL EXTENSION cl_khr_subgroup_shuffle : enable
#pragma OPENCL EXTENSION cl_khr_subgroup_extended_types : enable

#ifdef POCL
#define SUB_GROUP(n) 
#define BEGIN(n) const uint width = n; __local long storage[64];
#define FIRST (get_local_id(0) & ~(width - 1))
#define get_sub_group_local_id() ((uint)get_local_id(0) & (width - 1))
#define get_sub_group_id() ((uint)get_local_id(0) / width)
#define get_sub_group_size() width
#define get_num_sub_groups() (64 / width)
#define LANES(T, letter) \
    T all_##letter(__local void *s, T v, uint k) { __local T *t = s; uint l = get_local_id(0); barrier(CLK_LOCAL_MEM_FENCE); t[l] = v; barrier(CLK_LOCAL_MEM_FENCE); return t[k & 63]; } \
    T add_##letter(__local void *s, T v, uint from, uint to) { __local T *t = s; uint l = get_local_id(0); barrier(CLK_LOCAL_MEM_FENCE); t[l] = v; barrier(CLK_LOCAL_MEM_FENCE); T r = 0; for (uint k = from; k < to; k++) r += t[k]; return r; } \
    T min_##letter(__local void *s, T v, uint from, uint to, T r) { __local T *t = s; uint l = get_local_id(0); barrier(CLK_LOCAL_MEM_FENCE); t[l] = v; barrier(CLK_LOCAL_MEM_FENCE); for (uint k = from; k < to; k++) r = t[k] < r ? t[k] : r; return r; } \
    T max_##letter(__local void *s, T v, uint from, uint to, T r) { __local T *t = s; uint l = get_local_id(0); barrier(CLK_LOCAL_MEM_FENCE); t[l] = v; barrier(CLK_LOCAL_MEM_FENCE); for (uint k = from; k < to; k++) r = t[k] > r ? t[k] : r; return r; }
LANES(int, i) LANES(uint, u) LANES(long, l) LANES(ulong, m) LANES(float, f) LANES(short, s) LANES(char, c) LANES(uchar, b)
#define LANE get_local_id(0)
#define shuffle_(t, v, k) all_##t(storage, v, FIRST + ((k) & (width - 1)))
#define shuffle_xor_(t, v, k) all_##t(storage, v, FIRST + ((LANE ^ (k)) & (width - 1)))
#define broadcast_(t, v, k) all_##t(storage, v, FIRST + (k))
#define reduce_add_(t, v) add_##t(storage, v, FIRST, FIRST + width)
#define reduce_min_(t, v) min_##t(storage, v, FIRST, FIRST + width, v)
#define reduce_max_(t, v) max_##t(storage, v, FIRST, FIRST + width, v)
#define scan_add_(t, v) add_##t(storage, v, FIRST, LANE + 1)
#define scan_min_(t, v) min_##t(storage, v, FIRST, LANE + 1, v)
#define scan_max_(t, v) max_##t(storage, v, FIRST, LANE + 1, v)
#define before_add_(t, v) add_##t(storage, v, FIRST, LANE)
#define before_min_(t, v, least) min_##t(storage, v, FIRST, LANE, least)
#define before_max_(t, v, least) max_##t(storage, v, FIRST, LANE, least)
#define any_(p) (max_i(storage, (p) ? 1 : 0, FIRST, FIRST + width, 0))
#define all_(p) (min_i(storage, (p) ? 1 : 0, FIRST, FIRST + width, 1))
#define down_(t, v, w, k) all_##t##2(storage, v, w, get_sub_group_local_id() + (k), width)
#define up_(t, v, w, k) all_##t##2(storage, v, w, get_sub_group_local_id() + width - (k), width)
int all_i2(__local void *s, int v, int w, uint k, uint width) { __local int *t = s; uint l = get_local_id(0), first = l & ~(width - 1); barrier(CLK_LOCAL_MEM_FENCE); t[l] = v; t[64 + l] = w; barrier(CLK_LOCAL_MEM_FENCE); return k < width ? t[first + k] : t[64 + first + k - width]; }
#else
#define SUB_GROUP(n) __attribute__((intel_reqd_sub_group_size(n)))
#define BEGIN(n)
#define shuffle_(t, v, k) intel_sub_group_shuffle(v, k)
#define shuffle_xor_(t, v, k) intel_sub_group_shuffle_xor(v, k)
#define broadcast_(t, v, k) sub_group_broadcast(v, k)
#define reduce_add_(t, v) sub_group_reduce_add(v)
#define reduce_min_(t, v) sub_group_reduce_min(v)
#define reduce_max_(t, v) sub_group_reduce_max(v)
#define scan_add_(t, v) sub_group_scan_inclusive_add(v)
#define scan_min_(t, v) sub_group_scan_inclusive_min(v)
#define scan_max_(t, v) sub_group_scan_inclusive_max(v)
#define before_add_(t, v) sub_group_scan_exclusive_add(v)
#define before_min_(t, v, least) sub_group_scan_exclusive_min(v)
#define before_max_(t, v, least) sub_group_scan_exclusive_max(v)
#define any_(p) (sub_group_any(p) ? 1 : 0)
#define all_(p) (sub_group_all(p) ? 1 : 0)
#define down_(t, v, w, k) intel_sub_group_shuffle_down(v, w, k)
#define up_(t, v, w, k) intel_sub_group_shuffle_up(v, w, k)
#endif

#define KERNELS(n) \
__kernel SUB_GROUP(n) void numbers##n(__global uint *o) { BEGIN(n) uint i = get_global_id(0); o[i] = get_sub_group_local_id() | get_sub_group_id() << 8 | get_sub_group_size() << 16 | get_num_sub_groups() << 24; } \
__kernel SUB_GROUP(n) void shuffles##n(__global int *o, __global long *p, __global float *q, __global const int *a, __global const long *b, __global const float *c) { BEGIN(n) uint i = get_global_id(0), l = get_sub_group_local_id(); o[i] = shuffle_(i, a[i], (l * 5 + 3) & (n - 1)) ^ shuffle_xor_(i, a[i], 3) ^ shuffle_(i, a[i], (uint)a[i ^ 1] & (n - 1)) ^ broadcast_(i, a[i], 6); p[i] = shuffle_(l, b[i], (l * 3 + 1) & (n - 1)) ^ shuffle_xor_(l, b[i], 7) ^ broadcast_(l, b[i], 2); q[i] = shuffle_(f, c[i], n - 1 - l) - shuffle_xor_(f, c[i], 5); } \
__kernel SUB_GROUP(n) void narrows##n(__global short *o, __global char *p, __global uchar *q, __global const short *a, __global const char *b) { BEGIN(n) uint i = get_global_id(0), l = get_sub_group_local_id(); o[i] = shuffle_(s, a[i], (l * 3 + 1) & (n - 1)) ^ reduce_add_(s, a[i]) ^ scan_max_(s, a[i]); p[i] = reduce_min_(c, b[i]) ^ scan_add_(c, b[i]) ^ broadcast_(c, b[i], 3); q[i] = reduce_max_(b, (uchar)b[i]) + before_add_(b, (uchar)a[i]) + shuffle_xor_(b, (uchar)b[i], 2); } \
__kernel SUB_GROUP(n) void reduces##n(__global int *o, __global uint *p, __global long *q, __global ulong *r, __global float *s, __global const int *a, __global const long *b, __global const float *c) { BEGIN(n) uint i = get_global_id(0); o[i] = reduce_add_(i, a[i]) ^ reduce_min_(i, a[i]) ^ reduce_max_(i, a[i]); p[i] = reduce_min_(u, (uint)a[i]) ^ reduce_max_(u, (uint)a[i]); q[i] = reduce_add_(l, b[i]) ^ reduce_min_(l, b[i]) ^ reduce_max_(l, b[i]); r[i] = reduce_min_(m, (ulong)b[i]) ^ reduce_max_(m, (ulong)b[i]); s[i] = reduce_add_(f, c[i]) + reduce_min_(f, c[i]) * 2 - reduce_max_(f, c[i]); } \
__kernel SUB_GROUP(n) void scans##n(__global int *o, __global uint *p, __global long *q, __global ulong *r, __global float *s, __global const int *a, __global const long *b, __global const float *c) { BEGIN(n) uint i = get_global_id(0); o[i] = scan_add_(i, a[i]) ^ scan_min_(i, a[i]) ^ before_max_(i, a[i], (int)0x80000000) ^ before_add_(i, a[i]); p[i] = scan_min_(u, (uint)a[i]) ^ scan_max_(u, (uint)a[i]) ^ before_min_(u, (uint)a[i], 0xffffffffu); q[i] = scan_add_(l, b[i]) ^ before_min_(l, b[i], 0x7fffffffffffffffL) ^ scan_max_(l, b[i]); r[i] = before_max_(m, (ulong)b[i], 0ul) ^ scan_min_(m, (ulong)b[i]); s[i] = scan_add_(f, c[i]) + before_add_(f, c[i]) * 2 - scan_max_(f, c[i]); } \
__kernel SUB_GROUP(n) void votes##n(__global int *o, __global const int *a) { BEGIN(n) uint i = get_global_id(0); int v = a[i]; o[i] = any_(v > 2000000000) + 2 * all_(v > -2100000000) + 4 * any_((v & 0xff) == 5) + 8 * all_(v != 7); } \
__kernel SUB_GROUP(n) void moves##n(__global int *o, __global const int *a) { BEGIN(n) uint i = get_global_id(0); int v = a[i], w = a[i ^ 1]; o[i] = down_(i, v, w, 3) * 3 ^ up_(i, v, w, 2) ^ down_(i, w, v, 1) ^ up_(i, w, w, n - 1); } \
__kernel SUB_GROUP(n) void vectors##n(__global int4 *o, __global long2 *p, __global const int4 *a, __global const long2 *b) { BEGIN(n) uint i = get_global_id(0), l = get_sub_group_local_id(); int4 v = a[i]; o[i] = (int4)(shuffle_(i, v.x, (l + 1) & (n - 1)), shuffle_xor_(i, v.y, 1), broadcast_(i, v.z, n - 1), scan_add_(i, v.w)); p[i] = (long2)(shuffle_(l, b[i].x, l ^ 2), reduce_add_(l, b[i].y)); }

KERNELS(8)
KERNELS(16)
KERNELS(32)
//: numbers8 128 64 o=u32[128]
//: numbers16 128 64 o=u32[128]
//: numbers32 128 64 o=u32[128]
//: shuffles8 128 64 o=i32[128] p=i64[128] q=f32[128] a=i32[128] b=i64[128] c=whole32[128]
//: shuffles16 128 64 o=i32[128] p=i64[128] q=f32[128] a=i32[128] b=i64[128] c=whole32[128]
//: shuffles32 128 64 o=i32[128] p=i64[128] q=f32[128] a=i32[128] b=i64[128] c=whole32[128]
//: narrows8 128 64 o=i16[128] p=i8[128] q=u8[128] a=i16[128] b=i8[128]
//: narrows16 128 64 o=i16[128] p=i8[128] q=u8[128] a=i16[128] b=i8[128]
//: narrows32 128 64 o=i16[128] p=i8[128] q=u8[128] a=i16[128] b=i8[128]
//: reduces8 128 64 o=i32[128] p=u32[128] q=i64[128] r=u64[128] s=f32[128] a=i32[128] b=i64[128] c=whole32[128]
//: reduces16 128 64 o=i32[128] p=u32[128] q=i64[128] r=u64[128] s=f32[128] a=i32[128] b=i64[128] c=whole32[128]
//: reduces32 128 64 o=i32[128] p=u32[128] q=i64[128] r=u64[128] s=f32[128] a=i32[128] b=i64[128] c=whole32[128]
//: scans8 128 64 o=i32[128] p=u32[128] q=i64[128] r=u64[128] s=f32[128] a=i32[128] b=i64[128] c=whole32[128]
//: scans16 128 64 o=i32[128] p=u32[128] q=i64[128] r=u64[128] s=f32[128] a=i32[128] b=i64[128] c=whole32[128]
//: scans32 128 64 o=i32[128] p=u32[128] q=i64[128] r=u64[128] s=f32[128] a=i32[128] b=i64[128] c=whole32[128]
//: votes8 128 64 o=i32[128] a=i32[128]
//: votes16 128 64 o=i32[128] a=i32[128]
//: votes32 128 64 o=i32[128] a=i32[128]
//: moves8 128 64 o=i32[128] a=i32[128]
//: moves16 128 64 o=i32[128] a=i32[128]
//: moves32 128 64 o=i32[128] a=i32[128]
//: vectors8 128 64 o=i32[512] p=i64[256] a=i32[512] b=i64[256]
//: vectors16 128 64 o=i32[512] p=i64[256] a=i32[512] b=i64[256]
//: vectors32 128 64 o=i32[512] p=i64[256] a=i32[512] b=i64[256]
//: turned 64 64 o=i32[64] a=i32[64]
__kernel SUB_GROUP(16) void turned(__global int *o, __global const int *a) { uint i = get_global_id(0), l = i & 15;
#ifdef POCL
o[i] = a[(i & ~15) + ((l + 3) & 15)] ^ a[(i & ~15) + (l >= 2 ? l - 2 : l)] * (l >= 2) ^ a[(i & ~3) + ((i + 1) & 3)];
#else
int u = sub_group_shuffle_up(a[i], 2); o[i] = intel_sub_group_shuffle(a[i], (l + 3) & 15) ^ (l >= 2 ? u : 0) ^ intel_sub_group_shuffle(a[i], (l & ~3) + ((l + 1) & 3));
#endif
}
//: blockwidths 64 64 o=i32[256] p=u16[128] q=u8[256] a=i32[256] b=u16[128] c=u8[256]
__kernel SUB_GROUP(16) void blockwidths(__global int *o, __global ushort *p, __global uchar *q, __global const int *a, __global const ushort *b, __global const uchar *c) { uint i = get_global_id(0), l = i & 15, g = i / 16;
#ifdef POCL
for (int k = 0; k < 4; k++) o[g * 64 + k * 16 + l] = a[g * 64 + k * 16 + l] * (k + 1); for (int k = 0; k < 2; k++) p[g * 32 + k * 16 + l] = b[g * 32 + k * 16 + l] + k; for (int k = 0; k < 4; k++) q[g * 64 + k * 16 + l] = c[g * 64 + k * 16 + l] ^ k;
#else
intel_sub_group_block_write4((__global uint *)o + g * 64, intel_sub_group_block_read4((__global const uint *)a + g * 64) * (uint4)(1, 2, 3, 4)); intel_sub_group_block_write_us2(p + g * 32, intel_sub_group_block_read_us2(b + g * 32) + (ushort2)(0, 1)); intel_sub_group_block_write_uc4(q + g * 64, intel_sub_group_block_read_uc4(c + g * 64) ^ (uchar4)(0, 1, 2, 3));
#endif
}
//: localblocks 64 64 o=u32[64] a=u32[64]
__kernel SUB_GROUP(16) void localblocks(__global uint *o, __global const uint *a) { __local uint t[64]; uint i = get_global_id(0); t[i] = a[i]; barrier(CLK_LOCAL_MEM_FENCE);
#ifdef POCL
o[i] = t[i] + 1;
#else
o[i] = intel_sub_group_block_read(t + (i & ~15)) + 1;
#endif
}
//: products 64 64 o=i32[64] p=i64[64] a=i32[64] b=i64[64]
__kernel SUB_GROUP(16) void products(__global int *o, __global long *p, __global const int *a, __global const long *b) { uint i = get_global_id(0), f = i & ~15;
#ifdef POCL
int x = ~0, y = 0, z = 0, m = 1; long w = 0, v = 1; for (int k = 0; k < 16; k++) { x &= a[f + k]; y |= a[f + k]; z ^= a[f + k]; m = (int)((uint)m * (uint)a[f + k]); w ^= b[f + k]; v = (long)((ulong)v * (ulong)b[f + k]); } int s = 1; for (uint k = f; k <= i; k++) s = (int)((uint)s * (uint)(a[k] | 1)); o[i] = x ^ y ^ z ^ m ^ s; p[i] = w ^ v;
#else
o[i] = sub_group_non_uniform_reduce_and(a[i]) ^ sub_group_non_uniform_reduce_or(a[i]) ^ sub_group_non_uniform_reduce_xor(a[i]) ^ sub_group_non_uniform_reduce_mul(a[i]) ^ sub_group_non_uniform_scan_inclusive_mul(a[i] | 1); p[i] = sub_group_non_uniform_reduce_xor(b[i]) ^ sub_group_non_uniform_reduce_mul(b[i]);
#endif
}
