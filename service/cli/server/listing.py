"""Lists and single things of the HTTP API as commands print them: tables for people, JSON for
programs. Rows are JSON of a Tidemark that may be newer: what it does not tell is absent.
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
    page: Row  # the last one, for what it says beside its rows
    rows: Sequence[Row]

    @property
    def as_of(self) -> str | None:
        """Return of when the list is, None where nothing is known yet."""
        as_of: str | None = self.page["as_of"]
        return as_of

    @property
    def is_current(self) -> bool:
        """Whether it is of now."""
        return bool(self.page["is_current"])

    @property
    def exit_code(self) -> ExitCode:
        """Return what a script learns: whether the list is of now."""
        return ExitCode.OK if self.is_current else ExitCode.INCOMPLETE

    def document(self, name: str) -> dict[str, Any]:
        """Return the JSON document, its rows under this name: keys may be added, never renamed."""
        return {
            "server": self.server,
            "as_of": self.as_of,
            "is_current": self.is_current,
            name: list(self.rows),
        }


def listed(api: ApiClient, path: str, asked: Mapping[str, str | int | None]) -> Listed:
    """Return a list; what is asked for with None is not asked for."""
    given = {name: value for name, value in asked.items() if value is not None}
    pages = list(api.pages(path, **given))
    rows = [row for page in pages for row in page["items"]]
    return Listed(server=api.server, page=pages[-1], rows=rows)


def require_receiver(api: ApiClient, found: Listed, name: str | None) -> None:
    """Refuse a list of nothing about a receiver that is not set: it would be a wrong comfort.

    Raises:
        NotThereError: there is no such receiver.
    """
    if name is None or found.rows:
        return
    if name not in {row.get("name") for row in listed(api, "receivers", {}).rows}:
        raise NotThereError(f"there is no receiver {name!r}; `tidemark receivers ls` has all")


def one(api: ApiClient, path: str, what: str) -> Row:
    """Return what is at "list/name"; `what` names it for a person.

    Raises:
        NotThereError: there is no such thing.
        UnreachableError: an older Tidemark, which has no such list at all.
    """
    found = api.find(path)
    if found is None:
        api.get(path.partition("/")[0], limit=1)
        raise NotThereError(f"there is no {what}")
    return found


@contextmanager
def about(name: str) -> Iterator[None]:
    """Name the thing that cannot be changed: a command may be given several."""
    try:
        yield
    except RequestError as exc:
        raise type(exc)(f"{name}: {exc}") from exc


def print_json(document: Mapping[str, Any]) -> None:
    """Print a document as one line."""
    click.echo(json.dumps(document, separators=(",", ":")))


def print_parts(parts: Iterable[RenderableType]) -> None:
    """Print texts and tables; what may be copied into a shell is never folded."""
    from service.cli.collect.snapshot_table import console  # noqa: PLC0415 - keeps `--help` fast
    from service.cli.tx.tables import print_all  # noqa: PLC0415 - same

    print_all(console(), parts)


def more(rows: Sequence[Row]) -> str | None:
    """Return what is below a table that does not have all rows."""
    return f"{len(rows) - SHOWN} more (-o json)" if len(rows) > SHOWN else None


def text(value: object) -> str:
    """Return a value, and a dash where there is none."""
    return ABSENT if value is None or value == "" else str(value)


def utc(value: object) -> str:
    """Return a time to the second, under a heading that says that it is UTC."""
    timestamp = timestamp_of(value)
    return ABSENT if timestamp is None else f"{timestamp:%Y-%m-%d %H:%M:%S}"


def time(value: object) -> str | None:
    """Return a time with its zone, None where there is none."""
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
    told = (f"{name} {labels[name]}" for name in order if labels.get(name))
    return ", ".join(told) or ABSENT
