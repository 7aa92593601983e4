"""Rounds again and again: a table that redraws itself, or one JSON line per round."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Self

import click
from rich.live import Live
from rich.text import Text

from rules.errors import AuthenticationError, CollectError
from rules.facts.snapshot import Snapshot
from service import clock
from service.cli.snapshot_json import snapshot_document
from service.cli.snapshot_table import console, snapshot_tables


class LiveView:
    """Shows snapshots as they come; ends with Ctrl-C, by a round limit or a time limit."""

    def __init__(self, *, as_json: bool, all_rows: bool) -> None:
        self._as_json = as_json
        self._all_rows = all_rows
        self._console = console()
        self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")

    def __enter__(self) -> Self:
        if not self._as_json and self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    @property
    def is_live(self) -> bool:
        """Whether a table redraws itself in place."""
        return self._live.is_started

    def run(
        self,
        read: Callable[[], Snapshot],
        *,
        interval_seconds: float,
        unfinished: Callable[[], bool] = lambda: True,
    ) -> None:
        """Make a round every `interval_seconds`, counted from start to start, never overlapping."""
        due = clock.monotonic()
        was_let_in = False
        while unfinished():
            try:
                self.show(read())
                was_let_in = True
            except CollectError as exc:
                if isinstance(exc, AuthenticationError) and not was_let_in:
                    raise
                self._tell(str(exc))
            due = max(due + interval_seconds, clock.monotonic())
            clock.pause(max(due - clock.monotonic(), 0.0))

    def show(self, snapshot: Snapshot) -> None:
        """Show one round."""
        if self._as_json:
            click.echo(json.dumps(snapshot_document(snapshot), separators=(",", ":")))
        elif self._live.is_started:
            self._live.update(snapshot_tables(snapshot, all_rows=self._all_rows), refresh=True)
        else:
            self._console.print(snapshot_tables(snapshot, all_rows=self._all_rows))
        sys.stdout.flush()

    def _tell(self, trouble: str) -> None:
        if self._live.is_started:
            self._live.update(Text(f"no round: {trouble}", style="bold yellow"), refresh=True)
        else:
            click.echo(f"tidemark: {trouble}", err=True)
