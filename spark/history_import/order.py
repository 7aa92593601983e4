"""The order of an import: the file of JSON that the service writes and the job reads."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final

CSV: Final = "csv"
PARQUET: Final = "parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """A file of samples."""

    path: str  # absolute
    format: str
    columns: tuple[str, ...] = ()  # of CSV, in the file's order


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOrder:
    """What the job has to know."""

    files: tuple[InputFile, ...]
    history: str  # the folder, as `spark.places.Place` takes it
    staging: str  # the folder below it in which packed days are put
    cluster: str  # of all series
    buckets: int
    zone: str  # IANA, of civil days
    not_before_ms: int  # ms since 1970-01-01 UTC
    not_after_ms: int  # excluded
    times_zone: str | None = None  # IANA, of times that name none; None: such times are rejected
    dry_run: bool = False

    def to_json(self) -> str:
        """Return it as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ImportOrder:
        """Read what `to_json` wrote."""
        read = json.loads(text)
        files = tuple(
            InputFile(**{**file, "columns": tuple(file["columns"])}) for file in read["files"]
        )
        return cls(**{**read, "files": files})
