// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Functions of single precision.

__kernel void mathematics(__global const float *in, __global float *out)
{
    uint i = get_global_id(0);
    float x = in[i];
    out[8 * i] = sin(x);
    out[8 * i + 1] = cos(x);
    out[8 * i + 2] = exp(x);
    out[8 * i + 3] = log(fabs(x) + 1.0f);
    out[8 * i + 4] = sqrt(fabs(x));
    out[8 * i + 5] = pow(fabs(x) + 0.5f, 1.5f);
    out[8 * i + 6] = x / (x * x + 1.0f);
    out[8 * i + 7] = floor(x) + fmod(x, 3.0f);
}
