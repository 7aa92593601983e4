"""The command lines and the folder by which our own Python programs start as child processes.

Whoever starts us chooses the working directory, and Python would import from there before all else:
a folder with a `service` of its own would be run as ours. Site-packages too may hold a package of that name, so
that our modules come first on a child's path, wherever this process found them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PYTHON: Final = sys.executable
TREE: Final = Path(__file__).parents[2]  # the repository, or the folder of a wheel like it
FOLDER: Final = "/"  # is there for as long as a child lives, and has nothing that it could pick up


def module_command(module: str, *arguments: str) -> tuple[str, ...]:
    """Return the command that runs a module of ours, in an environment of `child_environment`."""
    return (PYTHON, "-P", "-m", module, *arguments)


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment that means the same in another folder; no module comes from the folder."""
    entries = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    paths = dict.fromkeys((TREE, *(Path(entry).absolute() for entry in entries)))
    return {**environment, "PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONSAFEPATH": "1"}


def script_command(path: Path, *arguments: str) -> tuple[str, ...]:
    """Return the command that runs a file; other files of its folder shadow no module of Python's."""
    return (PYTHON, "-P", str(path), *arguments)
