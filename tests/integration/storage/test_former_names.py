"""Data of the version before the present names is opened by this one: nothing of it is lost."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Engine, Text, cast, column, func, select, table, text
from starlette.testclient import TestClient

from rules.facts.identity import TopicPartition
from service.history.kept_ends import KeptEnds
from service.storage.database import schema
from service.storage.database.schema import SchemaState
from service.storage.findings.history import FindingHistory
from service.storage.formats import checkpoint
from tests.integration.api.given import Api
from tests.unit.service.runtime.recorded_log import RecordedLog

pytestmark = pytest.mark.integration

FIXTURE: Final = Path(__file__).parents[2] / "fixtures/former_names"
CLUSTER: Final = "demo"
THEN: Final = datetime(2026, 11, 23, 18, 10, tzinfo=UTC)
# Whole names that were given up; an evidence that still had one would be shown as null.
FORMER: Final = re.compile(
    r'"(last_look|refusals|ex_leader\w*|alone_since|told|settles|means|sight|doubt|stands_ms)": '
)
ROWS: Final = {
    "finding": 36,
    "transition": 66,
    "alert": 36,
    "alert_step": 66,
    "alert_group": 4,
    "outbox": 12,
    "delivery_attempt": 12,
    "silence": 1,
    "acknowledgement": 1,
    "job_run": 3,
    "audit": 3,
    "baseline_runs": 1,
    "current_baselines": 40,
}


@pytest.fixture(scope="module")
def client(former: Engine) -> TestClient:
    """Give the API over what is stored."""
    api = Api(former, CLUSTER, now=THEN)
    history = FindingHistory(lambda: former, CLUSTER)
    return TestClient(
        api.build(replace(api.sources, history=history)), base_url="http://localhost:8780"
    )


def items(client: TestClient, path: str) -> list[dict[str, Any]]:
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()["items"]
    return rows


def test_the_schema_is_at_head_and_every_row_is_there_by_its_present_names(former: Engine) -> None:
    assert schema.check(former).state is SchemaState.AT_HEAD
    with former.connect() as connection:
        rows = {
            name: connection.execute(select(func.count()).select_from(table(name))).scalar_one()
            for name in ROWS
        }
        documents = [
            document
            for name, content in (
                ("finding", "evidence"),
                ("alert", "content"),
                ("alert_group", "content"),
            )
            for (document,) in connection.execute(
                select(cast(column(content), Text)).select_from(table(name))
            )
        ]
    assert rows == ROWS
    assert [document for document in documents if FORMER.search(document)] == []


def test_losses_are_listed_with_their_exact_ranges(client: TestClient) -> None:
    incidents = items(client, "losses?state=all")
    losses = [loss for incident in incidents for loss in incident["partitions"]]
    proven = {
        (loss["topic"], loss["reason"], loss["exact_from"], loss["exact_to"], loss["former_leader"])
        for loss in losses
        if loss["class"] == "committed_lost"
    }
    assert proven == {
        ("refunds", "former_leader_returned", 13, 37, 2),
        ("invoices", "former_leader_returned", 10, 34, 2),
    }
    assert all(loss["last_observation"] for loss in losses)
    assert all(loss["sole_in_sync_since"] for loss in losses if loss["class"] == "committed_lost")


def test_findings_and_alerts_keep_their_reasons_and_lives(client: TestClient) -> None:
    findings = Counter(
        (row["rule"], row["state"], row["reason"])
        for row in items(client, "findings?state=all&limit=500")
    )
    assert findings["committed_records_lost", "open", "former_leader_returned"] == 2
    assert findings.total() == ROWS["finding"]
    [loss] = [
        row
        for row in items(client, "findings?state=all&limit=500")
        if row["rule"] == "sequence_gap_loss"
    ]
    [episode] = loss["evidence"]["episodes"]
    assert (episode["rejections"], episode["gap"], episode["why"]) == (3, 24, "loss_proven")
    assert loss["evidence"]["explanation"]
    alerts = items(client, "alerts?limit=500")
    assert Counter(alert["state"] for alert in alerts)["firing"] == 8
    [acknowledged] = [alert for alert in alerts if alert["acknowledged"]]
    assert acknowledged["rule"] == "committed_records_lost"
    [silence] = items(client, "silences")
    assert silence["matchers"] == '{topic="refunds"}'


def test_the_checkpoint_and_the_memory_of_alerts_go_on(former: Engine) -> None:
    with former.connect() as connection:
        [(version, content)] = connection.execute(
            text("SELECT format, content FROM checkpoint")
        ).all()
    stored = checkpoint.decode(content, version)
    memory = stored.memory
    assert version == 3
    assert memory is not None
    assert len(memory.observations.partitions) == len(memory.partitions)
    assert {loss.name for loss in memory.losses.reported} == {
        TopicPartition("refunds", 0),
        TopicPartition("invoices", 0),
    }
    episodes = memory.sequences.episodes
    assert {episode.name for episode in episodes if episode.reported} == {
        TopicPartition("refunds", 0),
        TopicPartition("parcels", 0),
    }
    assert all(episode.rejections for episode in episodes)
    assert checkpoint.encode(checkpoint.decode(checkpoint.encode(stored), checkpoint.FORMAT)) == (
        checkpoint.encode(stored)
    )


def test_remembered_ends_are_read(tmp_path: Path) -> None:
    shutil.copy(FIXTURE / "time-lag.npz", tmp_path)
    log = RecordedLog()
    ends = KeptEnds(tmp_path / "time-lag.npz", stop=asyncio.Event(), log=log.log).load()
    assert ends is not None
    assert ends.observations
    assert log.names == []
