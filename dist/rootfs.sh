#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# Creates the root file system of dist/Containerfile without a container engine: Debian's packages and the static
# program. Run as root on a host with debootstrap:
#
#     dist/rootfs.sh ROOTFS target/x86_64-unknown-linux-musl/release/arctic
#     unshare --mount --pid --fork --root=ROOTFS --mount-proc arctic boot
#
# If ROOTFS exists, only the program in it is replaced. ARCTIC_DEBIAN_MIRROR, if set, is the URL of the mirror.
set -eu

[ $# -eq 2 ] || { echo "usage: $0 ROOTFS PROGRAM" >&2; exit 2; }
rootfs=$1
program=$2
[ -f "$program" ] || { echo "$0: there is no program $program" >&2; exit 1; }

if [ ! -e "$rootfs" ]; then
    # Renamed when it is complete. The variant minbase has apt, which depends on gpgv or sqv.
    rm -rf "$rootfs.part"
    debootstrap --variant=minbase --include=ca-certificates,debian-archive-keyring \
        trixie "$rootfs.part" ${ARCTIC_DEBIAN_MIRROR:+"$ARCTIC_DEBIAN_MIRROR"}
    rm -f "$rootfs.part"/var/cache/apt/archives/*.deb
    mv "$rootfs.part" "$rootfs"
fi
install -D -m 755 "$program" "$rootfs/usr/local/bin/arctic"
