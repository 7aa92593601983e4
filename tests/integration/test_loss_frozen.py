"""A leader that is frozen and wakes up loses nothing, also where unclean elections are allowed.

It asks for an ISR of itself when it wakes up, long after another one was elected, and cuts what it had
beyond that one: nobody was told that these records are safe. The truth is that every acknowledged
record can be read afterwards. LOSS_RUNS sets how often leaders are frozen.
"""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Callable
from contextlib import closing
from typing import Final

import pytest

from rules.facts.broker_log import IsrShrunk, LogEvent, LogTruncated
from rules.verdict import Severity, Verdict
from service.runtime.clock import monotonic, pause, wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.state import CONTROLLER_ID
from tests.integration.conftest import MakeReader
from tests.integration.test_loss_returned import (
    FOLLOWER,
    LEADER,
    SETTLE_SECONDS,
    UNCLEAN,
    Load,
    has_followed,
    leader_of,
    lines_of,
    logs_of,
    readable,
)
from tests.integration.watching import Watch, told

RUNS: Final = int(os.environ.get("LOSS_RUNS", "2"))
MORE_RUNS: Final = (
    3  # at most, until a leader has asked for an ISR of itself, and one has cut its log
)
SHORTEST: Final = 6.0  # somewhat longer than a broker's session: another one is elected
LONGEST: Final = 14.0
RUN_SECONDS: Final = 180.0

pytestmark = [pytest.mark.integration, pytest.mark.timeout((RUNS + MORE_RUNS) * RUN_SECONDS + 240)]

logger = logging.getLogger(__name__)


def test_a_leader_that_was_frozen_has_lost_nothing_where_unclean_elections_are_allowed(
    faults: Sandbox, make_reader: MakeReader, new_name: Callable[[str], str]
) -> None:
    chance = random.Random(5)  # the same times in every run of the test
    seen: set[type[LogEvent]] = set()
    for number in range(RUNS + MORE_RUNS):
        if seen == {IsrShrunk, LogTruncated} and number >= RUNS:
            break
        nodes = [1, 2, 3] if number % 2 else [1, 2, 3, CONTROLLER_ID]
        with closing(logs_of(faults, nodes)) as logs:
            watch = Watch(make_reader(request_timeout_seconds=1), [logs])
            seen |= freeze(
                faults,
                watch,
                new_name("frozen"),
                seconds=chance.uniform(SHORTEST, LONGEST),
                is_seen=number % 3 != 1,
            )
    assert IsrShrunk in seen, "no leader that woke up asked for an ISR of itself: frozen in vain"
    assert LogTruncated in seen, "no leader that woke up cut its log: frozen in vain"


def freeze(
    faults: Sandbox, watch: Watch, topic: str, *, seconds: float, is_seen: bool
) -> set[type[LogEvent]]:
    """Freeze a leader under load for so long; return what it did when it woke up: ask to be alone, cut its log.

    Unless `is_seen` nobody observations while it is frozen.
    """
    admin = SandboxAdmin(faults.bootstrap_servers)
    admin.create_topic(topic, assignment=[[LEADER, FOLLOWER]], configs=UNCLEAN)
    with Load(faults.bootstrap_servers, topic) as load:
        assert wait_until(lambda: len(load.acknowledged) > 100, timeout_seconds=180)
        watch.round()
        watch.round()
        began = monotonic()
        faults.pause(LEADER)
        if is_seen:
            watch.until(lambda made: leader_of(made, topic) == FOLLOWER, SETTLE_SECONDS)
        pause(max(0.0, seconds - (monotonic() - began)))
        faults.resume(LEADER)
        watch.until(lambda made: has_followed(made, topic), SETTLE_SECONDS)
        load.stop()
        for _ in range(3):
            watch.round()
    after = readable(faults, topic)
    lost = [at for at, number in load.acknowledged.items() if after.get(at) != number]
    asked = [one for one in lines_of(watch, topic, IsrShrunk) if one.origin.broker_id == LEADER]
    logger.info(
        "%s: frozen for %.1f s, %s; %d acknowledged; asked %s",
        *(topic, seconds, "seen" if is_seen else "unseen", len(load.acknowledged), asked),
    )
    assert not lost, "the test lost records itself"
    assert error_of(watch, topic) == [], told(watch.rounds)
    admin.delete_topic(topic)
    cut = lines_of(watch, topic, LogTruncated)
    return {type(line) for line in (*asked, *cut)}


def error_of(watch: Watch, topic: str) -> list[tuple[str, str]]:
    """Return all breaches about a topic, in any round, that are more than information."""
    return [
        (finding.rule.rule_id, finding.reason)
        for made in watch.rounds
        for judgement in made.judged.judgements
        if judgement.rule.rule_id in ABOUT_LOSSES
        for finding in judgement.findings(Verdict.BREACH)
        if finding.labels.get("topic") == topic and finding.severity is not Severity.INFO
    ]


ABOUT_LOSSES: Final = (
    "committed_records_lost",
    "records_possibly_lost",
    "unclean_leader_election",
    "committed_beyond_log_end",
)
