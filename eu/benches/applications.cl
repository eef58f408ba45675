/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Kernels of the shape and size of those of applications, for `applications.py`: a product of matrices by tiles in local memory
   (as CLBlast has it), forces between neighbours (molecular dynamics, as SHOC), a stencil of several steps in local memory (as
   Rodinia's hotspot), PBKDF2 with SHA-256 (as hashcat), and a product of matrices of halves by dpas. */

/* Tiles of 64 x 64, 16 deep; each work item has 4 x 4 results. `a` is stored by columns. */
__kernel __attribute__((reqd_work_group_size(16, 16, 1)))
void gemm(__global float4 *c, __global const float4 *a, __global const float4 *b, int n) {
    __local float4 s[16][16], t[16][16];
    int x = get_local_id(0), y = get_local_id(1), quads = n / 4;
    int left = get_group_id(0) * 16, top = get_group_id(1) * 16;
    float4 r0 = 0, r1 = 0, r2 = 0, r3 = 0;
    for (int k = 0; k < n; k += 16) {
        s[y][x] = a[(k + y) * quads + left + x];
        t[y][x] = b[(k + y) * quads + top + x];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = 0; j < 16; j++) {
            float4 u = s[j][x], v = t[j][y];
            r0 = mad(u, v.x, r0);
            r1 = mad(u, v.y, r1);
            r2 = mad(u, v.z, r2);
            r3 = mad(u, v.w, r3);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    int row = (top + y) * 4, column = left + x;
    c[row * quads + column] = r0;
    c[(row + 1) * quads + column] = r1;
    c[(row + 2) * quads + column] = r2;
    c[(row + 3) * quads + column] = r3;
}

__kernel void forces(__global float4 *force, __global const float4 *position, __global const int *neighbours, int count,
                     int atoms, float cutoff, float lj1, float lj2) {
    int i = get_global_id(0);
    float4 own = position[i], sum = 0;
    for (int j = 0; j < count; j++) {
        float4 other = position[neighbours[j * atoms + i]];
        float dx = own.x - other.x, dy = own.y - other.y, dz = own.z - other.z;
        float r2 = dx * dx + dy * dy + dz * dz;
        if (r2 < cutoff) {
            float inverse = 1.0f / r2, r6 = inverse * inverse * inverse;
            float f = inverse * r6 * (lj1 * r6 - lj2);
            sum.x += dx * f;
            sum.y += dy * f;
            sum.z += dz * f;
        }
    }
    force[i] = sum;
}

#define BLOCK 16
#define INSIDE(x, low, high) ((x) >= (low) && (x) <= (high))

/* Each group has the `steps` next times of a block, of which the border shrinks with each step. */
__kernel void stencil(int steps, __global const float *power, __global const float *before, __global float *after, int columns,
                      int rows, float capacity, float rx, float ry, float rz) {
    __local float now[BLOCK][BLOCK], heat[BLOCK][BLOCK], next[BLOCK][BLOCK];
    int x = get_local_id(0), y = get_local_id(1);
    int inner = BLOCK - steps * 2;
    int top = inner * (int)get_group_id(1) - steps, left = inner * (int)get_group_id(0) - steps;
    int row = top + y, column = left + x;
    bool is_inside = INSIDE(row, 0, rows - 1) && INSIDE(column, 0, columns - 1);
    int index = columns * row + column;
    if (is_inside) {
        now[y][x] = before[index];
        heat[y][x] = power[index];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    int first_y = top < 0 ? -top : 0, last_y = top + BLOCK > rows ? rows - top - 1 : BLOCK - 1;
    int first_x = left < 0 ? -left : 0, last_x = left + BLOCK > columns ? columns - left - 1 : BLOCK - 1;
    int north = max(y - 1, first_y), south = min(y + 1, last_y), west = max(x - 1, first_x), east = min(x + 1, last_x);
    bool computed = false;
    for (int i = 0; i < steps; i++) {
        computed = false;
        if (INSIDE(x, i + 1, BLOCK - i - 2) && INSIDE(y, i + 1, BLOCK - i - 2) && INSIDE(x, first_x, last_x) &&
            INSIDE(y, first_y, last_y)) {
            computed = true;
            next[y][x] = now[y][x] + capacity * (heat[y][x] + (now[south][x] + now[north][x] - 2.0f * now[y][x]) * ry +
                                                 (now[y][east] + now[y][west] - 2.0f * now[y][x]) * rx +
                                                 (80.0f - now[y][x]) * rz);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i == steps - 1) break;
        if (computed) now[y][x] = next[y][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (computed) after[index] = next[y][x];
}

__constant uint K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

#define ROTATE(x, n) rotate(x, (uint)(32 - (n)))

/* A round: `h` becomes the first word of the state. */
#define ROUND(a, b, c, d, e, f, g, h, w, k)                                                                     \
    {                                                                                                           \
        uint t = h + (ROTATE(e, 6) ^ ROTATE(e, 11) ^ ROTATE(e, 25)) + bitselect(g, f, e) + K[k] + w;            \
        d += t;                                                                                                 \
        h = t + (ROTATE(a, 2) ^ ROTATE(a, 13) ^ ROTATE(a, 22)) + bitselect(a, b, c ^ a);                        \
    }
#define NEXT(w, v, s, u)                                                                                        \
    w += (ROTATE(v, 7) ^ ROTATE(v, 18) ^ (v >> 3)) + s + (ROTATE(u, 17) ^ ROTATE(u, 19) ^ (u >> 10));
#define ROUNDS(k)                                                                                               \
    ROUND(a, b, c, d, e, f, g, h, w.s0, k) ROUND(h, a, b, c, d, e, f, g, w.s1, k + 1)                           \
    ROUND(g, h, a, b, c, d, e, f, w.s2, k + 2) ROUND(f, g, h, a, b, c, d, e, w.s3, k + 3)                       \
    ROUND(e, f, g, h, a, b, c, d, w.s4, k + 4) ROUND(d, e, f, g, h, a, b, c, w.s5, k + 5)                       \
    ROUND(c, d, e, f, g, h, a, b, w.s6, k + 6) ROUND(b, c, d, e, f, g, h, a, w.s7, k + 7)                       \
    ROUND(a, b, c, d, e, f, g, h, w.s8, k + 8) ROUND(h, a, b, c, d, e, f, g, w.s9, k + 9)                       \
    ROUND(g, h, a, b, c, d, e, f, w.sa, k + 10) ROUND(f, g, h, a, b, c, d, e, w.sb, k + 11)                     \
    ROUND(e, f, g, h, a, b, c, d, w.sc, k + 12) ROUND(d, e, f, g, h, a, b, c, w.sd, k + 13)                     \
    ROUND(c, d, e, f, g, h, a, b, w.se, k + 14) ROUND(b, c, d, e, f, g, h, a, w.sf, k + 15)
#define EXPAND                                                                                                  \
    NEXT(w.s0, w.s1, w.s9, w.se) NEXT(w.s1, w.s2, w.sa, w.sf) NEXT(w.s2, w.s3, w.sb, w.s0)                      \
    NEXT(w.s3, w.s4, w.sc, w.s1) NEXT(w.s4, w.s5, w.sd, w.s2) NEXT(w.s5, w.s6, w.se, w.s3)                      \
    NEXT(w.s6, w.s7, w.sf, w.s4) NEXT(w.s7, w.s8, w.s0, w.s5) NEXT(w.s8, w.s9, w.s1, w.s6)                      \
    NEXT(w.s9, w.sa, w.s2, w.s7) NEXT(w.sa, w.sb, w.s3, w.s8) NEXT(w.sb, w.sc, w.s4, w.s9)                      \
    NEXT(w.sc, w.sd, w.s5, w.sa) NEXT(w.sd, w.se, w.s6, w.sb) NEXT(w.se, w.sf, w.s7, w.sc)                      \
    NEXT(w.sf, w.s0, w.s8, w.sd)

/* One block into the state. */
static uint8 compress(uint8 state, uint16 w) {
    uint a = state.s0, b = state.s1, c = state.s2, d = state.s3, e = state.s4, f = state.s5, g = state.s6, h = state.s7;
    ROUNDS(0) EXPAND ROUNDS(16) EXPAND ROUNDS(32) EXPAND ROUNDS(48)
    return state + (uint8)(a, b, c, d, e, f, g, h);
}

/* The first 32 bytes of the key for a password of 8 bytes each and a salt of 8 bytes. */
__kernel void pbkdf2(__global uint8 *key, __global const uint2 *passwords, uint salt0, uint salt1, uint rounds) {
    uint i = get_global_id(0);
    const uint8 start = (uint8)(0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19);
    uint2 password = passwords[i];
    uint16 padded = (uint16)(password, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    uint8 inner = compress(start, padded ^ 0x36363636), outer = compress(start, padded ^ 0x5c5c5c5c), sum = 0;
    uint16 block = (uint16)(salt0, salt1, 1, 0x80000000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, (64 + 12) * 8);
    for (uint r = 0; r < rounds; r++) {
        uint8 u = compress(outer, (uint16)(compress(inner, block), 0x80000000, 0, 0, 0, 0, 0, 0, (64 + 32) * 8));
        block = (uint16)(u, 0x80000000, 0, 0, 0, 0, 0, 0, (64 + 32) * 8);
        sum ^= u;
    }
    key[i] = sum;
}

#ifdef cl_intel_subgroup_matrix_multiply_accumulate
/* 32 x 8 results a sub-group of 8 items; `b` has pairs of rows interleaved. */
__kernel __attribute__((intel_reqd_sub_group_size(8))) __attribute__((reqd_work_group_size(8, 1, 1)))
void matrices(__global float *c, __global const uint *a, __global const uint *b, int n) {
    int lane = get_sub_group_local_id(), column = get_group_id(0) * 8, row = get_group_id(1) * 32, half_n = n / 2;
    float8 r0 = 0, r1 = 0, r2 = 0, r3 = 0;
    for (int k = 0; k < half_n; k += 8) {
        int8 v, s0, s1, s2, s3;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            ((int *)&v)[i] = as_int(intel_sub_group_block_read(b + (k + i) * n + column));
            ((int *)&s0)[i] = as_int(intel_sub_group_block_read(a + (row + i) * half_n + k));
            ((int *)&s1)[i] = as_int(intel_sub_group_block_read(a + (row + i + 8) * half_n + k));
            ((int *)&s2)[i] = as_int(intel_sub_group_block_read(a + (row + i + 16) * half_n + k));
            ((int *)&s3)[i] = as_int(intel_sub_group_block_read(a + (row + i + 24) * half_n + k));
        }
        r0 = intel_sub_group_f16_f16_matrix_mad_k16(s0, v, r0);
        r1 = intel_sub_group_f16_f16_matrix_mad_k16(s1, v, r1);
        r2 = intel_sub_group_f16_f16_matrix_mad_k16(s2, v, r2);
        r3 = intel_sub_group_f16_f16_matrix_mad_k16(s3, v, r3);
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        c[(row + i) * n + column + lane] = ((float *)&r0)[i];
        c[(row + i + 8) * n + column + lane] = ((float *)&r1)[i];
        c[(row + i + 16) * n + column + lane] = ((float *)&r2)[i];
        c[(row + i + 24) * n + column + lane] = ((float *)&r3)[i];
    }
}
#endif
