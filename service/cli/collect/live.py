"""Repeated rounds: a table that is redrawn in place, or one JSON line per round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import click
from rich.console import RenderableType
from rich.live import Live
from rich.text import Text

from rules.errors import AuthenticationError, CollectError
from rules.facts.last_observation import microseconds
from rules.facts.snapshot import Snapshot
from rules.time_lag import EndHistory, TimeLags, advance, time_lags
from service.cli.collect.snapshot_table import snapshot_document, snapshot_tables
from service.runtime import clock
from service.terminal.answer import print_json
from service.terminal.formats import Format, chosen_format, is_limited, is_screen
from service.terminal.parts import SHOWN
from service.terminal.screen import console, print_tables
from service.terminal.stopping import interrupt_afterwards


class LiveView:
    """Shows each new snapshot; ends with Ctrl-C, by a round limit or a time limit."""

    def __init__(self, *, as_json: bool, all_rows: bool) -> None:
        self._as_json = as_json
        self._all_rows = all_rows
        self._console = console()
        self._ends: EndHistory | None = None
        self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with interrupt_afterwards():
            self._live.stop()

    @property
    def is_live(self) -> bool:
        """Whether a table is redrawn in place."""
        return not self._as_json and is_screen() and chosen_format() is not Format.TSV

    def run(
        self,
        read: Callable[[], Snapshot],
        *,
        interval_seconds: float,
        unfinished: Callable[[], bool] = lambda: True,
    ) -> None:
        """Make a round every `interval_seconds`, counted from start to start, never overlapping."""
        due = clock.monotonic()
        is_authenticated = False
        while unfinished():
            try:
                self.show(read())
                is_authenticated = True
            except CollectError as exc:
                if isinstance(exc, AuthenticationError) and not is_authenticated:
                    raise
                self._show_error(str(exc))
            due = max(due + interval_seconds, clock.monotonic())
            clock.pause(max(due - clock.monotonic(), 0.0))

    @interrupt_afterwards()
    def show(self, snapshot: Snapshot) -> None:
        """Show one round completely: Ctrl-C waits until it is drawn."""
        if self._as_json:
            print_json(snapshot_document(snapshot))
            return
        width = self._console.width
        lags = self._time_lags(snapshot).read_committed
        tables = snapshot_tables(
            snapshot,
            lags=lags,
            all_rows=self._all_rows,
            most=SHOWN if is_limited() else None,
            width=width,
        )
        if self.is_live:
            self._redraw(tables)
        else:
            print_tables(tables.renderables, self._console)

    def _time_lags(self, snapshot: Snapshot) -> TimeLags:
        """Return for how long offsets have waited, as far as the rounds so far show it."""
        self._ends = advance(
            self._ends,
            cluster_id=snapshot.cluster_id,
            partitions=snapshot.partitions,
            offsets=snapshot.offsets,
            now_us=microseconds(snapshot.taken_at + snapshot.ends_read_after),
        )
        return time_lags(self._ends, snapshot)

    def _redraw(self, content: RenderableType) -> None:
        # Starting hides the cursor: it has to be inside the block that shows it again.
        self._live.start()
        self._live.update(content, refresh=True)

    @interrupt_afterwards()
    def _show_error(self, error: str) -> None:
        if self.is_live:
            self._redraw(Text(f"no round: {error}", style="bold yellow"))
        else:
            click.echo(f"tidemark: {error}", err=True)
