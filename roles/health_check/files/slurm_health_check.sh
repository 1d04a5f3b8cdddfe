#!/bin/bash
# Managed by hpcguard.slurm, role health_check. Settings: /etc/hpcguard/health_check.conf
#
# slurm_health_check.sh [--dry-run | --list] [--config FILE] [--run-dir DIR]
#
# HealthCheckProgram of slurm.conf: checks this node, drains it under the tag HC: when a check fails, and takes back
# its own drain after some good runs. Slurm itself does nothing on a failing exit code (slurm.conf(5)).
# Exit status: 0 healthy, 1 unhealthy or the node's state could not be read, 2 the script itself is at fault.
#
# Nothing here may hang: every probe and every scontrol runs in a session of its own, is given a time, killed when the
# time is over, and left behind when even SIGKILL does not end it. A probe that still hangs is not started again.
set -u

# slurmd gives an environment of SLURMD_NODENAME and nothing else.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
LANGUAGE=
export PATH LC_ALL LANGUAGE
umask 022

readonly TAG='HC:'
readonly ROLLOUT_REASON='HC: rollout in progress'
readonly ALL_CHECKS='root_writable tmp_writable mounts dirs_writable memory disk munge'
# Seconds. Together they stay below 20, whatever hangs.
readonly PROBES_LIMIT=6 SHOW_LIMIT=4 UPDATE_LIMIT=4 READ_BACK_LIMIT=2 KILL_LIMIT=1

self=${BASH_SOURCE[0]}
config=/etc/hpcguard/health_check.conf
run_dir=/run/hpcguard
mode=run

# Defaults of every setting; the settings file overrides them.
HC_CHECKS=$ALL_CHECKS
HC_TMP_DIR=/tmp
HC_MOUNTS=()
HC_WRITABLE_DIRS=()
HC_MEMORY_MIN_MB=100
HC_DISK_PATHS=(/)
HC_DISK_MAX_PERCENT=90
HC_INODE_MAX_PERCENT=90
HC_DRAIN_AFTER=1
HC_UNDRAIN_AFTER=2
HC_SLURM_BIN=
HC_SLURM_CONF=
HC_TEXTFILE=

die() { printf 'slurm_health_check: %s\n' "$*" >&2; exit 2; }

# --- probes: each is run as `slurm_health_check.sh --probe NAME ARGUMENT` and prints why it fails, nothing when it is well

# shellcheck disable=SC2329  # called by the name that --probe gives
probe_writable() {
    local file
    file=$(mktemp "${1%/}/.slurm_health_check.XXXXXX" 2>/dev/null) || { echo "cannot create a file in $1"; return; }
    echo probe 2>/dev/null >"$file" || echo "cannot write in $1"
    rm -f -- "$file" 2>/dev/null || echo "cannot remove a file in $1"
}

# shellcheck disable=SC2329
probe_answers() { stat -f -- "$1" >/dev/null 2>&1 || echo "$1 is stale"; }

# shellcheck disable=SC2329
probe_usage() {
    local blocks free available files files_free used
    read -r blocks free available files files_free < <(stat -f -c '%b %f %a %c %d' -- "$1" 2>/dev/null) ||
        { echo "$1 cannot be looked at"; return; }
    if ((blocks > 0)); then
        used=$(((100 * (blocks - free) + blocks - free + available - 1) / (blocks - free + available > 0 ? blocks - free + available : 1)))
        ((used < $2)) || echo "$1 $used% full"
    fi
    # file systems without a fixed number of inodes say 0
    if ((files > 0)); then
        used=$((100 * (files - files_free) / files))
        ((used < $3)) || echo "$1 $used% inodes"
    fi
}

# shellcheck disable=SC2329
probe_munge() { munge -n 2>/dev/null | unmunge >/dev/null 2>&1 || echo 'no credential'; }

if [[ ${1-} == --probe ]]; then
    "probe_$2" "${@:3}"
    exit 0
fi

# --- arguments and settings

while (($#)); do
    case $1 in
        --dry-run) mode=dry ;;
        --list) mode=list ;;
        --config) config=${2-}; shift ;;
        --run-dir) run_dir=${2-}; shift ;;
        *) die "unknown argument $1" ;;
    esac
    shift
done

# What root sources must be root's alone.
if [[ -e $config ]]; then
    read -r owner permissions < <(stat -L -c '%u %a' -- "$config") || die "$config cannot be read"
    [[ $owner == "$EUID" && $((8#$permissions & 8#022)) == 0 ]] || die "$config is not root's, or others may write it"
    # shellcheck source=/dev/null
    . "$config" || die "$config is no valid settings file"
fi
if [[ -n $HC_SLURM_BIN ]]; then PATH=$HC_SLURM_BIN:$PATH; fi
if [[ -n $HC_SLURM_CONF ]]; then export SLURM_CONF=$HC_SLURM_CONF; fi
node=${SLURMD_NODENAME:-$(uname -n)}
node=${node%%.*}
[[ $node =~ ^[A-Za-z0-9_-]+$ ]] || die 'SLURMD_NODENAME is no node name'

in_force() { [[ " $HC_CHECKS " == *" $1 "* ]]; }

applies() {
    in_force "$1" || return 1
    case $1 in
        mounts) ((${#HC_MOUNTS[@]} > 0)) ;;
        dirs_writable) ((${#HC_WRITABLE_DIRS[@]} > 0)) ;;
        disk) ((${#HC_DISK_PATHS[@]} > 0)) ;;
        *) true ;;
    esac
}

if [[ $mode == list ]]; then
    for check in $ALL_CHECKS; do
        if applies "$check"; then echo "$check: on"; elif in_force "$check"; then echo "$check: skipped (nothing listed)"; else echo "$check: skipped (switched off)"; fi
    done
    exit 0
fi

# --- one instance

mkdir -p "$run_dir/hung" || die "$run_dir cannot be made"
exec 9>"$run_dir/health_check.lock" || die "$run_dir/health_check.lock cannot be opened"
flock -n 9 || { echo 'another run is under way'; exit 0; }
work=$(mktemp -d "$run_dir/work.XXXXXX") || die "$run_dir cannot be written"
trap 'rm -rf -- "$work"' EXIT
clock() { read -r uptime _ </proc/uptime; echo "${uptime/./}"; } # hundredths of a second
began=$(clock)

# --- running something that may hang

# start KEY COMMAND...: in a session of its own, holding neither the lock nor slurmd's pipes.
start() {
    local key=$1
    shift
    setsid "$@" </dev/null >"$work/$key.out" 2>"$work/$key.err" 9>&- &
    started=$!
}

# shellcheck disable=SC2086  # the words of the line are wanted
start_time() { local line; read -r line 2>/dev/null <"/proc/$1/stat" || return 1; line=${line##*) }; set -- $line; echo "${20}"; }

# Zombies have ended; `kill -0` would still find them.
alive() { local line; read -r line 2>/dev/null <"/proc/$1/stat" || return 1; line=${line##*) }; [[ ${line%% *} != [ZX] ]]; }

# finish SECONDS PID...: wait until all have ended; kill what is left and give up on what survives that.
finish() {
    local limit=$(($(clock) + $1 * 100)) pid left
    shift
    while :; do
        left=()
        for pid in "$@"; do if alive "$pid"; then left+=("$pid"); fi; done
        ((${#left[@]})) || return 0
        (($(clock) < limit)) || break
        sleep 0.05
    done
    for pid in "${left[@]}"; do kill -KILL -- "-$pid" 2>/dev/null; done
    limit=$(($(clock) + KILL_LIMIT * 100))
    while (($(clock) < limit)); do
        for pid in "${left[@]}"; do if alive "$pid"; then sleep 0.05; continue 2; fi; done
        break
    done
    return 1
}

# ask SECONDS COMMAND...: answer in $answer; fails when there is none in time or the command fails.
ask() {
    local limit=$1 pid
    shift
    answer=
    start ask "$@"
    pid=$started
    finish "$limit" "$pid" || return 124
    wait "$pid"
    local rc=$?
    answer=$(<"$work/ask.out")
    return $rc
}

# --- the checks

failed=()  # "check detail"
pids=() keys=() names=() subjects=()

# Characters that no terminal, reason or log minds.
plain() { local text=${1//[^A-Za-z0-9 _.,:%\/()+@-]/?}; echo "${text:0:${2:-120}}"; }

fail() { failed+=("$1 $(plain "$2")"); }

# probe CHECK NAME ARGUMENT...: begin a probe unless the last one like it still hangs
probe() {
    local check=$1 key record pid since
    shift
    key=$check.$(printf '%s' "$*" | cksum | tr ' ' -)
    record=$run_dir/hung/$key
    if [[ -r $record ]] && read -r pid since <"$record" && [[ $(start_time "$pid") == "$since" ]] && alive "$pid"; then
        fail "$check" "${2-} hangs (since before)"
        return
    fi
    rm -f -- "$record"
    start "$key" "$BASH" "$self" --probe "$@"
    pids+=("$started") keys+=("$key") names+=("$check") subjects+=("${2-}")
}

mounted() {
    local point
    while read -r _ _ _ _ point _; do
        if [[ $(printf '%b' "${point//\\/\\0}") == "$1" ]]; then return 0; fi
    done </proc/self/mountinfo
    return 1
}

if applies root_writable; then probe root_writable writable /; fi
if applies tmp_writable; then probe tmp_writable writable "$HC_TMP_DIR"; fi
if applies dirs_writable; then for path in "${HC_WRITABLE_DIRS[@]}"; do probe dirs_writable writable "$path"; done; fi
if applies mounts; then
    for path in "${HC_MOUNTS[@]}"; do
        if mounted "$path"; then probe mounts answers "$path"; else fail mounts "$path not mounted"; fi
    done
fi
if applies disk; then for path in "${HC_DISK_PATHS[@]}"; do probe disk usage "$path" "$HC_DISK_MAX_PERCENT" "$HC_INODE_MAX_PERCENT"; done; fi
if applies munge; then probe munge munge; fi
if applies memory; then
    available=
    while read -r key value _; do if [[ $key == MemAvailable: ]]; then available=$((value / 1024)); break; fi; done </proc/meminfo
    # kernels before 3.14 do not tell; EL7's does
    if [[ -n $available ]] && ((available < HC_MEMORY_MIN_MB)); then fail memory "${available}MB < ${HC_MEMORY_MIN_MB}MB"; fi
fi

if ((${#pids[@]})); then finish "$PROBES_LIMIT" "${pids[@]}"; fi
for index in "${!pids[@]}"; do
    pid=${pids[index]}
    if alive "$pid"; then
        printf '%s %s\n' "$pid" "$(start_time "$pid")" >"$run_dir/hung/${keys[index]}"
        disown "$pid" 2>/dev/null
        fail "${names[index]}" "${subjects[index]} hangs"
        continue
    fi
    if wait "$pid" 2>/dev/null; then
        while IFS= read -r line; do fail "${names[index]}" "$line"; done <"$work/${keys[index]}.out"
    else
        fail "${names[index]}" "${subjects[index]} gave no answer in time"
    fi
done

if [[ -r $run_dir/health_check.force ]]; then
    read -r forced <"$run_dir/health_check.force" || true
    fail "$(plain "${forced:-forced}" 20)" 'forced by the test flag'
fi

if ((${#failed[@]})); then verdict=fail; else verdict=pass; fi

if [[ $mode == dry ]]; then
    if [[ $verdict == pass ]]; then echo "HealthCheck 通过 ($node)"; exit 0; fi
    echo "HealthCheck 失败 ($node)"
    printf '  %s\n' "${failed[@]}"
    exit 1
fi

# --- logging: slurmd swallows what its program prints, and journald does not know the unit of a process that is gone
# when it looks, so the line names slurmd as its object: `journalctl -u slurmd` shows those too.

log() {
    local parent=
    read -r parent 2>/dev/null <"/proc/$PPID/comm" || true
    if [[ $parent == slurmd ]] && printf 'MESSAGE=%s\nPRIORITY=%s\nSYSLOG_IDENTIFIER=slurm_health_check\nOBJECT_PID=%s\n' "$2" "$1" "$PPID" |
        logger --journald 2>/dev/null; then
        return
    fi
    logger -t slurm_health_check -p "daemon.$1" -- "$2" 2>/dev/null
}

# --- the last run

good_runs=0 bad_runs=0
if [[ -r $run_dir/health_check.last ]]; then
    while IFS='=' read -r key value; do
        case $key in
            good_runs | bad_runs) if [[ $value =~ ^[0-9]+$ ]]; then printf -v "$key" %s "$value"; fi ;;
        esac
    done <"$run_dir/health_check.last"
fi
if [[ $verdict == pass ]]; then good_runs=$((good_runs + 1)) bad_runs=0; else bad_runs=$((bad_runs + 1)) good_runs=0; fi

# --- the node

state='' reason='' reason_user=''
state_field=' State=([A-Z_+*~#!%$@^-]+)'
read_node() {
    ask "$1" scontrol -o show node "$node" || return 1
    [[ $answer =~ $state_field ]] || return 1
    state=${BASH_REMATCH[1]}
    reason='' reason_user=''
    if [[ $answer == *' Reason='* ]]; then
        reason=${answer#* Reason=}
        if [[ $reason =~ ^(.*)\ \[([^][@]+)@[0-9T:.+-]+\] ]]; then reason=${BASH_REMATCH[1]} reason_user=${BASH_REMATCH[2]}; fi
    fi
}

update_node() { ask "$UPDATE_LIMIT" scontrol update "nodename=$node" "$@"; }

# What to do with the node: keep, drain, update or undrain. A table: the first line that fits counts.
decide() {
    local flags=+$state+ ours=no
    if [[ $reason == "$TAG"* ]]; then ours=yes; fi
    if [[ $flags == *REBOOT* || $flags == *POWER* || $state == *[~#!%@^]* ]]; then echo keep 'the node is being rebooted or powered'
    elif [[ $reason == "$ROLLOUT_REASON"* ]]; then echo keep 'a rollout has closed the node'
    elif [[ $flags == *+MAINT* || $state == *'$'* ]]; then echo keep 'the node is under maintenance'
    elif [[ $verdict == pass && $flags == *+DRAIN* && $ours == yes ]]; then
        if ((HC_UNDRAIN_AFTER == 0)); then echo keep 'taking drains back is switched off'
        elif ((good_runs < HC_UNDRAIN_AFTER)); then echo keep "good run $good_runs of $HC_UNDRAIN_AFTER"
        else echo undrain 'healthy again'; fi
    elif [[ $verdict == pass ]]; then echo keep 'healthy'
    elif ((bad_runs < HC_DRAIN_AFTER)); then echo keep "bad run $bad_runs of $HC_DRAIN_AFTER"
    elif [[ ($flags == *+DRAIN* || $flags == *FAIL*) && $ours == yes && $reason == "$wanted_reason" ]]; then echo keep 'drained by us'
    elif [[ ($flags == *+DRAIN* || $flags == *FAIL*) && $ours == yes ]]; then echo update 'another check fails now'
    elif [[ $flags == *+DRAIN* || $flags == *FAIL* ]]; then echo keep "drained by somebody else: $(plain "$reason" 40)"
    # the reason of a node that is DOWN may be Slurm's own ("Not responding"); a person's stays
    elif [[ -n $reason && $reason != none && $reason != '(null)' && $ours == no && $reason_user != slurm ]]; then
        echo keep "somebody else's reason: $(plain "$reason" 40)"
    else echo drain 'unhealthy'; fi
}

wanted_reason=
if ((${#failed[@]})); then wanted_reason="$TAG ${failed[0]}" wanted_reason=${wanted_reason:0:60} wanted_reason=${wanted_reason%"${wanted_reason##*[! ]}"}; fi

status=0
if [[ $verdict == fail ]]; then status=1; fi
if read_node "$SHOW_LIMIT"; then
    read -r action why < <(decide)
    case $action in
        drain | update) update_node state=drain "reason=$wanted_reason" ;;
        undrain) update_node state=undrain ;;
    esac
    # shellcheck disable=SC2181  # of whichever request it was
    if (($? != 0)); then
        # a request that timed out may have been applied all the same
        if read_node "$READ_BACK_LIMIT" && { [[ $action == undrain && $state != *DRAIN* ]] || [[ $reason == "$wanted_reason" && -n $reason ]]; }; then
            why="$why (applied, though the answer did not come)"
        else
            why="$why (the request failed)" status=1
        fi
    fi
    case $action in drain | update | undrain) log notice "$action $node: $why" ;; esac
else
    status=1
    action=none why='the state of the node could not be read'
    log err "$why"
fi

# --- what this run leaves

duration=$(($(clock) - began))
printf -v duration '%d.%02d' $((duration / 100)) $((duration % 100))
failed_names=
for line in "${failed[@]+"${failed[@]}"}"; do
    name=${line%% *}
    if [[ ",$failed_names," != *",$name,"* ]]; then failed_names=${failed_names:+$failed_names,}$name; fi
done
replace() { mv -f -- "$1" "$2"; }
{
    printf 'epoch=%s\nrc=%s\nverdict=%s\nfailed=%s\n' "$(date +%s)" "$status" "$verdict" "$failed_names"
    printf 'good_runs=%s\nbad_runs=%s\nduration=%s\naction=%s\n' "$good_runs" "$bad_runs" "$duration" "$action"
} >"$run_dir/.health_check.last" && replace "$run_dir/.health_check.last" "$run_dir/health_check.last"

if [[ -n $HC_TEXTFILE ]]; then
    {
        echo '# HELP hpcguard_health_check_healthy Whether the last health check of the node passed.'
        echo '# TYPE hpcguard_health_check_healthy gauge'
        echo "hpcguard_health_check_healthy $((${#failed[@]} == 0))"
        echo '# HELP hpcguard_health_check_timestamp_seconds When it ran.'
        echo '# TYPE hpcguard_health_check_timestamp_seconds gauge'
        echo "hpcguard_health_check_timestamp_seconds $(date +%s)"
        echo '# HELP hpcguard_health_check_failed Whether a check failed.'
        echo '# TYPE hpcguard_health_check_failed gauge'
        for check in $ALL_CHECKS; do
            if applies "$check"; then
                if [[ ",$failed_names," == *",$check,"* ]]; then value=1; else value=0; fi
                echo "hpcguard_health_check_failed{check=\"$check\"} $value"
            fi
        done
    } >"$HC_TEXTFILE.$$" && replace "$HC_TEXTFILE.$$" "$HC_TEXTFILE"
fi

if [[ $verdict == pass ]]; then
    log info "HealthCheck 通过 ($node, ${duration}s)"
else
    printf -v all '%s; ' "${failed[@]}"
    log err "HealthCheck 失败 ($node): ${all%; }"
    printf 'HealthCheck 失败: %s\n' "${all%; }"
fi
exit "$status"
