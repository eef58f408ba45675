#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# Makes a Debian guest for `arctic qemu` (docs/own-guest.md): DIR/root.img, a file system with Debian's kernel, placeholder
# firmware and tools for GPUs, and its kernel and initrd as DIR/vmlinuz and DIR/initrd.img. Root logs in without password.
# Needs mmdebstrap, genext2fs and e2fsprogs, 3 GiB of disk, and root or user namespaces:
#
#     dist/own-guest.sh DIR [ARCTIC]
#
# ARCTIC is the program. ARCTIC_DEBIAN_MIRROR, if set, is the URL of the mirror, in place of the host's; SUITE the Debian
# suite (sid). PACKAGES: further packages, separated by commas.
set -eu

[ $# -ge 1 ] || { echo "usage: $0 DIR [ARCTIC]" >&2; exit 2; }
missing=
for program in mmdebstrap genext2fs; do
    command -v $program > /dev/null || missing="$missing $program"
done
[ -x /sbin/e2fsck ] && [ -x /sbin/resize2fs ] || missing="$missing e2fsprogs"
[ -z "$missing" ] || { echo "$0: packages are missing; install them with: apt-get install$missing" >&2; exit 1; }
mkdir -p "$1"
"${2:-arctic}" firmware --out "$1/firmware"
cd "$1"

# The host's mirror, and its word on the age of package lists: a mirror may be a snapshot.
mirror=${ARCTIC_DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' | grep -m 1 '/debian/*$' || true)}
valid=true
eval "$(apt-config shell valid Acquire::Check-Valid-Until)"

rm -f root.img
mmdebstrap --variant=important --format=ext2 --aptopt="Acquire::Check-Valid-Until \"$valid\"" \
    --include=linux-image-amd64,pciutils,clinfo,intel-opencl-icd,intel-gpu-tools,vainfo,intel-media-va-driver \
    --include=lm-sensors,igsc,libze-intel-gpu1,libze1${PACKAGES:+,$PACKAGES} \
    --essential-hook='mkdir -p "$1/usr/lib/firmware"' \
    --essential-hook='copy-in firmware/i915 /usr/lib/firmware' \
    --customize-hook='chroot "$1" passwd --delete root' \
    --customize-hook='download /vmlinuz vmlinuz' \
    --customize-hook='download /initrd.img initrd.img' \
    "${SUITE:-sid}" root.img ${mirror:+"$mirror"}
truncate --size 4G root.img
/sbin/e2fsck -fy root.img || [ $? -eq 1 ]
/sbin/resize2fs root.img
