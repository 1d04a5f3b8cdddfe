# Shared by the lab's scripts: what this lab is called, where it lives, and how it reports progress.
# LAB_ID=1..9 (default: unset) gives labs side by side: own container names, network and state, same host names.
# shellcheck shell=bash disable=SC2034
set -euo pipefail

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
PATH=${PATH//"$REPO/.venv/bin:"/}      # the environment is not made with what it may contain
LAB_ID=${LAB_ID:-0}
[[ $LAB_ID =~ ^[0-9]$ ]] || { echo "LAB_ID must be one digit, not '$LAB_ID'" >&2; exit 2; }
CACHE=${HPCGUARD_LAB_CACHE:-/var/cache/hpcguard-lab}     # images: shared by all checkouts and labs
STATE=/var/lib/hpcguard-lab/lab$LAB_ID                   # choices, keys and file systems of this lab
PREFIX=''; ((LAB_ID == 0)) || PREFIX=lab$LAB_ID-
NETWORK=hpcguard-lab$LAB_ID
SUBNET=10.89.$((40 + LAB_ID))

say() { printf '%(%T)T %-9s %s\n' -1 "[$(basename "$0" .sh)]" "$*"; }
die() { say "ERROR: $*" >&2; exit 1; }

# step TEXT COMMAND...: say what begins; on failure show the command's output, on success how long it took.
step() {
    local text=$1 log from tenths; shift
    log=$(mktemp); from=${EPOCHREALTIME/[.,]/}
    say "$text ..."
    # In the background, since `set -e` has no effect in what `if` runs.
    "$@" >"$log" 2>&1 </dev/null &
    if ! wait $!; then
        tail -n 60 "$log" >&2
        rm -f "$log"
        die "$text: failed"
    fi
    rm -f "$log"
    tenths=$(((${EPOCHREALTIME/[.,]/} - from) / 100000))
    say "$text: done in $((tenths / 10)).$((tenths % 10)) s"
}
