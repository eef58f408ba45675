#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# Mounts the image with the compute stack, and prepares roots for programs that use it:
#   compute-root                   mounts the image on /compute
#   compute-root ROOT              makes ROOT the image with all of this guest's devices and shares
#   compute-root ROOT ADDRESS      with the render node of the card's function at ADDRESS only
fail() { echo "compute-root: $1" >&2; exit 1; }
if [ ! -d /compute/usr ]; then
    modprobe -a virtio_blk ext4 2> /dev/null
    for round in $(seq 50); do
        for disk in /sys/block/vd*; do
            [ "$(cat $disk/serial 2> /dev/null)" = arctic-compute ] && break 2
        done
        disk=
        sleep 0.1
    done
    [ -n "$disk" ] || fail "the guest has no drive with the serial number arctic-compute"
    mkdir -p /compute
    mount -t ext4 -o ro,noatime "/dev/${disk##*/}" /compute || fail "/dev/${disk##*/} cannot be mounted"
fi
[ -n "$1" ] || exit 0
root=$1
mkdir -p "$root"
mount --bind /compute "$root" || fail "$root cannot be mounted"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
for folder in tmp root run var; do mount -t tmpfs tmpfs "$root/$folder"; done
mkdir -p "$root/var/tmp" "$root/root/.cache/neo_compiler_cache"
for folder in opt mnt share; do
    [ -d /$folder ] && mount --bind /$folder "$root/$folder"
done
if [ -z "$2" ]; then
    mount --rbind /dev "$root/dev"
    exit 0
fi
node=$(ls "/sys/bus/pci/devices/$2/drm" 2> /dev/null | grep renderD)
[ -n "$node" ] || fail "the function $2 has no render node"
mount -t tmpfs -o mode=755 dev "$root/dev"
mkdir -p "$root/dev/dri" "$root/dev/shm"
for device in null zero full random urandom; do cp -a /dev/$device "$root/dev/$device"; done
cp -a "/dev/dri/$node" "$root/dev/dri/$node"
