#!/bin/bash
# Remove this lab: its containers, its network, its state. Images and other labs stay.
. "$(dirname "$0")/lib.sh"

for host in "${HOSTS[@]}"; do
    podman rm --force --time 0 "$PREFIX$host" >/dev/null 2>&1 &
done
wait
for host in "${HOSTS[@]}"; do
    ! podman container exists "$PREFIX$host" || podman rm --force --time 0 "$PREFIX$host" >/dev/null
    ! mountpoint -q "$STATE/$host/root" || umount "$STATE/$host/root"
done
! podman network exists "$NETWORK" || podman network rm "$NETWORK" >/dev/null
# Ansible may be closing its connections at this moment: a late entry in ssh/ is no failure.
rm -rf --one-file-system "$STATE" || [[ $(ls -A "$STATE") == ssh ]]
