// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// C = A B for matrices in rows, by tiles in shared local memory.

#define TILE 16

__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void sgemm(__global const float *a, __global const float *b, __global float *c, uint n, uint k)
{
    __local float of_a[TILE][TILE], of_b[TILE][TILE];
    uint x = get_local_id(0), y = get_local_id(1);
    uint column = get_global_id(0), row = get_global_id(1);
    float sum = 0;
    for (uint tile = 0; tile < k; tile += TILE) {
        of_a[y][x] = a[row * k + tile + x];
        of_b[y][x] = b[(tile + y) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = 0; i < TILE; i++)
            sum += of_a[y][i] * of_b[i][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = sum;
}
