"""A memory survives the way through bytes; what cannot be read is rejected in one line."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest

from rules.baseline.judging import Memory as HourMemory
from rules.baseline.live_series import SeriesMemory
from rules.baseline.open_series import OpenSeries, ScoringMemory
from rules.errors import StoreError
from rules.facts.broker_memory import BrokerMemory, ControllerTerm, ListedBroker
from rules.facts.change_memory import ChangeMemory, KnownController, KnownState, MissingTopic
from rules.facts.client_memory import ClientMemory
from rules.facts.column import Column, Ragged
from rules.facts.commits_above_lso import CommitAboveLso
from rules.facts.configs import Config, ConfigEntry, ConfigSource, TopicConfigs
from rules.facts.group_memory import GroupMemory
from rules.facts.identity import TopicPartition
from rules.facts.known_settings import KnownSettings
from rules.facts.lag_objectives import MINUTES, ObjectiveMemory
from rules.facts.last_observation import microseconds
from rules.facts.member_memory import GroupHistory, MemberMemory, advance_members
from rules.facts.memory import Memory, advance, merge_stored
from rules.facts.partitions import Partitions
from rules.facts.sequence_verdicts import SequenceReason
from rules.facts.transaction_costs import CostMemory
from rules.facts.transaction_log import Outcome, TransactionLog
from rules.facts.transaction_memory import TransactionMemory
from rules.facts.transactional_use import TransactionalUse
from service.storage.formats import members
from service.storage.formats.arrays import text_of
from service.storage.formats.checkpoint import FORMAT, Checkpoint, decode, encode
from service.storage.formats.sequence import plain_sequences
from tests.factories import (
    at,
    commits,
    described,
    ended,
    gap,
    group,
    member,
    offsets,
    partitions,
    snapshot,
    topic_id,
    transaction,
    transactions,
)
from tests.unit.rules.posture.client_rounds import commit, rounds, sample, sampled, writer
from tests.unit.rules.sequence.cases import CASES
from tests.unit.rules.sequence.stage import play


def plain(value: Any) -> Any:
    """Return a value as lists and dicts, so that two of them can be compared."""
    if isinstance(value, Column | Ragged):
        return value.to_list()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return tuple(value) if isinstance(value, list | tuple) else value


def full_memory() -> Memory:
    first = snapshot(
        partitions=partitions({"orders": 3, "☃": 1}),
        offsets=offsets(
            4,
            last_stable_offset=[90, None, 5, 2**62],
            high_watermark=[100, None, 5, 2**62 + 7],
            log_end_offset=[110, None, None, 2**62 + 9],
            leader_epoch=[5, None, 6, 7],
            log_start_offset=[7, None, 6, 0],
        ),
        groups=(group("billing", epoch=3, protocol_type="consumer"), group("nul\0")),
        commits=commits((0, 0, 5), (0, 2, 6), (1, 3, 2**61), nothing_to_read=(None, None, 0)),
        transactions=transactions(transaction()),
        transaction_log=TransactionLog(
            is_read=True,
            ended=(
                ended(),
                ended(outcome=Outcome.ABORTED),
                ended(transactional_id="never-aborts"),
            ),
        ),
    )
    minutes = np.arange(2 * MINUTES, dtype=np.int32).reshape(2, MINUTES)
    objectives = ObjectiveMemory(
        group_ids=("billing", "nul\0"),
        limit_ms=(60_000, 1),
        share=(0.99, 0.5),
        newest=29_000_000,
        late_ms=minutes,
        measured_ms=minutes[::-1],
    )
    brokers = BrokerMemory(
        listed={2: ListedBroker(host="kafka-2", port=9092, rack=None, listed_us=5)},
        gone_us={2: 6},
        silent_us={1: 7},
        no_controller_us=8,
        no_controller_seen_us=9,
        terms=(ControllerTerm(leader=100, leader_epoch=4, seen_us=3),),
    )
    memory = replace(advance(first), objectives=objectives, members=_members(), brokers=brokers)
    return replace(memory, changes=_changes(memory.partitions), clients=_clients())


def _changes(placed: Partitions) -> ChangeMemory:
    """Return the known state of a cluster in which something of each kind goes on."""
    hidden = MissingTopic(topic_id=topic_id("gone"), partitions=2, listed_us=4, is_hidden=True)
    state = KnownState(
        partitions=placed,
        partitions_us=11,
        is_complete=True,
        topic_pattern="☃.*",
        missing={
            "gone": hidden,
            "without-id": MissingTopic(topic_id=None, partitions=1, listed_us=3),
        },
        reassigned_from={TopicPartition("☃", 0): (1, 2, 3)},
        former_ids={"☃": topic_id("☃", creation=1)},
        brokers={2: "kafka-2:9092 (rack b)"},
        brokers_us=12,
        controller=KnownController(leader=100, leader_epoch=4),
        controller_us=13,
        settings=_settings(placed),
        begun_us=2,
        starts_us={2: 15},
    )
    return ChangeMemory(state=state)


def _clients() -> ClientMemory:
    """Return the evidence of clients that write, read and commit each in a way that is named."""
    samples = sampled(sample(writer(None, 5), writer(7, 6)), commits=(commit(1, 7), commit(2)))
    seen = rounds(samples, groups=(group("billing"),))
    above = CommitAboveLso(
        topic_id=None,
        rounds=2,
        first_seen_us=1,
        last_seen_us=2,
        committed_offset=80,
        last_stable_offset=50,
        high_watermark=100,
    )
    clients = advance(seen[0]).clients
    assert clients.commit_kinds["billing"].pending is not None
    return replace(clients, above_lso={("nul\0", TopicPartition("☃", 0)): above})


def _settings(placed: Partitions) -> KnownSettings:
    """Return settings of one topic and of one broker; one value is absent."""
    own = ConfigEntry("retention.ms", "☃", ConfigSource.TOPIC)
    inherited = ConfigEntry("segment.ms", None, ConfigSource.DEFAULT)
    return KnownSettings(
        partitions=placed,
        topics=TopicConfigs(
            distinct=(Config((own, inherited)), Config((inherited,)), Config()),
            of_topic=np.array([1, -1], np.int64),
        ),
        brokers={2: Config((inherited,))},
        features={"transaction.version": 2},
        features_epoch=7,
        seen_us=14,
    )


def _members() -> MemberMemory:
    """Return the memory of a group that lost a member, and of one that never changed."""
    groups = (described(member("a", 0), member("b", 1)), described(member("b", 1)))
    memory = MemberMemory()
    for number, audit in enumerate(groups):
        both = (replace(audit, group_id="audit"), group("billing"))
        now_us = microseconds(at(15 * number))
        memory = advance_members(both, now_us, memory, is_complete=True)
    [rebalance] = memory.groups["audit"].rebalances
    [unowned] = memory.groups["audit"].unowned
    assert memory.groups["audit"].owners == (member("b", 1),)
    assert (rebalance.left, unowned.last_owner.has_left) == (1, True)
    return memory


def outliving(memory: Memory) -> Memory:
    """Leave out what a restart sees anew."""
    known = memory.transactions.outcomes
    kept = {name: slices for name, slices in known.items() if name != "never-aborts"}
    histories = {
        name: GroupHistory(
            rebalances=history.rebalances, unowned=history.unowned, owners=history.owners
        )
        for name, history in memory.members.groups.items()
        if name == "audit"
    }
    return replace(
        memory,
        members=MemberMemory(groups=histories),
        transactions=TransactionMemory(outcomes=kept),
        transactional_use=TransactionalUse(),
        costs=CostMemory(),
        brokers=replace(memory.brokers, answered=frozenset()),
        replication=replace(
            memory.replication, first_seen_us=Column.absent(len(memory.partitions))
        ),
        taken_us=0,
    )


@pytest.mark.parametrize("is_late", [False, True])
def test_a_member_that_leaves_during_a_restart_is_the_last_owner(*, is_late: bool) -> None:
    stored = decode(encode(Checkpoint(memory=full_memory())), FORMAT).memory
    assert stored is not None
    others = (replace(described(member("c", 2)), group_id="audit"),)
    first = snapshot(taken_at=at(60), groups=others)
    memory = merge_stored(stored, advance(first)) if is_late else advance(first, stored)
    lost = {entry.last_owner.member_id: entry for entry in memory.members.groups["audit"].unowned}
    assert {name: entry.partitions for name, entry in lost.items()} == {"a": (0,), "b": (1,)}
    assert lost["b"].last_owner.lost_us == microseconds(at(60))


def test_what_owners_are_stored_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "MOST_OWNED", 0)
    back = decode(encode(Checkpoint(memory=full_memory())), FORMAT).memory
    assert back is not None
    assert back.members.groups["audit"].owners is None
    assert back.members.groups["audit"].unowned


def later_memory() -> Memory:
    """Return one whose parts speak of different partitions."""
    second = snapshot(
        taken_at=at(15),
        placement_complete=False,
        gaps=(gap(),),
        partitions=partitions({"orders": 2, "new": 2}, elr=Ragged.of([None, (), (1,), (1, 2)])),
    )
    return advance(second, full_memory())


@pytest.mark.parametrize(
    "memory",
    [
        full_memory(),
        later_memory(),
        advance(snapshot(partitions=Partitions.none())),
        replace(full_memory(), observations=later_memory().observations),
    ],
    ids=["full", "later", "no-topics", "mixed"],
)
def test_what_is_read_is_what_was_written(memory: Memory) -> None:
    back = decode(encode(Checkpoint(memory=memory, unknown_since={"a": 2**60})), FORMAT)
    assert plain(back.memory) == plain(outliving(memory))
    assert back.unknown_since == {"a": 2**60}


def test_parts_that_share_their_partitions_share_them_again() -> None:
    back = decode(encode(Checkpoint(memory=full_memory())), FORMAT).memory
    assert back is not None
    assert back.partitions is back.observations.partitions is back.commits.partitions


def test_a_checkpoint_without_a_memory() -> None:
    empty = Checkpoint(unknown_since={"some_rule": 5})
    assert decode(encode(empty), FORMAT) == empty


def test_positions_in_logs_are_kept_to_the_letter() -> None:
    placed = Checkpoint(log_positions={"files": '{"☃": ["\\u0000", 2]}', "inbox": "7"})
    assert decode(encode(placed), FORMAT) == placed


def test_a_checkpoint_that_does_not_tell_positions_is_read() -> None:
    assert decode(without("log_positions", CONTENT), FORMAT).log_positions == {}


def test_a_checkpoint_that_does_not_tell_what_expired_is_read() -> None:
    full = decode(CONTENT, FORMAT).memory
    older = decode(without("commit.expired_below", CONTENT), FORMAT).memory
    assert full is not None
    assert older is not None
    assert full.commits.expired_below.to_list() == [7, None, None]
    assert older.commits.expired_below.to_list() == [None] * 3


def test_a_checkpoint_without_what_was_read_of_the_logs_is_read() -> None:
    full = decode(CONTENT, FORMAT).memory
    older = decode(without("commit.readable.answer", CONTENT), FORMAT).memory
    assert full is not None
    assert older is not None
    assert full.commits.readable.answer.to_list() == [None, None, 0]
    assert full.commits.readable.end.tolist() == [0, 0, 2**62]
    assert older.commits.readable.answer.to_list() == [None] * 3


def test_a_checkpoint_without_evidence_of_clients_is_read() -> None:
    older = decode(without("clients.groups", CONTENT), FORMAT).memory
    assert older is not None
    assert older.clients == ClientMemory()


def test_a_checkpoint_that_keeps_nothing_with_its_observations_is_read() -> None:
    """What it knew of the last round counts, as it did for the version that wrote it."""
    full = decode(CONTENT, FORMAT).memory
    older = decode(without("observation.context.replicas", CONTENT), FORMAT).memory
    assert full is not None
    assert older is not None
    known, told = older.observations.context, full.observations.context
    assert plain(known.high_watermark) == plain(older.high_watermark)
    assert plain(known.replicas) == plain(told.replicas) == plain(older.partitions.replicas)
    assert known.isr_reported_us.to_list() == [None] * 4
    assert told.isr_reported_us.valid.all()


def test_a_checkpoint_that_does_not_tell_how_transactions_ended_is_read() -> None:
    full = decode(CONTENT, FORMAT).memory
    older = decode(without("transaction.outcomes", CONTENT), FORMAT).memory
    assert full is not None
    assert older is not None
    assert list(full.transactions.outcomes) == ["payments"]
    assert older.transactions == TransactionMemory()


def test_a_checkpoint_that_does_not_tell_when_groups_were_at_work_is_read() -> None:
    full = decode(CONTENT, FORMAT).memory
    older = decode(without("group.names", CONTENT), FORMAT).memory
    assert full is not None
    assert older is not None
    assert full.groups.group_ids == ("billing", "nul\0")
    assert (full.groups.epoch.to_list(), full.groups.joined.to_list()) == ([3, None], [1, None])
    assert plain(older.groups) == plain(GroupMemory.none())


def test_a_checkpoint_that_has_rebalances_by_name_is_read() -> None:
    full = decode(CONTENT, FORMAT).memory
    assert full is not None
    rebalance = {"observed_us": 5, "count": 1, "joined": 0, "left": 1, "moved_partitions": 1}
    former = text_of({"audit": {"rebalances": [rebalance], "unowned": [], "newcomers": {}}})
    bare = without("group.owners", without("group.histories", CONTENT))
    older = decode(without("group.members", bare, array=former), FORMAT).memory
    assert older is not None
    history = older.members.groups["audit"]
    absent = {"epoch": None, "short_lived": None, "stayed": None}
    assert [plain(entry) for entry in history.rebalances] == [{**rebalance, **absent}]
    assert history.owners is None
    assert decode(bare, FORMAT).memory is not None


def test_a_history_that_did_not_change_is_not_written_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory = full_memory()
    written = encode(Checkpoint(memory=memory))
    monkeypatch.delattr(members, "plain")
    assert encode(Checkpoint(memory=memory)) == written


def test_a_checkpoint_without_brokers_is_read() -> None:
    older = decode(without("replication.seen_us", without("brokers", CONTENT)), FORMAT).memory
    assert older is not None
    assert older.brokers == BrokerMemory()
    assert not older.replication.since_us.valid.any()
    assert len(older.replication.since_us) == len(older.partitions)


def test_a_checkpoint_that_does_not_tell_of_sequences_is_read() -> None:
    older = decode(without("sequences", CONTENT), FORMAT).memory
    assert older is not None
    assert older.sequences.episodes == ()


def test_another_format_is_rejected() -> None:
    with pytest.raises(StoreError, match="has format 6, and this version reads up to 5") as caught:
        decode(encode(Checkpoint()), FORMAT + 1)
    assert not caught.value.retryable


def test_format_1_took_every_commit_for_seen_at_the_latest_time_it_tells() -> None:
    memory = later_memory()
    content = without("commit.seen", encode(Checkpoint(memory=memory, unknown_since={"a": 1})))
    back = decode(content, 1)
    assert back.unknown_since == {"a": 1}
    assert back.memory is not None
    latest = microseconds(at(15))
    assert back.memory.commits.seen_us.tolist() == [latest] * len(memory.commits) != []
    same = replace(memory.commits, seen_us=back.memory.commits.seen_us)
    assert plain(back.memory) == plain(replace(outliving(memory), commits=same))
    with pytest.raises(StoreError, match="the checkpoint is damaged"):
        decode(content, FORMAT)


def test_format_4_has_another_name_for_the_scan_that_is_awaited() -> None:
    memory = play(CASES["textbook-just-seen"].observations)[-1].memory
    [episode] = memory.sequences.episodes
    assert episode.verdict.reason is SequenceReason.SCAN_PENDING
    former = json.dumps(plain_sequences(memory.sequences)).replace("scan_pending", "looking")
    content = without(
        "sequences", encode(Checkpoint(memory=memory)), array=text_of(json.loads(former))
    )
    older = decode(content, 4).memory
    assert older is not None
    assert older.sequences.episodes == memory.sequences.episodes


def without(name: str, content: bytes, **replaced: Any) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        for entry in old.namelist():
            if entry != name:
                new.writestr(entry, old.read(entry))
        if "array" in replaced:
            with new.open(name, "w") as file:
                np.lib.format.write_array(file, replaced["array"])
    return made.getvalue()


CONTENT = encode(Checkpoint(memory=full_memory()))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no archive",
        CONTENT[:-30],
        CONTENT[:300] + bytes([CONTENT[300] ^ 0xFF]) + CONTENT[301:],
        without("observation.isr", CONTENT),
        without("unknown_since", CONTENT),
        without("observation.leader_epoch", CONTENT, array=np.zeros(3, np.int64)),
        without("observation.leader_epoch", CONTENT, array=np.zeros(4, np.float64)),
        without("commit.row", CONTENT, array=np.array([0, 1, 4], np.int64)),
        without("commit.group", CONTENT, array=np.array([0, -1, 0], np.int64)),
        without("cluster", CONTENT, array=np.frombuffer(b"[]", np.uint8)),
        without("observation.isr", CONTENT, array=np.array([object()], object)),
    ],
    ids=[
        "empty", "text", "cut", "flipped", "missing", "no-unknown", "short", "floats",
        "row-beyond", "group-below", "other-json", "pickle",
    ],
)  # fmt: skip
def test_damage_is_rejected(content: bytes) -> None:
    with pytest.raises(StoreError, match="the checkpoint is damaged") as caught:
        decode(content, FORMAT)
    assert not caught.value.retryable


def test_ten_thousand_partitions_stay_small() -> None:
    rows, draw = 10_000, np.random.default_rng(7)
    ends = draw.integers(0, 2**40, rows)
    seen = snapshot(
        partitions=partitions({f"topic-{number}": 50 for number in range(200)}),
        offsets=offsets(
            rows,
            last_stable_offset=(ends - draw.integers(0, 100, rows)).tolist(),
            high_watermark=ends.tolist(),
            log_end_offset=(ends + draw.integers(0, 100, rows)).tolist(),
        ),
    )
    assert len(encode(Checkpoint(memory=advance(seen)))) <= 300_000


def scoring_memory() -> ScoringMemory:
    hour = HourMemory.empty(1, 60_000)
    hour.is_open[:] = True
    hour.residual[0, -3:] = [1.5, np.nan, 800.25]
    hour.marks[0, -1] = 7
    return ScoringMemory(
        series=SeriesMemory(
            series_id=np.array([2**62]),
            memory=replace(hour, expected=np.array([99.5], np.float32)),
            without_baseline=np.array([5]),
            next_ms=1_767_225_600_000,
        ),
        open=OpenSeries(
            series_id=np.array([5, 2**62]),
            opened_ms=np.array([1_767_225_000_000, 1_767_225_300_000]),
            known_ms=np.array([1_767_225_100_000, 1_767_225_590_000]),
            many_ms=np.array([0, 1_767_225_000_000]),
            is_slow=np.array([True, False]),
        ),
    )


def test_what_live_scoring_has_open_is_read_as_it_was_written() -> None:
    memory = scoring_memory()
    back = decode(encode(Checkpoint(scoring=memory)), FORMAT).scoring
    np.testing.assert_equal(plain(back), plain(memory))
    nothing = replace(memory, open=OpenSeries.none())
    assert decode(encode(Checkpoint(scoring=nothing)), FORMAT).scoring is None


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("opened_ms", np.zeros(3, np.int64)),
        ("series_id", np.array([9, 5])),
        ("hour.residual", np.zeros((1, 7), np.float32)),
        ("hour.expected", np.zeros((1, 2), np.float32)),
        ("hour.series_id", np.array([6])),
        ("next_ms", np.zeros(0, np.int64)),
        ("is_slow", None),
    ],
)
def test_open_series_that_cannot_be_read_cost_no_start(name: str, array: np.ndarray | None) -> None:
    written = encode(Checkpoint(scoring=scoring_memory(), unknown_since={"a": 5}))
    replaced = {} if array is None else {"array": array}
    back = decode(without(f"scoring.{name}", written, **replaced), FORMAT)
    assert back.scoring is None
    assert back.unknown_since == {"a": 5}
