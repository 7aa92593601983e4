"""Stats of rejected sequences: lines so far, and episodes by class. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from rules.facts.broker_log import SequenceRejected
from rules.facts.sequence_verdicts import Phase, SequenceClass
from rules.view import View

Kind = tuple[SequenceClass, Phase]


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceStats:
    """Stats of rejected sequences; empty where no log was ever read."""

    rejections: int | None = None  # since the start of the process
    episodes: Mapping[Kind, int] = field(default_factory=dict)  # none: the round did not see them

    def after(self, view: View | None) -> SequenceStats:
        """Return the stats one round later; None is a round without a snapshot."""
        if view is None:
            return SequenceStats(rejections=self.rejections)
        log, episodes = view.snapshot.broker_log, view.memory.sequences.episodes
        if not log.is_read and not episodes:
            return SequenceStats(rejections=self.rejections)
        lines = sum(isinstance(event, SequenceRejected) for event in log.events)
        counts = Counter((episode.verdict.class_, episode.verdict.phase) for episode in episodes)
        return SequenceStats(
            rejections=(self.rejections or 0) + lines,
            episodes={
                (class_, phase): counts[class_, phase]
                for class_ in SequenceClass
                for phase in Phase
            },
        )
