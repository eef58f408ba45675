# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Speed of `eu run` on kernels of the shape and size of those of applications, beside pocl on the same core.

`sh eu/tests/tools.sh DIR`, once, fetches compiler and pocl; then `DIR/python eu/benches/applications.py EU DIR`, where
EU is the program `eu`. CPU times of one worker and of one thread of pocl, medians of five runs; the results are compared."""
import glob
import hashlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["POCL_MAX_PTHREAD_COUNT"] = "1"
os.environ["PYOPENCL_NO_CACHE"] = "1"
import numpy
import pyopencl as cl

RUNS = 5
eu, tools = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "applications.cl")
directory = tempfile.mkdtemp()
root = f"{tools}/root/usr"
loader = [f"{root}/lib64/ld-linux-x86-64.so.2", "--library-path", f"{root}/lib/x86_64-linux-gnu"]
ocloc = glob.glob(f"{root}/bin/ocloc*")[0]
subprocess.run(loader + [ocloc, "compile", "-q", "-file", source, "-device", "dg2", "-exclude_ir", "-output", "a", "-options",
                         "-cl-std=CL3.0"], cwd=directory, check=True, stdout=subprocess.DEVNULL)
zebin = f"{directory}/a_dg2.bin"
random = numpy.random.default_rng(1)
int32, float32 = numpy.int32, numpy.float32


def floats(*shape):
    return random.random(shape, dtype=float32)


size, atoms, count, side = 256, 16384, 64, 512
# Near the points of a grid, so that no atoms are very close.
places = numpy.indices((16, 32, 32)).reshape(3, -1).T
positions = numpy.zeros((atoms, 4), float32)
positions[:, :3] = places * 1.5 + floats(atoms, 3) * 0.5
near = (numpy.arange(atoms)[None, :] + random.integers(1, 400, (count, atoms))) % atoms
steps = 2
blocks = -(-side // (16 - 2 * steps))
halves = 1024
left = random.random((halves, halves)).astype(numpy.float16)
right = random.random((halves, halves)).astype(numpy.float16)
pairs = numpy.ascontiguousarray(right.reshape(halves // 2, 2, halves).transpose(0, 2, 1))


def derived(password):
    """The key of a password by Python's own PBKDF2."""
    words = password.astype(">u4").tobytes()
    key = hashlib.pbkdf2_hmac("sha256", words, b"saltsalt", 50, 32)
    return numpy.frombuffer(key, ">u4").astype(numpy.uint32)


# Kernel, global size, local size, arguments (arrays are buffers, the others values), argument with the result.
KERNELS = [
    ("gemm", [size // 4] * 2, [16, 16],
     dict(c=numpy.zeros((size, size), float32), a=floats(size, size), b=floats(size, size), n=int32(size)), "c"),
    ("forces", [atoms], [128],
     dict(force=numpy.zeros((atoms, 4), float32), position=positions, neighbours=near.astype(int32), count=int32(count),
          atoms=int32(atoms), cutoff=float32(16), lj1=float32(1.5), lj2=float32(2)), "force"),
    ("stencil", [blocks * 16] * 2, [16, 16],
     dict(steps=int32(steps), power=floats(side, side), before=floats(side, side) * 100,
          after=numpy.zeros((side, side), float32), columns=int32(side), rows=int32(side), capacity=float32(0.5),
          rx=float32(0.1), ry=float32(0.1), rz=float32(0.01)), "after"),
    ("pbkdf2", [2048], [64],
     dict(key=numpy.zeros((2048, 8), numpy.uint32), passwords=random.integers(0, 2**32, (2048, 2), dtype=numpy.uint32),
          salt0=numpy.uint32(0x73616c74), salt1=numpy.uint32(0x73616c74), rounds=numpy.uint32(50)), "key"),
    ("matrices", [halves, halves // 32], [8, 1],
     dict(c=numpy.zeros((halves, halves), float32), a=left, b=pairs, n=int32(halves)), "c"),
]


def children():
    """CPU time of the processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def interpreted(kernel, work, group, arguments, result):
    """Seconds and result of `eu run`."""
    options = []
    for name, value in arguments.items():
        value.tofile(f"{directory}/{name}")
        options += ["--arg", f"{name}=@{directory}/{name}"]
    command = [eu, "run", zebin, "--kernel", kernel, "--workers", "1", "--global", ",".join(map(str, work)), "--local",
               ",".join(map(str, group)), "--save", f"{result}={directory}/result"] + options
    seconds = []
    for _ in range(RUNS):
        before = children()
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        seconds.append(children() - before)
    return statistics.median(seconds), numpy.fromfile(f"{directory}/result", arguments[result].dtype)


def compiled(kernel, work, group, arguments, result):
    """Seconds and result of pocl."""
    function = cl.Kernel(program, kernel)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffers = {name: cl.Buffer(context, flags, hostbuf=value) for name, value in arguments.items() if value.shape}
    for index, (name, value) in enumerate(arguments.items()):
        function.set_arg(index, buffers.get(name, value))
    seconds = []
    for _ in range(RUNS + 1):
        before = time.process_time()
        cl.enqueue_nd_range_kernel(queue, function, work, group).wait()
        seconds.append(time.process_time() - before)
    output = numpy.empty_like(arguments[result])
    cl.enqueue_copy(queue, output, buffers[result]).wait()
    # The first run compiles.
    return statistics.median(seconds[1:]), output.reshape(-1)


platform = next(p for p in cl.get_platforms() if "Portable" in p.name)
context = cl.Context(platform.get_devices())
queue = cl.CommandQueue(context)
program = cl.Program(context, open(source).read()).build(["-cl-std=CL1.2"])
print(f"{'kernel':<10} {'eu, ms':>8} {'pocl, ms':>9} {'ratio':>6}")
for kernel, work, group, arguments, result in KERNELS:
    own, values = interpreted(kernel, work, group, arguments, result)
    if kernel == "matrices":
        other, expected = None, (left.astype(float32) @ right.astype(float32)).reshape(-1)
    else:
        other, expected = compiled(kernel, work, group, arguments, result)
    if kernel == "pbkdf2":
        assert (values[:8] == derived(arguments["passwords"][0])).all()
    if values.dtype == numpy.uint32:
        assert (values == expected).all(), kernel
    else:
        assert numpy.allclose(values, expected, rtol=1e-4, atol=1e-4), kernel
    line = f"{kernel:<10} {own * 1e3:>8.1f}"
    print(line if other is None else f"{line} {other * 1e3:>9.2f} {own / other:>6.1f}", flush=True)
