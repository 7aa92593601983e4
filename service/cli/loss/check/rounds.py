"""The rounds of `tidemark loss check`, judged by the rules of lost records as in a running service.

One round shows what groups had read and is gone. With an earlier round the rules get the memory that a service
would have had after it; where a leader changed since, the next round has the answer to their question
where the older epoch ended, and is compared with the earlier round as well. Nothing is judged here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rules.catalogue.all_rules import RULES
from rules.completeness import Completeness
from rules.errors import RequestError
from rules.facts.column import Bools, Int64s
from rules.facts.gap import Gap, GapCause, GapScope
from rules.facts.loss_memory import LossMemory
from rules.facts.memory import Memory, advance
from rules.facts.snapshot import Snapshot
from rules.facts.unchanged_since import UnchangedSince
from rules.finding_table import FindingTable
from rules.judgement import Judgement
from rules.loss.changes import Changes
from rules.open_findings import Identity, OpenFinding
from rules.question import EpochEndQuestion, Question
from rules.remembering import view_of_round
from rules.transactions.listing import gaps_about
from rules.view import View
from service.api.losses.views import CLASS_OF
from service.observe.cluster_reader import Scope
from service.observe.watch import EARLY_SECONDS, SnapshotSource
from service.terminal.words import printable

AT_MOST: Final = 4  # rounds: two decide, and a new leader may not answer at once
LOSS_RULES: Final = tuple(rule for rule in RULES if rule.meta.rule_id in CLASS_OF)
# What the rules of lost records judge.
CONCERNED: Final = frozenset({
    GapScope.CLUSTER, GapScope.PLACEMENT, GapScope.GROUPS, GapScope.COMMITS, GapScope.OFFSETS,
    GapScope.EPOCHS,
})  # fmt: skip
TRANSIENT: Final = frozenset({
    GapCause.TIMEOUT, GapCause.UNREACHABLE, GapCause.LEADER_CHANGING, GapCause.COORDINATOR_MOVING,
    GapCause.GONE,
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckedRounds:
    """What the rules said, and of what."""

    before: Snapshot | None
    view: View  # of the last round
    rounds: int
    judgements: Sequence[Judgement]  # of the last round
    # Of all rounds: a group's next commit wipes what an earlier one proved.
    findings: Mapping[Identity, OpenFinding]

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """Return the gaps of the last round that may hide a loss."""
        return gaps_about(self.view.snapshot, CONCERNED)


def check(
    source: SnapshotSource,
    before: Snapshot | None,
    *,
    topics: re.Pattern[str] | None = None,
    pause: Callable[[float], None],
) -> CheckedRounds:
    """Make rounds until the rules have their answers, or will get none; `pause` waits some seconds.

    Raises:
        RequestError: the earlier round is of another cluster.
        CollectError: the cluster cannot be read at all.
    """
    memory = None if before is None else memory_of(before)
    questions: tuple[Question, ...] = ()
    findings = dict[Identity, OpenFinding]()
    number = 0
    while True:
        number += 1
        snapshot = source.read(Scope(topics=topics, questions=questions))
        _check_cluster(before, snapshot)
        view = view_of_round(snapshot, memory)
        judgements = [rule.judge(view) for rule in LOSS_RULES]
        findings |= _breaches(view, judgements)
        questions = tuple(question for each in judgements for question in each.questions)
        if number == AT_MOST or not _needs_another(snapshot, questions):
            return CheckedRounds(
                before=before,
                view=view,
                rounds=number,
                judgements=judgements,
                findings=findings,
            )
        pause(EARLY_SECONDS)


def memory_of(before: Snapshot) -> Memory:
    """Return what a service would remember after a round, as far as one round can show it.

    Commits that lay beyond an end already then are not remembered as reported: they are to be shown again.
    Since when an offset that lags behind is unchanged is not known, so that it counts as unchanged since before
    that round: a last stable offset may be that of an open transaction, so that nobody is said to have read
    beyond it, and the ISR may have been about to shrink to a leader whose high watermark did not advance.
    """
    memory = advance(before)
    observations, context = memory.observations, memory.observations.context
    context = replace(context, high_watermark=_earlier(context.high_watermark))
    return replace(
        memory,
        observations=replace(observations, context=context),
        last_stable_offset=_earlier(memory.last_stable_offset),
        losses=LossMemory(),
    )


def _earlier(unchanged: UnchangedSince) -> UnchangedSince:
    return unchanged.with_times(lambda times: times - 1)


def unanswered_commits(snapshot: Snapshot) -> Bools:
    """Mark the commits of an older leader epoch whose end no leader has reported."""
    commits = snapshot.commits
    epoch, present = (
        commits.committed_leader_epoch,
        snapshot.offsets.leader_epoch.take(commits.row),
    )
    is_older = epoch.valid & present.valid & (epoch.values < present.values)
    mask: Bools = is_older & (snapshot.epoch_ends.find(commits.row, epoch) < 0)
    return mask


def rows_without_end(view: View) -> Int64s:
    """Return the partitions whose leader's log has nothing of the older epoch, so that nothing is compared."""
    changes = Changes.of(view)
    if changes is None:
        return np.zeros(0, np.int64)
    rows: Int64s = changes.rows[changes.is_answered & ~changes.returned_end.valid]
    return rows


def _check_cluster(before: Snapshot | None, snapshot: Snapshot) -> None:
    if before is not None and before.cluster_id != snapshot.cluster_id:
        raise RequestError(
            f"--before is a round of another cluster: its id is {printable(before.cluster_id)}, "
            f"and the id of this one is {printable(snapshot.cluster_id)}"
        )


def _breaches(view: View, judgements: Sequence[Judgement]) -> Mapping[Identity, OpenFinding]:
    """Return the findings that one round opens."""
    completeness = Completeness.of(view.snapshot)
    _, table = FindingTable().advance(judgements, completeness=completeness, now=view.now)
    return table


def _needs_another(snapshot: Snapshot, questions: Sequence[Question]) -> bool:
    """Whether another round may answer what this one did not."""
    gaps = gaps_about(snapshot, CONCERNED)
    if any(gap.cause in TRANSIENT for gap in gaps):
        return True
    is_open = any(isinstance(question, EpochEndQuestion) for question in questions)
    is_rejected = any(gap.scope is GapScope.EPOCHS for gap in gaps)
    return not is_rejected and (is_open or bool(unanswered_commits(snapshot).any()))
