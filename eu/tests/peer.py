# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Runs kernels with pocl on the host and writes their buffers.

The directory has `jobs.json`: a list of {source, options, kernel, global, local, offset, arguments: [{file, kind, …}]}. Buffers
and images are replaced by their contents after the kernel."""
import json
import os
import sys

import numpy
import pyopencl as cl

directory = sys.argv[1]
platform = next(p for p in cl.get_platforms() if "Portable" in p.name)
context = cl.Context(platform.get_devices())
queue = cl.CommandQueue(context)
programs = {}
samplers = []
KINDS = {"Snorm": 0x10d0, "Unorm": 0x10d2, "Sint": 0x10d7, "Uint": 0x10da, "Float": 0x10dc}
ADDRESSING = {
    "Wrap": cl.addressing_mode.REPEAT,
    "Mirror": cl.addressing_mode.MIRRORED_REPEAT,
    "Clamp": cl.addressing_mode.CLAMP_TO_EDGE,
    "Border": cl.addressing_mode.CLAMP,
}


def image(argument, data):
    """An image with these bytes, and the numbers of its channels are those of OpenCL."""
    order = 0x10b6 if argument["bgra"] else {1: 0x10b0, 2: 0x10b2, 4: 0x10b5}[argument["channels"]]
    kind = KINDS[argument["type"]] + argument["bytes"].bit_length() - 1
    description, shape = cl.ImageFormat(order, kind), tuple(argument["size"])
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    if argument["buffer"]:
        buffer = cl.Buffer(context, flags, hostbuf=data)
        return cl.create_image(context, cl.mem_flags.READ_WRITE, description, shape=shape, buffer=buffer)
    return cl.create_image(context, flags, description, shape=shape, hostbuf=data, is_array=argument["array"])


for job in json.load(open(os.path.join(directory, "jobs.json"))):
    key = job["source"], job["options"]
    if key not in programs:
        programs[key] = cl.Program(context, open(job["source"]).read()).build(job["options"].split() + ["-DPOCL"])
    kernel = cl.Kernel(programs[key], job["kernel"])
    saved = []
    for index, argument in enumerate(job["arguments"]):
        if argument["kind"] == "local":
            kernel.set_arg(index, cl.LocalMemory(argument["size"]))
            continue
        if argument["kind"] == "sampler":
            mode = cl.filter_mode.LINEAR if argument["linear"] else cl.filter_mode.NEAREST
            # A kernel does not keep its samplers.
            samplers.append(cl.Sampler(context, argument["normalized"], ADDRESSING[argument["addressing"]], mode))
            kernel.set_arg(index, samplers[-1])
            continue
        path = os.path.join(directory, argument["file"])
        data = numpy.fromfile(path, dtype=numpy.uint8)
        if argument["kind"] == "value":
            kernel.set_arg(index, data.tobytes())
            continue
        if argument["kind"] == "image":
            buffer = image(argument, data)
            kernel.set_arg(index, buffer)
            saved.append((path, data, buffer, argument))
            continue
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        buffer = cl.Buffer(context, flags, hostbuf=data)
        kernel.set_arg(index, buffer)
        saved.append((path, data, buffer, None))
    cl.enqueue_nd_range_kernel(queue, kernel, job["global"], job["local"], global_work_offset=job["offset"]).wait()
    for path, data, buffer, shape in saved:
        if shape is None:
            cl.enqueue_copy(queue, data, buffer).wait()
        elif not shape["buffer"]:
            region = (shape["size"] + [1, 1])[:3]
            # `enqueue_copy` knows no images of one dimension.
            cl._cl._enqueue_read_image(queue, buffer, (0, 0, 0), region, data, is_blocking=True)
        data.tofile(path)
print("pocl ran", len(programs), "programs")
