/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Images of all dimensions and of the formats that pocl has, read, sampled, written and asked for their sizes. */
#pragma OPENCL EXTENSION cl_khr_3d_image_writes : enable

#define COPY(name, T, read, write) __kernel void name(read_only image2d_t s, write_only image2d_t d, __global T *o) { int2 p = (int2)(get_global_id(0), get_global_id(1)); T v = read(s, p); o[p.y * 16 + p.x] = v; write(d, (int2)(15 - p.x, p.y), v); }
COPY(copyf, float4, read_imagef, write_imagef)
COPY(copyi, int4, read_imagei, write_imagei)
COPY(copyu, uint4, read_imageui, write_imageui)
//: copyf 16,8 8,4 abs=1e-6 s=image:16x8:rgba8unorm d=image:16x8:rgba8unorm o=f32[512]
//: copyf 16,8 8,4 abs=1e-6 s=image:16x8:rgba8snorm d=image:16x8:rgba8snorm o=f32[512]
//: copyf 16,8 8,4 abs=1e-6 s=image:16x8:rgba16unorm d=image:16x8:rgba16unorm o=f32[512]
//: copyf 16,8 8,4 abs=1e-6 s=image:16x8:rgba16snorm d=image:16x8:rgba16snorm o=f32[512]
//: copyf 16,8 8,4 abs=1e-6 s=image:16x8:rgba16f d=image:16x8:rgba16f o=f32[512]
//: copyf 16,8 8,4 s=image:16x8:rgba32f d=image:16x8:rgba32f o=f32[512]
//: copyf 16,8 8,4 abs=1e-6 s=image:16x8:bgra8unorm d=image:16x8:bgra8unorm o=f32[512]
//: singlef 16,8 8,4 abs=1e-6 s=image:16x8:r8unorm d=image:16x8:r8unorm o=f32[128]
//: singlef 16,8 8,4 abs=1e-6 s=image:16x8:r16snorm d=image:16x8:r16snorm o=f32[128]
//: singlef 16,8 8,4 s=image:16x8:r32f d=image:16x8:r32f o=f32[128]
//: copyi 16,8 8,4 s=image:16x8:rgba8i d=image:16x8:rgba8i o=i32[512]
//: copyi 16,8 8,4 s=image:16x8:rgba16i d=image:16x8:rgba16i o=i32[512]
//: copyi 16,8 8,4 s=image:16x8:rgba32i d=image:16x8:rgba32i o=i32[512]
//: singlei 16,8 8,4 s=image:16x8:r8i d=image:16x8:r8i o=i32[128]
//: singlei 16,8 8,4 s=image:16x8:r32i d=image:16x8:r16i o=i32[128]
//: copyu 16,8 8,4 s=image:16x8:rgba8ui d=image:16x8:rgba8ui o=u32[512]
//: copyu 16,8 8,4 s=image:16x8:rgba16ui d=image:16x8:rgba16ui o=u32[512]
//: copyu 16,8 8,4 s=image:16x8:rgba32ui d=image:16x8:rgba32ui o=u32[512]
//: singleu 16,8 8,4 s=image:16x8:r16ui d=image:16x8:r16ui o=u32[128]

/* pocl has 0 for the last channel of formats of one channel, and OpenCL has 1. */
#define SINGLE(name, T, V, read, write) __kernel void name(read_only image2d_t s, write_only image2d_t d, __global T *o) { int2 p = (int2)(get_global_id(0), get_global_id(1)); V v = read(s, p); o[p.y * 16 + p.x] = v.x + v.y + v.z; write(d, (int2)(15 - p.x, p.y), v); }
SINGLE(singlef, float, float4, read_imagef, write_imagef)
SINGLE(singlei, int, int4, read_imagei, write_imagei)
SINGLE(singleu, uint, uint4, read_imageui, write_imageui)
#define WRITE(name, T, write) __kernel void name(write_only image2d_t d, __global const T *a) { int2 p = (int2)(get_global_id(0), get_global_id(1)); write(d, p, a[p.y * 16 + p.x]); }
WRITE(writef, float4, write_imagef)
WRITE(writei, int4, write_imagei)
WRITE(writeu, uint4, write_imageui)
//: writef 16,8 8,4 d=image:16x8:rgba8unorm a=unit32[512]
//: writef 16,8 8,4 d=image:16x8:rgba16unorm a=unit32[512]
//: writef 16,8 8,4 d=image:16x8:bgra8unorm a=unit32[512]
//: writef 16,8 8,4 d=image:16x8:rgba16f a=f32[512]
//: writef 16,8 8,4 d=image:16x8:rgba32f a=bits32[512]
//: writei 16,8 8,4 d=image:16x8:rgba8i a=i32[512]
//: writei 16,8 8,4 d=image:16x8:rgba16i a=i32[512]
//: writeu 16,8 8,4 d=image:16x8:rgba8ui a=u32[512]
//: writeu 16,8 8,4 d=image:16x8:rgba16ui a=u32[512]
//: writeu 16,8 8,4 d=image:16x8:r8ui a=u32[512]

__kernel void nearest(read_only image2d_t s, sampler_t t, __global float4 *o) { int2 p = (int2)(get_global_id(0), get_global_id(1)); o[p.y * 32 + p.x] = read_imagef(s, t, (float2)(p.x * 0.75f - 4.1f, p.y * 0.625f - 2.3f)); }
//: nearest 32,16 16,2 s=image:16x8:rgba32f t=sampler:clamp_edge,nearest,pixels o=f32[2048]
//: nearest 32,16 16,2 s=image:16x8:rgba32f t=sampler:clamp,nearest,pixels o=f32[2048]
__kernel void normalized(read_only image2d_t s, sampler_t t, __global float4 *o) { int2 p = (int2)(get_global_id(0), get_global_id(1)); o[p.y * 32 + p.x] = read_imagef(s, t, (float2)(p.x * 0.0625f - 0.71875f, p.y * 0.125f - 0.6875f)); }
//: normalized 32,16 16,2 s=image:16x8:rgba32f t=sampler:clamp_edge,nearest,normalized o=f32[2048]
//: normalized 32,16 16,2 s=image:16x8:rgba32f t=sampler:clamp,nearest,normalized o=f32[2048]
//: normalized 32,16 16,2 s=image:16x8:rgba32f t=sampler:repeat,nearest,normalized o=f32[2048]
//: normalized 32,16 16,2 s=image:16x8:rgba32f t=sampler:mirror,nearest,normalized o=f32[2048]
__kernel void integercoordinates(read_only image2d_t s, sampler_t t, __global int4 *o) { int2 p = (int2)(get_global_id(0), get_global_id(1)); o[p.y * 32 + p.x] = read_imagei(s, t, p - (int2)(5, 3)); }
//: integercoordinates 32,16 16,2 s=image:16x8:rgba16i t=sampler:clamp_edge,nearest,pixels o=i32[2048]
//: integercoordinates 32,16 16,2 s=image:16x8:rgba8i t=sampler:clamp,nearest,pixels o=i32[2048]

__kernel void line(read_only image1d_t s, write_only image1d_t d, __global uint *o) { int i = get_global_id(0); uint4 v = read_imageui(s, i); write_imageui(d, get_image_width(s) - 1 - i, v.wzyx + 1); o[i] = v.x ^ v.y; }
//: line 32 16 s=image:32:rgba8ui d=image:32:rgba16ui o=u32[32]
__kernel void linebuffer(read_only image1d_buffer_t s, __global float4 *o) { int i = get_global_id(0); o[i] = read_imagef(s, 31 - i) * 2.0f; }
//: linebuffer 32 16 s=imagebuffer:32:rgba32f o=f32[128]
__kernel void planes(read_only image2d_array_t s, write_only image2d_array_t d, __global uint *o) { int4 p = (int4)(get_global_id(0), get_global_id(1), get_global_id(2), 0); uint4 v = read_imageui(s, p); write_imageui(d, (int4)(p.y, p.x, (int)get_image_array_size(s) - 1 - p.z, 0), v + (uint4)(p.z)); o[(p.z * 8 + p.y) * 8 + p.x] = v.x + get_image_height(d); }
//: planes 8,8,3 8,2,1 s=imagearray:8x8x3:rgba8ui d=imagearray:8x8x3:rgba8ui o=u32[192]
__kernel void volume(read_only image3d_t s, write_only image3d_t d, __global float *o) { int4 p = (int4)(get_global_id(0), get_global_id(1), get_global_id(2), 0); float4 v = read_imagef(s, p); write_imagef(d, (int4)(7 - p.x, 3 - p.y, 4 - p.z, 0), v * 0.5f); o[(p.z * 4 + p.y) * 8 + p.x] = v.x + get_image_depth(s); }
//: volume 8,4,5 4,2,1 s=image:8x4x5:rgba32f d=image:8x4x5:rgba32f o=f32[160]
__kernel void volumesampled(read_only image3d_t s, sampler_t t, __global uint4 *o) { int4 p = (int4)(get_global_id(0), get_global_id(1), get_global_id(2), 0); o[(p.z * 8 + p.y) * 16 + p.x] = read_imageui(s, t, p - (int4)(4, 2, 1, 0)); }
//: volumesampled 16,8,8 16,2,1 s=image:8x4x5:rgba8ui t=sampler:clamp_edge,nearest,pixels o=u32[4096]
//: volumesampled 16,8,8 16,2,1 s=image:8x4x5:rgba16ui t=sampler:clamp,nearest,pixels o=u32[4096]
const sampler_t inside = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
__kernel void literalsampler(read_only image2d_t s, __global uint4 *o) { const sampler_t edge = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST; int2 p = (int2)(get_global_id(0), get_global_id(1)); o[p.y * 16 + p.x] = p.x & 1 ? read_imageui(s, inside, p + (int2)(3, -2)) : read_imageui(s, edge, p - (int2)(3, -2)); }
//: literalsampler 16,8 16,2 s=image:16x8:rgba8ui o=u32[512]
__kernel void questions(read_only image2d_t s, read_only image3d_t t, __global int *o) { int i = get_global_id(0); int2 d = get_image_dim(s); int4 e = get_image_dim(t); o[i] = i == 0 ? d.x * 100 + d.y : i == 1 ? e.x * 10000 + e.y * 100 + e.z : i == 2 ? get_image_channel_order(s) : i == 3 ? get_image_channel_data_type(s) : i == 4 ? get_image_channel_order(t) : get_image_channel_data_type(t); }
//: questions 6 6 s=image:16x8:rgba8unorm t=image:8x4x5:r32f o=i32[6]
//: questions 6 6 s=image:16x8:bgra8unorm t=image:8x4x5:rgba16ui o=i32[6]
__kernel void divided(read_only image2d_t s, write_only image2d_t d) { int2 p = (int2)(get_global_id(0), get_global_id(1)); uint4 v = read_imageui(s, p); if (v.x & 1) write_imageui(d, p, v); else if (v.y & 1) write_imageui(d, p, read_imageui(s, (int2)(p.y, p.x & 7))); }
//: divided 8,8 8,2 s=image:8x8:rgba32ui d=image:8x8:rgba32ui
__kernel void blur(read_only image2d_t s, write_only image2d_t d) { const sampler_t edge = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST; int2 p = (int2)(get_global_id(0), get_global_id(1)); uint4 v = 0; for (int y = -2; y <= 2; y++) for (int x = -2; x <= 2; x++) v += read_imageui(s, edge, p + (int2)(x, y)); write_imageui(d, p, v / 25); }
//: blur 16,8 8,4 s=image:16x8:rgba8ui d=image:16x8:rgba8ui
__kernel void bilinear(read_only image2d_t s, sampler_t t, __global float4 *o) { int2 p = (int2)(get_global_id(0), get_global_id(1)); o[p.y * 32 + p.x] = read_imagef(s, t, (float2)(p.x * 0.625f - 1.25f, p.y * 0.875f - 1.5f)); }
//: bilinear 32,16 16,2 abs=1e-4 s=image:16x8:rgba32f t=sampler:clamp_edge,linear,pixels o=f32[2048]
