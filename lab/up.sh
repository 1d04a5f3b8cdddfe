#!/bin/bash
# Bring up the legacy cluster, fresh: by default one controller and three configless compute nodes, see choices.sh. Each
# host is a container with systemd as PID 1 and sshd; its root is an overlay of ours, so files are laid before it boots.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/choices.sh"
lab=$REPO/lab
began=$EPOCHSECONDS
"$lab/image.sh"
image=$("$lab/image.sh" path)
. "$lab/files.sh"

# Podman keeps runtime, cgroup manager and limits with each container, so a plain `podman exec` or `podman start` finds
# them later: no configuration file of podman's is written.
podman=(podman)
# crun refuses the hybrid of cgroup v1 and v2, and cgroups cannot be asked of a systemd that is not there.
pure_cgroup2 || podman+=(--runtime=runc)
[[ -d /run/systemd/system ]] || podman+=(--cgroup-manager=cgroupfs)
# Without CAP_SYS_RESOURCE podman's own defaults cannot be set, as they are above the limits of this machine.
limits=()
may_raise_limits() { (($(awk '/^CapEff/ {print "0x" $2}' /proc/self/status) >> 24 & 1)); }
may_raise_limits || limits=(--ulimit nofile=10000:10000 --ulimit nproc=20000:20000)

boot() {    # HOST
    local host=$1 init=/sbin/init volumes
    [[ ! -e $STATE/$host/root$OWN_INIT ]] || init=$OWN_INIT
    # Podman would put the journal in memory; a cold start is told by the journal of the boot before.
    volumes=(--volume "$STATE/$host/journal:/var/log/journal")
    if [[ $TOPOLOGY == backup ]] && is_controller "$host"; then volumes+=(--volume "$STATE/shared:/var/spool/slurmctld"); fi
    if [[ -n $LOGIN ]] && ! is_controller "$host"; then volumes+=(--volume "$STATE/home:/home"); fi
    "${podman[@]}" run --detach --name "$PREFIX$host" --hostname "$host" --privileged --systemd=always \
        --network "$NETWORK" --ip "${ADDRESS[$host]}" --no-hosts --pids-limit=-1 "${limits[@]}" \
        "${volumes[@]}" --rootfs "$STATE/$host/root" "$init"
}

on() { podman exec -i "$PREFIX$1" "${@:2}"; }

until_true() {  # SECONDS COMMAND...
    local end=$((EPOCHSECONDS + $1)); shift
    until "$@"; do ((EPOCHSECONDS < end)) || return 1; sleep 0.1; done
}

# What was done by hand when the cluster was installed: database, accounting, then the daemons for ever after.
by_hand() { on "$1" bash -euc "$(declare -f until_true); $(cat)"; }   # HOST < SCRIPT

first_start_database() {
    by_hand "$DBD" <<'X'
until_true 120 mariadb -e 'select 1' &>/dev/null
mariadb -e "create database if not exists slurm_acct_db; create user if not exists slurm@localhost identified by 'slurm'; grant all on slurm_acct_db.* to slurm@localhost"
systemctl restart slurmdbd
X
}

add_cluster() {
    by_hand "$CONTROLLER" <<'X'
until_true 120 sacctmgr -n list cluster &>/dev/null
sacctmgr -i add cluster hpc
X
}

first_start_controller() {  # HOST
    by_hand "$1" <<'X'
until_true 120 systemctl is-active munge &>/dev/null
systemctl enable --now slurmctld
until_true 120 scontrol ping &>/dev/null || scontrol ping
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
    install -d -m 0700 "$STATE"
    for name in "${CHOICES[@]}"; do printf '%s=%s\n' "$name" "${!name}"; done >"$STATE/choices"
    make_keys
    podman network create --disable-dns --subnet "$SUBNET.0/24" "$NETWORK"
    for host in "${HOSTS[@]}"; do lay_files "$host"; done
    # Both controllers keep their state in one place.
    [[ $TOPOLOGY != backup ]] || cp -a "$STATE/$CONTROLLER/root/var/spool/slurmctld" "$STATE/shared"
    # Where there is a login node, users have one home there and on the nodes.
    [[ -z $LOGIN ]] || cp -a "$image/home" "$STATE/home"
}

step "lay the files of ${#HOSTS[@]} hosts" create
step "boot them" side_by_side boot "${HOSTS[@]}"
if [[ -n $DBD ]]; then
    step "start the database and slurmdbd" first_start_database
    step "register the cluster" add_cluster
fi
for host in "${CONTROLLERS[@]}"; do step "start slurmctld on $host" first_start_controller "$host"; done
step "start slurmd on the nodes" side_by_side first_start_node "${NODES[@]}"
step "wait until all nodes are idle" until_true 120 all_idle
step "start the patrol" start_patrol
say "the legacy cluster is up after $((EPOCHSECONDS - began)) s: podman exec ${PREFIX}$CONTROLLER sinfo"
