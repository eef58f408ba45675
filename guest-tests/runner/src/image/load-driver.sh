#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
# Loads drivers as a distribution's hotplug does: first the card's driver (/etc/card-driver), then a driver for every
# modalias, repeated for devices that appear meanwhile (the mei bus is populated when its firmware client responds).
# Prints for the host:
#   probe START END STATUS    uptime before and after the driver's modprobe, and modprobe's exit status
#   modules NAME...           the modules loaded afterwards
# Exits with that status.
up() { cut -d' ' -f1 /proc/uptime; }
START=$(up)
modprobe "$(cat /etc/card-driver)"
STATUS=$?
echo "probe $START $(up) $STATUS"
BEFORE=
for round in 1 2 3 4 5; do
    # Every bus reports the alias in uevent; the auxiliary bus has no modalias file.
    ALIASES=$(find /sys/devices -name uevent | xargs sed -n 's/^MODALIAS=//p' | sort -u)
    [ "$ALIASES" = "$BEFORE" ] && break
    modprobe -a -b $ALIASES 2> /dev/null
    BEFORE=$ALIASES
    sleep 0.2
done
echo "modules $(cut -d' ' -f1 /proc/modules | sort | tr '\n' ' ')"
exit $STATUS
