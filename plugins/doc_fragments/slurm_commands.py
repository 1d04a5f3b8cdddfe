# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of the modules that ask Slurm's commands. Read on the control node only."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  bin_dir:
    description: Directory of Slurm's commands.
    type: path
    default: ""
  conf_path:
    description: The slurm.conf that they use.
    type: path
"""
