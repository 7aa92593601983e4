"""Tells whether a data directory could be used, without making or locking anything.

Whether another service has it is not asked: settings are also checked beside the service that runs
with them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from rules.errors import SettingsError


def _may_write(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK)


def require_usable(folder: str, *, may_write: Callable[[Path], bool] = _may_write) -> None:
    """Refuse a folder that a service could neither use nor make.

    Raises:
        SettingsError: naming the folder, and what is in the way.
    """
    if "\0" in folder:  # for which Python says that nothing is there, and nothing can be made
        raise SettingsError(f"data directory {folder!r} is no path that can be used")
    try:
        path = Path(folder).expanduser().absolute()
        there = next(part for part in (path, *path.parents) if part.exists() or part.is_symlink())
        is_folder = there.is_dir()
    except OSError as exc:  # a folder that we may not even inspect
        told = (exc.strerror or str(exc)).lower()
        raise SettingsError(f"data directory {folder} cannot be used: {told}") from exc
    except RuntimeError as exc:
        raise SettingsError(f"data directory {folder}: that user has no home") from exc
    doing = "used" if there == path else "made"
    if not is_folder:
        raise SettingsError(f"data directory {path} cannot be {doing}: {there} is not a folder")
    if not may_write(there):
        raise SettingsError(f"data directory {path} cannot be {doing}: {there} cannot be written")
