#!/bin/sh
# PID 1 of a machine that has KVM: runs the VMM on it. Speaks to the host in lines on the console that begin with "proof:".
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
