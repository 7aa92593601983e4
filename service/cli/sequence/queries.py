"""What is asked of a running Tidemark about sequences, and what its answers mean: a list of nothing
means something only if the service reads the brokers' logs and sees.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from rules.facts.sequence_verdicts import SequenceClass
from service.cli.loss.asking import PLACE, Api, Row, blind_spots
from service.cli.terminal.exit_codes import ExitCode
from service.cli.terminal.gaps import gaps_of

EPISODE_ID: Final = re.compile(r"[0-9a-f]{12}")
IN_FULL: Final = 50  # events, each asked for by itself
SEEING: Final = ("sequence_gap_loss",)  # what it cannot judge may be lost
NO_SOURCE: Final = (
    "no log of a broker is read, and nobody sends lines: what was rejected is not known "
    "(docs/broker-log.md)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Events, and what keeps the service from knowing all of them."""

    server: str
    cluster: str
    as_of: str | None
    sequences: tuple[Row, ...]
    errors: tuple[str, ...]
    gaps: tuple[Row, ...] = ()  # of the last round, the first ones

    @property
    def exit_code(self) -> ExitCode:
        """Return what a script learns from a list."""
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


def ask(api: Api, asked: Mapping[str, str | int]) -> Known:
    """Return the events that match; `asked` are parameters of `/sequences`."""
    pages = list(api.pages("sequences", **asked))
    return _known(api, [row for page in pages for row in page["items"]], pages[-1])


def fetch(api: Api, name: str) -> Known | None:
    """Return an event by its id, or all of a partition; of that the open ones, if there are any.

    None: the name is neither.
    """
    if EPISODE_ID.fullmatch(name):
        found = api.find(f"sequences/{name}")
        page = found or api.get("sequences", limit=1)  # an older Tidemark has none at all
        return _known(api, [] if found is None else [_told(found)], page)
    place = PLACE.fullmatch(name)
    if place is None:
        return None
    of_place = {"topic": place[1], "partition": int(place[2])}
    known = ask(api, of_place)
    return known if known.sequences else ask(api, {**of_place, "state": "all"})


def with_lines(api: Api, known: Known, is_wanted: Callable[[Row], bool]) -> Known:
    """Return the events that are wanted, each with its distinct rejections; the newest of many."""
    wanted = [row for row in known.sequences if is_wanted(row)][:IN_FULL]
    details = (api.find(f"sequences/{row['id']}") for row in wanted)
    rows = tuple(_told(detail) for detail in details if detail is not None)
    return replace(known, sequences=rows)


def is_there(api: Api, topic: str | None) -> str | None:
    """Return what a filter names that the cluster does not have, None if it has it."""
    if topic is None or api.get("partitions", topic=topic, limit=1)["items"]:
        return None
    return f"no topic matches {topic!r}"


def _told(detail: Row) -> Row:
    """Return an event with what only its own page tells."""
    more = {name: detail.get(name) for name in ("lines", "changes")}
    return {**detail["sequence"], **more}


def _known(api: Api, rows: Sequence[Row], page: Row) -> Known:
    status = api.get("status")
    gaps = gaps_of(api, status)
    return Known(
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
