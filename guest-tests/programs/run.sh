#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# Runs programs in the guest: the lines of the file $1 are NAME, SECONDS and a command, separated by tabs. For each, the directory
# $2 gets the output NAME.txt, and NAME.result with the exit status (124: it did not end in time) and its seconds.
export PYTHONPATH=/share/python PATH=$PATH:/usr/libexec/x86_64-linux-gnu/ggml
now() { cut -d' ' -f1 /proc/uptime; }
tab=$(printf '\t')
while IFS=$tab read -r name limit command; do
    start=$(now)
    cd /share/programs && timeout "$limit" sh -c "$command" > "$2/$name.txt" 2>&1 < /dev/null
    status=$?
    # busybox's timeout ends a program with SIGTERM.
    [ $status = 143 ] && status=124
    echo "$status $(echo "$start $(now)" | awk '{ print $2 - $1 }')" > "$2/$name.result"
    echo "$name: status $status"
done < "$1"
