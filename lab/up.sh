#!/bin/bash
# Bring up the legacy cluster, fresh: one controller and three configless compute nodes, each a container with systemd
# as PID 1 and sshd. Every host's root is an overlay of ours over the shared image, so files are laid before it boots.
. "$(dirname "$0")/lib.sh"
lab=$REPO/lab
began=$EPOCHSECONDS
"$lab/image.sh"
image=$("$lab/image.sh" path)

enable() {  # ROOT TARGET UNIT...: what `systemctl enable` would do
    local root=$1 target=$2 unit directory; shift 2
    mkdir -p "$root/etc/systemd/system/$target.wants"
    for unit; do
        directory=/lib/systemd/system
        [[ ! -e $root/etc/systemd/system/$unit ]] || directory=/etc/systemd/system
        ln -sf "$directory/$unit" "$root/etc/systemd/system/$target.wants/$unit"
    done
}

# The keys of this lab: one for people and Ansible, one for the controller's root, a host key for each host.
make_keys() {
    local host
    install -d -m 0700 "$STATE"
    dd if=/dev/urandom of="$STATE/munge.key" bs=1024 count=1 status=none
    for host in id_ed25519 controller_root "${HOSTS[@]/%/.hostkey}"; do
        ssh-keygen -q -t ed25519 -N '' -C "hpcguard lab" -f "$STATE/$host"
    done
    for host in "${HOSTS[@]}"; do
        printf '%s,%s %s\n' "$host" "${ADDRESS[$host]}" "$(cut -d' ' -f1,2 "$STATE/$host.hostkey.pub")"
    done >"$STATE/known_hosts"
}

owned() { chroot "$1" chown "$2" "${@:3}"; }

common_files() {    # ROOT HOST
    local root=$1 host=$2 program name
    install -d -m 0700 "$root/root/.ssh"
    install -m 0600 "$STATE/id_ed25519.pub" "$root/root/.ssh/authorized_keys"
    install -m 0600 "$STATE/$host.hostkey" "$root/etc/ssh/ssh_host_ed25519_key"
    install -m 0644 "$STATE/$host.hostkey.pub" "$root/etc/ssh/ssh_host_ed25519_key.pub"
    install -m 0400 "$STATE/munge.key" "$root/etc/munge/munge.key"
    owned "$root" munge:munge /etc/munge/munge.key
    # A source build keeps its programs under its own prefix.
    mkdir -p "$root/usr/local/slurm/bin" "$root/usr/local/slurm/sbin"
    for program in sacct sacctmgr salloc sattach sbatch sbcast scancel scontrol sdiag sinfo sprio squeue sreport srun sshare sstat strigger; do
        ln -s "/usr/bin/$program" "$root/usr/local/slurm/bin/$program"
    done
    {
        printf '127.0.0.1 localhost\n'
        for name in "${HOSTS[@]}"; do printf '%s %s\n' "${ADDRESS[$name]}" "$name"; done
    } >"$root/etc/hosts"
    enable "$root" multi-user.target ssh.service munge.service
}

controller_files() {    # ROOT
    local root=$1 etc=/usr/local/slurm/etc
    cp -r "$lab/legacy/controller/." "$root/"
    ln -s /usr/sbin/slurmctld /usr/sbin/slurmdbd "$root/usr/local/slurm/sbin/"
    ln -s "$etc" "$root/etc/slurm"
    install -d "$root/var/spool/slurmctld"
    owned "$root" slurm:slurm "$etc/slurmdbd.conf" /var/spool/slurmctld
    chmod 0600 "$root$etc/slurmdbd.conf"
    install -m 0600 "$STATE/controller_root" "$root/root/.ssh/id_ed25519"
    install -m 0644 "$STATE/known_hosts" "$root/root/.ssh/known_hosts"
    enable "$root" multi-user.target mariadb.service slurmdbd.service
}

compute_files() {   # ROOT
    local root=$1
    cp -r "$lab/legacy/compute/." "$root/"
    ln -s /usr/sbin/slurmd /usr/sbin/slurmstepd "$root/usr/local/slurm/sbin/"
    install -d "$root/var/spool/slurmd"
    cat "$STATE/controller_root.pub" >>"$root/root/.ssh/authorized_keys"
}

lay_files() {   # HOST
    local host=$1 root=$STATE/$1/root
    mkdir -p "$STATE/$host"/{upper,work,root,journal}
    mount -t overlay "hpcguard-$PREFIX$host" -o "lowerdir=$image,upperdir=$STATE/$host/upper,workdir=$STATE/$host/work" "$root"
    common_files "$root" "$host"
    if [[ $host == "$CONTROLLER" ]]; then controller_files "$root"; else compute_files "$root"; fi
}

# Podman keeps runtime, cgroup manager and limits with each container, so a plain `podman exec` or `podman start` finds
# them later: no configuration file of podman's is written.
podman=(podman)
# crun refuses the hybrid of cgroup v1 and v2, and cgroups cannot be asked of a systemd that is not there.
[[ $(stat -fc %T /sys/fs/cgroup) == cgroup2fs ]] || podman+=(--runtime=runc)
[[ -d /run/systemd/system ]] || podman+=(--cgroup-manager=cgroupfs)
# Without CAP_SYS_RESOURCE podman's own defaults cannot be set, as they are above the limits of this machine.
limits=()
may_raise_limits() { (($(awk '/^CapEff/ {print "0x" $2}' /proc/self/status) >> 24 & 1)); }
may_raise_limits || limits=(--ulimit nofile=10000:10000 --ulimit nproc=20000:20000)

boot() {    # HOST
    local host=$1
    # Podman would put the journal in memory; a cold start is told by the journal of the boot before.
    "${podman[@]}" run --detach --name "$PREFIX$host" --hostname "$host" --privileged --systemd=always \
        --network "$NETWORK" --ip "${ADDRESS[$host]}" --no-hosts --pids-limit=-1 "${limits[@]}" \
        --volume "$STATE/$host/journal:/var/log/journal" --rootfs "$STATE/$host/root" /sbin/init
}

on() { podman exec -i "$PREFIX$1" "${@:2}"; }

until_true() {  # SECONDS COMMAND...
    local end=$((EPOCHSECONDS + $1)); shift
    until "$@"; do ((EPOCHSECONDS < end)) || return 1; sleep 0.1; done
}

# What was done by hand when the cluster was installed: database, accounting, then the daemons for ever after.
first_start_controller() {
    on "$CONTROLLER" bash -eu <<'X'
until_true() { end=$((SECONDS + 120)); until "$@" >/dev/null 2>&1; do ((SECONDS < end)) || { "$@"; exit 1; }; sleep 0.1; done; }
until_true mariadb -e 'select 1'
mariadb -e "create database if not exists slurm_acct_db; create user if not exists slurm@localhost identified by 'slurm'; grant all on slurm_acct_db.* to slurm@localhost"
systemctl restart slurmdbd
until_true sacctmgr -n list cluster
sacctmgr -i add cluster hpc
systemctl enable --now slurmctld
until_true scontrol ping
X
}

first_start_node() { on "$1" systemctl --quiet enable --now slurmd; }

start_patrol() {
    on "$CONTROLLER" systemctl --quiet enable --now --no-block slurm-cluster-health.timer slurm-cluster-health-bootstrap.service
}

all_idle() { [[ $(on "$CONTROLLER" sinfo -h -N -o '%N %t' -p compute 2>/dev/null | grep -c ' idle$') == "${#NODES[@]}" ]]; }

side_by_side() {    # FUNCTION HOST...
    local function=$1 host pids=() pid; shift
    for host; do "$function" "$host" & pids+=($!); done
    for pid in "${pids[@]}"; do wait "$pid"; done
}

create() {
    "$lab/down.sh"
    # Each systemd holds several inotify instances; the kernel's default of 128 is too few for a dozen containers.
    (($(sysctl -n fs.inotify.max_user_instances) >= 8192)) || sysctl -q -w fs.inotify.max_user_instances=8192
    make_keys
    podman network create --disable-dns --subnet "$SUBNET.0/24" "$NETWORK"
    for host in "${HOSTS[@]}"; do lay_files "$host"; done
}

step "lay the files of four hosts" create
step "boot them" side_by_side boot "${HOSTS[@]}"
step "start database, accounting and slurmctld" first_start_controller
step "start slurmd on the nodes" side_by_side first_start_node "${NODES[@]}"
step "wait until all nodes are idle" until_true 120 all_idle
step "start the patrol" start_patrol
say "the legacy cluster is up after $((EPOCHSECONDS - began)) s: podman exec ${PREFIX}$CONTROLLER sinfo"
