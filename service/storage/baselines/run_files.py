"""The files of one nightly run, and the dictionary that gives its series their labels."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from pyarrow.fs import FileSystem

from rules.baseline.layout import run_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlace:
    """Where a run is."""

    files: FileSystem
    history: str  # the folder of history in it
    day: date
    run_id: str

    @property
    def folder(self) -> str:
        """Return the run's own folder."""
        return f"{self.history.rstrip('/')}/{run_folder(self.day, self.run_id)}"
