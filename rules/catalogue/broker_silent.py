"""A registered broker answers none of Tidemark's requests.

Detects:
    Brokers that the cluster lists and that have left all requests, or the connection itself,
    unanswered in every round of a while, whereas others answer.

Why it matters:
    The broker hangs without being fenced (its heartbeats still arrive), or the network between it
    and Tidemark is broken. Clients on the same side of the network wait for it too. What its
    leaders and coordinators know is missing from every round: all verdicts about its partitions are
    UNKNOWN.

Inputs:
    Which brokers answered any request of a round; since when one has not, which is kept from round
    to round and over a restart of Tidemark.

Thresholds:
    2 minutes: a broker that dies is fenced, and is gone, after its session timeout (9 s by default);
    one that starts is listed before it answers. A warning only: Tidemark cannot tell a broker that
    hangs from a network that fails. If it leads partitions, `observation_stale` alerts on what
    cannot be judged.

False positives:
    A firewall between Tidemark and one broker, or an advertised address that only clients can
    resolve. If no broker answers at all, the cause is rather on Tidemark's side: UNKNOWN.

Runbook:
    `why` says how it failed. Try from another host: `kafka-broker-api-versions.sh
    --bootstrap-server ADDRESS`. It answers there: the network between Tidemark and the broker. It
    does not: take a thread dump of the broker (`jstack`), check its disk and its file descriptors.
    Restart it only after that, and only if its partitions have other in-sync replicas.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import numpy as np

from rules.facts.column import Column
from rules.gone_brokers import count_led
from rules.judgement import Case, Judgement, NamedSubjects, Reason, decide
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

SILENT_AFTER: Final = timedelta(minutes=2)

RULE: Final = RuleMeta(
    rule_id="broker_silent",
    subject=SubjectKind.BROKER,
    kind=Kind.STATE,
    severity=Severity.WARNING,
    summary="A registered broker answers none of Tidemark's requests.",
)


class Why(Reason):
    """Reasons of this rule."""

    ANSWERS = "answers"
    SILENT_BRIEFLY = "silent_briefly"
    SILENT = "silent"
    NOBODY_ANSWERS = "nobody_answers"  # nor does any other broker
    NOT_QUERIED = "not_queried"  # or it rejects how Tidemark connects


def judge(view: View) -> Judgement:
    """Judge every registered broker."""
    contact, silent_us = view.snapshot.contact, view.memory.brokers.silent_us
    brokers = [broker.broker_id for broker in view.snapshot.brokers]
    answers = np.array([broker in contact.answered for broker in brokers], np.bool_)
    is_silent = np.array([broker in contact.silent for broker in brokers], np.bool_)
    since = Column.of(silent_us.get(int(broker)) for broker in brokers)
    ids = np.array(brokers, np.int64)
    return decide(
        RULE,
        NamedSubjects(
            SubjectKind.BROKER,
            tuple({"cluster": view.snapshot.cluster, "broker": str(broker)} for broker in brokers),
        ),
        [
            Case(answers, Verdict.OK, Why.ANSWERS),
            Case(~is_silent, Verdict.UNKNOWN, Why.NOT_QUERIED),
            Case(np.full(len(brokers), not answers.any()), Verdict.UNKNOWN, Why.NOBODY_ANSWERS),
            Case(view.is_unchanged_for(since, SILENT_AFTER), Verdict.BREACH, Why.SILENT),
        ],
        (Verdict.OK, Why.SILENT_BRIEFLY),
        {
            "silent_ms": view.unchanged_ms(since),
            "led_partitions": count_led(view.snapshot.partitions, ids),
        },
        details=lambda position: {
            "address": f"{view.snapshot.brokers[position].host}:{view.snapshot.brokers[position].port}",
            "why": contact.silent.get(brokers[position]),
        },
    )
