// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Calls on a stack, from divergent code.

__attribute__((noinline)) uint collatz(uint n)
{
    uint steps = 0;
    while (n != 1) {
        n = n & 1 ? 3 * n + 1 : n / 2;
        steps++;
    }
    return steps;
}

// Both are greater than 0.
__attribute__((noinline)) uint gcd(uint a, uint b)
{
    while (a != b) {
        if (a > b)
            a -= b;
        else
            b -= a;
    }
    return a;
}

__kernel void calls(__global const uint *in, __global uint *out)
{
    uint i = get_global_id(0);
    out[i] = in[i] & 1 ? collatz(in[i]) : gcd(in[i], 360);
}
