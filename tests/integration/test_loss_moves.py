"""Leaders that move in good order: reassigned partitions, brokers restarted in turn, at a long interval.

The new leader was not in sync, or had no replica at all, at the last observation. Where unclean elections are
allowed that was taken for one. The truth is that every acknowledged record can be read afterwards.
MOVES sets how often each is done.
"""

from __future__ import annotations

import json
import logging
import os
import random
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from typing import Any, Final

import pytest

from rules.verdict import Verdict
from service.observe.cluster_reader import ClusterReader
from service.runtime.clock import wait_until
from service.sandbox.cluster import processes
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.processes import Liveness
from service.sandbox.cluster.state import CONTROLLER_ID
from service.sandbox.cluster.tools import run_quietly
from tests.integration.clients import produce
from tests.integration.conftest import MakeReader
from tests.integration.observing import only, partition
from tests.integration.test_loss_frozen import error_of
from tests.integration.test_loss_returned import (
    SETTLE_SECONDS,
    UNCLEAN,
    Load,
    logs_of,
    readable,
)
from tests.integration.watching import Watch, told

MOVES: Final = int(os.environ.get("MOVES", "1"))
MOVE_SECONDS: Final = 180.0
BROKERS: Final = (1, 2, 3)
LOGS: Final = ((), (*BROKERS, CONTROLLER_ID))  # one watcher reads none, the other all

pytestmark = [pytest.mark.integration, pytest.mark.timeout(MOVES * MOVE_SECONDS + 300)]

logger = logging.getLogger(__name__)


def test_a_reassignment_between_two_observations_is_no_unclean_election(
    faults: Sandbox, make_reader: MakeReader, new_name: Callable[[str], str]
) -> None:
    chance, topic = random.Random(11), new_name("moved")
    replicas = [1, 2]
    admin, reader = SandboxAdmin(faults.bootstrap_servers), make_reader()
    admin.create_topic(topic, assignment=[replicas], configs=UNCLEAN)
    with ExitStack() as stack:
        load = stack.enter_context(Load(faults.bootstrap_servers, topic))
        watches = [watching(stack, faults, make_reader, nodes) for nodes in LOGS]
        assert wait_until(lambda: len(load.acknowledged) > 100, timeout_seconds=180)
        rounds(watches)
        for _ in range(MOVES):
            # Whoever is new leads: it had no replica when it was last seen, and the old leader may go.
            newcomer = next(broker for broker in BROKERS if broker not in replicas)
            wanted = [newcomer, chance.choice(replicas)]
            let_lead(faults, reader, topic, wanted)
            rounds(watches, 2)
            replicas = wanted
    assert_nothing_is_wrong(faults, watches, load)
    admin.delete_topic(topic)


def test_an_epoch_between_two_observations_is_no_loss_of_what_it_wrote(
    faults: Sandbox, make_reader: MakeReader, new_name: Callable[[str], str]
) -> None:
    """Its successor was alone in the ISR before, and writes nothing: the next leader has nothing of it."""
    topic, reader, watch = new_name("between"), make_reader(), Watch(make_reader())
    admin = SandboxAdmin(faults.bootstrap_servers)
    admin.create_topic(topic, assignment=[[1, 2]], configs=UNCLEAN)
    produce(faults.bootstrap_servers, topic, 10)
    stop(faults, 2)
    wait_in_sync(reader, topic, [1])
    rounds([watch], 2)
    faults.start(2)
    wait_in_sync(reader, topic, [1, 2])
    let_lead(faults, reader, topic, [2, 1])
    produce(faults.bootstrap_servers, topic, 10)
    let_lead(faults, reader, topic, [1, 2])
    rounds([watch], 2)
    let_lead(faults, reader, topic, [2, 1])
    rounds([watch], 2)
    assert error_of(watch, topic) == [], told(watch.rounds)
    admin.delete_topic(topic)


def test_brokers_that_are_restarted_in_turn_elect_nobody_uncleanly(
    faults: Sandbox, make_reader: MakeReader, new_name: Callable[[str], str]
) -> None:
    """The last observation is at a partition one of whose followers restarts, and which leads at the next."""
    admin, reader = SandboxAdmin(faults.bootstrap_servers), make_reader()
    assigned = {new_name("rolling-two"): [1, 2], new_name("rolling-three"): [1, 2, 3]}
    for topic, replicas in assigned.items():
        admin.create_topic(topic, assignment=[replicas], configs=UNCLEAN)
    with ExitStack() as stack:
        loads = [stack.enter_context(Load(faults.bootstrap_servers, topic)) for topic in assigned]
        watches = [watching(stack, faults, make_reader, nodes) for nodes in LOGS]
        assert wait_until(
            lambda: all(len(load.acknowledged) > 100 for load in loads), timeout_seconds=180
        )
        rounds(watches)

        def all_in_sync(but: int | None = None) -> None:
            for topic, replicas in assigned.items():
                wait_in_sync(reader, topic, [one for one in replicas if one != but])

        for number in range(MOVES):
            leader, follower = (1, 2) if number % 2 == 0 else (2, 1)
            stop(faults, follower)
            all_in_sync(but=follower)
            rounds(watches)  # the last observation
            faults.start(follower)
            all_in_sync()
            stop(faults, leader)
            for topic in assigned:
                wait_for(reader, topic, "leader", follower)
            rounds(watches, 2)
            faults.start(leader)
            all_in_sync()
            rounds(watches)
    for load in loads:
        assert_nothing_is_wrong(faults, watches, load)
        admin.delete_topic(load.topic)


@pytest.mark.parametrize("is_killed", [False, True], ids=["frozen", "killed"])
def test_the_only_replica_that_was_silent_has_lost_nothing(
    faults: Sandbox,
    make_reader: MakeReader,
    new_name: Callable[[str], str],
    *,
    is_killed: bool,
) -> None:
    topic, admin, reader = new_name("single"), SandboxAdmin(faults.bootstrap_servers), make_reader()
    admin.create_topic(topic, assignment=[[1]], configs=UNCLEAN)
    with (
        closing(logs_of(faults, [*BROKERS, CONTROLLER_ID])) as logs,
        Load(faults.bootstrap_servers, topic) as load,
    ):
        watch = Watch(make_reader(request_timeout_seconds=1), [logs] if is_killed else [])
        assert wait_until(lambda: len(load.acknowledged) > 100, timeout_seconds=180)
        watch.round()
        watch.round()
        (faults.kill if is_killed else faults.pause)(1)
        wait_for(reader, topic, "leader", None)
        watch.round()
        watch.round()
        (faults.start if is_killed else faults.resume)(1)
        wait_for(reader, topic, "leader", 1)
        for _ in range(3):
            watch.round()
    assert_nothing_is_wrong(faults, [watch], load)
    admin.delete_topic(topic)


def watching(
    stack: ExitStack, faults: Sandbox, make_reader: MakeReader, nodes: Sequence[int]
) -> Watch:
    """Return a watcher that reads the logs of these nodes."""
    feeds = [stack.enter_context(closing(logs_of(faults, nodes)))] if nodes else []
    return Watch(make_reader(request_timeout_seconds=1), feeds)


def placed(reader: ClusterReader, topic: str) -> dict[str, Any]:
    return partition(reader.read(only(topic)), topic)


def wait_for(reader: ClusterReader, topic: str, name: str, value: object) -> None:
    assert wait_until(
        lambda: placed(reader, topic)[name] == value, timeout_seconds=SETTLE_SECONDS
    ), f"{name} did not become {value}"


def wait_in_sync(reader: ClusterReader, topic: str, brokers: Sequence[int]) -> None:
    assert wait_until(
        lambda: sorted(placed(reader, topic)["isr"] or ()) == sorted(brokers),
        timeout_seconds=SETTLE_SECONDS,
    ), f"the ISR did not become {brokers}"


def reassign(faults: Sandbox, topic: str, replicas: list[int]) -> None:
    move = {"topic": topic, "partition": 0, "replicas": replicas}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as plan:
        json.dump({"version": 1, "partitions": [move]}, plan)
        plan.flush()
        wanted = ("--reassignment-json-file", plan.name, "--execute")
        run_quietly(faults, "kafka-reassign-partitions.sh", wanted)


def let_lead(faults: Sandbox, reader: ClusterReader, topic: str, replicas: list[int]) -> None:
    """Assign a topic's one partition to these brokers, the first of which leads it from now on."""
    reassign(faults, topic, replicas)
    wait_for(reader, topic, "replicas", replicas)
    elect_preferred(faults)
    wait_for(reader, topic, "leader", replicas[0])


def elect_preferred(faults: Sandbox) -> None:
    election = ("--election-type", "preferred", "--all-topic-partitions")
    run_quietly(faults, "kafka-leader-election.sh", election)


def stop(faults: Sandbox, node: int) -> None:
    """Shut a broker down in order."""
    process = faults.state.node(node).process
    assert process is not None
    processes.terminate(process)
    assert wait_until(
        lambda: processes.liveness(process) is Liveness.DEAD, timeout_seconds=SETTLE_SECONDS
    ), f"broker {node} did not shut down"


def rounds(watches: Sequence[Watch], count: int = 1) -> None:
    for _ in range(count):
        for watch in watches:
            watch.round()


def assert_nothing_is_wrong(faults: Sandbox, watches: Sequence[Watch], load: Load) -> None:
    topic, after = load.topic, readable(faults, load.topic)
    lost = [at for at, number in load.acknowledged.items() if after.get(at) != number]
    assert not lost, "the test lost records itself"
    for watch in watches:
        elections = {
            str(finding.evidence["election"])
            for made in watch.rounds
            for judgement in made.judged.judgements
            for finding in judgement.findings(Verdict.BREACH)
            if finding.labels.get("topic") == topic and "election" in finding.evidence
        }
        logger.info("%s: %d acknowledged; elections %s", topic, len(load.acknowledged), elections)
        assert error_of(watch, topic) == [], told(watch.rounds)
        assert "unclean" not in elections
