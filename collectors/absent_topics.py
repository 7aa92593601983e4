"""Asks brokers by name for topics that the list of topics lacks: were they deleted, or may we not see them?

Brokers leave topics without DESCRIBE out of the list, silently; only a request by name is answered with
TOPIC_AUTHORIZATION_FAILED. A broker that is behind may not know a topic that was just created. So a topic counts
as deleted when every broker that can be reached answered, and none has it.
Source: Metadata with names, in the rounds after a topic vanished; other rounds send nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from collectors.naming import counted
from collectors.session import PATIENCE_SECONDS, Build, Request, Session, body_of
from collectors.translate import TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION
from collectors.wire import codec
from collectors.wire.api import METADATA
from collectors.wire.failure import Failure
from rules.facts.gap import GapScope
from rules.facts.snapshot import Absence

MOST: Final = 10_000  # names of one request
HIDDEN_SECONDS: Final = 600.0  # after which a hidden topic is asked for again


@dataclass(slots=True)
class AbsentTopicsReader:
    """Remembers for a while which topics are hidden."""

    _hidden_at: dict[str, float] = field(default_factory=dict)

    def collect(self, session: Session, topics: Sequence[str]) -> dict[str, Absence]:
        """Return why topics are not listed, as far as that is known."""
        now = time.monotonic()
        self._hidden_at = {
            topic: at for topic, at in self._hidden_at.items() if now - at < HIDDEN_SECONDS
        }
        names = [topic for topic in topics if topic not in self._hidden_at][:MOST]
        if not names:
            return {}
        answers: list[dict[str, int]] = []
        failures: list[Failure] = []
        for answer in _query(session, names):
            if isinstance(answer, Failure):
                failures.append(answer)
            else:
                answers.append(answer)
        if failures or not answers:
            if failures:
                what = f"whether {counted(len(names), 'topic')} were deleted"
                session.add_gap(GapScope.PLACEMENT, what, failures[0])
            return {}
        absences = _absences(names, answers)
        hidden = (topic for topic, why in absences.items() if why is Absence.HIDDEN)
        self._hidden_at |= dict.fromkeys(hidden, now)
        return absences


def _query(session: Session, names: Sequence[str]) -> Iterator[dict[str, int] | Failure]:
    """Yield the error codes by topic that each broker answers."""
    requests = [Request(broker, METADATA, _body(names)) for broker in session.ready_brokers()]
    for response in session.exchange(requests, PATIENCE_SECONDS):
        answer: Any = response.read()
        if isinstance(answer, Failure):
            yield answer
        else:
            yield {str(topic.name): int(topic.error_code) for topic in answer.topics if topic.name}


def _absences(names: Sequence[str], answers: Sequence[dict[str, int]]) -> dict[str, Absence]:
    absences: dict[str, Absence] = {}
    for topic in names:
        codes = {answer.get(topic, codec.NO_ERROR) for answer in answers}
        if codes == {UNKNOWN_TOPIC_OR_PARTITION}:
            absences[topic] = Absence.DELETED
        elif codes == {TOPIC_AUTHORIZATION_FAILED}:
            absences[topic] = Absence.HIDDEN
    return absences


def _body(names: Sequence[str]) -> Build:
    return body_of(
        METADATA,
        topics=[{"topic_id": None, "name": name} for name in names],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
