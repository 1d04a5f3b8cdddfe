# make demo: from a bare Debian 12 or 13 to a healed Slurm cluster.    make test: every test.
# LAB_ID=1..9 gives labs side by side.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup lab lab-down demo lint unit sanity molecule test bench clean

export LAB_ID
export PATH := $(CURDIR)/.venv/bin:$(PATH)

help:                   ## this text
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 20

setup:                  ## install what is missing: packages, .venv, the lab's image
	@lab/setup.sh

lab: setup              ## a fresh legacy cluster: one controller, three nodes
	@lab/up.sh

lab-down:               ## remove the lab, and nothing else
	@lab/down.sh

demo: lab               ## lab, verify (fails), deploy, verify (passes)
	@lab/demo.sh

clean:                  ## remove what the tools left in the checkout
	@rm -rf reports tests/output .ansible .cache .mypy_cache .pytest_cache .ruff_cache hpcguard-slurm-*.tar.gz
