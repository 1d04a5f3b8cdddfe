#!/bin/bash
# Ansible's way to the hosts of the lab; LAB_ID=N (default 0) chooses among labs that stand side by side.
exec "$(dirname "$0")/../../lab/inventory.sh"
