"""Query a running Tidemark for sequence events, and judge its answers: an empty list means that there
are none only if the service reads the brokers' logs and observes everything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from rules.facts.sequence_verdicts import SequenceClass
from service.cli.loss.queries import PLACE, Api, Row, blind_spots
from service.cli.terminal.exit_codes import ExitCode
from service.cli.terminal.gaps import gaps_of

EPISODE_ID: Final = re.compile(r"[0-9a-f]{12}")
IN_FULL: Final = 50  # events, each fetched by itself
SEEING: Final = ("sequence_gap_loss",)  # records may be lost where it cannot judge
NO_SOURCE: Final = (
    "rejected batches are not known: the service reads no broker's log, and no lines are sent to it "
    "(docs/broker-log.md)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceReport:
    """Events, and the errors because of which there may be more."""

    server: str
    cluster: str
    as_of: str | None
    sequences: tuple[Row, ...]
    errors: tuple[str, ...]
    gaps: tuple[Row, ...] = ()  # of the last round, the first ones

    @property
    def exit_code(self) -> ExitCode:
        """Return the exit code for a list."""
        losses = [row for row in self.sequences if row.get("class") == SequenceClass.LOSS]
        if any(not row.get("is_investigating") for row in losses):
            return ExitCode.LOST
        return ExitCode.INCOMPLETE if self.errors or losses else ExitCode.OK

    @property
    def document(self) -> dict[str, Any]:
        """Return the JSON document: keys may be added, never renamed."""
        return {
            "server": self.server,
            "cluster": self.cluster,
            "as_of": self.as_of,
            "complete": not self.errors,
            "errors": list(self.errors),
            "gaps": list(self.gaps),
            "sequences": list(self.sequences),
        }


def list_sequences(api: Api, parameters: Mapping[str, str | int]) -> SequenceReport:
    """Return the events that match; `parameters` are those of `/sequences`."""
    pages = list(api.pages("sequences", **parameters))
    return _build_report(api, [row for page in pages for row in page["items"]], pages[-1])


def fetch_sequences(api: Api, name: str) -> SequenceReport | None:
    """Return an event by its id, or those of a partition: the open ones, or all if none is open.

    None: the name is neither an id nor a partition.
    """
    if EPISODE_ID.fullmatch(name):
        detail = api.find(f"sequences/{name}")
        page = detail or api.get("sequences", limit=1)  # an older Tidemark has none at all
        return _build_report(api, [] if detail is None else [_merge_details(detail)], page)
    place = PLACE.fullmatch(name)
    if place is None:
        return None
    of_place = {"topic": place[1], "partition": int(place[2])}
    report = list_sequences(api, of_place)
    return report if report.sequences else list_sequences(api, {**of_place, "state": "all"})


def add_lines(api: Api, report: SequenceReport, accepts: Callable[[Row], bool]) -> SequenceReport:
    """Return the accepted events, each with its distinct rejections; at most `IN_FULL`."""
    chosen = [row for row in report.sequences if accepts(row)][:IN_FULL]
    details = (api.find(f"sequences/{row['id']}") for row in chosen)
    rows = tuple(_merge_details(detail) for detail in details if detail is not None)
    return replace(report, sequences=rows)


def find_missing(api: Api, topic: str | None) -> str | None:
    """Return which filter matches nothing in the cluster, None if it matches."""
    if topic is None or api.get("partitions", topic=topic, limit=1)["items"]:
        return None
    return f"no topic matches {topic!r}"


def _merge_details(detail: Row) -> Row:
    """Return an event with the fields that only its own document has."""
    more = {name: detail.get(name) for name in ("lines", "changes")}
    return {**detail["sequence"], **more}


def _build_report(api: Api, rows: Sequence[Row], page: Row) -> SequenceReport:
    status = api.get("status")
    gaps = gaps_of(api, status)
    return SequenceReport(
        server=api.server,
        cluster=str(status.get("cluster")),
        as_of=page["as_of"],
        sequences=tuple(rows),
        errors=tuple(_errors(status, page, gaps)),
        gaps=tuple(gaps),
    )


def _errors(status: Row, page: Row, gaps: list[Row]) -> Iterator[str]:
    yield from blind_spots(status, gaps, seeing=SEEING)
    if not page.get("log_is_read"):
        yield NO_SOURCE
