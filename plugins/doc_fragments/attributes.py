# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What several modules say of themselves. Read on the control node only."""

from __future__ import annotations


class ModuleDocFragment:
    """``attributes`` for all, ``attributes.info`` for those that only look, ``attributes.report`` for those that print."""

    DOCUMENTATION = r"""
options: {}
attributes:
  platform:
    description: Target platforms.
    platforms: posix
    support: full
"""

    INFO = r"""
options: {}
attributes:
  check_mode:
    description: Changes nothing, so check mode makes no difference.
    support: full
  diff_mode:
    description: Has nothing to show in diff mode.
    support: none
  idempotent:
    description: Changes nothing, so running it again changes nothing.
    support: full
"""

    REPORT = r"""
options: {}
attributes:
  check_mode:
    description: Can run in check mode and does the same there.
    support: full
  diff_mode:
    description: Has nothing to show in diff mode.
    support: none
"""
