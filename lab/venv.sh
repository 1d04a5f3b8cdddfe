#!/bin/bash
# .venv with the pinned development tools, and the link through which the checkout is the collection hpcguard.slurm.
TOPIC=venv; . "$(dirname "$0")/lib.sh"
cd "$REPO"
stamp=.venv/.installed-$(sha256sum requirements-dev.txt | cut -c1-16)

mkdir -p .venv/collections/ansible_collections/hpcguard
ln -sfn ../../../.. .venv/collections/ansible_collections/hpcguard/slurm
[[ -e $stamp && -x .venv/bin/ansible ]] && exit 0

step "make .venv" python3 -m venv .venv
# Without --no-compile pip spends a third of its time on files that are never imported.
step "install pinned development tools" .venv/bin/pip install -q --disable-pip-version-check --no-input --no-compile -r requirements-dev.txt
rm -f .venv/.installed-*
touch "$stamp"
