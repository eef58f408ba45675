// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Programs as applications have them: ciphers, searches, dynamic programming, numbers of many words, interpreters.

//: chacha 256 32 o=u32[4096] k=u32[12]
inline void quarter(uint *s, int a, int b, int c, int d) {
    s[a] += s[b]; s[d] = rotate(s[d] ^ s[a], 16u);
    s[c] += s[d]; s[b] = rotate(s[b] ^ s[c], 12u);
    s[a] += s[b]; s[d] = rotate(s[d] ^ s[a], 8u);
    s[c] += s[d]; s[b] = rotate(s[b] ^ s[c], 7u);
}
kernel void chacha(global uint *o, global const uint *k) {
    uint id = get_global_id(0), s[16], w[16];
    s[0] = 0x61707865; s[1] = 0x3320646e; s[2] = 0x79622d32; s[3] = 0x6b206574;
    for (int i = 0; i < 12; i++) s[4 + i] = k[i];
    s[12] = id;
    for (int i = 0; i < 16; i++) w[i] = s[i];
    for (int round = 0; round < 10; round++) {
        quarter(w, 0, 4, 8, 12); quarter(w, 1, 5, 9, 13); quarter(w, 2, 6, 10, 14); quarter(w, 3, 7, 11, 15);
        quarter(w, 0, 5, 10, 15); quarter(w, 1, 6, 11, 12); quarter(w, 2, 7, 8, 13); quarter(w, 3, 4, 9, 14);
    }
    for (int i = 0; i < 16; i++) o[id * 16 + i] = w[i] + s[i];
}

//: queens 64 16 o=u32[64]
kernel void queens(global uint *o) {
    const int n = 7;
    uint id = get_global_id(0), solutions = 0;
    int rows[8], depth = 2;
    uint columns[8], left[8], right[8], free[8];
    uint first = 1u << id % n, second = 1u << id / n % n, all = (1u << n) - 1;
    if ((second & (first | first << 1 | first >> 1)) != 0) { o[id] = 0; return; }
    columns[2] = first | second;
    left[2] = (first << 1 | second) << 1;
    right[2] = (first >> 1 | second) >> 1;
    free[2] = all & ~(columns[2] | left[2] | right[2]);
    while (depth >= 2) {
        if (free[depth] == 0) { depth--; continue; }
        uint bit = free[depth] & -free[depth];
        free[depth] ^= bit;
        if (depth == n - 1) { solutions++; continue; }
        columns[depth + 1] = columns[depth] | bit;
        left[depth + 1] = (left[depth] | bit) << 1;
        right[depth + 1] = (right[depth] | bit) >> 1;
        depth++;
        free[depth] = all & ~(columns[depth] | left[depth] | right[depth]);
    }
    o[id] = solutions;
}

//: levenshtein 128 16 o=u32[128] a=u8[2048] b=u8[2048]
kernel void levenshtein(global uint *o, global const uchar *a, global const uchar *b) {
    uint id = get_global_id(0);
    // Of even length: without optimisation, the compiler places the next variable into the last dword of one with 17 elements.
    ushort row[18];
    for (int j = 0; j <= 16; j++) row[j] = j;
    for (int i = 0; i < 16; i++) {
        ushort corner = row[0];
        row[0] = i + 1;
        for (int j = 0; j < 16; j++) {
            ushort above = row[j + 1];
            ushort change = corner + ((a[id * 16 + i] & 3) != (b[id * 16 + j] & 3));
            row[j + 1] = min(min((ushort)(above + 1), (ushort)(row[j] + 1)), change);
            corner = above;
        }
    }
    o[id] = row[16];
}

//: interpreter 256 32 o=u32[256] p=u8[512] n=i32(500)
kernel void interpreter(global uint *o, global const uchar *p, int n) {
    uint id = get_global_id(0), stack[8] = {id, 3, 5, 7, 11, 13, 17, 19}, top = 0, pc = id % 64;
    for (int step = 0; step < n; step++) {
        uchar op = p[pc & 511];
        uint x = stack[top & 7], y = stack[top - 1 & 7];
        pc++;
        switch (op & 15) {
        case 0: stack[++top & 7] = op; break;
        case 1: stack[--top & 7] = x + y; break;
        case 2: stack[--top & 7] = x * y; break;
        case 3: stack[--top & 7] = x ^ y; break;
        case 4: stack[top & 7] = y != 0 ? x / y : 1; break;
        case 5: stack[top & 7] = y != 0 ? x % y : 2; break;
        case 6: if (x & 1) pc += op >> 4; break;
        case 7: if (x > y) pc -= op >> 5; break;
        case 8: stack[top & 7] = popcount(x) + clz(y); break;
        case 9: top += 3; break;
        case 10: stack[top & 7] = rotate(x, y); break;
        case 11: stack[top & 7] = mul_hi(x, y) + mad24(x & 0xffff, y & 0xff, 5u); break;
        case 12: stack[y & 7] = x; break;
        case 13: stack[top & 7] = (int)x >> (y & 31); break;
        case 14: stack[top & 7] = abs_diff((int)x, (int)y); break;
        default: stack[top & 7] = ~x;
        }
    }
    uint sum = pc;
    for (int i = 0; i < 8; i++) sum = sum * 31 + stack[i];
    o[id] = sum;
}

//: montgomery 64 16 o=u64[256] a=u64[256] m=u64[4]
kernel void montgomery(global ulong *o, global const ulong *a, global const ulong *m) {
    uint id = get_global_id(0);
    ulong modulus[4], value[4], result[4] = {1, 0, 0, 0}, inverse = 1;
    for (int i = 0; i < 4; i++) { modulus[i] = m[i]; value[i] = a[id * 4 + i]; }
    modulus[0] |= 1;
    modulus[3] |= 1ul << 63;
    for (int i = 0; i < 6; i++) inverse *= 2 - modulus[0] * inverse;
    for (int bit = 0; bit < 24; bit++) {
        ulong t[6] = {0, 0, 0, 0, 0, 0};
        for (int i = 0; i < 4; i++) {
            ulong carry = 0;
            for (int j = 0; j < 4; j++) {
                ulong low = value[j] * value[i], high = mul_hi(value[j], value[i]);
                low += t[j]; high += low < t[j];
                low += carry; high += low < carry;
                t[j] = low; carry = high;
            }
            t[4] += carry; t[5] = t[4] < carry;
            ulong factor = t[0] * -inverse, low = factor * modulus[0], high = mul_hi(factor, modulus[0]);
            carry = high + (low + t[0] < low);
            for (int j = 1; j < 4; j++) {
                low = factor * modulus[j]; high = mul_hi(factor, modulus[j]);
                low += t[j]; high += low < t[j];
                low += carry; high += low < carry;
                t[j - 1] = low; carry = high;
            }
            t[3] = t[4] + carry; t[4] = t[5] + (t[3] < carry);
        }
        ulong borrow = 0, less[4];
        for (int j = 0; j < 4; j++) {
            ulong difference = t[j] - modulus[j];
            ulong next = t[j] < modulus[j] || difference < borrow;
            less[j] = difference - borrow; borrow = next;
        }
        for (int j = 0; j < 4; j++) value[j] = t[4] >= borrow ? less[j] : t[j];
        if (bit % 5 == 0) for (int j = 0; j < 4; j++) result[j] ^= value[j];
    }
    for (int i = 0; i < 4; i++) o[id * 4 + i] = result[i];
}

//: sparse 256 32 ulp=64 abs=1e-2 o=f32[256] v=f32[2048] c=u32[2048] x=f32[256]
kernel void sparse(global float *o, global const float *v, global const uint *c, global const float *x) {
    uint id = get_global_id(0), begin = id * 8, end = begin + (c[begin] & 7);
    float sum = 0;
    for (uint i = begin; i < end; i++) sum += v[i] * x[c[i] & 255];
    o[id] = sum;
}

//: radixsort 256 256 o=u32[256] a=u32[256]
kernel void radixsort(global uint *o, global const uint *a) {
    local uint keys[2][256], counts[256];
    uint id = get_local_id(0), from = 0;
    keys[0][id] = a[id];
    for (uint shift = 0; shift < 32; shift++) {
        barrier(CLK_LOCAL_MEM_FENCE);
        uint key = keys[from][id], zero = 1 - (key >> shift & 1), count = zero;
        counts[id] = count;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint distance = 1; distance < 256; distance <<= 1) {
            uint other = id >= distance ? counts[id - distance] : 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            count += other;
            counts[id] = count;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        uint zeros = counts[255];
        keys[from ^ 1][zero ? count - 1 : zeros + id - count] = key;
        from ^= 1;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    o[id] = keys[from][id];
}

//: fourier 256 64 ulp=64 abs=1e-1 o=f32[512] a=f32[512]
kernel void fourier(global float2 *o, global const float2 *a) {
    local float2 values[64];
    uint id = get_local_id(0), base = get_group_id(0) * 64, reversed = 0;
    for (int bit = 0; bit < 6; bit++) reversed |= (id >> bit & 1) << (5 - bit);
    values[reversed] = a[base + id];
    for (uint half_size = 1; half_size < 64; half_size *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        uint k = id & (half_size - 1), low = id & ~half_size, high = low | half_size;
        float angle = -3.14159265f * k / half_size, co, si = sincos(angle, &co);
        float2 x = values[low], y = values[high];
        float2 turned = (float2)(y.x * co - y.y * si, y.x * si + y.y * co);
        barrier(CLK_LOCAL_MEM_FENCE);
        values[id] = id & half_size ? x - turned : x + turned;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    o[base + id] = values[id];
}

//: decimals 256 32 o=u8[3072] a=i32[256]
kernel void decimals(global uchar *o, global const int *a) {
    uint id = get_global_id(0), value = abs(a[id]), length = 0;
    char text[12];
    do { text[length++] = '0' + value % 10; value /= 10; } while (value != 0);
    if (a[id] < 0) text[length++] = '-';
    for (uint i = 0; i < 12; i++) o[id * 12 + i] = i < length ? text[length - 1 - i] : ' ';
}

//: base64 256 32 o=u8[1024] a=u8[768]
constant char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
kernel void base64(global uchar *o, global const uchar *a) {
    uint id = get_global_id(0);
    uchar3 bytes = vload3(id, a);
    uint bits = bytes.x << 16 | bytes.y << 8 | bytes.z;
    uchar4 text = (uchar4)(ALPHABET[bits >> 18], ALPHABET[bits >> 12 & 63], ALPHABET[bits >> 6 & 63], ALPHABET[bits & 63]);
    vstore4(text, id, o);
}

//: life 64 64 o=u64[64] a=u64[64] n=i32(20)
kernel void life(global ulong *o, global const ulong *a, int n) {
    local ulong board[64];
    uint id = get_local_id(0);
    board[id] = a[id];
    for (int step = 0; step < n; step++) {
        barrier(CLK_LOCAL_MEM_FENCE);
        ulong rows[3] = {board[id - 1 & 63], board[id], board[id + 1 & 63]}, ones = 0, twos = 0, fours = 0;
        for (int row = 0; row < 3; row++) {
            for (int shift = 0; shift < 3; shift++) {
                if (row == 1 && shift == 1) continue;
                ulong cells = rotate(rows[row], (ulong)(63 + shift)), carry = ones & cells;
                ones ^= cells;
                fours |= twos & carry;
                twos ^= carry;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        board[id] = twos & ~fours & (ones | rows[1]);
    }
    o[id] = board[id];
}

//: heap 128 32 o=i32[4096] a=i32[4096]
void sift(int *heap, int at, int size) {
    for (;;) {
        int child = 2 * at + 1;
        if (child >= size) return;
        if (child + 1 < size && heap[child + 1] > heap[child]) child++;
        if (heap[at] >= heap[child]) return;
        int value = heap[at]; heap[at] = heap[child]; heap[child] = value;
        at = child;
    }
}
kernel void heap(global int *o, global const int *a) {
    uint id = get_global_id(0);
    int heap[32];
    for (int i = 0; i < 32; i++) heap[i] = a[id * 32 + i];
    for (int i = 15; i >= 0; i--) sift(heap, i, 32);
    for (int i = 31; i > 0; i--) {
        int value = heap[0]; heap[0] = heap[i]; heap[i] = value;
        sift(heap, 0, i);
    }
    for (int i = 0; i < 32; i++) o[id * 32 + i] = heap[i];
}

//: breadth 64 64 o=u32[64] e=u32[256]
kernel void breadth(global uint *o, global const uint *e) {
    local uint levels[64], changed;
    uint id = get_local_id(0);
    levels[id] = id == 0 ? 0 : 1000;
    for (uint level = 0; ; level++) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id == 0) changed = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (levels[id] == level) {
            for (uint i = 0; i < 4; i++) {
                uint to = e[id * 4 + i] & 63;
                if (atomic_min(&levels[to], level + 1) > level + 1) atomic_or(&changed, 1u);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (!changed) break;
    }
    o[id] = levels[id];
}

//: knapsack 256 32 o=u32[256] w=u8[256] v=u16[256]
kernel void knapsack(global uint *o, global const uchar *w, global const ushort *v) {
    uint id = get_global_id(0);
    uint best[33];
    for (int i = 0; i <= 32; i++) best[i] = 0;
    for (int item = 0; item < 8; item++) {
        uint at = id + item & 255, weight = (w[at] & 15) + 1, value = v[at];
        for (int room = 32; room >= (int)weight; room--) best[room] = max(best[room], best[room - weight] + value);
    }
    o[id] = best[32];
}

//: noise 256 32 ulp=64 abs=1e-4 o=f32[256] p=f32[512]
kernel void noise(global float *o, global const float2 *p) {
    uint id = get_global_id(0);
    float2 whole, part = fract(p[id], &whole);
    int2 cell = convert_int2_rtn(whole);
    float2 fade = part * part * part * (part * (part * 6.0f - 15.0f) + 10.0f);
    float corners[4];
    for (int i = 0; i < 4; i++) {
        uint hash = (uint)(cell.x + (i & 1)) * 0x9e3779b1u ^ (uint)(cell.y + (i >> 1)) * 0x85ebca77u;
        hash ^= hash >> 15; hash *= 0x2c1b3c6du; hash ^= hash >> 12;
        float2 gradient = (float2)(hash & 1 ? 1.0f : -1.0f, hash & 2 ? 1.0f : -1.0f);
        corners[i] = dot(gradient, part - (float2)(i & 1, i >> 1));
    }
    o[id] = mix(mix(corners[0], corners[1], fade.x), mix(corners[2], corners[3], fade.x), fade.y);
}
