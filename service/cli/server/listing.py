"""Fetch lists and single resources of the HTTP API, and print them: tables for people, JSON for
programs. A new list is a `Resource`, its commands, and its line in `service/cli/main.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import click

from rules.errors import NotThereError, RequestError
from rules.verdict import SEVERITIES
from service.cli.server.server_options import client_of
from service.terminal import typed_names
from service.terminal.answer import print_answer
from service.terminal.exit_codes import ExitCode
from service.terminal.formats import is_limited
from service.terminal.parts import Column, Line, Part, Row, Table
from service.terminal.typed_names import not_there
from service.terminal.words import ABSENT

if TYPE_CHECKING:
    from service.cli.server.api_client import ApiClient

FIRST: Final = ("group", "transactional_id", "client", "topic", "partition")  # labels
LAST: Final = ("cluster",)
SHOWN: Final = 100  # rows of a table

limit_option: Final = click.option(
    "--limit", type=click.IntRange(min=0), metavar="ROWS",
    help=f"Rows at most; 0 for all. Default: {SHOWN} in a table on a terminal, otherwise all.",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A list of the HTTP API, as commands show it."""

    path: str
    name: str  # of the rows in JSON
    columns: Sequence[Column[Row]]
    style: Callable[[Row], str | None] = lambda _: None

    def table(self, rows: Sequence[Row]) -> Table[Row]:
        """Return one line per row."""
        return Table(columns=self.columns, rows=rows, style=self.style)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The pages of a list that were fetched."""

    server: str
    page: Row  # the last one, for its fields besides the rows
    rows: Sequence[Row]
    hidden: int = 0  # rows beyond these that are known of
    has_more: bool = False  # rows beyond those as well

    @property
    def exit_code(self) -> ExitCode:
        """Return the exit code: INCOMPLETE if the list is not current."""
        return ExitCode.OK if self.page["is_current"] else ExitCode.INCOMPLETE

    def document(self, name: str) -> dict[str, Any]:
        """Return the JSON document, its rows under this name: keys may be added, never renamed."""
        stamp = {key: self.page[key] for key in ("as_of", "is_current")}
        return {"server": self.server, **stamp, name: list(self.rows)}


def query_of(options: Mapping[str, Any], filters: Iterable[str]) -> dict[str, str | int]:
    """Return the filters that a command's options set, as the API takes them."""
    values = {name: options[name] for name in filters if options[name] is not None}
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in values.items()
    }


def fetch_list(
    api: ApiClient,
    path: str,
    query: Mapping[str, str | int],
    most: int | None = None,
    *,
    is_counted: bool = False,
) -> Listed:
    """Return a list, or its first rows: no page is fetched of which nothing is shown.

    `is_counted`: pages are whole, so that it is known how many rows there are besides, or that these are many.
    """
    from service.cli.server.api_client import LIMIT  # noqa: PLC0415 - keeps `--help` fast

    page: Row = {}
    rows: list[Row] = []
    limit = LIMIT if most is None or is_counted else min(most, LIMIT)
    for page in api.pages(path, **query, limit=limit):
        rows += page["items"]
        if most is not None and len(rows) >= most:
            break
    shown = rows[:most]
    counts: Mapping[str, int] | None = page.get("counts")  # of all pages
    is_cut = bool(page.get("next"))
    total = sum(counts.values()) if is_cut and counts else len(rows)
    return Listed(
        server=api.server,
        page=page,
        rows=shown,
        hidden=total - len(shown),
        has_more=is_cut and not counts,
    )


def severity_rank(severity: object) -> int:
    """Return the place of a severity, the worst first; one that is not known comes last."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def most_rows(options: Mapping[str, Any]) -> int | None:
    """Return how many rows a command shows at most; None for all, as by default in a pipe and for programs."""
    limit: int | None = options.get("limit")
    if limit is None and "limit" in options and options["output"] != "json" and is_limited():
        return SHOWN
    return limit or None


def print_list(
    resource: Resource,
    options: Mapping[str, Any],
    *filters: str,
    empty: str,
    scope: str = "read",
) -> None:
    """Print the list that a command's options choose; `empty` is printed in place of an empty one."""
    listed = query_list(resource, options, *filters, scope=scope)
    parts: list[Part] = [resource.table(listed.rows) if listed.rows else Line(empty)]
    parts += more_rows(listed)
    print_answer(listed.document(resource.name), parts, options)


def more_rows(listed: Listed) -> Iterator[Line]:
    """Yield how to see the rows that are not shown."""
    if listed.hidden or listed.has_more:
        more = f"more than {listed.hidden:,} more" if listed.has_more else f"{listed.hidden:,} more"
        yield Line(f"{more}: --limit 0 or -o wide shows all, filters show fewer")


def query_list(
    resource: Resource, options: Mapping[str, Any], *filters: str, scope: str = "read"
) -> Listed:
    """Return the list that a command's options choose; an unknown receiver is rejected.

    An empty list of an unknown receiver would suggest that all is well.

    Raises:
        NotThereError: there is no such receiver.
    """
    query = query_of(options, filters)
    receiver = query.get("receiver")
    with client_of(options, scope=scope) as api:
        most, is_counted = most_rows(options), options["output"] != "json"
        listed = fetch_list(api, resource.path, query, most, is_counted=is_counted)
        if receiver is not None and not listed.rows:
            names = {row.get("name") for row in fetch_list(api, "receivers", {}).rows}
            if receiver not in names:
                hint = "`tidemark receivers ls` lists all"
                raise not_there(str(receiver), [str(name) for name in names], "receiver", hint=hint)
    return listed


def print_one(
    document_of: Callable[[ApiClient], Row],
    options: Mapping[str, Any],
    render: Callable[[Row], Iterable[Part]],
) -> None:
    """Print one document of the Tidemark that a command's options name."""
    with client_of(options) as api:
        document = document_of(api)
    print_answer(document, render(document), options)


def fetch(api: ApiClient, path: str, what: str, **query: str | int) -> Row:
    """Return the document at "list/name"; `what` names it for a person.

    Raises:
        NotThereError: there is no such resource.
        UnreachableError: an older Tidemark, which has no such list at all.
    """
    document = api.find(path, **query)
    if document is None:
        api.get(path.partition("/")[0], limit=1)
        raise NotThereError(f"there is no {what}")
    return document


def complete_id(
    api: ApiClient,
    path: str,
    typed: str,
    what: str,
    *,
    field: str,
    **query: str | int,
) -> str:
    """Return the whole id of a resource of a list, of which the beginning suffices; its rows have it as `field`.

    Raises:
        NotThereError: none begins so; the error has similar ones.
        RequestError: several begin so, which are named.
        UnreachableError: an older Tidemark, which has no such list.
    """
    rows = fetch_list(api, path, query).rows
    return typed_names.complete_id(typed, (str(row.get(field)) for row in rows), what)


def fetch_by_id(api: ApiClient, path: str, typed: str, what: str) -> Row:
    """Return the document at "path/id"; the beginning of the id suffices. Raises as `complete_id`."""
    document = api.find(f"{path}/{typed}") if typed.isalnum() else None
    if document is not None:
        return document
    whole = complete_id(api, path, typed, what, field="id")
    return fetch(api, f"{path}/{whole}", f"{what} {whole}")


def fetch_completed(api: ApiClient, path: str, typed: str, what: str) -> Row:
    """Return the document at "path/name"; at a terminal the beginning of the name suffices.

    Raises:
        NotThereError: there is none; the error has similar ones.
        RequestError: several begin so, which are named.
        UnreachableError: an older Tidemark, which has no such list.
    """
    document = api.find(f"{path}/{quote(typed, safe='')}")
    if document is not None:
        return document
    names = [str(row.get("name")) for row in fetch_list(api, path, {}).rows]
    name = typed_names.complete_name(typed, names, what)
    return fetch(api, f"{path}/{quote(name, safe='')}", f"{what} {name}")


@contextmanager
def suggesting(api: ApiClient, path: str, typed: str, what: str) -> Iterator[None]:
    """Add similar names to the error of a change of a resource that is not there: a change needs the whole name."""
    try:
        yield
    except NotThereError as exc:
        names = [str(row.get("name")) for row in fetch_list(api, path, {}).rows]
        raise not_there(typed, names, what) from exc


@contextmanager
def about(name: str) -> Iterator[None]:
    """Add the name of a resource to the error of its change: a command may change several."""
    try:
        yield
    except RequestError as exc:
        raise type(exc)(f"{name}: {exc}") from exc


def labels_text(labels: object, *, without: Collection[str] = ()) -> str:
    """Return labels in a line: "topic orders, partition 3"."""
    if not isinstance(labels, Mapping):
        return ABSENT
    others = (name for name in labels if name not in (*FIRST, *LAST, *without))
    order = (name for name in (*FIRST, *others, *LAST) if name not in without)
    pairs = (f"{name} {labels[name]}" for name in order if labels.get(name))
    return ", ".join(pairs) or ABSENT
