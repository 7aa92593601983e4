"""What becomes of an open event of which a rule says more: nothing weaker ever takes its place.

An event without a name of its own may be another one on the same subject: the latest is told, unless it
is milder than what is open. A reason that sharpens says more of what was told, and may make it milder: a
loss that was proven elsewhere, or is there again. Where events have names of their own, whatever is said
again is said of the same one, so that nothing known of it is lost.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rules.evidence import Evidence, EvidenceValue, Scalar
from rules.judgement import Finding
from rules.verdict import SEVERITIES, Severity

LEAST: Final = frozenset({"at_least_offsets"})  # lower bounds: the highest counts
LASTING: Final = frozenset({"incident"})  # an event belongs to the incident that it was found in
UNCLEAN: Final = "unclean"  # an election that was told as not known may be that, never the reverse
# What each round tells of the groups that it newly found, and never of all.
OF_GROUPS: Final = frozenset({"groups_beyond", "group_count"})


def said_again(
    reason: str, evidence: Evidence, severity: Severity, finding: Finding
) -> Finding | None:
    """Return what is to be told of an open event; None if this adds nothing to it."""
    if is_weaker(severity, finding):
        return None
    if not finding.rule.names_events:
        said = _sharpened(evidence, finding)
        kept = {name: evidence[name] for name in LASTING & evidence.keys()}
        return replace(said, evidence={**said.evidence, **kept}) if kept else said
    is_worse = SEVERITIES.index(finding.severity) < SEVERITIES.index(severity)
    joined = _joined(evidence, finding.evidence) | _sharper(
        evidence, finding.evidence, is_worse=is_worse
    )
    if finding.reason in finding.rule.sharpening:
        names = (LASTING | LEAST | OF_GROUPS) & evidence.keys()
        kept = {name: joined[name] for name in names if joined[name] is not None}
        return replace(finding, evidence={**evidence, **finding.evidence, **kept})
    if finding.severity is not severity:
        return replace(finding, evidence=joined)
    return None if joined == evidence else replace(finding, evidence=joined, reason=reason)


def is_weaker(severity: Severity, finding: Finding) -> bool:
    """Whether a finding is milder than what is open, and no reason takes that back."""
    is_milder = SEVERITIES.index(finding.severity) > SEVERITIES.index(severity)
    return is_milder and not finding.rule.may_lower(finding.reason)


def _sharpened(evidence: Evidence, finding: Finding) -> Finding:
    """Keep the evidence of the event that this one says more of; None takes back what was told."""
    if finding.reason not in finding.rule.sharpening:
        return finding
    known, said = _known(evidence), _known(finding.evidence)
    if any(known[name] != said[name] for name in known.keys() & said.keys()):
        return finding  # it says more of another event
    return replace(finding, evidence={**evidence, **finding.evidence})


def _sharper(known: Evidence, said: Evidence, *, is_worse: bool) -> dict[str, EvidenceValue]:
    """Return what is known better now: that an election was unclean, and what to do then."""
    is_unclean = said.get("election") == UNCLEAN != known.get("election")
    better: dict[str, EvidenceValue] = {"election": UNCLEAN} if is_unclean else {}
    if said.get("advice") is not None and (is_worse or is_unclean):
        better["advice"] = said["advice"]
    return better


def _known(evidence: Evidence) -> dict[str, EvidenceValue]:
    return {name: value for name, value in evidence.items() if value is not None}


def _joined(known: Evidence, said: Evidence) -> dict[str, EvidenceValue]:
    """Return what is known with what is new beside it; lists are joined, bounds the higher ones."""
    joined: dict[str, EvidenceValue] = {**said, **known}
    for name in known.keys() & said.keys():
        old, new = known[name], said[name]
        if isinstance(old, list) and isinstance(new, list):
            joined[name] = [*old, *_others(old, new)]
        elif name in LEAST and isinstance(old, int) and isinstance(new, int):
            joined[name] = max(old, new)
    if "group_count" in joined and isinstance(joined.get("groups_beyond"), list):
        rows = joined["groups_beyond"]
        counts = [one.get("group_count") for one in (known, said)]
        least = len(rows) if isinstance(rows, list) else 0
        joined["group_count"] = max([least, *(count for count in counts if isinstance(count, int))])
    return joined


def _others(old: list[dict[str, Scalar]], new: list[dict[str, Scalar]]) -> list[dict[str, Scalar]]:
    """Return the rows of groups and transactions that are not among those known."""
    names = {_name(row) for row in old}
    return [row for row in new if _name(row) not in names]


def _name(row: dict[str, Scalar]) -> Scalar:
    return row.get("group", row.get("transactional_id"))
