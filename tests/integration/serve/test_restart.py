"""kill -9 at any time: the next process goes on where the rounds that were stored ended."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from rules.verdict import Kind, Verdict
from service.runtime.clock import wait_until
from service.sandbox.cluster.cluster import Sandbox
from service.storage.database.engine import open_database
from service.storage.findings.findings import StoredFinding, StoredTransition
from tests.integration.serve.conftest import Serve
from tests.integration.serve.kafka import Kafka
from tests.integration.serve.served import Document, Served
from tests.integration.storage.given import list_findings, list_transitions

pytestmark = pytest.mark.integration

REWOUND, EXPIRED = "consumer_group_rewound", "consumer_data_expired"
BREACH = Verdict.BREACH
OPENED = (None, BREACH)

History = dict[tuple[str, str], list[tuple[Verdict | None, Verdict | None]]]


def about(items: list[Document], group: str) -> list[Document]:
    return [item for item in items if item["labels"]["group"] == group]


def wait_finding(served: Served, rule: str, group: str) -> Document:
    """Wait for the one open finding of a rule about a group."""
    found: list[Document] = []

    def is_found() -> bool:
        found[:] = about(served.findings(rule), group)
        return bool(found)

    assert wait_until(is_found, timeout_seconds=180), served.reported()
    assert len(found) == 1
    return found[0]


def wait_commit(served: Served, group: str, offset: int) -> None:
    """Wait until a round has seen a commit."""

    def is_seen() -> bool:
        answer = served.get(f"/api/v1/groups/{group}")
        items = answer.json()["items"] if answer.status_code == 200 else []
        return [item["committed_offset"] for item in items] == [offset]

    assert wait_until(is_seen, timeout_seconds=180), served.reported()


def wait_gone(served: Served, rule: str, group: str) -> None:
    gone = wait_until(lambda: not about(served.findings(rule), group), timeout_seconds=180)
    assert gone, served.reported()


def names(items: list[Document]) -> set[tuple[str, str]]:
    return {(item["id"], item["since"]) for item in items}


def stored_history(served: Served) -> History:
    """Return the transitions of every row of an event, by rule and group, read beside whatever runs.

    A group that stands for a minute, as on a slow machine, is stalled as well.
    """
    database = open_database(None, served.start.directory, attach=True)
    try:
        rows = list_findings(database.engine, 1, only_open=False)
        told = {row.id: list_transitions(database.engine, row.id) for row in rows}
    finally:
        database.close()
    assert len({row.identity for row in rows}) == len(rows), "a finding has one row"
    events = [row for row in rows if row.kind is Kind.EVENT]
    return {(row.rule_id, row.labels["group"]): _steps(row, told[row.id]) for row in events}


def _steps(
    row: StoredFinding, told: list[StoredTransition]
) -> list[tuple[Verdict | None, Verdict | None]]:
    steps = [(step.from_verdict, step.to_verdict) for step in told]
    assert all(one[1] == other[0] for one, other in pairwise(steps)), (row, steps)
    return steps


def test_killed_between_rounds_it_keeps_what_is_open_and_judges_what_happened_meanwhile(
    serve: Serve, kafka: Kafka
) -> None:
    first = serve().wait_ready()
    for stem in ("early", "late", "behind"):
        kafka.commit(stem, 8 if stem != "behind" else 1)
        wait_commit(first, kafka.group(stem), 8 if stem != "behind" else 1)
    kafka.commit("early", 3)
    kafka.expire_below(2)
    open_before = [
        wait_finding(first, REWOUND, kafka.group("early")),
        wait_finding(first, EXPIRED, kafka.group("behind")),
    ]
    first.kill()
    kafka.commit("late", 3)  # while nobody watches
    kafka.commit("behind", 5)

    second = serve()
    second.wait_event("round")
    told = [(event["rule"], event["group"], event["step"]) for event in second.events("finding")]
    assert second.rounds()[0]["number"] == 1
    assert told == [(REWOUND, kafka.group("late"), "opened")]
    assert second.events("memory_loaded")[0]["open_findings"] == 2
    now_open = second.findings()
    assert names(open_before) < names(now_open), (
        "what expired unread is lost, wherever it reads now"
    )
    assert {item["labels"]["group"] for item in now_open} == {
        kafka.group(stem) for stem in ("early", "late", "behind")
    }
    assert stored_history(second) == {
        (REWOUND, kafka.group("early")): [OPENED],
        (REWOUND, kafka.group("late")): [OPENED],
        (EXPIRED, kafka.group("behind")): [OPENED],
    }
    assert second.stop() == 0


class Killing:
    """Kills a service again and again at times that differ, and starts the next one."""

    def __init__(self, serve: Serve, cluster: Sandbox) -> None:
        self._serve = serve
        self._cluster = cluster
        self.served = self._start()

    def _start(self) -> Served:
        return self._serve(settings={"KAFKA__REQUEST_TIMEOUT_SECONDS": "2"})

    def again(self, timestamp: Callable[[Served], object]) -> Served:
        timestamp(self.served)
        self.served.kill()
        self.served = self._start()
        return self.served

    def in_slow_round(self, served: Served) -> None:
        """A broker does not move, so that the round takes seconds; it goes on afterwards."""
        self._cluster.pause(1)
        try:
            served.wait_in_round()
            served.kill()
        finally:
            self._cluster.resume(1)


def test_killed_at_any_timestamp_it_loses_and_doubles_nothing(
    serve: Serve, kafka: Kafka, faults: Sandbox
) -> None:
    killing = Killing(serve, faults)
    stems = ["at-once", "after-round", "while-starting", "in-round"]
    killing.served.wait_ready()
    for stem in stems:
        kafka.commit(stem, 8)
        wait_commit(killing.served, kafka.group(stem), 8)

    def rewind(stem: str) -> None:
        kafka.commit(stem, 3)

    rewind("at-once")  # it may be found before the end or after it
    killing.again(lambda _: None)
    rewind("while-starting")
    killing.again(lambda served: served.wait_event("service_starting"))
    killing.again(lambda served: served.wait_event("memory_loaded"))
    killing.served.wait_event("round")
    rewind("after-round")
    killing.again(lambda served: served.wait_rounds(1))
    killing.served.wait_ready()
    rewind("in-round")
    killing.again(killing.in_slow_round)

    last = killing.served.wait_ready()
    found = {stem: wait_finding(last, REWOUND, kafka.group(stem)) for stem in stems}
    assert names(last.findings(REWOUND)) == names(list(found.values()))
    assert stored_history(last) == {(REWOUND, kafka.group(stem)): [OPENED] for stem in stems}
    assert last.stop() == 0
