"""Lists of what went wrong: an empty one means that nothing did only if the service observes everything.

A report has the errors because of which there may be more, and the gaps of the service's last round:
what was not observed, why, since when, and what that makes unknown. An older Tidemark gives fewer fields.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import quote

import click

from service.cli.server.listing import query_of
from service.cli.server.server_options import client_of
from service.terminal.answer import print_answer
from service.terminal.exit_codes import ExitCode
from service.terminal.parts import Line, Part, Row, not_seen
from service.terminal.typed_names import complete_id
from service.terminal.words import ABSENT, time

PLACE: Final = re.compile(r"([a-zA-Z0-9._-]{1,249})-([0-9]{1,10})")
GAPS: Final = 10  # the others are counted


@dataclass(frozen=True, slots=True)
class IdForm:
    """The form of the ids of a list, and of what is taken for the beginning of one."""

    whole: re.Pattern[str]
    beginning: re.Pattern[str]


class Api(Protocol):
    """A client of the HTTP API of a Tidemark."""

    server: str

    def get(self, path: str, **query: str | int) -> Row:
        """Return the document at a path."""

    def find(self, path: str, **query: str | int) -> Row | None:
        """Return the document at a path, None if there is none."""

    def pages(self, path: str, **query: str | int) -> Iterator[Row]:
        """Yield all pages of a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Rows of a list, and the errors because of which there may be more."""

    server: str
    cluster: str
    as_of: str | None
    name: str  # of the rows in JSON
    rows: tuple[Row, ...]
    errors: tuple[str, ...]
    gaps: tuple[Row, ...] = ()  # of the last round, the first ones
    more: Mapping[str, Any] = field(default_factory=dict)  # further keys of the JSON document

    @property
    @abstractmethod
    def exit_code(self) -> ExitCode:
        """Return the exit code for a list."""

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
            self.name: list(self.rows),
            **self.more,
        }

    def head(self, counts: str) -> Line:
        """Return the line above a list: cluster, time, counts, and whether the list is complete."""
        return Line((
            (f"cluster {self.cluster}", "bold"),
            f"  as of {time(self.as_of) or ABSENT}  {counts}  ",
            ("not complete", "bold yellow") if self.errors else ("complete", "green"),
        ))  # fmt: skip


ReportT = TypeVar("ReportT", bound=Report)
Query = Mapping[str, str | int]


def build_report(  # noqa: PLR0913 - each by its name
    kind: type[ReportT],
    api: Api,
    name: str,
    rows: Iterable[Row],
    page: Row,
    *,
    judging: Sequence[str],
    errors_of: Callable[[Row, Row], Iterator[str]],
) -> ReportT:
    """Return the report of rows, `page` being the last answer that has them.

    Records may be lost where the rules `judging` cannot judge; `errors_of` yields the errors of the
    page and the document of /status.
    """
    status = api.get("status")
    gaps = read_gaps(api, status)
    return kind(
        server=api.server,
        cluster=str(status.get("cluster")),
        as_of=page["as_of"],
        name=name,
        rows=tuple(rows),
        errors=(*blind_spots(status, gaps, judging), *errors_of(page, status)),
        gaps=tuple(gaps),
    )


def fetch_named(
    name: str,
    form: IdForm,
    fetch: Callable[[str], ReportT],
    list_: Callable[[Query], ReportT],
    *,
    ids_of: Callable[[ReportT], Iterable[str]],
) -> ReportT | None:
    """Return the report of an id, or of a partition: of what is open there, or else of all.

    The beginning of an id suffices, of an open one before others. None: the name is neither one nor a partition.

    Raises:
        RequestError: several ids begin so.
    """
    if form.whole.fullmatch(name):
        return fetch(name)
    place, report = PLACE.fullmatch(name), None
    if place is not None:
        of_place = {"topic": place[1], "partition": int(place[2])}
        report = list_(of_place)
        report = report if report.rows else list_({**of_place, "state": "all"})
    if report is not None and report.rows:
        return report
    for query in ({}, {"state": "all"}) if form.beginning.fullmatch(name) else ():
        ids = [each for each in ids_of(list_(query)) if each.startswith(name)]
        if ids:
            return fetch(complete_id(name, ids, "id"))
    return report


def print_report_list(
    options: Mapping[str, Any],
    filters: Sequence[str],
    list_: Callable[[Api, Query], ReportT],
    render: Callable[[ReportT], Iterable[Part]],
) -> int:
    """Print the report that a command's options choose; return its exit code."""
    with client_of(options) as api:
        report, missing = list_(api, query_of(options, filters)), None
        if not report.rows and not report.errors:
            missing = find_missing(api, topic=options["topic"], group=options.get("group"))
    _print(report, render, options)
    if missing is None:
        return report.exit_code
    click.echo(f"tidemark: {missing}", err=True)
    return ExitCode.NOTHING_MATCHED


def print_named_report(
    name: str,
    options: Mapping[str, Any],
    fetch: Callable[[Api, str], ReportT | None],
    render: Callable[[ReportT], Iterable[Part]],
    *,
    what: str,
) -> int:
    """Print all details of what has this id, or of a partition; return the exit code. `what` is the word for it."""
    with client_of(options) as api:
        report = fetch(api, name)
    if report is None:
        article = "an" if what.startswith("e") else "a"
        raise click.BadParameter(
            f"{name!r} is neither the id of {article} {what} nor TOPIC-PARTITION"
        )
    _print(report, render, options)
    if report.rows:
        return ExitCode.OK
    click.echo(f"tidemark: no {what} is known of {name}", err=True)
    return ExitCode.INCOMPLETE if report.errors else ExitCode.NOTHING_MATCHED


def find_missing(api: Api, *, topic: str | None, group: str | None = None) -> str | None:
    """Return which filter matches nothing in the cluster, None if all match."""
    if topic is not None and not api.get("partitions", topic=topic, limit=1)["items"]:
        return f"no topic matches {topic!r}"
    if group is not None and not api.get("groups", name=group, limit=1)["items"]:
        return f"no group matches {group!r}"
    return None


def blind_spots(status: Row, gaps: Sequence[Row], judging: Sequence[str]) -> Iterator[str]:
    """Yield the reasons why there may be more than the service knows of.

    `gaps` are those of the last round. Records may be lost where the rules `judging` cannot judge.
    """
    outcome, error = status["round"]["outcome"], status["round"]["error"]
    if not status["is_current"]:
        yield f"the service shows old data: {error or 'its last round failed'}"
    elif not is_complete(status):
        causes = ", ".join(f"{n} {cause}" for cause, n in (status["gaps_by_cause"] or {}).items())
        yield f"the last round has gaps: {causes or error or outcome}"
        yield from _gap_lines(status, gaps)
    if status["storage"]["state"] == "not_loaded":
        why = status["storage"]["error"] or "loading is in progress"
        yield f"what was known before the service started is not loaded: {why}"
    rules = {rule["rule"]: rule for rule in status["rules"]}
    for rule_id in judging:
        unknown = rules.get(rule_id, {}).get("unknown")
        if unknown is None:
            yield f"rule {rule_id} was not evaluated"
        elif unknown:
            yield f"rule {rule_id} cannot judge {unknown} of its subjects"


def is_complete(status: Row) -> bool:
    """Return whether the last round is shown, and saw everything."""
    return bool(status["is_current"]) and status["round"]["outcome"] == "complete"


def _print(
    report: ReportT, render: Callable[[ReportT], Iterable[Part]], options: Mapping[str, Any]
) -> None:
    print_answer(report.document, chain(render(report), not_seen(report.errors)), options)


def read_gaps(api: Api, status: Row, most: int = GAPS) -> list[Row]:
    """Return the gaps of the last round, `most` at most."""
    if not status["gaps_by_cause"]:
        return []
    page = api.find(f"clusters/{quote(str(status['cluster']), safe='')}", limit=most)
    return [] if page is None else list(page["items"])


def _gap_lines(status: Row, gaps: Sequence[Row]) -> Iterator[str]:
    for gap in gaps:
        yield f"  {gap['what']}: {gap['why']}"
        since, unknown = time(gap.get("since")), gap.get("makes_unknown")
        parts = (
            since and f"since {since}",
            gap.get("explanation"),
            unknown and f"not known meanwhile: {unknown}",
        )
        remark = "; ".join(part for part in parts if part)
        if remark:
            yield f"    {remark}"
    more = sum((status["gaps_by_cause"] or {}).values()) - len(gaps)
    if gaps and more > 0:
        yield f"  and {more} more: GET /api/v1/clusters/{status['cluster']}"
