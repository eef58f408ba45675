#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# PID 1 of the VMM's guest: loads xe and runs work on the card's functions. Its console is the VMM's output; lines that
# start with "proof:" are parsed by the host.
export PATH=/usr/bin:/usr/sbin HOME=/root TERM=linux
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmpfs /tmp
mount -t debugfs debugfs /sys/kernel/debug
up() { cut -d' ' -f1 /proc/uptime; }
tell() { echo "proof: $*"; }
PF=0000:01:00.0
tell "inner $(up)"
tell "cpus $(nproc)"
modprobe xe
tell "xe $? $(up)"
arctic guest work
tell "work $? $(up)"
VFS=$(cat /etc/vfs)
if [ "$VFS" != 0 ]; then
    for round in first second; do
        arctic guest vfs --pf $PF --count "$VFS"
        tell "vfs $round $? $(up)"
        arctic guest vfs --pf $PF --count 0
        tell "vfs-gone $round $? $(up)"
    done
fi
tell "msi $(sed -n "s/^ *[0-9]*: *\([0-9 ]*\) PCI-MSI-$PF .*/\1/p" /proc/interrupts)"
tell "taint $(cat /proc/sys/kernel/tainted)"
poweroff -f
