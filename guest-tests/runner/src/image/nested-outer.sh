#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# PID 1 of a VM with KVM: runs the VMM. Lines on the console that start with "proof:" are parsed by the host.
export PATH=/usr/bin:/usr/sbin HOME=/root TERM=linux
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmpfs /tmp
modprobe kvm_amd
echo "proof: outer $(cut -d' ' -f1 /proc/uptime)"
set --
while read -r argument; do set -- "$@" "$argument"; done < /inner/arguments
vmm --kernel /inner/kernel --initrd /inner/initrd --append "$(cat /inner/append)" "$@" < /dev/null
echo "proof: vmm $?"
sync
reboot -f
