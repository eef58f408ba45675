# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""pyopencl: arrays, reductions, scans and a kernel from source, compared with numpy."""
import sys

import numpy as np
import pyopencl as cl
import pyopencl.array as array
from pyopencl.scan import InclusiveScanKernel

platform = next(platform for platform in cl.get_platforms() if "Intel" in platform.name)
context = cl.Context(platform.get_devices())
queue = cl.CommandQueue(context)
print(context.devices[0].name)
random = np.random.default_rng(1)
left, right = (random.uniform(-1, 1, 100_000).astype(np.float32) for _ in range(2))
numbers = random.integers(0, 100, 100_000, dtype=np.int32)
on_left, on_right, on_numbers = (array.to_device(queue, host) for host in (left, right, numbers))
wrong = []


def check(name, result, expected, tolerance):
    error = np.abs(np.asarray(result, np.float64) - expected).max()
    print(f"{name}: largest difference {error:.2e}")
    if not error <= tolerance:
        wrong.append(name)


check("sums", (2 * on_left + on_right).get(), 2 * left + right, 1e-6)
check("sum", array.sum(on_numbers).get(), numbers.sum(), 0)
check("dot", array.dot(on_left, on_right).get(), np.dot(left.astype(np.float64), right), 0.05)
scan = InclusiveScanKernel(context, np.int32, "a + b", neutral="0")
scan(on_numbers)
check("scan", on_numbers.get(), np.cumsum(numbers), 0)
source = """
kernel void collatz(global const int *numbers, global int *steps) {
    int at = get_global_id(0), count = 0;
    for (uint number = numbers[at] + 1; number != 1; count++) number = number & 1 ? 3 * number + 1 : number / 2;
    steps[at] = count;
}"""


def steps(number):
    count = 0
    while number != 1:
        number, count = (3 * number + 1 if number & 1 else number // 2), count + 1
    return count


host = np.arange(2000, dtype=np.int32)
result = array.empty(queue, 2000, np.int32)
cl.Program(context, source).build().collatz(queue, (2000,), None, array.to_device(queue, host).data, result.data)
check("collatz", result.get(), np.array([steps(int(number) + 1) for number in host]), 0)
sys.exit(f"wrong: {', '.join(wrong)}" if wrong else 0)
