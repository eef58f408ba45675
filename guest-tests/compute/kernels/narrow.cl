// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Bytes and words: saturation, vectors, conversions.

__kernel void narrow_types(__global const uchar *bytes, __global const short *words, __global uchar *out)
{
    uint i = get_global_id(0);
    uchar4 four = vload4(i, bytes);
    short4 more = vload4(i, words);
    vstore4(convert_uchar4_sat(convert_short4(four) + more / (short)2), i, out);
}
