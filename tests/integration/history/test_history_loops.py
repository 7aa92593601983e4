"""The loops of history: a folder that hangs holds up neither rounds nor the end."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from rules.catalogue.all_rules import judge_blind
from rules.errors import StoreError
from rules.remembering import view_of_round
from service.history.folder import Folder
from service.observe.watch import WatchedRound
from service.rounds.history import History
from service.runtime.clock import wait_until
from tests.factories import NOON, at, snapshot
from tests.integration.history.persistence import Kept

pytestmark = pytest.mark.integration

SECONDS = 60


def watched(seconds: float) -> WatchedRound:
    seen = snapshot(taken_at=at(seconds))
    return WatchedRound(
        at=seen.taken_at,
        snapshot=seen,
        judged=judge_blind("c", {}, NOON),
        view=view_of_round(seen, None),
    )


def test_rounds_are_written_while_the_folder_hangs(tmp_path: Path) -> None:
    asked, answers = threading.Event(), threading.Event()

    def hang() -> Folder:
        asked.set()
        answers.wait(SECONDS)
        raise StoreError("no answer", retryable=True)

    async def run() -> None:
        stop = asyncio.Event()
        history = History(kept.recorder, kept.shipper, stop=stop)
        tasks = [asyncio.create_task(one) for one in (history.write(), history.ship())]
        assert await asyncio.to_thread(asked.wait, SECONDS)
        for seconds in (0, 15):
            history.take(watched(seconds))
        history.take(replace(watched(30), snapshot=None, view=None))  # it saw nothing
        assert await asyncio.to_thread(
            wait_until, lambda: history.stats().rounds == 2, timeout_seconds=SECONDS
        )
        stop.set()
        await tasks[0]
        history.take(watched(45))  # the round that ran when the service was asked to stop
        history.close()
        assert history.stats().rounds == 3
        answers.set()
        await tasks[1]
        assert not history.stats().is_stored

    left = Kept(tmp_path)
    left.round(-3600)
    left.recorder.close()
    kept = Kept(tmp_path, folder=hang)
    asyncio.run(run())


def test_a_disk_that_is_slow_loses_the_oldest_rounds_and_counts_them(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    history = History(kept.recorder, kept.shipper, stop=asyncio.Event())
    for number in range(12):
        history.take(watched(15 * number))
    history.close()
    assert (history.stats().rounds, history.stats().lost_rounds) == (8, 4)
