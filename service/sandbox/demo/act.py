"""What an act of the story is: what is done, and what of it has to be seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rules.evidence import DeclaredT, read_evidence
from service.sandbox.demo.api import RoundStatus
from service.sandbox.demo.stage import Stage


@dataclass(frozen=True, slots=True)
class Observation:
    """What Tidemark has said since a step was done, and what the stage knows to be true."""

    stage: Stage
    rounds: Sequence[RoundStatus]  # oldest first, at least one

    @property
    def last(self) -> RoundStatus:
        """The newest round."""
        return self.rounds[-1]

    def evidence(self, rule: str, topic: str, declared: type[DeclaredT]) -> DeclaredT | None:
        """Return the evidence of a rule's open finding on a topic; None without one."""
        finding = self.last.finding(rule, topic)
        return None if finding is None else read_evidence(finding["evidence"], declared)


Seen = Callable[[Observation], str | None]  # a sentence, or None so far


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that is done, and what Tidemark has to say of it."""

    did: str
    do: Callable[[Stage], None] | None = None  # None: it goes on from the step before
    seen: Seen
    limit_seconds: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """A part of the story."""

    title: str
    steps: Sequence[Step]


def is_alone(topic: str, records: int) -> Seen:
    """Return what sees that one broker alone has more than so many acknowledged records of a topic.

    They were all acknowledged when the step had been done, and the third round after that began
    later: it has seen all of them, where the first may have seen half.
    """

    def seen(observed: Observation) -> str | None:
        row = observed.last.partition(topic)
        has_all = len(observed.rounds) >= 3 and (row.get("high_watermark") or 0) > records
        if len(row.get("isr") or ()) != 1 or not has_all:
            return None
        return (
            f"on {topic} broker {row['leader']} alone is in sync, and all up to the HWM "
            f"{row['high_watermark']} is acknowledged: a partition at risk, observed every second"
        )

    return seen


def whole_again(observed: Observation) -> str | None:
    """See that all replicas are in sync again, and that only events and posture are left."""
    last = observed.last
    if not last.is_calm(last.partitions):
        return None
    return (
        f"all {len(last.partitions)} partitions are whole again; what happened does not un-happen: "
        f"{', '.join(sorted(last.events))} stay open for a day"
    )
