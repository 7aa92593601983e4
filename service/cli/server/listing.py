"""Fetch lists and single resources of the HTTP API, and print them: tables for people, JSON for
programs. Rows are JSON of a Tidemark of any version: fields may be absent.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from rules.errors import NotThereError, RequestError
from service.cli.terminal.exit_codes import ExitCode
from service.cli.terminal.showing import ABSENT, SHOWN

if TYPE_CHECKING:
    from rich.console import RenderableType

    from service.cli.server.api_client import ApiClient

Row = Mapping[str, Any]

FIRST: Final = ("group", "transactional_id", "client", "topic", "partition")  # labels
LAST: Final = ("cluster",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """All pages of a list."""

    server: str
    page: Row  # the last one, for its fields besides the rows
    rows: Sequence[Row]

    @property
    def as_of(self) -> str | None:
        """Return the time of the list, None if nothing is known yet."""
        as_of: str | None = self.page["as_of"]
        return as_of

    @property
    def is_current(self) -> bool:
        """Whether the list is current."""
        return bool(self.page["is_current"])

    @property
    def exit_code(self) -> ExitCode:
        """Return the exit code: INCOMPLETE if the list is not current."""
        return ExitCode.OK if self.is_current else ExitCode.INCOMPLETE

    def document(self, name: str) -> dict[str, Any]:
        """Return the JSON document, its rows under this name: keys may be added, never renamed."""
        return {
            "server": self.server,
            "as_of": self.as_of,
            "is_current": self.is_current,
            name: list(self.rows),
        }


def fetch_list(api: ApiClient, path: str, filters: Mapping[str, str | int | None]) -> Listed:
    """Return a list; a filter whose value is None is left out."""
    query = {name: value for name, value in filters.items() if value is not None}
    pages = list(api.pages(path, **query))
    rows = [row for page in pages for row in page["items"]]
    return Listed(server=api.server, page=pages[-1], rows=rows)


def require_receiver(api: ApiClient, page: Listed, name: str | None) -> None:
    """Reject an empty list of an unknown receiver: it would suggest that all is well.

    Raises:
        NotThereError: there is no such receiver.
    """
    if name is None or page.rows:
        return
    if name not in {row.get("name") for row in fetch_list(api, "receivers", {}).rows}:
        raise NotThereError(f"there is no receiver {name!r}; `tidemark receivers ls` lists all")


def fetch(api: ApiClient, path: str, what: str) -> Row:
    """Return the document at "list/name"; `what` names it for a person.

    Raises:
        NotThereError: there is no such resource.
        UnreachableError: an older Tidemark, which has no such list at all.
    """
    document = api.find(path)
    if document is None:
        api.get(path.partition("/")[0], limit=1)
        raise NotThereError(f"there is no {what}")
    return document


@contextmanager
def about(name: str) -> Iterator[None]:
    """Add the name of a resource to the error of its change: a command may change several."""
    try:
        yield
    except RequestError as exc:
        raise type(exc)(f"{name}: {exc}") from exc


def print_json(document: Mapping[str, Any]) -> None:
    """Print a document as one line."""
    click.echo(json.dumps(document, separators=(",", ":")))


def print_parts(parts: Iterable[RenderableType]) -> None:
    """Print texts and tables; only tables are folded, so that commands can be copied."""
    from service.cli.collect.snapshot_table import console  # noqa: PLC0415 - keeps `--help` fast
    from service.cli.tx.tables import print_all  # noqa: PLC0415 - same

    print_all(console(), parts)


def more(rows: Sequence[Row]) -> str | None:
    """Return the caption of a table that does not have all rows."""
    return f"{len(rows) - SHOWN} more (-o json)" if len(rows) > SHOWN else None


def text(value: object) -> str:
    """Return a value as text, a dash if there is none."""
    return ABSENT if value is None or value == "" else str(value)


def utc(value: object) -> str:
    """Return a time to the second, for a column whose heading says UTC."""
    timestamp = timestamp_of(value)
    return ABSENT if timestamp is None else f"{timestamp:%Y-%m-%d %H:%M:%S}"


def time(value: object) -> str | None:
    """Return a time with its zone, None if there is none."""
    return None if timestamp_of(value) is None else f"{utc(value)} UTC"


def timestamp_of(value: object) -> datetime | None:
    """Read a time of the API, which is UTC."""
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


def labels_text(labels: object, *, without: Collection[str] = ()) -> str:
    """Return labels in a line: "topic orders, partition 3"."""
    if not isinstance(labels, Mapping):
        return ABSENT
    others = (name for name in labels if name not in (*FIRST, *LAST, *without))
    order = (name for name in (*FIRST, *others, *LAST) if name not in without)
    pairs = (f"{name} {labels[name]}" for name in order if labels.get(name))
    return ", ".join(pairs) or ABSENT
