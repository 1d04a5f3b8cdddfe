# make demo: from a bare Debian 12 or 13 to a healed Slurm cluster.    make test: every test.
# LAB_ID=1..9 gives labs side by side, each with its own containers, network and keys.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

export PATH := $(CURDIR)/.venv/bin:$(PATH)
export LAB_ID ?=
# Where the lab's tests write what they measured.
REPORTS := reports$(if $(LAB_ID),/lab$(LAB_ID))

SCENARIOS := $(sort $(patsubst molecule/%/molecule.yml,molecule-%,$(wildcard molecule/*/molecule.yml)))
# Hours, not minutes: these have targets of their own.
LONG := molecule-diagnose molecule-fault_table molecule-operations molecule-patrol molecule-releases
# The cold start is mostly waiting, so it runs beside the last one.
ORDERED := $(filter-out $(LONG) molecule-cold_start molecule-transaction,$(SCENARIOS)) 'molecule-cold_start&' molecule-transaction
.PHONY: help setup lab lab-down demo test lint unit sanity build molecule $(SCENARIOS) faults patrol operations diagnose releases bench clean

help:                   ## this text
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 20

setup:                  ## install what is missing: packages, .venv, the lab's image
	@lab/setup.sh

lab: setup              ## a fresh legacy cluster: one controller, three nodes; RELEASE= LAYOUT= CONF= TOPOLOGY= PYTHON= as in lab/choices.sh
	@lab/up.sh

lab-down:               ## remove the lab, and nothing else
	@lab/down.sh

demo: lab               ## a legacy cluster, what fails on it, the rollout, and the proof
	@lab/demo.sh

test: setup             ## every test; uses the lab and removes it
	@.ci/parts lint unit sanity build $(ORDERED)

lint: setup             ## ruff, mypy, yamllint, ansible-lint, shellcheck, Python 2.7 and 3.6
	ruff check .
	ruff format --check .
	mypy
	yamllint .
	ansible-lint
	shellcheck $$(git grep -lE '^#!.*\b(ba|da)?sh\b' -- ':!*.j2')
	tests/tools/compat

unit: setup             ## pure functions over recorded text
	python -m pytest -n auto tests/unit

sanity: setup           ## ansible-test sanity
	tests/tools/sanity

build: setup            ## the artefact builds, installs and runs
	tests/tools/build-install

molecule: setup         ## every scenario on the lab; make molecule-NAME runs one
	@.ci/parts $(ORDERED)

$(SCENARIOS): molecule-%: setup
	molecule test -s $*

faults: setup           ## everything that can break while a rollout runs; writes docs/fault-table.md
	molecule test -s fault_table
	tests/tools/fault-table $(REPORTS)/fault-table.json

patrol: setup           ## layer 2 by itself: faults put right, wishes left alone, cold starts in every order
	molecule test -s patrol

operations: setup       ## status.yml and recover.yml on a cluster that nothing was rolled out to
	molecule test -s operations

diagnose: setup         ## jobs that fail or wait in every way, and what diagnose.yml and slurm-why say
	molecule test -s diagnose

releases: setup         ## every release of Debian, both layouts, Python 2.7; writes the matrix of the READMEs
	molecule test -s releases
	tests/tools/matrix $(REPORTS)/matrix.json

bench: setup            ## timings
	python -m pytest tests/bench

clean:                  ## remove what the tools left in the checkout
	rm -rf reports tests/output .ansible .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache hpcguard-slurm-*.tar.gz
