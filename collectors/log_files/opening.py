"""Small files of a log directory as bytes or lines, and what the system says of those that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rules.facts.log_files import FileProblem, ProblemKind

# No file but a segment is so large: a snapshot of 20 million producers, a checkpoint of a million partitions.
LARGEST: Final = 1024 * 1024 * 1024
OFFSET_DIGITS: Final = 20


def not_readable(path: Path, error: OSError) -> FileProblem:
    """Return the problem of a file or folder that the system does not let us read."""
    why = (error.strerror or str(error)).lower()
    return FileProblem(kind=ProblemKind.NOT_READABLE, path=str(path), why=f"cannot be read: {why}")


def read_bytes(path: Path) -> bytes | FileProblem:
    """Return the content of a file."""
    try:
        with path.open("rb") as file:
            return file.read(LARGEST)
    except OSError as exc:
        return not_readable(path, exc)


def base_offset_of(path: Path) -> int | None:
    """Return the offset that a file of a log is named after; None: it has another name."""
    stem = path.name.partition(".")[0]
    is_offset = len(stem) == OFFSET_DIGITS and stem.isascii() and stem.isdigit()
    return int(stem) if is_offset else None
