#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# PID 1 of an inner guest with a VF: loads xe, runs work and does its task. The kernel passes its argument task= on as a
# variable: work (power off), rounds (repeat short work) or unplug (wait until the VF is removed and added again, and do
# short work). Its argument only= selects the checks of the work. Lines for the program in the outer guest, among them the
# output of arctic guest work, are written to a virtio port: a serial port would cost an exit to the hypervisor for each
# byte.
#   up SECONDS          init runs
#   xe STATUS SECONDS   modprobe has returned
#   report JSON         the report of arctic guest work
#   msi COUNT...        interrupts of the VF, by processor
#   taint MASK          the kernel's taint mask
#   waiting             the task follows
#   gone SECONDS        the VF's DRM node has disappeared
#   back SECONDS        a VF has appeared again
#   end                 the task has ended
export PATH=/usr/bin:/usr/sbin HOME=/root TERM=linux
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmpfs /tmp
mount -t debugfs debugfs /sys/kernel/debug
# await COMMAND...: waits until the command succeeds, at most 60 s.
await() {
    for round in $(seq 600); do
        "$@" && return
        sleep 0.1
    done
}
# As in the outer guest: longer time slices, and so fewer timer interrupts.
echo 10000000 > /sys/kernel/debug/sched/base_slice_ns
# These are modules in some kernels. The port appears some time after the driver has probed the device.
modprobe -a virtio_pci virtio_console 2> /dev/null
await [ -e /dev/vport0p1 ]
exec 3> /dev/vport0p1
up() { cut -d' ' -f1 /proc/uptime; }
report() { echo "$*" >&3; }
work() {
    arctic guest work --only "$only" --out /tmp/work.json >&3 2>&1
    report "report $(tr -d '\n' < /tmp/work.json)"
    report "msi $(sed -n 's/^ *[0-9]*: *\([0-9 ]*\) PCI-MSI.* xe$/\1/p' /proc/interrupts)"
    report "taint $(cat /proc/sys/kernel/tainted)"
}
node() { [ -e /dev/dri/renderD128 ]; }
gone() { ! node; }
report "up $(up)"
modprobe xe
report "xe $? $(up)"
work
case $task in
rounds)
    report waiting
    arctic guest rounds --until /never >&3 2>&1
    ;;
unplug)
    report waiting
    await gone && report "gone $(up)"
    await node && report "back $(up)"
    only=stores
    work
    ;;
esac
report end
reboot -f
