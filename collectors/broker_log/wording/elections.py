"""Lines of a KRaft controller about elections of replicas that were not known to have everything.

Such an election is logged twice: by the controller that decides it, with the topic id alone, and by
every controller that applies the change, with the topic. Controllers with ZooKeeper do not log it.
Source: PartitionChangeBuilder (from Kafka 3.6 on) and PartitionRegistration (3.0) up to 4.4, and lines
of real 4.1 controllers.
"""

from __future__ import annotations

import re
from typing import Final

from collectors.broker_log.wording.fields import (
    NUMBER,
    TOPIC_ID,
    TOPIC_PARTITION,
    LineUnreadableError,
    broker_if_any,
    brokers,
    compile_pattern,
    int32,
    int32_if_any,
    match_start,
    partition_of,
    topic_id_if_any,
)
from collectors.broker_log.wording.line import Line
from rules.facts.broker_log import UncleanChange
from rules.facts.identity import BrokerId

SETTING: Final = "Setting new leader for topicId "
UNCLEAN: Final = "UNCLEAN partition change for "

_LIST: Final = r"\[(?P<{}>[\d, ]{{0,2000}})\]"
_SETTING: Final = compile_pattern(
    rf"{SETTING}{TOPIC_ID}, partition (?P<partition>\d{{1,10}}) to (?P<leader>{NUMBER}) using "
    r"(?:(?P<unclean>an unclean election)|a clean election|ELR)"
)
_CHANGE: Final = compile_pattern(rf"{UNCLEAN}{TOPIC_PARTITION} with topic ID {TOPIC_ID}: ")
_WHOLE: Final = compile_pattern(rf"partitionEpoch: {NUMBER} -> {NUMBER}(?=\s|$)")
_CHANGED_LEADER: Final = compile_pattern(rf"\bleader: (?P<before>{NUMBER}) -> (?P<after>{NUMBER})")
_CHANGED_EPOCH: Final = compile_pattern(rf"\bleaderEpoch: {NUMBER} -> (?P<after>{NUMBER})")
_ISR: Final = compile_pattern(r"\bisr: " + _LIST.format("before") + " -> ")
_ELR: Final = compile_pattern(r"\belr: " + _LIST.format("before") + " -> ")
_LAST_KNOWN: Final = compile_pattern(r"\blastKnownElr: " + _LIST.format("before") + " -> ")

_PREVIOUS: Final = ". Previous partition: PartitionRegistration("
_PREVIOUS_ISR: Final = compile_pattern(r"\bisr=" + _LIST.format("before"))
_PREVIOUS_ELR: Final = compile_pattern(r"\belr=" + _LIST.format("before"))
_PREVIOUS_LAST_KNOWN: Final = compile_pattern(r"\blastKnownElr=" + _LIST.format("before"))
_PREVIOUS_LEADER: Final = compile_pattern(rf"\bleader=(?P<before>{NUMBER})")
_PREVIOUS_EPOCH: Final = compile_pattern(rf"\bleaderEpoch=(?P<before>{NUMBER})")


def setting(line: Line) -> UncleanChange | None:
    """Read that the controller elects a leader; None: a clean election."""
    match = match_start(_SETTING, line.message)
    if match["unclean"] is None:
        return None
    _, separator, rest = line.message.partition(_PREVIOUS)
    previous = rest.partition(", change record:")[0] if separator else ""
    epoch = _text(_PREVIOUS_EPOCH, previous)
    return UncleanChange(
        origin=line.origin,
        topic=None,
        partition=int32(match["partition"]),
        topic_id=topic_id_if_any(match["topic_id"]),
        leader=broker_if_any(match["leader"]),
        leader_before=broker_if_any(_text(_PREVIOUS_LEADER, previous)),
        leader_epoch=None if epoch is None else int32(epoch) + 1,  # each new leader has the next
        isr_before=_brokers(_PREVIOUS_ISR, previous),
        elr_before=_brokers(_PREVIOUS_ELR, previous),
        last_known_elr_before=_brokers(_PREVIOUS_LAST_KNOWN, previous),
    )


def change(line: Line) -> UncleanChange | None:
    """Read a change that the controller calls unclean; None: it elects nobody, or cleanly.

    From Kafka 4.1 on every change is called so until the leader of an unclean election has recovered,
    also that the leader is gone, and a clean election from the ISR or the ELR.
    """
    match = match_start(_CHANGE, line.message)
    changes = line.message[match.end() :]
    if _WHOLE.search(changes) is None:
        raise LineUnreadableError(line.message)  # cut short: whom it elects may be missing
    leaders = _CHANGED_LEADER.search(changes)
    leader = None if leaders is None else broker_if_any(leaders["after"])
    isr, elr = _brokers(_ISR, changes), _brokers(_ELR, changes)
    is_elected = leader is not None and _ISR.search(changes) is not None
    if leaders is None or not is_elected or leader in (*isr, *elr):
        return None
    name, epoch = partition_of(match), _CHANGED_EPOCH.search(changes)
    return UncleanChange(
        origin=line.origin,
        topic=name.topic,
        partition=name.partition,
        topic_id=topic_id_if_any(match["topic_id"]),
        leader=leader,
        leader_before=broker_if_any(leaders["before"]),
        leader_epoch=None if epoch is None else int32_if_any(epoch["after"]),
        isr_before=isr,
        elr_before=elr,
        last_known_elr_before=_brokers(_LAST_KNOWN, changes),
    )


def _text(pattern: re.Pattern[str], text: str) -> str | None:
    match = pattern.search(text)
    return None if match is None else str(match["before"])


def _brokers(pattern: re.Pattern[str], text: str) -> tuple[BrokerId, ...]:
    return brokers(_text(pattern, text) or "")
