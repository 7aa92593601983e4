"""What the system says of files that cannot be opened or read, as problems."""

from __future__ import annotations

from pathlib import Path

from rules.facts.log_files import FileProblem, ProblemKind


def not_readable(path: Path, error: OSError) -> FileProblem:
    """Return the problem of a file or folder that the system does not let us read."""
    why = (error.strerror or str(error)).lower()
    return FileProblem(kind=ProblemKind.NOT_READABLE, path=str(path), why=f"cannot be read: {why}")
