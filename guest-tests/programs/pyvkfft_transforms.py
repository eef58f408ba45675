# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""pyvkfft (VkFFT by OpenCL): transforms of one and two dimensions, compared with numpy."""
import sys

import numpy as np
import pyopencl as cl
import pyopencl.array as array
from pyvkfft.opencl import VkFFTApp

platform = next(platform for platform in cl.get_platforms() if "Intel" in platform.name)
queue = cl.CommandQueue(cl.Context(platform.get_devices()))
random = np.random.default_rng(1)
wrong = []
for shape, dimensions in [((4, 1024), 1), ((8, 1000), 1), ((64, 64), 2)]:
    data = (random.uniform(-1, 1, shape) + 1j * random.uniform(-1, 1, shape)).astype(np.complex64)
    on_card = array.to_device(queue, data)
    app = VkFFTApp(on_card.shape, on_card.dtype, queue, ndim=dimensions, inplace=True)
    app.fft(on_card)
    axes = (0, 1) if dimensions == 2 else (1,)
    expected = np.fft.fftn(data, axes=axes)
    error = np.abs(on_card.get() - expected).max() / np.abs(expected).max()
    app.ifft(on_card)
    back = np.abs(on_card.get() - data).max()
    print(f"{shape}: relative difference {error:.1e}, there and back {back:.1e}")
    if not (error < 1e-5 and back < 1e-5):
        wrong.append(str(shape))
sys.exit(f"wrong: {', '.join(wrong)}" if wrong else 0)
