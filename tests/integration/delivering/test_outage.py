"""A receiver fails for two minutes; meanwhile Tidemark is killed and its database restarted.

500 alerts begin and end around it. Time goes ten times as fast; a receiver that records everything
judges.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import Engine

from service.runtime.clock import monotonic, wait_until
from service.storage.database import schema
from service.storage.database.engine import make_engine
from service.storage.database.server import EmbeddedServer
from tests.database_files import give_files
from tests.integration.delivering.chain import Play
from tests.integration.delivering.stage import check, company, names_in, rows_of
from tests.integration.notify.receiving import Got, Handler, Receiver, receiving, status

pytestmark = pytest.mark.integration
ALERTS: Final = 500
OUTAGE_SECONDS: Final = 120.0  # of the play
LIMIT: Final = 120.0  # seconds; never reached in a test that passes


class Recorder:
    """Takes the first ten, then nothing for two minutes and until all else has failed too."""

    def __init__(self, play: Play | None = None) -> None:
        self.play = play
        self.receiver: Receiver | None = None
        self.taken: list[Got] = []
        self.rejected: list[str] = []
        self.all_has_failed = threading.Event()
        self._until: float | None = None
        self._turn = threading.Lock()

    def answer(self, handler: Handler) -> None:
        name = handler.headers["webhook-id"]
        with self._turn:
            is_taken = self._is_taken()
            if is_taken:
                self.taken.append(self._request(name))
            else:
                self.rejected.append(name)
        status(200 if is_taken else 500)(handler)

    def _request(self, name: str) -> Got:
        assert self.receiver is not None
        mine = (got for got in reversed(self.receiver.got) if got.headers["webhook-id"] == name)
        return next(mine)

    def _is_taken(self) -> bool:
        assert self.play is not None
        now = self.play.seconds()
        if self._until is None and len(self.taken) >= 10:
            self._until = now + OUTAGE_SECONDS
        if self._until is None:
            return True
        return now >= self._until and self.all_has_failed.is_set()


@pytest.fixture
def server(folder: Path) -> Iterator[EmbeddedServer]:
    made = EmbeddedServer.start(give_files(folder))
    yield made
    made.stop()


@pytest.fixture
def engine(server: EmbeddedServer) -> Iterator[Engine]:
    made = make_engine(server.url)
    schema.upgrade(made)
    yield made
    made.dispose()


def test_nothing_is_lost_while_everything_fails(server: EmbeddedServer, engine: Engine) -> None:
    recorder = Recorder()

    def has_rejected(count: int) -> bool:
        return wait_until(lambda: len(recorder.rejected) >= count, timeout_seconds=LIMIT)

    with receiving(recorder.answer) as receiver, company() as actors:
        recorder.receiver = receiver
        recorder.play = play = Play(
            database=server.url.render_as_string(hide_password=False),
            receiver=receiver.address,
            epoch=monotonic(),
            speed=10,
            alerts=ALERTS,
            groups=20,
        )
        first = actors.start(play)
        assert has_rejected(5)
        actors.kill(first)
        before = len(recorder.rejected)
        actors.start(play)
        assert has_rejected(before + 5)
        server.pause()
        server.resume()
        recorder.all_has_failed.set()
        assert actors.end() == 0
    engine.dispose()  # connections to the server before its restart
    rows = rows_of(engine)
    check(rows, recorder.taken)
    assert len(names_in(recorder.taken)) == ALERTS
    assert set(recorder.rejected) <= {row.webhook_id for row in rows}
    print(  # noqa: T201 - stats for who runs it with -s
        f"{len(rows)} notifications, {len(recorder.taken)} taken, {len(recorder.rejected)} rejected"
    )
