"""The database is away for a while: rounds go on, wait in order, and arrive once."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.verdict import Verdict
from service.storage import checkpoints, findings, schema
from service.storage.engine import open_database
from service.storage.pending import WriteBehind
from service.storage.rounds import store_rounds
from tests.integration.storage.given import Story

pytestmark = pytest.mark.integration

OK, BREACH = Verdict.OK, Verdict.BREACH


def test_rounds_wait_while_the_server_is_down(folder: Path) -> None:
    database = open_database(None, folder)
    engine, server = database.engine, database.server
    assert server is not None
    schema.upgrade(engine)
    story = Story(engine)
    writer = WriteBehind(lambda rounds: store_rounds(engine, rounds), limit=4)
    assert writer.add(story.round({"a": BREACH})) is None
    server.pause()
    for verdicts in ({"a": BREACH}, {"a": OK}, {"a": BREACH}, {"b": BREACH}, {"b": BREACH}):
        why = writer.add(story.round(verdicts))
        assert why is not None
        assert why.retryable
    pending = writer.pending
    assert (len(pending.rounds), pending.lost_rounds, pending.lost_transitions) == (4, 1, 0)
    server.resume()
    assert writer.flush() is None
    assert writer.pending.rounds == ()
    assert findings.load_open(engine, story.cluster) == story.open
    first, _ = findings.list_findings(engine, story.cluster, only_open=False)
    steps = findings.list_transitions(engine, first.id)
    assert [step.to_verdict for step in steps] == [BREACH, OK, BREACH, None]
    assert [step.at for step in steps] == sorted(step.at for step in steps)
    kept = checkpoints.load(engine, story.cluster)
    assert kept is not None
    assert kept.unknown_since == {"some_rule": 6}
    database.close()
