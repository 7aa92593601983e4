"""How a repeated event updates an open one: nothing weaker ever replaces it.

An event without a name of its own may be another one on the same subject: the latest replaces the open
one, unless it is milder. A sharpening reason adds to the open event, and may make it milder: a loss that
was proven elsewhere, or is restored. Where events have names of their own, a repetition is always about the
same event, so that no evidence of it is lost.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rules.evidence import Evidence, EvidenceValue, Scalar, generic, read_evidence
from rules.judgement import Finding
from rules.loss.evidence_fields import LossEvidence
from rules.verdict import SEVERITIES, Severity

LASTING: Final = frozenset({"incident"})  # an event stays in the incident in which it opened
UNCLEAN: Final = "unclean"  # an election that was not known may become unclean, never the reverse
# Evidence that a sharpening reason joins and never replaces; each round reports only its new groups.
JOINED: Final = LASTING | {"at_least_offsets", "groups_beyond", "group_count"}


def update_event(
    reason: str, evidence: Evidence, severity: Severity, finding: Finding
) -> Finding | None:
    """Return the updated finding of an open event; None if this adds nothing to it."""
    if is_weaker(severity, finding):
        return None
    if not finding.rule.names_events:
        updated = _sharpen(evidence, finding)
        lasting = {name: evidence[name] for name in LASTING & evidence.keys()}
        return replace(updated, evidence={**updated.evidence, **lasting}) if lasting else updated
    is_worse = SEVERITIES.index(finding.severity) < SEVERITIES.index(severity)
    joined = _join(evidence, finding.evidence, is_worse=is_worse)
    if finding.reason in finding.rule.sharpening:
        names = JOINED & evidence.keys()
        lasting = {name: joined[name] for name in names if joined[name] is not None}
        return replace(finding, evidence={**evidence, **finding.evidence, **lasting})
    if finding.severity is not severity:
        return replace(finding, evidence=joined)
    return None if joined == evidence else replace(finding, evidence=joined, reason=reason)


def is_weaker(severity: Severity, finding: Finding) -> bool:
    """Whether a finding is milder than the open one, and its reason may not lower the severity."""
    is_milder = SEVERITIES.index(finding.severity) > SEVERITIES.index(severity)
    return is_milder and not finding.rule.may_lower(finding.reason)


def _sharpen(evidence: Evidence, finding: Finding) -> Finding:
    """Keep the evidence of the event that this one adds to; None retracts an earlier value."""
    if finding.reason not in finding.rule.sharpening:
        return finding
    stored, repeated = _drop_unknown(evidence), _drop_unknown(finding.evidence)
    if any(stored[name] != repeated[name] for name in stored.keys() & repeated.keys()):
        return finding  # it belongs to another event
    return replace(finding, evidence={**evidence, **finding.evidence})


def _sharper(stored: LossEvidence, repeated: LossEvidence, *, is_worse: bool) -> LossEvidence:
    """Return the evidence that is more certain now: that an election was unclean, and the advice."""
    is_unclean = repeated.get("election") == UNCLEAN != stored.get("election")
    better: LossEvidence = {"election": UNCLEAN} if is_unclean else {}
    if (advice := repeated.get("advice")) is not None and (is_worse or is_unclean):
        better["advice"] = advice
    return better


def _drop_unknown(evidence: Evidence) -> dict[str, EvidenceValue]:
    return {name: value for name, value in evidence.items() if value is not None}


def _join(stored: Evidence, repeated: Evidence, *, is_worse: bool) -> dict[str, EvidenceValue]:
    """Merge stored and new evidence: stored values stay, lists are joined, the higher bounds count."""
    joined: dict[str, EvidenceValue] = {**repeated, **stored}
    for name in stored.keys() & repeated.keys():
        old, new = stored[name], repeated[name]
        if isinstance(old, list) and isinstance(new, list):
            joined[name] = [*old, *_select_new(old, new)]
    old_loss, new_loss = (read_evidence(of, LossEvidence) for of in (stored, repeated))
    bounds = _highest(joined, old_loss, new_loss)
    return {**joined, **generic(bounds | _sharper(old_loss, new_loss, is_worse=is_worse))}


def _highest(joined: Evidence, stored: LossEvidence, repeated: LossEvidence) -> LossEvidence:
    """Return the higher of the lower bounds, and a number of groups that is not below the joined rows."""
    bounds, rows = LossEvidence(), joined.get("groups_beyond")
    if "at_least_offsets" in stored and "at_least_offsets" in repeated:
        bounds["at_least_offsets"] = max(stored["at_least_offsets"], repeated["at_least_offsets"])
    if "group_count" in joined and isinstance(rows, list):
        counts = stored.get("group_count", 0), repeated.get("group_count", 0)
        bounds["group_count"] = max(len(rows), *counts)
    return bounds


def _select_new(
    old: list[dict[str, Scalar]], new: list[dict[str, Scalar]]
) -> list[dict[str, Scalar]]:
    """Return the new rows of groups and transactions."""
    names = {_name(row) for row in old}
    return [row for row in new if _name(row) not in names]


def _name(row: dict[str, Scalar]) -> Scalar:
    return row.get("group", row.get("transactional_id"))
