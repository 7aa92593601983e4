"""Where history is kept, which the nights learn from: what each setting means, and why its default."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from service.settings.group import Group


def _civil_zone(text: str) -> str:
    """Refuse a fixed offset too: it has no days of 23 or 25 hours."""
    try:
        return ZoneInfo(text).key
    except (ValueError, OSError, KeyError) as exc:
        raise PydanticCustomError("zone", "no time zone like Europe/Berlin") from exc


def _place(text: str) -> str:
    """Refuse what is no place of its own, and secrets, which would be shown; neither is repeated."""
    scheme, found, rest = text.partition("://")
    if not found and not text.startswith(("/", "~/")):
        raise PydanticCustomError(
            "place", "write an absolute path, or an address like s3://bucket/folder"
        )
    if found and "@" in rest.partition("/")[0]:
        raise PydanticCustomError(
            "place", "leave credentials out of the address: {scheme} finds them", {"scheme": scheme}
        )
    return text


class HistorySettings(Group):
    """History: every round's lags, rates and spans, packed, which the nights learn from."""

    enabled: bool = True
    """Whether history is kept. Default: on, because what is usual is learnt from weeks that have been;
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
    """IANA time zone in which days and times of week are told; a folder keeps the one that it began
    with. Default: UTC; give that of the people whose work makes the load."""

    retention_days: Annotated[int, Field(ge=35, le=3650)] = 90
    """Days for which samples are kept; the nights need none that they have learnt from, and making
    them anew needs all. Default: a quarter, as for findings; 35 at least, as nights that were missed
    are made up for so far back."""

    buckets: Annotated[int, Field(ge=1, le=999)] = 32
    """Files into which a new folder divides each day: as many parts of a night can run at once.
    Default: enough for a million series on a machine of 16 cores."""

    def folder(self, data_directory: Path) -> str:
        """Return where history is: an address or a path."""
        return self.url or str(data_directory / "history")
