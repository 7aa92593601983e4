"""Posture as a person reads it, and the exit codes that say what it found."""

from __future__ import annotations

from typing import Any

import pytest

from rules.facts.snapshot import Snapshot
from service.cli.posture.command import exit_code
from service.cli.posture.observing import document_of
from service.cli.posture.tables import render
from service.terminal.exit_codes import ExitCode
from tests.factories import gap
from tests.schemas import validate
from tests.unit.rules.posture.given import DENIED, Topic, cluster
from tests.unit.service.cli.printing import printed

SINGLE = Topic(replicas=(1,))


def document(seen: Snapshot, **query: str) -> Any:
    """Return the document of a cluster, which its schema allows."""
    made = document_of(seen, query)
    validate("posture", made)
    return made


@pytest.mark.parametrize(
    ("seen", "query", "code"),
    [
        pytest.param(cluster(), {}, ExitCode.OK, id="nothing is wrong"),
        pytest.param(cluster({"orders": SINGLE}), {}, ExitCode.FIRING, id="something is"),
        pytest.param(
            cluster({"orders": SINGLE, "refunds": Topic()}),
            {"topic": "refunds"},
            ExitCode.OK,
            id="of another topic",
        ),
        pytest.param(
            cluster(brokers={1: {}}, failed_brokers={2: DENIED}),
            {},
            ExitCode.INCOMPLETE,
            id="a broker may not be read",
        ),
        pytest.param(cluster(), {"check": "nope"}, ExitCode.NOTHING_MATCHED, id="no such check"),
        pytest.param(
            cluster(gaps=(gap(),)),
            {"check": "nope"},
            ExitCode.INCOMPLETE,
            id="nothing matches, and the round has gaps",
        ),
    ],
)
def test_exit_codes(seen: Snapshot, query: dict[str, str], code: ExitCode) -> None:
    assert exit_code(document(seen, **query)) == code


def test_what_is_wrong_comes_first_with_its_command_and_clients_last() -> None:
    seen = cluster(
        {"orders": Topic(settings={"unclean.leader.election.enable": "true"})},
        brokers={1: {}},
        failed_brokers={2: DENIED},
        gaps=(gap(),),
    )
    text = printed(render(document(seen)))
    head, *_ = text.splitlines()
    assert "checks: 1 wrong, 7 not known" in head
    assert head.endswith("not complete")
    wrong, unknown = text.index("topic_unclean_election  1 wrong"), text.index("1 unknown")
    clients, gaps = text.index("CANNOT BE SEEN FROM HERE"), text.index("NOT SEEN")
    assert wrong < unknown < clients < gaps
    assert "--entity-name orders --add-config unclean.leader.election.enable=false" in text
    assert "Tidemark lacks DESCRIBE_CONFIGS on Cluster" in text
    assert "enable.idempotence=true" in text[clients:gaps]


def test_what_is_right_is_shown_on_request() -> None:
    seen = cluster()
    assert "topic_replication" not in printed(render(document(seen)))
    assert "topic_replication  1 right" in printed(render(document(seen, all="true")))


def test_of_many_commands_the_first_are_shown() -> None:
    topics = {f"t-{number}": SINGLE for number in range(5)}
    text = printed(render(document(cluster(topics))))
    assert text.count("kafka-reassign-partitions.sh") == 3
    assert "and likewise for 2 more" in text
