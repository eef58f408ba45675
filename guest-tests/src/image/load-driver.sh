#!/bin/sh
# Does for the card what a distribution's hotplug does: its driver (/etc/card-driver) first, then a driver for every modalias, and again for the
# devices that appeared meanwhile (the mei bus fills while its firmware client answers). Prints for the host:
#   probe START END STATUS    uptime before and after its modprobe, and its exit status
#   modules NAME...           what is loaded afterwards
up() { cut -d' ' -f1 /proc/uptime; }
START=$(up)
modprobe "$(cat /etc/card-driver)"
STATUS=$?
echo "probe $START $(up) $STATUS"
BEFORE=
for round in 1 2 3 4 5; do
    # Every bus tells an alias in uevent; the auxiliary bus has no modalias file.
    ALIASES=$(find /sys/devices -name uevent | xargs sed -n 's/^MODALIAS=//p' | sort -u)
    [ "$ALIASES" = "$BEFORE" ] && break
    modprobe -a -b $ALIASES 2> /dev/null
    BEFORE=$ALIASES
    sleep 0.2
done
echo "modules $(cut -d' ' -f1 /proc/modules | sort | tr '\n' ' ')"
