#!/bin/bash
# Remove this lab: its containers, its network, its state. Images and other labs stay.
. "$(dirname "$0")/lib.sh"

# Whatever was chosen when it came up: what is on its network is the lab.
containers() { podman ps --all --quiet --filter "network=$NETWORK"; }
for container in $(containers); do
    podman rm --force --time 0 "$container" >/dev/null 2>&1 &
done
wait
for container in $(containers); do podman rm --force --time 0 "$container" >/dev/null; done
for root in "$STATE"/*/root; do
    ! mountpoint -q "$root" || umount "$root"
done
! podman network exists "$NETWORK" || podman network rm "$NETWORK" >/dev/null
# Ansible may be closing its connections at this moment: a late entry in ssh/ is no failure.
rm -rf --one-file-system "$STATE" || [[ $(ls -A "$STATE") == ssh ]]
