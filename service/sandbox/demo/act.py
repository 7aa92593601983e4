"""What an act of the story is: what is done, and what of it has to be seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from service.sandbox.demo.api import RoundStatus
from service.sandbox.demo.stage import Stage

Seen = Callable[[Sequence[RoundStatus]], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that is done, and what Tidemark has to say of it."""

    did: str
    do: Callable[[Stage], None] | None  # None: it goes on from the step before
    # Called with the rounds since it was done, oldest first: a sentence, or None so far.
    seen: Seen | None = None
    # The same, where it has to be held against what the stage knows to be true; it decides.
    check: Callable[[Stage, Sequence[RoundStatus]], str | None] | None = None
    limit_seconds: float = 30.0

    def saw(self, stage: Stage, rounds: Sequence[RoundStatus]) -> str | None:
        """Return what was seen, None so far."""
        if self.check is not None:
            return self.check(stage, rounds)
        return None if self.seen is None else self.seen(rounds)


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

    def seen(rounds: Sequence[RoundStatus]) -> str | None:
        row = rounds[-1].partition(topic)
        has_all = len(rounds) >= 3 and (row.get("high_watermark") or 0) > records
        if len(row.get("isr") or ()) != 1 or not has_all:
            return None
        return (
            f"on {topic} broker {row['leader']} alone is in sync, and all up to the HWM "
            f"{row['high_watermark']} is acknowledged: a partition at risk, observed every second"
        )

    return seen


def whole_again(rounds: Sequence[RoundStatus]) -> str | None:
    """See that all replicas are in sync again, and that only events are left."""
    rows = rounds[-1].partitions
    whole = [row for row in rows if row["isr"] and set(row["isr"]) == set(row["replicas"] or ())]
    states = [finding for finding in rounds[-1].findings if finding["kind"] == "state"]
    events = {finding["rule"] for finding in rounds[-1].findings} - {
        state["rule"] for state in states
    }
    if len(whole) < len(rows) or not rounds[-1].is_complete or states:
        return None
    return (
        f"all {len(rows)} partitions are whole again; what happened does not un-happen: "
        f"{', '.join(sorted(events))} stay open for a day"
    )
