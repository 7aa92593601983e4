"""The summary of a loss incident, in one sentence and a few numbers: pure.

Up to four rules report one leader change of one partition: that it was unclean, that committed records
are lost, that more may be, and which groups had read them. The summary counts partitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Final, NamedTuple

from rules.loss.evidence_fields import SummaryEvidence

COMMITTED: Final = "committed_records_lost"
POSSIBLY: Final = "records_possibly_lost"
BEYOND: Final = "committed_beyond_log_end"
UNCLEAN: Final = "unclean_leader_election"
UNREPLICATED: Final = "unreplicated_records_lost"
RULES: Final = (COMMITTED, POSSIBLY, BEYOND, UNCLEAN, UNREPLICATED)  # the most certain first
PROVEN: Final = "proven"
SAME_TIME: Final = timedelta(seconds=1)


class Outcome(IntEnum):
    """What became of a partition's records; the worst first."""

    LOST = 0  # committed records are certainly lost
    MAY_BE_LOST = 1
    READ_BEYOND = 2  # a group has read records that are missing
    UNCLEAN = 3  # an unclean election, nothing more is known
    NOT_DETERMINABLE = 4  # whether anything is lost cannot be determined
    UNCOMMITTED = 5  # the lost records were never committed
    RESTORED = 6  # a replica that has the records leads again


OF_RULE: Final = {
    COMMITTED: Outcome.LOST,
    POSSIBLY: Outcome.MAY_BE_LOST,
    BEYOND: Outcome.READ_BEYOND,
    UNCLEAN: Outcome.UNCLEAN,
    UNREPLICATED: Outcome.UNCOMMITTED,
}
OF_REASON: Final = {
    (COMMITTED, "restored"): Outcome.RESTORED,
    (POSSIBLY, PROVEN): Outcome.LOST,
    (POSSIBLY, "election_not_known"): Outcome.NOT_DETERMINABLE,
    (POSSIBLY, "not_determinable"): Outcome.NOT_DETERMINABLE,
}


class LossFact(NamedTuple):
    """The finding of one rule about one partition."""

    rule_id: str
    labels: Mapping[str, str]
    reason: str
    evidence: SummaryEvidence
    since: datetime

    @property
    def incident(self) -> str:
        """Return the incident of the finding; one of an older version is an incident by itself."""
        name = self.evidence.get("incident")
        return "-".join(self.place) if name is None else name

    @property
    def place(self) -> tuple[str, str]:
        """Return topic and partition: an incident has each partition once."""
        return self.labels.get("topic", ""), self.labels.get("partition", "")

    @property
    def weight(self) -> int:
        """Return how certain the finding is, lower for more certain."""
        is_elsewhere = self.rule_id == POSSIBLY and self.reason == PROVEN
        return 2 * RULES.index(UNCLEAN) - 1 if is_elsewhere else 2 * RULES.index(self.rule_id)

    @property
    def last_observation(self) -> datetime | None:
        """Return when the partition was last seen under the former leader; None if it is not known."""
        try:
            seen = datetime.fromisoformat(self.evidence.get("last_observation") or "")
        except ValueError:
            return None
        return None if seen.tzinfo is None else seen

    @property
    def outcome(self) -> Outcome:
        """Return what became of the records according to the finding."""
        of_reason = OF_REASON.get((self.rule_id, self.reason))
        return OF_RULE[self.rule_id] if of_reason is None else of_reason

    @property
    def certain_offsets(self) -> int:
        """Return how many offsets are certainly lost, at least."""
        counts = (
            self.evidence.get("certain_offsets"),
            self.evidence.get("proven_committed_offsets"),
            self.evidence.get("at_least_offsets"),
        )
        return max((count for count in counts if count is not None), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The summary of one incident."""

    broker: int | None  # the former leader, if all partitions had the same one
    began: datetime  # when the first of its partitions was found
    last_began: datetime  # the same of the last one
    last_observation: datetime | None  # the earliest of its partitions under that leader
    partitions: Mapping[Outcome, int]
    certain_offsets: int

    @property
    def sentence(self) -> str:
        """Return the summary as one sentence."""
        if self.partitions.keys() == {Outcome.READ_BEYOND}:  # no other leader was observed
            message = f"Commits beyond what is there were found {self._began_text}"
            return f"{message}: {partitions(self.possibly_lost)} may have lost records"
        who = (
            "Leadership changed" if self.broker is None else f"Broker {self.broker} lost leadership"
        )
        return f"{who} {self._when}: {', '.join(self._outcomes())}"

    @property
    def possibly_lost(self) -> int:
        """Return how many partitions may have lost committed records."""
        return sum(
            self.partitions.get(outcome, 0)
            for outcome in (Outcome.MAY_BE_LOST, Outcome.READ_BEYOND)
        )

    @property
    def _when(self) -> str:
        observed = self._began_text
        seen = self.last_observation
        if seen is None or seen > self.began:
            is_one = self.broker is not None or self.last_began - self.began < SAME_TIME
            last = "" if is_one else f", the last before {self._short(self.last_began)}"
            return f"before {observed}{last}"
        return f"between {self._short(seen)} and {observed}"

    def _short(self, time: datetime) -> str:
        form = "%H:%M:%S" if time.date() == self.began.date() else "%Y-%m-%d %H:%M:%S"
        return f"{time:{form}}"

    @property
    def _began_text(self) -> str:
        return f"{self.began:%Y-%m-%d %H:%M:%S} UTC"

    def _outcomes(self) -> Iterable[str]:
        many = self.partitions
        if lost := many.get(Outcome.LOST, 0):
            # A transaction that is lost as a whole proves a loss, but not its number of offsets.
            certain = offsets(self.certain_offsets) if self.certain_offsets else "committed records"
            yield f"{partitions(lost)} lost {certain} for certain"
        if may := self.possibly_lost:
            yield f"{may if lost else partitions(may)} may have lost some"
        if unclean := many.get(Outcome.UNCLEAN, 0):
            yield f"{partitions(unclean)} elected a replica that was not in sync"
        if gone := many.get(Outcome.NOT_DETERMINABLE, 0):
            yield f"not determinable for {partitions(gone)}"
        if never := many.get(Outcome.UNCOMMITTED, 0):
            yield f"{partitions(never)} lost what was never committed"
        if back := many.get(Outcome.RESTORED, 0):
            yield f"{partitions(back)} {'has' if back == 1 else 'have'} all records back"


def by_partition(facts: Iterable[LossFact]) -> list[list[LossFact]]:
    """Return the facts of each partition, the most certain first; the worst partitions first."""
    by_place: dict[tuple[str, str], list[LossFact]] = {}
    for fact in facts:
        by_place.setdefault(fact.place, []).append(fact)
    lines = [sorted(line, key=lambda item: (item.weight, item.since)) for line in by_place.values()]
    return sorted(
        lines, key=lambda line: (line[0].outcome, -line[0].certain_offsets, line[0].place)
    )


def count_outcomes(facts: Iterable[LossFact]) -> Counter[Outcome]:
    """Count partitions by outcome; one with several losses counts once, by the worst of them."""
    most_certain: dict[tuple[str, tuple[str, str]], LossFact] = {}
    for fact in facts:
        loss = fact.incident, fact.place
        best = most_certain.setdefault(loss, fact)
        if (fact.weight, fact.since) < (best.weight, best.since):
            most_certain[loss] = fact
    worst: dict[tuple[str, str], Outcome] = {}
    for (_, place), fact in most_certain.items():
        worst[place] = min(fact.outcome, worst.get(place, fact.outcome))
    return Counter(worst.values())


def summary_of(lines: Sequence[Sequence[LossFact]]) -> Summary:
    """Return the summary of the lines of one incident."""
    facts = [fact for line in lines for fact in line]
    many: dict[Outcome, int] = {}
    for line in lines:
        many[line[0].outcome] = many.get(line[0].outcome, 0) + 1
    brokers = {fact.evidence.get("leader_before") for fact in facts} - {None}
    observations = [fact.last_observation for fact in facts]
    return Summary(
        broker=next(iter(brokers)) if len(brokers) == 1 else None,
        began=min(fact.since for fact in facts),
        last_began=max(min(fact.since for fact in line) for line in lines),
        last_observation=min(
            (observation for observation in observations if observation is not None),
            default=None,
        ),
        partitions=many,
        certain_offsets=sum(
            line[0].certain_offsets for line in lines if line[0].outcome is Outcome.LOST
        ),
    )


def partitions(many: int) -> str:
    """Return a number of partitions in words."""
    return f"{many:,} partition{'' if many == 1 else 's'}"


def offsets(many: int) -> str:
    """Return a number of offsets in words."""
    return f"{many:,} offset{'' if many == 1 else 's'}"
