#!/bin/bash
# The lab's root file system: Debian with systemd, sshd, munge, Slurm and MariaDB, as a directory that all containers
# share read-only. Does nothing when it exists; a changed recipe builds a new one.    image.sh path: only say where.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/choices.sh"

PACKAGES=systemd,systemd-sysv,dbus,iproute2,iputils-ping,openssh-server,procps,less,python3,python3-clustershell,munge
PACKAGES+=,slurm-client,slurmd,slurmctld,slurmdbd,mariadb-server
# Without these lines mmdebstrap takes the release with its updates.
sources=() options=()
case $RELEASE in
    bullseye)
        PACKAGES+=,python2.7
        sources=("deb http://deb.debian.org/debian bullseye main")
        ;;
    trixie) PACKAGES+=,slurm-wlm-mysql-plugin ;;
    sid)
        PACKAGES+=,slurm-wlm-mysql-plugin,openssh-client
        # Its index is good for a week, which a mirror that lags behind may pass.
        options=(--aptopt='Acquire::Check-Valid-Until "false"')
        ;;
esac
# These write the kernel settings of the machine when they run in a privileged container.
HOST_WIDE=(systemd-binfmt.service systemd-modules-load.service systemd-sysctl.service proc-sys-fs-binfmt_misc.automount)

# Everything is off until the lab's file tree turns it on: one image serves every role and layout.
bake() {
    local root=$1 units=$1/lib/systemd/system set_aside=$1/usr/share/hpcguard-lab/package-units unit
    for unit in slurmd slurmctld slurmdbd mariadb munge ssh; do
        chroot "$root" systemctl --quiet disable "$unit.service"
    done
    # The legacy cluster is a source build: Debian's own units and configuration are not to be seen.
    mkdir -p "$set_aside"
    mv "$units"/slurm{d,ctld,dbd}.service "$set_aside"
    rm -r "$root/etc/slurm"
    for unit in "${HOST_WIDE[@]}"; do ln -sf /dev/null "$root/etc/systemd/system/$unit"; done
    find "$root/etc/systemd/system" "$units" -path '*/timers.target.wants/*' -type l -delete
    # What must differ from lab to lab.
    rm -f "$root"/etc/ssh/ssh_host_* "$root/etc/munge/munge.key"
    : >"$root/etc/machine-id"
    # Who runs jobs.
    chroot "$root" useradd --create-home --uid 2001 --shell /bin/bash alice
}

image=$CACHE/$RELEASE-$({ declare -p PACKAGES HOST_WIDE; declare -f bake; } | sha256sum | cut -c1-12)
[[ ${1:-} != path ]] || { echo "$image"; exit 0; }
[[ ! -d $image ]] || exit 0

exec 9>/run/lock/hpcguard-lab-image     # two builds at once would race
flock 9
[[ ! -d $image ]] || exit 0
mkdir -p "$CACHE"
# dpkg syncs after every file: in memory the build takes 30 s, on disk 50 s.
place=$CACHE
free=$(df --output=avail -BM /dev/shm 2>/dev/null | tr -dc '0-9\n' | tail -n 1) || true
((${free:-0} < 2048)) || place=/dev/shm
build=$(mktemp -d "$place/hpcguard-image.XXXXXX")
trap 'rm -rf "$build" "$image.new"' EXIT
export TMPDIR=$build
step "build Debian $RELEASE with Slurm (about 35 s)" \
    mmdebstrap --quiet --variant=minbase --format=directory "${options[@]}" --include="$PACKAGES" "$RELEASE" "$build/root" "${sources[@]}"
step "turn everything off in it" bake "$build/root"
rm -rf "$image.new"
step "keep it in $image" cp -a "$build/root" "$image.new"
mv "$image.new" "$image"
for old in "$CACHE/$RELEASE"-*; do
    [[ $old == "$image" ]] || grep -q "lowerdir=$old," /proc/mounts || rm -rf "$old"
done
