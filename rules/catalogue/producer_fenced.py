"""A producer was fenced: who did it, and whether an older instance still writes.

Detects:
    Per transactional id, one episode of fencing in one of these classes. `zombie`: an older instance
    still writes after a newer one was initialised. `instances_fighting`: two instances take the id from
    each other again and again. `coordinator_timeout`: the coordinator aborted an open transaction
    because its timeout was over. `handover`: a newer instance took over once and the older one is silent,
    as in an ordinary restart; reported, as info, where that aborted an open transaction. `late_batch`: a
    late request of an epoch that the same producer has left, which is harmless and is not reported.

Why it matters:
    The records of a transaction that was aborted are discarded, and its producer is fenced: each of its further
    calls fails. An application that treats this as a transient error loses the input it had read in
    between. Two instances that fight commit little or nothing, and both retry for ever.

Inputs:
    The coordinators' log `__transaction_state` (needs READ on it), which contains every change of a
    transaction and every initialisation. Without it the rule is UNKNOWN: requests show the present
    state only. Whether an older instance still writes is in none of its records. That needs one of: the
    brokers' error counters (`scrapes`), lines of brokers about older epochs (only of producers whose
    transactions are not verified, KIP-890), or the request log (logger `kafka.request.logger` at DEBUG),
    which also names both instances. A broker's counter names nobody: it is related to a transactional id
    only if that is the only one that was taken over within the hour. With transactions v2
    (Java clients since 4.0) an abort by a newer instance leaves the same records as one by the owner that starts
    again at once: that is UNKNOWN (`undetermined`) until the request log of the coordinator settles it.

Thresholds:
    Two instances fight if the request log shows that one took the id back from the other within 10
    minutes, or if it was taken three times within 10 minutes, while requests of older epochs were
    rejected twice or more; in both cases each time with a transaction open.

False positives:
    An application whose new process starts before the old one has ended: what the old one still sends
    is rejected, once. With transactions v2, a producer that aborts by itself between its timeout and the
    coordinator's next check counts as timed out. Restarts in quick succession with open transactions are
    `undetermined` without the counters or the request log.

Runbook:
    Requests that were rejected as fenced wrote nothing, and committed transactions are not affected.

    - `zombie`: end the older instance (`older_instance`, where the request log names it).
    - `instances_fighting`: stop one of the two, or give each a transactional id of its own.
    - `coordinator_timeout`: the application was busy for longer than `transaction.timeout.ms`, or it
      died. Check its pauses and the size of its transactions.
    - `handover`: nothing after an intended restart; make sure that the application has read its input again.
    - `undetermined`: `needed_evidence` says what settles it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import numpy as np

from rules.evidence import Evidence, generic
from rules.facts.column import Bools
from rules.facts.fencing import FencingClass, FencingEpisode
from rules.facts.times import MICROSECOND
from rules.fencing.advance import owner_questions
from rules.fencing.classify import count_cuts
from rules.fencing.evidence import evidence_of
from rules.judgement import Case, Judgement, NamedSubjects, Reason, decide
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

RULE: Final = RuleMeta(
    rule_id="producer_fenced",
    subject=SubjectKind.TRANSACTION,
    kind=Kind.EVENT,
    severity=Severity.WARNING,
    summary="A producer was fenced: an older instance still writes, two fight, or a timeout was over.",
    milder=(("handover", Severity.INFO),),
)
UNKNOWN_FOR: Final = timedelta(minutes=5)  # after the last evidence of what is not determined


class Why(Reason):
    """Reasons of this rule."""

    ENDED_BY_OWNER = "ended_by_owner"
    ZOMBIE = "zombie"
    INSTANCES_FIGHTING = "instances_fighting"
    COORDINATOR_TIMEOUT = "coordinator_timeout"
    HANDOVER = "handover"
    LATE_BATCH = "late_batch"
    UNDETERMINED = "undetermined"
    LOG_NOT_READ = "log_not_read"


_BREACHES: Final = (
    FencingClass.ZOMBIE,
    FencingClass.INSTANCES_FIGHTING,
    FencingClass.COORDINATOR_TIMEOUT,
    FencingClass.HANDOVER,
)


def judge(view: View) -> Judgement:
    """Judge every id that ended a transaction since the last round, or that an episode is about."""
    cluster, log = view.snapshot.cluster, view.snapshot.transaction_log
    episodes = {_label(episode): episode for episode in _shown(view)}
    names = sorted(
        episodes.keys() | {("transactional_id", each.transactional_id) for each in log.ended}
    )
    shown = [episodes.get(name) for name in names]
    rows = [
        {"cluster": cluster, key: value} if key else {"cluster": cluster} for key, value in names
    ]
    if not log.is_read and ("", "") not in episodes:
        shown, rows = [*shown, None], [*rows, {"cluster": cluster}]

    def where(class_: FencingClass) -> Bools:
        return np.array([e is not None and e.verdict.class_ is class_ for e in shown], np.bool_)

    def details(position: int) -> Evidence:
        episode = shown[position]
        return {} if episode is None else generic(evidence_of(episode))

    is_new = np.array([_is_new(episode, view) for episode in shown], np.bool_)
    unread = np.array([not log.is_read and "transactional_id" not in row for row in rows], np.bool_)
    return decide(
        RULE,
        NamedSubjects(
            SubjectKind.TRANSACTION if log.is_read or episodes else SubjectKind.CLUSTER, tuple(rows)
        ),
        [
            *(Case(where(of) & is_new, Verdict.BREACH, Why(str(of))) for of in _BREACHES),
            *(
                Case(where(of), Verdict.OK, Why(str(of)))
                for of in (*_BREACHES, FencingClass.LATE_BATCH)
            ),
            Case(where(FencingClass.UNDETERMINED), Verdict.UNKNOWN, Why.UNDETERMINED),
            Case(unread, Verdict.UNKNOWN, Why.LOG_NOT_READ),
        ],
        (Verdict.OK, Why.ENDED_BY_OWNER),
        details=details,
        questions=owner_questions(view),
    )


def _shown(view: View) -> list[FencingEpisode]:
    """Return the episodes that this round reports, and those that are not determined yet."""
    now = view.memory.taken_us
    return [
        episode
        for episode in view.memory.fencing.open.values()
        if _was_reported_at(episode, now)
        or (
            episode.verdict.class_ is FencingClass.UNDETERMINED
            and now - episode.last_seen_us < UNKNOWN_FOR // MICROSECOND
        )
    ]


def _was_reported_at(episode: FencingEpisode, now_us: int) -> bool:
    return episode.reported is not None and episode.reported.reported_us == now_us


def _is_new(episode: FencingEpisode | None, view: View) -> bool:
    """Whether this round reports a breach of it; a handover is one only where it aborted a transaction."""
    if episode is None or not _was_reported_at(episode, view.memory.taken_us):
        return False
    return episode.verdict.class_ is not FencingClass.HANDOVER or bool(count_cuts(episode))


def _label(episode: FencingEpisode) -> tuple[str, str]:
    """Return what names the subject beside the cluster; nothing where brokers only counted."""
    if episode.transactional_id is not None:
        return "transactional_id", episode.transactional_id
    return ("", "") if episode.producer_id is None else ("producer_id", str(episode.producer_id))
