// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// y = alpha x + y, rounded once.

__kernel void saxpy(float alpha, __global const float *x, __global float *y)
{
    size_t i = get_global_id(0);
    y[i] = fma(alpha, x[i], y[i]);
}
