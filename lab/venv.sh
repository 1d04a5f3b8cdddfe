#!/bin/bash
# .venv with the pinned development tools, and the link through which the checkout is the collection hpcguard.slurm.
. "$(dirname "$0")/lib.sh"
cd "$REPO" || exit
stamp=.venv/.installed-$(sha256sum requirements-dev.txt | cut -c1-16)

mkdir -p .venv/collections/ansible_collections/hpcguard
link=.venv/collections/ansible_collections/hpcguard/slurm
[[ -L $link ]] || ln -s ../../../.. "$link"
[[ -e $stamp && -x .venv/bin/ansible ]] && exit 0

step "make .venv" python3 -m venv .venv
# Without --no-compile pip spends a third of its time on files that are never imported.
step "install pinned development tools" .venv/bin/pip install -q --disable-pip-version-check --no-input --no-compile -r requirements-dev.txt
# Molecule and ansible-lint look for ansible on PATH; whoever calls .venv/bin/molecule by its path has it there too.
echo 'import os, sys; os.environ["PATH"] = os.path.join(sys.prefix, "bin") + os.pathsep + os.environ.get("PATH", "")' \
    >"$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/venv_on_path.pth"
rm -f .venv/.installed-*
touch "$stamp"
