"""Settings of history, which baseline runs learn from: what each one means, and why its default."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field

from service.settings.values import Group


def _civil_zone(text: str) -> str:
    """Reject unknown zones, and fixed offsets: they have no days of 23 or 25 hours."""
    try:
        return ZoneInfo(text).key
    except (ValueError, OSError, KeyError) as exc:
        raise ValueError("no time zone like Europe/Berlin") from exc


def _place(text: str) -> str:
    """Reject relative paths, and addresses with secrets, which would be shown; neither is repeated."""
    scheme, separator, rest = text.partition("://")
    if not separator and not text.startswith(("/", "~/")):
        raise ValueError("write an absolute path, or an address like s3://bucket/folder")
    if separator and "@" in rest.partition("/")[0]:
        raise ValueError(f"leave credentials out of the address: {scheme} finds them")
    return text


class HistorySettings(Group):
    """History: every round's lags, rates and spans, packed, which baseline runs learn from."""

    enabled: bool = True
    """Whether history is kept. Default: on, because baselines are learnt from past weeks;
    10,000 partitions with 30,000 commits and a round in 15 s take about 2 GB a day."""

    url: Annotated[
        Annotated[str, AfterValidator(_place)] | None,
        Field(examples=["s3://bucket/tidemark/history"]),
    ] = None
    """Folder of history: an absolute path, or the address of an object store (s3://, gs://, abfs://,
    hdfs://, file://), with credentials as its own tools find them. Default: history in the data
    directory, so that nothing is installed."""

    time_zone: Annotated[str, AfterValidator(_civil_zone), Field(examples=["Europe/Berlin"])] = (
        "UTC"
    )
    """IANA time zone of days and times of week; a folder keeps the one that it began
    with. Default: UTC; give that of the people whose work makes the load."""

    retention_days: Annotated[int, Field(ge=35, le=3650)] = 90
    """Days for which samples are kept; a baseline run needs only those of its own day, and making all
    runs anew needs all. Default: a quarter, as for findings; 35 at least, as missed baseline runs are
    made up for so far back."""

    buckets: Annotated[int, Field(ge=1, le=999)] = 32
    """Files into which a new folder divides each day: as many parts of a baseline run can run at once.
    Default: enough for a million series on a machine of 16 cores."""

    def folder(self, data_directory: Path) -> str:
        """Return the folder of history: an address or a path."""
        return self.url or str(data_directory / "history")
