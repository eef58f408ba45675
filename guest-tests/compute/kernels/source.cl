// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Built in the guest.

__kernel void from_source(__global const uint *in, __global uint *out)
{
    uint i = get_global_id(0);
    out[i] = in[i] * in[i] + i;
}
