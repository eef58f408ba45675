# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""OpenCV's OpenCL functions (UMat), compared with its functions for the CPU (Mat)."""
import sys

import cv2
import numpy as np

cv2.ocl.setUseOpenCL(True)
device = cv2.ocl.Device.getDefault()
print(device.name() if cv2.ocl.useOpenCL() else "no OpenCL")
if "Flex" not in device.name():
    sys.exit("OpenCV does not use the card")
random = np.random.default_rng(1)
picture = random.integers(0, 256, (240, 320), dtype=np.uint8)
matrix = random.uniform(-1, 1, (96, 96)).astype(np.float32)
functions = {
    # Not 5 x 5 of bytes: the first and last rows of OpenCV's kernel for GPUs of Intel (gaussianBlur5x5.cl) are others than on the CPU,
    # because it takes other rows beyond the border.
    "GaussianBlur of bytes": (lambda x: cv2.GaussianBlur(x, (3, 3), 1.5), picture, 1),
    "GaussianBlur of floats": (lambda x: cv2.GaussianBlur(x, (5, 5), 1.5), picture.astype(np.float32), 1e-3),
    "resize": (lambda x: cv2.resize(x, (200, 150), interpolation=cv2.INTER_LINEAR), picture, 1),
    "threshold": (lambda x: cv2.threshold(x, 127, 255, cv2.THRESH_BINARY)[1], picture, 0),
    "Sobel": (lambda x: cv2.Sobel(x, cv2.CV_16S, 1, 0), picture, 0),
    "gemm": (lambda x: cv2.gemm(x, x, 1.0, None, 0.0), matrix, 1e-4),
}
wrong = []
for name, (function, data, tolerance) in functions.items():
    result = function(cv2.UMat(data)).get().astype(np.float64)
    error = np.abs(result - function(data)).max()
    print(f"{name}: largest difference {error:.2e}")
    if not error <= tolerance:
        wrong.append(name)
sys.exit(f"wrong: {', '.join(wrong)}" if wrong else 0)
