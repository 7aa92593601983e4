"""The verdict of each partition, from what the rules of lost records said in the rounds of a check.

A breach is a finding of a rule. Everything else is UNKNOWN unless the rules had an earlier observation of
the same partition to compare with: a rule says OK of a first observation, because it reports changes, and
here that would read as if nothing were lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from collectors.naming import counted
from rules.catalogue.committed_records_lost import RULE as COMMITTED
from rules.catalogue.committed_records_lost import Why
from rules.catalogue.records_possibly_lost import Why as Possibly
from rules.facts.column import Bools, marked
from rules.facts.identity import TopicPartition
from rules.facts.last_observation import LastObservations, remember
from rules.facts.matching import matching_rows
from rules.facts.partitions import Partitions
from rules.facts.snapshot import Snapshot
from rules.open_findings import OpenFinding
from rules.verdict import Verdict
from service.api.core.models import VerdictWord
from service.api.losses.models import LossClass
from service.api.losses.views import Incident, class_of, incident_view, incidents_of, open_loss
from service.cli.loss.check.rounds import CheckedRounds, rows_without_end, unanswered_commits
from service.cli.loss.queries import UNKNOWN, LossReport
from service.terminal.exit_codes import ExitCode
from service.terminal.words import json_time
from service.views.cluster import SnapshotGap
from service.views.model import Row

EPOCH_NOT_IN_LOG: Final = "epoch_not_in_log"
WENT_BACK: Final = "went_back"
COMMITS_NOT_COMPARED: Final = "commits_not_compared"
SUBJECT_GONE: Final = "subject_gone"
NO_EARLIER_ROUND: Final = (
    "A single round cannot see a loss before it that no group had read: only commits were compared with the "
    "log, and --before FILE compares the log itself."
)
EARLIER_ROUND: Final = "Judged is the time since the round in FILE: a loss before it that no group had read is not seen."
# Reasons of verdicts that are no breach.
EXPLANATIONS: Final[Mapping[str, str]] = {
    Why.NOTHING_SEEN_IS_MISSING: "everything that the earlier round saw is there",
    Why.FIRST_OBSERVATION: "no earlier observation of it to compare with",
    Why.NOT_REPORTED: "its leader has not reported where the older leader epoch ended",
    Why.NO_TOPIC_ID: "the brokers have no topic ids: it may be another topic of the same name",
    Why.NOT_SEEN: "its leader did not answer",
    EPOCH_NOT_IN_LOG: "its leader's log has nothing of the older leader epoch any more",
    WENT_BACK: "its leader answers with a lower leader epoch or high watermark than the earlier round saw",
    COMMITS_NOT_COMPARED: "its leader has not reported where the epochs of some commits ended",
    SUBJECT_GONE: "deleted since the earlier round",
    Possibly.ELECTION_NOT_KNOWN: "what the earlier round saw as committed is there; whether the new leader was "
    "in sync, and has what came later, is not known",
    Possibly.NOT_DETERMINABLE: "deleted before its new leader could be queried",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionVerdict:
    """What can be said of one partition; the offsets are absent where they were not seen."""

    name: TopicPartition
    verdict: VerdictWord
    reason: str
    class_: LossClass | None  # of its worst loss
    leader_epoch: int | None
    high_watermark: int | None
    leader_epoch_before: int | None
    high_watermark_before: int | None

    def to_row(self) -> Row:
        """Return the JSON document."""
        return {
            "topic": self.name.topic,
            "partition": self.name.partition,
            "verdict": str(self.verdict),
            "reason": self.reason,
            "class": None if self.class_ is None else str(self.class_),
            "leader_epoch": self.leader_epoch,
            "high_watermark": self.high_watermark,
            "leader_epoch_before": self.leader_epoch_before,
            "high_watermark_before": self.high_watermark_before,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """The answer of a check."""

    checked: CheckedRounds
    file: str | None  # of the earlier round
    incidents: tuple[Row, ...]
    partitions: tuple[PartitionVerdict, ...]
    missing: tuple[TopicPartition, ...]  # requested, and neither here nor in the earlier round

    @property
    def counts(self) -> Mapping[str, int]:
        """Return the number of partitions by verdict."""
        counts = Counter(partition.verdict for partition in self.partitions)
        return {str(verdict): counts[verdict] for verdict in reversed(VerdictWord)}

    @property
    def limit(self) -> str:
        """Return in one sentence what this check could not have seen."""
        return NO_EARLIER_ROUND if self.checked.before is None else EARLIER_ROUND

    @property
    def errors(self) -> tuple[str, ...]:
        """Return why there may be losses that are not shown."""
        unknown = Counter(
            partition.reason
            for partition in self.partitions
            if partition.verdict is VerdictWord.UNKNOWN
        )
        return (
            *(
                f"{counted(count, 'partition')} cannot be judged: {EXPLANATIONS.get(reason, reason)}"
                for reason, count in unknown.items()
            ),
            *(f"{gap.what}: {gap.why}" for gap in self.checked.gaps),
        )

    @property
    def losses(self) -> LossReport:
        """Return the losses as `loss ls` has them."""
        view = self.checked.view
        return LossReport(
            server="",
            cluster=view.snapshot.cluster,
            as_of=json_time(view.now),
            name="incidents",
            rows=self.incidents,
            errors=self.errors,
        )

    @property
    def exit_code(self) -> ExitCode:
        """Return 12 for a loss, 1 where something is not judged; 0 only where everything is."""
        code = self.losses.exit_code
        if code is ExitCode.OK and self.missing:
            return ExitCode.NOTHING_MATCHED
        return code

    @property
    def document(self) -> Row:
        """Return the JSON document: keys may be added, never renamed."""
        before, snapshot = self.checked.before, self.checked.view.snapshot
        return {
            "cluster": snapshot.cluster,
            "cluster_id": snapshot.cluster_id,
            "as_of": json_time(snapshot.taken_at),
            "before": None
            if before is None
            else {"file": self.file, "taken_at": json_time(before.taken_at)},
            "rounds": self.checked.rounds,
            "complete": not self.errors,
            "counts": dict(self.counts),
            "limit": self.limit,
            "errors": list(self.errors),
            "gaps": SnapshotGap.rows_of(self.checked.gaps),
            "incidents": list(self.incidents),
            "partitions": [partition.to_row() for partition in self.partitions],
        }


def conclude(
    checked: CheckedRounds,
    *,
    names: Collection[TopicPartition] = (),
    file: str | None = None,
) -> Conclusion:
    """Return the answer of a check: of the partitions `names`, or of all."""
    incidents = _incidents(checked, names)
    partitions = [
        partition
        for partition in _verdicts(checked, _worst(incidents))
        if not names or partition.name in names
    ]
    known = {partition.name for partition in partitions}
    return Conclusion(
        checked=checked,
        file=file,
        incidents=tuple(incident_view(incident, ()).to_row() for incident in incidents),
        partitions=tuple(sorted(partitions, key=_badness)),
        missing=tuple(name for name in names if name not in known),
    )


def _badness(partition: PartitionVerdict) -> tuple[int, str, TopicPartition]:
    worst_first = (VerdictWord.BREACH, VerdictWord.UNKNOWN, VerdictWord.OK)
    return worst_first.index(partition.verdict), partition.reason, partition.name


def _incidents(checked: CheckedRounds, names: Collection[TopicPartition]) -> list[Incident]:
    """Return the losses by incident, the worst first."""
    cluster_id = checked.view.snapshot.cluster_id
    findings = (each for each in checked.findings.values() if not _is_first_observation(each))
    losses = [open_loss(finding, cluster_id) for finding in findings]
    chosen = [loss for loss in losses if not names or _name(loss.fact.place) in names]
    return sorted(
        incidents_of(chosen), key=lambda incident: (incident.outcome, incident.incident_id)
    )


def _is_first_observation(finding: OpenFinding) -> bool:
    """Whether a finding is about elections before a new partition's first observation: nothing to compare.

    Between an earlier round, which may be days old, and this one such elections are ordinary.
    """
    is_not_known = finding.reason == Possibly.ELECTION_NOT_KNOWN
    return is_not_known and bool(finding.evidence.get("never_observed"))


def _name(place: tuple[str, str]) -> TopicPartition:
    topic, partition = place
    return TopicPartition(topic, int(partition))


def _worst(incidents: Sequence[Incident]) -> dict[TopicPartition, tuple[LossClass | None, str]]:
    """Return class and reason of the worst loss of each partition."""
    worst: dict[TopicPartition, tuple[LossClass | None, str]] = {}
    for incident in incidents:
        for line in incident.lines:
            fact = line[0].fact
            worst.setdefault(_name(fact.place), (class_of(fact.rule_id, fact.reason), fact.reason))
    return worst


def _verdicts(
    checked: CheckedRounds, worst: Mapping[TopicPartition, tuple[LossClass | None, str]]
) -> list[PartitionVerdict]:
    snapshot = checked.view.snapshot
    before = None if checked.before is None else remember(checked.before)
    names = _names(snapshot.partitions)
    reasons = dict(zip(names, _reasons(checked, before), strict=True))
    if before is not None:
        seen = before.observed_at_us.valid.tolist()
        old_names = zip(_names(before.partitions), seen, strict=True)
        reasons |= {
            name: SUBJECT_GONE for name, is_seen in old_names if is_seen and name not in reasons
        }
    reasons |= {name: SUBJECT_GONE for name in worst if name not in reasons}
    return [
        _verdict(name, reason, worst.get(name), snapshot=snapshot, before=before)
        for name, reason in reasons.items()
    ]


def _names(partitions: Partitions) -> list[TopicPartition]:
    starts = partitions.index.starts.tolist()
    bounds = zip(partitions.index.topics, starts, starts[1:], strict=False)
    return [
        TopicPartition(topic, number)
        for topic, begin, end in bounds
        for number in range(end - begin)
    ]


def _verdict(
    name: TopicPartition,
    reason: str,
    loss: tuple[LossClass | None, str] | None,
    *,
    snapshot: Snapshot,
    before: LastObservations | None,
) -> PartitionVerdict:
    """Return the verdict of a partition: that of its worst loss, or else by the reason why there is none."""
    row = snapshot.partitions.index.row(name.topic, name.partition)
    observation = None if before is None else before.of_partition(name)
    is_ok = reason == Why.NOTHING_SEEN_IS_MISSING
    verdict, class_ = VerdictWord.OK if is_ok else VerdictWord.UNKNOWN, None
    if loss is not None:
        class_, reason = loss
        verdict = VerdictWord.UNKNOWN if class_ in UNKNOWN else VerdictWord.BREACH
    return PartitionVerdict(
        name=name,
        verdict=verdict,
        reason=reason,
        class_=class_,
        leader_epoch=None if row is None else snapshot.offsets.leader_epoch[row],
        high_watermark=None if row is None else snapshot.offsets.high_watermark[row],
        leader_epoch_before=None if observation is None else observation.leader_epoch,
        high_watermark_before=None if observation is None else observation.high_watermark,
    )


def _reasons(checked: CheckedRounds, before: LastObservations | None) -> list[str]:
    """Return for each partition of the last round why no rule reports a loss of it."""
    snapshot = checked.view.snapshot
    rows = len(snapshot.partitions)
    open_rows = snapshot.commits.row[unanswered_commits(snapshot)].tolist()
    [judgement] = [each for each in checked.judgements if each.rule is COMMITTED]
    said = [str(reason) for reason in judgement.reasons]
    reasons = np.full(rows, str(Why.NOTHING_SEEN_IS_MISSING), object)
    reasons[marked(rows, open_rows)] = COMMITS_NOT_COMPARED
    reasons[_went_back(snapshot, before)] = WENT_BACK
    reasons[rows_without_end(checked.view)] = EPOCH_NOT_IN_LOG
    reasons[~_is_compared(snapshot, before)] = str(Why.FIRST_OBSERVATION)
    is_unknown = judgement.verdicts == Verdict.UNKNOWN
    reasons[is_unknown] = np.array(said, object)[judgement.reason[is_unknown]]
    listed: list[str] = reasons.tolist()
    return listed


def _is_compared(snapshot: Snapshot, before: LastObservations | None) -> Bools:
    """Mark the partitions of which there is an earlier observation, of the same topic."""
    if before is None:
        return np.zeros(len(snapshot.partitions), np.bool_)
    rows = matching_rows(snapshot.partitions, before.partitions)
    return before.observed_at_us.take(rows).valid


def _went_back(snapshot: Snapshot, before: LastObservations | None) -> Bools:
    """Mark the partitions whose leader epoch or high watermark is lower than in the earlier round."""
    mask = np.zeros(len(snapshot.partitions), np.bool_)
    if before is None:
        return mask
    rows = matching_rows(snapshot.partitions, before.partitions)
    for old, now in (
        (before.leader_epoch.take(rows), snapshot.offsets.leader_epoch),
        (before.high_watermark.take(rows), snapshot.offsets.high_watermark),
    ):
        fallen = old - now
        mask |= fallen.valid & (fallen.values > 0)
    return mask
