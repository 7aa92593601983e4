"""Which warnings are true: each has to be confirmed by a source that is not Tidemark.

Nothing is permitted because of its family or its time alone. A rule whose breach can be true while
nothing is lost has one source here; what that source does not confirm is wrong, and so is every
warning of a rule that is not listed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final

from tests.integration.ordinary.audited import Place
from tests.integration.ordinary.coordinator_logs import Commit
from tests.integration.ordinary.services import INTERVALS, ReportedFinding
from tests.integration.ordinary.topics import MADE_WRONG
from tests.integration.ordinary.truth import Truth

# A finding is dated by the round that found it; what it reports began before that round, by an
# interval at most, and a silent broker makes a round late by its limit of ten seconds.
LATE_SECONDS: Final = 10.0
STUCK_SECONDS: Final = 28.0  # of the rules' 30 s: Tidemark's clock is read at other times
OPEN_SECONDS: Final = 115.0  # of last_stable_offset_stuck's 2 minutes
STALLED_SECONDS: Final = 55.0  # of consumer_group_stalled's minute

Confirm = Callable[[ReportedFinding, Truth], str | None]


def place_of(finding: ReportedFinding) -> Place:
    """Return topic and partition; "" and -1 where a finding has none."""
    return finding.labels.get("topic", ""), int(finding.labels.get("partition", -1))


def commit_of(finding: ReportedFinding) -> Commit:
    """Return group, topic and partition; empty ones where a finding has none."""
    return finding.labels.get("group", ""), *place_of(finding)


def commits_of(finding: ReportedFinding) -> list[Commit]:
    """Return the commits that a finding names: of a whole group those in its evidence."""
    rows = finding.evidence.get("partitions")
    if "topic" in finding.labels or not isinstance(rows, list):
        return [commit_of(finding)]
    group = finding.labels.get("group", "")
    return [(group, str(row["topic"]), int(row["partition"])) for row in rows]


def _begin(finding: ReportedFinding, seconds: float = 0.0) -> datetime:
    """Return the earliest begin of what a finding reports after it has lasted for `seconds`."""
    late = INTERVALS[finding.service] + LATE_SECONDS
    return finding.since - timedelta(seconds=seconds + late)


def _seen_until(finding: ReportedFinding) -> datetime:
    """Return the latest time at which its last round read the metadata: its limit after its own time."""
    return finding.last_breach + timedelta(seconds=LATE_SECONDS)


def too_few_in_sync(finding: ReportedFinding, truth: Truth) -> str | None:
    """Brokers are out of the ISR while they are frozen: a broker's own metadata shows it."""
    for problem in truth.problems_of(place_of(finding)):
        if problem.has_leader and _begin(finding) <= problem.at <= _seen_until(finding):
            return f"metadata showed {problem.in_sync} in sync at {problem.at:%H:%M:%S}"
    return None


def no_leader(finding: ReportedFinding, truth: Truth) -> str | None:
    """A broker's own metadata shows it."""
    for problem in truth.problems_of(place_of(finding)):
        if not problem.has_leader and _begin(finding) <= problem.at <= _seen_until(finding):
            return f"metadata showed no leader at {problem.at:%H:%M:%S}"
    return None


def nothing_acknowledged(finding: ReportedFinding, truth: Truth) -> str | None:
    """A high watermark that is acknowledges nothing to a producer with acks=all."""
    begin = _begin(finding, STUCK_SECONDS)
    for pause in truth.pauses_of(place_of(finding), STUCK_SECONDS):
        if pause.begin <= finding.last_breach and pause.end >= begin:
            return f"nothing acknowledged from {pause.begin:%H:%M:%S} to {pause.end:%H:%M:%S}"
    return None


def group_stood(finding: ReportedFinding, truth: Truth) -> str | None:
    """A member that waits for a frozen leader commits nothing: `__consumer_offsets` shows it.

    A group that committed only once is abandoned, and never stalled.
    """
    commit, begin = commit_of(finding), _begin(finding, STALLED_SECONDS)
    if not truth.is_in_use(commit[0]):
        return None
    if truth.stood_still(commit, begin, finding.last_breach, STALLED_SECONDS):
        return "its commit stood before records"
    return None


def was_rewound(finding: ReportedFinding, truth: Truth) -> str | None:
    """`__consumer_offsets` holds a lower commit behind a higher one, on each partition that is named."""
    named = commits_of(finding)
    return "a lower commit was written" if named and all(map(truth.was_rewound, named)) else None


def is_lost(finding: ReportedFinding, truth: Truth) -> str | None:
    """A record that was acknowledged is not at its place."""
    is_missing = truth.misses_records(place_of(finding))
    return "clients miss acknowledged records" if is_missing else None


def was_unclean(finding: ReportedFinding, truth: Truth) -> str | None:
    """The controller wrote it."""
    return "the controller wrote UNCLEAN" if place_of(finding) in truth.unclean else None


def marker_was_late(finding: ReportedFinding, truth: Truth) -> str | None:
    """A coordinator waits up to 30 s for a frozen leader: `__transaction_state` shows it."""
    begin = _begin(finding, STUCK_SECONDS)
    if truth.waited_for_markers(place_of(finding), begin, finding.last_breach, STUCK_SECONDS):
        return "a coordinator waited for its markers"
    return None


def transaction_was_long(finding: ReportedFinding, truth: Truth) -> str | None:
    """`__transaction_state` holds so long a transaction."""
    begin = _begin(finding, OPEN_SECONDS)
    if truth.was_open(place_of(finding), begin, finding.last_breach, OPEN_SECONDS):
        return "a transaction was open for so long"
    return None


def was_replaced(finding: ReportedFinding, truth: Truth) -> str | None:
    """A client was beyond use after a time-out, and its successor ended what it had left open."""
    name = finding.labels.get("transactional_id", "")
    return "a new client took it over" if truth.replaced.get(name) else None


def transaction_failed(finding: ReportedFinding, truth: Truth) -> str | None:
    """A rejected batch cost its transaction, which was not committed: `__transaction_state` shows it."""
    name = str({**finding.labels, **finding.evidence}.get("transactional_id"))
    is_aborted = truth.was_aborted(name, _begin(finding), _seen_until(finding))
    return "its transaction was aborted" if is_aborted else None


def was_made_wrong(finding: ReportedFinding, _truth: Truth) -> str | None:
    """The run made these topics so, and no others."""
    names = str(finding.evidence.get("names", "")).split(", ")
    ends = MADE_WRONG.get(finding.labels.get("check", ""), ())
    is_so = len(names) == len(ends) == finding.evidence.get("wrong") and all(
        name.endswith(f"-{end}") for name, end in zip(names, ends, strict=True)
    )
    return "the topics were made so" if is_so else None


CONFIRMATIONS: Final[Mapping[str, Confirm]] = {
    "committed_beyond_log_end": is_lost,
    "committed_records_lost": is_lost,
    "consumer_group_rewound": was_rewound,
    "consumer_group_stalled": group_stood,
    "exactly_once_posture": was_made_wrong,
    "high_watermark_stuck": nothing_acknowledged,
    "last_stable_offset_stuck": transaction_was_long,
    "partition_offline": no_leader,
    "partition_under_min_isr": too_few_in_sync,
    "producer_fenced": was_replaced,
    "read_committed_consumers_blocked": marker_was_late,
    "records_possibly_lost": is_lost,
    "sequence_gap_loss": is_lost,
    "sequence_gap_reordering": transaction_failed,
    "transaction_marker_stuck": marker_was_late,
    "unclean_leader_election": was_unclean,
}


def confirmation_of(finding: ReportedFinding, truth: Truth) -> str | None:
    """Return what confirms a finding; None where it is wrong."""
    if finding.severity == "info":
        return None if calls_it_unclean(finding, truth) else "info"
    confirm = CONFIRMATIONS.get(finding.rule)
    return None if confirm is None else confirm(finding, truth)


def calls_it_unclean(finding: ReportedFinding, truth: Truth) -> bool:
    """Whether a finding of any severity reports a clean election as an unclean one."""
    is_rule = finding.rule == "unclean_leader_election"
    is_evidence = finding.evidence.get("election") == "unclean"
    return (is_rule or is_evidence) and place_of(finding) not in truth.unclean
