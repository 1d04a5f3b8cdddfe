#!/bin/bash
# Managed by hpcguard.slurm, role health_check. Settings: /etc/hpcguard/health_check.conf
#
# slurm_health_check.sh [--dry-run | --list] [--config FILE] [--run-dir DIR]
#
# HealthCheckProgram of slurm.conf: checks this node, drains it under the tag HC: when a check fails, and takes back
# its own drain after some good runs. Slurm itself does nothing about a failing exit code (slurm.conf(5)).
# Exit status: 0 healthy, 1 unhealthy or the node's state could not be read or set, 2 the script itself is at fault.
#
# Nothing here may hang: whatever may is run in a session of its own, has a time, is killed when the time is over and
# left behind when even SIGKILL does not end it. What still hangs from an earlier run is not started again.
# Bash 4.2 and newer (EL7): with set -u, it takes "${empty[@]}" for an error.
set -u

# slurmd gives an environment of SLURMD_NODENAME and nothing else.
PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin
LC_ALL=C
LANGUAGE=
export PATH LC_ALL LANGUAGE
umask 022

readonly TAG='HC:'
readonly ROLLOUT_REASON='HC: rollout in progress' # deploy.yml's, which takes it back itself
readonly ALL_CHECKS='root_writable tmp_writable mounts dirs_writable memory disk munge'
# When each phase is over, in hundredths of a second from the start, whatever hangs. What a phase does not use, the
# next one has. slurmd would kill the script after 60 s.
readonly START_UNTIL=400 PROBES_UNTIL=600 READ_UNTIL=1000 UPDATE_UNTIL=1400 READ_BACK_UNTIL=1550 TEXTFILE_UNTIL=1600 END=1700
# A drain of the same check that comes back within STABLE seconds after it was taken back, and does so again, takes twice as many
# good runs to be taken back, and twice as many each further time, up to so many times the setting.
readonly STABLE=3600 MOST_PATIENCE=16
# How long to wait for what was killed.
readonly KILL_GRACE=30

config=/etc/hpcguard/health_check.conf
run_dir=/run/hpcguard
mode=run

# Every setting; the settings file has the values.
HC_CHECKS=$ALL_CHECKS
HC_TMP_DIR=/tmp
HC_MOUNTS=()
HC_WRITABLE_DIRS=()
HC_MEMORY_MIN_MB=100
HC_DISK_PATHS=(/ /tmp)
HC_DISK_MAX_PERCENT=90
HC_INODE_MAX_PERCENT=90
HC_DRAIN_AFTER=1
HC_UNDRAIN_AFTER=2
HC_SLURM_BIN=
HC_SLURM_CONF=
HC_TEXTFILE=

die() {
    printf 'slurm_health_check: %s\n' "$*" >&2
    if [[ $mode == run ]]; then timeout -s KILL 2 logger -t slurm_health_check -p daemon.err -- "$*" </dev/null 2>/dev/null; fi
    exit 2
}

# --- arguments and settings

while (($#)); do
    case $1 in
        --dry-run) mode=dry ;;
        --list) mode=list ;;
        --config | --run-dir)
            (($# > 1)) || die "$1 needs a value"
            if [[ $1 == --config ]]; then config=$2; else run_dir=$2; fi
            shift
            ;;
        *) die "unknown argument $1" ;;
    esac
    shift
done

# What root sources must be root's alone.
read -r owner permissions < <(stat -L -c '%u %a' -- "$config" 2>/dev/null) || die "$config cannot be read"
[[ $owner == 0 || $owner == "$EUID" ]] || die "$config is not root's"
((!(8#$permissions & 8#022))) || die "$config may be written by others"
# shellcheck source=/dev/null
. "$config" || die "$config is no valid settings file"

# By its path, and not through PATH: where Slurm lies on a mount that hangs, so would the look for every other program.
readonly SCONTROL=${HC_SLURM_BIN:+$HC_SLURM_BIN/}scontrol
if [[ -n $HC_SLURM_CONF ]]; then export SLURM_CONF=$HC_SLURM_CONF; fi
for check in $HC_CHECKS; do [[ " $ALL_CHECKS " == *" $check "* ]] || die "$config: there is no check $check"; done
for setting in HC_MEMORY_MIN_MB HC_DISK_MAX_PERCENT HC_INODE_MAX_PERCENT HC_DRAIN_AFTER HC_UNDRAIN_AFTER; do
    # no leading zero either, which the shell takes for octal
    [[ ${!setting} =~ ^(0|[1-9][0-9]{0,8})$ ]] || die "$config: $setting is no number: ${!setting}"
done
short_name=$(uname -n)
node=${SLURMD_NODENAME:-${short_name%%.*}}
[[ $node =~ ^[A-Za-z0-9_.-]+$ ]] || die 'SLURMD_NODENAME is no node name'

in_force() { [[ " $HC_CHECKS " == *" $1 "* ]]; }

applies() {
    in_force "$1" || return 1
    case $1 in
        mounts) ((${#HC_MOUNTS[@]} > 0)) ;;
        dirs_writable) ((${#HC_WRITABLE_DIRS[@]} > 0)) ;;
        disk) ((${#HC_DISK_PATHS[@]} > 0)) ;;
    esac
}

list_checks() {
    local check subject
    for check in $ALL_CHECKS; do
        if ! in_force "$check"; then echo "$check: skipped (switched off)"; continue; fi
        if ! applies "$check"; then echo "$check: skipped (nothing to check is listed)"; continue; fi
        case $check in
            root_writable) subject=/ ;;
            tmp_writable) subject=$HC_TMP_DIR ;;
            mounts) subject=${HC_MOUNTS[*]} ;;
            dirs_writable) subject=${HC_WRITABLE_DIRS[*]} ;;
            memory) subject="at least $HC_MEMORY_MIN_MB MB available" ;;
            disk) subject="${HC_DISK_PATHS[*]} below $HC_DISK_MAX_PERCENT%, inodes below $HC_INODE_MAX_PERCENT%" ;;
            munge) subject='a credential made and read' ;;
        esac
        printf '%s: on (%s)\n' "$check" "$subject"
    done
}

if [[ $mode == list ]]; then list_checks; exit 0; fi

# --- one instance; a dry run neither waits for one nor keeps one away

mkdir -p -- "$run_dir/hung" || die "$run_dir cannot be made"
if [[ $mode == run ]]; then
    exec 9>"$run_dir/health_check.lock" || die "$run_dir/health_check.lock cannot be opened"
    flock -n 9 || { echo 'another run is under way'; exit 0; }
    rm -rf -- "$run_dir"/run.* # of runs that were killed
fi
work=$(mktemp -d "$run_dir/$mode.XXXXXX") || die "$run_dir cannot be written"
trap 'rm -rf -- "$work"' EXIT

# --- running what may hang

clock() { local uptime; read -r uptime _ </proc/uptime; now=$((10#${uptime/./})); }
clock
readonly BEGAN=$now
key_of=() # by process id

# start_time PID: together with the number it says which process is meant
start_time() {
    local line
    read -r line 2>/dev/null <"/proc/$1/stat" || return
    read -r -a line <<<"${line##*) }" # what follows the name begins with field 3
    [[ ${line[0]} != [ZX] ]] && echo "${line[19]}"
}

# start KEY COMMAND...: in the background, holding neither the lock nor slurmd's pipes. Its process id is in $started.
# Fails while the last one of that key still hangs.
start() {
    local key=$1 pid since
    shift
    if [[ -e $run_dir/hung/$key ]]; then
        if read -r pid since <"$run_dir/hung/$key" && [[ $(start_time "$pid") == "$since" ]]; then return 1; fi
        rm -f -- "$run_dir/hung/$key"
    fi
    setsid "$@" </dev/null >"$work/$key.out" 2>/dev/null 9>&- &
    started=$!
    key_of[started]=$key
}

# still_running PID...: those of our own children that have not ended, in $left
still_running() {
    local running pid
    running=" $(jobs -rp) "
    running=${running//$'\n'/ }
    left=()
    for pid in "$@"; do if [[ $running == *" $pid "* ]]; then left+=("$pid"); fi; done
    ((${#left[@]} > 0))
}

# finish MARK PID...: wait for all of them, kill what is left at that time. What survives that is in $left, and remembered.
finish() {
    local until=$((BEGAN + $1)) pid
    shift
    while still_running "$@"; do
        clock
        if ((now >= until)); then break; fi
        sleep 0.05
    done
    ((${#left[@]})) || return 0
    {
        for pid in "${left[@]}"; do kill -KILL -- "-$pid"; done
        until=$((now + KILL_GRACE))
        while still_running "$@" && clock && ((now < until)); do sleep 0.05; done
    } 2>/dev/null # where bash tells that they were killed
    for pid in ${left[@]+"${left[@]}"}; do echo "$pid $(start_time "$pid")" >"$run_dir/hung/${key_of[pid]}"; done
    return 1
}

# ask MARK COMMAND...: its answer in $answer; fails when the command does, or gives none in time
ask() {
    local mark=$1 key=ask.${2##*/} pid
    shift
    answer=
    start "$key" "$@" || return
    pid=$started
    finish "$mark" "$pid" || return
    wait "$pid" || return
    answer=$(<"$work/$key.out")
}

# --- the checks

failed=() # "check detail (figure of this run)"
pids=() keys=() checks=() kinds=() subjects=()

# plain TEXT LENGTH: in characters that no reason, log or terminal minds
plain() { local text=${1//[^A-Za-z0-9 _.,:%\/()+@-]/?}; echo "${text:0:$2}"; }

fail() { failed+=("$1 $(plain "$2" 200)"); }

# Shell builtins write, and rm takes the place of the shell: the process that may hang is the one we know.
# shellcheck disable=SC2016
readonly WRITE='file=${1%/}/.slurm_health_check.$$.$RANDOM$RANDOM
    umask 077; set -C
    : >"$file" || exit 1
    if echo probe >>"$file"; then exec rm -f -- "$file"; fi
    rm -f -- "$file"; exit 1'

# probe CHECK KIND SUBJECT: begin it, unless the last one like it still hangs
probe() {
    local key=$1.$2.${3//+/++}
    key=${key//\//+-}
    if ((${#key} > 250)); then key=$1.$2.$(cksum <<<"$3"); fi
    clock
    if ((now - BEGAN >= START_UNTIL)); then fail "$1" "no time for $3"; return; fi
    case $2 in
        writable) start "$key" "$BASH" -c "$WRITE" probe "$3" ;;
        answers) start "$key" stat -f -- "$3" ;;
        usage) start "$key" stat -f -c '%b %f %a %c %d' -- "$3" ;;
        credential) start "$key" "$BASH" -o pipefail -c 'munge -n | unmunge' ;;
    esac || { fail "$1" "hung $3"; return; }
    pids+=("$started") keys+=("$key") checks+=("$1") kinds+=("$2") subjects+=("$3")
}

# judge_usage PATH BLOCKS FREE AVAILABLE INODES FREE_INODES: as df does, rounding up
judge_usage() {
    local path=$1 blocks=$2 free=$3 available=$4 inodes=$5 free_inodes=$6 used usable percent
    used=$((blocks - free)) usable=$((blocks - free + available))
    if ((usable > 0)); then
        percent=$(((100 * used + usable - 1) / usable))
        if ((percent >= HC_DISK_MAX_PERCENT)); then fail disk "at $HC_DISK_MAX_PERCENT% $path ($percent%)"; fi
    fi
    # file systems without a fixed number of inodes say 0
    if ((inodes > 0)); then
        percent=$(((100 * (inodes - free_inodes) + inodes - 1) / inodes))
        if ((percent >= HC_INODE_MAX_PERCENT)); then fail disk "inodes at $HC_INODE_MAX_PERCENT% $path ($percent%)"; fi
    fi
}

judge() { # CHECK KIND SUBJECT KEY STATUS
    case $5:$2 in
        0:usage)
            local numbers
            read -r -a numbers <"$work/$4.out"
            judge_usage "$3" "${numbers[@]}"
            ;;
        0:*) ;;
        137:*) fail "$1" "hung $3" ;;
        *:writable) fail "$1" "cannot write $3" ;;
        *:answers) fail "$1" "stale $3" ;;
        *:usage) fail "$1" "cannot read $3" ;;
        *:credential) fail "$1" 'no credential' ;;
    esac
}

check_mounts() {
    local path point points=$'\n'
    while read -r _ _ _ _ point _; do
        printf -v point %b "${point//\\/\\0}" # a blank is \040 there
        points+=$point$'\n'
    done </proc/self/mountinfo
    for path in "${HC_MOUNTS[@]}"; do
        if [[ $path != / ]]; then path=${path%/}; fi
        if [[ $points == *$'\n'"$path"$'\n'* ]]; then probe mounts answers "$path"; else fail mounts "missing $path"; fi
    done
}

check_memory() {
    local key value
    while read -r key value _; do
        if [[ $key == MemAvailable: ]] && ((value / 1024 < HC_MEMORY_MIN_MB)); then
            fail memory "below ${HC_MEMORY_MIN_MB}MB ($((value / 1024))MB)"
        fi
    done </proc/meminfo
}

if applies root_writable; then probe root_writable writable /; fi
if applies tmp_writable; then probe tmp_writable writable "$HC_TMP_DIR"; fi
if applies mounts; then check_mounts; fi
if applies dirs_writable; then for path in "${HC_WRITABLE_DIRS[@]}"; do probe dirs_writable writable "$path"; done; fi
if applies memory; then check_memory; fi
if applies disk; then for path in "${HC_DISK_PATHS[@]}"; do probe disk usage "$path"; done; fi
if applies munge; then probe munge credential munge; fi

left=()
if ((${#pids[@]})); then
    finish "$PROBES_UNTIL" "${pids[@]}"
    abandoned=" ${left[*]-} "
    for ((index = 0; index < ${#pids[@]}; index++)); do
        if [[ $abandoned == *" ${pids[index]} "* ]]; then
            status=137
        else
            wait "${pids[index]}" 2>/dev/null
            status=$?
        fi
        judge "${checks[index]}" "${kinds[index]}" "${subjects[index]}" "${keys[index]}" "$status"
    done
fi

if read -r forced _ 2>/dev/null <"$run_dir/health_check.force" || [[ -e $run_dir/health_check.force ]]; then
    fail "$(plain "${forced:-forced}" 16)" 'forced by the test flag'
fi

failed_names=
details=
wanted_reason=
verdict=pass
if ((${#failed[@]})); then
    verdict=fail
    for line in "${failed[@]}"; do
        if [[ ",$failed_names," != *",${line%% *},"* ]]; then failed_names=${failed_names:+$failed_names,}${line%% *}; fi
    done
    printf -v details '%s; ' "${failed[@]}"
    details=${details%; }
    # without the figure, which would make every run a new reason
    wanted_reason="$TAG ${failed[0]% (*}"
    wanted_reason=${wanted_reason:0:60}
    wanted_reason=${wanted_reason%"${wanted_reason##*[! ]}"}
fi

if [[ $mode == dry ]]; then
    if [[ $verdict == pass ]]; then echo "HealthCheck 通过 ($node)"; exit 0; fi
    echo "HealthCheck 失败 ($node)"
    printf '  %s\n' "${failed[@]}"
    exit 1
fi

# --- the last run

good_runs=0 bad_runs=0 came_back=0 undrained_at=0 drained_for=
if [[ -r $run_dir/health_check.last ]]; then
    while IFS='=' read -r key value; do
        if [[ " good_runs bad_runs came_back undrained_at " == *" $key "* && $value =~ ^[0-9]{1,10}$ ]]; then
            printf -v "$key" %d "$((10#$value))"
        elif [[ $key == drained_for && $value =~ ^[a-z_]{1,30}$ ]]; then
            drained_for=$value
        fi
    done <"$run_dir/health_check.last"
fi
printf -v epoch '%(%s)T' -1
# What was taken back and lasted counts no longer.
if ((came_back > MOST_PATIENCE || undrained_at > 0 && (epoch - undrained_at >= STABLE || epoch < undrained_at))); then
    came_back=0 undrained_at=0
fi
if [[ $verdict == pass ]]; then good_runs=$((good_runs + 1)) bad_runs=0; else bad_runs=$((bad_runs + 1)) good_runs=0; fi

patience() {
    undrain_after=$HC_UNDRAIN_AFTER
    local times
    for ((times = 1; times < came_back && undrain_after < HC_UNDRAIN_AFTER * MOST_PATIENCE; times++)); do
        undrain_after=$((undrain_after * 2))
    done
}
patience

# --- the node

readonly STATE_FIELD=' State=([^ ]+)' REASON_TAIL='^(.*) \[([^][@ ]+)@[0-9T:.+-]+\]'
state='' reason='' reason_user=''
read_node() { # MARK
    ask "$1" "$SCONTROL" -o show node "$node" || return 1
    [[ $answer =~ $STATE_FIELD ]] || return 1
    state=${BASH_REMATCH[1]}
    reason='' reason_user=''
    if [[ $answer == *' Reason='* ]]; then
        reason=${answer#* Reason=}
        # who and when follow the text
        if [[ $reason =~ $REASON_TAIL ]]; then reason=${BASH_REMATCH[1]} reason_user=${BASH_REMATCH[2]}; fi
        reason=${reason%"${reason##*[! ]}"}
    fi
}

drained() { [[ +$state+ == *+DRAIN* ]]; }
ours() { [[ $reason == "$TAG"* ]]; }
# Slurm's own reason on a node that is DOWN is nobody's decision.
slurms_own() { [[ -z $reason || $reason == none || $reason_user == slurm || $reason == 'Not responding' || $reason == 'Node unexpectedly rebooted' ]]; }

# What to do with the node, in $action and $why. The first line that fits counts.
decide() {
    choose() { action=$1 why=$2; }
    if [[ $state =~ REBOOT|POWER|MAINT|FAIL || $state == *[~#!%@^\$]* ]]; then choose keep "the node is $state"
    elif drained && [[ $reason == "$ROLLOUT_REASON" ]]; then choose keep 'a rollout has closed the node'
    elif drained && ! ours; then choose keep "drained by somebody else: $(plain "$reason" 60)"
    elif [[ $verdict == pass ]] && ! drained; then choose keep ''
    elif [[ $verdict == pass ]] && ((HC_UNDRAIN_AFTER == 0)); then choose keep 'it stays drained: taking drains back is switched off'
    elif [[ $verdict == pass ]] && ((good_runs < undrain_after)); then choose keep "it stays drained: good run $good_runs of $undrain_after"
    elif [[ $verdict == pass ]]; then choose undrain 'undrained'
    elif ((bad_runs < HC_DRAIN_AFTER)); then choose keep "bad run $bad_runs of $HC_DRAIN_AFTER"
    elif drained && [[ $reason == "$wanted_reason" ]]; then choose keep 'already drained'
    elif drained; then choose update 'drained for a new reason'
    elif ours || slurms_own; then choose drain 'drained'
    else choose keep "somebody else's reason: $(plain "$reason" 60)"
    fi
}

request() {
    case $action in
        drain | update) ask "$UPDATE_UNTIL" "$SCONTROL" update "nodename=$node" state=drain "reason=$wanted_reason" ;;
        undrain) ask "$UPDATE_UNTIL" "$SCONTROL" update "nodename=$node" state=undrain ;;
    esac
}

applied() { if [[ $action == undrain ]]; then ! drained; else drained && [[ $reason == "$wanted_reason" ]]; fi; }

status=0
if [[ $verdict == fail ]]; then status=1; fi
if ! read_node "$READ_UNTIL"; then
    action=none why='the state of the node could not be read' status=1
else
    decide
    # a request that failed or timed out may have been applied all the same
    if ! request && ! { read_node "$READ_BACK_UNTIL" && applied; }; then
        why="$action failed" status=1
    elif [[ $action == undrain ]] || { ((undrained_at == 0 && came_back > 0)) && [[ $verdict == pass ]] && ! drained; }; then
        undrained_at=$epoch # by us, or by somebody else meanwhile
    elif [[ $action == drain ]]; then
        if ((undrained_at == 0)) || [[ ${failed_names%%,*} != "$drained_for" ]]; then
            came_back=0
        elif ((came_back < MOST_PATIENCE)); then
            came_back=$((came_back + 1))
        fi
        drained_for=${failed_names%%,*} undrained_at=0
        patience
    fi
fi

# --- what this run leaves

clock
printf -v duration '%d.%02d' $(((now - BEGAN) / 100)) $(((now - BEGAN) % 100))

replace() { cat >"$1.new" && mv -f -- "$1.new" "$1"; } # in one step, from standard input

replace "$run_dir/health_check.last" <<END_OF_FILE
epoch=$epoch
rc=$status
verdict=$verdict
failed=$failed_names
good_runs=$good_runs
bad_runs=$bad_runs
undrain_after=$undrain_after
came_back=$came_back
undrained_at=$undrained_at
drained_for=$drained_for
duration=$duration
action=$action
END_OF_FILE

metrics() {
    local check value
    echo '# HELP hpcguard_health_check_healthy Whether the last health check of the node passed.'
    echo '# TYPE hpcguard_health_check_healthy gauge'
    echo "hpcguard_health_check_healthy $((${#failed[@]} == 0))"
    echo '# HELP hpcguard_health_check_timestamp_seconds When it ran.'
    echo '# TYPE hpcguard_health_check_timestamp_seconds gauge'
    echo "hpcguard_health_check_timestamp_seconds $epoch"
    echo '# HELP hpcguard_health_check_failed Whether a check failed.'
    echo '# TYPE hpcguard_health_check_failed gauge'
    for check in $ALL_CHECKS; do
        if applies "$check"; then
            if [[ ",$failed_names," == *",$check,"* ]]; then value=1; else value=0; fi
            echo "hpcguard_health_check_failed{check=\"$check\"} $value"
        fi
    done
}
if [[ -n $HC_TEXTFILE ]]; then
    metrics >"$work/metrics"
    # shellcheck disable=SC2016
    ask "$TEXTFILE_UNTIL" "$BASH" -c 'printf "%s\n" "$(<"$1")" >"$2.new" && exec mv -f -- "$2.new" "$2"' textfile "$work/metrics" "$HC_TEXTFILE"
fi

# slurmd swallows what its program prints, and journald does not know the unit of a process that is gone when it looks.
# So the line names slurmd as its object, which `journalctl -u slurmd` shows as well.
log() { # PRIORITY TEXT
    echo "$2"
    if ask "$END" systemctl show -p MainPID slurmd.service && [[ ${answer#MainPID=} =~ ^[1-9][0-9]*$ ]]; then
        printf 'MESSAGE=%s\nPRIORITY=%s\nSYSLOG_IDENTIFIER=slurm_health_check\nOBJECT_PID=%s\n' "$2" "$1" "${answer#MainPID=}" >"$work/entry"
        if ask "$END" logger "--journald=$work/entry"; then return; fi
    fi
    ask "$END" logger -t slurm_health_check -p "daemon.$1" -- "$2"
}
if [[ $verdict == pass ]]; then
    log 6 "HealthCheck 通过 ($node, $duration s)${why:+ [$why]}"
else
    log 3 "HealthCheck 失败 ($node, $duration s): ${details:0:4000} [$why]"
fi
exit "$status"
