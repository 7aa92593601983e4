"""Observes one group of real brokers again and again, and what the rules of members say of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import timedelta

from rules.catalogue import consumer_group_rebalancing, consumer_partitions_unowned
from rules.evidence import Evidence
from rules.facts.groups import Group
from rules.facts.member_memory import GroupHistory
from rules.facts.members import Member
from rules.facts.memory import Memory
from rules.judgement import Finding
from rules.remembering import view_of_round
from rules.verdict import Verdict
from rules.view import View
from service.observe.cluster_reader import ClusterReader, Scope
from service.views.snapshot_rows import group_rows
from tests.unit.rules.catalogue.judging import Judge

Owners = dict[tuple[str, int], str]  # client id by topic and partition; nobody's are left out
JUDGES: tuple[Judge, ...] = (consumer_group_rebalancing.judge, consumer_partitions_unowned.judge)


@dataclass
class GroupObserver:
    """Keeps the memory of the rounds, and everything that breached in one of them."""

    reader: ClusterReader
    name: str
    topics: tuple[str, ...]
    breached: set[tuple[str, str]] = field(default_factory=set)  # rule and reason
    _memory: Memory | None = None
    _view: View | None = None
    _later: timedelta = timedelta()  # by which the observer's clock is ahead

    def observe(self) -> Owners:
        """Run one round and return who owns what by it."""
        scope = Scope(
            topics=re.compile("|".join(map(re.escape, self.topics))),
            groups=re.compile(re.escape(self.name)),
        )
        snapshot = self.reader.read(scope)
        snapshot = replace(snapshot, taken_at=snapshot.taken_at + self._later)
        self._view = view_of_round(snapshot, self._memory)
        self._memory = self._view.memory
        for judge in JUDGES:
            finding = self._finding(judge)
            if finding is not None and finding.verdict is Verdict.BREACH:
                self.breached.add((finding.rule.rule_id, finding.reason))
        rows = [row for row in group_rows(snapshot) if row["group"] == self.name]
        return {
            (row["topic"], row["partition"]): row["client_id"]
            for group in rows
            for row in group["commits"]
            if row["client_id"] is not None
        }

    def forget(self) -> None:
        """Begin anew with an empty memory."""
        self._memory = None
        self.breached.clear()

    def pass_seconds(self, seconds: float) -> None:
        """Observe once more, so much later by the observer's clock."""
        self._later += timedelta(seconds=seconds)
        self.observe()

    @property
    def view(self) -> View:
        """Return the view of the last round."""
        assert self._view is not None
        return self._view

    @property
    def group(self) -> Group:
        """Return the group as last described."""
        [group] = self.view.snapshot.groups
        return group

    @property
    def members(self) -> tuple[Member, ...]:
        """Return its members, none where they are not known."""
        return self.group.members or ()

    @property
    def history(self) -> GroupHistory:
        """Return what is remembered of the group."""
        return self.view.memory.members.history_of(self.name)

    def reason(self, judge: Judge) -> tuple[Verdict, str] | None:
        """Return the verdict of the last round and its reason; None if the rule does not judge the group."""
        finding = self._finding(judge)
        return None if finding is None else (finding.verdict, finding.reason)

    def evidence(self, judge: Judge) -> Evidence:
        """Return the evidence of the last round's finding."""
        finding = self._finding(judge)
        assert finding is not None
        return finding.evidence

    def _finding(self, judge: Judge) -> Finding | None:
        judgement = judge(self.view)
        labels = {"cluster": self.view.snapshot.cluster, "group": self.name}
        [position] = judgement.subjects.find([labels])
        return None if position is None else judgement.finding(position)
