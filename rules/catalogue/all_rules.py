"""The catalogue: every rule in a fixed order, and how a round is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final

import numpy as np

from rules.catalogue import (
    committed_beyond_log_end,
    committed_records_lost,
    consumer_data_expired,
    consumer_group_rewound,
    consumer_group_stalled,
    duplicates_possible,
    high_watermark_stuck,
    last_stable_offset_stuck,
    observation_stale,
    partition_offline,
    partition_under_min_isr,
    producer_fenced,
    producer_sequence_bug,
    read_committed_consumers_blocked,
    record_error_rate_high,
    records_possibly_lost,
    sequence_gap_loss,
    sequence_gap_reordering,
    sequence_gap_undetermined,
    transaction_abort_ratio_high,
    transaction_hanging,
    transaction_marker_stuck,
    transaction_overdue,
    unclean_leader_election,
    unreplicated_records_lost,
)
from rules.judgement import Judgement, NamedSubjects, Reason, decide
from rules.question import Question
from rules.verdict import RuleMeta, SubjectKind, Verdict
from rules.view import View


@dataclass(frozen=True, slots=True)
class Declared:
    """What a rule says of itself."""

    meta: RuleMeta
    reasons: type[Reason]
    text: str | None  # its docstring: what `rules.pages` reads; None if Python was told to drop it


@dataclass(frozen=True, slots=True)
class Rule(Declared):
    """A rule with the pure function that judges a round."""

    judge: Callable[[View], Judgement]


RULES: Final = (
    Rule(
        committed_records_lost.RULE,
        committed_records_lost.Why,
        committed_records_lost.__doc__,
        committed_records_lost.judge,
    ),
    Rule(
        records_possibly_lost.RULE,
        records_possibly_lost.Why,
        records_possibly_lost.__doc__,
        records_possibly_lost.judge,
    ),
    Rule(
        unreplicated_records_lost.RULE,
        unreplicated_records_lost.Why,
        unreplicated_records_lost.__doc__,
        unreplicated_records_lost.judge,
    ),
    Rule(
        unclean_leader_election.RULE,
        unclean_leader_election.Why,
        unclean_leader_election.__doc__,
        unclean_leader_election.judge,
    ),
    Rule(
        committed_beyond_log_end.RULE,
        committed_beyond_log_end.Why,
        committed_beyond_log_end.__doc__,
        committed_beyond_log_end.judge,
    ),
    Rule(
        sequence_gap_loss.RULE,
        sequence_gap_loss.Why,
        sequence_gap_loss.__doc__,
        sequence_gap_loss.judge,
    ),
    Rule(
        sequence_gap_reordering.RULE,
        sequence_gap_reordering.Why,
        sequence_gap_reordering.__doc__,
        sequence_gap_reordering.judge,
    ),
    Rule(
        sequence_gap_undetermined.RULE,
        sequence_gap_undetermined.Why,
        sequence_gap_undetermined.__doc__,
        sequence_gap_undetermined.judge,
    ),
    Rule(
        duplicates_possible.RULE,
        duplicates_possible.Why,
        duplicates_possible.__doc__,
        duplicates_possible.judge,
    ),
    Rule(
        producer_sequence_bug.RULE,
        producer_sequence_bug.Why,
        producer_sequence_bug.__doc__,
        producer_sequence_bug.judge,
    ),
    Rule(
        partition_offline.RULE,
        partition_offline.Why,
        partition_offline.__doc__,
        partition_offline.judge,
    ),
    Rule(
        partition_under_min_isr.RULE,
        partition_under_min_isr.Why,
        partition_under_min_isr.__doc__,
        partition_under_min_isr.judge,
    ),
    Rule(
        high_watermark_stuck.RULE,
        high_watermark_stuck.Why,
        high_watermark_stuck.__doc__,
        high_watermark_stuck.judge,
    ),
    Rule(
        last_stable_offset_stuck.RULE,
        last_stable_offset_stuck.Why,
        last_stable_offset_stuck.__doc__,
        last_stable_offset_stuck.judge,
    ),
    Rule(
        transaction_hanging.RULE,
        transaction_hanging.Why,
        transaction_hanging.__doc__,
        transaction_hanging.judge,
    ),
    Rule(
        transaction_marker_stuck.RULE,
        transaction_marker_stuck.Why,
        transaction_marker_stuck.__doc__,
        transaction_marker_stuck.judge,
    ),
    Rule(
        transaction_overdue.RULE,
        transaction_overdue.Why,
        transaction_overdue.__doc__,
        transaction_overdue.judge,
    ),
    Rule(
        read_committed_consumers_blocked.RULE,
        read_committed_consumers_blocked.Why,
        read_committed_consumers_blocked.__doc__,
        read_committed_consumers_blocked.judge,
    ),
    Rule(
        consumer_group_stalled.RULE,
        consumer_group_stalled.Why,
        consumer_group_stalled.__doc__,
        consumer_group_stalled.judge,
    ),
    Rule(
        consumer_group_rewound.RULE,
        consumer_group_rewound.Why,
        consumer_group_rewound.__doc__,
        consumer_group_rewound.judge,
    ),
    Rule(
        consumer_data_expired.RULE,
        consumer_data_expired.Why,
        consumer_data_expired.__doc__,
        consumer_data_expired.judge,
    ),
    Rule(
        producer_fenced.RULE,
        producer_fenced.Why,
        producer_fenced.__doc__,
        producer_fenced.judge,
    ),
    Rule(
        transaction_abort_ratio_high.RULE,
        transaction_abort_ratio_high.Why,
        transaction_abort_ratio_high.__doc__,
        transaction_abort_ratio_high.judge,
    ),
    Rule(
        record_error_rate_high.RULE,
        record_error_rate_high.Why,
        record_error_rate_high.__doc__,
        record_error_rate_high.judge,
    ),
)
SELF_MONITORING: Final = observation_stale.RULE
EVERY: Final[tuple[Declared, ...]] = (
    *RULES,
    Declared(SELF_MONITORING, observation_stale.Why, observation_stale.__doc__),
)


class Blind(Reason):
    """Why no rule could judge."""

    NO_ROUND = "no_round"  # the cluster could not be asked at all
    RULE_FAILED = "rule_failed"  # a defect of ours: the log has its traceback


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """All judgements of a round, and what the next one has to be given."""

    judgements: Sequence[Judgement]
    unknown_since: Mapping[str, int] = field(default_factory=dict)

    @property
    def questions(self) -> tuple[Question, ...]:
        """Return all that the rules want to know, for the next round to answer."""
        return tuple(asked for judgement in self.judgements for asked in judgement.questions)


Attempt = Callable[[str, Callable[[], Judgement]], Judgement | None]


def run_unguarded(_rule_id: str, judge: Callable[[], Judgement]) -> Judgement:
    """Run a rule as it is: what it raises is raised."""
    return judge()


def judge_round(
    view: View, unknown_since: Mapping[str, int], attempt: Attempt = run_unguarded
) -> Judged:
    """Judge a round by every rule, self-monitoring last.

    `attempt` runs one rule and may return None for one that could not run: it is UNKNOWN then, and
    the others judge all the same.
    """
    cluster = view.snapshot.cluster
    judgements = [
        attempt(rule.meta.rule_id, partial(rule.judge, view))
        or _unknown(rule, cluster, Blind.RULE_FAILED)
        for rule in RULES
    ]
    return _with_self_monitoring(cluster, judgements, unknown_since, view.now)


def judge_blind(cluster: str, unknown_since: Mapping[str, int], now: datetime) -> Judged:
    """Judge a round that could not be made: every rule is UNKNOWN, and nothing is resolved."""
    judgements = [_unknown(rule, cluster, Blind.NO_ROUND) for rule in RULES]
    return _with_self_monitoring(cluster, judgements, unknown_since, now)


def _unknown(rule: Rule, cluster: str, why: Blind) -> Judgement:
    """Answer for a rule that could not judge: one UNKNOWN, of the whole cluster."""
    subject = NamedSubjects(SubjectKind.CLUSTER, ({"cluster": cluster},))
    return decide(rule.meta, subject, [], (Verdict.UNKNOWN, why))


def _with_self_monitoring(
    cluster: str, judgements: Sequence[Judgement], before: Mapping[str, int], now: datetime
) -> Judged:
    since = observation_stale.advance(before, judgements, now)
    visibility = observation_stale.judge(cluster, judgements, since, now)
    return Judged(judgements=(*judgements, visibility), unknown_since=since)


def count_verdicts(judgements: Sequence[Judgement]) -> dict[tuple[str, Verdict], int]:
    """Count the subjects by rule and verdict."""
    return {
        (judgement.rule.rule_id, verdict): int(np.count_nonzero(judgement.verdicts == verdict))
        for judgement in judgements
        for verdict in Verdict
    }
