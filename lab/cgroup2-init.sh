#!/bin/bash
# PID 1 of a host whose systemd knows cgroup v2 alone, on a machine that has v1 or the hybrid: /sys/fs/cgroup becomes
# plain v2, and the controllers of v1, which Slurm needs, appear under /cg1. Then systemd takes over.
umount -R /sys/fs/cgroup || umount -l /sys/fs/cgroup
# shellcheck disable=SC2016
exec unshare -C bash -euc '
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    mkdir -p /cg1
    mount -t tmpfs -o mode=755 cg1 /cg1
    for controller in memory cpuset freezer devices cpuacct cpu; do
        mkdir "/cg1/$controller"
        mount -t cgroup -o "$controller" cgroup "/cg1/$controller"
    done
    exec /sbin/init'
