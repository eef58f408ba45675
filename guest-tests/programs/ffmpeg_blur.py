# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""FFmpeg's avgblur_opencl, on an image for each plane, compared with means that numpy computes."""
import subprocess
import sys

import numpy as np

WIDTH, HEIGHT, PICTURES, RADIUS = 320, 240, 5, 3
SOURCE = f"testsrc2=size={WIDTH}x{HEIGHT}:rate={PICTURES}:duration=1"


def pictures(filters):
    command = ["ffmpeg", "-hide_banner", "-v", "error", "-init_hw_device", "opencl=card:.0,device_type=gpu"]
    command += ["-filter_hw_device", "card", "-f", "lavfi", "-i", SOURCE, "-vf", filters, "-f", "rawvideo", "-"]
    raw = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    frames = np.frombuffer(raw, np.uint8).reshape(PICTURES, -1)
    sizes = [(HEIGHT, WIDTH), (HEIGHT // 2, WIDTH // 2), (HEIGHT // 2, WIDTH // 2)]
    ends = np.cumsum([height * width for height, width in sizes])
    planes = np.split(frames, ends[:-1], axis=1)
    return [plane.reshape(PICTURES, *size).astype(float) for plane, size in zip(planes, sizes)]


def mean(plane, axis):
    """Means of 2 * RADIUS + 1 points, rounded as they are stored."""
    length = plane.shape[axis] - 2 * RADIUS
    parts = [np.take(plane, range(first, first + length), axis) for first in range(2 * RADIUS + 1)]
    return np.rint(sum(parts) / len(parts))


plain = pictures("format=yuv420p")
blurred = pictures(f"format=yuv420p,hwupload,avgblur_opencl={RADIUS},hwdownload,format=yuv420p")
most = 0
for before, after in zip(plain, blurred):
    inner = after[:, RADIUS:-RADIUS, RADIUS:-RADIUS]
    most = max(most, np.abs(inner - mean(mean(before, 2), 1)).max())
print(f"{PICTURES} pictures of {WIDTH} x {HEIGHT}: largest difference {most:.0f} of 255")
sys.exit(0 if most <= 1 else "wrong: pictures differ")
