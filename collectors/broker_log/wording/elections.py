"""Lines of a KRaft controller about elections of replicas that were not known to have everything.

Such an election is told twice: by who decides it, with the topic id alone, and by every controller
that takes the change over, with the topic. Controllers with ZooRoundWriter say nothing of it.
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
    compiled,
    int32,
    int32_if_any,
    matched,
    partition_of,
    topic_id_if_any,
)
from collectors.broker_log.wording.line import Line
from rules.facts.broker_log import UncleanChange
from rules.facts.identity import BrokerId

SETTING: Final = "Setting new leader for topicId "
UNCLEAN: Final = "UNCLEAN partition change for "

_LIST: Final = r"\[(?P<{}>[\d, ]{{0,2000}})\]"
_SETTING: Final = compiled(
    rf"{SETTING}{TOPIC_ID}, partition (?P<partition>\d{{1,10}}) to (?P<leader>{NUMBER}) using "
    r"(?:(?P<unclean>an unclean election)|a clean election|ELR)"
)
_CHANGE: Final = compiled(rf"{UNCLEAN}{TOPIC_PARTITION} with topic ID {TOPIC_ID}: ")
_WHOLE: Final = compiled(rf"partitionEpoch: {NUMBER} -> {NUMBER}(?=\s|$)")
_CHANGED_LEADER: Final = compiled(rf"\bleader: (?P<before>{NUMBER}) -> (?P<after>{NUMBER})")
_CHANGED_EPOCH: Final = compiled(rf"\bleaderEpoch: {NUMBER} -> (?P<after>{NUMBER})")
_ISR: Final = compiled(r"\bisr: " + _LIST.format("before") + " -> ")
_ELR: Final = compiled(r"\belr: " + _LIST.format("before") + " -> ")
_LAST_KNOWN: Final = compiled(r"\blastKnownElr: " + _LIST.format("before") + " -> ")

_PREVIOUS: Final = ". Previous partition: PartitionRegistration("
_PREVIOUS_ISR: Final = compiled(r"\bisr=" + _LIST.format("before"))
_PREVIOUS_ELR: Final = compiled(r"\belr=" + _LIST.format("before"))
_PREVIOUS_LAST_KNOWN: Final = compiled(r"\blastKnownElr=" + _LIST.format("before"))
_PREVIOUS_LEADER: Final = compiled(rf"\bleader=(?P<before>{NUMBER})")
_PREVIOUS_EPOCH: Final = compiled(rf"\bleaderEpoch=(?P<before>{NUMBER})")


def setting(line: Line) -> UncleanChange | None:
    """Read that the controller elects a leader; None: a clean election."""
    found = matched(_SETTING, line.said)
    if found["unclean"] is None:
        return None
    _, told, rest = line.said.partition(_PREVIOUS)
    previous = rest.partition(", change record:")[0] if told else ""
    epoch = _text(_PREVIOUS_EPOCH, previous)
    return UncleanChange(
        origin=line.origin,
        topic=None,
        partition=int32(found["partition"]),
        topic_id=topic_id_if_any(found["topic_id"]),
        leader=broker_if_any(found["leader"]),
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
    found = matched(_CHANGE, line.said)
    told = line.said[found.end() :]
    if _WHOLE.search(told) is None:
        raise LineUnreadableError(line.said)  # cut short: whom it elects may be missing
    leaders = _CHANGED_LEADER.search(told)
    leader = None if leaders is None else broker_if_any(leaders["after"])
    isr, elr = _brokers(_ISR, told), _brokers(_ELR, told)
    is_elected = leader is not None and _ISR.search(told) is not None
    if leaders is None or not is_elected or leader in (*isr, *elr):
        return None
    name, epoch = partition_of(found), _CHANGED_EPOCH.search(told)
    return UncleanChange(
        origin=line.origin,
        topic=name.topic,
        partition=name.partition,
        topic_id=topic_id_if_any(found["topic_id"]),
        leader=leader,
        leader_before=broker_if_any(leaders["before"]),
        leader_epoch=None if epoch is None else int32_if_any(epoch["after"]),
        isr_before=isr,
        elr_before=elr,
        last_known_elr_before=_brokers(_LAST_KNOWN, told),
    )


def _text(pattern: re.Pattern[str], told: str) -> str | None:
    found = pattern.search(told)
    return None if found is None else str(found["before"])


def _brokers(pattern: re.Pattern[str], told: str) -> tuple[BrokerId, ...]:
    return brokers(_text(pattern, told) or "")
