#!/bin/bash
# The lab's root file system: Debian with systemd, sshd, munge, Slurm and MariaDB, as a directory that all containers
# share read-only. Prints nothing when it exists; the recipe (this file) decides on a rebuild.
# image.sh path: print where it is (or will be).
TOPIC=image; . "$(dirname "$0")/lib.sh"
image=$CACHE/$RELEASE-$(sha256sum "${BASH_SOURCE[0]}" | cut -c1-12)
[[ ${1:-} != path ]] || { echo "$image"; exit 0; }
[[ ! -d $image ]] || exit 0

PACKAGES=systemd,systemd-sysv,dbus,iproute2,iputils-ping,openssh-server,procps,less,python3,munge
PACKAGES+=,slurm-client,slurmd,slurmctld,slurmdbd,mariadb-server
# These write the kernel settings of the machine when they run in a privileged container.
HOST_WIDE=(systemd-binfmt systemd-modules-load systemd-sysctl)

# Everything is off until the lab's file tree turns it on: one image serves every role and layout.
# Debian's own Slurm units are set aside, because the legacy cluster is a source build.
bake() {
    local root=$1 units=$1/lib/systemd/system set_aside=$1/usr/share/hpcguard-lab/package-units unit
    for unit in slurmd slurmctld slurmdbd mariadb munge ssh; do
        systemctl --root="$root" --quiet disable "$unit.service"
    done
    mkdir -p "$set_aside"
    mv "$units"/slurm{d,ctld,dbd}.service "$set_aside"
    for unit in "${HOST_WIDE[@]}"; do ln -s /dev/null "$root/etc/systemd/system/$unit.service"; done
    ln -sf /dev/null "$root/etc/systemd/system/proc-sys-fs-binfmt_misc.automount"
    find "$root/etc/systemd/system" "$root/lib/systemd/system" -path '*timers.target.wants/*' -type l -delete
    rm -f "$root"/etc/ssh/ssh_host_* "$root/etc/munge/munge.key" "$root/etc/machine-id"
    touch "$root/etc/machine-id"
    rm -r "$root/etc/slurm"
}

exec 9>"/run/lock/hpcguard-lab-image"                       # two builds at once would race
flock 9
[[ ! -d $image ]] || exit 0
mkdir -p "$CACHE"
# dpkg syncs after every file: in memory the build takes 30 s, on disk 50 s.
work=$CACHE
(($(df --output=avail -BM /dev/shm 2>/dev/null | tail -n 1 | tr -dc 0-9 || echo 0) < 2048)) || work=/dev/shm
build=$(mktemp -d "$work/hpcguard-image.XXXXXX")
trap 'rm -rf "$build" "$image.new"' EXIT
export TMPDIR=$build
step "build Debian $RELEASE with Slurm (about 35 s)" \
    mmdebstrap --quiet --variant=minbase --format=directory --include="$PACKAGES" "$RELEASE" "$build/root"
bake "$build/root"
rm -rf "$image.new"
step "keep it in $image" cp -a "$build/root" "$image.new"
mv "$image.new" "$image"
