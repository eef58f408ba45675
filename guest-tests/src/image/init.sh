#!/bin/sh
# PID 1 of the guest: mounts, ports, then the job. Speaks to the host in lines on the port "control":
#   ready SECONDS       the job is about to start, SECONDS after the kernel did
#   done STATUS         the job ended
export PATH=/usr/bin:/usr/sbin:/usr/libexec/igt-gpu-tools HOME=/root TERM=linux
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm /dev/virtio-ports
mount -t devpts devpts /dev/pts
for folder in /dev/shm /run /tmp; do mount -t tmpfs tmpfs $folder; done
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing
# The deprecated automount warns once; better here than inside the first test that looks.
ls /sys/kernel/debug/tracing > /dev/null
modprobe configfs 2> /dev/null
mount -t configfs configfs /sys/kernel/config 2> /dev/null
ip link set lo up
for port in /sys/class/virtio-ports/*; do
    [ -s $port/name ] && ln -s /dev/${port##*/} /dev/virtio-ports/$(cat $port/name)
done
exec 3> /dev/virtio-ports/control
share() { mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 "$1" "$2"; }
share results /mnt || echo "problem the results folder cannot be mounted" >&3
[ -d /share ] && { share share /share || echo "problem the shared folder cannot be mounted" >&3; }
echo "ready $(cut -d' ' -f1 /proc/uptime)" >&3
. /job < /dev/null > /dev/virtio-ports/output 2> /dev/virtio-ports/errors
echo "done ${STATUS:-0}" >&3
sync
# With QEMU's -no-reboot this ends the machine; poweroff can hang after a suspend.
reboot -f
