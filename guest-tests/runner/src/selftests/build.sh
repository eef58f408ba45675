#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# Builds i915 with its self-tests against Debian's kernel headers, without a build of the kernel: i915.ko, and
# prime_numbers.ko, which Debian's kernel lacks and the tests use. Runs as root of private mount and PID namespaces, by
# `sh build.sh enter ROOT RELEASE FOLDER`: ROOT has Debian's packages, FOLDER receives the modules.
set -e
if [ "$1" = enter ]; then
    root=$2 release=$3 folder=$4
    common=$root/usr/src/linux-headers-${release%-amd64}-common
    mkdir -p "$folder/tree/drivers" "$common/drivers" "$root/build"
    ln -sf mawk "$root/usr/bin/awk"
    mount --bind "$folder" "$root/build"
    # Headers of trace points name their folder relative to the kernel's include directory.
    mount --bind "$folder/tree/drivers" "$common/drivers"
    mount --rbind /dev "$root/dev"
    mount -t proc proc "$root/proc"
    exec chroot "$root" /bin/sh /build/build.sh build "$release"
fi
release=$2
export PATH=/usr/bin:/usr/sbin LC_ALL=C DEB_BUILD_ARCH=amd64
cd /build
headers=/usr/src/linux-headers-$release
i915=/usr/src/linux-headers-${release%-amd64}-common/drivers/gpu/drm/i915
echo "unpacking the kernel's source"
set -- /usr/src/linux-source-*.tar.xz
source=$(basename "$1" .tar.xz)
tar xf "$1" --strip-components=1 -C tree "$source/drivers/gpu/drm" "$source/drivers/platform/x86" "$source/lib/math"
mkdir prime
cp tree/lib/math/prime_numbers*.[ch] prime/
echo 'obj-m := prime_numbers.o' > prime/Kbuild
# Without debugging information and BTF, which would take most of the time.
common="CONFIG_DEBUG_INFO_BTF_MODULES= -j $(nproc)"
make -C "$headers" M=/build/prime $common KCFLAGS=-g0 modules
# KVMGT is a module of its own that no test uses. DEBUG_GEM compiles GEM_BUG_ON in.
make -C "$headers" M="$i915" $common CONFIG_DRM_I915_SELFTEST=y CONFIG_DRM_I915_GVT_KVMGT= \
    KBUILD_EXTRA_SYMBOLS=/build/prime/Module.symvers \
    KCFLAGS="-g0 -DCONFIG_DRM_I915_SELFTEST=1 -DCONFIG_DRM_I915_DEBUG_GEM=1 -include /build/support.h" modules
cp "$i915/i915.ko" prime/prime_numbers.ko /build
