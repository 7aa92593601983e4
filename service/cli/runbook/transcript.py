"""What was done while a runbook was followed: a text file, written as it happens.

Each event begins with its time in UTC, and the lines of an output are indented below it. The file is for its owner alone: outputs
name topics, groups and hosts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Final, Self, TextIO

from service.terminal.output import OutputError
from service.terminal.words import printable

INDENT: Final = "    "
FOLDER: Final = ("tidemark", "runbooks")  # below the user's state folder
FORM: Final = "%Y-%m-%dT%H:%M:%SZ"
ODD: Final = re.compile(r"[^A-Za-z0-9_-]+")


class Transcript:
    """An open transcript."""

    def __init__(self, path: Path, utc_now: Callable[[], datetime]) -> None:
        """Open the file, and append to one that is there.

        Raises:
            OutputError: the file cannot be written.
        """
        self.path = path
        self._utc_now = utc_now
        try:
            number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as exc:
            raise OutputError(f"{path}: {(exc.strerror or str(exc)).lower()}") from exc
        self._file: TextIO = os.fdopen(number, "w", encoding="utf-8", errors="replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def note(self, event: str, lines: Iterable[str] = ()) -> None:
        """Write an event and the lines below it, at once.

        Raises:
            OutputError: the file cannot be written.
        """
        texts = [f"{self._utc_now():{FORM}} {printable(event)}"]
        self._write([*texts, *(f"{INDENT}{printable(line)}".rstrip() for line in lines)])

    def note_line(self, line: str) -> None:
        """Write a line of the output of what was noted last; errors are those of `note`."""
        self._write([f"{INDENT}{printable(line)}".rstrip()])

    def _write(self, lines: Iterable[str]) -> None:
        try:
            self._file.write("".join(f"{line}\n" for line in lines))
            self._file.flush()
        except OSError as exc:
            raise OutputError(f"{self.path}: {(exc.strerror or str(exc)).lower()}") from exc


def default_path(state_folder: Path, rule: str, fingerprint: str, now: datetime) -> Path:
    """Return the file of a new transcript in the user's state folder, whose folders are created.

    Raises:
        OutputError: a folder cannot be created.
    """
    folder = state_folder.joinpath(*FOLDER)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as exc:
        raise OutputError(f"{folder}: {(exc.strerror or str(exc)).lower()}") from exc
    name = "-".join(ODD.sub("_", part) for part in (f"{now:%Y%m%dT%H%M%SZ}", rule, fingerprint))
    return folder / f"{name}.txt"


def state_folder_of(environment: dict[str, str], home: Path) -> Path:
    """Return the user's state folder, by the XDG convention."""
    folder = environment.get("XDG_STATE_HOME", "")
    return Path(folder) if Path(folder).is_absolute() else home / ".local" / "state"
