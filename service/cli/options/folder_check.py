"""Check whether a data directory can be used, without creating or locking anything.

Whether another service has locked it is not checked: settings are also checked while the service that
uses them runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from rules.errors import SettingsError


def _may_write(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK)


def require_usable(folder: str, *, may_write: Callable[[Path], bool] = _may_write) -> None:
    """Reject a folder that a service could neither use nor create.

    Raises:
        SettingsError: the text names the folder and the reason.
    """
    if "\0" in folder:  # Python reports such a path as missing, and cannot create it
        raise SettingsError(f"data directory {folder!r} is not a usable path")
    try:
        path = Path(folder).expanduser().absolute()
        there = next(part for part in (path, *path.parents) if part.exists() or part.is_symlink())
        is_folder = there.is_dir()
    except OSError as exc:  # a folder that we may not even inspect
        reason = (exc.strerror or str(exc)).lower()
        raise SettingsError(f"data directory {folder} cannot be used: {reason}") from exc
    except RuntimeError as exc:
        raise SettingsError(f"data directory {folder}: that user has no home") from exc
    doing = "used" if there == path else "created"
    if not is_folder:
        raise SettingsError(f"data directory {path} cannot be {doing}: {there} is not a folder")
    if not may_write(there):
        raise SettingsError(f"data directory {path} cannot be {doing}: {there} cannot be written")
