"""When the live screen queries the service, in a thread of its own: keys are answered also while nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime, timedelta
from typing import Final

from rules.errors import TidemarkError
from service.cli.server.report import Api
from service.cli.status import LATE_ROUNDS
from service.cli.watch.drawing import clock_time
from service.cli.watch.fetching import (
    Board,
    Details,
    Fetched,
    Subject,
    fetch_board,
    fetch_details,
    needs_query,
)
from service.cli.watch.lists import SHAPES
from service.cli.watch.state import State
from service.runtime import clock, threads

LEAST_SECONDS: Final = 1.0  # between two refreshes
DEFAULT_SECONDS: Final = 5.0  # where the service does not say how often it makes a round
RETRY_SECONDS: Final = 5.0  # at most, after a refresh that failed
TICK_SECONDS: Final = 1.0  # between two screens on which only ages differ
SILENCE_SECONDS: Final = 5.0  # without an answer, after which the screen is not current


class Refresher:
    """Holds what was fetched last, and fetches what is due; one refresh at a time."""

    def __init__(
        self, api: Api, board: Board, *, interval: float | None, wake: Callable[[], None]
    ) -> None:
        """`interval` is in seconds; None: as often as the service makes a round."""
        self.board = board
        self._api = api
        self._interval = interval
        self._wake = wake
        self._fetched: Details | None = None
        self._error: str | None = None
        self._running: Future[Fetched] | None = None
        self._begun = clock.monotonic()
        self._due = self._begun + self.interval
        self._refreshes = 0
        self._was_paused = False

    @property
    def interval(self) -> float:
        """Return the seconds from the start of one refresh to the start of the next."""
        if self._interval is not None:
            return self._interval
        seconds = self.board.overview.status["round"].get("interval_seconds")
        return max(float(seconds or DEFAULT_SECONDS), LEAST_SECONDS)

    def step(self, state: State) -> None:
        """Take what has arrived, and begin what is due."""
        self._take()
        if self._was_paused and not state.is_paused:
            self._due = clock.monotonic()
        self._was_paused = state.is_paused
        if self._running is not None:
            return
        is_requested = state.refreshes != self._refreshes
        is_due = is_requested or (not state.is_paused and clock.monotonic() >= self._due)
        subject = state.subject if state.subject and needs_query(state.subject) else None
        is_new = subject is not None and (self._fetched is None or self._fetched.subject != subject)
        if is_due or is_new:
            self._refreshes = state.refreshes
            self._begin(subject, with_board=is_due)

    def details(self, state: State) -> Details | None:
        """Return the details of the row that is open, None until they arrive."""
        subject = state.subject
        if subject is None or needs_query(subject):
            return self._fetched
        key = SHAPES[subject.name].key
        row = next((r for r in self.board.lists[subject.name].rows if key(r) == subject.key), None)
        error = "it is no longer in the list" if row is None else None
        return Details(subject=subject, document=row, error=error)

    def not_current(self, state: State, now: datetime) -> str | None:
        """Return why what is shown is not of now, None if it is."""
        since = f"NOT CURRENT since {clock_time(self.board.fetched_at)}"
        limit = LATE_ROUNDS * self.interval + SILENCE_SECONDS
        waited = clock.monotonic() - self._begun
        if state.is_paused:
            error = "" if self._error is None else f": {self._error}"
            return f"PAUSED, p goes on: {since}{error}"
        if self._error is not None:
            return f"{since}: {self._error}"
        if self._running is not None and waited > SILENCE_SECONDS:
            return f"{since}: {self._api.server} has not answered yet"
        if now - self.board.fetched_at > timedelta(seconds=limit):
            return since
        return None

    def seconds_left(self) -> float:
        """Return the time until a refresh may be due, at most until the ages on the screen have to go on."""
        if self._running is not None:
            return TICK_SECONDS  # its end wakes the screen
        return min(max(self._due - clock.monotonic(), 0.0), TICK_SECONDS)

    def _begin(self, subject: Subject | None, *, with_board: bool) -> None:
        now = clock.utc_now()

        def fetch() -> Fetched:
            board = fetch_board(self._api, now) if with_board else None
            details = None if subject is None else fetch_details(self._api, subject)
            return Fetched(board=board, details=details)

        self._begun = clock.monotonic()
        if with_board:
            self._due = self._begun + self.interval
        self._running = threads.begin(fetch, self._wake, name="refresh")

    def _take(self) -> None:
        """Take the outcome of a refresh that has ended; what is no error of the service is raised."""
        if self._running is None or not self._running.done():
            return
        running, self._running = self._running, None
        try:
            fetched = running.result()
        except TidemarkError as exc:
            self._error = str(exc)
            self._due = clock.monotonic() + min(self.interval, RETRY_SECONDS)
            return
        if fetched.board is not None:
            self.board, self._error = fetched.board, None
        if fetched.details is not None:
            self._fetched = fetched.details
