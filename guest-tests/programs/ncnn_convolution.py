# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""ncnn (neural networks by Vulkan, Mesa's compiler): a convolution on the card and on the CPU, compared with each other."""
import sys

import ncnn
import numpy as np

PARAMETERS = """7767517
3 3
Input in 0 1 in 0=24 1=24 2=3
Convolution conv 1 1 in conv 0=8 1=3 4=1 5=1 6=216 9=1
Pooling out 1 1 conv out 0=1 1=2 2=2
"""
random = np.random.default_rng(1)
weights = random.uniform(-1, 1, 216).astype(np.float32)
bias = random.uniform(-1, 1, 8).astype(np.float32)
data = random.uniform(-1, 1, (3, 24, 24)).astype(np.float32)
with open("/tmp/net.param", "w") as file:
    file.write(PARAMETERS)
with open("/tmp/net.bin", "wb") as file:
    # A flag of four bytes says that the weights are floats of 32 bits.
    file.write(np.uint32(0).tobytes() + weights.tobytes() + bias.tobytes())
results = []
for vulkan in [False, True]:
    net = ncnn.Net()
    net.opt.use_vulkan_compute = vulkan
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
    net.opt.use_bf16_storage = False
    if vulkan:
        net.set_vulkan_device(0)
        print(ncnn.get_gpu_info(0).device_name())
    if net.load_param("/tmp/net.param") or net.load_model("/tmp/net.bin"):
        sys.exit("the network cannot be loaded")
    extractor = net.create_extractor()
    extractor.input("in", ncnn.Mat(data))
    status, out = extractor.extract("out")
    if status:
        sys.exit("the network was not executed")
    results.append(np.array(out))
error = float(np.abs(results[0] - results[1]).max())
print(f"convolution and pooling, {results[0].shape}: largest difference {error:.2e}")
sys.exit(0 if error < 1e-4 else "wrong: convolution")
