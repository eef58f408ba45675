// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// A switch on a value that differs between items.

__kernel void switch_case(__global const uint *in, __global uint *out)
{
    uint i = get_global_id(0), value = in[i];
    switch (value % 7) {
    case 0:
        value = value * 3 + 1;
        break;
    case 1:
        value ^= value >> 7;
        // fall through
    case 2:
        value += 11;
        break;
    case 3:
        for (uint j = 0; j < (value & 7); j++)
            value = rotate(value, j) + j;
        break;
    case 4:
        value = value / 5 - value % 9;
        break;
    case 5:
        value = popcount(value) + clz(value);
        break;
    default:
        value = ~value;
    }
    out[i] = value;
}
