"""What controllers say of elections that are not clean, from Kafka 3.0 to 4.x."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rules.facts.broker_log import UncleanChange
from rules.facts.identity import BrokerId, TopicId
from tests.log_lines import AT, events_of, origin, parser, stamped

ID = TopicId("TgGaRydPS3uX8D-_aqwdbe")
CONTROLLER = "[QuorumController id=100] "
CHANGE = f"{CONTROLLER}UNCLEAN partition change for orders-a-0 with topic ID {ID}: "
SETTING = f"Setting new leader for topicId {ID}, partition 0 to 2 using an unclean election"
PREVIOUS = (
    ". Previous partition: PartitionRegistration(replicas=[1, 2], directories=[yI0f2egYJ913pt_EXOTSwg,"
    " HSsGtGXkC-JXH5IkQtqP0w], isr={isr}, removingReplicas=[], addingReplicas=[], elr={elr},"
    " lastKnownElr={known}, leader={leader}, leaderRecoveryState=RECOVERED, leaderEpoch=1,"
    f" partitionEpoch=2), change record: PartitionChangeRecord(partitionId=0, topicId={ID}, isr=null,"
    " leader=-2, replicas=null, removingReplicas=null, addingReplicas=null, leaderRecoveryState=-1,"
    " directories=null, eligibleLeaderReplicas=[7], lastKnownElr=[8])"
)

ONE, TWO = BrokerId(1), BrokerId(2)
DECIDED = UncleanChange(
    origin=origin(AT, broker_id=None), topic=None, partition=0, topic_id=ID, leader=TWO
)
CHANGED = replace(
    DECIDED,
    origin=origin(AT, broker_id=100),
    topic="orders-a",
    leader_before=None,
    leader_epoch=2,
    elr_before=(ONE,),
    last_known_elr_before=(ONE,),
)
LED_BY_ONE = replace(
    CHANGED, leader_before=ONE, isr_before=(ONE,), elr_before=(), last_known_elr_before=()
)

READ: list[tuple[str, str, UncleanChange]] = [
    ("3.6 to 4.0: decided", SETTING, DECIDED),
    (
        "4.1 and later: decided while nobody leads",
        SETTING + PREVIOUS.format(isr="[]", elr="[1]", known="[1]", leader=-1),
        replace(DECIDED, leader_epoch=2, elr_before=(ONE,), last_known_elr_before=(ONE,)),
    ),
    (
        "4.1 and later: decided in the event that fences the old leader",
        SETTING + PREVIOUS.format(isr="[1]", elr="[]", known="[]", leader=1),
        replace(DECIDED, leader_epoch=2, leader_before=ONE, isr_before=(ONE,)),
    ),
    (
        "4.1 and later: changed while nobody leads",
        f"{CHANGE}isr: [] -> [2], leader: -1 -> 2, leaderRecoveryState: RECOVERED -> RECOVERING, leaderEpoch: 1 -> 2, elr: [1] -> [], lastKnownElr: [1] -> [], partitionEpoch: 2 -> 3",
        CHANGED,
    ),
    (
        "changed in the event that fences the old leader",
        f"{CHANGE}isr: [1] -> [2], leader: 1 -> 2, leaderRecoveryState: RECOVERED -> RECOVERING, leaderEpoch: 1 -> 2, partitionEpoch: 2 -> 3",
        LED_BY_ONE,
    ),
    (
        "the last known leader",
        f"{CHANGE}isr: [] -> [2], leader: -1 -> 2, leaderRecoveryState: RECOVERED -> RECOVERING, leaderEpoch: 1 -> 2, lastKnownElr: [2] -> [], partitionEpoch: 2 -> 3",
        replace(CHANGED, elr_before=(), last_known_elr_before=(TWO,)),
    ),
    (
        "3.0 to 3.4: another prefix, and no ELR",
        f"[Controller 100] UNCLEAN partition change for orders-a-0 with topic ID {ID}: isr: [1, 3] -> [2], leader: 1 -> 2, leaderEpoch: 1 -> 2, partitionEpoch: 2 -> 3",
        replace(LED_BY_ONE, isr_before=(ONE, BrokerId(3))),
    ),
    (
        "3.0 to 3.9: changed while nobody leads, whose ISR still names the old leader",
        f"{CHANGE}isr: [1] -> [2], leader: -1 -> 2, leaderEpoch: 1 -> 2, partitionEpoch: 2 -> 3",
        replace(LED_BY_ONE, leader_before=None),
    ),
    (
        "with a reassignment",
        f"{CHANGE}replicas: [1, 3] -> [1, 2], isr: [1] -> [2], removingReplicas: [3] -> [], addingReplicas: [2] -> [], leader: 1 -> 2, leaderEpoch: 1 -> 2, partitionEpoch: 2 -> 3",
        LED_BY_ONE,
    ),
]

# From 4.1 on every change is called unclean until the leader has recovered.
NOTHING: list[tuple[str, str]] = [
    (
        "the leader is gone",
        f"{CHANGE}isr: [1] -> [], leader: 1 -> -1, leaderEpoch: 2 -> 3, elr: [] -> [1], lastKnownElr: [] -> [1], partitionEpoch: 3 -> 4",
    ),
    (
        "elected from the ELR",
        f"{CHANGE}isr: [] -> [1], leader: -1 -> 1, leaderEpoch: 3 -> 4, elr: [1] -> [], lastKnownElr: [1] -> [], partitionEpoch: 4 -> 5",
    ),
    ("the ELR is gone", f"{CHANGE}elr: [1] -> [], partitionEpoch: 8 -> 9"),
    (
        "elected from the ISR",
        f"{CHANGE}isr: [1, 2] -> [2], leader: 1 -> 2, leaderEpoch: 3 -> 4, partitionEpoch: 4 -> 5",
    ),
    (
        "the leader moves within the same ISR",
        f"{CHANGE}leader: 1 -> 2, leaderEpoch: 3 -> 4, partitionEpoch: 4 -> 5",
    ),
    ("a clean decision", SETTING.replace("an unclean", "a clean")),
    (
        "a decision from the ELR",
        SETTING.replace("an unclean election", "ELR. Previous partition: x"),
    ),
]

BEYOND: list[tuple[str, str]] = [
    ("a partition beyond int32", SETTING.replace("partition 0", "partition 2147483648")),
    ("no topic id", SETTING.replace(ID, "a")),
    ("a broker beyond int32", SETTING.replace("to 2 ", "to 2147483648 ")),
    ("a decision that is cut", SETTING[:-12]),
    ("a change that is cut", READ[3][1][:-3].replace("partitionEpoch: 2 ", "partitionEp")),
    ("a change of nothing", CHANGE),
    ("an epoch beyond int32", READ[3][1].replace("1 -> 2, elr", "1 -> 2147483648, elr")),
]


@pytest.mark.parametrize(
    ("message", "expected"), [pytest.param(*case[1:], id=case[0]) for case in READ]
)
def test_an_unclean_election_is_read(message: str, expected: UncleanChange) -> None:
    assert events_of(stamped(message)) == [expected]


@pytest.mark.parametrize("message", [pytest.param(text, id=why) for why, text in NOTHING])
def test_a_change_that_elects_nobody_or_cleanly_is_no_event_and_not_counted(message: str) -> None:
    assert events_of(stamped(message)) == []


@pytest.mark.parametrize("message", [pytest.param(text, id=why) for why, text in BEYOND])
def test_what_no_controller_writes_is_no_event_and_counted(message: str) -> None:
    made = parser()
    assert made.feed([stamped(message).encode()]) == []
    assert made.unparsed == 1


@pytest.mark.parametrize("message", [pytest.param(case[1], id=case[0]) for case in READ])
def test_a_line_cut_anywhere_elects_whom_the_whole_line_does_or_nobody(message: str) -> None:
    whole = stamped(message)
    (event,) = events_of(whole)
    assert isinstance(event, UncleanChange)
    for length in range(len(whole)):
        told = parser().feed([whole[:length].encode()])
        assert len(told) <= 1
        for one in told:
            assert isinstance(one, UncleanChange)
            assert (one.leader, one.partition, one.topic_id) == (event.leader, 0, ID)
            assert one.leader_epoch in (None, event.leader_epoch)


@pytest.mark.parametrize(
    ("line", "former_leaders"),
    [
        pytest.param(CHANGED, (ONE,), id="by-the-elr"),
        pytest.param(LED_BY_ONE, (ONE,), id="it-led"),
        pytest.param(replace(LED_BY_ONE, leader_before=None), (ONE,), id="by-the-isr"),
        pytest.param(replace(CHANGED, last_known_elr_before=(TWO,)), (ONE,), id="not-the-new-one"),
        pytest.param(DECIDED, (), id="nobody-tells"),
    ],
)
def test_who_may_have_led_before(line: UncleanChange, former_leaders: tuple[BrokerId, ...]) -> None:
    assert line.former_leaders == former_leaders
