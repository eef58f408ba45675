// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Transposes a matrix by tiles in shared local memory, whose rows have another length than the tile's.

#define TILE 16

__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void transpose(__global const uint *in, __global uint *out, uint width, uint height)
{
    __local uint tile[TILE][TILE + 1];
    uint x = get_local_id(0), y = get_local_id(1);
    tile[y][x] = in[get_global_id(1) * width + get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    uint column = get_group_id(1) * TILE + x, row = get_group_id(0) * TILE + y;
    out[row * height + column] = tile[x][y];
}
