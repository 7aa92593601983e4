"""What Tidemark counts about itself from the start of the process: pure state, a round at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rules.facts.snapshot import RoundReport
from rules.verdict import Verdict

FindingCounts = Mapping[tuple[str, Verdict], int]  # (rule id, verdict) -> subjects


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfMetrics:
    """Counters that survive rounds, and the latest counts of findings."""

    version: str  # of Tidemark
    requests: Mapping[str, int] = field(default_factory=dict)  # Kafka API name -> sent so far
    duplicate_commits: int = 0
    findings: FindingCounts = field(default_factory=dict)

    def after_round(self, report: RoundReport, findings: FindingCounts) -> SelfMetrics:
        """Return the totals one round later; `findings` are that round's, and replace the old."""
        sent = Counter(self.requests)
        sent.update(report.requests)
        sent.update(report.setup_requests)
        return replace(
            self,
            requests=dict(sorted(sent.items())),
            duplicate_commits=self.duplicate_commits + report.duplicate_commits,
            findings=dict(findings),
        )
