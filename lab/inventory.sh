#!/bin/bash
# The lab as an inventory of Ansible's (JSON): the one that stands, and else the one that `make lab` would bring up.
. "$(dirname "$0")/lib.sh"
# shellcheck source=/dev/null
[[ ! -r $STATE/choices ]] || . "$STATE/choices"
. "$(dirname "$0")/choices.sh"

joined() { local IFS=,; printf '%s' "$*"; }
hosts() {   # NAME...
    local quoted=("${@/#/\"}")
    printf '{"hosts": [%s]}' "$(joined "${quoted[@]/%/\"}")"
}

variables=()
for host in "${HOSTS[@]}"; do
    variables+=("\"$host\": {\"ansible_host\": \"${ADDRESS[$host]}\", \"ansible_python_interpreter\": \"/usr/bin/python$PYTHON\"}")
done
cat <<X
{
  "slurm_controller": $(hosts "${CONTROLLERS[@]}"),
  "slurm_dbd": $(hosts ${DBD:+"$DBD"}),
  "slurm_login": $(hosts ${LOGIN:+"$LOGIN"}),
  "slurm_compute": $(hosts "${NODES[@]}"),
  "_meta": {"hostvars": {$(joined "${variables[@]}")}}
}
X
