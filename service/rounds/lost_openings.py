"""Opens findings anew in the database whose openings were in rounds that were lost.

What goes on changes nothing, so that no later round would store them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rules.judgement import Finding, Judgement
from rules.open_findings import Change, Identity, OpenFinding, Step
from rules.verdict import RuleMeta


class LostOpenings:
    """The open findings that are not stored."""

    def __init__(self) -> None:
        self._identities: set[Identity] = set()

    def add(self, identities: Iterable[Identity]) -> None:
        """Add findings whose openings were lost."""
        self._identities.update(identities)

    def take(
        self,
        open_findings: Mapping[Identity, OpenFinding],
        changes: Sequence[Change],
        judgements: Sequence[Judgement],
    ) -> list[Change]:
        """Return openings to store with the changes of a round.

        A finding that the round changes has to wait for the next one: a round changes each at most once.
        """
        if not self._identities:
            return []
        rules = {judgement.rule.rule_id: judgement.rule for judgement in judgements}
        changed = {change.identity for change in changes}
        self._identities = {name for name in self._identities if name in open_findings}
        ready = {name for name in self._identities - changed if name[0] in rules}
        self._identities -= ready
        return [_opening_of(open_findings[name], rules[name[0]]) for name in sorted(ready)]


def _opening_of(entry: OpenFinding, rule: RuleMeta) -> Change:
    """Return the change that opens a finding as it is now, maybe UNKNOWN, at the time when it opened."""
    finding = Finding(
        rule=rule,
        labels=dict(entry.identity[1]),
        verdict=entry.verdict,
        reason=entry.reason,
        evidence=dict(entry.evidence),
    )
    return Change(
        step=Step.OPENED,
        identity=entry.identity,
        before=None,
        after=entry.verdict,
        finding=finding,
        last_severity=entry.severity,
        since=entry.since,
        last_breach_at=entry.last_breach_at,
    )
