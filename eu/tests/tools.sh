#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# Fetches compiler, assembler and OpenCL on the host into the directory $1: ocloc, iga64 (Debian sid, signatures checked by apt)
# and pocl (PyPI). Prints nothing if they are there.
set -eu
directory=$1
mirror=${ARCTIC_DEBIAN_MIRROR:-$(sed -n 's/^URIs: //p' /etc/apt/sources.list.d/*.sources | head -n 1)}
mkdir -p "$directory"
cd "$directory"
if [ ! -x root/usr/bin/iga64 ]; then
    apt=$PWD/apt
    mkdir -p "$apt/etc/apt.conf.d" "$apt/etc/preferences.d" "$apt/state/lists/partial" "$apt/cache/archives/partial"
    : > "$apt/state/status"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" > "$apt/etc/sources.list"
    get="apt-get -q -o Dir::Etc=$apt/etc -o Dir::Etc::sourcelist=$apt/etc/sources.list -o Dir::Etc::sourceparts=/dev/null
        -o Dir::State=$apt/state -o Dir::State::status=$apt/state/status -o Dir::Cache=$apt/cache -o APT::Architecture=amd64
        -o APT::Install-Recommends=0 -o APT::Sandbox::User=root -o Debug::NoLocking=1"
    $get update
    $get install -y --download-only intel-ocloc libigc2-tools libigdfcl2 libigc2
    mkdir -p root/usr/bin root/usr/sbin root/usr/lib root/usr/lib64
    for link in bin sbin lib lib64; do ln -sfn "usr/$link" "root/$link"; done
    for package in "$apt"/cache/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar -x -C root --keep-directory-symlink --exclude=./usr/share
    done
    rm -r "$apt"
fi
if [ ! -e venv/complete ]; then
    rm -rf venv
    python3 -m venv venv
    venv/bin/pip install -q pocl-binary-distribution==3.0 pyopencl numpy
    touch venv/complete
fi
