// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Waits until the dword is not 0, which it always is.

__kernel void endless(volatile __global const uint *wait, __global uint *out)
{
    while (*wait == 0) {
    }
    out[get_global_id(0)] = 1;
}
