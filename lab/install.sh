#!/bin/bash
# Install the Debian packages that are missing, and no other. With arguments: only these commands' packages.
. "$(dirname "$0")/lib.sh"
export DEBIAN_FRONTEND=noninteractive

# command or file -> package that brings it
wanted() {
    cat <<'X'
/usr/bin/mmdebstrap          mmdebstrap
/usr/bin/podman              podman
/usr/sbin/runc               runc
/usr/lib/podman/netavark     netavark
/usr/sbin/iptables           iptables
/usr/sbin/nft                nftables
/usr/bin/ssh-keygen          openssh-client
/sbin/sysctl                 procps
/usr/bin/shellcheck          shellcheck
X
}

missing=()
while read -r file package; do
    [[ $# -gt 0 && " $* " != *" $package "* ]] || [[ -e $file ]] || missing+=("$package")
done < <(wanted)
if [[ $# -eq 0 ]] && ! python3 -c 'import ensurepip, venv' 2>/dev/null; then missing+=(python3-venv); fi
((${#missing[@]})) || exit 0

[[ $(id -u) == 0 ]] || die "root is needed to install ${missing[*]}"
# apt keeps no index on a fresh machine, or an old one: refresh once an hour at most.
if [[ -z $(find /var/lib/apt/lists -maxdepth 1 -name '*_Packages*' -mmin -60 -print -quit 2>/dev/null) ]]; then
    step "update the package index" apt-get update -q
fi
step "install ${missing[*]}" apt-get install -qq -y --no-install-recommends -o Dpkg::Options::=--force-unsafe-io "${missing[@]}"
