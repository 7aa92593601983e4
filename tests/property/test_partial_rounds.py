"""A round that sees less ends nothing that goes on, opens nothing of its own and keeps no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from rules.catalogue.all_rules import judge_round
from rules.completeness import Completeness
from rules.facts.gap import GapScope
from rules.facts.memory import Memory, advance
from rules.facts.snapshot import Snapshot
from rules.open_findings import (
    Change,
    EndReason,
    Identity,
    OpenFinding,
    Step,
    apply_changes,
    next_changes,
)
from rules.verdict import Kind, SubjectKind, Verdict
from rules.view import View
from tests.factories import at, commits, gap, group, partitions, snapshot
from tests.property.worlds import NOTHING_HIDDEN, Hidden, Round, courses, hidden, observe

EVERY_SECONDS = 40  # longer than what may stand unnoticed, for most rules
MEMORY_HOURS = 24
TOPIC_HOURS = 7 * 24
Key = TypeVar("Key")


class Play:
    """Judges one observation after the other; our own blindness (rules about rules) is left out."""

    def __init__(self) -> None:
        self.memory: Memory | None = None
        self.open: dict[Identity, OpenFinding] = {}
        self.verdicts: Mapping[Identity, Verdict] = {}

    def see(self, seen: Snapshot) -> list[Change]:
        memory = advance(seen, self.memory)
        view = View(snapshot=seen, memory=memory, before=self.memory, now=seen.taken_at)
        judged = [
            judgement
            for judgement in judge_round(view, {}).judgements
            if judgement.rule.subject in {SubjectKind.PARTITION, SubjectKind.COMMIT}
        ]
        self.verdicts = {
            found.identity: found.verdict
            for judgement in judged
            for found in judgement.findings(*Verdict)
        }
        whole = Completeness.of(seen)
        changes = next_changes(self.open, judged, completeness=whole, now=seen.taken_at)
        self.open = apply_changes(self.open, changes, seen.taken_at)
        self.memory = memory
        return changes


@given(course=courses, unseen=st.lists(hidden, min_size=8, max_size=8), has_ids=st.booleans())
def test_what_a_round_does_not_see_neither_opens_nor_ends_a_finding(
    *, course: Sequence[Round], unseen: Sequence[Hidden], has_ids: bool
) -> None:
    full, partial = Play(), Play()
    opened: set[Identity] = set()  # of those who see everything
    healthy: set[Identity] = set()  # seen to be OK since the partial rounds last said BREACH
    for number, (truth, missing) in enumerate(zip(course, unseen, strict=False)):
        seconds = number * EVERY_SECONDS
        told = full.see(observe(truth, NOTHING_HIDDEN, seconds, has_ids=has_ids))
        opened |= {change.identity for change in told if change.step is Step.OPENED}
        healthy |= {name for name, said in full.verdicts.items() if said is Verdict.OK}
        changes = partial.see(observe(truth, missing, seconds, has_ids=has_ids))
        assert {one.identity for one in changes if one.step is Step.OPENED} <= opened
        ended = {one.identity: one.end_reason for one in changes if one.step is Step.ENDED}
        assert set(ended) <= healthy
        assert set(ended.values()) <= {EndReason.OK}
        healthy -= {name for name, said in partial.verdicts.items() if said is Verdict.BREACH}


@given(course=courses, unseen=st.lists(hidden, min_size=8, max_size=8), has_ids=st.booleans())
def test_a_state_that_nobody_saw_end_is_open_when_all_is_seen_again(
    *, course: Sequence[Round], unseen: Sequence[Hidden], has_ids: bool
) -> None:
    """Whole rounds open findings; then everything stays as it is for some partial ones."""
    play, seconds = Play(), 0
    for truth in (*course, course[-1]):
        play.see(observe(truth, NOTHING_HIDDEN, seconds, has_ids=has_ids))
        seconds += EVERY_SECONDS
    before = {name for name, entry in play.open.items() if entry.kind is Kind.STATE}
    for missing in unseen:
        play.see(observe(course[-1], missing, seconds, has_ids=has_ids))
        assert before <= set(play.open)
        seconds += EVERY_SECONDS
    play.see(observe(course[-1], NOTHING_HIDDEN, seconds, has_ids=has_ids))
    assert all(play.open[name].verdict is Verdict.BREACH for name in before)


names = st.sampled_from(("a", "b", "c", "d", "e"))
existing = st.lists(
    st.tuples(
        st.integers(1, 72),  # hours since the round before
        st.frozensets(names, min_size=1),  # topics
        st.frozensets(names),  # groups, each with a commit on every topic
        st.booleans(),  # whether the list of topics is complete
        st.sampled_from((None, *GapScope)),
    ),
    min_size=1,
    max_size=10,
)


@given(existing)
def test_memory_holds_what_is_there_and_what_was_hidden_for_a_limited_time(
    rounds: Sequence[tuple[int, frozenset[str], frozenset[str], bool, GapScope | None]],
) -> None:
    memory: Memory | None = None
    topic_seen: dict[str, int] = {}
    commit_seen: dict[tuple[str, str], int] = {}
    now = 0
    for hours, topics, groups, is_complete, scope in rounds:
        now += hours
        seen = _churn(now, topics, groups, is_complete=is_complete, scope=scope)
        memory = advance(seen, memory)
        pairs = {(name, topic) for name in groups for topic in topics}
        topic_seen |= dict.fromkeys(topics, now)
        commit_seen |= dict.fromkeys(pairs, now)
        kept = _kept_commits(memory)
        known = set(memory.partitions.index.topics)
        assert len(kept) == len(memory.commits), "each once"
        assert pairs <= kept <= _since(commit_seen, now - MEMORY_HOURS)
        assert topics <= known <= _since(topic_seen, now - TOPIC_HOURS)
        assert set(memory.commits.group_ids) == groups | {name for name, _ in kept}
        if is_complete:
            assert known == topics
        if is_complete and scope not in {GapScope.GROUPS, GapScope.COMMITS}:
            assert kept == pairs


def _churn(
    hour: int,
    topics: frozenset[str],
    groups: frozenset[str],
    *,
    is_complete: bool,
    scope: GapScope | None,
) -> Snapshot:
    return snapshot(
        taken_at=at(hour * 3600),
        partitions=partitions(dict.fromkeys(sorted(topics), 1)),
        placement_complete=is_complete,
        groups=tuple(group(name) for name in sorted(groups)),
        commits=commits(
            *((place, row, 50) for place in range(len(groups)) for row in range(len(topics)))
        ),
        gaps=() if scope is None else (gap(scope=scope),),
    )


def _kept_commits(memory: Memory) -> set[tuple[str, str]]:
    kept, index = memory.commits, memory.commits.partitions.index
    pairs = zip(kept.group.tolist(), kept.row.tolist(), strict=True)
    return {(kept.group_ids[place], index.topic_partition(row).topic) for place, row in pairs}


def _since(times: Mapping[Key, int], oldest: int) -> set[Key]:
    return {key for key, hour in times.items() if hour > oldest}
