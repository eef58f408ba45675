# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""OpenVINO's GPU plugin (oneDNN's kernels) and its CPU plugin on the same models, compared with numpy."""
import sys

import numpy as np
import openvino as ov
from openvino import opset13 as op

random = np.random.default_rng(1)


def values(*shape):
    return random.uniform(-1, 1, shape).astype(np.float32)


def product(size):
    left = op.parameter([size, size], np.float32)
    right = values(size, size)
    model = ov.Model([op.relu(op.matmul(left, op.constant(right), False, False))], [left], "product")
    data = values(size, size)
    return model, data, np.maximum(data.astype(np.float64) @ right, 0)


def convolution():
    image = op.parameter([1, 3, 32, 32], np.float32)
    weights = values(16, 3, 3, 3)
    layer = op.convolution(image, op.constant(weights), [1, 1], [1, 1], [1, 1], [1, 1])
    pooled = op.reduce_mean(op.relu(layer), op.constant(np.array([2, 3])), False)
    model = ov.Model([op.softmax(pooled, 1)], [image], "convolution")
    data = values(1, 3, 32, 32)
    padded = np.pad(data.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    out = np.zeros((1, 16, 32, 32))
    for y in range(3):
        for x in range(3):
            out += np.einsum("oc,nchw->nohw", weights[:, :, y, x], padded[:, :, y:y + 32, x:x + 32])
    means = np.maximum(out, 0).mean((2, 3))
    weights_of = np.exp(means - means.max(1, keepdims=True))
    return model, data, weights_of / weights_of.sum(1, keepdims=True)


core = ov.Core()
print(core.get_property("GPU", "FULL_DEVICE_NAME"))
wrong = []
for name, (model, data, expected) in {
    "product 64": product(64),
    "product 256": product(256),
    "convolution": convolution(),
}.items():
    for device in ["GPU", "CPU"]:
        result = core.compile_model(model, device, {"INFERENCE_PRECISION_HINT": "f32"})(data)[0]
        error = float(np.abs(result - expected).max())
        print(f"{name} on {device}: largest difference {error:.2e}")
        if not error < 1e-4:
            wrong.append(f"{name} on {device}")
            np.save(f"/tmp/{name}-{device}.npy", result)
            flat = np.flatnonzero(~(np.abs(result - expected) < 1e-4))
            print("first wrong places", flat[:16], "of", result.size, "wrong", flat.size)
sys.exit(f"wrong: {', '.join(wrong)}" if wrong else 0)
