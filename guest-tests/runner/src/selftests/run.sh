#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# Runs i915's live self-tests of the groups in /share/groups (`LINE NAME`, in order) in the guest, except the subtests in
# /share/filter. A failed subtest ends the load of the module: the next load leaves it out and starts at its group. The
# kernel logs of the loads are appended to /share/log as 1.log, 2.log... Exit status 10: the module cannot be unloaded
# any more, and another guest has to continue; /share/groups and /share/filter say where. i915 hangs so if a subtest has
# wedged the GPU with GuC submission (tasklet_kill in guc_sched_engine_destroy).
log=/share/log
up() { cut -d. -f1 /proc/uptime; }
unload() {
    for module in mei_pxp mei_hdcp mei_gsc_proxy mei_gsc mei_me mtd_intel_dg; do rmmod $module 2> /dev/null; done
    for device in /sys/bus/pci/drivers/i915/0000*; do
        [ -e "$device" ] && echo "${device##*/}" > /sys/bus/pci/drivers/i915/unbind
    done
    for try in 1 2 3 4 5; do
        grep -q '^i915 ' /proc/modules || return 0
        rmmod i915 2> /dev/null && return 0
        sleep 1
    done
    return 1
}
mkdir -p $log
touch /share/filter
run=$(ls $log | wc -l)
unload || exit 3
while [ -s /share/groups ]; do
    run=$((run + 1))
    [ $run -gt 100 ] && { echo "i915 was loaded 100 times"; exit 5; }
    filter=$(cat /share/filter)
    groups=$(sed 's/\([0-9]*\) \(.*\)/igt__\1__live_\2=1/' /share/groups)
    dmesg -c > /dev/null
    modprobe i915 live_selftests=-1 $groups ${filter:+st_filter=$filter} < /dev/null &
    pid=$! since=$(up) last= stuck=
    while kill -0 $pid 2> /dev/null; do
        sleep 1
        line=$(dmesg | grep -e 'i915: Running' -e 'failed with error' | tail -n 1)
        [ "$line" = "$last" ] || { last=$line since=$(up); echo "$line"; }
        # After a failure only the removal of the driver is left.
        case "$line" in *failed*) limit=60 ;; *) limit=300 ;; esac
        [ $(($(up) - since)) -gt $limit ] && { cat /proc/$pid/stack; stuck=1; break; }
    done
    dmesg > $log/$run.log
    group=$(sed -n 's/.*i915: Running \([a-zA-Z_0-9]*\)$/\1/p' $log/$run.log | tail -n 1)
    [ "$group" ] || { echo "no group was run"; exit 4; }
    failed=$(sed -n 's/.*i915\/[a-zA-Z_0-9]*: \([a-zA-Z_0-9]*\) failed with error.*/\1/p' $log/$run.log | tail -n 1)
    if [ "$stuck" ] && [ -z "$failed" ]; then
        failed=$(sed -n 's/.*i915: Running [a-zA-Z_0-9]*\/\([a-zA-Z_0-9]*\)$/\1/p' $log/$run.log | tail -n 1)
        echo "arctic: $failed is stuck" >> $log/$run.log
    fi
    sed -n "/ $group\$/,\$p" /share/groups > /tmp/next
    case ",$filter," in *",!$failed,"*) failed= ;; esac
    if [ "$failed" ]; then
        echo "${filter:+$filter,}!$failed" > /share/filter
    elif [ "$(wc -l < /tmp/next)" = 1 ] && [ -z "$stuck" ]; then
        # The last group has run and no subtest has failed.
        : > /tmp/next
    else
        # Without the name of a subtest the group itself is left out.
        sed -i 1d /tmp/next
    fi
    cp /tmp/next /share/groups
    { [ -z "$stuck" ] && unload; } || exit 10
done
echo "all groups were run, in $run loads"
