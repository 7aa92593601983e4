"""Settings of broker log files: what each one means, and why its default."""

from __future__ import annotations

from datetime import tzinfo
from typing import Annotated, Self

from pydantic import Field, model_validator

from collectors.broker_log.wording.times import zone_of
from service.settings.values import FilePattern, Group, Tables, ZoneName


class LogFileSettings(Group):
    """One pattern of files, all of one broker and in one time zone."""

    path: FilePattern
    """Absolute path, with *, ? and [...] as in a shell; rotated files of a match are found
    automatically."""

    broker_id: Annotated[int | None, Field(ge=0, le=2**31 - 1)] = None
    """The broker's id. Default: none, and what needs to know which broker wrote a line stays undecided."""

    time_zone: ZoneName = "UTC"
    """Zone of the times in the lines, by name or as an offset. Default: UTC, as most brokers have."""

    name: Annotated[str | None, Field(min_length=1, max_length=200)] = None
    """Name of the source wherever it is shown. Default: its path."""

    @property
    def source(self) -> str:
        """Return the name of the source."""
        return self.name or self.path

    @property
    def zone(self) -> tzinfo:
        """Return the zone of the times in the lines."""
        return zone_of(self.time_zone)


class BrokerLogSettings(Group):
    """Log files of brokers to read, where Tidemark runs beside them or has them mounted."""

    files: Annotated[
        Tables[LogFileSettings],
        Field(examples=[[{"path": "/var/log/kafka/*.log", "broker_id": 1}]]),
    ] = ()
    """List of tables, as [[broker_logs.files]] in the file or as a JSON list in the environment: path
    (absolute, with * and ?), broker_id, time_zone ("UTC", "Europe/Berlin" or "+02:00"), name. Rotated
    files are followed. Default: none, as Tidemark often runs elsewhere."""

    read_existing: bool = False
    """Whether a file that exists when Tidemark first reads it is read from its beginning. Default:
    false, from its end, because what happened before is not news."""

    max_waiting_events: Annotated[int, Field(ge=1, le=10_000_000)] = 200_000
    """Most events, of log lines sent over HTTP, that no round has read yet, each request counting as one
    more; beyond it requests get 429. Default: ten times what one round reads, about 100 MB."""

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        """Reject two sources of one name: positions and stats are stored by it."""
        if len({file.source for file in self.files}) < len(self.files):
            message = "two of broker_logs.files have the same name or path"
            raise ValueError(f"{message}: give each a name of its own")
        return self
