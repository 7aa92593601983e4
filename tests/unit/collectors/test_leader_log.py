"""The end of a leader's log: what is not replicated is not read, and may be what a producer sent again."""

from __future__ import annotations

from typing import Any

import pytest

from collectors import leader_log
from collectors.leader_log import LeaderLog
from rules.errors import UnreachableError
from rules.facts.identity import TopicPartition
from tests.factories import broker
from tests.unit.collectors.wire.records import Batch

BATCH = Batch(base_offset=0, last_delta=9)


def read(monkeypatch: pytest.MonkeyPatch, log_end: int, later: int | Exception) -> LeaderLog:
    """Return the log after its batches were read; `later`: the high watermark behind them, 10 before."""

    def offset(*_: Any) -> int:
        if isinstance(later, Exception):
            raise later
        return later

    monkeypatch.setattr(leader_log, "_offset", offset)
    monkeypatch.setattr(LeaderLog, "_fetch", lambda *_: BATCH.encode())
    log = LeaderLog(
        session=None,  # type: ignore[arg-type] # nothing is sent
        name=TopicPartition("orders", 3),
        leader=broker(1),
        leader_epoch=5,
        topic_id=None,
        log_start=0,
        high_watermark=10,
        log_end=log_end,
    )
    assert len(list(log.batches(0))) == 1
    return log


@pytest.mark.parametrize(
    ("log_end", "later", "why"),
    [
        pytest.param(10, 10, None, id="all is replicated"),
        pytest.param(12, 12, None, id="it was under way, and is replicated by now"),
        pytest.param(12, 10, "offsets 10 to 11 that are not", id="below min.insync.replicas"),
        pytest.param(12, UnreachableError("no answer"), "no answer", id="the leader is away"),
    ],
)
def test_what_is_not_replicated_was_not_read(
    monkeypatch: pytest.MonkeyPatch, log_end: int, later: int | Exception, why: str | None
) -> None:
    failure = read(monkeypatch, log_end, later).failure
    assert (failure is None) if why is None else (failure is not None and why in failure.why)
