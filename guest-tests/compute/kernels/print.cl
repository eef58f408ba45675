// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// printf.

__kernel void print(int n)
{
    printf("item %d of %d: %.3f %s\n", (int)get_global_id(0), n, 1.5f * get_global_id(0), "text");
}
