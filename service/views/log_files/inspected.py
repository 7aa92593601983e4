"""What was read of one log: its files, what an analysis found, and what could not be read."""

from __future__ import annotations

from dataclasses import dataclass

from collectors.log_files.coordinator_records import CoordinatorRecords
from rules.facts.log_files import FileProblem
from rules.facts.log_findings import LogFindings
from rules.facts.log_folders import PartitionLog


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedLog:
    """One log with all that its files show."""

    log: PartitionLog
    findings: LogFindings
    coordinator: CoordinatorRecords | None
    problems: tuple[FileProblem, ...]
