#!/bin/bash
# What the collection is for, shown on the legacy cluster that `make lab` has just brought up.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/choices.sh"
cd "$REPO" || exit
began=$EPOCHSECONDS

chapter() { printf '\n======== %s ========\n' "$*"; }
play() { .venv/bin/ansible-playbook "playbooks/$1.yml"; }
# Items of the checklist that failed, as the report has them.
failed_items() { python3 -c 'import json; print(*(i["id"] for i in json.load(open("reports/verify.json"))["items"] if i["verdict"] == "fail"))'; }

rm -f reports/verify.json
chapter "1. verify: what is wrong with the legacy cluster (items fail here, as they should)"
if play verify; then die "verify must not pass on a legacy cluster"; fi
[[ -s reports/verify.json ]] || die "verify failed without a report"
legacy=$(failed_items)
[[ -n $legacy ]] || die "verify failed, but no item did"

chapter "2. deploy: one transaction, proved before it is kept"
play deploy

chapter "3. verify: the same items again"
play verify

cat <<X

======== done in $((EPOCHSECONDS - began)) s ========
Failed on the legacy cluster: items $legacy.  Failed now: $(failed_items | grep . || echo none).
The report:     reports/verify.html (also verify.json, verify.xml)
Try next:
  podman exec ${PREFIX}$CONTROLLER sinfo                  look at the cluster
  .venv/bin/ansible-playbook playbooks/status.yml     the cluster in one screen
  .venv/bin/ansible-playbook playbooks/deploy.yml     again: nothing changes
  .venv/bin/ansible-playbook playbooks/rollback.yml   take it back, byte for byte
  make lab-down                                       remove the lab
X
