#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# PID 1 of the guest: mounts file systems, opens the ports and runs the job. Reports to the host on the port "control":
#   ready SECONDS       the job is about to start, SECONDS after the start of the kernel
#   clock SECONDS       the current time of the guest's clock (CLOCK_BOOTTIME)
#   done STATUS         the job has ended
export PATH=/usr/bin:/usr/sbin:/usr/libexec/igt-gpu-tools HOME=/root TERM=linux
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm /dev/virtio-ports
mount -t devpts devpts /dev/pts
for folder in /dev/shm /run /tmp; do mount -t tmpfs tmpfs $folder; done
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing
# The deprecated automount prints a warning on first use; trigger it here and not inside a test.
ls /sys/kernel/debug/tracing > /dev/null
modprobe configfs 2> /dev/null
mount -t configfs configfs /sys/kernel/config 2> /dev/null
ip link set lo up
# These are modules in some kernels. The port names appear some time after the driver has probed the console.
modprobe -a virtio_pci virtio_console 2> /dev/null
ports=/dev/virtio-ports
for round in $(seq 100); do
    for port in /sys/class/virtio-ports/*; do
        [ -s $port/name ] && ln -sf /dev/${port##*/} $ports/$(cat $port/name)
    done
    [ -e $ports/control ] && [ -e $ports/output ] && [ -e $ports/errors ] && [ -e $ports/agent ] && break
    sleep 0.1
done
exec 3> /dev/virtio-ports/control
share() { mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 "$1" "$2"; }
share results /mnt || echo "problem the results folder cannot be mounted" >&3
[ -d /share ] && { share share /share || echo "problem the shared folder cannot be mounted" >&3; }
# Sends several readings, of which the host uses the least delayed one. Starts no process, since that would add delay.
clock() {
    for reading in 1 2 3 4; do
        read -r now idle < /proc/uptime
        echo "clock $now" >&3
        sleep 0.02
    done
}
echo "ready $(cut -d' ' -f1 /proc/uptime)" >&3
clock
. /job < /dev/null > /dev/virtio-ports/output 2> /dev/virtio-ports/errors
clock
echo "done ${STATUS:-0}" >&3
sync
# With QEMU's -no-reboot this ends the VM; poweroff can hang after a suspend.
reboot -f
