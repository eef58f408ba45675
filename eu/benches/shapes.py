# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Instructions of the host for one of the EU, by callgrind, for each kernel of sources with `//:` lines, the most first.

`sh eu/tests/tools.sh DIR`, once, fetches the compiler; then `python3 eu/benches/shapes.py EU DIR [SOURCE...]`, where EU is the
program `eu`; without sources, those of `shapes.cl`. A kernel with much more than the others has instructions that are executed lane
by lane; the functions that take most are printed. The start of the threads counts too."""
import glob
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

eu, tools = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
sources = sys.argv[3:] or [os.path.join(os.path.dirname(os.path.abspath(__file__)), "shapes.cl")]
root = f"{tools}/root/usr"
loader = [f"{root}/lib64/ld-linux-x86-64.so.2", "--library-path", f"{root}/lib/x86_64-linux-gnu"]
ocloc = glob.glob(f"{root}/bin/ocloc*")[0]
numbers = random.Random(1)


def contents(kind):
    """Bytes of a buffer such as `f32[16]`."""
    letters, bits, count = re.fullmatch(r"([a-z]+)(\d+)\[(\d+)\]", kind).groups()
    bits, count = int(bits), int(count)
    if letters == "zero":
        return bytes(count * bits // 8)
    if letters == "sorted":
        return struct.pack(f"<{count}I", *range(count))
    if letters == "idx":
        return struct.pack(f"<{count}I", *(numbers.getrandbits(6) for _ in range(count)))
    if letters[0] in "fwb" or letters in ("unit", "half"):
        form, most = ("f", 100) if bits == 32 else ("e", 2)
        return struct.pack(f"<{count}{form}", *(numbers.uniform(-most, most) for _ in range(count)))
    return numbers.randbytes(count * bits // 8)


def argument(name, value, directory):
    """The value of an argument for `eu run`."""
    if value.startswith(("sampler:", "local:")):
        return f"{name}={value}"
    if value.startswith("image"):
        return f"{name}=zeros:{re.sub('^image(array|buffer)', 'image', value)}"
    if value.endswith("]"):
        with open(f"{directory}/{name}", "wb") as file:
            file.write(contents(value))
        return f"{name}=@{directory}/{name}"
    return f"{name}={value.replace('(', ':').rstrip(')')}"


def measure(zebin, words, directory):
    """Instructions of the host for one of the EU, those of the EU, and the functions with the most."""
    kernel, work, group = words[:3]
    command = [eu, "run", zebin, "--kernel", kernel, "--workers", "1", "--json", "--global", work, "--local", group]
    for word in words[3:]:
        name, value = word.split("=", 1)
        if name not in ("ulp", "abs", "options", "offset"):
            command += ["--arg", argument(name, value, directory)]
    profile = f"{directory}/profile"
    tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", "--toggle-collect=*Launch*run"]
    output = subprocess.run(tool + command, capture_output=True, text=True)
    executed = json.loads(output.stdout)["instructions"]
    host = int(re.search(r"Collected : (\d+)", output.stderr)[1])
    table = subprocess.run(["callgrind_annotate", profile], capture_output=True, text=True).stdout
    lines = re.findall(r"^ *[\d,]+ \( *([\d.]+)%\)  [^:\n]*:([^\[\n]*)", table, re.M)
    return host / executed, executed, ", ".join(f"{name.strip()[-40:]} {share} %" for share, name in lines[:3])


results = []
with tempfile.TemporaryDirectory() as directory:
    for source in sources:
        options = ["-file", os.path.abspath(source), "-device", "dg2", "-exclude_ir", "-output", "a"]
        subprocess.run(loader + [ocloc, "compile", "-q"] + options + ["-options", "-cl-std=CL3.0"], cwd=directory, check=True,
                       stdout=subprocess.DEVNULL)
        for line in open(source):
            if line.startswith("//: "):
                words = line[4:].split()
                results.append((*measure(f"{directory}/a_dg2.bin", words, directory), words[0]))
print(f"{'kernel':<14} {'of the EU':>10} {'for one':>8}")
for ratio, executed, functions, kernel in sorted(results, reverse=True):
    print(f"{kernel:<14} {executed:>10} {ratio:>8.0f}  {functions}")
