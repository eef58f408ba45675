# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Runs kernels with pocl on the host and writes their buffers.

The directory has `jobs.json`: a list of {source, options, kernel, global, local, arguments: [{file, kind, size}]}. Buffers are
replaced by their contents after the kernel."""
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
        path = os.path.join(directory, argument["file"])
        data = numpy.fromfile(path, dtype=numpy.uint8)
        if argument["kind"] == "value":
            kernel.set_arg(index, data.tobytes())
            continue
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        buffer = cl.Buffer(context, flags, hostbuf=data)
        kernel.set_arg(index, buffer)
        saved.append((path, data, buffer))
    cl.enqueue_nd_range_kernel(queue, kernel, job["global"], job["local"]).wait()
    for path, data, buffer in saved:
        cl.enqueue_copy(queue, data, buffer).wait()
        data.tofile(path)
print("pocl ran", len(programs), "programs")
