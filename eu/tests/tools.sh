#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# Fetches compiler, assembler and OpenCL on the host into the directory $1: ocloc, iga64 (Debian sid) and pocl (PyPI's, or that of
# Debian 12 if PyPI's does not run a kernel on this processor). Debian's signatures are checked by apt. `$1/python` runs
# Python with pyopencl on that pocl. Prints nothing if they are there.
set -eu
directory=$1
mirror=${ARCTIC_DEBIAN_MIRROR:-$(sed -n 's/^URIs: //p' /etc/apt/sources.list.d/*.sources | head -n 1)}
mkdir -p "$directory"
cd "$directory"

# unpack SUITE DIRECTORY PACKAGE...: the packages of a suite and what they depend on, without documents.
unpack() {
    suite=$1 root=$2
    shift 2
    apt=$PWD/apt
    rm -rf "$apt"
    mkdir -p "$apt/etc/apt.conf.d" "$apt/etc/preferences.d" "$apt/state/lists/partial" "$apt/cache/archives/partial"
    : > "$apt/state/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" > "$apt/etc/sources.list"
    get="apt-get -q -o Dir::Etc=$apt/etc -o Dir::Etc::sourcelist=$apt/etc/sources.list -o Dir::Etc::sourceparts=/dev/null
        -o Dir::State=$apt/state -o Dir::State::status=$apt/state/status -o Dir::Cache=$apt/cache -o APT::Architecture=amd64
        -o APT::Install-Recommends=0 -o APT::Sandbox::User=root -o Debug::NoLocking=1"
    $get update
    $get install -y --download-only "$@"
    mkdir -p "$root/usr/bin" "$root/usr/sbin" "$root/usr/lib" "$root/usr/lib64"
    for link in bin sbin lib lib64; do ln -sfn "usr/$link" "$root/$link"; done
    for package in "$apt"/cache/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar -x -C "$root" --keep-directory-symlink --exclude=./usr/share/doc \
            --exclude=./usr/share/man --exclude=./usr/share/locale
    done
    rm -r "$apt"
}

# Makes `python` of the lines on stdin, which set its environment. Returns whether it runs a kernel.
choose() {
    { echo '#!/bin/sh'; cat; echo "exec $PWD/venv/bin/python \"\$@\""; } > python
    chmod +x python
    # Without kernels that an earlier run has compiled.
    POCL_KERNEL_CACHE=0 PYOPENCL_NO_CACHE=1 ./python - > pocl.log 2>&1 << 'END'
import numpy
import pyopencl as cl

platform = next(p for p in cl.get_platforms() if "Portable" in p.name)
context = cl.Context(platform.get_devices())
queue = cl.CommandQueue(context)
program = cl.Program(context, "kernel void k(global int *o) { o[get_global_id(0)] = get_global_id(0) * 3; }").build()
buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 64)
cl.Kernel(program, "k")(queue, [16], [8], buffer).wait()
result = numpy.zeros(16, numpy.int32)
cl.enqueue_copy(queue, result, buffer).wait()
assert (result == numpy.array(range(16)) * 3).all(), result
END
}

if [ ! -x root/usr/bin/iga64 ]; then
    unpack sid root intel-ocloc libigc2-tools libigdfcl2 libigc2
fi
if [ ! -e venv/complete ]; then
    rm -rf venv processor
    python3 -m venv venv
    venv/bin/pip install -q pocl-binary-distribution==3.0 pyopencl numpy
    touch venv/complete
fi
# The choice is that of the processor for which it was made: a cache can come to another host.
processor=$(grep -m 4 -E '^(cpu family|model|flags)' /proc/cpuinfo)
if [ "$processor" != "$(cat processor 2> /dev/null)" ]; then
    if ! choose < /dev/null; then
        if [ ! -e pocl/complete ]; then
            rm -rf pocl
            unpack bookworm pocl pocl-opencl-icd
            # Those of the host are the same or newer, and are in its processes already.
            rm -f pocl/usr/lib/x86_64-linux-gnu/lib[cm].so.6 pocl/usr/lib/x86_64-linux-gnu/libstdc++.so.6 \
                pocl/usr/lib/x86_64-linux-gnu/libgcc_s.so.1
            mkdir pocl/vendors
            echo "$PWD/pocl/usr/lib/x86_64-linux-gnu/libpocl.so.2" > pocl/vendors/pocl.icd
            touch pocl/complete
        fi
        libraries=$PWD/pocl/usr/lib/x86_64-linux-gnu
        choose << END || { echo "neither PyPI's pocl nor Debian's runs a kernel on this processor: see $PWD/pocl.log" >&2; exit 1; }
export OCL_ICD_VENDORS=$PWD/pocl/vendors LD_LIBRARY_PATH=$libraries
END
    fi
    echo "$processor" > processor
fi
