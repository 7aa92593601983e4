"""The command lines and the folder by which our own Python programs start as child processes.

Whoever starts us chooses the working directory, and Python would import from there before all else:
a folder with a `service` of its own would be run as ours.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PYTHON: Final = sys.executable
FOLDER: Final = "/"  # is there for as long as a child lives, and has nothing that it could pick up


def module_command(module: str, *arguments: str) -> tuple[str, ...]:
    """Return the command that runs a module of ours, found where this process's packages are."""
    return (PYTHON, "-P", "-m", module, *arguments)


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment that means the same in another folder; no module comes from the folder."""
    entries = environment.get("PYTHONPATH", "").split(os.pathsep)
    path = os.pathsep.join(str(Path(entry).absolute()) for entry in entries if entry)
    return {**environment, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}


def script_command(path: Path, *arguments: str) -> tuple[str, ...]:
    """Return the command that runs a file; other files of its folder shadow no module of Python's."""
    return (PYTHON, "-P", str(path), *arguments)
