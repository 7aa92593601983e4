"""A gap in a producer's sequence whose cause could not be determined.

Detects:
    Batches that a broker rejected because earlier sequences were missing, where nothing proves that
    no acknowledged record is missing, and no leader change is known that could have lost one.

Why it matters:
    It is most likely harmless, but that is not proven. Tidemark reports this instead of guessing.

Inputs:
    As for sequence_gap_loss. `why` in the evidence says which of them is missing.

Thresholds:
    Reported when a client would have given up (120 seconds after the log line) and the partition
    has been observed six times or cannot be observed; at the latest five minutes after the log
    line. A round in which the partition is not observed, or its leader does not answer, does not
    count.

    Where a broker's log is not read and only its counter shows a rejected batch, there is no finding:
    this rule and the other sequence rules are UNKNOWN (`rejections_counted`) for an hour, with the
    broker and the time, unless the leaders of its partitions prove that nothing can be missing.

False positives:
    Not applicable: the finding says what is not known.

Runbook:
    `needed_evidence` says what would decide. The usual causes: Tidemark has no READ on the topic;
    the last accepted batch was deleted or compacted; Tidemark does not see the partition at all.

    - `client_failure`: the leader changed cleanly, so that no acknowledged record is missing. Most
      likely the client gave up batches that reached their delivery timeout: check the errors of the
      producing application.
"""

from __future__ import annotations

from typing import Final

from rules.facts.episodes import Episode
from rules.facts.sequence_verdicts import SequenceClass
from rules.judgement import Judgement, Reason
from rules.sequence.reporting import EpisodeRule, judge_episodes, sequence_rule
from rules.verdict import Severity
from rules.view import View

RULE: Final = sequence_rule(
    "sequence_gap_undetermined",
    Severity.INFO,
    "A gap in a producer's sequence whose cause could not be determined.",
)


class Why(Reason):
    """Reasons of this rule, between those of every sequence rule."""

    UNDETERMINED = "undetermined"
    CLIENT_FAILURE = "client_failure"  # most likely


def judge(view: View) -> Judgement:
    """Judge the partitions with rejected sequences."""
    return judge_episodes(view, EPISODES)


def _why(episode: Episode) -> Why | None:
    if episode.verdict.class_ is SequenceClass.UNDETERMINED:
        return Why.UNDETERMINED
    is_suspected = not episode.verdict.is_confirmed
    is_client = episode.verdict.class_ is SequenceClass.CLIENT_FAILURE
    return Why.CLIENT_FAILURE if is_suspected and is_client else None


EPISODES: Final = EpisodeRule(rule=RULE, why=Why, of=_why)
