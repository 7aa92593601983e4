"""The transactions that states of the transaction log show: how long each was open, and who ended it."""

from datetime import UTC, datetime, timedelta

import pytest

from rules.exceptions.logged_transactions import EndedBy, transactions_of
from rules.facts.application_log import TransactionLogged

BEGIN = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def logged(state: str | None, second: float, *, begin: float = 0, epoch: int = 0) -> TransactionLogged:  # fmt: skip
    return TransactionLogged(
        source="a", line=1, transactional_id="pay-1", state=state, producer_id=9, producer_epoch=epoch, timeout_ms=60_000,
        started_at=BEGIN + timedelta(seconds=begin), updated_at=BEGIN + timedelta(seconds=second),
    )  # fmt: skip


CASES = {
    "committed": (
        [logged("Ongoing", 0), logged("Ongoing", 1), logged("PrepareCommit", 2), logged("CompleteCommit", 2.5)],
        [(True, EndedBy.CLIENT, 2000, 500)],
    ),
    "aborted by its client, which goes on": (
        [logged("Ongoing", 0), logged("PrepareAbort", 2), logged("CompleteAbort", 3), logged("Ongoing", 4, begin=4)],
        [(False, EndedBy.CLIENT, 2000, 1000), (None, None, None, None)],
    ),
    "aborted at its timeout": (
        [logged("Ongoing", 0), logged("PrepareAbort", 61, epoch=1), logged("CompleteAbort", 61, epoch=1)],
        [(False, EndedBy.TIMEOUT, 61000, 0)],
    ),
    "aborted for a new instance": (
        [logged("Ongoing", 0), logged("PrepareAbort", 5, epoch=1), logged("CompleteAbort", 5, epoch=1), logged("Empty", 5, epoch=2)],
        [(False, EndedBy.NEXT_INSTANCE, 5000, 0)],
    ),
    "aborted, and nothing follows in the text": (
        [logged("Ongoing", 0), logged("PrepareAbort", 5, epoch=1), logged("CompleteAbort", 5, epoch=1)],
        [(False, EndedBy.NOT_SHOWN, 5000, 0)],
    ),
    "aborted in its own epoch, which only a client does": (
        [logged("Ongoing", 0), logged("PrepareAbort", 61), logged("CompleteAbort", 61), logged("Empty", 62, epoch=1)],
        [(False, EndedBy.CLIENT, 61000, 0)],
    ),
    "aborted, and initialized again an hour later": (
        [logged("Ongoing", 0), logged("PrepareAbort", 5, epoch=1), logged("CompleteAbort", 5, epoch=1), logged("Empty", 3605, epoch=2)],
        [(False, EndedBy.NOT_SHOWN, 5000, 0)],
    ),
    "the begin is not in the text": ([logged("CompleteAbort", 5)], [(False, EndedBy.NOT_SHOWN, None, None)]),
    "decided, and markers pending": ([logged("Ongoing", 0), logged("PrepareCommit", 1)], [(True, EndedBy.CLIENT, 1000, None)]),
    "an end that is not in the text": (
        [logged("Ongoing", 0), logged("Ongoing", 9, begin=8)], [(None, None, None, None), (None, None, None, None)],
    ),
    "only initialized": ([logged("Empty", 0), logged(None, 9)], []),
}  # fmt: skip


@pytest.mark.parametrize(("states", "expected"), CASES.values(), ids=CASES)
def test_ends(states: list[TransactionLogged], expected: list[tuple[object, ...]]) -> None:
    shown = transactions_of(states)
    assert [
        (each.is_commit, each.ended_by, each.open_ms, each.completing_ms) for each in shown
    ] == expected
