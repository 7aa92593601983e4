"""Reads secrets from files; imports nothing heavy, because a command may need a token and nothing else of settings."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rules.errors import SettingsError

MAX_SECRET_BYTES: Final = 64 * 1024


def secret_from(name: str, path: Path) -> str:
    """Read a secret from the file that the setting or flag `name` points at.

    Raises:
        SettingsError: the file cannot be read.
    """
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(MAX_SECRET_BYTES).rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as exc:
        raise SettingsError(f"{name} names a file that cannot be read: {path}") from exc
