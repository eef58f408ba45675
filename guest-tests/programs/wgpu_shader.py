# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""wgpu (WebGPU by Vulkan, Mesa's compiler): a compute shader, compared with numpy."""
import sys

import numpy as np
import wgpu
from wgpu.utils.compute import compute_with_buffers

adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
print(adapter.summary)
SHADER = """
@group(0) @binding(0) var<storage, read> left: array<f32>;
@group(0) @binding(1) var<storage, read> right: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let at = id.x;
    let row = at / 64u;
    let column = at % 64u;
    var sum = 0.0;
    for (var k = 0u; k < 64u; k += 1u) { sum += left[row * 64u + k] * right[k * 64u + column]; }
    out[at] = max(sum, 0.0);
}
"""
random = np.random.default_rng(1)
left, right = (random.uniform(-1, 1, (64, 64)).astype(np.float32) for _ in range(2))
out = compute_with_buffers({0: left, 1: right}, {2: (64 * 64, "f")}, SHADER, n=(64, 1, 1))
result = np.frombuffer(out[2], np.float32).reshape(64, 64)
error = np.abs(result - np.maximum(left.astype(np.float64) @ right, 0)).max()
print(f"product: largest difference {error:.2e}")
sys.exit(0 if error < 1e-4 else "wrong: product")
