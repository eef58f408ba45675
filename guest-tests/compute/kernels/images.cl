// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Mirrors images along all their axes but that of array elements, by a sampler and typed writes.

const sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;

#define X get_global_id(0)
#define Y get_global_id(1)
#define Z get_global_id(2)
#define MIRRORED(axis) (get_global_size(axis) - 1 - get_global_id(axis))

#define MIRROR(dimensions, image, kind, from, to) \
    __kernel void mirror_##dimensions##_##kind(read_only image in, write_only image out) \
    { \
        write_image##kind(out, to, read_image##kind(in, nearest, from)); \
    }

#define MIRRORS(dimensions, image, from, to) \
    MIRROR(dimensions, image, f, from, to) \
    MIRROR(dimensions, image, i, from, to) \
    MIRROR(dimensions, image, ui, from, to)

MIRRORS(1d, image1d_t, (int)MIRRORED(0), (int)X)
MIRRORS(1d_array, image1d_array_t, (int2)(MIRRORED(0), Y), (int2)(X, Y))
MIRRORS(2d, image2d_t, (int2)(MIRRORED(0), MIRRORED(1)), (int2)(X, Y))
MIRRORS(2d_array, image2d_array_t, (int4)(MIRRORED(0), MIRRORED(1), Z, 0), (int4)(X, Y, Z, 0))
MIRRORS(3d, image3d_t, (int4)(MIRRORED(0), MIRRORED(1), MIRRORED(2), 0), (int4)(X, Y, Z, 0))

// Without sampler, as images of buffers have it.
#define MIRROR_BUFFER(kind) \
    __kernel void mirror_buffer_##kind(read_only image1d_buffer_t in, write_only image1d_buffer_t out) \
    { \
        write_image##kind(out, (int)X, read_image##kind(in, (int)MIRRORED(0))); \
    }
MIRROR_BUFFER(f)
MIRROR_BUFFER(i)
MIRROR_BUFFER(ui)

// An image that is read and written: each item adds 1 to its texel.
__kernel void increase(read_write image2d_t image)
{
    int2 at = (int2)(X, Y);
    write_imageui(image, at, read_imageui(image, at) + 1);
}

// Texels around an image, by all ways to treat coordinates outside.
#define SAMPLE(name, flags) \
    __kernel void sample_##name(read_only image2d_t in, __global uint4 *out) \
    { \
        const sampler_t sampler = CLK_NORMALIZED_COORDS_TRUE | CLK_FILTER_NEAREST | flags; \
        float2 size = convert_float2(get_image_dim(in)); \
        float2 at = (convert_float2((int2)(X, Y)) - size + 0.5f) / size; \
        out[Y * get_global_size(0) + X] = read_imageui(in, sampler, at); \
    }
SAMPLE(clamp, CLK_ADDRESS_CLAMP)
SAMPLE(edge, CLK_ADDRESS_CLAMP_TO_EDGE)
SAMPLE(repeat, CLK_ADDRESS_REPEAT)
SAMPLE(mirrored, CLK_ADDRESS_MIRRORED_REPEAT)

// Means of the texels around each corner of texels.
__kernel void corners_2d(read_only image2d_t in, __global float4 *out)
{
    const sampler_t sampler = CLK_NORMALIZED_COORDS_FALSE | CLK_FILTER_LINEAR | CLK_ADDRESS_CLAMP_TO_EDGE;
    out[Y * get_global_size(0) + X] = read_imagef(in, sampler, convert_float2((int2)(X, Y)));
}

__kernel void corners_3d(read_only image3d_t in, __global float4 *out)
{
    const sampler_t sampler = CLK_NORMALIZED_COORDS_FALSE | CLK_FILTER_LINEAR | CLK_ADDRESS_CLAMP_TO_EDGE;
    uint at = (Z * get_global_size(1) + Y) * get_global_size(0) + X;
    out[at] = read_imagef(in, sampler, (float4)(X, Y, Z, 0));
}

// Formats that are read only, and those whose channels are not the color's: the color of each texel.
__kernel void colors(read_only image2d_t in, __global float4 *out)
{
    out[Y * get_global_size(0) + X] = read_imagef(in, nearest, (int2)(X, Y));
}
