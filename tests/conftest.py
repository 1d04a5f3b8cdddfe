"""Makes ``ansible_collections.hpcguard.slurm`` importable from the checkout, wherever it lies."""

from __future__ import annotations

import pathlib
import sys
import types

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent


def _package(name: str, *path: pathlib.Path) -> None:
    """A package without a file of its own, whose parts are looked for in *path*."""
    package = types.ModuleType(name)
    package.__path__ = [str(directory) for directory in path]
    sys.modules[name] = package
    parent, _dot, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, package)


_package("ansible_collections")
_package("ansible_collections.hpcguard")
_package("ansible_collections.hpcguard.slurm", REPOSITORY)
